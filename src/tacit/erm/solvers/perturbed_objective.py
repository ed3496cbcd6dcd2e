"""An objective tilted by noise, over records: its value, gradient, Hessian and certificate."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tacit.erm.objective import Objective
from tacit.records import RecordSource
from tacit.records.linear_transform import Coordinates

Array = npt.NDArray[np.float64]

_UNIT = 2.0**-53


@dataclass(frozen=True)
class Perturbed:
    """An objective with a linear perturbation, over given records.

    With ``coordinates`` A it is a function of v, w = A v being the weights: ridge and perturbation
    are those of v, and a gradient in v is A times one in w.
    """

    objective: Objective
    records: RecordSource
    perturbation: Array
    slope_ridge: float = 0.0  # a further ridge, on every weight but the intercept's
    coordinates: Coordinates | None = None  # of eigenvalues up to 1

    @property
    def ridge(self) -> float:
        """The regularization, which a mechanism must have set."""
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
        """Return A times vectors: weights of a point, or a gradient in v of one in w."""
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
        # a sum of k squares is off by at most k u of itself, its root by half of that
        norm = float(np.linalg.norm(gradient)) * (1 + (gradient.size + 8) * _UNIT)
        return norm + self._float_error(w)

    def _float_error(self, w: Array) -> float:
        # the sum over records is off by sum_error; the last two terms by one rounding each
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
    """Return how far rounding in records' slopes may move a gradient at weights of some length.

    Each slope is off by smoothness times the score's own error, (d + 4) u R ||w||, and by a few u
    of itself and of what it is the difference of (Poisson: exp(z) <= smoothness).
    """
    own = 8 * (objective.lipschitz + objective.smoothness / objective.row_norm)
    return n_records * _UNIT * (objective.smoothness * (n_weights + 4) * size + own)


def preconditioning_error(coordinates: Coordinates | None, n_records: float, bound: float) -> float:
    """Return how far rounding in products with A may move a gradient of records up to ``bound``.

    A product with A is off by at most d u |A| of what is turned, |A| the greatest absolute row sum;
    so is a length ||A x||, and thrice that, against the least that A leaves of it, the weight
    (length / ||A x||)^2 of a record.
    """
    if coordinates is None:
        return 0.0
    matrix = coordinates.matrix
    widest = float(np.abs(matrix).sum(axis=1).max())
    least = float(np.abs(np.linalg.eigvalsh(matrix)).min())
    stretch = widest * (1 + 3 / max(least, 1e-300))
    return 2 * len(matrix) * _UNIT * stretch * n_records * bound
