"""Sums of columns and of their squares, and a count, in one release."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tacit.noise import Norm
from tacit.noise.summation import bounded_sum, sum_sensitivity
from tacit.privacy import Relation
from tacit.queries.base import Array, Facts, Private, Sensitivity
from tacit.records import MemoryRecords

# A value u and its square, as 2 u^2 - 5/4: the weight, the shift, and the length of both together.
WEIGHT = 2.0
SHIFT = 1.25
_LENGTH = 1.25


@dataclass(frozen=True)
class ColumnMoments:
    """The sums of k columns and of their squares and, if it is private, the number of records.

    In units u from -1 to 1 of its public interval, each value is u and 2 u^2 - 5/4:

        |(u, 2 u^2 - 5/4)|^2 = 25/16 - 4 u^2 (1 - u^2) <= 25/16

    so that a record of k columns is no longer than (5/4) sqrt(k), and with a constant c for the
    number of records no longer than sqrt(25 k / 16 + c^2). A value that is no finite number counts
    as the middle of its interval. The total has k sums of u, k of 2 u^2 - 5/4 and, at its end, the
    count times c.

    Parameters
    ----------
    columns
        Which columns of the rows.
    limits
        The public interval of each; values outside count as its ends.
    counts
        Whether records are counted.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.privacy import Relation
    >>> from tacit.queries import ColumnMoments, Facts
    >>> from tacit.records import Bounds, MemoryRecords
    >>> facts = Facts(Bounds(), 2, Relation.ADD_REMOVE)
    >>> records = MemoryRecords(np.array([[7.0, 1.0], [3.0, np.nan]]), None, facts.bounds)
    >>> ColumnMoments((0,), ((0.0, 10.0),), counts=False).total(records, facts).round(3)
    array([ 0.  , -1.86])
    """

    columns: tuple[int, ...]
    limits: tuple[tuple[float, float], ...]
    counts: bool

    @classmethod
    def tried(cls) -> tuple[ColumnMoments, ...]:
        """Return the ones that `tacit.testing.check_query` tries."""
        three = (0, 1, 2), ((-0.5, 0.5), (-0.5, 0.5), (-0.4, 0.5))
        return cls(*three, counts=True), cls(*three, counts=False), cls((1,), ((0.0, 1.0),), True)

    def applies(self, facts: Facts) -> bool:
        """Return whether there are such columns; records that are replaced are not counted."""
        is_counted = self.counts and facts.relation is Relation.REPLACE
        return max(self.columns) < facts.n_features and not is_counted

    @property
    def count_constant(self) -> float:
        """The constant c that counts records, with which variances have the least noise; or 0.

            sd of a variance = s sqrt(1 / 4 + (5/8)^2 / c^2) / n,   s = z sqrt(25 k / 16 + c^2)

        is least, (5/8) (sqrt(k) + 1) z / n, at c = (5/4) k^(1/4).
        """
        return _LENGTH * math.sqrt(math.sqrt(len(self.columns))) if self.counts else 0.0

    @property
    def _length(self) -> float:
        return math.hypot(_LENGTH * math.sqrt(len(self.columns)), self.count_constant)

    def sensitivity(self, facts: Facts) -> Sensitivity:
        """Return the length of a record, twice that for REPLACE, and what rounding adds."""
        n_sums = 2 * len(self.columns) + (1 if self.counts else 0)
        value = sum_sensitivity(self._length, n_sums, Norm.L2, facts.relation)
        proof = "preprocessing.md#3-means-and-scales-privatestandardscaler"
        return Sensitivity(value, Norm.L2, proof)

    def total(self, records: Private, facts: Facts) -> Array:
        """Return the sums. Private."""
        units = self.units(records)
        parts = [units, WEIGHT * units**2 - SHIFT]
        if self.counts:
            parts.append(np.full((len(units), 1), self.count_constant))
        # The relation matters for the sensitivity alone.
        return np.asarray(
            bounded_sum(np.hstack(parts), self._length, Norm.L2, facts.relation).value
        )

    def units(self, records: MemoryRecords) -> Array:
        """Return the columns in units from -1 to 1 of their intervals. Private."""
        limits = np.array(self.limits)
        middle, half = limits.mean(axis=1), (limits[:, 1] - limits[:, 0]) / 2
        rows = np.asarray(records.rows, dtype=np.float64)[:, list(self.columns)]
        # Clipped first: a division that overflows would warn of one record.
        inside = np.clip(rows, limits[:, 0], limits[:, 1])
        return np.asarray(np.nan_to_num(np.clip((inside - middle) / half, -1.0, 1.0)))

    def contributors(self) -> tuple[Callable[..., Any], ...]:
        """Return what brings a value to its unit, and what clips and rounds a record."""
        return ColumnMoments.units, bounded_sum
