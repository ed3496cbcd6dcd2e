"""Losses on points: the mean's and the geometric median's."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass

import numpy as np

from tacit.erm.losses.base import AnyLoss, Array
from tacit.records import Block, Bounds
from tacit.records.grouped import clipped_vectors, vectors_by_person
from tacit.row_clipping import clipped_rows

_TOUCHING = 1e-150  # distances below it count as 0: their squares underflow


class PointLoss(AnyLoss):
    """A loss of a point w and a record x that is not a function of <w, x>.

    ``lipschitz`` bounds the norm of a gradient, ``smoothness`` that of a Hessian; checked by
    `tacit.testing.check_point_loss`.
    """

    is_linear = False
    tried = (((), ()),)  # points have no labels

    @abstractmethod
    def value(self, point: Array, records: Array) -> Array:
        """Return the loss of every record."""

    @abstractmethod
    def gradients(self, point: Array, records: Array) -> Array:
        """Return the gradient at ``point`` for every record, one per row."""

    def gradient_scale(self, row_norm: float) -> float:
        """Return 1: ``lipschitz`` bounds the gradient itself."""
        return 1.0

    def score_unit(self, bounds: Bounds) -> float:
        """Return the norm bound of the records."""
        return bounds.row_norm

    def default_clip(self, bounds: Bounds) -> float | None:
        """Return the Lipschitz constant, or the diameter of the records' ball."""
        return self.lipschitz if math.isfinite(self.lipschitz) else 2 * bounds.total_norm

    def values(self, block: Block, weights: Array) -> Array:
        """Return the loss of every record of a block."""
        return self.value(weights, block.points())

    def gradient(self, block: Block, weights: Array, bounds: Bounds, clip: float) -> Array:
        """Return the sum of the records' clipped gradients."""
        gradients = self.gradients(weights, block.points())
        sizes = np.linalg.norm(gradients, axis=1)
        factors = np.minimum(1.0, clip / np.maximum(sizes, 1e-300))
        if block.people is not None and math.isfinite(clip):
            return clipped_vectors(block, gradients * factors[:, None], clip)
        result: Array = gradients.T @ factors
        return result

    def vectors(self, block: Block, weights: Array, bounds: Bounds, clip: float) -> Array:
        """Return the clipped gradients, summed per person if records are grouped by person."""
        gradients = clipped_rows(self.gradients(weights, block.points()), clip)
        return gradients if block.people is None else vectors_by_person(block, gradients)

    def value_and_gradient(self, block: Block, weights: Array) -> tuple[Array, Array]:
        """Return the sums of losses and of gradients."""
        gradients = self.gradients(weights, block.points())
        return np.array(self.values(block, weights).sum()), gradients.T @ np.ones(len(gradients))


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
        """Return unit vectors from the records towards w, and zero at w = x."""
        away = point - records
        size = np.linalg.norm(away, axis=1, keepdims=True)
        # Squares below 1e-300 lose digits, and the vector could become longer than 1.
        is_away = size > _TOUCHING
        result: Array = np.where(is_away, away / np.where(is_away, size, 1.0), 0.0)
        return result
