"""A quantile of a column: points of a line, each with its rank error as utility."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
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

# Denominators of levels and ranks: their product is a whole number of 52 bits.
_FINEST_LEVEL = 2**20
_FARTHEST_RANK = 2**32
GRID_POINTS = 2**20


@dataclass(frozen=True)
class Quantile:
    """The quantile of a column, as the point t of a public grid with the least rank error.

        utility(t) = -q |#{x <= t} - (p / q) n|,   p / q the level

    p / q is the nearest fraction with q up to 2^20, so that utilities are whole numbers and no
    rounding moves one. The utility is constant between values: to draw costs one sort. Asked in a
    `Selection`.

    Parameters
    ----------
    level
        Between 0 and 1.
    lower, upper
        The public interval; values outside count as its ends.
    column
        Which column of the rows.
    counts_missing
        Whether a value that is no finite number counts as 0, as in every sum; otherwise it does not
        count at all.
    n_points
        The least number of points of the grid.

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

    @classmethod
    def tried(cls) -> tuple[Quantile, ...]:
        """Return the ones that `tacit.testing.check_query` tries."""
        parameters: dict[str, Any] = {"lower": -0.5, "upper": 0.7, "n_points": 64}
        return cls(0.3, **parameters), cls(0.5, column=1, counts_missing=False, **parameters)

    def applies(self, facts: Facts) -> bool:
        """Return whether there is such a column."""
        return self.column < facts.n_features

    @property
    def fraction(self) -> Fraction:
        """The level, as a fraction of whole numbers."""
        return Fraction(self.level).limit_denominator(_FINEST_LEVEL)

    def sensitivity(self, facts: Facts) -> Sensitivity:
        """Return max(p, q - p), or q where a record is replaced."""
        p, q = self.fraction.numerator, self.fraction.denominator
        value = float(q if facts.relation is Relation.REPLACE else max(p, q - p))
        return Sensitivity(value, Norm.LINF, "selection_on_a_line.md#5-ranks")

    def rank_sensitivity(self, facts: Facts) -> float:
        """Return how many ranks one record moves a utility: at most 1.

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
        """Return the utility of every point of the grid. Private."""
        ends, utility = self._pieces(records)
        grid = self._grid
        points = np.arange(grid.first, grid.last + 1) * grid.spacing
        # The last piece is closed.
        at = np.minimum(np.searchsorted(ends, points, side="right") - 1, utility.size - 1)
        return np.asarray(utility[at])

    def drawn(
        self, records: Private, facts: Facts, epsilon: float, source: Source
    ) -> Release[float]:
        """Return a point of the grid, drawn by its utility. Called by a `Selection` alone."""
        ends, utility = self._pieces(records)
        stated = self.sensitivity(facts)
        both_ends = np.repeat(utility[:, None], 2, axis=1)
        bounded = Bounded(both_ends, stated.value, stated.norm, facts.relation)
        return select_on_line(ends, bounded, self._grid, epsilon, source=source)

    @property
    def _grid(self) -> Grid:
        return Grid(self.lower, self.upper, self.n_points)

    def _pieces(self, records: Private) -> tuple[Array, Array]:
        """Return where the utility jumps, with both ends of the line, and its value in between."""
        if not isinstance(records, MemoryRecords):
            raise ValueError("the exact quantile needs records in memory.")
        if hasattr(records.rows, "tocsr"):
            raise ValueError("the exact quantile needs dense records; pass X.toarray().")
        values = np.asarray(records.rows, dtype=np.float64)[:, self.column]
        # A NaN would be sorted beyond the end.
        finite = np.isfinite(values)
        values = np.where(finite, values, 0.0) if self.counts_missing else values[finite]
        values = np.sort(np.clip(values, self.lower, self.upper))
        knots = np.concatenate([[self.lower], values, [self.upper]])
        utility = rank_utility(np.arange(values.size + 1), values.size, self.fraction)
        keep = np.diff(knots) > 0
        return np.concatenate([knots[:-1][keep], [self.upper]]), utility[keep]

    def contributors(self) -> tuple[Callable[..., Any], ...]:
        """Return what scores ranks."""
        return (rank_utility,)


def rank_utility(below: npt.NDArray[np.int64], n: int, level: Fraction) -> Array:
    """Return -min(|q below - p n|, q (2^32 - 1)) for level = p / q: whole numbers, exactly.

    One record more or less moves q below - p n by p or q - p, one replaced moves it by q, and a
    minimum with a constant moves by no more: ranks that far off are equally bad.

        p n = q whole + part;   where |below - whole| >= 2^32, |q (below - whole) - part| is at
        least q (2^32 - 1), so that the gap can be cut there before it is multiplied

    Examples
    --------
    >>> import numpy as np
    >>> from fractions import Fraction
    >>> from tacit.queries.quantile import rank_utility
    >>> rank_utility(np.arange(4), 3, Fraction(1, 10))
    array([ -3.,  -7., -17., -27.])
    """
    p, q = level.numerator, level.denominator
    whole, part = divmod(p * n, q)
    gap = np.clip(below - whole, -_FARTHEST_RANK, _FARTHEST_RANK)
    utility: Array = -np.minimum(np.abs(q * gap - part), q * (_FARTHEST_RANK - 1)).astype(float)
    return utility
