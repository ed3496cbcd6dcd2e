"""Define clipping rules: a fixed bound on one record's gradient, or one that adapts."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
import torch

from tacit import checks
from tacit.queries.clipped_sum import ClippedSum, ClippedSumAndCount

# Squares of numbers below 2^-74 underflow in float32: with 2^40 parameters, norms of 2^-54. Clips
# are far larger, so no gradient escapes clipping because its norm underflowed.
LEAST_NORM = 2.0**-40
_REMEDY = "pass the greatest length of one record's gradient; the noise is proportional to it."


@runtime_checkable
class Clip(Protocol):
    """A rule that turns the norms of a record's gradients into factors."""

    @property
    def max_grad_norm(self) -> float:
        """How far one record can move the sum of what the rule leaves."""

    def factors(self, norms: torch.Tensor) -> torch.Tensor:
        """Return a factor for each part of a model and each record, from norms of that shape."""


def lengths_of(norms: torch.Tensor) -> torch.Tensor:
    """Return the gradient norm of each record, from the norms of its parts.

    Examples
    --------
    >>> import torch
    >>> from tacit.deep.clipping.clip import lengths_of
    >>> lengths_of(torch.tensor([[3.0, 0.0], [4.0, 1.0]]))
    tensor([5., 1.])
    """
    # torch.norm along the first dimension gives the same, several times slower.
    return norms[0] if norms.shape[0] == 1 else (norms * norms).sum(0).sqrt_()


@dataclass(frozen=True)
class FlatClip:
    """A gradient longer than ``max_grad_norm`` is scaled down to it, all layers together.

    Examples
    --------
    >>> import torch
    >>> from tacit.deep import FlatClip
    >>> FlatClip(1.0).factors(torch.tensor([[3.0, 0.3], [4.0, 0.4]]))
    tensor([[0.2000, 1.0000],
            [0.2000, 1.0000]])
    """

    max_grad_norm: float = 1.0

    def __post_init__(self) -> None:
        checks.positive("max_grad_norm", self.max_grad_norm, least=LEAST_NORM, remedy=_REMEDY)

    def factors(self, norms: torch.Tensor) -> torch.Tensor:
        """Return min(1, max_grad_norm / length)."""
        length = lengths_of(norms)
        return torch.div(self._norm, length.clamp(min=self.max_grad_norm)).expand_as(norms)

    @cached_property
    def _norm(self) -> torch.Tensor:
        return torch.tensor(self.max_grad_norm, dtype=torch.float32)


@dataclass(frozen=True)
class PerLayerClip:
    """Each of k parts of a model is scaled down to C / sqrt(k), so that all together are within C.

    C is ``max_grad_norm``.

    Examples
    --------
    >>> import torch
    >>> from tacit.deep import PerLayerClip
    >>> PerLayerClip(5.0).factors(torch.tensor([[3.0], [10.0], [0.1], [0.2]]))[:, 0]
    tensor([0.8333, 0.2500, 1.0000, 1.0000])
    """

    max_grad_norm: float = 1.0

    def __post_init__(self) -> None:
        checks.positive("max_grad_norm", self.max_grad_norm, least=LEAST_NORM, remedy=_REMEDY)

    def factors(self, norms: torch.Tensor) -> torch.Tensor:
        """Return min(1, C / sqrt(k) / length) for each part by itself."""
        share = self.max_grad_norm / math.sqrt(norms.shape[0])
        return share / norms.clamp(min=share)


@dataclass(frozen=True)
class AutomaticClip:
    """Every gradient is brought to nearly the same length: C g / (||g|| + stability).

    There is no threshold to choose (Bu, Wang, Zha and Karypis 2023): C, which is
    ``max_grad_norm``, only goes with the learning rate.

    Examples
    --------
    >>> import torch
    >>> from tacit.deep import AutomaticClip
    >>> AutomaticClip().factors(torch.tensor([[0.99, 9.99]]))
    tensor([[1.0000, 0.1000]])
    """

    max_grad_norm: float = 1.0
    stability: float = 0.01

    def __post_init__(self) -> None:
        checks.positive("max_grad_norm", self.max_grad_norm, least=LEAST_NORM, remedy=_REMEDY)
        usual = "a hundredth is usual."
        checks.positive("stability", self.stability, least=LEAST_NORM, remedy=usual)

    def factors(self, norms: torch.Tensor) -> torch.Tensor:
        """Return C / (length + stability), below C / length."""
        length = lengths_of(norms)
        return (self.max_grad_norm / (length + self.stability)).expand_as(norms)


Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class FixedState:
    """A fixed clip: only the sum is released."""

    clip: Clip

    @property
    def statistic(self) -> ClippedSum:
        """The statistic of the next step."""
        return ClippedSum(self.clip)

    def gradient(self, released: Array) -> Array:
        """Return the noisy sum."""
        return released


@dataclass(frozen=True)
class AdaptiveClip:
    """A clip that adapts to a quantile of the gradient norms (Andrew et al. 2021).

    The number of short gradients in a batch is released with noise, and the clip is updated:

        short = sum of min(1, max(0, 1/2 + 2 (clip - length) / clip))
        clip <- clip exp(-rate (short / batch_size - quantile))

    A gradient near the clip counts in part: with a hard threshold, rounding could move the count by
    more than one record's share. The count is released together with the sum within the planned
    cost: the noise of the sum is slightly larger instead (docs/proofs/networks.md, section 4).

    Parameters
    ----------
    max_grad_norm
        The clip to start from.
    quantile
        The share of gradients to leave unclipped.
    rate
        The learning rate of the clip.
    count_noise
        The standard deviation of the noise on the count, as a share of the batch size.

    Examples
    --------
    >>> from tacit.deep import AdaptiveClip
    >>> AdaptiveClip(max_grad_norm=1.0).quantile
    0.5
    """

    max_grad_norm: float = 1.0
    quantile: float = 0.5
    rate: float = 0.2
    count_noise: float = 0.05

    def __post_init__(self) -> None:
        remedy = "pass a first guess."
        checks.positive("max_grad_norm", self.max_grad_norm, least=LEAST_NORM, remedy=remedy)
        checks.positive("rate", self.rate, remedy="0.2 is usual.")
        checks.positive("count_noise", self.count_noise, remedy="0.05 is usual.")
        if not 0.0 < self.quantile < 1.0:
            raise ValueError(f"quantile must be in (0, 1), got {self.quantile!r}.")

    def factors(self, norms: torch.Tensor) -> torch.Tensor:
        """Return those of the clip to start from."""
        return FlatClip(self.max_grad_norm).factors(norms)

    def noise_of_sum(self, noise_multiplier: float, batch_size: float) -> float:
        """Return the noise multiplier of the sum alone, without its count.

        z_sum = (z^-2 - (2 s)^-2)^(-1/2) with s the noise on the count, whose sensitivity is 1/2.
        """
        z, s = noise_multiplier, self.count_noise * batch_size
        if 2 * s <= z:
            raise ValueError(
                f"count_noise={self.count_noise:g} is too small for noise_multiplier={z:.4g} and "
                f"batches of {batch_size:g}: counting alone would cost more than the step; raise "
                f"it above {z / (2 * batch_size):.2g}, or take larger batches."
            )
        return float((z**-2 - (2 * s) ** -2) ** -0.5)


class AdaptiveState:
    """The current clip of an `AdaptiveClip`."""

    def __init__(
        self,
        clip: AdaptiveClip,
        noise_multiplier: float,
        batch_size: float,
        norm: float | None = None,
    ) -> None:
        self._settings, self._batch_size = clip, batch_size
        self.norm = clip.max_grad_norm if norm is None else norm
        # With weight a on the count, one noise for all numbers is z_sum C on the sum and s on it.
        self._share = clip.noise_of_sum(noise_multiplier, batch_size) / (
            clip.count_noise * batch_size
        )

    @property
    def clip(self) -> FlatClip:
        """The current clip."""
        return FlatClip(self.norm)

    @property
    def statistic(self) -> ClippedSumAndCount:
        """The statistic of the next step."""
        return ClippedSumAndCount(self.clip, self._share, self._batch_size)

    def gradient(self, released: Array) -> Array:
        """Return the noisy sum, and update the clip by the noisy count."""
        short = released[-1] / (self.norm * self._share) / self._batch_size + 0.5
        change = self._settings.rate * (min(max(short, 0.0), 1.0) - self._settings.quantile)
        self.norm = max(self.norm * math.exp(-change), LEAST_NORM)
        return released[:-1]


def state_of(clip: Clip, noise_multiplier: float, batch_size: float) -> FixedState | AdaptiveState:
    """Return the initial state."""
    if isinstance(clip, AdaptiveClip):
        return AdaptiveState(clip, noise_multiplier, batch_size)
    return FixedState(clip)
