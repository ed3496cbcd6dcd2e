"""Convert composed events to epsilon and delta by several routes, tightest first.

Each route is sound on its own. A guarantee takes the least epsilon of the applicable routes. An
exact route ends the search, since no sound route can be tighter.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

import numpy as np

from tacit.arrays import Array
from tacit.privacy.accounting.gaussian_profile import gaussian_epsilon, log_gaussian_delta
from tacit.privacy.accounting.loss_distribution import (
    GaussianAtoms,
    Leaves,
    composed,
    fits_a_grid,
    gaussian_atoms,
    good_interval,
)
from tacit.privacy.accounting.root_finding import decreasing_root
from tacit.privacy.events.base import Event

if TYPE_CHECKING:
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution


# Contains every order that is best for an epsilon from 0.01 to 50 and a delta from 1e-12 to 1e-2.
INTEGER_ORDERS: Array = np.unique(
    np.concatenate([np.arange(2, 64), np.geomspace(64, 8192, 30)]).round()
)
ORDERS: Array = np.unique(np.concatenate([1 + np.geomspace(1e-3, 1, 60)[:-1], INTEGER_ORDERS]))

# With more cases than this, one route through the greatest profile replaces a route per case.
_MOST_CASES = 64


# Exceeds the rounding of a few operations.
_ROUNDED_DOWN = 1.0 - 2.0**-50


class Route(Protocol):
    """A sound view of composed events as epsilon and delta."""

    @property
    def name(self) -> str:
        """Name of the route in statements."""

    def epsilon(self, delta: float) -> float:
        """Return the least epsilon the route proves at delta."""

    def delta(self, epsilon: float) -> float:
        """Return the least delta the route proves at epsilon >= 0."""


@dataclass(frozen=True)
class NoPromise:
    """A release without protection."""

    name = "none: the release is not private"

    def epsilon(self, delta: float) -> float:
        """Return infinity."""
        return math.inf

    def delta(self, epsilon: float) -> float:
        """Return 1."""
        return 1.0


@dataclass(frozen=True)
class GaussianRoute:
    """Gaussian mechanisms compose exactly: mu^2 = sum of mu_i^2 (docs/proofs/events.md, 3)."""

    mu: float
    name = "exact Gaussian composition"

    def epsilon(self, delta: float) -> float:
        """Return the exact epsilon."""
        return gaussian_epsilon(self.mu, delta)

    def delta(self, epsilon: float) -> float:
        """Return the exact delta."""
        return math.exp(log_gaussian_delta(self.mu, epsilon))


@dataclass(frozen=True)
class ProfileRoute:
    """One event, whose profile is known in closed form."""

    event: Event
    name = "closed form"

    def epsilon(self, delta: float) -> float:
        """Return the least epsilon with profile(epsilon) <= delta, rounded up."""
        pure = self.event.pure_epsilon()
        return pure if delta == 0.0 else min(_least_epsilon(self.delta, delta), pure)

    def delta(self, epsilon: float) -> float:
        """Return the profile at epsilon."""
        at = self.event.profile(np.array([epsilon], dtype=np.float64))
        return 1.0 if at is None else float(at[0])


@dataclass(frozen=True)
class ProfileAndGaussiansRoute:
    """One event with a profile h, once, and Gaussians of total mu: delta(e) = E h(e - L).

    L ~ N(mu^2/2, mu^2) is rounded up to atoms (docs/proofs/events.md, section 11).
    """

    event: Event
    mu: float
    name = "closed form and Gaussians"

    @cached_property
    def atoms(self) -> GaussianAtoms:
        """The privacy loss of the Gaussians."""
        return gaussian_atoms(self.mu, _tail_mu(self.event))

    def epsilon(self, delta: float) -> float:
        """Return the least epsilon whose delta is within ``delta``, rounded up."""
        return math.inf if delta == 0.0 else _least_epsilon(self.delta, delta)

    def delta(self, epsilon: float) -> float:
        """Return the sum over atoms plus the mass at infinity."""
        at = self.event.profile(epsilon - self.atoms.losses)
        if at is None:
            return 1.0
        return min(float(self.atoms.masses @ at) + self.atoms.at_infinity, 1.0)


@dataclass(frozen=True)
class PureRoute:
    """Pure epsilons add up."""

    total: float
    name = "pure composition"

    def epsilon(self, delta: float) -> float:
        """Return the sum at any delta."""
        return self.total

    def delta(self, epsilon: float) -> float:
        """Return 0 from the sum on, and randomised response's delta below it."""
        if epsilon >= self.total:
            return 0.0
        return -math.expm1(epsilon - self.total) / (1.0 + math.exp(-self.total))


@dataclass(frozen=True)
class RenyiRoute:
    """Renyi divergences add up, and convert to epsilon at the best order.

    epsilon = r(a) + log(1 - 1/a) - log(delta a) / (a - 1)     (docs/proofs/events.md, section 8)
    """

    leaves: Leaves
    name = "Renyi"

    @cached_property
    def curve(self) -> tuple[Array, Array]:
        """Orders and the summed divergence at each."""
        total = np.zeros_like(ORDERS)
        for event, count in self.leaves:
            total += count * renyi_of(event, ORDERS)
        return ORDERS, total

    def epsilon(self, delta: float) -> float:
        """Return the least epsilon over all orders."""
        if delta == 0.0:
            return math.inf
        a, r = self.curve
        candidates = r + np.log1p(-1 / a) - np.log(delta * a) / (a - 1)
        return max(float(np.min(candidates)), 0.0)

    def delta(self, epsilon: float) -> float:
        """Return the least delta over all orders."""
        a, r = self.curve
        log_delta = (a - 1) * (r - epsilon + np.log1p(-1 / a)) - np.log(a)
        return math.exp(min(float(np.min(log_delta)), 0.0))


@dataclass(frozen=True)
class LossDistributionRoute:
    """Privacy-loss distributions are convolved, on a grid that rounds losses up.

    Fourier transforms leave an absolute error in delta, of either sign, of about 2^-53 per
    composition. Four times that error is charged. A smaller delta cannot be proved here.
    """

    leaves: Leaves
    interval: float
    name = "privacy-loss distribution"

    @property
    def charge(self) -> float:
        """Bound on the error of the float convolutions."""
        return sum(n for _, n in self.leaves) * 2.0**-51

    @cached_property
    def distribution(self) -> PrivacyLossDistribution:
        """The composed distribution."""
        return composed(self.leaves, self.interval)

    def epsilon(self, delta: float) -> float:
        """Return dp-accounting's epsilon for delta, less the charge."""
        if delta <= self.charge:
            return math.inf
        delta -= self.charge
        return max(float(self.distribution.get_epsilon_for_delta(delta)), 0.0)

    def delta(self, epsilon: float) -> float:
        """Return dp-accounting's delta for epsilon, plus the charge."""
        delta = float(self.distribution.get_delta_for_epsilon(epsilon))
        return min(max(delta, 0.0) + self.charge, 1.0)


@dataclass(frozen=True)
class WorstPartRoute:
    """Neighbours differ in one of several disjoint parts: the worst case counts.

    Each case is the releases of one part together with those from all records, by its best route
    (docs/proofs/events.md, section 12).
    """

    parts: tuple[tuple[Route, ...], ...]
    name = "worst of disjoint parts"

    def epsilon(self, delta: float) -> float:
        """Return the greatest of the parts' epsilons."""
        return max(min(route.epsilon(delta) for route in routes) for routes in self.parts)

    def delta(self, epsilon: float) -> float:
        """Return the greatest of the parts' deltas."""
        return max(min(route.delta(epsilon) for route in routes) for routes in self.parts)


@dataclass(frozen=True)
class LeakyRoute:
    """Rare leaks of probabilities p_i beside other events of profile d.

    delta(e) = p + (1 - p) d(e),  p = 1 - product of (1 - p_i)  (docs/proofs/events.md, section 13)
    """

    rest: Route
    leak: float

    @property
    def name(self) -> str:
        """Name of the route in statements."""
        return f"{self.rest.name}, plus the probability of rare leaks"

    def epsilon(self, delta: float) -> float:
        """Return the epsilon of the other events at the delta that the leaks leave."""
        left = (delta - self.leak) / (1.0 - self.leak) * _ROUNDED_DOWN
        return math.inf if left < 0.0 else self.rest.epsilon(left)

    def delta(self, epsilon: float) -> float:
        """Return p + (1 - p) d(e), rounded up."""
        rest = self.rest.delta(epsilon)
        return min((self.leak + (1.0 - self.leak) * rest) / _ROUNDED_DOWN, 1.0)


def renyi_of(event: Event, orders: Array) -> Array:
    """Return an event's Renyi divergence at each order; raise if one is NaN."""
    curve = event.renyi(orders)
    if np.isnan(curve).any():
        worst = orders[np.isnan(curve)][0]
        raise ArithmeticError(
            f"the Renyi divergence of {type(event).__name__} is NaN at order {worst:g}, which "
            "bounds nothing: the event is refused. Its renyi must return a number at every order "
            "above 1, math.inf where no bound is known."
        )
    return curve


def routes_for(leaves: Leaves) -> tuple[Route, ...]:
    """Return the sound routes to compare; only one if it is exact."""
    if any(event.reasons_void() for event, _ in leaves):
        return (NoPromise(),)
    rest = [(event, n) for event, n in leaves if event.leak() is None]
    if len(rest) < len(leaves):
        others_than_leaks = routes_for(rest) if rest else (PureRoute(0.0),)
        return tuple(LeakyRoute(route, _leak_of(leaves)) for route in others_than_leaks)
    others = [(event, n) for event, n in leaves if event.gaussian_mu() is None]
    if not others:
        return (GaussianRoute(_gaussian_mu(leaves)),)
    split = [event for event, n in leaves if n == 1 and event.parts()]
    if split and math.prod(len(event.parts()) for event in split) <= _MOST_CASES:
        return (_worst_part(split[0], leaves),)
    if len(leaves) == 1 and leaves[0][1] == 1 and _has_profile(leaves[0][0]):
        return (ProfileRoute(leaves[0][0]),)
    # Neither always wins: the exponential mechanism has a tighter Renyi curve than distribution.
    routes: list[Route] = [RenyiRoute(leaves)]
    if len(others) == 1 and others[0][1] == 1 and _has_profile(others[0][0]):
        # No convolution, and never looser than the loss distribution of one profile. Where orders
        # differ, that of both can be tighter beside a large Gaussian; plans have small ones.
        routes.insert(0, ProfileAndGaussiansRoute(others[0][0], _gaussian_mu(leaves)))
    elif all(_has_distribution(event) for event, _ in leaves):
        interval = good_interval(leaves)
        if all(fits_a_grid(event, interval) for event, _ in leaves):
            routes.insert(0, LossDistributionRoute(leaves, interval))
    pure = sum(n * event.pure_epsilon() for event, n in leaves)
    if math.isfinite(pure):
        routes.append(PureRoute(pure))
    return tuple(routes)


def _worst_part(split: Event, leaves: Leaves) -> WorstPartRoute:
    """Return one case for each part of ``split``: its releases, and all other leaves."""
    others = [leaf for leaf in leaves if leaf[0] != split]
    parts = dict.fromkeys(split.parts())
    return WorstPartRoute(
        tuple(routes_for(merged((*others, *part.leaves()))) for part in parts),
    )


def merged(leaves: Iterable[tuple[Event, int]]) -> Leaves:
    """Return the leaves with equal ones merged, so that each is evaluated once."""
    total: Counter[Event] = Counter()
    for leaf, n in leaves:
        total[leaf] += n
    return tuple(total.items())


def _gaussian_mu(leaves: Leaves) -> float:
    mus = [(event.gaussian_mu(), n) for event, n in leaves]
    return math.sqrt(sum(n * mu**2 for mu, n in mus if mu is not None))


def _leak_of(leaves: Leaves) -> float:
    """Return the probability that any of the leaks happens, rounded up."""
    none = sum(n * math.log1p(-(event.leak() or 0.0)) for event, n in leaves)
    return min(-math.expm1(none) / _ROUNDED_DOWN, 1.0 - 2.0**-53)


def _tail_mu(event: Event) -> float:
    """Return mu of the Gaussian whose Renyi curve, mu^2 a / 2, rises as the event's near 1e4."""
    order = 1e4
    low, high = renyi_of(event, np.array([order, 2 * order])).tolist()
    return math.sqrt(2 * (high - low) / order) if low < high < math.inf else 0.0


def _least_epsilon(delta_of: Callable[[float], float], delta: float) -> float:
    """Return the least epsilon >= 0 with delta_of(epsilon) <= delta > 0, rounded up."""
    if delta_of(0.0) <= delta:
        return 0.0

    def excess(e: float) -> float:
        at = delta_of(e)
        if math.isnan(at):
            raise ArithmeticError(f"a profile is NaN at epsilon {e}: refusing to guess.")
        return math.log(at / delta) if at > 0.0 else -math.inf

    return decreasing_root(excess, 1.0)


def _has_profile(event: Event) -> bool:
    return event.profile(np.zeros(1)) is not None


def _has_distribution(event: Event) -> bool:
    if event.parts():
        return all(_has_distribution(leaf) for part in event.parts() for leaf, _ in part.leaves())
    overridden = type(event).loss_distribution is not Event.loss_distribution
    return overridden or _has_profile(event)
