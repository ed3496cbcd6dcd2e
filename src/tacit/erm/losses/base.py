"""What every loss declares, whatever it is a function of; what a loss does not have is None."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import ClassVar, Self

import numpy as np
import numpy.typing as npt

from tacit.privacy import Event, Relation
from tacit.queries.minimizer import Sizes
from tacit.records import Block, Bounds
from tacit.records.exact.lattice import LatticeBlock
from tacit.records.exact.sums import RowLattice
from tacit.records.linear_transform import Coordinates

Array = npt.NDArray[np.float64]


class AnyLoss(ABC):
    """A convex loss: constants that bound its derivatives, and sums over blocks of records.

    Mechanisms ask for what they need and never for a loss's type. A loss on scores <w, x> is a
    `Loss`, one on points w a `PointLoss`.
    """

    key: ClassVar[str]
    tried: ClassVar[tuple[tuple[tuple[float, ...], tuple[float, ...]], ...]]  # of `examples`
    is_linear: ClassVar[bool]  # whether it is a function of <w, x>, so that gradients follow rows
    is_square: ClassVar[bool] = False  # whether X'X and X'y are all it asks of the records
    monotone: ClassVar[bool] = False  # whether a function of y z with a derivative of one sign
    is_likelihood: ClassVar[bool] = False  # whether E d1^2 = E d2 where the model holds

    @property
    @abstractmethod
    def lipschitz(self) -> float:
        """Bound on slopes; infinite if there is none."""

    @property
    @abstractmethod
    def smoothness(self) -> float:
        """Bound on how fast slopes turn; infinite where they jump."""

    @property
    def n_outputs(self) -> int:
        """How many scores a record has."""
        return 1

    @property
    def hessian_rank(self) -> int:
        """The greatest rank of the Hessian in the scores."""
        return 1

    @property
    def hessian_trace(self) -> float:
        """The greatest trace of the Hessian in the scores; on points, for one coordinate."""
        return self.smoothness

    @property
    def usual_curvature(self) -> float:
        """What second derivatives seldom exceed; standard errors count none above it."""
        return self.smoothness

    @property
    def level(self) -> float | None:
        """The quantile that minimises the loss on a line."""
        return None

    @classmethod
    def examples(cls) -> tuple[tuple[Self, tuple[float, ...]], ...]:
        """Return losses of this kind, each with labels at which its constants are attained."""
        return tuple((cls(*parameters), labels) for parameters, labels in cls.tried)

    @abstractmethod
    def gradient_scale(self, row_norm: float) -> float:
        """Return what a slope is multiplied by, at most, in a record's gradient."""

    @abstractmethod
    def score_unit(self, bounds: Bounds) -> float:
        """Return the size a score has when the model fits."""

    @abstractmethod
    def default_clip(self, bounds: Bounds) -> float | None:
        """Return the slope at which a descent clips unless told otherwise."""

    def is_sharp(self, bounds: Bounds, steepest: float = math.inf) -> bool:
        """Return whether slopes of size up to ``steepest`` jump, or nearly do."""
        return False

    def perturbed_event(
        self, sizes: Sizes, regularization: float, noise_std: float, relation: Relation
    ) -> Event | None:
        """Return the tightest event proved for the objective under a Gaussian tilt."""
        return None

    def free_regularization(self, row_norm: float, epsilon: float) -> float | None:
        """Return the least ridge with which a record's effect on the curvature costs nothing."""
        return None

    def with_wider_slope(self, factor: float) -> Self:
        """Return the loss with its slope bounded ``factor`` times as far out, if it says so."""
        return self

    def without_smoothing(self, bounds: Bounds) -> AnyLoss:
        """Return the loss to minimise where bending it to the end of its slope costs nothing."""
        return self

    def guess(self, bounds: Bounds) -> float | None:
        """Return the average loss of a model that knows nothing."""
        return None

    def rounded(self, unit: float) -> Iterator[Self]:
        """Yield losses to minimise in turn, from one without sharp corners to this one."""
        yield self

    def usable_labels(self, label: Array) -> Array:
        """Return labels moved to where the declared constants hold; most losses take any."""
        return label

    def labels(self, block: Block | LatticeBlock) -> Array:
        """Return a block's usable labels."""
        if block.labels is None:
            raise ValueError(
                f"{type(self).__name__} needs labels, and the records have none; pass them to the "
                "record source."
            )
        return self.usable_labels(block.labels)

    @abstractmethod
    def values(self, block: Block, weights: Array) -> Array:
        """Return the loss of every record of a block."""

    @abstractmethod
    def gradient(self, block: Block, weights: Array, bounds: Bounds, clip: float) -> Array:
        """Return the sum of the records' gradients, each clipped to norm ``clip``.

        Where the block knows its people, also what each one's add up to (`person_sums`).
        """

    def gradient_clipped_in(
        self, coordinates: Coordinates, block: Block, weights: Array, bounds: Bounds, clip: float
    ) -> Array:
        """Return the same, each clipped in other coordinates of rows."""
        raise TypeError("gradients have other coordinates only for losses on scores.")

    def slopes(self, block: Block | LatticeBlock, weights: Array, limit: float) -> Array:
        """Return every record's slope, clipped to ``limit``."""
        raise TypeError("there are slopes only for losses of scores.")

    def sum_in_steps(self, block: LatticeBlock, weights: Array, rows: RowLattice) -> Array:
        """Return the sum of the records' gradients in whole steps, each clipped to the lattice."""
        return rows.whole_sum(block, block.weighed(self.slopes(block, weights, rows.limit)))

    @abstractmethod
    def vectors(self, block: Block, weights: Array, bounds: Bounds, clip: float) -> Array:
        """Return every record's gradient, or what each person's add up to, one a row.

        Records' are clipped; of each row nothing depends on other records, or people, to the bit.
        """

    @abstractmethod
    def value_and_gradient(self, block: Block, weights: Array) -> tuple[Array, Array]:
        """Return the sums of the records' losses and gradients, in one pass."""

    def clipped_second_derivative(self, block: Block, weights: Array, limit: float) -> Array:
        """Return every record's second derivative, 0 where its slope is clipped to ``limit``."""
        raise TypeError("standard errors exist only for losses on one score.")

    def hessian_trace_per_record(self, block: Block | LatticeBlock, weights: Array) -> Array:
        """Return the trace of every record's Hessian in its scores."""
        raise TypeError("there are second derivatives in scores only for losses of them.")

    def squared_slopes(self, block: Block, weights: Array, limit: float) -> Array:
        """Return the square of every record's slope, clipped to ``limit``."""
        raise TypeError("standard errors exist only for losses on one score.")

    def curvature(self, block: Block, weights: Array) -> Array:
        """Return the sum of the records' Hessians."""
        raise TypeError("the Hessian is formed only for losses on one score.")

    def curvature_along(self, block: Block, weights: Array, direction: Array) -> Array:
        """Return the sum of the records' Hessians times a direction."""
        raise TypeError("Hessian products exist only for losses on scores.")
