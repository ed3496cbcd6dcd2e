"""Noise that partly cancels from step to step, for records that come in an order of their own.

Where batches cannot be drawn at random, nothing hides who is in one, and the noise of a step is
large. What training needs is the sum of the gradients so far; noise that is correlated over steps
makes those sums exact for less (docs/proofs/networks.md, section 5).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import numpy.typing as npt

from tacit import checks
from tacit.privacy import Event, Gaussian, Relation, Repeated

Array = npt.NDArray[np.float64]


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
    >>> from tacit.deep import TreeNoise
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
    sums: list[Array] = field(default_factory=list)  # by level, of the steps that are open
    nodes: dict[int, Array] = field(default_factory=dict)  # released, by level
    total: Array | None = None

    def to_release(self, total: Array) -> Array:
        """Return the sum over the last 2^k steps, k the zeros at the end of the step's number."""
        self.step += 1
        level = (self.step & -self.step).bit_length() - 1
        node = total.copy()
        for lower in range(level):
            node += self.sums[lower]
        while len(self.sums) <= level:
            self.sums.append(np.zeros_like(total))
        for lower in range(level):
            self.sums[lower] = np.zeros_like(total)
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
    >>> from tacit.deep import BandedNoise
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
