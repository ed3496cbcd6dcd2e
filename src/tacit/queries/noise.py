"""Add noise to a total, and split one budget into the noise of several queries.

Nothing is drawn here. `GaussianNoise`, `LaplaceNoise` and `SphereNoise` state the cost of noise and
call the mechanism that draws it: `noise/gaussian.py`, `noise/laplace.py` and `noise/sphere.py`.

Shares are of epsilon for a pure budget, else of mu^2. They are computed as exact fractions, and
every result is rounded towards more noise: the parts cost no more than the whole in exact
arithmetic.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction

from tacit.noise import Release, Source
from tacit.noise.bounded import Bounded
from tacit.noise.exact.lattice import Ahead
from tacit.noise.gaussian import gaussian
from tacit.noise.laplace import laplace
from tacit.noise.sphere import sphere
from tacit.privacy import (
    Budget,
    Composed,
    Event,
    Gaussian,
    NonPrivate,
    PureEpsilon,
    SampledGaussian,
)
from tacit.privacy.accounting.calibration import gaussian_multiplier, least_noise
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
    >>> from tacit.queries import Count, Facts
    >>> from tacit.queries.noise import GaussianNoise, NoisySum
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


# Shares such as ten times 0.1 may add up to slightly more than 1: all are scaled down equally.
_ROUNDED = 1e-9

Shares = Mapping[str, float | None]


def split_budget(budget: Budget, shares: Shares) -> dict[str, Noise]:
    """Return the noise of each part of a budget.

    Gaussian noises of multipliers z_i cost as much as one of multiplier z if 1 / z^2 is the sum of
    the 1 / z_i^2: a share s gets z_i = z / sqrt(s). Pure epsilons add up: a share s gets s epsilon.

    Parameters
    ----------
    budget
        A finite budget; with a delta the noise is Gaussian, without it sphere noise.
    shares
        Shares of mu^2, or of epsilon, by name. One may be None and gets the rest. Parts of share 0
        are left out.

    Returns
    -------
    dict
        The noise by name, in the order of ``shares``.

    Notes
    -----
    **Guarantee** (docs/proofs/events.md, section 3). The events of all parts together cost no more
    than the budget, in exact arithmetic: epsilons are rounded down and multipliers up, from
    fractions.

    Examples
    --------
    >>> from tacit.privacy import Budget
    >>> from tacit.queries.noise import split_budget
    >>> split_budget(Budget(1.0), {"count": 0.25, "sum": None})
    {'count': SphereNoise(epsilon=0.25), 'sum': SphereNoise(epsilon=0.75)}
    """
    if budget.is_pure:
        epsilons = split_epsilon(budget.epsilon, shares)
        return {name: SphereNoise(epsilon) for name, epsilon in epsilons.items()}
    return dict(split_gaussian(budget, shares))


def split_gaussian(budget: Budget, shares: Shares) -> dict[str, GaussianNoise]:
    """Split a budget with a delta, like `split_budget`.

    Each multiplier is the least double z_i with s_i z_i^2 >= z^2, so that the 1 / z_i^2 add up to
    at most 1 / z^2.
    """
    return gaussian_parts(GaussianNoise(_finite(gaussian_multiplier(budget))), shares)


def gaussian_parts(whole: GaussianNoise, shares: Shares) -> dict[str, GaussianNoise]:
    """Split one Gaussian release into several, by shares of its mu^2, like `split_gaussian`.

    Examples
    --------
    >>> from tacit.queries.noise import GaussianNoise, gaussian_parts
    >>> gaussian_parts(GaussianNoise(3.0), {"a": 0.25, "b": 0.5})["a"]
    GaussianNoise(multiplier=6.0)
    """
    parts, z = _fractions(shares), Fraction(whole.multiplier)
    return {name: GaussianNoise(_root_above(z**2 / share)) for name, share in parts.items()}


def split_epsilon(epsilon: float, shares: Shares) -> dict[str, float]:
    """Return parts of a pure epsilon, for any noise: each s_i epsilon, rounded down."""
    whole = Fraction(_finite(epsilon))
    parts = {name: share * whole for name, share in _fractions(shares).items()}
    return {name: _below(part) for name, part in parts.items()}


def gaussian_rest(
    whole: GaussianNoise, others: Iterable[GaussianNoise] = (), *, times: int = 1
) -> GaussianNoise:
    """Return the noise of each of several releases that fit into one, beside other queries.

        times / rest^2 <= 1 / whole^2 - sum of 1 / asked^2,   exactly, and nearly equal

    Examples
    --------
    >>> from tacit.queries.noise import GaussianNoise
    >>> from tacit.queries.noise import gaussian_rest
    >>> gaussian_rest(GaussianNoise(3.0), times=4)
    GaussianNoise(multiplier=6.0)
    """
    left = 1 / Fraction(whole.multiplier) ** 2
    left -= sum(1 / Fraction(noise.multiplier) ** 2 for noise in others)
    if left <= 0:
        raise ValueError(f"nothing is left of {whole}; ask less, or with more noise.")
    return GaussianNoise(_root_above(times / left))


def least_rest(
    family: Callable[[float], Event], budget: Budget, parts: Iterable[Event], *, guess: float
) -> float:
    """Return the least noise of a release that fits into a budget beside its parts.

    ``family`` maps noise to the event of the release. The events are composed exactly, which may
    leave more than a share would. `tacit.privacy.calibrate` has the guarantee.
    """
    given = tuple(parts)
    return least_noise(lambda noise: Composed((family(noise), *given)), budget, guess=guess)


def _fractions(shares: Shares) -> dict[str, Fraction]:
    """Return the shares above 0 as exact fractions that sum to at most 1; None gets the rest."""
    given = {name: Fraction(share) for name, share in shares.items() if share is not None}
    missing = [name for name, share in shares.items() if share is None]
    total = sum(given.values(), Fraction(0))
    if len(missing) > 1 or any(share < 0 for share in given.values()):
        raise ValueError(f"shares must be 0 or more, and one may be None, got {dict(shares)}.")
    # The rest of shares whose sum rounds to 1 would be noise alone.
    if total > 1 + _ROUNDED or (missing and float(total) >= 1.0):
        raise ValueError(
            f"the shares {dict(shares)} are together more than the budget; lower them, so that "
            f"something is left{' for ' + missing[0] if missing else ''}."
        )
    used = {name: given.get(name, 1 - total) / max(total, Fraction(1)) for name in shares}
    return {name: share for name, share in used.items() if share > 0}


def _finite(whole: float) -> float:
    if not 0.0 < whole < math.inf:
        raise ValueError("an infinite budget has no noise to divide; pass a finite epsilon.")
    return whole


def _root_above(square: Fraction) -> float:
    """Return the least double whose square, in real numbers, is at least ``square``."""
    root = math.sqrt(square)
    while Fraction(root) ** 2 >= square:
        root = math.nextafter(root, 0.0)
    while Fraction(root) ** 2 < square:
        root = math.nextafter(root, math.inf)
    return root


def _below(value: Fraction) -> float:
    """Return the greatest double that is at most ``value``."""
    rounded = float(value)
    return rounded if Fraction(rounded) <= value else math.nextafter(rounded, 0.0)
