"""An objective tilted by noise, over records: its value, gradient, Hessian and certificate."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tacit.erm.objective import Objective
from tacit.records import RecordSource

Array = npt.NDArray[np.float64]

_UNIT = 2.0**-53


@dataclass(frozen=True)
class Perturbed:
    """An objective with a linear perturbation, over given records."""

    objective: Objective
    records: RecordSource
    perturbation: Array
    steadying: float = 0.0  # a further ridge, on every weight but the intercept's

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
            self.steadying / step,
        )

    def ridges(self, w: Array) -> Array:
        """Return the ridge of every weight."""
        ridges = np.full(w.shape, self.ridge + self.steadying)
        if self.objective.bounds.intercept:
            ridges[-1] = self.ridge
        return ridges

    def value_and_gradient(self, w: Array) -> tuple[float, Array]:
        """Return G and its gradient in one pass over the records."""
        loss = self.objective.loss
        value, gradient = self.records.sum(lambda block: loss.value_and_gradient(block, w))
        held = self.ridges(w) * w
        total = float(value) + float(np.vdot(held, w)) / 2 + float(np.vdot(self.perturbation, w))
        return total, gradient + held + self.perturbation

    def hessian(self, w: Array) -> Array:
        """Return the Hessian of the losses at w."""
        loss = self.objective.loss
        (total,) = self.records.sum(lambda block: (loss.curvature(block, w),))
        return total

    def hessian_times(self, w: Array, direction: Array) -> Array:
        """Return the Hessian of G at w times a direction."""
        loss = self.objective.loss
        (total,) = self.records.sum(lambda block: (loss.curvature_along(block, w, direction),))
        return total + self.ridges(w) * direction

    def certified_norm(self, w: Array) -> float:
        """Return an upper bound on the true gradient norm at w."""
        (total,) = self.records.sum(lambda b: (self.objective.gradient(b, w),), fine=True)
        gradient = total + self.ridges(w) * w + self.perturbation
        return float(np.linalg.norm(gradient)) * (1 + 1e-12) + self._float_error(w)

    def _float_error(self, w: Array) -> float:
        # Each slope is off by smoothness times the score's own error, (d + 4) u R ||w||, and by
        # a few u of itself and of what it is the difference of (Poisson: exp(z) <= smoothness);
        # the sum over records by sum_error; the last two terms by one rounding each.
        size, objective = float(np.linalg.norm(w)), self.objective
        n_terms = w.shape[0] + 4
        smooth, steep = objective.smoothness, objective.lipschitz
        if not (math.isfinite(smooth) and math.isfinite(steep)):
            return math.inf
        own = 8 * (steep + smooth / objective.row_norm)
        slopes = self.records.count() * _UNIT * (smooth * n_terms * size + own)
        sums = self.records.sum_error(fine=True) * steep
        held = (self.ridge + self.steadying) * size
        ends = 4 * _UNIT * (held + float(np.linalg.norm(self.perturbation)))
        return float(slopes + sums + ends)
