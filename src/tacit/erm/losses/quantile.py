"""Absolute and quantile (pinball) loss, exact and smoothed."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from tacit.erm.losses.base import Array, Loss


@dataclass(frozen=True)
class QuantileLoss(Loss):
    """Pinball loss of the residual r = z - y, whose minimiser is the ``level`` quantile.

        d1 = 1 - level where r > h,  -level where r < -h,  linear in between

    ``smoothing`` = h; at 0 the loss is max((1 - level) r, -level r) exactly.

    Guarantee: |d1| <= max(level, 1 - level); d2 <= 1 / (2 h).

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.erm.losses import QuantileLoss
    >>> QuantileLoss(0.9).value(np.array([1.0, -1.0]), np.zeros(2)).round(1)
    array([0.1, 0.9])
    """

    level: float = 0.5
    smoothing: float = 0.0

    key = "quantile"
    tried = tuple(
        ((level, smoothing), (-3.0, 0.0, 0.5, 2.0))
        for level, smoothing in ((0.5, 0.0), (0.9, 0.0), (0.05, 0.3), (0.5, 0.001))
    )

    def __post_init__(self) -> None:
        if not 0.0 < self.level < 1.0:
            raise ValueError(f"level must be between 0 and 1, got {self.level!r}; 0.5 is a median.")
        if not 0.0 <= self.smoothing < math.inf:
            raise ValueError(
                f"smoothing must be finite and not negative, got {self.smoothing!r}; 0 is the "
                "exact loss."
            )

    @property
    def lipschitz(self) -> float:
        """max(level, 1 - level), the steeper side."""
        return max(self.level, 1.0 - self.level)

    @property
    def smoothness(self) -> float:
        """1 / (2 h)."""
        return 1.0 / (2.0 * self.smoothing) if self.smoothing > 0.0 else math.inf

    def rounded(self, unit: float) -> Iterator[Self]:
        """Yield smoothings, each with a Hessian, of widths down to a millionth of a unit."""
        sharpest, width = max(self.smoothing, 1e-6 * unit), unit
        while width > sharpest:
            yield replace(self, smoothing=width)
            width /= 2
        yield replace(self, smoothing=sharpest)

    def value(self, score: Array, label: Array) -> Array:
        """Return the asymmetric absolute value, smoothed at the corner."""
        r, h = score - label, self.smoothing
        # (1/2 - level) r + |r| / 2, with |r| replaced by (r^2 + h^2) / (2 h) near 0
        size = np.abs(r)
        if h > 0.0:
            size = np.where(size < h, (r * r + h * h) / (2.0 * h), size)
        return (0.5 - self.level) * r + 0.5 * size

    def d1(self, score: Array, label: Array) -> Array:
        """Return the derivative, in [-level, 1 - level]."""
        r = score - label
        step = np.clip(r / self.smoothing, -1.0, 1.0) if self.smoothing > 0.0 else np.sign(r)
        return (0.5 - self.level) + 0.5 * step

    def d2(self, score: Array, label: Array) -> Array:
        """Return 1 / (2 h) near the corner."""
        if self.smoothing == 0.0:
            return np.zeros_like(score)
        return np.where(np.abs(score - label) < self.smoothing, self.smoothness, 0.0)


@dataclass(frozen=True)
class AbsoluteLoss(Loss):
    """Absolute residual |z - y|.

    Guarantee: |d1| <= 1; not smooth.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.erm.losses import AbsoluteLoss
    >>> AbsoluteLoss().value(np.array([-2.0]), np.zeros(1))
    array([2.])
    """

    key = "absolute"
    tried = (((), (-3.0, 0.0, 0.5, 2.0)),)
    lipschitz = 1.0
    smoothness = math.inf
    level = 0.5

    def value(self, score: Array, label: Array) -> Array:
        """Return |r|."""
        return np.abs(score - label)

    def d1(self, score: Array, label: Array) -> Array:
        """Return the sign of r."""
        return np.sign(score - label)

    def d2(self, score: Array, label: Array) -> Array:
        """Return 0."""
        return np.zeros_like(score)
