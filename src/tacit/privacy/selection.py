"""The best of K private runs: what it costs, whatever decides which is best.

    delta(e) <= sum_j w_j h(e + u_j),     w_j > 0,  sum_j w_j = E K

with h the profile of one run: the same profile, shifted and weighted by the law of K and the power
of one run's tests (docs/proofs/selection.md). Everything here is rounded up.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tacit.privacy.power import Power, lower_hull
from tacit.privacy.tries import TriesLaw

Array = npt.NDArray[np.float64]

_POINTS = 3000
_SPAN = 60.0  # logarithms of a slope this far below its greatest are not told apart
# Of each slope: errors of powers and of what is extended over a cell, and the 1e-11 by which a
# drawn K may miss its law.
_SLACK = 1e-9
# Knots between lines whose slopes differ by less could not be found in floats.
_LEAST_STEP = 1e-8
_AT_ONCE = 2**18  # terms held in memory


@dataclass(frozen=True)
class Points:
    """Corners of a polygon above the curve p -> (phi'(1 - p), phi'(1 - F(p))), p in [0, 1].

    Where a run is better with probability p, ``released`` is how much more often it is released
    than made, and ``elsewhere`` the same on the neighbour, at least. Whatever is convex in both,
    grows with the first and falls with the second is greatest at a corner.
    """

    released: Array
    elsewhere: Array


def points(power: Power, law: TriesLaw, *also: float) -> Points:
    """Return corners for cells over which neither slope changes by much.

    s(p) = phi'(1 - p) is convex in p, so below its chord over a cell. c(p) = phi'(1 - F(p)) is
    convex too, F being concave, so above the chord of either neighbouring cell, extended: where
    that is closer, its value is the corner's.
    """
    p = _edges(power, law, also)
    s, c = law.slope(p), law.slope(power.better(p))
    width, steepness = np.diff(p), np.diff(c) / np.diff(p)
    bend = np.diff(steepness)
    # how far the extended chord of the cell before is below c at a cell's end, of that after at its
    # beginning
    at_end = np.concatenate([[np.inf], bend * width[1:]])
    at_begin = np.concatenate([bend * width[:-1], [np.inf]])
    with np.errstate(invalid="ignore"):  # c may end at 0: there the cell before is extended
        of_end = ~(at_end * c[:-1] > at_begin * c[1:])
    below = np.zeros_like(c)
    below[1:][of_end] = at_end[of_end]
    below[:-1][~of_end] = np.maximum(below[:-1], at_begin)[~of_end]
    corner = np.maximum(c - np.maximum(below, 0.0), c[-1])
    return Points(s * (1 + _SLACK), corner * (1 - _SLACK))


def _edges(power: Power, law: TriesLaw, also: tuple[float, ...]) -> Array:
    """Return probabilities from 0 to 1 between which p and both slopes change by little."""
    small = np.geomspace(1e-30, 0.5, 1000)
    coarse = np.concatenate([small, 1.0 - small[-2:500:-1]])
    change = -_log(law.slope(coarse)) - _log(law.slope(power.better(coarse)))
    change = np.minimum(change - change[0], 2 * _SPAN)
    change = change + 0.1 * np.log(coarse / small[0]) - 0.1 * np.log1p(-coarse)
    inside = np.interp(np.linspace(0.0, change[-1], _POINTS), change, np.log(coarse))
    edges = np.unique(np.concatenate([[0.0], np.exp(inside), [1.0]]))
    for kink in also:  # next to it no other: chords over tiny cells are noise
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

    A line of psi is a point (s, c), and its upper envelope is their lower hull, from (0, 0): the
    knot between two neighbours is at L = (c_2 - c_1) / (s_2 - s_1), and the slope steps by
    s_2 - s_1.
    """
    some = of.released > 0.0
    s = np.concatenate([[0.0], of.released[some]])
    c = np.concatenate([[0.0], of.elsewhere[some]])
    s, c = lower_hull(*_merged(s, c))
    knots = np.diff(c) / np.diff(s)
    with np.errstate(divide="ignore"):  # a knot at 0 has a shift of minus infinity: h is 1 there
        return Mixture(np.diff(s) * (1 + _SLACK), np.log(knots))


def _merged(s: Array, c: Array) -> tuple[Array, Array]:
    """Return points whose slopes differ enough: a slope is rounded up to the next that is kept."""
    # Rounded up to a geometric lattice; of equal slopes the least c is the highest line.
    up = np.zeros_like(s)
    up[1:] = np.exp(np.ceil(np.log(s[1:]) / _LEAST_STEP) * _LEAST_STEP)
    order = np.lexsort((c, up))
    kept, first = np.unique(up[order], return_index=True)
    return kept, c[order][first]


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
    """Return max_p log(phi'(1-p) / phi'(1-F(p))): what a search adds to a pure epsilon."""
    some = of.released > 0.0
    return float(np.max(_log(of.released[some]) - _log(of.elsewhere[some])))


def _log(values: Array) -> Array:
    with np.errstate(divide="ignore"):
        return np.log(values)
