"""Sums of positive matrices, one a record, with noise: the Hessian and the squared gradients.

    H = sum d2 x x'      M = sum d1^2 x x'

A record adds c x x' with 0 <= c <= C and ||x|| <= R, and where asked c itself besides
(docs/proofs/inference.md, section 1).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tacit.erm.laws import Law
from tacit.erm.standard_errors import Noisy, Total
from tacit.noise import Bounded, Norm, Source, gaussian
from tacit.privacy import Event, Gaussian, Relation
from tacit.queries.second_moment import pack, unpack
from tacit.records import Block, RecordSource
from tacit.records.summing import needs_fine_sums

Array = npt.NDArray[np.float64]

_FLOAT_SLACK = 1e-4
# What a sum of c counts beside one of c x x', in units of R^2.
_TOTAL_WEIGHT = 0.5


@dataclass(frozen=True)
class Statistic:
    """Sums of c x x' and of c over the records, with 0 <= c <= greatest and ||x|| <= R.

    A record whose c ||x||^2 is above ``most``, if that is given, counts as one that is as long.
    """

    coefficients: Callable[[Block], Array]
    greatest: float
    row_norm: float
    has_matrix: bool
    has_total: bool
    most: float = math.inf

    @property
    def largest(self) -> float:
        """The greatest norm of the matrix that a record adds."""
        return min(self.greatest * self.row_norm**2, self.most)

    def sizes(self, block: Block) -> tuple[Array, Array]:
        """Return c, and the norm of c x x', of each record."""
        c = self.coefficients(block)
        return c, c * (block.squared_norms() + block.intercept**2)

    def sums(self, records: RecordSource, fine: bool = False) -> tuple[Array, float]:
        """Return both without noise."""

        def of(block: Block) -> tuple[Array, Array]:
            c, norms = self.sizes(block)
            if math.isfinite(self.most):
                c = c * np.minimum(1.0, self.most / np.maximum(norms, 1e-300))
            return block.gram(c) if self.has_matrix else np.zeros((0, 0)), np.array(c.sum())

        matrix, total = records.sum(of, fine=fine)
        return matrix, float(total)

    def noisy(
        self, records: RecordSource, planned: Gaussian, source: Source
    ) -> tuple[Noisy, Total, Event]:
        """Return both with noise, the matrix's symmetric, in one release, and what it cost.

        A record adds (c x x', a R^2 c): at most sqrt(largest^2 + (a C R^2)^2) long.
        """
        matrix, total = self.sums(records, needs_fine_sums(records, _FLOAT_SLACK))
        weight = _TOTAL_WEIGHT * self.row_norm**2 * self.has_total
        length = math.hypot(self.largest * self.has_matrix, weight * self.greatest)
        vector = np.append(pack(matrix), weight * total)
        noisy, std, event = positive_sum(vector, length, planned, source)
        known = Total(noisy[-1] / weight, std / weight) if weight else Total(0.0, 0.0)
        return Noisy(unpack(noisy[:-1], len(matrix)), std), known, event


def positive_sum(
    vector: Array, length: float, planned: Gaussian, source: Source
) -> tuple[Array, float, Event]:
    """Return a sum of vectors of at most this length with noise, the noise's deviation, its cost.

    A record more adds a vector v; another instead, u - v. No two make an obtuse angle, so that the
    difference is at most sqrt(2) times as long.
    """
    two = math.sqrt(2.0) if planned.relation is Relation.REPLACE else 1.0
    reach = two * length * (1 + _FLOAT_SLACK)
    bounded = Bounded(vector, reach, Norm.L2, planned.relation)
    released = gaussian(bounded, planned.noise_multiplier, source)
    return np.asarray(released.value), planned.noise_multiplier * reach, released.event


def hessian(law: Law, weights: Array) -> Statistic:
    """Return H at given weights: a slope that is clipped does not turn."""
    loss = law.objective.loss
    return Statistic(
        lambda block: loss.turning(block, weights, law.slope_limit),
        loss.usual_curvature,
        law.objective.reach,
        has_matrix=law.gram is None,
        has_total=not loss.is_likelihood,
    )


def squares(law: Law, weights: Array) -> Statistic:
    """Return M at given weights."""
    loss = law.objective.loss
    # Residuals beyond the labels' own size are not counted larger, however far the loss goes on.
    limit = min(law.slope_limit, law.objective.bounds.label_bound)
    return Statistic(
        lambda block: loss.squared_slopes(block, weights, limit),
        limit**2,
        law.objective.reach,
        has_matrix=True,
        has_total=True,
    )
