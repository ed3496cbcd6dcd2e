"""Releases described by one number: pure, of the exponential mechanism, or zero-concentrated."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tacit.privacy.budget import Relation
from tacit.privacy.events.base import Array, Event

_SMALL, _LARGE = 1e-3, 700.0  # range of epsilon in which the exact Renyi formulas are accurate
_ROUND_UP = 1.0 + 1e-13  # some twenty logarithms, each with a relative error of 2^-53
_ROUNDINGS = 16 * 2.0**-53  # sixteen roundings of a double
_REMEDY = "pass the epsilon the mechanism was calibrated to, or NonPrivate(reason=...) if none."


@dataclass(frozen=True)
class _Pure(Event):
    """A release whose privacy loss is at most ``epsilon``."""

    epsilon: float
    relation: Relation = Relation.ADD_REMOVE

    def __post_init__(self) -> None:
        self._check(epsilon=_REMEDY)

    def pure_epsilon(self) -> float:
        """Return epsilon; a range of losses that contains 0 bounds the loss itself."""
        return self.epsilon


@dataclass(frozen=True)
class PureEpsilon(_Pure):
    """A release whose privacy loss never exceeds ``epsilon`` in either direction.

    Contract: p(output) <= exp(epsilon) p'(output) for all neighbours and outputs: Laplace noise
    of scale sensitivity / epsilon, L2 sphere noise with density proportional to
    exp(-epsilon ||z|| / sensitivity), the sampled output of any pure mechanism.

    Guarantee: binary randomised response with the same epsilon dominates (docs/proofs/events.md,
    section 5), so

        delta(e) = (exp(epsilon) - exp(e))_+ / (1 + exp(epsilon))     for |e| <= epsilon
        renyi(a) = log(p^a (1-p)^(1-a) + (1-p)^a p^(1-a)) / (a - 1),  p = 1 / (1 + exp(-epsilon))

    Examples
    --------
    >>> from tacit.privacy import Guarantee, PureEpsilon
    >>> Guarantee(PureEpsilon(0.5)).epsilon(0.0)
    0.5
    """

    kind = "pure_epsilon"

    def profile(self, epsilon: Array) -> Array:
        """Return randomised response's delta."""
        e0 = self.epsilon
        # Below -epsilon delta is 1 - exp(e): the likelihood ratio is never that small.
        inside = -np.expm1(np.minimum(epsilon - e0, 0.0)) / (1.0 + np.exp(-e0))
        result: Array = np.where(epsilon < -e0, -np.expm1(np.minimum(epsilon, 0.0)), inside)
        return result

    def renyi(self, orders: Array) -> Array:
        """Return randomised response's divergence."""
        e0 = self.epsilon
        if e0 < _SMALL:
            # docs/proofs/events.md, section 5: the exact form could underflow here
            return np.minimum(orders * e0**2 / 2, e0)
        # 1 + 2 sinh(a e0 / 2) sinh((a-1) e0 / 2) / cosh(e0 / 2): no terms cancel
        b = orders - 1
        excess = np.log(-np.expm1(-orders * e0)) + np.log(-np.expm1(-b * e0))
        excess = b * e0 - np.log1p(np.exp(-e0)) + excess
        result: Array = np.minimum(np.logaddexp(0.0, excess) / b * _ROUND_UP, e0)
        return result


@dataclass(frozen=True)
class ExponentialMechanism(_Pure):
    """A choice made by the exponential mechanism (or noisy max with Gumbel noise).

    Contract: the privacy losses of any two outputs differ by at most ``epsilon`` (bounded
    range): weights exp(epsilon u / (2 sensitivity)), or exp(epsilon u / sensitivity) for
    monotone utilities.

    Guarantee (docs/proofs/events.md, section 6): the worst pair for a given epsilon has two
    outcomes with losses t and t - eta, eta = epsilon, so

        delta(e) = (exp(eta/2) - exp(e/2))^2 / (exp(eta) - 1)          for |e| <= eta
        renyi(a) = log max_x x^(a-1) ((E-x) + (x-1) E^(1-a)) / (E-1) / (a-1),  E = exp(eta)

    which is below eta^2/8-zCDP.

    Examples
    --------
    >>> from tacit.privacy import ExponentialMechanism, Guarantee, PureEpsilon, Repeated
    >>> choices = Guarantee(Repeated(ExponentialMechanism(0.1), 100)).epsilon(1e-6)
    >>> choices < Guarantee(Repeated(PureEpsilon(0.1), 100)).epsilon(1e-6) / 1.7
    True
    """

    kind = "exponential_mechanism"

    def profile(self, epsilon: Array) -> Array:
        """Return the greatest delta over all pairs of bounded range."""
        eta = self.epsilon
        e = np.clip(epsilon, -eta, eta)
        # (e^{eta/2} - e^{e/2})^2 / (e^eta - 1), with both sides divided by e^eta.
        inside = np.expm1((e - eta) / 2) ** 2 / -np.expm1(-eta)
        result: Array = np.where(epsilon < -eta, -np.expm1(np.minimum(epsilon, 0.0)), inside)
        return result

    def renyi(self, orders: Array) -> Array:
        """Return the greatest divergence over all pairs of bounded range."""
        eta, a = self.epsilon, orders
        simple: Array = np.minimum(a * eta**2 / 8, eta)
        if not _SMALL <= eta <= _LARGE:
            return simple  # the exact form would lose its digits or overflow
        # Maximise x^(a-1) (A - B x) over x in [1, E]: x* = A (a-1) / (a B).
        decay = np.exp((1 - a) * eta)
        upper = np.exp(eta) - decay
        lower = -np.expm1((1 - a) * eta)
        x = np.clip(upper * (a - 1) / (a * lower), 1.0, np.exp(eta))
        value = (a - 1) * np.log(x) + np.log((upper - lower * x) / np.expm1(eta))
        # Add the possible rounding error: upper - lower x is upper / a.
        value += _ROUNDINGS * (a / -np.expm1(-a * eta) + a * eta)
        result: Array = np.minimum(value / (a - 1), simple)
        return result


@dataclass(frozen=True)
class ZeroConcentrated(Event):
    """A release that is rho-zCDP, for instance a discrete Gaussian of another library.

    Contract: Renyi divergence at every order a > 1 at most ``rho`` * a, in both directions
    (Bun and Steinke 2016, Definition 1.1).

    Examples
    --------
    >>> from tacit.privacy import Guarantee, ZeroConcentrated
    >>> Guarantee(ZeroConcentrated(0.1)).route(1e-5)
    'Renyi'
    """

    kind = "zero_concentrated"

    rho: float
    relation: Relation = Relation.ADD_REMOVE

    def __post_init__(self) -> None:
        self._check(rho="pass the zCDP parameter of the release.")

    def renyi(self, orders: Array) -> Array:
        """Return rho * order."""
        return self.rho * orders
