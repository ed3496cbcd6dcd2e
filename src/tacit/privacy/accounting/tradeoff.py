"""Bound the profile and the power of tests against a release, in one order of neighbours.

For neighbours with output laws Q and Q' the profile is h(e) = sup_S Q(S) - exp(e) Q'(S), and the
power F(p) = sup { Q'(S) : Q(S) <= p }. Both are upper bounds here, as
`tacit.privacy.accounting.best_of` needs them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.special import ndtr, ndtri

from tacit.arrays import Array
from tacit.privacy.accounting.gaussian_profile import gaussian_delta
from tacit.privacy.accounting.loss_distribution import (
    composed,
    fits_a_grid,
    good_interval,
    points_of,
)
from tacit.privacy.events.base import Event
from tacit.privacy.events.pure import PureEpsilon

_GREATEST_POINTS = 2001  # grid on which several profiles are compared
_VAST = 700.0  # exp of more overflows
_ROUND_UP = 1.0 + 1e-10  # covers errors of ndtri and ndtr, and of the crossings of lines


class Power(Protocol):
    """Upper bounds on the profile and the power of tests, in one order of neighbours."""

    def delta(self, epsilon: Array) -> Array:
        """Return h at each epsilon, of either sign."""

    def better(self, p: Array) -> Array:
        """Return F at each probability."""

    @property
    def largest_loss(self) -> float:
        """An epsilon beyond which h hardly falls."""


@dataclass(frozen=True)
class GaussianPower:
    """h = dG(mu, e) and F(p) = Phi(Phi^-1(p) + mu)."""

    mu: float

    @property
    def largest_loss(self) -> float:
        """Epsilon at which h is below 1e-19."""
        return self.mu * (9.0 + self.mu / 2)

    def delta(self, epsilon: Array) -> Array:
        """Return the exact profile."""
        return gaussian_delta(self.mu, epsilon)

    def better(self, p: Array) -> Array:
        """Return the exact power, rounded up."""
        result: Array = np.minimum(ndtr(ndtri(p) + self.mu) * _ROUND_UP, 1.0)
        return result


@dataclass(frozen=True)
class TabulatedPower:
    """Chords of h in exp(e), and F from the profile of the opposite order.

        h(e) <= chord of the points          since h is convex in t = exp(e)
        F(p) <= t p + h_opposite(log t)      for every t: take the least over the points

    Contract: ``epsilons`` increase; both columns are decreasing upper bounds.
    """

    epsilons: Array
    deltas: Array
    opposite: Array

    @property
    def largest_loss(self) -> float:
        """The last point."""
        return float(self.epsilons[-1])

    def delta(self, epsilon: Array) -> Array:
        """Return the chord; beyond the last point its value, before the first a line to (0, 1)."""
        e = np.minimum(epsilon, self.epsilons[-1])
        i = np.clip(np.searchsorted(self.epsilons, e, side="right"), 1, self.epsilons.size - 1)
        low, high = self.epsilons[i - 1], self.epsilons[i]
        # (exp(e) - exp(low)) / (exp(high) - exp(low)), written so that nothing overflows
        of_width = np.exp(np.minimum(e - high, 0.0)) * np.expm1(np.minimum(low - e, 0.0))
        share = np.clip(of_width / np.expm1(low - high), 0.0, 1.0)
        chord = self.deltas[i - 1] + share * (self.deltas[i] - self.deltas[i - 1])
        first, d0 = self.epsilons[0], self.deltas[0]
        # h(-inf) = 1 and h is convex, so h is below the line from (0, 1) to the first point.
        before = 1.0 - np.exp(np.minimum(e - first, 0.0)) * (1.0 - d0)
        result: Array = np.where(e < first, before, chord)
        return result

    def better(self, p: Array) -> Array:
        """Return the least of the lines."""
        t = np.exp(self.epsilons[self.epsilons < _VAST])
        # Lines k and k + 1 cross at -(h_(k+1) - h_k) / (t_(k+1) - t_k), which falls with k. If
        # rounding breaks this order, another line is taken, which is an upper bound too.
        with np.errstate(all="ignore"):  # points that coincide in floats: any line is a bound
            crossing = np.nan_to_num(-np.diff(self.opposite[: t.size]) / np.diff(t))
        steepest = np.maximum.accumulate(crossing[::-1])
        k = t.size - 1 - np.searchsorted(steepest, p, side="left")
        result: Array = np.minimum((t[k] * p + self.opposite[k]) * _ROUND_UP, 1.0)
        return result


@dataclass(frozen=True)
class RenyiPower:
    """F only, for a release with known Renyi divergences and unknown profile.

    p' <= (exp(r) p)^((a-1)/a)   and   1 - p' >= exp(-r) (1 - p)^(a/(a-1))   for every order a
    """

    orders: Array
    divergence: Array
    largest_loss = math.inf

    def delta(self, epsilon: Array) -> Array:
        """Return 1: there is no profile."""
        return np.ones_like(epsilon)

    def better(self, p: Array) -> Array:
        """Return the least over the orders."""
        found = np.ones_like(p)
        for a, r in zip(self.orders, self.divergence, strict=True):
            with np.errstate(all="ignore"):
                up = np.exp(np.minimum((r + np.log(p)) * (1 - 1 / a), 0.0))
                down = -np.expm1(np.log1p(-p) * (a / (a - 1)) - r)
            found = np.fmin(found, np.fmin(up, down))
        result: Array = np.clip(found * _ROUND_UP, 0.0, 1.0)
        return result


def pure_power(epsilon: float) -> TabulatedPower:
    """Return bounds for a pure release of this epsilon: those of randomised response.

    Its profile is linear in exp(e) between -epsilon and epsilon, so two points are exact.
    """
    below = -math.expm1(-epsilon)
    both = np.array([below, 0.0])
    return TabulatedPower(np.array([-epsilon, epsilon]), both, both)


def powers_of(event: Event) -> tuple[Power, ...] | None:
    """Return bounds for each order of an event's neighbours; None if only Renyi bounds exist.

    A single element holds for both orders.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.privacy import Composed, Gaussian
    >>> from tacit.privacy.accounting.tradeoff import powers_of
    >>> (power,) = powers_of(Composed((Gaussian(2.5), Gaussian(1.0))))
    >>> round(power.mu, 6)
    1.077033
    """
    leaves = tuple(event.leaves())
    mus = [(leaf.gaussian_mu(), n) for leaf, n in leaves]
    if all(mu is not None for mu, _ in mus):
        return (GaussianPower(math.sqrt(sum(n * mu**2 for mu, n in mus if mu is not None))),)
    if len(leaves) == 1 and leaves[0][1] == 1:
        (leaf, _) = leaves[0]
        if isinstance(leaf, PureEpsilon):
            return (pure_power(leaf.epsilon),)
        if leaf.parts():
            return _greatest([powers_of(part) for part in dict.fromkeys(leaf.parts())])
    return _tabulated(leaves)


def _tabulated(leaves: Sequence[tuple[Event, int]]) -> tuple[Power, ...] | None:
    interval = good_interval(leaves)
    if not all(fits_a_grid(leaf, interval) for leaf, _ in leaves):
        return None
    try:
        distribution = composed(leaves, interval)
    except ValueError:  # a leaf without a loss distribution
        return None
    # Possible error of float convolutions, as in LossDistributionRoute.
    charge = sum(n for _, n in leaves) * 2.0**-51
    epsilons, first, second = points_of(distribution)
    return _both_orders(epsilons, first + charge, second + charge, alike=first is second)


def _both_orders(
    epsilons: Array, first: Array, second: Array, *, alike: bool
) -> tuple[TabulatedPower, ...]:
    """Return the power in each order from bounds on both profiles at epsilons of either sign.

    H(-e) = 1 - exp(-e) + exp(-e) H'(e), with H' of the opposite order. So the half e >= 0 of both
    profiles determines the rest, and a given bound at e < 0 may be looser. The profiles are convex
    in exp(e), so they are below the lower hull of any points above them.
    """
    right = epsilons >= 0.0
    e, one, two = epsilons[right], np.minimum(first[right], 1.0), np.minimum(second[right], 1.0)
    grid = np.concatenate([-e[::-1], e[e > 0.0]])

    def whole(own: Array, opposite: Array) -> Array:
        left = -np.expm1(-e) + np.exp(-e) * opposite
        return _hull_at(grid, np.concatenate([left[::-1], own[e > 0.0]]))

    at_one, at_two = whole(one, two), whole(two, one)
    power = TabulatedPower(grid, at_one, at_two)
    return (power,) if alike else (power, TabulatedPower(grid, at_two, at_one))


def _hull_at(epsilons: Array, deltas: Array) -> Array:
    """Return the lower hull of points, in exp(epsilon), at these points."""
    t = np.exp(np.minimum(epsilons, _VAST))
    vertices = lower_hull(*_distinct(t, deltas))
    result: Array = np.minimum(np.interp(t, *vertices) * (1.0 + 1e-14), deltas)
    return result


def _distinct(x: Array, y: Array) -> tuple[Array, Array]:
    distinct = np.append(True, np.diff(x) > 0.0)
    return x[distinct], y[distinct]


def lower_hull(x: Array, y: Array) -> tuple[Array, Array]:
    """Return the vertices of the lower hull of points of increasing x, left to right."""
    hull: list[tuple[float, float]] = []
    for x3, y3 in zip(x.tolist(), y.tolist(), strict=True):
        while len(hull) > 1:
            (x1, y1), (x2, y2) = hull[-2:]
            if (y2 - y1) * (x3 - x2) < (y3 - y2) * (x2 - x1):
                break
            hull.pop()  # on or above the chord of its neighbours
        hull.append((x3, y3))
    vertices = np.array(hull)
    return vertices[:, 0], vertices[:, 1]


def _greatest(each: Sequence[tuple[Power, ...] | None]) -> tuple[Power, ...] | None:
    """Return the greatest of several profiles in each order, by chords; F follows from it."""
    known = [powers for powers in each if powers is not None]
    if len(known) < len(each):
        return None
    largest_loss = max(power.largest_loss for powers in known for power in powers)
    grid = np.linspace(-largest_loss, largest_loss, _GREATEST_POINTS)
    first = np.max([powers[0].delta(grid) for powers in known], axis=0)
    second = np.max([powers[-1].delta(grid) for powers in known], axis=0)
    alike = all(len(powers) == 1 for powers in known)
    return _both_orders(grid, first, second, alike=alike)
