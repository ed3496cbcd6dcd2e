"""Compute the Gaussian mechanism's exact delta(epsilon) and its inverses.

    dG(mu, e) = Phi(mu/2 - e/mu) - exp(e) * Phi(-mu/2 - e/mu)

Here mu = sensitivity / noise standard deviation (docs/proofs/events.md, section 3). The formula is
evaluated through logarithms, so that a delta of 1e-300 keeps its digits.

The two terms cancel if mu is small. Then, with x = e / mu, phi the normal density and
R(t) = Phi(-t) / phi(t) Mills' ratio, phi(x - mu/2) = exp(e) phi(x + mu/2) gives

    dG(mu, e) = phi(x - mu/2) (R(x - mu/2) - R(x + mu/2))
              = phi(x - mu/2) times the integral of g = -R' = 1 - t R(t) over |t - x| < mu/2

The three-point Gauss-Legendre rule computes the integral with a relative error of mu^6 / 40,000:
its error is mu^7 g^(6) / 2,016,000, and g(t) = integral of s exp(-t s - s^2/2) over s > 0 has
g^(6) < 50 g.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from scipy.special import erfcx, log_ndtr, ndtri_exp

from tacit.arrays import Array
from tacit.privacy.accounting.root_finding import decreasing_root

# Below this mu, differences of tails use the quadrature above and are rounded up. From this mu on
# the plain difference is accurate to 1e-10 of delta.
_SMALL_MU = 0.0101
_RULE = tuple(zip((-math.sqrt(0.15), 0.0, math.sqrt(0.15)), (5 / 18, 8 / 18, 5 / 18), strict=True))
# Relative error of 1 - x R(x) by cancellation for x up to 50: about x^2 2^-53.
_CANCELLED = 1e-12
# Relative tolerance of the solved epsilon, and the range of mu in which Newton's method works.
_TOLERANCE = 1e-13
_NEWTON = 1e-100, 1e3
_MOST_LOG = 700.0  # exp of more overflows
_LOG_ROOT_TWO_PI = 0.5 * math.log(2.0 * math.pi)
_ROUNDINGS = 8 * 2.0**-53  # eight roundings of a double
_FARTHEST = 40.0  # Phi(-40) is 0


def lost_digits(mu: float, quotient: npt.ArrayLike, exponent: npt.ArrayLike = 0.0) -> Array:
    """Bound the relative rounding error of the terms of a difference of normal tails, for small mu.

        delta = Phi(-z) - exp(a) Phi(-z')

    Each term has a relative error of a few units u = 2^-53, of z^2 u more since its argument is
    rounded, and of a u more since the exponent is. If mu is small, the terms are nearly equal, and
    delta is about mu times a term.

    Parameters
    ----------
    mu
        Sensitivity / noise standard deviation; from 0.0101 on the error counts as 0.
    quotient
        z, the smaller argument; a negative one counts as 0.
    exponent
        Bound on the absolute values in exponents.

    Examples
    --------
    >>> from tacit.privacy.accounting.gaussian_profile import lost_digits
    >>> float(lost_digits(1e-6, 3.0) * 2.0**53), float(lost_digits(1.0, 3.0))
    (80.0, 0.0)
    """
    z = np.clip(np.asarray(quotient, dtype=np.float64), 0.0, _FARTHEST)
    size = np.minimum(np.abs(exponent), 1e300)  # an infinite epsilon has delta 0 anyway
    return (_ROUNDINGS if mu < _SMALL_MU else 0.0) * (1.0 + z * z + size)


def _mills_fall(t: Array) -> Array:
    """Return g(t) = 1 - t R(t), for t from -0.01 on."""
    # The difference cancels for large t; R(t) >= t / (1 + t^2) (Gordon 1941) bounds it there.
    mills = math.sqrt(math.pi / 2) * erfcx(t / math.sqrt(2.0))
    result: Array = np.where(t < 50.0, 1.0 - t * mills, 1.0 / (1.0 + t * t))
    return result


def _log_delta_of_small_mu(mu: float, x: Array) -> Array:
    """Return log dG(mu, x mu), rounded up, for a small mu and x >= 0."""
    with np.errstate(all="ignore"):  # an infinite x has delta 0
        area = sum(weight * _mills_fall(x + mu * node) for node, weight in _RULE)
        result: Array = (
            math.log(mu) + np.log(area) + _CANCELLED - (x - mu / 2) ** 2 / 2 - _LOG_ROOT_TWO_PI
        )
    return result


def _log_delta_at(mu: float, x: float) -> float:
    """Return `_log_delta_of_small_mu` at one x, to the last bit and five times as fast."""
    area = 0.0
    for node, weight in _RULE:
        t = x + mu * node
        mills = math.sqrt(math.pi / 2) * float(erfcx(t / math.sqrt(2.0)))
        area += weight * (1.0 - t * mills if t < 50.0 else 1.0 / (1.0 + t * t))
    if area <= 0.0:  # an infinite x has delta 0
        return -math.inf
    square = float(np.float64(x - mu / 2) ** 2)
    return math.log(mu) + float(np.log(area)) + _CANCELLED - square / 2 - _LOG_ROOT_TWO_PI


def gaussian_delta(mu: float, epsilon: npt.ArrayLike) -> Array:
    """Return dG(mu, epsilon) for an array of epsilons of either sign.

    Examples
    --------
    >>> from tacit.privacy.accounting.gaussian_profile import gaussian_delta
    >>> float(gaussian_delta(1 / 3.730632, 1.0).round(10))
    1e-05
    """
    e = np.asarray(epsilon, dtype=np.float64)
    if mu == 0.0:
        return -np.expm1(np.minimum(e, 0.0))
    if mu < _SMALL_MU:
        size = np.abs(e)
        delta = np.exp(_log_delta_of_small_mu(mu, size / mu))
        # dG(mu, -e) = 1 - exp(-e) + exp(-e) dG(mu, e)
        return np.where(e < 0.0, -np.expm1(-size) + np.exp(-size) * delta, delta)
    # log of the two terms; their ratio is at most 1 because dG >= 0.
    first = log_ndtr(mu / 2 - e / mu)
    second = np.where(np.isinf(e), -np.inf, e + log_ndtr(-mu / 2 - e / mu))
    with np.errstate(invalid="ignore"):
        ratio = np.where(np.isneginf(second), -np.inf, np.minimum(second - first, 0.0))
    result: Array = np.where(np.isposinf(e), 0.0, np.exp(first) * -np.expm1(ratio))
    return result


def log_gaussian_delta(mu: float, epsilon: float) -> float:
    """Return log dG(mu, epsilon) for one epsilon >= 0; root finders use this scalar version."""
    return _log_delta_and_fall(mu, epsilon)[0]


def _log_delta_and_fall(mu: float, epsilon: float) -> tuple[float, float]:
    """Return log dG and its decrease in epsilon: d dG / de = -exp(e) Phi(-mu/2 - e/mu)."""
    if mu == 0.0:
        return -math.inf, math.inf
    second = epsilon + float(log_ndtr(-mu / 2 - epsilon / mu))
    if mu < _SMALL_MU:
        log_delta = _log_delta_at(mu, epsilon / mu)
        return log_delta, math.exp(min(second - log_delta, _MOST_LOG))
    first = float(log_ndtr(mu / 2 - epsilon / mu))
    if second >= first:
        return -math.inf, math.inf
    ratio = -math.expm1(second - first)
    return first + math.log(ratio), math.exp(second - first) / ratio


def gaussian_epsilon(mu: float, delta: float) -> float:
    """Return the least epsilon >= 0 with dG(mu, epsilon) <= delta, rounded up.

    Examples
    --------
    >>> from tacit.privacy.accounting.gaussian_profile import gaussian_epsilon
    >>> round(gaussian_epsilon(1 / 3.730632, 1e-5), 6)
    1.0
    """
    if delta <= 0.0:
        return math.inf
    target = math.log(delta)
    if log_gaussian_delta(mu, 0.0) <= target:
        return 0.0
    if not _NEWTON[0] < mu < _NEWTON[1]:
        return decreasing_root(lambda e: log_gaussian_delta(mu, e) - target, mu * mu / 2 + mu)
    # dG <= Phi(mu/2 - e/mu) <= exp(-(e/mu - mu/2)^2 / 2): this start is above the solution.
    epsilon = mu * (math.sqrt(-2.0 * target) + mu / 2)
    # Newton's steps from above stay above, since log dG is concave in epsilon
    # (docs/proofs/events.md, section 3).
    log_delta, fall = _log_delta_and_fall(mu, epsilon)
    while log_delta < target:
        step = (target - log_delta) / fall
        if step <= _TOLERANCE * epsilon:
            return epsilon
        epsilon = max(epsilon - step, 0.0)
        log_delta, fall = _log_delta_and_fall(mu, epsilon)
    # The steps have reached float precision: now move to the side where dG <= delta. An epsilon
    # near 0 may have been rounded to 0.
    factor = 1.0 + _TOLERANCE
    while log_gaussian_delta(mu, epsilon) > target:
        epsilon = max(epsilon, _TOLERANCE * mu) * factor
        factor *= factor
    return epsilon


def gaussian_mu(epsilon: float, delta: float) -> float:
    """Return the greatest mu with dG(mu, epsilon) <= delta, rounded down.

    The least noise multiplier within a budget is ``1 / gaussian_mu(epsilon, delta)``.

    Examples
    --------
    >>> from tacit.privacy.accounting.gaussian_profile import gaussian_mu
    >>> round(1 / gaussian_mu(1.0, 1e-5), 6)
    3.730632
    """
    target = math.log(delta)
    # First guess from the two regimes: mu ~ epsilon / z for small epsilon, sqrt(2 epsilon) for
    # large, with z the normal quantile of delta, about sqrt(2 log(1/delta)).
    z = math.sqrt(-2.0 * target) + 1.0
    guess = (z + epsilon / z) / max(epsilon, 1e-300)
    return 1.0 / decreasing_root(lambda z: log_gaussian_delta(1.0 / z, epsilon) - target, guess)


def mu_of_pure(epsilon: float) -> float:
    """Return the least mu whose Gaussian mechanism dominates every pure release of this epsilon.

        mu = 2 Phi^-1(e^epsilon / (1 + e^epsilon)) <= sqrt(pi / 2) epsilon

    (docs/proofs/ledger.md, section 2), rounded up.

    Examples
    --------
    >>> from tacit.privacy.accounting.gaussian_profile import mu_of_pure
    >>> round(mu_of_pure(1.0), 4)
    1.232
    """
    if math.isinf(epsilon):
        return math.inf
    tail = -np.logaddexp(0.0, epsilon)  # log of 1 / (1 + e^epsilon)
    return min(-2.0 * float(ndtri_exp(tail)) * (1 + 1e-9), math.sqrt(math.pi / 2) * epsilon)
