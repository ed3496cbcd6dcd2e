"""Sum clipped gradients, in the original coordinates or in those of a preconditioner.

In the original coordinates sums are on a public lattice, without float error, in any order of
addition. A record's gradient is a x, its derivative a = d1 times its row x. Rows are in whole steps
(`records`). Derivatives are too, with 18 bits below the clip, and every sum of their products is
exact (docs/proofs/exact_sums.md). Gradients of points, and sums over a person's records, are
rounded towards zero as vectors.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from tacit.noise import Norm, Source
from tacit.queries.base import Array, Facts, Private, Sensitivity
from tacit.records import Block, Bounds, MemoryRecords, RecordSource
from tacit.records.block import Coordinates, measured, needs_fine_sums
from tacit.records.exact.lattice import (
    TERM_BITS,
    LatticeBlock,
    Rounding,
    RowLattice,
    check_few_rows,
    check_not_too_many,
    exact_sum,
    power_above,
    split,
)
from tacit.records.grouped import clipped_by_person
from tacit.row_clipping import clip_factors, clipped_rows

_UNIT = 2.0**-53  # u, the unit roundoff of doubles
# Bound on the rounding of a product with A, for two neighbours together, in units of the clip.
_PRODUCT_ROUNDING = 2.5e-5
# Part of the sensitivity for the float error of a sum in preconditioned coordinates.
FLOAT_SLACK = 1e-4
# Total slack in preconditioned coordinates, in which clips may be far below the gradients. Most of
# it covers the rounding of shared records' scores (docs/proofs/noisy_gradient.md, section 7).
_PRECONDITIONED_SLACK = 1e-3


class Differentiable(Protocol):
    """An objective whose records have gradients, with the constants that proofs need."""

    @property
    def loss(self) -> Any:
        """The loss: it sums clipped gradients, and declares the event of a perturbation."""

    @property
    def bounds(self) -> Bounds:
        """The declared bounds of every record."""

    @property
    def row_norm(self) -> float:
        """R: the greatest norm of a row with its intercept coordinate."""

    @property
    def n_outputs(self) -> int:
        """The number of scores per record."""

    @property
    def is_linear_model(self) -> bool:
        """Whether the loss is a function of <w, x>, so that gradients are multiples of rows."""

    @property
    def lipschitz(self) -> float:
        """L: the greatest norm of one record's gradient."""

    @property
    def smoothness(self) -> float:
        """beta: the greatest norm of one record's Hessian."""

    @property
    def hessian_trace(self) -> float:
        """The greatest trace of one record's Hessian."""

    @property
    def regularization(self) -> float | None:
        """Lam of (lam / 2) ||w||^2, in SUM form."""

    def gradient(self, block: Block, weights: Array, clip: float = math.inf) -> Array:
        """Return the sum over a block of the records' gradients."""


@dataclass(frozen=True, eq=False)
class Gradient:
    """The sum of records' gradients, each clipped to a norm, at given weights.

    Parameters
    ----------
    objective
        The objective.
    clip
        C: the clipping norm of a record's gradient; under ADD_REMOVE_PERSON, of a person's.
    n_records
        The approximate number of records, from public facts or a release. Sums of more than 2^18
        records are rounded once, at the end, and the sensitivity includes this rounding.
    weights
        The point at which gradients are taken.

    Notes
    -----
    **Guarantee** (docs/proofs/exact_sums.md)

    1. The sum is equal, to the last bit, for any order and any blocks of the records.
    2. It moves by at most the sensitivity between neighbours, in real numbers: C, or 2 C under
       REPLACE, times 1 + 2^-21 if it is rounded.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.erm import Objective
    >>> from tacit.erm.losses import LogisticLoss
    >>> from tacit.privacy import Relation
    >>> from tacit.queries import Facts, Gradient
    >>> from tacit.records import Bounds, MemoryRecords
    >>> bounds = Bounds(row_norm=1.0)
    >>> gradient = Gradient(Objective(LogisticLoss(), bounds), 1.0, 100, np.zeros(2))
    >>> records = MemoryRecords(np.array([[0.5, 0.25]]), np.array([1.0]), bounds)
    >>> facts = Facts(bounds, 2, Relation.ADD_REMOVE)
    >>> gradient.total(records, facts), gradient.sensitivity(facts).value
    (array([-0.25 , -0.125]), 1.0)
    """

    objective: Differentiable
    clip: float
    n_records: float
    weights: Array

    @classmethod
    def tried_on(cls, objectives: Sequence[Any]) -> tuple[Gradient, ...]:
        """Return the instances that `tacit.testing.check_query` tries."""
        return tuple(
            cls(one, 0.5 * min(one.lipschitz, one.row_norm), 100.0, 0.3 * np.ones(one.shape(3)))
            for one in objectives
        )

    def sensitivity(self, facts: Facts) -> Sensitivity:
        """Return C, or 2 C, plus the rounding of a large sum.

        By default C is the largest norm of a record's gradient, the Lipschitz constant of the loss
        times the row norm R: for the logistic loss, whose derivative is below 1, C = R.
        """
        value = facts.n_changed * self.clip * (1 + self._rounding.slack)
        return Sensitivity(value, Norm.L2, "noisy_gradient.md#2-clipping")

    def total(self, records: Private, facts: Facts) -> Array:
        """Return the sum. Private."""
        # Unit-level records are grouped, unless each unit was reduced to one record.
        of_people = facts.relation.by_person and type(records) is not MemoryRecords
        if of_people or not self.objective.is_linear_model:
            return self._sum_of_vectors(records)
        return self._sum_of_slopes(records)

    def contributors(self) -> tuple[Callable[..., Any], ...]:
        """Return the functions that clip rows and gradients, and bound a record's term."""
        loss = self.objective.loss
        in_steps = (loss.sum_in_steps,) if self.objective.is_linear_model else ()
        return clip_factors, clipped_rows, RowLattice.whole_sum, *in_steps, loss.vectors

    @property
    def _rounding(self) -> Rounding:
        return Rounding(TERM_BITS, self.n_records)

    @property
    def _rows(self) -> RowLattice:
        """Lattice of derivatives up to C / R, rounded down by more than the error of C / R."""
        limit = self.clip / self.objective.row_norm * (1 - 2.0**-50)
        return RowLattice(self.objective.bounds, limit)

    def _sum_of_slopes(self, records: RecordSource) -> Array:
        """Return sum_i a_i x_i, with derivatives and rows on lattices of their own."""
        rows, loss = self._rows, self.objective.loss

        def whole(block: LatticeBlock) -> Array:
            return np.asarray(loss.sum_in_steps(block, self.weights, rows))

        total = exact_sum(records, whole, self._rounding, n_outputs=self.objective.n_outputs)
        return total * rows.units(self.weights.shape)

    def _sum_of_vectors(self, records: RecordSource) -> Array:
        """Return the sum of gradients per record, or per person."""
        check_not_too_many(records, self._rounding)
        unit = math.ldexp(1.0, power_above(self.clip) - TERM_BITS)
        loss, bounds = self.objective.loss, self.objective.bounds

        def parts(block: Block) -> tuple[Array, Array]:
            vectors = loss.vectors(block, self.weights, bounds, self.clip)
            check_few_rows(len(vectors))
            flat = clipped_rows(vectors.reshape(len(vectors), self.weights.size), self.clip)
            return split(np.trunc(flat / unit).sum(axis=0).reshape(self.weights.shape))

        high, low = records.sum(parts)
        return self._rounding.joined((high, low)) * unit


@dataclass(frozen=True, eq=False)
class PreconditionedGradient:
    """The sum of gradients in coordinates A x, each clipped to a norm in these coordinates.

    Sums are in double precision; the sensitivity includes a bound on the rounding
    (docs/proofs/noisy_gradient.md, section 7).

    Parameters
    ----------
    objective
        The objective, in the original coordinates.
    coordinates
        A, symmetric with eigenvalues in (0, 1].
    shrinks
        The least eigenvalue of A: ||x|| <= ||A x|| / shrinks for every vector x.
    clip
        C: the clipping norm of a record's or person's gradient, in these coordinates.
    weights
        The point v at which gradients are taken, in these coordinates: w = A v.
    """

    objective: Differentiable
    coordinates: Coordinates
    shrinks: float
    clip: float
    weights: Array

    @classmethod
    def tried_on(cls, objectives: Sequence[Any]) -> tuple[PreconditionedGradient, ...]:
        """Return the instances that `tacit.testing.check_query` tries."""
        found = []
        for one in objectives:
            if one.is_linear_model:
                shape = one.shape(3)
                preconditioned = Coordinates(np.diag(np.linspace(0.2, 1.0, shape[0])))
                clip = 0.1 * min(one.lipschitz, one.row_norm)
                found.append(cls(one, preconditioned, 0.2, clip, 0.3 * np.ones(shape)))
        return tuple(found)

    def sensitivity(self, facts: Facts) -> Sensitivity:
        """Return C, or 2 C, plus the rounding."""
        value = facts.n_changed * self.clip * (1 + _PRECONDITIONED_SLACK)
        return Sensitivity(value, Norm.L2, "noisy_gradient.md#7-the-preconditioner")

    def total(self, records: Private, facts: Facts) -> Array:
        """Return the sum, in these coordinates. Private."""
        self._check_rounding(records)
        # A gradient of norm C in these coordinates has norm at most C / shrinks in the original
        # ones.
        fine = needs_fine_sums(records, FLOAT_SLACK * self.shrinks / 2)
        loss, bounds = self.objective.loss, self.objective.bounds
        preconditioned, weights = self.coordinates, self.coordinates.of(self.weights)

        def gradient(block: Block) -> tuple[Array]:
            return (loss.gradient_clipped_in(preconditioned, block, weights, bounds, self.clip),)

        (value,) = records.sum(gradient, fine=fine)
        return preconditioned.of(value)

    def _check_rounding(self, records: RecordSource) -> None:
        """Refuse so many records that rounding in A g, g their sum, could exceed its slack."""
        matrix = self.coordinates.matrix
        widest = float(np.abs(matrix).sum(axis=1).max())
        if rounds_too_much(len(matrix), records.count(), widest / self.shrinks):
            raise ValueError(
                "there are too many records for a product in double precision to stay within its "
                "sensitivity; leave the preconditioner out, or fit on a sample."
            )

    def contributors(self) -> tuple[Callable[..., Any], ...]:
        """Return the functions that clip rows and gradients."""
        return clip_factors, clipped_by_person, self.objective.loss.gradient_clipped_in


def rounds_too_much(width: int, n_records: float, stretch: float) -> bool:
    """Return whether d u n ||A|| / (least eigenvalue of A) exceeds its slack (proof, section 7)."""
    return 2 * width * _UNIT * stretch * n_records > _PRODUCT_ROUNDING


@dataclass(frozen=True, eq=False)
class Measured:
    """A view that computes the records' norms in other coordinates once."""

    coordinates: Coordinates

    def apply(self, records: Private, facts: Facts, source: Source) -> tuple[Private, Facts]:
        """Return records with precomputed norms; grouped records have none."""
        if facts.relation.by_person:
            return records, facts
        return measured(records, self.coordinates), facts
