"""A majority of two classes decided with Gaussian noise: the event and its Renyi divergence.

    P_t = Bernoulli(Phi(t)),   r(a) = sup over t of D_a(P_t || P_(t + h))

(docs/proofs/pate.md, section 3). The supremum is taken over cells of t. In each cell every factor
is replaced by its greatest value, so the result is an upper bound. Cells that cannot contain the
supremum are dropped, and the others are refined.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import log_ndtr

from tacit.privacy.budget import Relation
from tacit.privacy.events.base import Array, Event

# Below this shift the terms cancel; the Gaussian's divergence, at most pi / 2 as much, is used.
SMALL_SHIFT = 1e-4
_N_CELLS = 256
_N_ROUNDS = 4
# Distance that the grid extends to either side of the possible location of the supremum.
_WIDEST = 9.0
# Relative rounding errors: of the sums, and of the exponents.
_RELATIVE, _OF_EXPONENTS = 1e-8, 4e-15
# Above this exponent, r^a is used as an upper bound of r^a - 1 - a (r - 1).
_LARGE = 30.0


def majority_renyi(shift: float, orders: Array) -> Array:
    """Return a bound on the supremum over t of D_a(P_t || P_(t + shift)), at most a shift^2/2.

    The substitution t -> -t - shift shows that the other order of arguments has the same supremum.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.privacy.events.majority import majority_renyi
    >>> gaussian = 2.0 * 0.01**2 / 2
    >>> round(float(majority_renyi(0.01, np.array([2.0]))[0]) / gaussian, 3)  # 2 / pi
    0.637
    """
    a = np.asarray(orders, dtype=np.float64)
    gaussian: Array = a * shift**2 / 2
    if shift < SMALL_SHIFT:
        return gaussian
    low = np.full(a.size, -_WIDEST - shift)
    high = np.maximum((a.ravel() - 1) * shift, 0.0) + _WIDEST
    tails = np.maximum(_left_tail(a.ravel(), shift, low), _right_tail(a.ravel(), shift, high))
    for _ in range(_N_ROUNDS):
        edges = np.linspace(low, high, _N_CELLS + 1, axis=1)
        upper, at = _cells(a.reshape(-1, 1), shift, edges)
        best = at.max(axis=1, keepdims=True)
        candidates = upper >= best  # only these cells can contain the supremum
        first, last = candidates.argmax(axis=1), _N_CELLS - 1 - candidates[:, ::-1].argmax(axis=1)
        rows = np.arange(a.size)
        low, high = edges[rows, first], edges[rows, last + 1]
    log_excess = np.maximum(upper.max(axis=1), tails).reshape(a.shape)
    # D_a = log(1 + excess) / (a - 1)
    worst: Array = np.logaddexp(0.0, log_excess) / (a - 1)
    return np.minimum(worst, gaussian)


def _cells(a: Array, shift: float, edges: Array) -> tuple[Array, Array]:
    """Return log(M - 1): an upper bound over each cell, and the value at its lower edge.

        M - 1 = q f(p / q) + (1 - q) f((1 - p) / (1 - q)),   f(r) = r^a - 1 - a (r - 1)

    p = Phi(t), q = Phi(t + shift). As t grows, q, p / q < 1 and (1 - p) / (1 - q) > 1 all grow; f
    decreases below 1 and increases above it. So the first term is at most q at the upper edge
    times f at the lower one, and the second 1 - q at the lower edge times f at the upper one.
    """
    log_q, log_rest = log_ndtr(edges + shift), log_ndtr(-edges - shift)
    log_p, log_other = log_ndtr(edges), log_ndtr(-edges)
    first = _log_f(a, log_p - log_q)
    second = _log_f(a, log_other - log_rest)
    slack = np.log1p(_RELATIVE) + _OF_EXPONENTS * a * (np.abs(log_other) + np.abs(log_rest))
    bound = np.logaddexp(log_q[:, 1:] + first[:, :-1], log_rest[:, :-1] + second[:, 1:])
    value = np.logaddexp(log_q + first, log_rest + second)
    return bound + np.maximum(slack[:, :-1], slack[:, 1:]), value[:, :-1] - slack[:, :-1]


def _log_f(a: Array, log_ratio: Array) -> Array:
    """Return log(r^a - 1 - a (r - 1)), or its upper bound a log r if that is large."""
    exponent = a * log_ratio
    with np.errstate(divide="ignore"):
        small = np.minimum(exponent, _LARGE), np.minimum(log_ratio, _LARGE)
        exact = np.log(np.maximum(np.expm1(small[0]) - a * np.expm1(small[1]), 0.0))
    return np.where(exponent > _LARGE, exponent, exact)


def _left_tail(a: Array, shift: float, t: Array) -> Array:
    """Return a bound on log(M - 1) below t: q f(p / q) <= q (a - 1), and the other term at t."""
    ratio = log_ndtr(-t) - log_ndtr(-t - shift)
    bound: Array = np.logaddexp(log_ndtr(t + shift) + np.log(a - 1), _log_f(a, ratio))
    return bound


def _right_tail(a: Array, shift: float, t: Array) -> Array:
    """Return a bound on log(M - 1) above t >= (a - 1) shift, where (1 - p)^a (1 - q)^(1 - a) falls.

    Its logarithmic derivative is -a m(t) + (a - 1) m(t + shift), with m the Gaussian's hazard,
    m' < 1 and m(t) > t.
    """
    log_other, log_rest = log_ndtr(-t), log_ndtr(-t - shift)
    slack = _OF_EXPONENTS * a * (np.abs(log_other) + np.abs(log_rest))
    second = a * log_other + (1 - a) * log_rest + slack
    bound: Array = np.logaddexp(_log_f(a, log_ndtr(t) - log_ndtr(t + shift)), second)
    return bound


@dataclass(frozen=True)
class NoisyMajority(Event):
    """The class with more votes, after noise on both counts; only the winner is released.

    Contract: neighbours differ in one vote, which moves one count up and the other down by one;
    the second class wins if n_2 - n_1 + N(0, 2 noise_std^2) is above a public number.

    Guarantee (docs/proofs/pate.md, section 3): the winner is Bernoulli(Phi(t)) on one neighbour and
    Bernoulli(Phi(t +- h)) on the other, h = sqrt(2) / noise_std, for some t, so

        renyi(a) = sup over t of D_a(Bernoulli(Phi(t)) || Bernoulli(Phi(t + h))), rounded up

    Many winners together cost as little as 2 / pi of what Gaussian counts cost. A single winner
    costs as much as a Gaussian of mu = h, since each epsilon has its own worst t. State a few
    winners as ``Gaussian(noise_std / sqrt(2))``, which is also true, and cheaper.

    Examples
    --------
    >>> from tacit.privacy import Gaussian, Guarantee, NoisyMajority, Repeated
    >>> winners = Guarantee(Repeated(NoisyMajority(100.0), 500)).epsilon(1e-5)
    >>> counts = Guarantee(Repeated(Gaussian(100.0 / 2**0.5), 500)).epsilon(1e-5)
    >>> round(winners, 2), round(counts, 2)
    (1.02, 1.2)
    """

    kind = "noisy_majority"

    noise_std: float
    relation: Relation = Relation.ADD_REMOVE

    def __post_init__(self) -> None:
        self._check(noise_std="votes without noise are NonPrivate(reason=...).")

    @property
    def _shift(self) -> float:
        return math.sqrt(2.0) / self.noise_std

    def gaussian_bound(self) -> float:
        """Return the mu of the noisy margin, whose sign is the winner.

        A vote moves n_2 - n_1 by 2, the noise has std sqrt(2) noise_std: mu = sqrt(2) / noise_std.
        """
        return self._shift

    def renyi(self, orders: Array) -> Array:
        """Return the divergence at the worst margin."""
        return majority_renyi(self._shift, orders)
