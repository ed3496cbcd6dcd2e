"""Select a quantile of a column: grid points on a line, scored by their rank error."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.noise import Grid, Norm, Release, Source
from tacit.noise.bounded import Bounded
from tacit.noise.selection.line import select_on_line
from tacit.privacy import Relation
from tacit.queries.base import Array, Facts, Private, Sensitivity
from tacit.records import MemoryRecords

# Bound on the denominators of levels; with 2^32 ranks, products are integers of 52 bits.
_FINEST_LEVEL = 2**20
_FARTHEST_RANK = 2**32  # rank errors are clipped below it
GRID_POINTS = 2**20  # default resolution of the public interval


@dataclass(frozen=True)
class Quantile:
    """The quantile of a column: the point t of a public grid with the least rank error.

        utility(t) = -q |#{x <= t} - (p / q) n|,   p / q the level

    p / q is the nearest fraction with q up to 2^20, so that utilities are integers and exact. The
    utility is constant between values: a draw costs one sort. Ask it in a `Selection`.

    Whole numbers have many ties: the ranks of a number t go from #{x < t} to #{x <= t}. With
    ``whole`` the grid is the whole numbers, and the error is the distance to that interval:

        utility(t) = -max(0, p n - q #{x <= t}, q #{x < t} - p n)

    Parameters
    ----------
    level
        The level, between 0 and 1.
    lower, upper
        The public interval; values outside are clipped to it.
    column
        The index of the column.
    counts_missing
        Whether a value that is not finite counts as 0, as in every sum; otherwise it is ignored.
    n_points
        The least number of grid points, unless ``whole``.
    whole
        Whether the quantile is a whole number. Values are rounded, each by itself.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.privacy import Relation
    >>> from tacit.queries import Facts, Quantile, Selection, Session, Slot
    >>> from tacit.records import Bounds, MemoryRecords
    >>> facts = Facts(Bounds(), 1, Relation.ADD_REMOVE)
    >>> median = Selection(Quantile(0.5, 0.0, 100.0), epsilon=1.0)
    >>> slots = {"median": Slot(median.event(facts))}
    >>> records = MemoryRecords(np.arange(1000.0)[:, None] / 10, None, facts.bounds)
    >>> session = Session(records, facts, median.event(facts), slots)
    >>> 45 < session.ask(median, "median") < 55
    True
    """

    level: float
    lower: float
    upper: float
    column: int = 0
    counts_missing: bool = True
    n_points: int = GRID_POINTS
    whole: bool = False

    def __post_init__(self) -> None:
        if self.whole and math.ceil(self.lower) >= math.floor(self.upper):
            raise ValueError(
                f"there are no two whole numbers between {self.lower:g} and {self.upper:g}; pass "
                "wider bounds, or whole=False."
            )

    @classmethod
    def tried(cls) -> tuple[Quantile, ...]:
        """Return the instances that `tacit.testing.check_query` tries."""
        parameters: dict[str, Any] = {"lower": -0.5, "upper": 0.7, "n_points": 64}
        return (
            cls(0.3, **parameters),
            cls(0.5, column=1, counts_missing=False, **parameters),
            cls(0.3, lower=-1.0, upper=1.0, whole=True),
        )

    def applies(self, facts: Facts) -> bool:
        """Return whether the column exists."""
        return self.column < facts.n_features

    @property
    def fraction(self) -> Fraction:
        """The level as a fraction p / q."""
        return Fraction(self.level).limit_denominator(_FINEST_LEVEL)

    def sensitivity(self, facts: Facts) -> Sensitivity:
        """Return max(p, q - p), or q under REPLACE."""
        p, q = self.fraction.numerator, self.fraction.denominator
        value = float(q if facts.relation is Relation.REPLACE else max(p, q - p))
        return Sensitivity(value, Norm.LINF, "selection_on_a_line.md#5-ranks")

    def rank_sensitivity(self, facts: Facts) -> float:
        """Return the sensitivity of a utility in ranks: at most 1.

        Examples
        --------
        >>> from tacit.privacy import Relation
        >>> from tacit.queries import Facts, Quantile
        >>> from tacit.records import Bounds
        >>> Quantile(0.5, 0.0, 1.0).rank_sensitivity(Facts(Bounds(), 1, Relation.ADD_REMOVE))
        0.5
        """
        return self.sensitivity(facts).value / self.fraction.denominator

    def total(self, records: Private, facts: Facts) -> Array:
        """Return the utility of every grid point. Private."""
        ends, utility = self._pieces(records)
        grid = self._grid
        points = np.arange(grid.first, grid.last + 1) * grid.spacing
        # The last interval is closed.
        at = np.minimum(np.searchsorted(ends, points, side="right") - 1, utility.size - 1)
        return np.asarray(utility[at])

    def drawn(
        self, records: Private, facts: Facts, epsilon: float, source: Source
    ) -> Release[float]:
        """Return a grid point, drawn by its utility. Called by a `Selection` only."""
        ends, utility = self._pieces(records)
        stated = self.sensitivity(facts)
        both_ends = np.repeat(utility[:, None], 2, axis=1)
        bounded = Bounded(both_ends, stated.value, stated.norm, facts.relation)
        release = select_on_line(ends, bounded, self._grid, epsilon, source=source)
        if not self.whole:
            return release
        # Two candidates are beyond the interval, since the last piece is closed.
        return replace(release, value=min(release.value, float(math.floor(self.upper))))

    @property
    def _grid(self) -> Grid:
        if not self.whole:
            return Grid(self.lower, self.upper, self.n_points)
        low, high = math.ceil(self.lower), math.floor(self.upper)
        return Grid(low, high + 2, high + 2 - low)  # of spacing 1

    def _pieces(self, records: Private) -> tuple[Array, Array]:
        """Return the jumps of the utility, with both ends of the line, and its values between."""
        if not isinstance(records, MemoryRecords):
            raise ValueError("the exact quantile needs records in memory; load them first.")
        if hasattr(records.rows, "tocsr"):
            raise ValueError("the exact quantile needs dense records; pass X.toarray().")
        values = np.asarray(records.rows, dtype=np.float64)[:, self.column]
        # NaN would be sorted beyond the end.
        finite = np.isfinite(values)
        values = np.where(finite, values, 0.0) if self.counts_missing else values[finite]
        if self.whole:
            return self._pieces_of_whole_numbers(np.rint(values))
        values = np.sort(np.clip(values, self.lower, self.upper))
        knots = np.concatenate([[self.lower], values, [self.upper]])
        utility = rank_utility(np.arange(values.size + 1), values.size, self.fraction)
        keep = np.diff(knots) > 0
        return np.concatenate([knots[:-1][keep], [self.upper]]), utility[keep]

    def _pieces_of_whole_numbers(self, values: Array) -> tuple[Array, Array]:
        """Return pieces [t, t + 1) of the numbers t that occur, and the pieces between them."""
        low, high = math.ceil(self.lower), math.floor(self.upper)
        numbers, counts = np.unique(np.clip(values, low, high), return_counts=True)
        up_to = np.cumsum(counts)
        n, level = values.size, self.fraction
        below = _rank_gap(up_to - counts, n, level)  # q #{x < t} - p n
        above = _rank_gap(up_to, n, level)  # q #{x <= t} - p n
        at = -np.maximum(0.0, np.maximum(below, -above))
        between = -np.abs(above)  # no value is there: both counts are equal
        first = -np.abs(_rank_gap(np.zeros(1, dtype=np.int64), n, level))
        occurring = np.stack([numbers, numbers + 1], axis=1).ravel()
        knots = np.concatenate([[low], occurring, [high + 2]])
        utility = np.concatenate([first, np.stack([at, between], axis=1).ravel()])
        keep = np.diff(knots) > 0
        return np.concatenate([knots[:-1][keep], [high + 2]]), utility[keep]

    def contributors(self) -> tuple[Callable[..., Any], ...]:
        """Return the functions that score ranks."""
        return rank_utility, _rank_gap


def rank_utility(below: npt.NDArray[np.int64], n: int, level: Fraction) -> Array:
    """Return -min(|q below - p n|, q (2^32 - 1)) for level = p / q: whole numbers, exactly.

    Adding or removing a record moves q below - p n by p or q - p, replacing one by q. A minimum
    with a constant moves by no more: all ranks that far off are equally bad.

        p n = q whole + part;   if |below - whole| >= 2^32, |q (below - whole) - part| is at
        least q (2^32 - 1), so that the gap can be clipped before it is multiplied

    Examples
    --------
    >>> import numpy as np
    >>> from fractions import Fraction
    >>> from tacit.queries.quantile import rank_utility
    >>> rank_utility(np.arange(4), 3, Fraction(1, 10))
    array([ -3.,  -7., -17., -27.])
    """
    utility: Array = -np.abs(_rank_gap(below, n, level))
    return utility


def _rank_gap(below: npt.NDArray[np.int64], n: int, level: Fraction) -> Array:
    """Return q below - p n, clipped to +- q (2^32 - 1): whole numbers, exactly."""
    p, q = level.numerator, level.denominator
    whole, part = divmod(p * n, q)
    gap = np.clip(below - whole, -_FARTHEST_RANK, _FARTHEST_RANK)
    most = q * (_FARTHEST_RANK - 1)
    return np.clip(q * gap - part, -most, most).astype(np.float64)
