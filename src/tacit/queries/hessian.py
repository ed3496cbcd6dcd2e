"""Sum second derivatives and squared gradients: matrices, their trace, and their norms.

    H = sum d2 x x'      the Hessian at given weights
    M = sum d1^2 x x'    the squared gradients

A record adds c x x' with 0 <= c <= C and ||x|| <= R, and optionally c itself
(docs/proofs/inference.md, section 1). Sums are in double precision; sensitivities include the float
error.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from tacit.noise import Norm
from tacit.privacy import Relation
from tacit.queries.base import Array, Facts, Private, Sensitivity
from tacit.queries.moments import pack
from tacit.records import Block, RecordSource
from tacit.records.block import needs_fine_sums
from tacit.records.exact.lattice import LatticeBlock, exact_totals
from tacit.row_clipping import clip_factors

# Part of the sensitivity for the float error of a sum.
_FLOAT_SLACK = 1e-4
# Weight of the sum of c relative to the sum of c x x', in units of R^2.
_TOTAL_WEIGHT = 0.5
# Candidate clipping norms, as shares of the greatest: 1, 1/sqrt(2), ..., 1/64.
_SHARES = 2.0 ** (-np.arange(13) / 2)
_INFERENCE = "inference.md#1-privacy"


class Coefficients(Protocol):
    """A number c of each record, between 0 and ``greatest``, such as a second derivative."""

    @property
    def greatest(self) -> float:
        """C, the clip of c."""

    def of(self, block: Block) -> Array:
        """Return c of every record of a block."""


@dataclass(frozen=True, eq=False)
class SecondDerivatives:
    """d2 of each record's loss at given weights; 0 if its d1 is clipped."""

    loss: Any
    weights: Array
    slope_limit: float

    @property
    def greatest(self) -> float:
        """A value that second derivatives rarely exceed; they are clipped to it."""
        return float(self.loss.usual_second_derivative)

    def of(self, block: Block) -> Array:
        """Return d2 of every record."""
        return np.asarray(
            self.loss.clipped_second_derivative(block, self.weights, self.slope_limit)
        )


@dataclass(frozen=True, eq=False)
class SquaredSlopes:
    """d1^2 of each record's loss at given weights, with d1 clipped to ``limit``."""

    loss: Any
    weights: Array
    limit: float

    @property
    def greatest(self) -> float:
        """The square of the limit."""
        return self.limit**2

    def of(self, block: Block) -> Array:
        """Return d1^2 of every record."""
        return np.asarray(self.loss.squared_slopes(block, self.weights, self.limit))


@dataclass(frozen=True, eq=False)
class _OfCoefficients:
    """The common part of sums over records of c x x', c, or their norms."""

    coefficients: Coefficients
    row_norm: float
    has_matrix: bool = True
    has_total: bool = True

    def applies(self, facts: Facts) -> bool:
        """Return whether there are labels and rows of this norm."""
        bounds = facts.bounds
        has_labels = bounds.label_range is not None or bounds.n_classes == 2
        return has_labels and bounds.total_norm == self.row_norm

    def contributors(self) -> tuple[Callable[..., Any], ...]:
        """Return the functions that clip rows, and compute and bound c."""
        return clip_factors, type(self.coefficients).of


@dataclass(frozen=True, eq=False)
class OuterProducts(_OfCoefficients):
    """Sums of c x x' and of c over the records, with 0 <= c <= C and ||x|| <= R, as one vector.

    A record with c ||x||^2 above ``most``, if given, is scaled down to it. The vector is the packed
    matrix, followed by (R^2 / 2) times the sum of c.

    Parameters
    ----------
    coefficients
        c.
    row_norm
        R.
    has_matrix, has_total
        Which of the two sums are computed; an omitted matrix has length 0, an omitted sum is 0.
    most
        The clipping norm of c x x'.
    """

    most: float = math.inf

    @classmethod
    def tried_on(cls, objectives: Sequence[Any]) -> tuple[OuterProducts, ...]:
        """Return the instances that `tacit.testing.check_query` tries."""
        found = []
        for one in objectives:
            if one.is_linear_model and one.n_outputs == 1:
                ones, norm = np.ones(one.shape(3)), one.row_norm
                # d2 is largest near score 0, and |d1| far from it
                turns = SecondDerivatives(one.loss, 0.3 * ones, one.loss.lipschitz)
                squares = SquaredSlopes(one.loss, 3.0 * ones, one.loss.lipschitz)
                whole, part = cls(squares, norm), 0.1 * turns.greatest * norm**2
                clipped = cls(squares, norm, most=0.5 * whole.largest)
                alone = cls(turns, norm, has_total=False, most=part)
                found += [cls(turns, norm), whole, clipped, alone]
        return tuple(found)

    @property
    def largest(self) -> float:
        """The greatest norm of a record's matrix."""
        return min(self.coefficients.greatest * self.row_norm**2, self.most)

    @property
    def total_weight(self) -> float:
        """The weight of the sum of c in the vector."""
        return _TOTAL_WEIGHT * self.row_norm**2 * self.has_total

    def sensitivity(self, facts: Facts) -> Sensitivity:
        """Return sqrt(largest^2 + (a C R^2)^2), plus the float error."""
        size = self.largest * self.has_matrix
        length = math.hypot(size, self.total_weight * self.coefficients.greatest)
        return Sensitivity(_between_acute(length, facts), Norm.L2, _INFERENCE)

    def total(self, records: Private, facts: Facts) -> Array:
        """Return the vector. Private."""
        matrix, total = self.sums(records, needs_fine_sums(records, _FLOAT_SLACK))
        return np.append(pack(matrix), self.total_weight * total)

    def sums(self, records: RecordSource, fine: bool = False) -> tuple[Array, float]:
        """Return both sums without noise. Private."""

        def of(block: Block) -> tuple[Array, Array]:
            c, norms = _sizes(self.coefficients, block)
            if math.isfinite(self.most):
                c = c * np.minimum(1.0, self.most / np.maximum(norms, 1e-300))
            return block.gram(c) if self.has_matrix else np.zeros((0, 0)), np.array(c.sum())

        matrix, total = records.sum(of, fine=fine)
        return matrix, float(total)


@dataclass(frozen=True, eq=False)
class ClippedNorms(_OfCoefficients):
    """The norms of c x x' at several clipping norms, and the sum of c, as one vector.

    A record adds (min(q, limit_0), min(q, limit_1), ..., R^2 c) with q = c ||x||^2. The entries are
    at most C R^2 times 1, 1/sqrt(2), ..., and C R^2.

    Parameters
    ----------
    coefficients, row_norm, has_matrix, has_total
        As in `OuterProducts`.
    """

    @classmethod
    def tried_on(cls, objectives: Sequence[Any]) -> tuple[ClippedNorms, ...]:
        """Return the instances that `tacit.testing.check_query` tries."""
        return tuple(
            cls(one.coefficients, one.row_norm)
            for one in OuterProducts.tried_on(objectives)
            if math.isinf(one.most)
        )

    @property
    def limits(self) -> Array:
        """The clipping norms in descending order; empty without a matrix."""
        largest = self.coefficients.greatest * self.row_norm**2
        limits: Array = largest * _SHARES[: _SHARES.size * self.has_matrix]
        return limits

    @property
    def total_weight(self) -> float:
        """The weight of the sum of c in the vector."""
        return self.row_norm**2 * self.has_total

    def sensitivity(self, facts: Facts) -> Sensitivity:
        """Return the norm of all limits and C R^2, plus the float error."""
        of_total = self.total_weight * self.coefficients.greatest
        length = math.hypot(float(np.linalg.norm(self.limits)), of_total)
        return Sensitivity(_between_acute(length, facts), Norm.L2, _INFERENCE)

    def total(self, records: Private, facts: Facts) -> Array:
        """Return the vector. Private."""
        limits, scale = self.limits, self.total_weight

        def of(block: Block) -> tuple[Array]:
            c, norms = _sizes(self.coefficients, block)
            clipped_sums = [np.minimum(norms, limit).sum() for limit in limits]
            return (np.array([*clipped_sums, scale * c.sum()]),)

        (vector,) = records.sum(of, fine=needs_fine_sums(records, _FLOAT_SLACK))
        return np.asarray(vector)


@dataclass(frozen=True, eq=False)
class HessianTrace:
    """The trace of the Hessian at given weights, without the intercept.

    A record adds from 0 to T r^2, with T the greatest trace of its Hessian in its scores. The sum
    is on a lattice, without float error.
    """

    objective: Any
    weights: Array

    @classmethod
    def tried_on(cls, objectives: Sequence[Any]) -> tuple[HessianTrace, ...]:
        """Return the instances that `tacit.testing.check_query` tries."""
        some = (one for one in objectives if one.is_linear_model)
        return tuple(cls(one, 0.3 * np.ones(one.shape(3))) for one in some)

    @property
    def greatest(self) -> float:
        """T r^2."""
        loss, bounds = self.objective.loss, self.objective.bounds
        return float(loss.hessian_trace * bounds.row_norm**2)

    def sensitivity(self, facts: Facts) -> Sensitivity:
        """Return T r^2 under either relation, since terms are not negative."""
        proof = "objective_perturbation.md#13-parameters-adapted-to-the-noisy-count"
        return Sensitivity(self.greatest, Norm.L2, proof)

    def total(self, records: Private, facts: Facts) -> float:
        """Return the trace. Private."""
        loss = self.objective.loss

        def of(block: LatticeBlock) -> Array:
            return np.asarray(
                block.weighed(loss.hessian_trace_per_record(block, self.weights))
                * block.squared_norms()
            )

        return float(exact_totals(records, of, self.greatest))

    def contributors(self) -> tuple[Callable[..., Any], ...]:
        """Return the functions that clip rows, and clip each term to its range."""
        return clip_factors, exact_totals


def _sizes(coefficients: Coefficients, block: Block) -> tuple[Array, Array]:
    """Return c, and the norm of c x x', of each record."""
    c = coefficients.of(block)
    return c, c * (block.squared_norms() + block.intercept**2)


def _between_acute(length: float, facts: Facts) -> float:
    """Return the sensitivity of a sum of vectors of at most this norm, no two at an obtuse angle.

    An added record adds a vector v; a replacement adds u - v. Since u and v make no obtuse angle,
    ||u - v|| is at most sqrt(2) times the norm.
    """
    two = math.sqrt(2.0) if facts.relation is Relation.REPLACE else 1.0
    return two * length * (1 + _FLOAT_SLACK)
