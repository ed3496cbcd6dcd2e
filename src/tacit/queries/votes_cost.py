"""Compute the data-dependent cost of votes, and release it with noise.

Theorem 6 of Papernot et al. 2018 bounds the cost of the winners of clear votes; for two classes the
cost is exact. The cost depends on the votes, and is thus private itself. Only those who may see the
votes may see it; a release needs noise in proportion to its smooth sensitivity (`SmoothValue`;
docs/proofs/pate.md, sections 4 and 5).

The place v of a query is defined by q = (m - 1) Phi(-v) for m classes. One teacher moves v by at
most c = sqrt(2) / noise_std. For two classes the place is the count of votes itself, and all costs
are exact.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import log_ndtr, logsumexp, ndtri_exp

from tacit.noise import Norm, Release, Source
from tacit.noise.gaussian import smooth_gaussian
from tacit.privacy import SmoothGaussian
from tacit.queries.base import Array, Facts, Private, Sensitivity
from tacit.queries.votes import Answer, Votes

Counts = npt.NDArray[np.int64]

# Number of rows of orders per block; a few of them fit a cache.
_BLOCK = 64
_PLACES = np.linspace(-1.0, 45.0, 4097)
# Allowance for rounding in the conditions, as a share of the worst case.
_ROUNDING = 1e-12


def log_chance_of_upset(votes: npt.ArrayLike, noise_std: float) -> Array:
    """Return the log of a bound on the probability that noise changes the winner.

        q = sum over others of Phi(-gap / (sqrt(2) noise_std)),   at most 1

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.queries.votes_cost import log_chance_of_upset
    >>> np.exp(log_chance_of_upset([[125, 125]], 40.0)).round(3)
    array([0.5])
    """
    ordered = np.sort(np.asarray(votes, dtype=np.float64), axis=1)
    gaps = ordered[:, -1:] - ordered[:, :-1]
    result: Array = logsumexp(log_ndtr(gaps * (-1.0 / (np.sqrt(2.0) * noise_std))), axis=1)
    return np.minimum(result, 0.0)


def votes_renyi(votes: npt.ArrayLike, noise_std: float, orders: npt.ArrayLike) -> Array:
    """Return the summed divergence of GNMax on these votes per order; at most Q a / s^2.

    Each vote pattern is computed once, however often it occurs.

    Parameters
    ----------
    votes
        One row of counts for each query.
    noise_std
        The standard deviation of the noise on each count.
    orders
        Orders above 1.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.queries.votes_cost import votes_renyi
    >>> clear = np.array([[250] + [0] * 9])
    >>> bool(abs(votes_renyi(clear, 40.0, [20.0])[0] - 5.3213e-5) < 1e-9)
    True
    """
    log_q, count = np.unique(log_chance_of_upset(votes, noise_std), return_counts=True)
    a = np.asarray(orders, dtype=np.float64)
    total = np.zeros_like(a)
    for start in range(0, log_q.size, _BLOCK):
        rows = slice(start, start + _BLOCK)
        total += count[rows] @ query_renyi(log_q[rows], noise_std, a)
    return total


def query_renyi(log_q: Array, noise_std: float, orders: Array) -> Array:
    """Return the divergence of one query by probability of upset (rows) and order (columns).

    Theorem 6, with q the probability, s the noise, e_i = mu_i / s^2:

        mu_2 = s sqrt(log(1/q)),  mu_1 = mu_2 + 1
        A = (1-q) / (1 - (q e^e_2)^((mu_2 - 1)/mu_2)),  B = e^e_1 / q^(1/(mu_1 - 1))
        r(a) = log((1-q) A^(a-1) + q B^(a-1)) / (a-1)

    if a <= mu_1, mu_2 > 1 and q <= e^((mu_2-1) e_2) / (mu_1/(mu_1-1) mu_2/(mu_2-1))^mu_2;
    otherwise, or if it is less, a / s^2.
    """
    worst = orders / noise_std**2
    result: Array = np.broadcast_to(worst, (log_q.size, orders.size)).copy()
    mu_2 = noise_std * np.sqrt(-log_q)
    with np.errstate(all="ignore"):  # values outside the conditions are masked
        e_1, e_2 = (mu_2 + 1) / noise_std**2, mu_2 / noise_std**2
        slopes = np.log1p(1 / mu_2) + np.log(mu_2 / (mu_2 - 1))
        applies = (mu_2 > 1) & (log_q <= (mu_2 - 1) * e_2 - mu_2 * slopes)
        stays = np.log1p(-np.exp(log_q))
        inner = (log_q + e_2) * (mu_2 - 1) / mu_2
        log_a = stays - np.log(-np.expm1(inner))
        log_b = e_1 - log_q / mu_2
        applies &= np.isfinite(log_a) & (inner < 0)
    rows = np.flatnonzero(applies)
    if rows.size:
        power = orders - 1
        upper = _log_sum(
            stays[rows, None] + log_a[rows, None] * power,
            log_q[rows, None] + log_b[rows, None] * power,
        )
        upper /= power
        fits = orders <= mu_2[rows, None] + 1
        result[rows] = np.where(fits, np.minimum(upper, worst), worst)
    return result


def _log_sum(x: Array, y: Array) -> Array:
    """Return log(e^x + e^y), with one exponential."""
    high, low = np.maximum(x, y), np.minimum(x, y)
    low -= high
    np.exp(low, out=low)
    np.log1p(low, out=low)
    high += low
    return high


@dataclass(frozen=True)
class SeveralClasses:
    """The cost of a query at one order, as a function of its place v, and its changes.

    ``conditions_hold`` checks two conditions on a grid of 4,097 places. C5: the cost rises with the
    probability of upset. C6: so does its increase by one more teacher, below the end of Theorem 6.
    If one fails, there is no smooth sensitivity.
    """

    noise_std: float
    n_classes: int
    order: float

    @property
    def step(self) -> float:
        """The effect of one teacher on a place."""
        return math.sqrt(2.0) / self.noise_std

    @property
    def worst(self) -> float:
        """The cost of a query for any votes."""
        return self.order / self.noise_std**2

    def places(self, votes: npt.ArrayLike) -> Array:
        """Return the place of each query."""
        log_q = log_chance_of_upset(votes, self.noise_std)
        place: Array = -ndtri_exp(np.minimum(log_q - math.log(self.n_classes - 1), -1e-12))
        return place

    def cost(self, places: Array) -> Array:
        """Return the divergence of a query at each place."""
        log_q = np.minimum(log_ndtr(-places) + math.log(self.n_classes - 1), 0.0)
        return query_renyi(log_q, self.noise_std, np.array([self.order]))[:, 0]

    def change(self, places: Array) -> Array:
        """Return the rise of the cost if one teacher makes the vote less clear."""
        return self.cost(places - self.step) - self.cost(places)

    @cached_property
    def edge(self) -> float:
        """The place, rounded up, above which Theorem 6 is below the worst case."""
        below = np.flatnonzero(self.cost(_PLACES) < self.worst)
        if not below.size:
            return math.inf
        low, high = (float(_PLACES[max(below[0] - i, 0)]) for i in (1, 0))
        for _ in range(40):
            middle = (low + high) / 2
            if self.cost(np.array([middle]))[0] < self.worst:
                high = middle
            else:
                low = middle
        return high

    @cached_property
    def peak(self) -> float:
        """The greatest change: from the worst case to one step beyond the edge."""
        return self.worst - float(self.cost(np.array([self.edge + self.step]))[0])

    def conditions_hold(self) -> bool:
        """Return whether C5 and C6 hold."""
        if math.isinf(self.edge):
            return True  # the cost is the worst case at every place, and never changes
        falls = np.diff(self.cost(_PLACES[self.edge <= _PLACES]))
        eases = np.diff(self.change(_PLACES[self.edge + self.step <= _PLACES]))
        room = _ROUNDING * self.worst
        return bool(np.all(falls <= room) and np.all(eases <= room))

    def local(self, places: Array, distance: int) -> Array:
        """Return the greatest change within ``distance`` teachers of each place, by C5 and C6.

        The change is 0 below the edge, at most the peak up to a step above it, and falls beyond.
        """
        if math.isinf(self.edge):
            return np.zeros_like(places)
        nearest = places - distance * self.step
        furthest = places + (distance + 1) * self.step
        falling = np.minimum(self.change(np.maximum(nearest, self.edge)), self.peak)
        reached = np.where(nearest <= self.edge + self.step, self.peak, falling)
        return np.where(furthest < self.edge - 1e-9, 0.0, reached)


@dataclass(frozen=True)
class TwoClasses:
    """The cost of a query at one order, as a function of the votes for the second class.

    The place of a query is its count n_1, from 0 to n_teachers. The winner is Bernoulli(Phi(t))
    with t = (2 n_1 - n_teachers - cut) / (sqrt(2) noise_std). All values are exact.
    """

    noise_std: float
    n_teachers: int
    order: float
    cut: float = 0.0

    @cached_property
    def costs(self) -> Array:
        """The divergence at each count: the greatest over both neighbours and directions."""
        count = np.arange(self.n_teachers + 1)
        t = (2.0 * count - self.n_teachers - self.cut) / (math.sqrt(2.0) * self.noise_std)
        log_p = np.stack([log_ndtr(-t), log_ndtr(t)])
        low, high, a = log_p[:, :-1], log_p[:, 1:], self.order
        up = np.logaddexp(*(a * high + (1 - a) * low)) / (a - 1)
        down = np.logaddexp(*(a * low + (1 - a) * high)) / (a - 1)
        pair = np.maximum(np.maximum(up, down), 0.0)
        each: Array = np.maximum(np.append(pair, 0.0), np.insert(pair, 0, 0.0))
        return each

    @property
    def worst(self) -> float:
        """The greatest cost of a query."""
        return float(self.costs.max())

    def places(self, votes: npt.ArrayLike) -> Counts:
        """Return the count of each query."""
        return np.asarray(votes, dtype=np.int64)[:, 1]

    def cost(self, places: Counts) -> Array:
        """Return the divergence of a query at each count."""
        return self.costs[places]

    def conditions_hold(self) -> bool:
        """Return True: two classes need no conditions."""
        return True

    def local(self, places: Counts, distance: int) -> Array:
        """Return the greatest change within ``distance`` teachers of each count."""
        # change[j] is between counts j and j + 1; counts from n_1 - d - 1 to n_1 + d + 1 are
        # reached.
        change, gradient_scale = np.abs(np.diff(self.costs)), distance + 1
        windows = np.lib.stride_tricks.sliding_window_view(
            np.pad(change, gradient_scale), 2 * gradient_scale
        )
        greatest: Array = windows.max(axis=1)[places]
        return greatest


Table = SeveralClasses | TwoClasses


def smooth_sensitivity(table: Table, votes: npt.ArrayLike, smoothness: float) -> float:
    """Return the smooth sensitivity of the summed cost of these votes.

        S = max over d of exp(-smoothness d) (sum over queries of the greatest change within d)

    The maximum ends at the first d beyond which no term can be greater: a query never changes by
    more than the worst case.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.queries.votes_cost import TwoClasses, smooth_sensitivity
    >>> table = TwoClasses(20.0, 250, order=10.0)
    >>> clear, close = np.array([[250, 0]]), np.array([[130, 120]])
    >>> smooth_sensitivity(table, clear, 0.1) < 0.01 * smooth_sensitivity(table, close, 0.1)
    True
    """
    votes = np.asarray(votes)
    patterns: Any
    patterns, count = np.unique(table.places(votes), return_counts=True)
    greatest, total = 0.0, float(len(votes)) * table.worst
    for distance in range(int(votes[0].sum()) + 1):
        weight = math.exp(-smoothness * distance)
        if weight * total <= greatest:
            break
        greatest = max(greatest, weight * float(count @ table.local(patterns, distance)))
    return greatest


@dataclass(frozen=True)
class VotesCost:
    """The cost of the winners of these votes at one order, summed over queries.

    It is asked of the same data as `Votes`. If the conditions of its proof do not hold, which is
    public, the total is 0.
    """

    votes: Votes
    table: Table

    @classmethod
    def tried(cls) -> tuple[VotesCost, ...]:
        """Return the instances that `tacit.testing.check_query` tries."""
        # The noise is so small that one teacher makes most of the difference.
        return (cls(Votes(3, 12, 2), TwoClasses(0.7, 12, 2.0)),)

    def neighbours(self, facts: Facts) -> Iterator[tuple[list[Answer], list[Answer]]]:
        """Yield the votes of teachers, one of whom changes the vote."""
        return self.votes.neighbours(facts)

    def applies(self, facts: Facts) -> bool:
        """Return whether all records, not a sample, are split among teachers."""
        return self.votes.applies(facts)

    def sensitivity(self, facts: Facts) -> Sensitivity:
        """Return the worst case over all votes, summed over the queries."""
        proof = "pate.md#4-how-far-the-votes-own-cost-can-move"
        return Sensitivity(self.votes.n_queries * self.table.worst, Norm.L2, proof)

    def total(self, records: Private, facts: Facts) -> float:
        """Return the summed cost. Private."""
        if not self.table.conditions_hold():
            return 0.0
        places: Any = self.table.places(self.votes.total(records, facts))
        return float(np.sum(self.table.cost(places)))

    def smooth_sensitivity(self, records: Private, facts: Facts, smoothness: float) -> float:
        """Return the smooth sensitivity at these votes. Private."""
        if not self.table.conditions_hold():
            return 0.0
        return smooth_sensitivity(self.table, self.votes.total(records, facts), smoothness)

    def contributors(self) -> tuple[Callable[..., Any], ...]:
        """Return the functions that bound a teacher's part: the tables, and the count of votes."""
        return SeveralClasses.local, TwoClasses.local, *self.votes.contributors()


@dataclass(frozen=True)
class SmoothValue:
    """A value with noise in proportion to its smooth sensitivity, and a margin above it.

        value + (margin + N(0, 1)) noise_multiplier smooth sensitivity

    Proof: docs/proofs/pate.md, section 5.

    Parameters
    ----------
    statistic
        The value.
    noise_multiplier
        The standard deviation of the noise over the smooth sensitivity.
    smoothness
        The most by which the log of the smooth sensitivity changes between neighbours.
    margin
        An offset, in standard deviations of the noise.

    Examples
    --------
    >>> from tacit.privacy import Relation
    >>> from tacit.queries import Facts
    >>> from tacit.queries.votes_cost import SmoothValue, VotesCost
    >>> from tacit.queries.votes import Votes
    >>> from tacit.queries.votes_cost import TwoClasses
    >>> from tacit.records import Bounds
    >>> cost = VotesCost(Votes(100, 250, 2), TwoClasses(40.0, 250, order=24.0))
    >>> facts = Facts(Bounds(), 1, Relation.ADD_REMOVE)
    >>> SmoothValue(cost, 10.0, 0.01, margin=1.6).event(facts).noise_multiplier
    10.0
    """

    statistic: VotesCost
    noise_multiplier: float
    smoothness: float
    margin: float

    def event(self, facts: Facts) -> SmoothGaussian:
        """Return the cost of asking."""
        if not self.statistic.applies(facts):
            raise ValueError("teachers' votes cannot be asked of a Poisson sample.")
        numbers = self.noise_multiplier, self.smoothness, self.margin
        return SmoothGaussian(*numbers, facts.relation)

    def answer(self, records: Private, facts: Facts, source: Source) -> Release[float]:
        """Return the value with its noise and margin."""
        value = self.statistic.total(records, facts)
        size = self.statistic.smooth_sensitivity(records, facts, self.smoothness)
        greatest = self.statistic.sensitivity(facts).value
        return smooth_gaussian(value, size, greatest, self.event(facts), source)
