"""How far the data-dependent cost of votes can move, smoothly: tables by chance of upset or count.

With v the place of a query, q = (m - 1) Phi(-v) for m classes, one teacher moves v by at most
c = sqrt(2) / noise_std (docs/proofs/pate.md, section 4). For two classes a query's place is the
count of votes itself, and nothing is bounded at all.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import log_ndtr, ndtri_exp

from tacit.pate.accounting.data_dependent import log_chance_of_upset, query_renyi

Array = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]

_PLACES = np.linspace(-1.0, 45.0, 4097)
# What rounding may look like in a condition, as a share of the worst case.
_ROUNDING = 1e-12


@dataclass(frozen=True)
class SeveralClasses:
    """The cost of a query at one order, by its place v, and how it moves.

    ``conditions_hold`` says whether the cost rises with the chance of upset (C5), and whether
    what one more teacher adds to it does, below where Theorem 6 ends (C6); both are looked
    at on a grid of 4,097 places. Where they do not, there is no smooth sensitivity.
    """

    noise_std: float
    n_classes: int
    order: float

    @property
    def step(self) -> float:
        """How far one teacher moves a place."""
        return math.sqrt(2.0) / self.noise_std

    @property
    def worst(self) -> float:
        """The cost of a query whatever the votes."""
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
        """Return what the cost rises by when one teacher makes the vote less clear."""
        return self.cost(places - self.step) - self.cost(places)

    @cached_property
    def edge(self) -> float:
        """The place, rounded up, above which Theorem 6 says less than the worst case."""
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
        """The greatest change of all: from the worst case to one step beyond the edge."""
        return self.worst - float(self.cost(np.array([self.edge + self.step]))[0])

    def conditions_hold(self) -> bool:
        """Return whether C5 and C6 hold."""
        if math.isinf(self.edge):
            return True  # the worst case is the cost everywhere, which never moves
        falls = np.diff(self.cost(_PLACES[self.edge <= _PLACES]))
        eases = np.diff(self.change(_PLACES[self.edge + self.step <= _PLACES]))
        room = _ROUNDING * self.worst
        return bool(np.all(falls <= room) and np.all(eases <= room))

    def local(self, places: Array, distance: int) -> Array:
        """Return the greatest change within ``distance`` teachers of each place, by C5 and C6.

        It is 0 below the edge, at most the peak up to a step above it, and falls from there.
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
    """The cost of a query at one order, by the votes for the second class, and how it moves.

    The place of a query is its count n_1 of 0 to n_teachers; the winner is Bernoulli(Phi(t)),
    t = (2 n_1 - n_teachers - cut) / (sqrt(2) noise_std). Everything is exact.
    """

    noise_std: float
    n_teachers: int
    order: float
    cut: float = 0.0

    @cached_property
    def costs(self) -> Array:
        """The divergence at each count: against its two neighbours, in the worse order."""
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
        """Return True: there are none."""
        return True

    def local(self, places: Counts, distance: int) -> Array:
        """Return the greatest change within ``distance`` teachers of each count."""
        # change[j] is between counts j and j + 1; counts from n_1 - d - 1 to n_1 + d + 1 are met.
        change, reach = np.abs(np.diff(self.costs)), distance + 1
        windows = np.lib.stride_tricks.sliding_window_view(np.pad(change, reach), 2 * reach)
        greatest: Array = windows.max(axis=1)[places]
        return greatest


Table = SeveralClasses | TwoClasses


def smooth_sensitivity(table: Table, votes: npt.ArrayLike, smoothness: float) -> float:
    """Return the smooth sensitivity of the summed cost of these votes.

        S = max over d of exp(-smoothness d) (sum over queries of the greatest change within d)

    d goes on until no further term can be the greatest: a query never changes by more than the
    worst case.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.pate.accounting import TwoClasses, smooth_sensitivity
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
