"""A total with additive noise: Gaussian, or on a sphere for a pure epsilon."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tacit.noise import Bounded, Norm, Release, Source, gaussian, sphere
from tacit.privacy import Event, Gaussian, PureEpsilon, Relation
from tacit.queries.base import Array, Facts, Statistic, View


@dataclass(frozen=True)
class GaussianNoise:
    """Normal noise on every number; ``multiplier`` is its standard deviation in sensitivities."""

    multiplier: float

    def event(self, relation: Relation) -> Event:
        """Return the cost of adding it to a value of the stated sensitivity."""
        return Gaussian(self.multiplier, relation)

    def std(self, sensitivity: float) -> float:
        """Return the standard deviation of the noise."""
        return self.multiplier * sensitivity

    def added(self, bounded: Bounded, source: Source) -> Release[float | Array]:
        """Return the value with noise."""
        return gaussian(bounded, self.multiplier, source)


@dataclass(frozen=True)
class SphereNoise:
    """Noise of a random direction and a Gamma length, for a pure epsilon."""

    epsilon: float

    def event(self, relation: Relation) -> Event:
        """Return the cost of adding it to a value of the stated sensitivity."""
        return PureEpsilon(self.epsilon, relation)

    def std(self, sensitivity: float) -> float:
        """Return NaN: its numbers are not normal, and nobody asks."""
        return math.nan

    def added(self, bounded: Bounded, source: Source) -> Release[float | Array]:
        """Return the value with noise."""
        return sphere(bounded, self.epsilon, source)


Noise = GaussianNoise | SphereNoise


@dataclass(frozen=True)
class NoisySum:
    """A total over records, released with noise in proportion to its sensitivity.

    Parameters
    ----------
    statistic
        What is added up.
    noise
        `GaussianNoise` or `SphereNoise`; its event is what asking costs.

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
        """Return what asking costs."""
        return self.noise.event(facts.relation)

    def noise_std(self, facts: Facts) -> float:
        """Return the standard deviation of the noise on a number."""
        return self.noise.std(self.statistic.sensitivity(facts).value)

    def answer(self, view: View, facts: Facts, source: Source) -> Release[float | Array]:
        """Return the total with noise."""
        stated = self.statistic.sensitivity(facts)
        assert stated.norm is Norm.L2, "both kinds of noise are calibrated to L2"
        bounded = Bounded(self.statistic.total(view), stated.value, stated.norm, facts.relation)
        return self.noise.added(bounded, source)
