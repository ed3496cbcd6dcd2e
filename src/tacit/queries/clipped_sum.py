"""Sum clipped network gradients of a batch, or of ordered batches with correlated noise.

`tacit.deep` computes the gradients: its sessions hold a batch of records together with the network.
This module needs no torch; it bounds the effect of one record on a sum.

If batches cannot be drawn at random, sampling hides nobody, and the noise of a step is large.
Training needs the running sum of the gradients; noise that is correlated over steps, and partly
cancels, makes running sums accurate at a lower cost (docs/proofs/networks.md, section 5).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from tacit import checks
from tacit.noise import Norm, Release, Source
from tacit.privacy import Event, Gaussian, Relation, Repeated
from tacit.queries.base import Array, Facts, Private, Sensitivity
from tacit.queries.noise import GaussianNoise, NoisySum, price_of_drawn
from tacit.queries.session import CorrelatedSteps, Slot

# Float error of a float32 sum, as a share of the clip (docs/proofs/networks.md, section 2).
FLOAT_SLACK = 2.0**-10
# Relative error of the norm of a record's gradient that other records in the batch may cause; the
# largest measured value is 2^-15.6 (docs/proofs/networks.md, section 4).
LENGTH_SLACK = 2.0**-12
# Width of the ramp over which a gradient counts as short in part, as a share of the clip.
_RAMP = 0.5


class ClipRule(Protocol):
    """A rule of `tacit.deep` that maps the norms of a record's gradients to factors."""

    @property
    def max_grad_norm(self) -> float:
        """C: no record's gradient is longer once it is multiplied by its factors."""

    def factors(self, norms: Any, /) -> Any:
        """Return a factor for each part of a model and each record."""


class ClippedGradients(Protocol):
    """The gradients of a `tacit.deep` batch."""

    def total(self) -> Array:
        """Return the sum of the clipped gradients, one number per trained parameter."""

    def lengths(self) -> Array:
        """Return the norm of each record's gradient before clipping."""


class Batch(Protocol):
    """Records and the network that they train; the statistics of this module are asked of it."""

    def clipped(self, clip: ClipRule) -> ClippedGradients:
        """Return the gradients of the records, each clipped on its own."""


@dataclass(frozen=True)
class _OfClippedGradients:
    """The common part of sums of gradients, each clipped to a norm."""

    clip: ClipRule

    def applies(self, facts: Facts) -> bool:
        """Return whether records are protected; gradients are not clipped per person."""
        return not facts.relation.by_person

    def contributors(self) -> tuple[Callable[..., Any], ...]:
        """Return the clip's factors.

        `tacit.deep.clipping.book_keeping.BookKeeper` multiplies gradients by them.
        """
        return (self.clip.factors,)


@dataclass(frozen=True)
class ClippedSum(_OfClippedGradients):
    """The sum of records' gradients, each clipped to a norm.

    Parameters
    ----------
    clip
        `FlatClip`, `PerLayerClip` or `AutomaticClip` of `tacit.deep`.

    Examples
    --------
    >>> from tacit.privacy import Relation
    >>> from tacit.queries.clipped_sum import ClippedSum
    >>> from tacit.queries import Facts
    >>> from tacit.records import Bounds
    >>> for statistic in ClippedSum.tried():
    ...     statistic.sensitivity(Facts(Bounds(), 0, Relation.REPLACE)).value
    1.50146484375
    """

    @classmethod
    def tried(cls) -> tuple[ClippedSum, ...]:
        """Return the instances that `tacit.testing.check_query` tries."""
        return (cls(_FlatClip(0.75)),)

    def neighbours(self, facts: Facts) -> Iterator[tuple[Batch, Batch]]:
        """Yield batches that are neighbours, of gradients that are hard to clip."""
        yield from _neighbours(self.clip.max_grad_norm, facts, ())

    def sensitivity(self, facts: Facts) -> Sensitivity:
        """Return C, or 2 C, and what float32 may add."""
        value = facts.n_changed * self.clip.max_grad_norm * (1 + FLOAT_SLACK)
        return Sensitivity(value, Norm.L2, "networks.md#1-a-sum-of-clipped-gradients")

    def total(self, records: Private, facts: Facts) -> Array:
        """Return the sum. Private."""
        return np.asarray(records.clipped(self.clip).total())


@dataclass(frozen=True)
class ClippedSumAndCount(_OfClippedGradients):
    """The sum of clipped gradients, and the number of short gradients.

    The last number is a n_short, less half of all records:

        n_short = sum_i (b_i - 1/2),   b_i = min(1, max(0, 1/2 + 2 (C - ||g_i||) / C))

    A gradient near the clip counts in part. Otherwise rounding would decide on which side of the
    clip it is, and one record could move the count of all others (docs/proofs/networks.md, section
    4).

    Parameters
    ----------
    clip
        All layers together are scaled down to its norm C.
    share
        a / C, the weight of the count.
    batch_size
        The expected number of records. A batch has at most 2 batch_size + 64 records, except with
        probability below e^-79.
    """

    share: float
    batch_size: float

    @classmethod
    def tried(cls) -> tuple[ClippedSumAndCount, ...]:
        """Return the instances that `tacit.testing.check_query` tries."""
        return cls(_FlatClip(0.75), 1.0, 8.0), cls(_FlatClip(0.75), 4.0, 0.5)

    def neighbours(self, facts: Facts) -> Iterator[tuple[Batch, Batch]]:
        """Yield neighbouring batches, among them full ones whose norms are rounded differently."""
        full = int(2 * self.batch_size + 63)
        yield from _neighbours(self.clip.max_grad_norm, facts, (0.75, 1.0, 1.25), full)

    def sensitivity(self, facts: Facts) -> Sensitivity:
        """Return sqrt(C^2 + a^2 (1/2 + r)^2), r the others' rounding; twice that under REPLACE.

        A gradient that counts in part has norm at most C (1 + w / 2), with w the width of the ramp.
        Its count changes by 1 / (w C) per unit of norm.
        """
        others = (2 * self.batch_size + 64) * LENGTH_SLACK * (1 + _RAMP / 2) / _RAMP
        count_sensitivity = self.clip.max_grad_norm * self.share * (0.5 + others)
        value = facts.n_changed * math.hypot(
            self.clip.max_grad_norm * (1 + FLOAT_SLACK), count_sensitivity
        )
        return Sensitivity(value, Norm.L2, "networks.md#4-a-clip-that-adapts")

    def total(self, records: Private, facts: Facts) -> Array:
        """Return the sum and the weighted count. Private."""
        found, norm = records.clipped(self.clip), self.clip.max_grad_norm
        short = np.clip((norm - found.lengths()) / (_RAMP * norm), -0.5, 0.5)
        return np.append(found.total(), norm * self.share * float(short.sum()))


@dataclass(frozen=True)
class _FlatClip:
    """A flat clip like those of `tacit.deep`, for conformance tests without torch."""

    max_grad_norm: float

    def factors(self, lengths: Array) -> Array:
        """Return min(1, C / length)."""
        return self.max_grad_norm / np.maximum(lengths, self.max_grad_norm)


@dataclass(frozen=True)
class _Gradients:
    """A batch of given gradients, whose norms are read with the factor ``stretched``."""

    rows: Array
    stretched: float = 1.0
    factors: Array | float = 1.0

    def __len__(self) -> int:
        return len(self.rows)

    def batch(self, places: Any) -> _Gradients:
        return _Gradients(self.rows[places], self.stretched)

    def clipped(self, clip: ClipRule) -> _Gradients:
        return _Gradients(self.rows, self.stretched, clip.factors(self._norms()))

    def total(self) -> Array:
        return np.asarray(np.transpose(self.rows) @ np.broadcast_to(self.factors, len(self.rows)))

    def lengths(self) -> Array:
        return self._norms() * self.stretched

    def _norms(self) -> Array:
        return np.asarray(np.linalg.norm(self.rows, axis=1))


def _neighbours(
    norm: float, facts: Facts, shares: tuple[float, ...], full: int = 0
) -> Iterator[tuple[Batch, Batch]]:
    """Yield pairs: some records with and without one more, or with one replaced.

    The record is far out, at the clip, short or zero. With ``shares``, ``full`` other records have
    norms of these shares of the clip, and rounding raises or lowers all of them in one batch.
    """
    axis = np.eye(2)
    odd = norm * np.stack([1e6 * axis[0], -1e6 * axis[0], axis[1], 0.1 * axis[0], 0 * axis[0]])
    few = [(odd[:0], 0.0), (odd[[0, 2, 4]], 0.0)]
    few += [
        (np.repeat(share * norm * axis[1:], full, axis=0), sign)
        for share in shares
        for sign in (-1.0, 1.0)
    ]
    for rows, sign in few:
        stretched = 1 + sign * LENGTH_SLACK
        if facts.relation is Relation.REPLACE:
            for x, v in itertools.product(odd, odd):
                yield _Gradients(np.vstack([rows, x])), _Gradients(np.vstack([rows, v]), stretched)
        else:
            for x in odd:
                yield _Gradients(rows), _Gradients(np.vstack([rows, x]), stretched)


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
    >>> from tacit.queries.clipped_sum import TreeNoise
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
    >>> from tacit.queries.clipped_sum import BandedNoise
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
class OrderedSum(_OfClippedGradients):
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

    The price is the event of the whole run; the rule `CorrelatedSteps` charges it once.

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
        return Slot(self.event(facts), CorrelatedSteps(n_steps))

    def answer(self, records: Private, facts: Facts, source: Source) -> Release[Array]:
        """Return an estimate of the sum over the next batch."""
        noisy = NoisySum(self.statistic, GaussianNoise(self.multiplier))
        released = noisy.answer(records, facts, source)
        event = price_of_drawn(
            released.event, lambda z: CorrelatedStep(self.statistic, z).event(facts)
        )
        return Release(records.estimate(np.asarray(released.value)), event)
