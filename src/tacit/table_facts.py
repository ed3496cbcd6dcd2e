"""What is public of a table's rows and labels, as one step hands it to the next.

A schema makes these facts, a transformer's `facts_out` turns those of the rows it takes into those
of the rows it gives, and an estimator relies on them rather than on its own parameters. They
travel with the table, in an `EncodedTable`.
"""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class TableFacts:
    """The public facts about a table of numbers, and what must be assumed for them to be public.

    Parameters
    ----------
    names
        The columns.
    row_norm
        No row is longer than this; infinite where nothing is known.
    n_records
        The number of records, where that is public.
    classes
        The labels there are, of a classification.
    label_range
        The least and the greatest label, of a regression.
    assumptions
        What a guarantee that relies on these facts must repeat.
    of_people
        Whether it is known whose each record is: a person with all of theirs is then protected.
    ranges
        The least and the greatest value of each column, where that is known.

    Examples
    --------
    >>> from tacit.schema import ClassTarget, Number, Schema
    >>> Schema((Number("age", 0, 100),), ClassTarget("ill", ("no", "yes"))).facts.parameters()
    {'n_records': None, 'row_norm': 0.5, 'classes': ['no', 'yes']}
    """

    names: tuple[str, ...]
    row_norm: float
    n_records: int | None = None
    classes: tuple[Any, ...] | None = None
    label_range: tuple[float, float] | None = None
    assumptions: tuple[str, ...] = ()
    of_people: bool = False
    ranges: tuple[tuple[float, float], ...] | None = None

    def parameters(self) -> dict[str, Any]:
        """Return the facts by the names that estimators' parameters have."""
        known: dict[str, Any] = {"n_records": self.n_records}
        if math.isfinite(self.row_norm):
            known["row_norm"] = self.row_norm
        if self.classes is not None:
            known["classes"] = list(self.classes)
        if self.label_range is not None:
            known["label_range"] = self.label_range
        return known

    def through(self, step: HandsOn) -> TableFacts:
        """Return the facts of what a transformer makes of the table; its people stay."""
        return replace(facts_through(step, self), of_people=self.of_people)

    def of_part(self, share: float) -> TableFacts:
        """Return the facts of a part of the records: about how many it has, if theirs is public."""
        n = self.n_records
        return replace(self, n_records=None if n is None else max(round(n * share), 1))


@runtime_checkable
class HandsOn(Protocol):
    """A transformer that learns nothing from records, and knows what is public of its rows."""

    def facts_out(self, facts: TableFacts | None = None) -> TableFacts:
        """Return the facts of the rows it gives, from those of the rows it takes."""

    def transform(self, X: Any) -> npt.NDArray[Any]:
        """Return the rows."""


def facts_through(step: HandsOn, facts: TableFacts | None) -> TableFacts:
    """Return what is public of the rows that a step gives, of a step of any author.

    tacit's own steps make each row from its own record. That somebody else's do is tried on
    made-up rows, which cannot show it, so the guarantee says that its user vouches for it; and
    what was assumed before such a step is still assumed after it.

    Parameters
    ----------
    step
        Has ``facts_out`` and ``transform``.
    facts
        Of the rows that it takes; None where nothing is known of them.

    Raises
    ------
    ValueError
        If a row of what the step gives depends on other rows.
    """
    given = step.facts_out(facts)
    if type(step).__module__.partition(".")[0] == "tacit":
        return given
    kind = type(step).__name__
    check_row_by_row(kind, step, facts or given)
    before = () if facts is None else facts.assumptions
    sentence = (
        f"a step of the pipeline ({kind}) makes each row from its own record alone and learns "
        "nothing from the records beyond what it releases, for which its user vouches"
    )
    # In their order, each once.
    said = tuple(dict.fromkeys((*before, *given.assumptions, sentence)))
    return replace(given, assumptions=said)


# Rows that a step is tried on: batches of about 100 show what a few rows would not.
_N_TRIED = 128
# Of the largest number that a step gives: beyond rounding, also of float32.
_TOLERANCE = 1e-4


def check_row_by_row(kind: str, step: Any, facts: TableFacts) -> None:
    """Refuse a transformer that gives a made-up row other numbers beside other rows.

    Rows within the declared ranges and norm are transformed together, alone, in pairs, and in
    another order. A step that fails on them, or that is random, cannot be tried. A step that mixes
    rows only of values or numbers that were not tried is not found.

    Examples
    --------
    >>> from sklearn.preprocessing import FunctionTransformer
    >>> from tacit.table_facts import TableFacts, check_row_by_row
    >>> centring = FunctionTransformer(lambda X: X - X.mean(0))
    >>> check_row_by_row("FunctionTransformer", centring, TableFacts(("age", "hours"), 1.0))
    Traceback (most recent call last):
        ...
    ValueError: FunctionTransformer gives a row other numbers when other rows are beside it...
    """
    rows = _made_up(facts)
    together = _tried(step, rows)
    if together is None or not _alike(together, _tried(step, rows)):
        return
    order = np.random.default_rng(1).permutation(_N_TRIED)
    batches = [*([place] for place in range(4)), [0, 1], [3, 2, 1], order, order[: _N_TRIED // 2]]
    for places in map(np.asarray, batches):
        found = _tried(step, rows[places])
        if found is not None and not _alike(together[places], found, of=together):
            raise ValueError(
                f"{kind} gives a row other numbers when other rows are beside it, so that one "
                "record would change the rows of others and no guarantee would hold; let it make "
                "each row from its own record alone (no mean, maximum or order of a batch)."
            )


def _made_up(facts: TableFacts) -> npt.NDArray[np.float64]:
    generator = np.random.default_rng(0)
    n_columns = len(facts.names)
    rows = generator.standard_normal((_N_TRIED, n_columns))
    if facts.ranges is not None:
        lower, upper = np.array(facts.ranges, dtype=np.float64).reshape(n_columns, 2).T
        rows = generator.uniform(lower, upper, (_N_TRIED, n_columns))
    if math.isfinite(facts.row_norm):
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        rows *= facts.row_norm / np.maximum(lengths, facts.row_norm)
    rows[2], rows[-1] = 0.0, rows[0]  # one without any value, and one that is there twice
    return rows


def _copy(step: Any) -> Any:
    """Return a copy for each trial, so that one that remembers rows is found, and not changed."""
    try:
        return copy.deepcopy(step)
    except Exception:  # of what it holds; it is then tried as it is
        return step


def _tried(step: Any, rows: npt.NDArray[np.float64]) -> npt.NDArray[np.float64] | None:
    """Return what a step makes of made-up rows, or None if it fails, as before it is fitted."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            found = _copy(step).transform(rows.copy())
            made = np.asarray(found.toarray() if hasattr(found, "toarray") else found, np.float64)
        except Exception:
            return None
    return made if made.ndim == 2 and len(made) == len(rows) else None


def _alike(one: Any, other: Any, of: Any = None) -> bool:
    """Return whether two tables are the same but for rounding, in a table of larger numbers."""
    if other is None or one.shape != other.shape:
        return False
    table = np.abs(one if of is None else of)
    largest = float(np.max(table, initial=0.0, where=np.isfinite(table)))
    return bool(np.allclose(one, other, rtol=0.0, atol=_TOLERANCE * largest, equal_nan=True))


@dataclass(frozen=True)
class EncodedTable:
    """Rows and labels that are made when a plan has been charged, and what is public of them."""

    facts: TableFacts
    read: Callable[[], tuple[npt.NDArray[Any], npt.NDArray[Any] | None]]
    n_rows: None = None  # which records count shows when they are read
    # Filled as they are read, one a record, where it is known whose each is.
    named: list[Any] | None = field(default=None, repr=False)
    # Filled as they are read: where each record stands in the table as it came, if some that do
    # not count are left out.
    places: list[int] | None = field(default=None, repr=False)
    # Of a file, whose lines that cannot be read have no place.
    is_a_file: bool = False

    @property
    def n_columns(self) -> int:
        """How many numbers a row has."""
        return len(self.facts.names)

    @property
    def has_people(self) -> bool:
        """Whether it is known whose each record is."""
        return self.named is not None

    def identifiers(self) -> list[Any]:
        """Return one identifier for each record that was read."""
        return self.named or []

    def refuse_positions(self) -> None:
        """Refuse to split by position what has none, before anything is charged."""
        if self.is_a_file:
            raise ValueError(
                "under 'replace' records are held out by their position, and a line of a file that "
                "cannot be read has none, so that it would move all others; read the table into "
                "memory first, hold no records out, or use relation 'add_remove'."
            )

    def part(self, chosen: npt.NDArray[np.bool_], share: float) -> EncodedTable:
        """Return some records of a table that was read, about ``share`` of all, and whose they are.

        No part of it is taken again: it does not know where they stood.
        """
        rows, labels = self.read()
        part = rows[chosen], None if labels is None else labels[chosen]
        named = None
        if self.named is not None:
            named = [who for who, keep in zip(self.named, chosen.tolist(), strict=True) if keep]
        return EncodedTable(self.facts.of_part(share), lambda: part, named=named)

    def held(self) -> EncodedTable:
        """Return the table as it is read now, so that it is read once."""
        rows, labels = self.read()
        return replace(self, read=lambda: (rows, labels))

    def through(self, step: HandsOn, facts: TableFacts | None = None) -> EncodedTable:
        """Return the table that a transformer makes of this one; ``facts`` are its, if known."""
        facts = self.facts.through(step) if facts is None else facts

        def read() -> tuple[npt.NDArray[Any], npt.NDArray[Any] | None]:
            rows, labels = self.read()
            if not rows.shape[0]:  # of a part in which there are none; transformers refuse that
                return np.zeros((0, len(facts.names))), labels
            # Rows that a map makes one by one are made when they are summed, not all at once.
            make = getattr(step, "mapped", step.transform)
            return make(rows), labels

        return replace(self, facts=facts, read=read)
