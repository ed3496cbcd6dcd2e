"""Gaussian noise, once or on a Poisson sample."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tacit import checks
from tacit.privacy.events.base import Array, Event
from tacit.privacy.gaussian_profile import gaussian_delta
from tacit.privacy.relation import Relation, checked_relation
from tacit.privacy.sampled_gaussian import sampled_gaussian_renyi

if TYPE_CHECKING:
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

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
        checks.keep_plain_numbers(self)
        checks.positive("noise_multiplier", self.noise_multiplier, remedy=_ZERO_NOISE)
        checked_relation(self.relation)

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
        checks.keep_plain_numbers(self)
        checks.positive("noise_multiplier", self.noise_multiplier, remedy=_ZERO_NOISE)
        rate = checks.real("sampling_rate", self.sampling_rate)
        if not 0.0 < rate <= 1.0:
            raise ValueError(
                f"sampling_rate must be in (0, 1], got {rate!r}: it is the probability with "
                "which each record enters a batch; use expected batch size / number of records."
            )
        if not checked_relation(self.relation).adds_or_removes:
            raise ValueError(
                "SampledGaussian is proved for Relation.ADD_REMOVE only; account under "
                "ADD_REMOVE, then convert the guarantee with replace_from_add_remove."
            )

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
