"""Squared loss, its Lipschitz form, and Huber's."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tacit import checks
from tacit.erm.losses.base import Array
from tacit.erm.losses.scores import Loss


@dataclass(frozen=True)
class SquaredLoss(Loss):
    """Half the squared residual, with scores beyond ``score_bound`` extended linearly.

        value = (z - y)^2 / 2 where |z| <= B, its tangent elsewhere;  d1 = clip(z, -B, B) - y

    Guarantee: |d1| <= score_bound + label_bound; 0 <= d2 <= 1. With an infinite bound the loss
    is plain least squares and has no Lipschitz constant: only sufficient statistics, or gradient
    clipping, will take it.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.erm.losses import SquaredLoss
    >>> SquaredLoss(score_bound=2.0, label_bound=1.0).lipschitz
    3.0
    """

    score_bound: float = math.inf
    label_bound: float = math.inf

    key = "squared"
    tried = (
        ((), (-3.0, 0.0, 0.5, 2.0)),
        ((2.0, 3.0), (-3.0, 0.0, 3.0)),
        ((50.0, 0.1), (-0.1, 0.0, 0.05, 0.1)),
        ((1.0,), (-3.0, 0.0, 0.5, 2.0)),
    )
    is_square = True
    smoothness = 1.0

    def __post_init__(self) -> None:
        for name in ("score_bound", "label_bound"):
            if not getattr(self, name) > 0.0:
                raise ValueError(
                    f"{name} must be positive, got {getattr(self, name)!r}; pass the greatest size "
                    "that counts, or leave it infinite for plain least squares."
                )

    @property
    def lipschitz(self) -> float:
        """B + label bound."""
        return self.score_bound + self.label_bound

    def usable_labels(self, label: Array) -> Array:
        """Return labels in [-label_bound, label_bound]."""
        return np.clip(label, -self.label_bound, self.label_bound)

    def value(self, score: Array, label: Array) -> Array:
        """Return half the square, or its tangent."""
        inside = np.clip(score, -self.score_bound, self.score_bound)
        return 0.5 * (inside - label) ** 2 + (inside - label) * (score - inside)

    def d1(self, score: Array, label: Array) -> Array:
        """Return clip(z) - y."""
        return np.clip(score, -self.score_bound, self.score_bound) - label

    def d2(self, score: Array, label: Array) -> Array:
        """Return 1 inside the bound."""
        return np.where(np.abs(score) < self.score_bound, 1.0, 0.0)


@dataclass(frozen=True)
class HuberLoss(Loss):
    """Huber loss of the residual r = z - y (Huber 1964).

        value = r^2 / 2 where |r| <= knot,  knot (|r| - knot / 2) elsewhere

    Clipping each record's gradient of the squared loss at slope ``knot`` gives this loss.

    Guarantee: |d1| <= knot; 0 <= d2 <= 1.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.erm.losses import HuberLoss
    >>> HuberLoss(1.0).value(np.array([0.5, 3.0]), np.zeros(2))
    array([0.125, 2.5  ])
    """

    knot: float = 1.0

    key = "huber"
    tried = tuple(((knot,), (-3.0, 0.0, 0.5, 2.0)) for knot in (1.0, 0.01, 300.0))
    smoothness = 1.0

    def __post_init__(self) -> None:
        checks.positive(
            "knot",
            self.knot,
            remedy="pass the residual beyond which the loss grows linearly, or use SquaredLoss() "
            "for none.",
        )

    @property
    def lipschitz(self) -> float:
        """The knot."""
        return self.knot

    def value(self, score: Array, label: Array) -> Array:
        """Return the quadratic and linear pieces."""
        size = np.abs(score - label)
        inside = np.minimum(size, self.knot)
        return inside * (size - 0.5 * inside)

    def d1(self, score: Array, label: Array) -> Array:
        """Return the clipped residual."""
        return np.clip(score - label, -self.knot, self.knot)

    def d2(self, score: Array, label: Array) -> Array:
        """Return 1 inside the knot."""
        return np.where(np.abs(score - label) < self.knot, 1.0, 0.0)
