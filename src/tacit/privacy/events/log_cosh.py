"""Objective perturbation of a loss whose curvature vanishes as its slope saturates: log cosh."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import log_ndtr, ndtr

from tacit import checks
from tacit.privacy.events.base import Array
from tacit.privacy.events.objective import LossBound, ObjectiveEvent
from tacit.privacy.gaussian_profile import gaussian_delta, lost_digits
from tacit.privacy.relation import Relation, checked_relation

_NOISE = "calibrate it to a Budget; without noise record NonPrivate(reason=...)."
_BOUND = "pass the bound enforced on every record."
_RIDGE = "objective perturbation needs strong convexity: pass a positive L2 regularization."


@dataclass(frozen=True)
class LogCoshObjective(ObjectiveEvent):
    """A linear model with a loss that is never both steep and curved, b ~ N(0, noise_std^2 I).

    Contract: a record's gradient is parallel to its row and has norm t ``lipschitz`` for a t in
    [-1, 1], and its Hessian has rank one and norm at most (1 - t^2) ``smoothness``.
    ``regularization`` is lam of the SUM form. ADD_REMOVE only.

    Guarantee (docs/proofs/objective_perturbation.md, section 12): with mu = lipschitz / noise_std
    and k = smoothness / lam, the privacy loss is at most

        X = max over t in [-1, 1] of t mu Z + t^2 mu^2 / 2 + (1 - t^2) k,   Z ~ N(0, 1)

    So delta(epsilon) is twice the Gaussian mechanism's for epsilon >= 2 k - mu^2 / 2: at these
    epsilons the effect of a record on the Hessian costs nothing.

    Examples
    --------
    >>> from tacit.privacy import Guarantee, LogCoshObjective
    >>> event = LogCoshObjective(1.0, 1.0, regularization=2.0, noise_std=3.88415)
    >>> round(Guarantee(event).epsilon(1e-5), 4)
    1.0
    """

    kind = "log_cosh_objective"

    lipschitz: float
    smoothness: float
    regularization: float
    noise_std: float
    relation: Relation = Relation.ADD_REMOVE

    def __post_init__(self) -> None:
        checks.keep_plain_numbers(self)
        checks.positive("lipschitz", self.lipschitz, remedy=_BOUND)
        checks.positive("smoothness", self.smoothness, remedy=_BOUND)
        checks.positive("regularization", self.regularization, remedy=_RIDGE)
        checks.positive("noise_std", self.noise_std, remedy=_NOISE)
        if not checked_relation(self.relation).adds_or_removes:
            raise ValueError(
                "LogCoshObjective is proved for Relation.ADD_REMOVE only; account under "
                "ADD_REMOVE, then convert the guarantee with replace_from_add_remove."
            )

    def cost_ratios(self) -> tuple[float, ...]:
        """Return L / s and beta / lam."""
        return self._mu, self._stretch

    @property
    def _mu(self) -> float:
        return self.lipschitz / self.noise_std

    @property
    def _stretch(self) -> float:
        # k: one record changes the Jacobian's determinant by a factor of at most 1 + k
        return self.smoothness / self.regularization

    @property
    def _excess(self) -> float:
        # k - mu^2 / 2: the part of k that the quadratic term of the noise does not offset
        return self._stretch - self._mu**2 / 2

    def profile(self, epsilon: Array) -> Array:
        """Return E(1 - exp(epsilon - X))_+.

        X increases in |Z| and has up to three pieces. The first uses the logarithm of the Jacobian,
        c = log(1 + k); e = k - mu^2 / 2:

            c + mu |Z| + mu^2 / 2     for mu |Z| < 2 (e - sqrt(c e))
            k + (mu Z)^2 / (4 e)      for mu |Z| < 2 e
            mu |Z| + mu^2 / 2         beyond
        """
        mu, k, e = self._mu, self._stretch, max(self._excess, 0.0)
        c, half = math.log1p(k), mu**2 / 2
        first, corner = self._first, 2 * e / mu
        # the least |Z| at which X is epsilon, 0 if X always exceeds it
        inner = np.sqrt(4 * e * np.maximum(epsilon - k, 0.0)) / mu
        z = np.maximum((epsilon - c - half) / mu, 0.0)
        z = np.where(z < first, z, np.maximum(inner, first))
        z = np.where(z < corner, z, np.maximum((epsilon - half) / mu, corner))
        # E[exp(-X); |Z| > z], piece by piece
        a, b, d = (np.maximum(z, start) for start in (0.0, first, corner))
        mass = 2 * math.exp(-c) * (ndtr(-np.minimum(a, first) - mu) - ndtr(-first - mu))
        if e > 0:
            root = math.sqrt(1 + mu**2 / (2 * e))
            middle = ndtr(-np.minimum(b, corner) * root) - ndtr(-corner * root)
            mass = mass + 2 * math.exp(-k) / root * middle
        mass = mass + 2 * ndtr(-d - mu)
        with np.errstate(divide="ignore"):
            subtracted = np.exp(np.minimum(epsilon + np.log(mass), 0.0))
        reached = 2 * ndtr(-z)
        lost = lost_digits(mu, z, np.abs(epsilon) + k) * (reached + subtracted)
        below = np.clip(reached - subtracted + lost, 0.0, 1.0)
        # Where X is linear, delta is twice the Gaussian mechanism's, which is computed precisely.
        free = max(mu * corner + half, half)
        above = np.minimum(2 * gaussian_delta(mu, np.maximum(epsilon, free)), 1.0)
        result: Array = np.where(epsilon >= free, above, below)
        return result

    def _without_jacobian(self) -> LossBound:
        """Return the law of mu |Z| + mu^2 / 2."""
        return LossBound(0.0, ((2.0, self._mu),))

    @property
    def _first(self) -> float:
        # |Z| below which the logarithm of the Jacobian is the better bound
        e = max(self._excess, 0.0)
        return max(2 * (e - math.sqrt(e * math.log1p(self._stretch))) / self._mu, 0.0)

    def renyi(self, orders: Array) -> Array:
        """Return a bound on log E exp((a-1) X) / (a-1), with X at its value where a piece ends."""
        mu, e = self._mu, max(self._excess, 0.0)
        b, first, corner = orders - 1.0, self._first, 2 * e / mu
        # E[exp(b (mu |Z| + mu^2/2)); |Z| > c] = 2 exp(b (b+1) mu^2 / 2) Phi(b mu - c)
        log_linear = math.log(2) + b * (b + 1) * mu**2 / 2
        parts = [log_linear + log_ndtr(b * mu - corner)]
        middle = math.log(2) + _log_between(-corner, -first)
        parts.append(b * (self._stretch + e) + middle)
        # Phi(b mu) - Phi(b mu - first), by symmetry in the other tail
        inside = _log_between(-b * mu, first - b * mu)
        parts.append(b * math.log1p(self._stretch) + log_linear + inside)
        total = np.logaddexp.reduce(parts)
        # The expectation is nearly 1 for small mu: add the rounding error of its logarithm.
        result: Array = (total + lost_digits(mu, 0.0, total)) / b
        return result


def _log_between(low: npt.ArrayLike, high: npt.ArrayLike) -> Array:
    """Return log(Phi(high) - Phi(low)) for low <= 0, so that a tail beyond 38 does not vanish."""
    top = log_ndtr(high)
    with np.errstate(divide="ignore", invalid="ignore"):
        below = np.where(np.isneginf(top), 0.0, np.minimum(log_ndtr(low) - top, 0.0))
        result: Array = top + np.log(-np.expm1(below))
    return result
