"""Bound the privacy cost of the best of K private runs, for any score.

    delta(e) <= sum_j w_j h(e + u_j),     w_j > 0,  sum_j w_j = E K

Here h is the profile of one run. Weights and shifts follow from the law of K and from the power of
tests against one run (docs/proofs/best_of.md). All bounds are rounded up.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tacit.arrays import Array
from tacit.privacy.accounting.number_of_trials import TriesLaw
from tacit.privacy.accounting.tradeoff import Power, lower_hull

_POINTS = 3000  # cells of the polygon
_SPAN = 60.0  # slopes below exp(-60) of the greatest get no finer cells
# Relative slack of each slope: it covers errors of powers, errors of chords extended over a cell,
# and the 1e-11 by which a drawn K may deviate from its law.
_SLACK = 1e-9
# Floats cannot resolve the knot between lines whose slopes differ by less.
_LEAST_STEP = 1e-8
_AT_ONCE = 2**18  # terms held in memory at a time


@dataclass(frozen=True)
class Points:
    """Corners of a polygon above the curve p -> (phi'(1 - p), phi'(1 - F(p))), p in [0, 1].

    Suppose another run is better with probability p. Then ``released`` is the ratio of how often
    the run is released to how often it is made, and ``elsewhere`` a lower bound of that ratio on
    the neighbour. A function that is convex in both, increasing in the first and decreasing in the
    second has its maximum at a corner.
    """

    released: Array
    elsewhere: Array


def points(power: Power, law: TriesLaw, *also: float) -> Points:
    """Return corners for cells over which both slopes change little.

    s(p) = phi'(1 - p) is convex in p, so it is below its chord over a cell. c(p) = phi'(1 - F(p))
    is convex too, as F is concave, so it is above the extended chord of either neighbouring cell.
    The closer of the two chords gives the corner.
    """
    p = _edges(power, law, also)
    s, c = law.slope(p), law.slope(power.better(p))
    width, steepness = np.diff(p), np.diff(c) / np.diff(p)
    second_difference = np.diff(steepness)
    # Distance between c and the extended chord of the previous cell at a cell's end, and of the
    # next cell at its beginning.
    at_end = np.concatenate([[np.inf], second_difference * width[1:]])
    at_begin = np.concatenate([second_difference * width[:-1], [np.inf]])
    with np.errstate(invalid="ignore"):  # c may end at 0: there the previous cell is extended
        of_end = ~(at_end * c[:-1] > at_begin * c[1:])
    below = np.zeros_like(c)
    below[1:][of_end] = at_end[of_end]
    below[:-1][~of_end] = np.maximum(below[:-1], at_begin)[~of_end]
    corner = np.maximum(c - np.maximum(below, 0.0), c[-1])
    return Points(s * (1 + _SLACK), corner * (1 - _SLACK))


def _edges(power: Power, law: TriesLaw, also: tuple[float, ...]) -> Array:
    """Return probabilities from 0 to 1 between which p and both slopes change little."""
    small = np.geomspace(1e-30, 0.5, 1000)
    coarse = np.concatenate([small, 1.0 - small[-2:500:-1]])
    change = -_log(law.slope(coarse)) - _log(law.slope(power.better(coarse)))
    change = np.minimum(change - change[0], 2 * _SPAN)
    change = change + 0.1 * np.log(coarse / small[0]) - 0.1 * np.log1p(-coarse)
    inside = np.interp(np.linspace(0.0, change[-1], _POINTS), change, np.log(coarse))
    edges = np.unique(np.concatenate([[0.0], np.exp(inside), [1.0]]))
    for kink in also:  # replace the nearest edge: chords over tiny cells are rounding noise
        edges[np.argmin(np.abs(edges - kink))] = kink
    result: Array = np.unique(np.clip(edges, 0.0, 1.0))
    return result


@dataclass(frozen=True)
class Mixture:
    """delta(e) <= sum of weights * h(e + shifts)."""

    weights: Array
    shifts: Array

    def delta(self, power: Power, epsilon: Array) -> Array:
        """Return the sum at each of the epsilons."""
        some = max(_AT_ONCE // self.shifts.size, 1)
        found = [
            power.delta(np.add.outer(epsilon[i : i + some], self.shifts)) @ self.weights
            for i in range(0, epsilon.size, some)
        ]
        return np.concatenate(found)


def mixture(of: Points) -> Mixture:
    """Return weights and shifts: steps and knots of psi(L) = max over corners of (L s - c)_+.

    A line of psi is a point (s, c), and the upper envelope of the lines is the lower hull of the
    points, from (0, 0). The knot between two neighbours is at L = (c_2 - c_1) / (s_2 - s_1), and
    the slope steps by s_2 - s_1.
    """
    some = of.released > 0.0
    s = np.concatenate([[0.0], of.released[some]])
    c = np.concatenate([[0.0], of.elsewhere[some]])
    s, c = lower_hull(*_merged(s, c))
    knots = np.diff(c) / np.diff(s)
    with np.errstate(divide="ignore"):  # a knot at 0 has a shift of minus infinity: h is 1 there
        return Mixture(np.diff(s) * (1 + _SLACK), np.log(knots))


def _merged(s: Array, c: Array) -> tuple[Array, Array]:
    """Merge points whose slopes nearly agree; a slope is rounded up to a geometric lattice."""
    # Of points with equal slopes, the one with the least c is the highest line.
    up = np.zeros_like(s)
    up[1:] = np.exp(np.ceil(np.log(s[1:]) / _LEAST_STEP) * _LEAST_STEP)
    order = np.lexsort((c, up))
    unique, first = np.unique(up[order], return_index=True)
    return unique, c[order][first]


def renyi(of: Points, at_zero: float, divergence: Array, orders: Array) -> Array:
    """Return a bound on the Renyi divergence of the best of K, from that of one run.

    exp((a-1) D) <= P(K=0) + exp((a-1) r(a)) max_p phi'(1-p)^a phi'(1-F(p))^(1-a)
    """
    some = of.released > 0.0
    released, elsewhere = _log(of.released[some]), _log(of.elsewhere[some])
    found = np.empty_like(orders)
    for i, (a, r) in enumerate(zip(orders, divergence, strict=True)):
        most = float(np.max(released + (a - 1) * (released - elsewhere)))
        tried = (a - 1) * r + most
        found[i] = np.logaddexp(tried, math.log(at_zero)) if at_zero > 0.0 else tried
    result: Array = np.maximum(found / (orders - 1), 0.0)
    return result


def greatest_ratio(of: Points) -> float:
    """Return max_p log(phi'(1-p) / phi'(1-F(p))): the cost of a search beyond a pure epsilon."""
    some = of.released > 0.0
    return float(np.max(_log(of.released[some]) - _log(of.elsewhere[some])))


def _log(values: Array) -> Array:
    with np.errstate(divide="ignore"):
        return np.log(values)
