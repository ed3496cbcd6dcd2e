"""Sums of clipped gradients on a public lattice: no float error, whatever adds them up.

A record's gradient is a x, its slope a times its row x. Rows are in whole steps (`records`); so are
slopes, of 18 bits below the clip, and every sum of their products is exact
(docs/proofs/exact_sums.md). Gradients of points, and what a person's records add up to, are rounded
towards zero as vectors.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tacit.erm.objective import Objective, moved
from tacit.noise import Bounded, Norm
from tacit.privacy import Relation
from tacit.records import Block, MemoryRecords, RecordSource
from tacit.records.exact_rows import TERM_BITS, RowLattice
from tacit.records.exact_sums import Rounding, check_not_too_many, exact_sum, split
from tacit.records.lattice_block import LatticeBlock, check_few_rows
from tacit.records.lattice_rows import power_above
from tacit.row_clipping import clipped_rows

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class ExactGradient:
    """The sum of records' gradients, each clipped to a norm, at any weights.

    Parameters
    ----------
    objective
        Whose gradients.
    shape
        Of the weights.
    clip
        C: no record's gradient, or under ADD_REMOVE_PERSON person's, is longer.
    relation
        Which data sets are neighbours.
    n_records
        About how many records there are, from public facts or a release: sums of more than 2^18
        are rounded once, at the end, and charged for it.

    Notes
    -----
    **Guarantee** (docs/proofs/exact_sums.md)

    1. The sum is the same, to the last bit, for any order and any blocks of the records.
    2. It moves by at most the sensitivity between neighbours, in real numbers: C, or 2 C under
       REPLACE, times 1 + 2^-21 where it is rounded.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.erm import Objective
    >>> from tacit.erm.exact_gradient import ExactGradient
    >>> from tacit.erm.losses import LogisticLoss
    >>> from tacit.privacy import Relation
    >>> from tacit.records import Bounds, MemoryRecords
    >>> bounds = Bounds(row_norm=1.0)
    >>> gradient = ExactGradient(
    ...     Objective(LogisticLoss(), bounds), (2,), 1.0, Relation.ADD_REMOVE, 100
    ... )
    >>> records = MemoryRecords(np.array([[0.5, 0.25]]), np.array([1.0]), bounds)
    >>> total = gradient(records, np.zeros(2))
    >>> total.value, total.sensitivity
    (array([-0.25 , -0.125]), 1.0)
    """

    objective: Objective
    shape: tuple[int, ...]
    clip: float
    relation: Relation
    n_records: float

    def __call__(self, records: RecordSource, weights: Array) -> Bounded:
        """Return the sum at some weights, with its sensitivity."""
        # Of people there are blocks that know them, or one record each, in memory.
        of_people = self.relation.by_person and type(records) is not MemoryRecords
        if of_people or not self.objective.is_linear_model:
            value = self._sum_of_vectors(records, weights)
        else:
            value = self._sum_of_slopes(records, weights)
        return Bounded(value, self.sensitivity, Norm.L2, self.relation)

    @property
    def sensitivity(self) -> float:
        """C, or 2 C; a little more where a sum is rounded."""
        return moved(self.relation) * self.clip * (1 + self._rounding.slack)

    @property
    def _rounding(self) -> Rounding:
        return Rounding(TERM_BITS, self.n_records)

    @property
    def _rows(self) -> RowLattice:
        """Slopes up to C / R, rounded down by more than the rounding of R and of the quotient."""
        limit = self.clip / self.objective.row_norm * (1 - 2.0**-50)
        return RowLattice(self.objective.bounds, limit)

    def _sum_of_slopes(self, records: RecordSource, weights: Array) -> Array:
        """Return sum_i a_i x_i, the slopes and the rows on lattices of their own."""
        rows, loss = self._rows, self.objective.loss

        def whole(block: LatticeBlock) -> Array:
            return loss.sum_in_steps(block, weights, rows)

        total = exact_sum(records, whole, self._rounding, n_outputs=self.objective.n_outputs)
        return total * rows.units(self.shape)

    def _sum_of_vectors(self, records: RecordSource, weights: Array) -> Array:
        """Return the sum of gradients, of each record or of each person's."""
        check_not_too_many(records, self._rounding)
        unit = math.ldexp(1.0, power_above(self.clip) - TERM_BITS)
        loss, bounds = self.objective.loss, self.objective.bounds

        def parts(block: Block) -> tuple[Array, Array]:
            vectors = loss.vectors(block, weights, bounds, self.clip)
            check_few_rows(len(vectors))
            flat = clipped_rows(vectors.reshape(len(vectors), -1), self.clip)
            return split(np.trunc(flat / unit).sum(axis=0).reshape(self.shape))

        high, low = records.sum(parts)
        return self._rounding.joined((high, low)) * unit
