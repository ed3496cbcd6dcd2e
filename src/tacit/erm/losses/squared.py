"""Squared loss, its Lipschitz form, Huber loss and log-cosh loss."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from tacit import checks
from tacit.erm.losses.base import Array, Loss
from tacit.privacy import Event, LogCoshObjective, Relation
from tacit.queries.minimizer import Sizes
from tacit.records import Bounds


@dataclass(frozen=True)
class SquaredLoss(Loss):
    """Half the squared residual, with scores beyond ``score_bound`` extended linearly.

        value = (z - y)^2 / 2 where |z| <= B, its tangent elsewhere;  d1 = clip(z, -B, B) - y

    Guarantee: |d1| <= score_bound + label_bound; 0 <= d2 <= 1. With an infinite bound the loss
    is plain least squares and has no Lipschitz constant: it needs sufficient statistics or
    gradient clipping.

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
                    f"{name} must be positive, got {getattr(self, name)!r}; pass a bound on "
                    "its size, or leave it infinite for plain least squares."
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

    Clipping d1 of the squared loss to ``knot`` gives this loss.

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


_NEARLY_FREE = 7 / 8  # share of the ridge at which curvature is free; see free_regularization


@dataclass(frozen=True)
class LogCoshLoss(Loss):
    """Log cosh of the residual r = z - y, scaled so that it is r^2 / 2 for small residuals.

        value = knot^2 log cosh(r / knot),   d1 = knot tanh(r / knot),   d2 = 1 - tanh^2

    Like `HuberLoss`, but its second derivative vanishes as d1 saturates: d2 = 1 - (d1 / knot)^2. No
    record has both a large gradient and a large second derivative, so that objective perturbation
    needs little more noise than one Gaussian release (docs/proofs/objective_perturbation.md,
    section 12).

    Guarantee: |d1| <= knot; 0 <= d2 <= 1.

    Parameters
    ----------
    knot
        The residual around which the loss changes from quadratic to linear.
    widens
        Whether a mechanism may increase the knot if this adds little noise. With many records or a
        large budget the loss then tends to the squared loss.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.erm.losses import LogCoshLoss
    >>> LogCoshLoss(1.0).d1(np.array([0.1, 30.0]), np.zeros(2)).round(3)
    array([0.1, 1. ])
    """

    knot: float = 1.0
    widens: bool = False

    key = "log_cosh"
    tried = tuple(((knot,), (-3.0, 0.0, 0.5, 2.0)) for knot in (1.0, 0.01, 300.0))
    smoothness = 1.0

    def __post_init__(self) -> None:
        if not 0.0 < self.knot < math.inf:
            raise ValueError(
                f"knot must be positive and finite, got {self.knot!r}; pass the residual around "
                "which the loss changes from quadratic to linear, or use SquaredLoss() for none."
            )

    @property
    def lipschitz(self) -> float:
        """The knot."""
        return self.knot

    def with_wider_slope(self, factor: float) -> Self:
        """Return the loss with its knot ``factor`` times as large, if ``widens``."""
        return replace(self, knot=self.knot * factor) if self.widens else self

    def without_smoothing(self, bounds: Bounds) -> Loss:
        """Return the Huber loss with the same bound on d1, if ``widens``.

        The knot is at most the label range: no label is further from a score within the range.
        """
        return HuberLoss(min(self.knot, 2 * bounds.label_bound)) if self.widens else self

    def perturbed_event(
        self, sizes: Sizes, regularization: float, noise_std: float, relation: Relation
    ) -> Event:
        """Return the event of log-cosh (docs/proofs/objective_perturbation.md, section 12)."""
        return LogCoshObjective(
            sizes.lipschitz, sizes.smoothness, regularization, noise_std, relation
        )

    def free_regularization(self, row_norm: float, epsilon: float) -> float:
        """Return 7/4 R^2 / epsilon.

        From 2 R^2 / epsilon on, the effect of a record on the curvature is free
        (docs/proofs/objective_perturbation.md, section 12). An eighth less costs half a percent of
        noise, and lowers the bias of the ridge by a quarter.
        """
        return _NEARLY_FREE * 2 * row_norm**2 / epsilon

    def value(self, score: Array, label: Array) -> Array:
        """Return knot^2 log cosh(r / knot), to full precision for small and large residuals."""
        size = np.abs(score - label) / self.knot
        with np.errstate(under="ignore"):
            small = np.log1p(2 * np.sinh(np.minimum(size, 1.0) / 2) ** 2)
            large = size + np.log1p(np.exp(-2 * size)) - math.log(2)
        result: Array = self.knot**2 * np.where(size < 1.0, small, large)
        return result

    def d1(self, score: Array, label: Array) -> Array:
        """Return knot tanh(r / knot)."""
        result: Array = self.knot * np.tanh((score - label) / self.knot)
        return result

    def d2(self, score: Array, label: Array) -> Array:
        """Return 1 - tanh(r / knot)^2."""
        result: Array = 1.0 - np.tanh((score - label) / self.knot) ** 2
        return result
