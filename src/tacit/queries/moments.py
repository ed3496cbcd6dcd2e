"""Sum rows, columns and their squares; release X'X, its least eigenvalue, and X'y."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from tacit.noise import Norm
from tacit.noise.bounded import Bounded
from tacit.noise.summation import bounded_sum, sum_sensitivity
from tacit.privacy import Relation
from tacit.queries.base import Array, Facts, Private, Sensitivity, total_of
from tacit.records import Block, MemoryRecords
from tacit.records.exact.lattice import (
    MOMENT_SLACK,
    TERM_BITS,
    LatticeBlock,
    Rounding,
    RowLattice,
    exact_moment,
    exact_sum,
)
from tacit.row_clipping import clip_factors

# A value u and its square as 2 u^2 - 5/4: the weight, the shift, and the norm of both together.
WEIGHT = 2.0
SHIFT = 1.25
_LENGTH = 1.25


@dataclass(frozen=True)
class ColumnMoments:
    """The sums of k columns and of their squares and, if it is private, the number of records.

    Each value is scaled to u in [-1, 1] of its public interval, and adds u and 2 u^2 - 5/4:

        |(u, 2 u^2 - 5/4)|^2 = 25/16 - 4 u^2 (1 - u^2) <= 25/16

    A record of k columns thus has norm at most (5/4) sqrt(k), and at most sqrt(25 k / 16 + c^2)
    with a constant c that counts records. A value that is not finite counts as the middle of its
    interval. The total has k sums of u, k of 2 u^2 - 5/4 and, at its end, the count times c.

    Parameters
    ----------
    columns
        The indices of the columns.
    limits
        The public interval of each column; values outside are clipped to it.
    counts
        Whether records are counted.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.privacy import Relation
    >>> from tacit.queries.moments import ColumnMoments
    >>> from tacit.queries import Facts
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
        """Return the instances that `tacit.testing.check_query` tries."""
        three = (0, 1, 2), ((-0.5, 0.5), (-0.5, 0.5), (-0.4, 0.5))
        return cls(*three, counts=True), cls(*three, counts=False), cls((1,), ((0.0, 1.0),), True)

    def applies(self, facts: Facts) -> bool:
        """Return whether the columns exist; under REPLACE records are not counted."""
        is_counted = self.counts and facts.relation is Relation.REPLACE
        return max(self.columns) < facts.n_features and not is_counted

    @property
    def count_constant(self) -> float:
        """The constant c for the count that minimises the noise of variances; 0 without a count.

            sd of a variance = s sqrt(1 / 4 + (5/8)^2 / c^2) / n,   s = z sqrt(25 k / 16 + c^2)

        is least, (5/8) (sqrt(k) + 1) z / n, at c = (5/4) k^(1/4).
        """
        return _LENGTH * math.sqrt(math.sqrt(len(self.columns))) if self.counts else 0.0

    @property
    def _length(self) -> float:
        return math.hypot(_LENGTH * math.sqrt(len(self.columns)), self.count_constant)

    def sensitivity(self, facts: Facts) -> Sensitivity:
        """Return the norm of a record, twice that for REPLACE, plus the rounding."""
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
        # The relation affects the sensitivity only.
        return np.asarray(
            bounded_sum(np.hstack(parts), self._length, Norm.L2, facts.relation).value
        )

    def units(self, records: MemoryRecords) -> Array:
        """Return the columns scaled to [-1, 1] of their intervals. Private."""
        limits = np.array(self.limits)
        middle, half = limits.mean(axis=1), (limits[:, 1] - limits[:, 0]) / 2
        rows = np.asarray(records.rows, dtype=np.float64)[:, list(self.columns)]
        # Clip first: an overflow warning of the division would reveal a record.
        inside = np.clip(rows, limits[:, 0], limits[:, 1])
        return np.asarray(np.nan_to_num(np.clip((inside - middle) / half, -1.0, 1.0)))

    def contributors(self) -> tuple[Callable[..., Any], ...]:
        """Return the functions that scale a value, and clip and round a record."""
        return ColumnMoments.units, bounded_sum


_MOST_RECORDS = 2**31  # sums of more records may exceed 2^53 steps


@dataclass(frozen=True)
class PointSum:
    """The sum over records of x, or of the squares of its coordinates, ||x|| <= R.

    Each point is rounded to whole steps (`bounded_sum`). The sum of a block is a whole number of
    steps, and so is every sum of such sums. For up to 2^31 records it is below 2^53 steps: floats
    add it exactly, in any blocks.

    Parameters
    ----------
    squared
        Whether to sum squares. The vector of a point's squared coordinates has norm at most R^2,
        since sum x_j^4 <= (sum x_j^2)^2.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.privacy import Relation
    >>> from tacit.queries import Facts
    >>> from tacit.queries import PointSum
    >>> from tacit.records import Bounds, MemoryRecords
    >>> facts = Facts(Bounds(row_norm=1.0), 2, Relation.ADD_REMOVE)
    >>> records = MemoryRecords(np.array([[3.0, 4.0], [0.5, 0.0]]), None, facts.bounds)
    >>> np.round(PointSum().total(records, facts), 3)
    array([1.1, 0.8])
    """

    squared: bool = False

    @classmethod
    def tried(cls) -> tuple[PointSum, ...]:
        """Return the instances that `tacit.testing.check_query` tries."""
        return cls(), cls(squared=True)

    def sensitivity(self, facts: Facts) -> Sensitivity:
        """Return R, or R^2, plus the rounding; twice that under REPLACE."""
        norm = facts.bounds.total_norm
        nothing = _in_steps(np.empty((0, facts.n_coordinates)), norm, self.squared, facts)
        return Sensitivity(nothing.sensitivity, Norm.L2, "exact_sums.md#2-what-one-record-adds")

    def total(self, records: Private, facts: Facts) -> Array:
        """Return the sum. Private."""
        if records.count() > _MOST_RECORDS:
            raise ValueError("there are more than 2^31 records to add up exactly; fit on a part.")
        norm = records.bounds.total_norm
        if not self.squared and type(records) is MemoryRecords and not records.bounds.intercept:
            rows = records.rows
            if isinstance(rows, np.ndarray) and rows.dtype == np.float64:
                # `bounded_sum` clips rows by the same rule: clip once instead of twice.
                return np.asarray(_in_steps(rows, norm, squared=False).value)

        def of(block: Block) -> tuple[Array, ...]:
            return (np.asarray(_in_steps(block.points(), norm, self.squared).value),)

        return np.asarray(records.sum(of)[0])

    def contributors(self) -> tuple[Callable[..., Any], ...]:
        """Return the functions that clip and round a row."""
        return clip_factors, bounded_sum


def _in_steps(points: Array, norm: float, squared: bool, facts: Facts | None = None) -> Bounded:
    """Return the `bounded_sum` of points; its relation affects the sensitivity only."""
    relation = Relation.ADD_REMOVE if facts is None else facts.relation
    if squared:
        points, norm = points**2, norm**2
    return bounded_sum(points, norm, Norm.L2, relation, max_rows=_MOST_RECORDS)


_SECTION_1 = "sufficient_statistics.md#1-sensitivities"
# Part of the sensitivity for the rounding of an eigenvalue (sufficient_statistics.md, section 4).
_EIGENVALUE_SLACK = 1e-4


def pack(matrix: Array) -> Array:
    """Return a symmetric matrix as a vector of the same norm.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.queries.moments import pack
    >>> pack(np.array([[3.0, 1.0], [1.0, 2.0]])).round(3)
    array([3.   , 2.   , 1.414])
    """
    upper = np.triu_indices(matrix.shape[0], 1)
    return np.concatenate([np.diag(matrix), math.sqrt(2.0) * matrix[upper]])


def unpack(vector: Array, d: int) -> Array:
    """Return the symmetric matrix that `pack` packed."""
    matrix = np.diag(vector[:d])
    upper = np.triu_indices(d, 1)
    matrix[upper] = vector[d:] / math.sqrt(2.0)
    return matrix + np.triu(matrix, 1).T


@dataclass(frozen=True)
class SecondMoment:
    """The sum of a x x' over rows x with their intercept, ||x|| <= R, and weights a in [0, 1].

    As a vector of equal norm (`pack`); an intercept is a coordinate of the rows.

        ||x x'||_F = R^2;   ||x x' - y y'||_F^2 = |x|^4 + |y|^4 - 2 <x, y>^2 <= 2 R^4

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.privacy import Relation
    >>> from tacit.queries import Facts
    >>> from tacit.queries import SecondMoment
    >>> from tacit.records import Bounds, MemoryRecords
    >>> facts = Facts(Bounds(row_norm=10.0), 2, Relation.ADD_REMOVE)
    >>> records = MemoryRecords(np.array([[3.0, 4.0]]), None, facts.bounds)
    >>> SecondMoment().total(records, facts).round(3)
    array([ 9.   , 16.   , 16.971])
    """

    def sensitivity(self, facts: Facts) -> Sensitivity:
        """Return R^2, or sqrt(2) R^2 under REPLACE, plus the rounding."""
        two = math.sqrt(2.0) if facts.relation is Relation.REPLACE else 1.0
        value = two * facts.bounds.total_norm**2 * (1 + MOMENT_SLACK)
        return Sensitivity(value, Norm.L2, _SECTION_1)

    def total(self, records: Private, facts: Facts) -> Array:
        """Return the packed matrix. Private."""
        return pack(total_of(records, self, facts))

    def held(self, records: Private, facts: Facts) -> Array:
        """Return the matrix itself, of which several questions may be asked. Private."""
        return np.asarray(exact_moment(records))

    def contributors(self) -> tuple[Callable[..., Any], ...]:
        """Return the functions that clip a row and sum products."""
        return clip_factors, exact_moment


@dataclass(frozen=True)
class LeastEigenvalue:
    """The least eigenvalue of `SecondMoment`, or 0 if rounding makes it negative."""

    def sensitivity(self, facts: Facts) -> Sensitivity:
        """Return R^2 under either relation (Weyl), plus the rounding."""
        value = facts.bounds.total_norm**2 * (1 + _EIGENVALUE_SLACK)
        return Sensitivity(value, Norm.L2, _SECTION_1)

    def total(self, records: Private, facts: Facts) -> float:
        """Return the eigenvalue. Private."""
        return max(float(np.linalg.eigvalsh(total_of(records, SecondMoment(), facts))[0]), 0.0)

    def contributors(self) -> tuple[Callable[..., Any], ...]:
        """Return the functions that clip a row and sum products."""
        return clip_factors, exact_moment


class HasLabels(Protocol):
    """An object that maps the labels of a block to numbers: a loss."""

    def labels(self, block: Block | LatticeBlock) -> Array:
        """Return one number per record, within the label bound."""


@dataclass(frozen=True)
class LabelMoment:
    """The sum of a y x over rows x with their intercept, ||x|| <= R, labels |y| <= Y and weights a.

    Parameters
    ----------
    loss
        A loss, which maps labels to numbers.
    """

    loss: HasLabels

    @classmethod
    def tried(cls) -> tuple[LabelMoment, ...]:
        """Return the instances that `tacit.testing.check_query` tries."""
        return (cls(_AsTheyAre()),)

    def applies(self, facts: Facts) -> bool:
        """Return whether there are labels."""
        return facts.bounds.label_range is not None

    def sensitivity(self, facts: Facts) -> Sensitivity:
        """Return R Y, twice that under REPLACE, plus the rounding."""
        bounds = facts.bounds
        slack = (1 + _rounding(facts.bounds.n_records).slack) * (1 + 2.0**-50)  # R is rounded
        value = facts.n_changed * bounds.total_norm * bounds.label_bound * slack
        return Sensitivity(value, Norm.L2, _SECTION_1)

    def total(self, records: Private, facts: Facts) -> Array:
        """Return the sum. Private."""
        rows = RowLattice(records.bounds, records.bounds.label_bound)

        def whole(block: LatticeBlock) -> Array:
            return rows.whole_sum(block, block.weighed(self.loss.labels(block)))

        total = exact_sum(records, whole, _rounding(records.bounds.n_records), keep=False)
        return total * rows.units(total.shape)

    def contributors(self) -> tuple[Callable[..., Any], ...]:
        """Return the functions that clip a row, and bound a record's term by R Y."""
        return clip_factors, RowLattice.whole_sum


@dataclass(frozen=True)
class _AsTheyAre:
    """Labels that already are numbers within their range."""

    def labels(self, block: Block | LatticeBlock) -> Array:
        assert block.labels is not None
        return block.labels


def _rounding(n_records: int | None) -> Rounding:
    return Rounding(TERM_BITS, n_records)
