"""Define the asymptotic laws of released weights: the effects of noise and ridge.

Let w0 be the true weights, H the Hessian of the losses at w0 and g the records' gradient. Then

    w = P(H) (H w0 - g + e),   g and e with mean 0

to first order (docs/proofs/inference.md, section 2). A law consists of P and the covariance of the
noise e, in the eigenbasis of H and for any H. It holds only released or planned values.
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
    """The asymptotic law of a mechanism's weights, as a function of the Hessian.

    The last axis of arguments is over the eigenbasis of H; any axes may precede it.
    """

    objective: Objective  # as minimised: its loss may be adapted to the number of records
    slope_limit: float  # clip of a record's d1
    gram: Array | None = None  # noisy H, if the mechanism released it

    @abstractmethod
    def share(self, curvature: Array) -> Array:
        """Return h P(h) for eigenvalues h of H: the share of the truth in the weights."""

    @abstractmethod
    def noise(self, curvature: Array, truth: Array) -> Array:
        """Return the covariance matrix of e, given the weights without ridge."""

    def variance(self, curvature: float) -> float:
        """Return the variance that noise gives a weight of this curvature, for a truth of 0."""
        h = np.array([curvature])
        return float(self.noise(h, np.zeros(1))[0, 0] * (self.share(h)[0] / curvature) ** 2)


@dataclass(frozen=True, eq=False)
class PerturbedMinimizerLaw(Law):
    """Law of a perturbed minimiser: P(h) = 1 / (h + ridge), e perturbation and output noise."""

    ridge: float = 0.0
    noise_std: float = 0.0
    output_std: float = 0.0

    def share(self, curvature: Array) -> Array:
        """Return h / (h + ridge)."""
        return curvature / (curvature + self.ridge)

    def noise(self, curvature: Array, truth: Array) -> Array:
        """Return s^2 plus the output noise, which acts like h + ridge times it on the gradient."""
        output = self.output_std * (curvature + self.ridge)
        return _diagonal(self.noise_std**2 + output**2)


@dataclass(frozen=True, eq=False)
class DescentLaw(Law):
    """Law of noisy gradient descent with momentum t / (t + 3) and the last quarter averaged."""

    ridge: float = 0.0
    noise_std: float = 0.0
    n_steps: int = 1
    step: float = 1.0

    def share(self, curvature: Array) -> Array:
        """Return h times the sum of the effects of all steps' gradients."""
        result: Array = curvature * self._effects(curvature)[0]
        return result

    def noise(self, curvature: Array, truth: Array) -> Array:
        """Return s^2 (sum of squared effects) / (sum of effects)^2."""
        total, squares = self._effects(curvature)
        return _diagonal(self.noise_std**2 * squares / total**2)

    def _effects(self, curvature: Array) -> tuple[Array, Array]:
        """Return sum k_t and sum k_t^2, with k_t the effect of a unit in step t's gradient.

            w_t+1 = (1 - step a) (w_t + m_t v_t) + step (c - noise_t),  v_t+1 = w_t+1 - w_t

        with a = h + ridge. k_t is the effect on the averaged weights, computed backwards by the
        chain rule.
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
    """Law of noisy moments: (G + N + ridge) w = G w0 - g + e, so that the noise is e - N w0."""

    ridge: float = 0.0
    moment_std: float = 0.0
    gram_std: float = 0.0

    def share(self, curvature: Array) -> Array:
        """Return h / (h + ridge), h an eigenvalue of G + N."""
        return curvature / (curvature + self.ridge)

    def noise(self, curvature: Array, truth: Array) -> Array:
        """Return s^2 I + t^2 (||w0||^2 I + w0 w0') / 2; diagonal entries of N have variance t^2."""
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
    """Weights corrected for the ridge, and their standard errors from noise and sampling."""

    estimates: Array
    standard_errors: Array


@dataclass(frozen=True)
class Counted:
    """A noisy number of records, and a lower bound on the true number.

    Use ``at_least`` for decisions that are harmed by an overestimate. ``answer`` is the count as it
    was released, with noise of standard deviation ``std``.
    """

    n_records: float
    at_least: float
    answer: float
    std: float

    @property
    def may_be_none(self) -> bool:
        """Whether the released count cannot be told from that of no records at all.

        Of no records it is so in 39 cases of 40.
        """
        return self.answer <= 2 * self.std


@dataclass(frozen=True, eq=False)
class Solved:
    """Released weights, their law, their standard errors and their risk.

    ``risk`` is the excess risk per record, estimated from the releases. ``count`` is the released
    number of records, if the plan has one.
    """

    weights: Array
    law: Law | None = None
    errors: Errors | None = None
    risk: float | None = None
    count: Counted | None = None
