"""Evaluate a perturbed objective over records: value, gradient, Hessian and certified norm."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tacit.erm.objective import Objective
from tacit.records import RecordSource
from tacit.records.linear_transform import Coordinates

Array = npt.NDArray[np.float64]

_UNIT = 2.0**-53  # u, the unit roundoff of doubles


@dataclass(frozen=True)
class Perturbed:
    """An objective with a linear perturbation, over given records.

    With ``coordinates`` A it is a function of v, with the weights w = A v. Ridge and perturbation
    apply to v, and the gradient in v is A times the gradient in w.
    """

    objective: Objective
    records: RecordSource
    perturbation: Array
    slope_ridge: float = 0.0  # an additional ridge on every weight except the intercept
    coordinates: Coordinates | None = None  # with eigenvalues of at most 1

    @property
    def ridge(self) -> float:
        """The regularization, which the mechanism must have set."""
        lam = self.objective.regularization
        if lam is None:
            raise ValueError("regularization must be set before minimising.")
        return lam

    def thinned(self, step: int) -> Perturbed:
        """Return G / step, estimated from every ``step``-th record."""
        return Perturbed(
            self.objective.with_regularization(self.ridge / step),
            self.records.every(step),
            self.perturbation / step,
            self.slope_ridge / step,
            self.coordinates,
        )

    def preconditioned(self, vectors: Array) -> Array:
        """Return A times vectors: weights from v, or the gradient in v from the gradient in w."""
        return vectors if self.coordinates is None else self.coordinates.of(vectors)

    def ridges(self, w: Array) -> Array:
        """Return the ridge of every weight."""
        ridges = np.full(w.shape, self.ridge + self.slope_ridge)
        if self.objective.bounds.intercept:
            ridges[-1] = self.ridge
        return ridges

    def value_and_gradient(self, w: Array) -> tuple[float, Array]:
        """Return G and its gradient in one pass over the records."""
        loss, at = self.objective.loss, self.preconditioned(w)
        value, gradient = self.records.sum(lambda block: loss.value_and_gradient(block, at))
        held = self.ridges(w) * w
        total = float(value) + float(np.vdot(held, w)) / 2 + float(np.vdot(self.perturbation, w))
        return total, self.preconditioned(gradient) + held + self.perturbation

    def hessian(self, w: Array) -> Array:
        """Return the Hessian of the losses at w."""
        loss, at = self.objective.loss, self.preconditioned(w)
        (total,) = self.records.sum(lambda block: (loss.curvature(block, at),))
        return self.preconditioned(self.preconditioned(total).T)

    def hessian_times(self, w: Array, direction: Array) -> Array:
        """Return the Hessian of G at w times a direction."""
        loss, at, along = (
            self.objective.loss,
            self.preconditioned(w),
            self.preconditioned(direction),
        )
        (total,) = self.records.sum(lambda block: (loss.curvature_along(block, at, along),))
        return self.preconditioned(total) + self.ridges(w) * direction

    def certified_norm(self, w: Array) -> float:
        """Return an upper bound on the true gradient norm at w."""
        at = self.preconditioned(w)
        (total,) = self.records.sum(lambda b: (self.objective.gradient(b, at),), fine=True)
        gradient = self.preconditioned(total) + self.ridges(w) * w + self.perturbation
        # A sum of k squares has relative error at most k u, its root half of that.
        norm = float(np.linalg.norm(gradient)) * (1 + (gradient.size + 8) * _UNIT)
        return norm + self._float_error(w)

    def _float_error(self, w: Array) -> float:
        # sum_error bounds the sum over records; the last two terms have one rounding each.
        size, bound = float(np.linalg.norm(w)), self.objective.lipschitz
        if not (math.isfinite(self.objective.smoothness) and math.isfinite(bound)):
            return math.inf
        slopes = slopes_error(self.objective, self.records.count(), w.shape[0], size)
        sums = self.records.sum_error(fine=True) * bound
        held = (self.ridge + self.slope_ridge) * size
        ends = 4 * _UNIT * (held + float(np.linalg.norm(self.perturbation)))
        preconditioned = preconditioning_error(self.coordinates, self.records.count(), bound)
        return float(slopes + sums + ends + preconditioned)


def slopes_error(objective: Objective, n_records: float, n_weights: int, size: float) -> float:
    """Bound the effect of rounding in the records' derivatives d1 on a gradient.

    ``size`` is the norm of the weights. Each derivative has three errors: smoothness times the
    score's own error (d + 4) u R ||w||, a few u of itself, and a few u of the terms whose
    difference it is (Poisson: exp(z) <= smoothness).
    """
    own = 8 * (objective.lipschitz + objective.smoothness / objective.row_norm)
    return n_records * _UNIT * (objective.smoothness * (n_weights + 4) * size + own)


def preconditioning_error(coordinates: Coordinates | None, n_records: float, bound: float) -> float:
    """Bound the effect of rounding in products with A on a gradient of norm ``bound`` per record.

    A product with A has an error of at most d u |A| of its argument, with |A| the greatest absolute
    row sum. The norm ||A x|| has the same error. A record's weight (norm / ||A x||)^2 has three
    times that error, relative to the least eigenvalue of A.
    """
    if coordinates is None:
        return 0.0
    matrix = coordinates.matrix
    widest = float(np.abs(matrix).sum(axis=1).max())
    least = float(np.abs(np.linalg.eigvalsh(matrix)).min())
    stretch = widest * (1 + 3 / max(least, 1e-300))
    return 2 * len(matrix) * _UNIT * stretch * n_records * bound
