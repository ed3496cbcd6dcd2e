"""Which columns of a table a step is about, and what is public of them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.table_facts import TableFacts

Array = npt.NDArray[np.float64]
Places = npt.NDArray[np.int64]
Ranges = Sequence[tuple[float, float]]


def places_of(columns: Any, names: Sequence[str]) -> Places:
    """Return where the chosen columns stand: named, counted from 0, or None for all.

    Examples
    --------
    >>> from tacit.preprocessing.private._columns import places_of
    >>> places_of(["b"], ("a", "b")), places_of(None, ("a", "b"))
    (array([1]), array([0, 1]))
    """
    if columns is None:
        return np.arange(len(names))
    if isinstance(columns, str) or not isinstance(columns, Sequence | np.ndarray):
        raise TypeError(f"columns must be a list of names or places, got {columns!r}.")
    places = [_place_of(column, names) for column in columns]
    if not places or len(set(places)) < len(places):
        raise ValueError(f"columns must name at least one, and each once, got {columns!r}.")
    return np.array(places, dtype=np.int64)


def _place_of(column: Any, names: Sequence[str]) -> int:
    if isinstance(column, str):
        if list(names).count(column) == 1:
            return list(names).index(column)
        raise ValueError(
            f"the table has no column {column!r}, or several; check the name, letter by letter, "
            "or pass a table with named columns."
        )
    if isinstance(column, Integral) and not isinstance(column, bool):
        if 0 <= int(column) < len(names):
            return int(column)
        raise ValueError(f"there is no column {column}; they are counted from 0.")
    raise TypeError(f"a column is a name or a whole number, got {column!r}.")


def n_chosen(columns: Any, n_features: int) -> int:
    """Return how many columns are chosen of ``n_features``."""
    return n_features if columns is None else len(columns)


_NO_BOUNDS = (
    "bounds of {what} are not known, and the least and greatest value are themselves records; pass "
    "bounds=(low, high), a pair for each column or a dictionary of pairs, known without looking at "
    "the data, or come after a step that knows the range of its columns, such as a SchemaEncoder."
)


def bounds_of(declared: Any, ranges: Ranges | None, names: Sequence[str], places: Places) -> Array:
    """Return the public interval of each chosen column: as declared, or as the table's facts say.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.preprocessing.private._columns import bounds_of
    >>> bounds_of({"b": (0, 9)}, None, ("a", "b"), np.array([1]))
    array([[0., 9.]])
    """
    if isinstance(declared, Mapping):
        known = {_place_of(column, names): pair for column, pair in declared.items()}
        pairs: Any = [known.get(place) or _from(ranges, place, names) for place in places.tolist()]
    elif declared is None:
        pairs = [_from(ranges, place, names) for place in places.tolist()]
    else:
        pairs = declared
    try:
        limits = np.array(np.broadcast_to(np.asarray(pairs, np.float64), (len(places), 2)))
    except (ValueError, TypeError):
        limits = np.full((1, 2), np.nan)
    with np.errstate(over="ignore"):
        width = limits[:, 1] - limits[:, 0]
    if not (np.all(np.isfinite(limits)) and np.all(width > 0.0) and np.all(np.isfinite(width))):
        raise ValueError(f"bounds must be finite pairs low < high, one a column, got {declared!r}.")
    return limits


def _from(ranges: Ranges | None, place: int, names: Sequence[str]) -> tuple[float, float]:
    if ranges is None:
        raise ValueError(_NO_BOUNDS.format(what=f"column {names[place]!r}"))
    return ranges[place]


def largest(ranges: Ranges) -> float:
    """Return the norm of a row whose every number is as far from 0 as its range allows."""
    return math.hypot(*(max(abs(low), abs(high)) for low, high in ranges))


@dataclass(frozen=True)
class Known:
    """What is public of the rows that a step takes.

    ``ranges`` and ``row_norm`` are None where nobody said so.
    """

    names: tuple[str, ...]
    ranges: Ranges | None = None
    row_norm: float | None = None

    @classmethod
    def of(cls, facts: TableFacts) -> Known:
        """Return what the facts of a table say."""
        return cls(facts.names, facts.ranges, facts.row_norm)

    def norm_of(self, places: Places) -> float:
        """Return a bound on the norm of some of a row's numbers, infinite if none is known."""
        norm = math.inf if self.row_norm is None else self.row_norm
        if self.ranges is not None:
            norm = min(norm, largest([self.ranges[place] for place in places.tolist()]))
        return norm if len(places) else 0.0

    def with_ranges(self, places: Places, chosen: Ranges) -> list[tuple[float, float]] | None:
        """Return the ranges of all columns when the chosen ones have others; None if unknown."""
        if self.ranges is None and len(self.others(places)):
            return None
        ranges = list(self.ranges or [(0.0, 0.0)] * len(self.names))
        for place, pair in zip(places.tolist(), chosen, strict=True):
            ranges[place] = pair
        return ranges

    def others(self, places: Places) -> Places:
        """Return the places of the columns that were not chosen."""
        return np.setdiff1d(np.arange(len(self.names)), places)


def facts_with(
    facts: TableFacts | None,
    names: Sequence[str],
    row_norm: float,
    ranges: Ranges | None,
) -> TableFacts:
    """Return facts of other columns; of labels and records they say what they said.

    Raises
    ------
    ValueError
        If no bound on the norm of a row is known.
    """
    if not math.isfinite(row_norm):
        raise ValueError(
            "how long a row is does not follow: nothing is known of the columns that this step "
            "leaves as they are. Choose all columns, or pass the facts of the rows it takes."
        )
    told = TableFacts(tuple(names), row_norm) if facts is None else facts
    return replace(
        told,
        names=tuple(names),
        row_norm=row_norm,
        ranges=None if ranges is None else tuple((float(low), float(high)) for low, high in ranges),
    )


def on_one_scale(facts: TableFacts | None, known: Known, places: Places) -> TableFacts:
    """Return the facts of a table whose chosen columns now lie between -1/2 and 1/2.

    row norm = sqrt(k / 4 + (norm of the others)^2)
    """
    ranges = known.with_ranges(places, [(-0.5, 0.5)] * len(places))
    norm = math.hypot(math.sqrt(len(places)) / 2, known.norm_of(known.others(places)))
    return facts_with(facts, known.names, norm, ranges)
