"""Hold the current clip: a fixed one, or one that adapts to the norms of gradients."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from tacit import checks
from tacit.deep.clipping import Clip, FlatClip
from tacit.deep.clipping.clip import LEAST_NORM
from tacit.queries.clipped_sum import ClippedSum, ClippedSumAndCount

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
