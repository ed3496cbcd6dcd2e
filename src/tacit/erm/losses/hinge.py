"""Hinge loss, and its smooth form."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tacit.erm.losses.base import Array, Loss


@dataclass(frozen=True)
class HingeLoss(Loss):
    """Hinge loss of the margin m = y z: value = max(0, 1 - m).

    Guarantee: |d1| <= 1; not smooth; monotone.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.erm.losses import HingeLoss
    >>> HingeLoss().value(np.array([0.0, 2.0]), np.array([1.0, 1.0]))
    array([1., 0.])
    """

    key = "hinge"
    tried = (((), (-1.0, 1.0)),)
    monotone = True
    lipschitz = 1.0
    smoothness = math.inf

    def usable_labels(self, label: Array) -> Array:
        """Return -1 or 1."""
        return np.where(label > 0, 1.0, -1.0)

    def value(self, score: Array, label: Array) -> Array:
        """Return max(0, 1 - m)."""
        return np.maximum(0.0, 1.0 - label * score)

    def d1(self, score: Array, label: Array) -> Array:
        """Return -y where m < 1."""
        return np.where(label * score < 1.0, -label, 0.0)

    def d2(self, score: Array, label: Array) -> Array:
        """Return 0."""
        return np.zeros_like(score)


@dataclass(frozen=True)
class SmoothHingeLoss(Loss):
    """Huber-smoothed hinge loss of the margin m = y z (Chapelle 2007).

        value = 0                             where m > 1 + h
                (1 + h - m)^2 / (4 h)         where |1 - m| <= h
                1 - m                         elsewhere

    Guarantee: |d1| <= 1; 0 <= d2 <= 1 / (2 h); monotone.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.erm.losses import SmoothHingeLoss
    >>> SmoothHingeLoss(0.5).value(np.array([0.0, 1.0]), np.ones(2))
    array([1.   , 0.125])
    """

    smoothing: float = 0.5

    key = "smooth_hinge"
    tried = tuple(((h,), (-1.0, 1.0)) for h in (0.5, 0.01, 1.0))
    monotone = True
    lipschitz = 1.0

    def __post_init__(self) -> None:
        if not 0.0 < self.smoothing <= 1.0:
            raise ValueError(f"smoothing must be in (0, 1], got {self.smoothing!r}; try 0.5.")

    @property
    def smoothness(self) -> float:
        """1 / (2 h)."""
        return 1.0 / (2.0 * self.smoothing)

    def usable_labels(self, label: Array) -> Array:
        """Return -1 or 1."""
        return np.where(label > 0, 1.0, -1.0)

    def value(self, score: Array, label: Array) -> Array:
        """Return the three pieces."""
        h, gap = self.smoothing, 1.0 - label * score
        return np.where(gap > h, gap, np.clip(gap + h, 0.0, None) ** 2 / (4.0 * h))

    def d1(self, score: Array, label: Array) -> Array:
        """Return -y times a factor that rises from 0 to 1."""
        h = self.smoothing
        return -label * np.clip((1.0 + h - label * score) / (2.0 * h), 0.0, 1.0)

    def d2(self, score: Array, label: Array) -> Array:
        """Return 1 / (2 h) near the corner."""
        inside = np.abs(1.0 - label * score) < self.smoothing
        return np.where(inside, self.smoothness, 0.0)
