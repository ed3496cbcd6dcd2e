"""The Gaussian mechanism's exact trade-off between epsilon and delta, and its inverses.

    dG(mu, e) = Phi(mu/2 - e/mu) - exp(e) * Phi(-mu/2 - e/mu)

where mu = sensitivity / noise standard deviation (Balle and Wang 2018, Theorem 8; Dong, Roth
and Su 2022, Corollary 2.13). Evaluated through logarithms, so that a delta of 1e-300 keeps its
digits.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from scipy.special import log_ndtr

from tacit.privacy.roots import decreasing_root

Array = npt.NDArray[np.float64]


def gaussian_delta(mu: float, epsilon: npt.ArrayLike) -> Array:
    """Return dG(mu, epsilon) for an array of epsilons of either sign.

    Examples
    --------
    >>> from tacit.privacy.gaussian_profile import gaussian_delta
    >>> float(gaussian_delta(1 / 3.730632, 1.0).round(10))
    1e-05
    """
    e = np.asarray(epsilon, dtype=np.float64)
    if mu == 0.0:
        return -np.expm1(np.minimum(e, 0.0))
    # log of the two terms; their ratio is at most 1 because dG >= 0.
    first = log_ndtr(mu / 2 - e / mu)
    second = np.where(np.isinf(e), -np.inf, e + log_ndtr(-mu / 2 - e / mu))
    with np.errstate(invalid="ignore"):
        ratio = np.where(np.isneginf(second), -np.inf, np.minimum(second - first, 0.0))
    result: Array = np.where(np.isposinf(e), 0.0, np.exp(first) * -np.expm1(ratio))
    return result


def log_gaussian_delta(mu: float, epsilon: float) -> float:
    """Return log dG(mu, epsilon) for one epsilon >= 0; the scalar twin used for root finding."""
    first = float(log_ndtr(mu / 2 - epsilon / mu))
    second = epsilon + float(log_ndtr(-mu / 2 - epsilon / mu))
    if second >= first:
        return -math.inf
    return first + math.log(-math.expm1(second - first))


def gaussian_epsilon(mu: float, delta: float) -> float:
    """Return the least epsilon >= 0 with dG(mu, epsilon) <= delta, rounded up.

    Examples
    --------
    >>> from tacit.privacy.gaussian_profile import gaussian_epsilon
    >>> round(gaussian_epsilon(1 / 3.730632, 1e-5), 6)
    1.0
    """
    if delta <= 0.0:
        return math.inf
    target = math.log(delta)
    if log_gaussian_delta(mu, 0.0) <= target:
        return 0.0
    return decreasing_root(lambda e: log_gaussian_delta(mu, e) - target, mu * mu / 2 + mu)


def gaussian_mu(epsilon: float, delta: float) -> float:
    """Return the greatest mu with dG(mu, epsilon) <= delta, rounded down.

    The least noise multiplier within a budget is ``1 / gaussian_mu(epsilon, delta)``.

    Examples
    --------
    >>> from tacit.privacy.gaussian_profile import gaussian_mu
    >>> round(1 / gaussian_mu(1.0, 1e-5), 6)
    3.730632
    """
    target = math.log(delta)
    # A first guess from the two regimes: mu ~ epsilon / z for small epsilon, sqrt(2 epsilon) for
    # large, with z the normal quantile of delta, about sqrt(2 log(1/delta)).
    z = math.sqrt(-2.0 * target) + 1.0
    guess = (z + epsilon / z) / max(epsilon, 1e-300)
    return 1.0 / decreasing_root(lambda z: log_gaussian_delta(1.0 / z, epsilon) - target, guess)
