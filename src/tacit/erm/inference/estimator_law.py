"""How released weights came about: what noise and ridge did to them, as far as releases tell.

Around the truth w0, with H the Hessian of the losses there and g the records' gradient,

    w = P(H) (H w0 - g + e),   g and e with mean 0

to first order (docs/proofs/inference.md, section 2). A law is P and the covariance of the noise e,
written in H's own coordinates, whatever H is: it holds what a mechanism released or planned.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tacit.erm.objective import Objective

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Law(ABC):
    """What a mechanism did, for any Hessian.

    Arguments have a last axis of H's coordinates, and any axes before it.
    """

    objective: Objective  # as minimised: its loss may have followed the number of records
    slope_limit: float  # a record's slope counts as at most this
    gram: Array | None = None  # H with its noise, where the mechanism released it

    @abstractmethod
    def share(self, curvature: Array) -> Array:
        """Return h P(h) for eigenvalues h of H: how much of the truth is in the weights."""

    @abstractmethod
    def noise(self, curvature: Array, truth: Array) -> Array:
        """Return the covariance of e, a matrix, given the weights without ridge."""

    def variance(self, curvature: float) -> float:
        """Return what the noise gives a weight of this curvature, if the truth is 0."""
        h = np.array([curvature])
        return float(self.noise(h, np.zeros(1))[0, 0] * (self.share(h)[0] / curvature) ** 2)


@dataclass(frozen=True, eq=False)
class PerturbedMinimizerLaw(Law):
    """Of a tilted objective: P(h) = 1 / (h + ridge), e the tilt and the noise on the output."""

    ridge: float = 0.0
    noise_std: float = 0.0
    output_std: float = 0.0

    def share(self, curvature: Array) -> Array:
        """Return h / (h + ridge)."""
        return curvature / (curvature + self.ridge)

    def noise(self, curvature: Array, truth: Array) -> Array:
        """Return s^2; noise on the output is as if the gradient had h + ridge times as much."""
        output = self.output_std * (curvature + self.ridge)
        return _diagonal(self.noise_std**2 + output**2)


@dataclass(frozen=True, eq=False)
class DescentLaw(Law):
    """Of noisy gradient descent with momentum t / (t + 3), its last quarter averaged."""

    ridge: float = 0.0
    noise_std: float = 0.0
    n_steps: int = 1
    step: float = 1.0

    def share(self, curvature: Array) -> Array:
        """Return h times the sum of what each step's gradient did."""
        result: Array = curvature * self._effects(curvature)[0]
        return result

    def noise(self, curvature: Array, truth: Array) -> Array:
        """Return s^2 (sum of squared effects) / (sum of effects)^2."""
        total, squares = self._effects(curvature)
        return _diagonal(self.noise_std**2 * squares / total**2)

    def _effects(self, curvature: Array) -> tuple[Array, Array]:
        """Return sum k_t and sum k_t^2, k_t what a unit in step t's gradient does to the average.

            w_t+1 = (1 - step a) (w_t + m_t v_t) + step (c - noise_t),  v_t+1 = w_t+1 - w_t

        with a = h + ridge; backwards, by the chain rule.
        """
        a, first = curvature + self.ridge, (3 * self.n_steps) // 4
        on_w, on_v, total, squares = (np.zeros_like(a) for _ in range(4))
        for t in reversed(range(self.n_steps)):
            both = on_w + on_v + (1 / (self.n_steps - first) if t >= first else 0.0)
            effect = self.step * both
            total, squares = total + effect, squares + effect**2
            on_point = (1 - self.step * a) * both
            on_w, on_v = on_point - on_v, t / (t + 3.0) * on_point
        return total, squares


@dataclass(frozen=True, eq=False)
class MomentLaw(Law):
    """Of noisy moments: (G + N + ridge) w = G w0 - g + e, so that e - N w0 is the noise."""

    ridge: float = 0.0
    moment_std: float = 0.0
    gram_std: float = 0.0

    def share(self, curvature: Array) -> Array:
        """Return h / (h + ridge), h an eigenvalue of G + N."""
        return curvature / (curvature + self.ridge)

    def noise(self, curvature: Array, truth: Array) -> Array:
        """Return s^2 I + t^2 (||w0||^2 I + w0 w0') / 2: N has a variance of t^2 on its diagonal."""
        size = np.sum(truth**2, axis=-1)[..., None, None]
        outer = truth[..., :, None] * truth[..., None, :]
        one = np.eye(truth.shape[-1])
        result: Array = self.moment_std**2 * one + self.gram_std**2 * (size * one + outer) / 2
        return result


def _diagonal(variances: Array) -> Array:
    result: Array = variances[..., :, None] * np.eye(variances.shape[-1])
    return result


@dataclass(frozen=True, eq=False)
class Errors:
    """Weights corrected for the ridge, and their standard errors, noise and sampling together."""

    estimates: Array
    standard_errors: Array


@dataclass(frozen=True, eq=False)
class Solved:
    """Released weights, how they came about, and how far from the truth they may be.

    ``risk`` is the excess risk per record that the releases speak of.
    """

    weights: Array
    law: Law | None = None
    errors: Errors | None = None
    risk: float | None = None
