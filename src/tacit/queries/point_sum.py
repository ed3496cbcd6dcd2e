"""The sum of rows as points, or of their squares, exact in floats."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tacit.noise import Norm
from tacit.noise.bounded import Bounded
from tacit.noise.summation import bounded_sum
from tacit.privacy import Relation
from tacit.queries.base import Array, Facts, Private, Sensitivity, total_of
from tacit.records import Block, MemoryRecords, RecordSource
from tacit.row_clipping import clip_factors

_MOST_RECORDS = 2**31


@dataclass(frozen=True)
class PointSum:
    """The sum over records of x, or of the squares of its coordinates, ||x|| <= R.

    Each point is rounded to whole steps (`bounded_sum`), so that the sum of a block is
    a whole number of them, and so is every sum of such sums, below 2^53 steps for up to 2^31
    records: floats add them exactly, whichever blocks there are.

    Parameters
    ----------
    squared
        Whether squares are added up. Those of a point's coordinates are together no longer than
        R^2, since sum x_j^4 <= (sum x_j^2)^2.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.privacy import Relation
    >>> from tacit.queries import Facts, PointSum
    >>> from tacit.records import Bounds, MemoryRecords
    >>> facts = Facts(Bounds(row_norm=1.0), 2, Relation.ADD_REMOVE)
    >>> records = MemoryRecords(np.array([[3.0, 4.0], [0.5, 0.0]]), None, facts.bounds)
    >>> np.round(PointSum().total(records, facts), 3)
    array([1.1, 0.8])
    """

    squared: bool = False

    @classmethod
    def tried(cls) -> tuple[PointSum, ...]:
        """Return the ones that `tacit.testing.check_query` tries."""
        return cls(), cls(squared=True)

    def sensitivity(self, facts: Facts) -> Sensitivity:
        """Return R, or R^2, and what rounding adds; twice that where a record is replaced."""
        norm = facts.bounds.total_norm
        nothing = _in_steps(np.empty((0, facts.n_coordinates)), norm, self.squared, facts)
        return Sensitivity(nothing.sensitivity, Norm.L2, "exact_sums.md#2-what-one-record-adds")

    def total(self, records: Private, facts: Facts) -> Array:
        """Return the sum. Private."""
        return np.asarray(total_of(records, self._sum))

    def _sum(self, records: RecordSource) -> Array:
        if records.count() > _MOST_RECORDS:
            raise ValueError("there are more than 2^31 records to add up exactly; fit on a part.")
        norm = records.bounds.total_norm
        if not self.squared and type(records) is MemoryRecords and not records.bounds.intercept:
            rows = records.rows
            if isinstance(rows, np.ndarray) and rows.dtype == np.float64:
                # `bounded_sum` clips rows itself, by the same rule: once instead of twice.
                return np.asarray(_in_steps(rows, norm, squared=False).value)

        def of(block: Block) -> tuple[Array, ...]:
            return (np.asarray(_in_steps(block.points(), norm, self.squared).value),)

        (value,) = records.sum(of)
        return value

    def contributors(self) -> tuple[Callable[..., Any], ...]:
        """Return what clips a row and what rounds it."""
        return clip_factors, bounded_sum


def _in_steps(points: Array, norm: float, squared: bool, facts: Facts | None = None) -> Bounded:
    """Return what `bounded_sum` makes of points; its relation matters for the sensitivity alone."""
    relation = Relation.ADD_REMOVE if facts is None else facts.relation
    if squared:
        points, norm = points**2, norm**2
    return bounded_sum(points, norm, Norm.L2, relation, max_rows=_MOST_RECORDS)
