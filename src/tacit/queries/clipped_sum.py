"""State the sensitivity of sums of clipped network gradients.

`tacit.deep` computes the gradients: its sessions hold a batch of records together with the network.
This module needs no torch; it bounds the effect of one record on a sum.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from tacit.noise import Norm
from tacit.privacy import Relation
from tacit.queries.base import Array, Facts, Private, Sensitivity

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
class ClippedSum:
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

    clip: ClipRule

    @classmethod
    def tried(cls) -> tuple[ClippedSum, ...]:
        """Return the instances that `tacit.testing.check_query` tries."""
        return (cls(_FlatClip(0.75)),)

    def neighbours(self, facts: Facts) -> Iterator[tuple[Batch, Batch]]:
        """Yield batches that are neighbours, of gradients that are hard to clip."""
        yield from _neighbours(self.clip.max_grad_norm, facts, ())

    def applies(self, facts: Facts) -> bool:
        """Return whether records are protected; gradients are not clipped per person."""
        return not facts.relation.by_person

    def sensitivity(self, facts: Facts) -> Sensitivity:
        """Return C, or 2 C, and what float32 may add."""
        value = facts.n_changed * self.clip.max_grad_norm * (1 + FLOAT_SLACK)
        return Sensitivity(value, Norm.L2, "networks.md#1-a-sum-of-clipped-gradients")

    def total(self, records: Private, facts: Facts) -> Array:
        """Return the sum. Private."""
        return np.asarray(records.clipped(self.clip).total())

    def contributors(self) -> tuple[Callable[..., Any], ...]:
        """Return the clip's factors, by which `tacit.deep.clipping` multiplies."""
        return (self.clip.factors,)


@dataclass(frozen=True)
class ClippedSumAndCount:
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

    clip: ClipRule
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

    def applies(self, facts: Facts) -> bool:
        """Return whether records are protected; gradients are not clipped per person."""
        return not facts.relation.by_person

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

    def contributors(self) -> tuple[Callable[..., Any], ...]:
        """Return the clip's factors, by which `tacit.deep.clipping` multiplies."""
        return (self.clip.factors,)


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
