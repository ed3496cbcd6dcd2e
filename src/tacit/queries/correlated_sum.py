"""Noise that partly cancels from step to step, for records that come in an order of their own.

Where batches cannot be drawn at random, nothing hides who is in one, and the noise of a step is
large. What training needs is the sum of the gradients so far; noise that is correlated over steps
makes those sums exact for less (docs/proofs/networks.md, section 5).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from tacit import checks
from tacit.noise import Norm, Release, Source
from tacit.privacy import Event, Gaussian, Relation, Repeated
from tacit.queries.base import Array, Facts, Private, Sensitivity
from tacit.queries.clipped_sum import FLOAT_SLACK, ClippedSum, ClipRule
from tacit.queries.noisy_sum import GaussianNoise, NoisySum, price_of_drawn
from tacit.queries.rules import Sequence, Slot


class CorrelatedNoise(Protocol):
    """How a sequence of sums is released so that its running totals are."""

    def event(
        self, noise_multiplier: float, n_steps: int, epochs: int, relation: Relation
    ) -> Event:
        """Return what ``epochs`` passes of ``n_steps`` steps cost, a record once in each."""

    def spread(self, n_steps: int, epochs: int) -> float:
        """Return the sensitivity of what is released, over that of a sum."""

    def start(self) -> CorrelatedState:
        """Return the state before the first step of a pass."""


class CorrelatedState(Protocol):
    """What was summed and released so far."""

    def to_release(self, total: Array) -> Array:
        """Return the vector that is released at the next step, from that step's sum."""

    def estimate(self, released: Array) -> Array:
        """Return an estimate of that step's sum: what adds up to the released totals."""


@dataclass(frozen=True)
class TreeNoise:
    """Sums over 1, 2, 4, 8 ... steps, each with noise of its own: a record is in few of them.

    DP-FTRL (Kairouz et al. 2021): of T steps a record's step is in at most ceil(log2(T + 1)) sums
    that are released. Every pass has a tree of its own.

    Examples
    --------
    >>> from tacit.queries.correlated_sum import TreeNoise
    >>> TreeNoise().event(4.0, n_steps=100, epochs=1).count
    7
    """

    def event(
        self,
        noise_multiplier: float,
        n_steps: int,
        epochs: int,
        relation: Relation = Relation.REPLACE,
    ) -> Repeated:
        """Return Gaussian noise, once for every level of every tree."""
        levels = math.ceil(math.log2(n_steps + 1))
        return Repeated(Gaussian(noise_multiplier, relation), levels * epochs)

    def spread(self, n_steps: int, epochs: int) -> float:
        """Return 1: each sum is released by itself."""
        return 1.0

    def start(self) -> _Tree:
        """Return an empty tree."""
        return _Tree()


@dataclass
class _Tree:
    """Node sums of a binary counter: at step t, the one that ends there, over 2^k steps."""

    step: int = 0
    sums: dict[int, Array] = field(default_factory=dict)  # by level, of the steps that are open
    nodes: dict[int, Array] = field(default_factory=dict)  # released, by level
    total: Array | None = None

    def to_release(self, total: Array) -> Array:
        """Return the sum over the last 2^k steps, k the zeros at the end of the step's number."""
        self.step += 1
        level = (self.step & -self.step).bit_length() - 1
        node = total.copy()
        for lower in range(level):  # all of them are open, as a binary counter carries
            node += self.sums.pop(lower)
        self.sums[level] = node
        return node

    def estimate(self, released: Array) -> Array:
        """Return how the noisy total has changed: the nodes of the step's binary digits."""
        level = (self.step & -self.step).bit_length() - 1
        self.nodes = {k: node for k, node in self.nodes.items() if k > level}
        self.nodes[level] = released
        total = np.sum(list(self.nodes.values()), axis=0)
        change: Array = total if self.total is None else total - self.total
        self.total = total
        return change


@dataclass(frozen=True)
class BandedNoise:
    """Each step's release mixes the last few sums: C x + Z, C banded and Toeplitz.

    The coefficients are those of the square root of summation, 1, 1/2, 3/8, 5/16 ..., cut off after
    ``bands``; from C x + Z the sums x are solved for, and their noise cancels in totals. Records
    must be at least ``bands`` steps apart from themselves, so that a pass has at least as many.

    Examples
    --------
    >>> from tacit.queries.correlated_sum import BandedNoise
    >>> BandedNoise(3).coefficients.tolist()
    [1.0, 0.5, 0.375]
    >>> round(BandedNoise(3).spread(n_steps=10, epochs=4), 4)
    2.3585
    """

    bands: int = 8

    def __post_init__(self) -> None:
        checks.count("bands", self.bands)

    @property
    def coefficients(self) -> Array:
        """c_0 = 1, c_k = c_(k-1) (2 k - 1) / (2 k)."""
        k = np.arange(1, self.bands)
        return np.concatenate([[1.0], np.cumprod((2 * k - 1) / (2 * k))])

    def event(
        self,
        noise_multiplier: float,
        n_steps: int,
        epochs: int,
        relation: Relation = Relation.REPLACE,
    ) -> Gaussian:
        """Return Gaussian noise once: the whole sequence is one release."""
        return Gaussian(noise_multiplier, relation)

    def spread(self, n_steps: int, epochs: int) -> float:
        """Return sqrt(epochs) ||c||: a record's columns of C do not overlap."""
        if n_steps < self.bands:
            raise ValueError(
                f"a pass has {n_steps} steps and the noise {self.bands} bands: a record would meet "
                "itself in one; take smaller batches or fewer bands."
            )
        # rounded up: a sum of squares of doubles
        return math.sqrt(epochs) * float(np.linalg.norm(self.coefficients)) * (1 + 1e-12)

    def start(self) -> _Band:
        """Return the state before the first step."""
        return _Band(self.coefficients)


@dataclass
class _Band:
    coefficients: Array
    sums: list[Array] = field(default_factory=list)  # the last few, newest first
    estimates: list[Array] = field(default_factory=list)

    def to_release(self, total: Array) -> Array:
        """Return (C x)_t = sum_j c_j x_(t-j)."""
        self.sums = [total, *self.sums][: len(self.coefficients)]
        pairs = zip(self.coefficients, self.sums, strict=False)
        return np.asarray(sum(c * x for c, x in pairs), dtype=np.float64)

    def estimate(self, released: Array) -> Array:
        """Return x_t = y_t - sum_(j >= 1) c_j x_(t-j), which solves C x = y."""
        found = released.copy()
        for c, x in zip(self.coefficients[1:], self.estimates, strict=False):
            found -= c * x
        self.estimates = [found, *self.estimates][: len(self.coefficients) - 1]
        return found


@dataclass(frozen=True)
class OrderedSum:
    """The sum of clipped gradients over the next batch, mixed with those before it.

    Batches are ``batch_size`` records in a row, in the records' own order, ``epochs`` times; what
    is mixed is what the noise asks for. Its total is one step; its sensitivity is that of the
    sums of all steps together, or, for a `TreeNoise`, of each of those that its event counts.

    Parameters
    ----------
    clip
        `FlatClip`, `PerLayerClip` or `AutomaticClip` of `tacit.deep`.
    noise
        `TreeNoise` or `BandedNoise`.
    n_records
        How many records there are; others do not count.
    batch_size, epochs
        How many records a batch has, and how often each record is in one.
    """

    clip: ClipRule
    noise: CorrelatedNoise
    n_records: int
    batch_size: int
    epochs: int

    @classmethod
    def tried(cls) -> tuple[OrderedSum, ...]:
        """Return the ones that `tacit.testing.check_query` tries."""
        (one,) = ClippedSum.tried()
        noises = TreeNoise(), BandedNoise(1), BandedNoise(3)
        return tuple(cls(one.clip, noise, 8, 2, 1) for noise in noises)

    def neighbours(self, facts: Facts) -> Iterator[tuple[OrderedRun, OrderedRun]]:
        """Yield runs before their first step, whose first batches are neighbours."""
        for one, other in ClippedSum(self.clip).neighbours(facts):
            yield OrderedRun(self, one), OrderedRun(self, other)

    def applies(self, facts: Facts) -> bool:
        """Return whether records keep their places."""
        return facts.relation is Relation.REPLACE

    @property
    def steps_per_epoch(self) -> int:
        """How many batches a pass has."""
        return -(-self.n_records // self.batch_size)

    @property
    def spread(self) -> float:
        """The sensitivity of what is released, over that of a sum."""
        return self.noise.spread(self.steps_per_epoch, self.epochs)

    def sensitivity(self, facts: Facts) -> Sensitivity:
        """Return 2 C times the spread, and what float32 may add."""
        if not self.applies(facts):
            raise ValueError(
                "batches in the records' order are known by their places, so that relation must be "
                "REPLACE: without a record all others would move up. Pass "
                "Budget(epsilon, delta, Relation.REPLACE)."
            )
        value = facts.n_changed * self.clip.max_grad_norm * (1 + FLOAT_SLACK) * self.spread
        return Sensitivity(value, Norm.L2, "networks.md#5-noise-shared-between-steps")

    def total(self, records: Private, facts: Facts) -> Array:
        """Return what is released of the next step. Private."""
        return np.asarray(records.mixed(self))

    def contributors(self) -> tuple[Callable[..., Any], ...]:
        """Return the clip's factors, by which `tacit.deep.clipping.BookKeeper` multiplies."""
        return (self.clip.factors,)


class OrderedRun:
    """Batches in their order, and the sums of earlier steps that later ones are mixed with.

    Private: what a session of a run holds. Every question goes on to the next batch, so that no
    record is in more sums than was charged for.

    Parameters
    ----------
    statistic
        The one that may be asked.
    batches
        The records, and the network that they train: ``len``, and a `Batch` at some places.
    """

    def __init__(self, statistic: OrderedSum, batches: Private) -> None:
        self._statistic, self._batches, self._n_made = statistic, batches, 0
        self._state = statistic.noise.start()

    def mixed(self, statistic: OrderedSum) -> Array:
        """Go on to the next batch, and return what is released of it."""
        if statistic != self._statistic:
            raise RuntimeError("a run in the records' order was asked for another sum.")
        place, size = self._n_made % statistic.steps_per_epoch, statistic.batch_size
        if place == 0 and isinstance(statistic.noise, TreeNoise):
            self._state = statistic.noise.start()  # a tree for every pass
        self._n_made += 1
        last = min((place + 1) * size, len(self._batches), statistic.n_records)
        batch = self._batches.batch(np.arange(place * size, last))
        return self._state.to_release(batch.clipped(statistic.clip).total())

    def estimate(self, released: Array) -> Array:
        """Return an estimate of the sum over the batch, from what was released of it."""
        return self._state.estimate(released)


@dataclass(frozen=True)
class CorrelatedStep:
    """One step of a run with correlated noise: answers with an estimate of its batch's sum.

    Its price is the event of the whole run, which the rule `Sequence` takes for all steps together.

    Parameters
    ----------
    statistic
        What is added up, in which order.
    multiplier
        The standard deviation of the noise of a step, in sensitivities.
    """

    statistic: OrderedSum
    multiplier: float

    def event(self, facts: Facts) -> Event:
        """Return what all steps cost."""
        of = self.statistic
        return of.noise.event(self.multiplier, of.steps_per_epoch, of.epochs, facts.relation)

    def slot(self, facts: Facts) -> Slot:
        """Return what a plan pays for the run."""
        n_steps = self.statistic.steps_per_epoch * self.statistic.epochs
        return Slot(self.event(facts), Sequence(n_steps))

    def answer(self, records: Private, facts: Facts, source: Source) -> Release[Array]:
        """Return an estimate of the sum over the next batch."""
        noisy = NoisySum(self.statistic, GaussianNoise(self.multiplier))
        released = noisy.answer(records, facts, source)
        event = price_of_drawn(
            released.event, lambda z: CorrelatedStep(self.statistic, z).event(facts)
        )
        return Release(records.estimate(np.asarray(released.value)), event)
