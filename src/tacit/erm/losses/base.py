"""What a loss declares: its derivatives on the score, and constants that bound them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]


class Loss(ABC):
    """A loss of a score z = <w, x> and a label y, convex in z.

    Declared, and checked by `tacit.testing.check_loss`:

    ``lipschitz``
        bound on |d1|; infinite if there is none.
    ``smoothness``
        bound on d2; infinite where d1 jumps.
    ``monotone``
        whether the loss is a function of y z with a derivative of one sign.

    Losses know scores; only the objective knows rows, and only there does R become R squared.
    """

    key: ClassVar[str]
    monotone: ClassVar[bool] = False

    lipschitz: float
    smoothness: float

    def usable_labels(self, label: Array) -> Array:
        """Return labels moved to where the declared constants hold; most losses take any."""
        return label

    def score_unit(self, label_bound: float) -> float:
        """Return the size a score has when the model fits: the labels' own unless overridden."""
        return label_bound if np.isfinite(label_bound) else 1.0

    @abstractmethod
    def value(self, score: Array, label: Array) -> Array:
        """Return the loss of each score."""

    @abstractmethod
    def d1(self, score: Array, label: Array) -> Array:
        """Return the derivative, or a subgradient, in the score."""

    @abstractmethod
    def d2(self, score: Array, label: Array) -> Array:
        """Return the second derivative in the score, 0 where it does not exist."""


class PointLoss(ABC):
    """A loss of a point w and a record x that is not a function of <w, x>."""

    key: ClassVar[str]

    lipschitz: float
    smoothness: float

    @abstractmethod
    def value(self, point: Array, records: Array) -> Array:
        """Return the loss of every record."""

    @abstractmethod
    def gradients(self, point: Array, records: Array) -> Array:
        """Return the gradient at ``point`` for every record, one a row."""
