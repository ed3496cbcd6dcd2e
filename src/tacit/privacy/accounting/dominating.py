"""The mu of a Gaussian mechanism that dominates an event of any kind.

A filter that adds up mu^2 needs one for every event. Here it follows from upper bounds of delta in
the two orders of neighbours, at some 250 epsilons (docs/proofs/ledger.md, section 8):

1. All points, and the reflections of the other order's points, lie above the true profile. It is
   convex in alpha = exp(epsilon), so it lies below their lower convex hull.
2. An edge of the hull, b - s alpha, is a test that is right with probability b under the first law
   and wrong with probability s under the second. The profile of a Gaussian mechanism of mu is above
   the edge if and only if Phi^-1(b) - Phi^-1(s) <= mu. So mu is the greatest over the edges.
3. What is above the last epsilon, at most ``leak``, is charged as a leak.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from scipy.special import ndtri

from tacit.arrays import Integers
from tacit.privacy.accounting.composition import LossDistributionRoute, merged, routes_for
from tacit.privacy.accounting.gaussian_profile import gaussian_delta, mu_of_pure
from tacit.privacy.accounting.loss_distribution import lower_hull, points_of
from tacit.privacy.accounting.root_finding import decreasing_root
from tacit.privacy.events import Repeated
from tacit.privacy.events.base import Array, Event

# From epsilons >= 0 to delta in each order: first with the record in the first law, then without.
Profiles = Callable[[Array], tuple[Array, Array]]

_N_EACH = 125  # points on a geometric and on a linear grid
# For a reserve price, which is the difference of two nearly equal mu^2.
_N_EACH_OF_RESERVE = 300
_NEAREST = 1e-4  # the least epsilon of the geometric grid, in parts of the greatest
_PROFILE_DIGITS = 1.0 + 1e-8  # profiles keep nine digits
_ROUNDED_UP = 1.0 + 1e-9
_FARTHEST = 300.0  # an epsilon whose exponential, squared, is still a double
_MOST_CONVOLVED = 2**20  # of one event: more are not convolved, and Renyi divergences decide
LEAST = 5e-324  # an event so small that floats lose its price is not free


@dataclass(frozen=True)
class Price:
    """The cost of an event in mu^2, and the probability with which it may reveal anything."""

    squared_mu: float
    leak: float = 0.0


@dataclass(frozen=True, eq=False)
class Hull:
    """A pair of discrete laws that dominates an event: the convex hull of points of its profiles.

    Parameters
    ----------
    losses
        log alpha at the corners, rising.
    first, second
        Mass of each loss under the law with the record, and under the law without.
    mu
        Of the least Gaussian mechanism that dominates the pair, but for ``leak``.
    leak
        Probability of an infinite loss, in either order.
    """

    losses: Array
    first: Array
    second: Array
    mu: float
    leak: float

    def beside(self, mu: float) -> Profiles:
        """Return the profiles of the pair together with a Gaussian mechanism of mu."""

        def profiles(epsilon: Array) -> tuple[Array, Array]:
            e = epsilon[:, None]
            with_record = gaussian_delta(mu, e - self.losses) @ self.first
            without = gaussian_delta(mu, e + self.losses) @ self.second
            return (
                np.minimum(with_record + self.leak, 1.0),
                np.minimum(without + self.leak, 1.0),
            )

        return profiles

    def delta_beside(self, mu: float, epsilon: float) -> float:
        """Return delta of the pair together with a Gaussian mechanism, in the worse order."""
        each = self.beside(mu)(np.array([epsilon]))
        return float(max(each[0][0], each[1][0])) * _PROFILE_DIGITS


def hull_of(profiles: Profiles, leak: float, n_each: int = _N_EACH) -> Hull:
    """Return the pair through the points of two profiles, with at most ``leak`` beyond them.

    Raises
    ------
    ArithmeticError
        If a profile is NaN, which bounds nothing, or if losses are beyond any budget.
    """
    far = _farthest(profiles, leak)
    if far > _FARTHEST:
        raise ArithmeticError(f"losses of {far:g} are beyond any budget: the event has no price.")
    epsilon = _grid(far, n_each)
    with_record, without = (_inflated(deltas) for deltas in profiles(epsilon))
    # Both bound the same total variation.
    with_record[0] = without[0] = min(with_record[0], without[0])
    beyond = float(max(with_record[-1], without[-1]))
    return _Edges(epsilon, with_record, without, beyond).hull


def _inflated(deltas: Array) -> Array:
    """Return deltas rounded up and made falling, before they are reflected."""
    if np.isnan(deltas).any():
        raise ArithmeticError("a profile is NaN, which bounds nothing: the event has no price.")
    raised = np.minimum(deltas * _PROFILE_DIGITS, 1.0)
    falling: Array = np.maximum.accumulate(raised[::-1])[::-1]
    return falling


def _farthest(profiles: Profiles, leak: float) -> float:
    """Return an epsilon from which on delta is at most ``leak`` in both orders."""

    def excess(e: float) -> float:
        at = max(float(each[0]) for each in profiles(np.array([e])))
        if math.isnan(at):
            raise ArithmeticError("a profile is NaN, which bounds nothing: the event has no price.")
        return math.log(at / leak) if at > 0.0 else -1e6

    if excess(0.0) <= 0.0:
        return 0.0
    return decreasing_root(excess, 1.0, 1e-3)


def _grid(far: float, n_each: int) -> Array:
    if far == 0.0:
        return np.zeros(1)
    geometric = np.geomspace(_NEAREST * far, far, n_each)
    linear = np.linspace(0.0, far, n_each + 1)
    return np.unique(np.concatenate([geometric, linear]))


@dataclass(frozen=True, eq=False)
class _Edges:
    """The lower hull of (alpha, own) and (1/alpha, 1 - 1/alpha + other/alpha), edge by edge.

    An edge left of alpha = 1 is looked at from the other order, where it is the edge (1 - s, 1 - b)
    right of 1: so small probabilities keep their digits.
    """

    epsilon: Array
    own: Array
    other: Array
    leak: float

    @cached_property
    def corners(self) -> Integers:
        """Places of corners in -n ... n; a negative place is a reflection."""
        n = len(self.epsilon) - 1
        x = np.concatenate([-self.epsilon[:0:-1], self.epsilon])
        y = np.concatenate(
            [
                -np.expm1(-self.epsilon[:0:-1]) + np.exp(-self.epsilon[:0:-1]) * self.other[:0:-1],
                self.own,
            ]
        )
        return lower_hull(x, y) - n

    def _right(self, deltas: Array, near: int, far: int) -> tuple[float, float]:
        """Return b and s of the edge between two places right of alpha = 1."""
        d = self.epsilon[far] - self.epsilon[near]
        fall = deltas[near] - deltas[far]
        b = deltas[near] + fall * math.exp(-d) / -math.expm1(-d)
        return float(b), float(fall / math.exp(self.epsilon[near]) / math.expm1(d))

    def _across(self, left: int, right: int) -> tuple[float, float]:
        """Return b and s of an edge whose ends are on both sides of alpha = 1."""
        e, f = -self.epsilon[-left], self.epsilon[right]
        start = -math.expm1(e) + math.exp(e) * self.other[-left]
        s = (start - self.own[right]) / (math.exp(e) * math.expm1(f - e))
        return float(start + s * math.exp(e)), float(s)

    @cached_property
    def edges(self) -> list[tuple[float, float, bool]]:
        """(b, s, False), or (1 - s, 1 - b, True) for an edge left of 1, from left to right."""
        found = []
        for i, j in zip(self.corners[:-1].tolist(), self.corners[1:].tolist(), strict=True):
            if j <= 0:
                found.append((*self._right(self.other, -j, -i), True))
            elif i >= 0:
                found.append((*self._right(self.own, i, j), False))
            else:
                found.append((*self._across(i, j), False))
        return found

    @property
    def mu(self) -> float:
        """The greatest Phi^-1(b) - Phi^-1(s) over edges, of what a leak leaves of each."""
        p, greatest = self.leak, 0.0
        for b, s, _ in self.edges:
            right, wrong = (b - p) / (1.0 - p), s / (1.0 - p)
            if right <= 0.0 or wrong >= 1.0:
                continue
            if right >= 1.0 or wrong <= 0.0:
                return math.inf
            greatest = max(greatest, float(ndtri(right) - ndtri(wrong)))
        return greatest

    @cached_property
    def hull(self) -> Hull:
        """The pair: each corner has the mass that is lost from one edge to the next."""
        losses = np.array([math.copysign(self.epsilon[abs(c)], c) for c in self.corners.tolist()])
        # Before the first corner b = 1 and 1 - s is the other order's last delta; beyond the last
        # corner s = 0 and b is the own last delta.
        edges = [(float(self.other[-1]), 0.0, True), *self.edges, (float(self.own[-1]), 0.0, False)]
        first = np.empty(len(losses))
        second = np.empty(len(losses))
        for k, (edge, after) in enumerate(itertools.pairwise(edges)):
            (b, s, left), (b_next, s_next, left_next) = edge, after
            if left and left_next:  # (1 - s, 1 - b) both times
                first[k], second[k] = s_next - s, b_next - b
            elif left:
                first[k], second[k] = 1.0 - s - b_next, 1.0 - b - s_next
            else:
                first[k], second[k] = b - b_next, s - s_next
        masses = np.maximum(first, 0.0), np.maximum(second, 0.0)
        return Hull(losses, *masses, self.mu, self.leak)


def _profiles_of(event: Event) -> tuple[Profiles, float]:
    """Return the bounds of delta in both orders, and what convolution may hide of them.

    Closed forms come first, then loss distributions, then whatever composition proves.
    """
    if event.profile(np.zeros(1)) is not None:

        def closed(epsilon: Array) -> tuple[Array, Array]:
            each = event.profiles_by_order(epsilon)
            assert each is not None
            return each

        return closed, 0.0
    leaves = merged(event.leaves())
    routes = [
        route
        for route in routes_for(leaves)
        if not isinstance(route, LossDistributionRoute)
        or max(n for _, n in leaves) <= _MOST_CONVOLVED
    ]
    for route in routes:
        if isinstance(route, LossDistributionRoute):
            points = points_of(route.distribution)
            return _between_dots(*points, route.interval, route.charge), route.charge

    def composed(epsilon: Array) -> tuple[Array, Array]:
        both = np.array([min(r.delta(e) for r in routes) for e in epsilon.tolist()])
        return both, both.copy()

    return composed, 0.0


def _between_dots(
    losses: Array, first: Array, second: Array, interval: float, charge: float
) -> Profiles:
    """Return the profiles through dots on a grid, linear in exp(epsilon) between them."""

    def profiles(epsilon: Array) -> tuple[Array, Array]:
        place = np.clip(((epsilon - losses[0]) / interval).astype(np.int64), 0, len(losses) - 1)
        after = np.minimum(place + 1, len(losses) - 1)
        step = np.clip(epsilon - losses[place], 0.0, interval)
        share = np.expm1(step) / math.expm1(interval)
        each = (
            np.minimum(deltas[place] + share * (deltas[after] - deltas[place]) + charge, 1.0)
            for deltas in (first, second)
        )
        # Below the first dot nothing is known but that delta is at most 1.
        below = epsilon < losses[0]
        with_record, without = (np.where(below, 1.0, deltas) for deltas in each)
        return with_record, without

    return profiles


@lru_cache(maxsize=4096)
def dominating(event: Event, leak: float) -> Hull:
    """Return a pair that dominates a leaf event, with at most ``leak`` at infinity.

    Examples
    --------
    >>> from tacit.privacy import LogisticObjective
    >>> from tacit.privacy.accounting.dominating import dominating
    >>> round(dominating(LogisticObjective(1.0, 2.0, 4.5), 1e-12).mu, 3)
    0.251
    """
    profiles, hidden = _profiles_of(event)
    return hull_of(profiles, leak + 2.0 * hidden)


def price_of(event: Event, leak: float, reserve: float | None = None) -> Price:
    """Return the price of an event, leaf by leaf, at any moment of a sequence.

    Parameters
    ----------
    event
        What is charged.
    leak
        Probability that each leaf which is no Gaussian mechanism may add to the leaks.
    reserve
        The mu of a Gaussian mechanism that stays unspent, for a lower price (`_reserve_price`).
    """
    total, leaks = 0.0, 0.0
    for leaf, n in event.leaves():
        one = _leaf_price(leaf, n, leak, reserve)
        total, leaks = total + one.squared_mu, leaks + one.leak
    return Price(total, leaks)


@lru_cache(maxsize=4096)
def _leaf_price(leaf: Event, n: int, leak: float, reserve: float | None) -> Price:
    """Return the price of a leaf n times: n times its own, or that of the n together if less."""
    if leaf.parts():  # neighbours differ in one of them: the worst counts
        each = [price_of(part, leak, reserve) for part in leaf.parts()]
        return Price(n * max(p.squared_mu for p in each), n * max(p.leak for p in each))
    one = _now(leaf, leak) if reserve is None else _reserve_price(leaf, leak, reserve)
    alone = Price(n * one.squared_mu, n * one.leak)
    # Many pure releases together are no cheaper beside a reserve, and cost as much to compute as
    # there are of them.
    is_pure = math.isfinite(leaf.pure_epsilon())
    if n == 1 or is_pure or leaf.gaussian_mu() is not None or leaf.leak() is not None:
        return alone
    run = Repeated(leaf, n)
    together = _now(run, leak) if reserve is None else _reserve_price(run, leak, reserve)
    return min(alone, together, key=lambda price: price.squared_mu)


@lru_cache(maxsize=4096)
def _now(event: Event, leak: float) -> Price:
    """Return the price of an event without parts, whatever was spent before."""
    if event.reasons_void():
        return Price(math.inf)
    lost, mu = event.leak(), event.gaussian_mu()
    if lost is not None:
        return Price(0.0, lost)
    if mu is not None:
        return Price(max(mu**2, LEAST))
    bound = event.gaussian_bound()
    known = mu_of_pure(event.pure_epsilon()) if bound is None else bound
    try:
        hull = dominating(event, leak)
        mu, lost = min((known, 0.0), (hull.mu, hull.leak))
    except ArithmeticError:  # what a profile does not bound has no price, and none is guessed
        mu, lost = known, 0.0
    squared = mu * mu * _ROUNDED_UP if mu < 1e150 else math.inf
    return Price(max(squared, LEAST), lost)


@lru_cache(maxsize=4096)
def _reserve_price(event: Event, leak: float, reserve: float) -> Price:
    """Return the price of an event while a Gaussian mechanism of mu = ``reserve`` is unspent.

    c(r) is the least c for which the event and a Gaussian mechanism of r are dominated by one of
    sqrt(r^2 + c). It falls as r grows, so that any r' <= reserve will do.
    """
    now = _now(event, leak)
    if event.gaussian_mu() is not None or not LEAST < now.squared_mu < math.inf:
        return now
    try:
        hull, best = dominating(event, leak), now
    except ArithmeticError:
        return now
    for factor in (2.0, 4.0, 8.0):
        # Tied to the event's own mu: for a much larger one the difference below cancels.
        beside = min(factor * math.sqrt(now.squared_mu), reserve)
        both = hull_of(hull.beside(beside), hull.leak + 2.0 * leak, _N_EACH_OF_RESERVE)
        cost = both.mu**2 * _ROUNDED_UP - beside**2
        if 0.0 < cost < best.squared_mu:
            best = Price(cost, max(both.leak, now.leak))
        if beside >= reserve:
            break
    return best


def first_price(
    event: Event, leak: float, squared_mu: float, epsilon: float, delta: float
) -> float:
    """Return the price of an event that is charged before any output was seen.

    The privacy loss is then known to be 0, so that the inequality of a filter is needed at
    ``epsilon`` alone: c is the least for which the event, together with a Gaussian mechanism of
    mu^2 = ``squared_mu`` - c, is (epsilon, delta)-DP. All leaves but the costliest are priced as
    they would be at any moment. Infinite if there is no such c.

    **Assumes** that the event is the very first: a later one at this price breaks the filter.
    """
    leaves = [(leaf, n) for leaf, n in event.leaves()]
    priced = [_leaf_price(leaf, n, leak, None) for leaf, n in leaves]
    total = math.fsum(price.squared_mu for price in priced)
    others = [i for i, (leaf, _) in enumerate(leaves) if leaf.gaussian_mu() is None]
    if not others or not math.isfinite(total):
        return total
    pivot = max(others, key=lambda i: priced[i].squared_mu)
    leaf, n = leaves[pivot]
    if leaf.parts() or leaf.leak() is not None:
        return math.inf
    try:
        hull = dominating(leaf if n == 1 else Repeated(leaf, n), leak)
    except ArithmeticError:
        return math.inf
    rest = math.fsum(price.squared_mu for i, price in enumerate(priced) if i != pivot)
    leaks = math.fsum(price.leak for i, price in enumerate(priced) if i != pivot)
    room = squared_mu - rest

    def fits(cost: float) -> bool:
        return hull.delta_beside(math.sqrt(max(room - cost, 0.0)), epsilon) + leaks <= delta

    if room <= 0.0 or not fits(room):
        return math.inf
    low, high = 0.0, room
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if fits(middle) else (middle, high)
    return rest + high
