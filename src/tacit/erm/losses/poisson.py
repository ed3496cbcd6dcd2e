"""Poisson loss with a bounded derivative."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from scipy.special import pdtrik

from tacit.erm.losses.base import Array, Loss
from tacit.records import Bounds

# The exponential of this score is still finite, and larger than any label.
_LARGEST = 690.0
# The least rate that a typical count is assumed to have: half of the records count nothing.
_LEAST_RATE = math.log(2.0)


@dataclass(frozen=True)
class PoissonLoss(Loss):
    """Poisson deviance exp(z) - y z, linearised where its derivative exceeds ``slope_bound``.

        d1 = clip(exp(z) - y, -C, C),  C = slope_bound

    Linearising keeps the loss convex and a function of the score (Redberg et al. 2023).

    Guarantee: |d1| <= slope_bound. d2 = exp(z) where d1 is not clipped, so that d2 is at most
    slope_bound + label_bound.

    Assumes labels in [0, label_bound], which Bounds enforces.

    Parameters
    ----------
    slope_bound
        C, the bound on d1.
    label_bound
        The greatest label.
    widens
        Whether a mechanism may increase C if this adds little noise. With many records or a large
        budget no derivative is then clipped at a rate that lies in the range of the labels.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.erm.losses import PoissonLoss
    >>> PoissonLoss(5.0, 10.0).d1(np.array([0.0, 9.0]), np.array([1.0, 1.0]))
    array([0., 5.])
    """

    slope_bound: float = math.inf
    label_bound: float = math.inf
    widens: bool = False

    key = "poisson"
    tried = (
        ((5.0, 10.0), (0.0, 1.0, 4.0, 10.0)),
        ((0.1, 20.0), (0.0, 1.0, 20.0)),
        ((1000.0, 1.0), (0.0, 1.0)),
        ((5.0,), (0.0, 3.0)),
    )

    def __post_init__(self) -> None:
        for name in ("slope_bound", "label_bound"):
            if not getattr(self, name) > 0.0:
                raise ValueError(
                    f"{name} must be positive, got {getattr(self, name)!r}; pass a bound on "
                    "its size, or leave it infinite for the plain deviance."
                )

    @property
    def lipschitz(self) -> float:
        """C."""
        return self.slope_bound

    @property
    def smoothness(self) -> float:
        """C plus the greatest label."""
        return self.slope_bound + self.label_bound

    @property
    def usual_second_derivative(self) -> float:
        """2 C: a rate is rarely above twice the greatest residual of a count."""
        return min(2 * self.slope_bound, self.smoothness)

    def with_wider_slope(self, factor: float) -> Self:
        """Return the loss with C ``factor`` times as large, if ``widens``.

        C is at most the greatest label: a rate in the range of the labels has no larger residual.
        """
        if not self.widens:
            return self
        most = max(self.slope_bound, self.label_bound)
        return replace(self, slope_bound=min(self.slope_bound * factor, most))

    def score_unit(self, bounds: Bounds) -> float:
        """Return 1, a unit of the log rate."""
        top = bounds.label_bound
        return max(1.0, math.log1p(top)) if math.isfinite(top) else 1.0

    def guess(self, bounds: Bounds) -> float | None:
        """Return the excess deviance of the mid-range score for a count of half the label bound."""
        if bounds.label_range is None:
            return super().guess(bounds)
        middle = (bounds.label_range[0] + bounds.label_range[1]) / 2
        if not middle > 0.0:
            return None
        at = self.value(np.log([middle, middle / 2]), np.array([middle / 2, middle / 2]))
        return float(at[0] - at[1])

    def typical_records(self, bounds: Bounds, rarer: float) -> tuple[Array, Array]:
        """Return counts of a rate of an eighth of the greatest count, at the score of that rate."""
        top = bounds.label_bound if math.isfinite(bounds.label_bound) else 8.0
        rate = max(top / 8, _LEAST_RATE)
        labels: Array = pdtrik((np.arange(99) + 0.5) / 99, rate)
        return np.full(99, math.log(rate)), np.maximum(labels, 0.0)

    def _inside(self, score: Array, label: Array) -> Array:
        """Return the score clipped to the range in which d1 is within its bound."""
        with np.errstate(divide="ignore"):
            low = np.log(np.maximum(label - self.slope_bound, 0.0))
        high = np.log(np.minimum(label + self.slope_bound, math.exp(_LARGEST)))
        return np.clip(score, low, high)

    def usable_labels(self, label: Array) -> Array:
        """Return labels in [0, label_bound]."""
        return np.clip(label, 0.0, self.label_bound)

    def value(self, score: Array, label: Array) -> Array:
        """Return exp(z) - y z inside, its tangent outside."""
        inside = self._inside(score, label)
        rate = np.exp(inside)
        return rate - label * inside + (rate - label) * (score - inside)

    def d1(self, score: Array, label: Array) -> Array:
        """Return the clipped derivative."""
        slope = np.exp(np.minimum(score, _LARGEST)) - label
        return np.clip(slope, -self.slope_bound, self.slope_bound)

    def d2(self, score: Array, label: Array) -> Array:
        """Return exp(z) inside, 0 outside."""
        inside = self._inside(score, label)
        return np.where(inside == score, np.exp(inside), 0.0)


@dataclass(frozen=True)
class PoissonOffsetLoss(PoissonLoss):
    """Poisson deviance of a score with an offset o that is known for each record.

        value = exp(z + o) - y (z + o),   linearised as in `PoissonLoss`

    Labels have two columns: y, and a number l in the range of the labels with o = start + step l.
    Bounds clip both to that range. For a fixed record the loss is that of `PoissonLoss` at a
    shifted score, so that it is convex with the same bounds on d1 and d2.

    Guarantee: |d1| <= slope_bound and d2 <= slope_bound + label_bound, whatever the offsets are.

    Parameters
    ----------
    slope_bound, label_bound, widens
        As in `PoissonLoss`.
    start, step
        The offset of a second column of 0, and its change per unit of that column.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.erm.losses import PoissonOffsetLoss
    >>> loss = PoissonOffsetLoss(5.0, 10.0, start=0.0, step=0.1)
    >>> loss.d1(np.zeros(2), np.array([[1.0, 0.0], [1.0, 10.0]])).round(3)  # offsets 0 and 1
    array([0.   , 1.718])
    """

    start: float = 0.0
    step: float = 0.0

    key = "poisson_offset"
    takes_offset = True

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("start", "step"):
            if not math.isfinite(getattr(self, name)):
                raise ValueError(f"{name} must be finite, got {getattr(self, name)!r}.")

    @property
    def largest_offset(self) -> float:
        """The greatest absolute offset, of labels from 0 to the label bound."""
        return abs(self.start) + abs(self.step) * self.label_bound

    def value(self, score: Array, label: Array) -> Array:
        """Return the loss at the shifted score."""
        return super().value(*self._shifted(score, label))

    def d1(self, score: Array, label: Array) -> Array:
        """Return the clipped derivative at the shifted score."""
        return super().d1(*self._shifted(score, label))

    def d2(self, score: Array, label: Array) -> Array:
        """Return the second derivative at the shifted score."""
        return super().d2(*self._shifted(score, label))

    def _shifted(self, score: Array, label: Array) -> tuple[Array, Array]:
        """Return scores with offsets, and counts; labels of one column have no offset."""
        if label.ndim == score.ndim:
            return score, label
        return score + (self.start + self.step * label[..., 1]), label[..., 0]
