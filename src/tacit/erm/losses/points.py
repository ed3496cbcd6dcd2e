"""Losses of a point: the mean's and the geometric median's."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tacit.erm.losses.base import Array, PointLoss

_TOUCHING = 1e-150


@dataclass(frozen=True)
class SquaredDistanceLoss(PointLoss):
    """Half the squared distance ||w - x||^2 / 2, minimised by the mean.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.erm.losses import SquaredDistanceLoss
    >>> SquaredDistanceLoss().value(np.zeros(2), np.array([[3.0, 4.0]]))
    array([12.5])
    """

    key = "squared_distance"
    lipschitz = math.inf
    smoothness = 1.0

    def value(self, point: Array, records: Array) -> Array:
        """Return half the squared distances."""
        result: Array = 0.5 * np.sum((point - records) ** 2, axis=1)
        return result

    def gradients(self, point: Array, records: Array) -> Array:
        """Return w - x."""
        return point - records


@dataclass(frozen=True)
class DistanceLoss(PointLoss):
    """Distance ||w - x||, minimised by the geometric median.

    Guarantee: gradients have norm at most 1.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.erm.losses import DistanceLoss
    >>> DistanceLoss().gradients(np.zeros(2), np.array([[3.0, 4.0]]))
    array([[-0.6, -0.8]])
    """

    key = "distance"
    lipschitz = 1.0
    smoothness = math.inf

    def value(self, point: Array, records: Array) -> Array:
        """Return the distances."""
        result: Array = np.linalg.norm(point - records, axis=1)
        return result

    def gradients(self, point: Array, records: Array) -> Array:
        """Return unit vectors towards w, zero at a record itself."""
        away = point - records
        size = np.linalg.norm(away, axis=1, keepdims=True)
        # squares below 1e-300 lose their digits, and the vector could be longer than 1
        apart = size > _TOUCHING
        result: Array = np.where(apart, away / np.where(apart, size, 1.0), 0.0)
        return result
