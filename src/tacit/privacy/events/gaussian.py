"""Gaussian noise: once, on a Poisson sample, or by a smooth sensitivity.

    r(a) = log( sum_k C(a,k) q^k (1-q)^(a-k) exp(k (k-1) / (2 z^2)) ) / (a - 1)

for integer a, with q the sampling rate and z the noise multiplier (docs/proofs/events.md, section
4). All (a, k) pairs lie in one flat array. The binomials are computed once per set of orders, and
each call takes one exponential of the array.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import gammaln

from tacit import checks
from tacit.arrays import Integers
from tacit.privacy.accounting.gaussian_profile import gaussian_delta
from tacit.privacy.budget import Relation
from tacit.privacy.events.base import Array, Event, check_add_remove

if TYPE_CHECKING:
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution


@lru_cache(maxsize=4)
def _terms(orders: tuple[int, ...]) -> tuple[Array, Array, Array, Integers]:
    a = np.repeat(np.array(orders, dtype=np.float64), np.array(orders) + 1)
    k = np.concatenate([np.arange(n + 1, dtype=np.float64) for n in orders])
    log_binomial = gammaln(a + 1) - gammaln(k + 1) - gammaln(a - k + 1)
    starts = np.concatenate([[0], np.cumsum(np.array(orders) + 1)[:-1]])
    return log_binomial, k, a - k, starts


def sampled_gaussian_renyi(rate: float, noise_multiplier: float, orders: Array) -> Array:
    """Return r(a) for each order; a fractional order gets the next integer's (r is increasing).

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.privacy.events.gaussian import sampled_gaussian_renyi
    >>> sampled_gaussian_renyi(0.01, 1.0, np.array([2.0])).round(8)
    array([0.00017181])
    """
    ceiling = np.maximum(np.ceil(orders), 2.0)
    unique, inverse = np.unique(ceiling, return_inverse=True)
    log_binomial, k, rest, starts = _terms(tuple(int(a) for a in unique))
    exponents = k * (k - 1) / (2 * noise_multiplier**2)
    log_terms = log_binomial + k * math.log(rate) + rest * math.log1p(-rate) + exponents
    peaks = np.maximum.reduceat(log_terms, starts)
    lengths = np.diff(np.append(starts, log_terms.size))
    sums = np.add.reduceat(np.exp(log_terms - np.repeat(peaks, lengths)), starts)
    # The sum is at least 1; rounding must not make a divergence negative.
    log_sums = np.maximum(peaks + np.log(sums), 0.0) + 1e-15 * lengths
    result: Array = (log_sums / (unique - 1))[inverse]
    return result


_ZERO_NOISE = (
    "zero noise protects nothing: record it as NonPrivate(reason=...), or calibrate to a Budget."
)


@dataclass(frozen=True)
class Gaussian(Event):
    """A value plus N(0, noise_std^2) on every coordinate.

    Contract: ``noise_multiplier`` = noise_std / sensitivity, with the sensitivity in L2 norm
    under ``relation``.

    Guarantee: mu-GDP with mu = 1 / noise_multiplier, and no better.

    Examples
    --------
    >>> from tacit.privacy import Gaussian, Guarantee
    >>> round(Guarantee(Gaussian(3.730632)).epsilon(1e-5), 5)
    1.0
    """

    kind = "gaussian"

    noise_multiplier: float
    relation: Relation = Relation.ADD_REMOVE

    def __post_init__(self) -> None:
        self._check(noise_multiplier=_ZERO_NOISE)

    def gaussian_mu(self) -> float:
        """Return sensitivity / noise_std."""
        return 1.0 / self.noise_multiplier

    def profile(self, epsilon: Array) -> Array:
        """Return dG(mu, epsilon)."""
        return gaussian_delta(self.gaussian_mu(), epsilon)

    def renyi(self, orders: Array) -> Array:
        """Return order * mu^2 / 2 (docs/proofs/events.md, section 3)."""
        return orders * self.gaussian_mu() ** 2 / 2


@dataclass(frozen=True)
class SampledGaussian(Event):
    """Gaussian noise on a sum over a Poisson sample of the records.

    Contract: each record is in the sample with probability ``sampling_rate``, independently of
    all others and afresh for every release; the sum over the sample has L2 sensitivity S for
    adding or removing one record; noise_std = noise_multiplier * S. Fixed-size or shuffled
    batches are NOT this event.

    Guarantee: the pair (1-q) N(0, z^2) + q N(1, z^2) against N(0, z^2) dominates, in both
    directions (Zhu, Dong and Wang 2022). Only for ADD_REMOVE.

    Examples
    --------
    >>> from tacit.privacy import Guarantee, Repeated, SampledGaussian
    >>> steps = Repeated(SampledGaussian(noise_multiplier=4.0, sampling_rate=0.01), 10_000)
    >>> round(Guarantee(steps).epsilon(1e-5), 3)
    0.947
    """

    kind = "sampled_gaussian"

    noise_multiplier: float
    sampling_rate: float
    relation: Relation = Relation.ADD_REMOVE

    def __post_init__(self) -> None:
        self._check(noise_multiplier=_ZERO_NOISE)
        rate = checks.real("sampling_rate", self.sampling_rate)
        if not 0.0 < rate <= 1.0:
            raise ValueError(
                f"sampling_rate must be in (0, 1], got {rate!r}: it is the probability with "
                "which each record enters a batch; use expected batch size / number of records."
            )
        check_add_remove(self)

    def gaussian_mu(self) -> float | None:
        """Return mu if every record is in every batch, else None."""
        return 1.0 / self.noise_multiplier if self.sampling_rate == 1.0 else None

    def renyi(self, orders: Array) -> Array:
        """Return the bound of docs/proofs/events.md, section 4."""
        if self.sampling_rate == 1.0:
            return orders / (2 * self.noise_multiplier**2)
        return sampled_gaussian_renyi(self.sampling_rate, self.noise_multiplier, orders)

    def loss_distribution(self, interval: float) -> PrivacyLossDistribution:
        """Return dp-accounting's distribution of the dominating pair, for one release."""
        from dp_accounting.pld import privacy_loss_distribution

        return privacy_loss_distribution.from_gaussian_mechanism(
            self.noise_multiplier,
            value_discretization_interval=interval,
            sampling_prob=self.sampling_rate,
            log_mass_truncation_bound=float(np.log(1e-22)),
        )


@dataclass(frozen=True)
class SmoothGaussian(Event):
    """A number f plus (margin + N(0, 1)) * noise_multiplier * S, S its smooth sensitivity.

    Contract: between neighbours f moves by at most min(S, S'), and S by a factor within
    exp(+-smoothness). ``margin``, in standard deviations of the noise, is added so that the
    released number is below f with probability Phi(-margin) only.

    Guarantee (docs/proofs/pate.md, section 5), z the multiplier, b the smoothness, m the margin:

        renyi(a) = a (1 + m z (e^b - 1))^2 / (2 z^2 (a - (a-1) e^2b))
                   - (log(1 - a + a e^-2b) / 2 + a b) / (a - 1)      where (a-1) e^2b < a

    and no bound at other orders.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.privacy import SmoothGaussian
    >>> SmoothGaussian(20.0, 0.01).renyi(np.array([10.0, 100.0])).round(4)
    array([0.0164,    inf])
    """

    kind = "smooth_gaussian"

    noise_multiplier: float
    smoothness: float
    margin: float = 0.0
    relation: Relation = Relation.ADD_REMOVE

    def __post_init__(self) -> None:
        self._check(noise_multiplier=_ZERO_NOISE, smoothness="pass the bound of the sensitivity.")
        checks.at_least("margin", self.margin, 0.0)

    def renyi(self, orders: Array) -> Array:
        """Return the divergence of two Gaussians of different width, at their most different."""
        a, z, b = orders, self.noise_multiplier, self.smoothness
        room = 1.0 - (a - 1) * math.expm1(2 * b)  # a - (a-1) e^2b
        inside = np.maximum(room, 1e-300)
        growth = 1.0 + self.margin * z * math.expm1(b)
        means = a * growth**2 / (2 * z**2 * inside)
        # 1 - a + a e^-2b = e^-2b (a - (a-1) e^2b)
        widths = ((1 - a) * b - np.log(inside) / 2) / (a - 1)
        result: Array = np.where(room > 1e-12, means + widths, np.inf)
        return result
