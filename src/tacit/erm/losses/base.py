"""Define the interface of every loss; a property that a loss lacks is None."""

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

    Mechanisms read properties and never test the type of a loss. A loss on scores <w, x> is a
    `Loss`, a loss on points w is a `PointLoss`.
    """

    key: ClassVar[str]
    tried: ClassVar[tuple[tuple[tuple[float, ...], tuple[float, ...]], ...]]  # of `examples`
    is_linear: ClassVar[bool]  # whether it is a function of <w, x>: gradients are multiples of rows
    is_square: ClassVar[bool] = False  # whether X'X and X'y determine it
    monotone: ClassVar[bool] = False  # whether a function of y z with a derivative of one sign
    is_likelihood: ClassVar[bool] = False  # whether E d1^2 = E d2 under the model

    @property
    @abstractmethod
    def lipschitz(self) -> float:
        """Bound on |d1|; infinite if unbounded."""

    @property
    @abstractmethod
    def smoothness(self) -> float:
        """Bound on the second derivative; infinite if d1 jumps."""

    @property
    def n_outputs(self) -> int:
        """The number of scores per record."""
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
        """A value that second derivatives rarely exceed; standard errors clip them to it."""
        return self.smoothness

    @property
    def level(self) -> float | None:
        """The quantile level of the minimiser on a line, or None."""
        return None

    @classmethod
    def examples(cls) -> tuple[tuple[Self, tuple[float, ...]], ...]:
        """Return losses of this type, each with labels at which its constants are attained."""
        return tuple((cls(*parameters), labels) for parameters, labels in cls.tried)

    @abstractmethod
    def gradient_scale(self, row_norm: float) -> float:
        """Return the greatest factor between d1 and a record's gradient norm."""

    @abstractmethod
    def score_unit(self, bounds: Bounds) -> float:
        """Return the typical size of a score if the model fits."""

    @abstractmethod
    def default_clip(self, bounds: Bounds) -> float | None:
        """Return the default clip of d1 in a gradient descent, or None."""

    def is_sharp(self, bounds: Bounds, steepest: float = math.inf) -> bool:
        """Return whether d1, of size up to ``steepest``, jumps or nearly jumps."""
        return False

    def perturbed_event(
        self, sizes: Sizes, regularization: float, noise_std: float, relation: Relation
    ) -> Event | None:
        """Return the tightest proved event of the objective under a Gaussian perturbation."""
        return None

    def free_regularization(self, row_norm: float, epsilon: float) -> float | None:
        """Return the least ridge at which a record's effect on the curvature is free, or None."""
        return None

    def with_wider_slope(self, factor: float) -> Self:
        """Return the loss with its bound on d1 ``factor`` times as large, if it can be widened."""
        return self

    def without_smoothing(self, bounds: Bounds) -> AnyLoss:
        """Return the variant for mechanisms that pay for the maximal curvature only.

        For log-cosh this is the Huber loss.
        """
        return self

    def guess(self, bounds: Bounds) -> float | None:
        """Return the average loss of a model without information, or None."""
        return None

    def rounded(self, unit: float) -> Iterator[Self]:
        """Yield smoothings of the loss, smoothest first, ending with the loss itself."""
        yield self

    def usable_labels(self, label: Array) -> Array:
        """Return labels clipped to the range in which the constants hold; most losses take any."""
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

        If the block is grouped by person, the sums of each person are clipped too (`person_sums`).
        """

    def gradient_clipped_in(
        self, coordinates: Coordinates, block: Block, weights: Array, bounds: Bounds, clip: float
    ) -> Array:
        """Return the sum of the records' gradients, each clipped in preconditioned coordinates."""
        raise TypeError("preconditioned gradients exist only for losses on scores.")

    def slopes(self, block: Block | LatticeBlock, weights: Array, limit: float) -> Array:
        """Return every record's d1, clipped to ``limit``."""
        raise TypeError("derivatives d1 exist only for losses on scores.")

    def sum_in_steps(self, block: LatticeBlock, weights: Array, rows: RowLattice) -> Array:
        """Return the sum of gradients in whole lattice steps, each clipped to the lattice."""
        return rows.whole_sum(block, block.weighed(self.slopes(block, weights, rows.limit)))

    @abstractmethod
    def vectors(self, block: Block, weights: Array, bounds: Bounds, clip: float) -> Array:
        """Return every record's clipped gradient, or each person's sum, one per row.

        Every row depends on its own record, or person, alone, to the last bit.
        """

    @abstractmethod
    def value_and_gradient(self, block: Block, weights: Array) -> tuple[Array, Array]:
        """Return the sums of the records' losses and gradients, in one pass."""

    def clipped_second_derivative(self, block: Block, weights: Array, limit: float) -> Array:
        """Return every record's second derivative, 0 if its d1 is clipped to ``limit``."""
        raise TypeError("standard errors exist only for losses on one score.")

    def hessian_trace_per_record(self, block: Block | LatticeBlock, weights: Array) -> Array:
        """Return the trace of every record's Hessian in its scores."""
        raise TypeError("second derivatives in scores exist only for losses on scores.")

    def squared_slopes(self, block: Block, weights: Array, limit: float) -> Array:
        """Return the square of every record's d1, clipped to ``limit``."""
        raise TypeError("standard errors exist only for losses on one score.")

    def curvature(self, block: Block, weights: Array) -> Array:
        """Return the sum of the records' Hessians."""
        raise TypeError("the Hessian is formed only for losses on one score.")

    def curvature_along(self, block: Block, weights: Array, direction: Array) -> Array:
        """Return the sum of the records' Hessians times a direction."""
        raise TypeError("Hessian products exist only for losses on scores.")
