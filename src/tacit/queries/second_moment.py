"""Second moments of rows: X'X, its least eigenvalue, and X'y."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from tacit.noise import Norm
from tacit.privacy import Relation
from tacit.queries.base import Array, Facts, Private, Sensitivity, total_of
from tacit.records import Block, RecordSource
from tacit.records.exact_moments import MOMENT_SLACK, exact_moment
from tacit.records.exact_rows import TERM_BITS, RowLattice
from tacit.records.exact_sums import Rounding, exact_sum
from tacit.records.lattice_block import LatticeBlock
from tacit.row_clipping import clip_factors

_SECTION_1 = "sufficient_statistics.md#1-sensitivities"
# Charged for the rounding of an eigenvalue (sufficient_statistics.md, section 4).
_EIGENVALUE_SLACK = 1e-4


def pack(matrix: Array) -> Array:
    """Return a symmetric matrix as a vector of the same norm.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.queries.second_moment import pack
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


def _matrix(records: Private) -> Array:
    return np.asarray(total_of(records, exact_moment))


@dataclass(frozen=True)
class SecondMoment:
    """The sum of a x x' over rows x with their intercept, ||x|| <= R, and weights a in [0, 1].

    As a vector of the matrix' norm (`pack`); an intercept is a coordinate of the rows.

        ||x x'||_F = R^2;   ||x x' - y y'||_F^2 = |x|^4 + |y|^4 - 2 <x, y>^2 <= 2 R^4

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.privacy import Relation
    >>> from tacit.queries import Facts, SecondMoment
    >>> from tacit.records import Bounds, MemoryRecords
    >>> facts = Facts(Bounds(row_norm=10.0), 2, Relation.ADD_REMOVE)
    >>> records = MemoryRecords(np.array([[3.0, 4.0]]), None, facts.bounds)
    >>> SecondMoment().total(records, facts).round(3)
    array([ 9.   , 16.   , 16.971])
    """

    def sensitivity(self, facts: Facts) -> Sensitivity:
        """Return R^2, or sqrt(2) R^2 where a record is replaced, and what rounding adds."""
        two = math.sqrt(2.0) if facts.relation is Relation.REPLACE else 1.0
        value = two * facts.bounds.total_norm**2 * (1 + MOMENT_SLACK)
        return Sensitivity(value, Norm.L2, _SECTION_1)

    def total(self, records: Private, facts: Facts) -> Array:
        """Return the packed matrix. Private."""
        return pack(_matrix(records))

    def held(self, records: Private, facts: Facts) -> Array:
        """Return the matrix itself, of which several questions may be asked. Private."""
        return _matrix(records)

    def contributors(self) -> tuple[Callable[..., Any], ...]:
        """Return what clips a row and what adds up products."""
        return clip_factors, exact_moment


@dataclass(frozen=True)
class LeastEigenvalue:
    """The least eigenvalue of `SecondMoment`, or 0 if rounding makes it negative."""

    def sensitivity(self, facts: Facts) -> Sensitivity:
        """Return R^2, under either relation (Weyl), and what rounding adds."""
        value = facts.bounds.total_norm**2 * (1 + _EIGENVALUE_SLACK)
        return Sensitivity(value, Norm.L2, _SECTION_1)

    def total(self, records: Private, facts: Facts) -> float:
        """Return the eigenvalue. Private."""
        return max(float(np.linalg.eigvalsh(_matrix(records))[0]), 0.0)

    def contributors(self) -> tuple[Callable[..., Any], ...]:
        """Return what clips a row and what adds up products."""
        return clip_factors, exact_moment


class HasLabels(Protocol):
    """What says which numbers the labels of a block are: a loss."""

    def labels(self, block: Block | LatticeBlock) -> Array:
        """Return one number a record, within the bounds of labels."""


@dataclass(frozen=True)
class LabelMoment:
    """The sum of a y x over rows x with their intercept, ||x|| <= R, labels |y| <= Y and weights a.

    Parameters
    ----------
    loss
        Says which numbers labels are.
    """

    loss: HasLabels

    @classmethod
    def tried(cls) -> tuple[LabelMoment, ...]:
        """Return the ones that `tacit.testing.check_query` tries."""
        return (cls(_AsTheyAre()),)

    def applies(self, facts: Facts) -> bool:
        """Return whether there are labels."""
        return facts.bounds.label_range is not None

    def sensitivity(self, facts: Facts) -> Sensitivity:
        """Return R Y, twice that where a record is replaced, and what rounding adds."""
        bounds = facts.bounds
        slack = (1 + _rounding(facts.bounds.n_records).slack) * (1 + 2.0**-50)  # R is rounded
        value = facts.n_changed * bounds.total_norm * bounds.label_bound * slack
        return Sensitivity(value, Norm.L2, _SECTION_1)

    def total(self, records: Private, facts: Facts) -> Array:
        """Return the sum. Private."""
        return np.asarray(total_of(records, self._sum))

    def _sum(self, records: RecordSource) -> Array:
        rows = RowLattice(records.bounds, records.bounds.label_bound)

        def whole(block: LatticeBlock) -> Array:
            return rows.whole_sum(block, block.weighed(self.loss.labels(block)))

        total = exact_sum(records, whole, _rounding(records.bounds.n_records), keep=False)
        return total * rows.units(total.shape)

    def contributors(self) -> tuple[Callable[..., Any], ...]:
        """Return what clips a row, and what holds a record's term to R Y."""
        return clip_factors, RowLattice.whole_sum


@dataclass(frozen=True)
class _AsTheyAre:
    """Labels that are numbers within their range already."""

    def labels(self, block: Block | LatticeBlock) -> Array:
        assert block.labels is not None
        return block.labels


def _rounding(n_records: int | None) -> Rounding:
    return Rounding(TERM_BITS, n_records)
