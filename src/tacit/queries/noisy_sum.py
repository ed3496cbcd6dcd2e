"""Add noise to a total: Gaussian noise, or Laplace or sphere noise for a pure epsilon."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from tacit.noise import Release, Source
from tacit.noise.bounded import Bounded
from tacit.noise.exact.lattice import Ahead
from tacit.noise.gaussian import gaussian
from tacit.noise.laplace import laplace
from tacit.noise.sphere import sphere
from tacit.privacy import Event, Gaussian, NonPrivate, PureEpsilon, SampledGaussian
from tacit.queries.base import Array, Facts, Private, Statistic


@dataclass(frozen=True)
class GaussianNoise:
    """Normal noise on every number; ``multiplier`` is its std over the sensitivity."""

    multiplier: float

    def event(self, facts: Facts) -> Event:
        """Return the cost of adding it to a value of the stated sensitivity.

        For a Poisson sample the sensitivity is stated on all records, and the event has the rate.
        """
        if facts.sampling_rate is not None:
            return SampledGaussian(self.multiplier, facts.sampling_rate, facts.relation)
        return Gaussian(self.multiplier, facts.relation)

    def std(self, sensitivity: float) -> float:
        """Return the standard deviation of the noise."""
        return self.multiplier * sensitivity

    def added(self, bounded: Bounded, source: Source) -> Release[float | Array]:
        """Return the value with noise."""
        return gaussian(bounded, self.multiplier, source)


@dataclass(frozen=True)
class LaplaceNoise:
    """Laplace noise on every number, for a pure epsilon; the sensitivity must be in L1."""

    epsilon: float

    def event(self, facts: Facts) -> Event:
        """Return the cost of adding it to a value of the stated sensitivity."""
        return _pure(self.epsilon, facts)

    def std(self, sensitivity: float) -> float:
        """Return the standard deviation of the noise."""
        return math.sqrt(2.0) * sensitivity / self.epsilon

    def added(self, bounded: Bounded, source: Source) -> Release[float | Array]:
        """Return the value with noise."""
        return laplace(bounded, self.epsilon, source)


@dataclass(frozen=True)
class SphereNoise:
    """Noise of random direction and Gamma-distributed norm, for a pure epsilon."""

    epsilon: float

    def event(self, facts: Facts) -> Event:
        """Return the cost of adding it to a value of the stated sensitivity."""
        return _pure(self.epsilon, facts)

    def std(self, sensitivity: float) -> float:
        """Return NaN: entries are not normal, and no caller needs their standard deviation."""
        return math.nan

    def added(self, bounded: Bounded, source: Source) -> Release[float | Array]:
        """Return the value with noise."""
        return sphere(bounded, self.epsilon, source)


Noise = GaussianNoise | LaplaceNoise | SphereNoise


def _pure(epsilon: float, facts: Facts) -> Event:
    if facts.sampling_rate is not None:
        raise ValueError("a Poisson sample needs Gaussian noise: no other noise is accounted for.")
    return PureEpsilon(epsilon, facts.relation)


@dataclass(frozen=True)
class NoisySum:
    """A total over records, released with noise in proportion to its sensitivity.

    Parameters
    ----------
    statistic
        The statistic.
    noise
        `GaussianNoise`, `LaplaceNoise` or `SphereNoise`; its event is the cost of asking.

    Examples
    --------
    >>> from tacit.privacy import Relation
    >>> from tacit.queries import Count, Facts, GaussianNoise, NoisySum
    >>> from tacit.records import Bounds
    >>> facts = Facts(Bounds(), 3, Relation.ADD_REMOVE)
    >>> NoisySum(Count(), GaussianNoise(5.0)).event(facts)
    Gaussian(noise_multiplier=5.0, relation=<Relation.ADD_REMOVE: 'add_remove'>)
    """

    statistic: Statistic
    noise: Noise

    def event(self, facts: Facts) -> Event:
        """Return the cost of asking."""
        return self.noise.event(facts)

    def noise_std(self, facts: Facts) -> float:
        """Return the standard deviation of the noise on an entry."""
        return self.noise.std(self.statistic.sensitivity(facts).value)

    def answer(
        self, records: Private, facts: Facts, source: Source, noise: Ahead | None = None
    ) -> Release[float | Array]:
        """Return the total with noise, which may have been drawn in advance."""
        stated = self.statistic.sensitivity(facts)
        total = self.statistic.total(records, facts)
        bounded = Bounded(total, stated.value, stated.norm, facts.relation)
        if noise is None:
            released = self.noise.added(bounded, source)
        else:
            assert isinstance(self.noise, GaussianNoise), "no other noise is drawn ahead"
            released = gaussian(bounded, self.noise.multiplier, ahead=noise)
        if facts.sampling_rate is None:
            return released
        event = price_of_drawn(released.event, lambda z: GaussianNoise(z).event(facts))
        return Release(released.value, event)


def price_of_drawn(drawn: Event, price: Callable[[float], Event]) -> Event:
    """Return the price of Gaussian noise, by the multiplier of the draw; void stays void."""
    bare = drawn.would_be if isinstance(drawn, NonPrivate) else drawn
    assert isinstance(bare, Gaussian), "no other noise has a price by its multiplier"
    found = price(bare.noise_multiplier)
    if isinstance(drawn, NonPrivate):
        return NonPrivate(drawn.reason, would_be=found, relation=found.relation)
    return found
