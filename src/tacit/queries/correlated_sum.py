"""Release running sums with correlated noise, for records in a fixed order.

If batches cannot be drawn at random, sampling hides nobody, and the noise of a step is large.
Training needs the running sum of the gradients; noise that is correlated over steps, and partly
cancels, makes running sums accurate at a lower cost (docs/proofs/networks.md, section 5).
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
    """A strategy that releases a sequence of sums with accurate running totals."""

    def event(
        self, noise_multiplier: float, n_steps: int, epochs: int, relation: Relation
    ) -> Event:
        """Return the cost of ``epochs`` passes of ``n_steps`` steps, a record once in each."""

    def spread(self, n_steps: int, epochs: int) -> float:
        """Return the sensitivity of the released sequence over that of one sum."""

    def start(self) -> CorrelatedState:
        """Return the state before the first step of a pass."""


class CorrelatedState(Protocol):
    """The sums and releases so far."""

    def to_release(self, total: Array) -> Array:
        """Return the vector to release at the next step, given that step's sum."""

    def estimate(self, released: Array) -> Array:
        """Return an estimate of that step's sum, consistent with the released totals."""


@dataclass(frozen=True)
class TreeNoise:
    """Sums over 1, 2, 4, 8 ... steps, each with its own noise; a record is in few of them.

    DP-FTRL (Kairouz et al. 2021): in T steps a record's step is in at most ceil(log2(T + 1))
    released sums. Every pass has its own tree.

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
        """Return Gaussian noise, once per level of every tree."""
        levels = math.ceil(math.log2(n_steps + 1))
        return Repeated(Gaussian(noise_multiplier, relation), levels * epochs)

    def spread(self, n_steps: int, epochs: int) -> float:
        """Return 1: each sum is released on its own."""
        return 1.0

    def start(self) -> _Tree:
        """Return an empty tree."""
        return _Tree()


@dataclass
class _Tree:
    """Node sums of a binary counter; step t completes the node over the last 2^k steps."""

    step: int = 0
    sums: dict[int, Array] = field(default_factory=dict)  # by level, of open nodes
    nodes: dict[int, Array] = field(default_factory=dict)  # released, by level
    total: Array | None = None

    def to_release(self, total: Array) -> Array:
        """Return the sum over the last 2^k steps, k the number of trailing zeros of t."""
        self.step += 1
        level = (self.step & -self.step).bit_length() - 1
        node = total.copy()
        for lower in range(level):  # all are open, since a binary counter carries
            node += self.sums.pop(lower)
        self.sums[level] = node
        return node

    def estimate(self, released: Array) -> Array:
        """Return the change of the noisy total, from the nodes of the step's binary digits."""
        level = (self.step & -self.step).bit_length() - 1
        self.nodes = {k: node for k, node in self.nodes.items() if k > level}
        self.nodes[level] = released
        total = np.sum(list(self.nodes.values()), axis=0)
        change: Array = total if self.total is None else total - self.total
        self.total = total
        return change


@dataclass(frozen=True)
class BandedNoise:
    """Each step releases a mix of the last sums: C x + Z, C banded and Toeplitz.

    The coefficients are those of the square root of summation, 1, 1/2, 3/8, 5/16 ..., cut off after
    ``bands``. Solving C x + Z for x gives sums whose noise cancels in totals. Appearances of a
    record must be at least ``bands`` steps apart, so that a pass needs at least that many steps.

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
        """Return one Gaussian event: the whole sequence is one release."""
        return Gaussian(noise_multiplier, relation)

    def spread(self, n_steps: int, epochs: int) -> float:
        """Return sqrt(epochs) ||c||: a record's columns of C do not overlap."""
        if n_steps < self.bands:
            raise ValueError(
                f"a pass has {n_steps} steps and the noise {self.bands} bands, so that a record "
                "could be twice in one band; use smaller batches or fewer bands."
            )
        # rounded up, against the float error of the sum of squares
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
        """Return x_t = y_t - sum_(j >= 1) c_j x_(t-j), the solution of C x = y."""
        found = released.copy()
        for c, x in zip(self.coefficients[1:], self.estimates, strict=False):
            found -= c * x
        self.estimates = [found, *self.estimates][: len(self.coefficients) - 1]
        return found


@dataclass(frozen=True)
class OrderedSum:
    """The sum of clipped gradients over the next batch, mixed with earlier sums.

    Batches are ``batch_size`` consecutive records in the records' own order, ``epochs`` times. The
    noise determines the mix. The total is one step. The sensitivity is that of all steps together;
    for a `TreeNoise` it is that of each sum that its event counts.

    Parameters
    ----------
    clip
        `FlatClip`, `PerLayerClip` or `AutomaticClip` of `tacit.deep`.
    noise
        `TreeNoise` or `BandedNoise`.
    n_records
        The number of records; further records do not count.
    batch_size, epochs
        The size of a batch, and the number of batches that contain each record.
    """

    clip: ClipRule
    noise: CorrelatedNoise
    n_records: int
    batch_size: int
    epochs: int

    @classmethod
    def tried(cls) -> tuple[OrderedSum, ...]:
        """Return the instances that `tacit.testing.check_query` tries."""
        (one,) = ClippedSum.tried()
        noises = TreeNoise(), BandedNoise(1), BandedNoise(3)
        return tuple(cls(one.clip, noise, 8, 2, 1) for noise in noises)

    def neighbours(self, facts: Facts) -> Iterator[tuple[OrderedRun, OrderedRun]]:
        """Yield runs before their first step, whose first batches are neighbours."""
        for one, other in ClippedSum(self.clip).neighbours(facts):
            yield OrderedRun(self, one), OrderedRun(self, other)

    def applies(self, facts: Facts) -> bool:
        """Return whether the relation keeps the positions of records."""
        return facts.relation is Relation.REPLACE

    @property
    def steps_per_epoch(self) -> int:
        """The number of batches in a pass."""
        return -(-self.n_records // self.batch_size)

    @property
    def spread(self) -> float:
        """The sensitivity of the released sequence over that of one sum."""
        return self.noise.spread(self.steps_per_epoch, self.epochs)

    def sensitivity(self, facts: Facts) -> Sensitivity:
        """Return 2 C times the spread, plus the float32 error."""
        if not self.applies(facts):
            raise ValueError(
                "relation must be REPLACE for batches in the records' order: without a record "
                "all later records would move up by one position. Pass "
                "Budget(epsilon, delta, Relation.REPLACE)."
            )
        value = facts.n_changed * self.clip.max_grad_norm * (1 + FLOAT_SLACK) * self.spread
        return Sensitivity(value, Norm.L2, "networks.md#5-noise-shared-between-steps")

    def total(self, records: Private, facts: Facts) -> Array:
        """Return the vector to release at the next step. Private."""
        return np.asarray(records.mixed(self))

    def contributors(self) -> tuple[Callable[..., Any], ...]:
        """Return the clip's factors, by which `tacit.deep.clipping` multiplies."""
        return (self.clip.factors,)


class OrderedRun:
    """Batches in their order, and the sums of earlier steps that are mixed into later ones.

    Private: the session of a run holds it. Every query advances to the next batch, so that no
    record is in more sums than were charged.

    Parameters
    ----------
    statistic
        The only statistic that may be asked.
    batches
        The records, and the network that they train: ``len``, and a `Batch` at some places.
    """

    def __init__(self, statistic: OrderedSum, batches: Private) -> None:
        self._statistic, self._batches, self._n_made = statistic, batches, 0
        self._state = statistic.noise.start()

    def mixed(self, statistic: OrderedSum) -> Array:
        """Advance to the next batch, and return the vector to release."""
        if statistic != self._statistic:
            raise RuntimeError("this run in the records' order was planned for another sum.")
        place, size = self._n_made % statistic.steps_per_epoch, statistic.batch_size
        if place == 0 and isinstance(statistic.noise, TreeNoise):
            self._state = statistic.noise.start()  # a new tree for every pass
        self._n_made += 1
        last = min((place + 1) * size, len(self._batches), statistic.n_records)
        batch = self._batches.batch(np.arange(place * size, last))
        return self._state.to_release(batch.clipped(statistic.clip).total())

    def estimate(self, released: Array) -> Array:
        """Return an estimate of the sum over the batch from its release."""
        return self._state.estimate(released)


@dataclass(frozen=True)
class CorrelatedStep:
    """One step of a run with correlated noise; the answer estimates the sum of its batch.

    The price is the event of the whole run; the rule `Sequence` charges it once for all steps.

    Parameters
    ----------
    statistic
        The ordered sum.
    multiplier
        The standard deviation of a step's noise, in units of the sensitivity.
    """

    statistic: OrderedSum
    multiplier: float

    def event(self, facts: Facts) -> Event:
        """Return the cost of all steps together."""
        of = self.statistic
        return of.noise.event(self.multiplier, of.steps_per_epoch, of.epochs, facts.relation)

    def slot(self, facts: Facts) -> Slot:
        """Return the slot of the run."""
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
