"""Define the interface of every loss, and the sums of losses on scores <w, x>."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import replace
from typing import ClassVar, Self

import numpy as np
from scipy.special import ndtri

from tacit.arrays import Array as Array
from tacit.privacy import Event, LinearModelObjective, MonotoneObjective, Relation
from tacit.queries.minimizer import Sizes
from tacit.records import Block, Bounds
from tacit.records.block import Coordinates
from tacit.records.exact.lattice import LatticeBlock, RowLattice
from tacit.records.grouped import clipped_by_person, summed_by_person


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
    takes_offset: ClassVar[bool] = False  # whether labels may have a second column, of offsets

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
    def usual_second_derivative(self) -> float:
        """A value that second derivatives rarely exceed; standard errors clip them to it."""
        return self.smoothness

    @property
    def largest_offset(self) -> float:
        """The greatest absolute offset of a score; most losses have none."""
        return 0.0

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
        if block.labels.ndim > 1 and not self.takes_offset:
            raise ValueError(
                f"{type(self).__name__} takes one label per record, and the labels have a second "
                "column, of offsets; leave it out, or use PoissonOffsetLoss."
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

    @abstractmethod
    def vectors(self, block: Block, weights: Array, bounds: Bounds, clip: float) -> Array:
        """Return every record's clipped gradient, or each person's sum, one per row.

        Every row depends on its own record, or person, alone, to the last bit.
        """

    @abstractmethod
    def value_and_gradient(self, block: Block, weights: Array) -> tuple[Array, Array]:
        """Return the sums of the records' losses and gradients, in one pass."""

    def hessian(self, block: Block, weights: Array) -> Array:
        """Return the sum of the records' Hessians."""
        raise TypeError("the Hessian is formed only for losses on one score.")

    def hessian_product(self, block: Block, weights: Array, direction: Array) -> Array:
        """Return the sum of the records' Hessians times a direction."""
        raise TypeError("Hessian products exist only for losses on scores.")


_SHARP = 2.0**13  # smoothness beyond this, per score unit and slope, counts as a jump


class Loss(AnyLoss):
    """A loss of a score z = <w, x> and a label y, convex in z.

    ``lipschitz`` bounds |d1|, ``smoothness`` bounds d2; checked by `tacit.testing.check_loss`.
    A record's gradient is d1 times its row, so its norm is at most |d1| R.
    """

    is_linear = True

    @abstractmethod
    def value(self, score: Array, label: Array) -> Array:
        """Return the loss of each score."""

    @abstractmethod
    def d1(self, score: Array, label: Array) -> Array:
        """Return the derivative, or a subgradient, in the score."""

    @abstractmethod
    def d2(self, score: Array, label: Array) -> Array:
        """Return the second derivative in the score; 0 where it does not exist."""

    def steady_d1(self, score: Array, label: Array) -> Array:
        """Return d1 for lattice sums; each entry depends on its own score alone."""
        return self.d1(score, label)

    def hessian_times(self, score: Array, label: Array, along: Array) -> Array:
        """Return the Hessian in the score times ``along``."""
        return self.d2(score, label) * along

    def gradient_scale(self, row_norm: float) -> float:
        """Return R."""
        return row_norm

    def score_unit(self, bounds: Bounds) -> float:
        """Return the label bound, or 1 for classes."""
        return bounds.label_bound if math.isfinite(bounds.label_bound) else 1.0

    def default_clip(self, bounds: Bounds) -> float | None:
        """Return the Lipschitz constant; if infinite, a quarter of the label bound, if declared."""
        if math.isfinite(self.lipschitz):
            return self.lipschitz
        return self.score_unit(bounds) / 4 if math.isfinite(bounds.label_bound) else None

    def is_sharp(self, bounds: Bounds, steepest: float = math.inf) -> bool:
        """Return whether d1, of size up to ``steepest``, jumps or nearly jumps.

        Rounding of a score moves d1 by at most smoothness times the rounding, which is negligible
        for a smooth loss. A d1 that changes over less than 2^-13 score units is treated as a jump.
        """
        return self.smoothness * self.score_unit(bounds) > _SHARP * min(steepest, self.lipschitz)

    def perturbed_event(
        self, sizes: Sizes, regularization: float, noise_std: float, relation: Relation
    ) -> Event | None:
        """Return the event of monotone or any losses (docs/proofs/objective_perturbation.md)."""
        family = MonotoneObjective if self.monotone else LinearModelObjective
        return family(sizes.lipschitz, sizes.smoothness, regularization, noise_std, relation)

    def guess(self, bounds: Bounds) -> float | None:
        """Return the loss of score 0 for a label halfway to the end of its range."""
        label = 1.0 if bounds.label_range is None else bounds.label_range[1] / 2
        return float(self.value(np.zeros(1), np.array([label]))[0])

    def typical_records(self, bounds: Bounds, rarer: float) -> tuple[Array, Array]:
        """Return scores and labels of typical records, from public facts alone.

        Predictions of standard errors average derivatives over them. Scores of classes are normal
        around the log odds of the rarer class, with standard deviation 1. Residuals of numbers are
        normal: labels have half the label bound as their standard deviation, and half of their
        variance is explained.
        """
        normal: Array = ndtri((np.arange(99) + 0.5) / 99)
        if not math.isfinite(bounds.label_bound):
            return normal + math.log(rarer / (1 - rarer)), np.ones_like(normal)
        return np.zeros_like(normal), bounds.label_bound / math.sqrt(8) * normal

    def values(self, block: Block, weights: Array) -> Array:
        """Return the loss of every record of a block; each depends on its record to the last bit.

        A matrix product would round depending on the other records of the block. This rounding
        exceeds the utility differences of nearly equal candidates
        (docs/proofs/selection_in_a_ball.md).
        """
        return block.weighed(self.value(block.steady_scores(weights), self.labels(block)))

    def gradient(self, block: Block, weights: Array, bounds: Bounds, clip: float) -> Array:
        """Return the sum of the records' gradients; clipping is one factor per row.

        d1 is clipped before it is weighted by at most 1, so that records of small weight are
        clipped like the others.
        """
        limit = clip / bounds.total_norm
        scores = block.steady_scores if self.is_sharp(bounds, limit) else block.scores
        slopes = clip_slopes(self.d1(scores(weights), self.labels(block)), limit)
        if block.people is not None and math.isfinite(clip):
            return clipped_by_person(block, block.weighed(slopes), clip)
        return block.weighted_sum(slopes)

    def gradient_clipped_in(
        self, coordinates: Coordinates, block: Block, weights: Array, bounds: Bounds, clip: float
    ) -> Array:
        """Return the sum of the records' gradients, each clipped in preconditioned coordinates.

        In these coordinates a record's gradient is d1 A x, of norm |d1| ||A x||. d1 is therefore
        clipped to clip / ||A x||, independently of the loss's constants. For grouped records the
        person's sum is clipped instead. The caller multiplies the result by A, once for all blocks.
        """
        sharp = self.is_sharp(bounds, clip / bounds.total_norm)
        scores = (block.steady_scores if sharp else block.scores)(weights)
        slopes = self.d1(scores, self.labels(block))
        if block.people is not None:
            return clipped_by_person(block, slopes, clip, coordinates)
        limits = clip / np.maximum(coordinates.lengths(block), 1e-100)
        return block.weighted_sum(clip_slopes(slopes, limits))

    def slopes(self, block: Block | LatticeBlock, weights: Array, limit: float) -> Array:
        """Return every record's d1, clipped to ``limit``, a function of that record to the bit."""
        slopes = self.steady_d1(block.steady_scores(weights), self.labels(block))
        if isinstance(block, LatticeBlock) and block.weights is None:
            return slopes  # `RowLattice` clips to the same limit
        return clip_slopes(slopes, limit)

    def sum_in_steps(self, block: LatticeBlock, weights: Array, rows: RowLattice) -> Array:
        """Return the sum of gradients in whole lattice steps, each clipped to the lattice."""
        return rows.whole_sum(block, block.weighed(self.slopes(block, weights, rows.limit)))

    def vectors(self, block: Block, weights: Array, bounds: Bounds, clip: float) -> Array:
        """Return d1 x, summed per person; ungrouped records count as one person each."""
        slopes = self.slopes(block, weights, clip / bounds.total_norm)
        if block.people is None:
            block = replace(block, people=np.arange(block.n_rows))
        return summed_by_person(block, block.weighed(slopes))

    def value_and_gradient(self, block: Block, weights: Array) -> tuple[Array, Array]:
        """Return the sums of losses and of gradients, computed from the same scores."""
        labels, scores = self.labels(block), block.scores(weights)
        value = np.array(block.weighed(self.value(scores, labels)).sum())
        return value, block.weighted_sum(self.d1(scores, labels))

    def clipped_second_derivative(self, block: Block, weights: Array, limit: float) -> Array:
        """Return d2, clipped to `usual_second_derivative`; 0 if d1 is clipped to ``limit``.

        Rounding shows where d2 jumps, so each score depends on its own record to the last bit.
        """
        scores, labels = block.steady_scores(weights), self.labels(block)
        d2 = np.minimum(self.d2(scores, labels), self.usual_second_derivative)
        if limit < self.lipschitz:
            d2 = np.where(np.abs(self.d1(scores, labels)) < limit, d2, 0.0)
        return d2

    def hessian_trace_per_record(self, block: Block | LatticeBlock, weights: Array) -> Array:
        """Return d2, summed over several scores; each depends on its own record to the last bit."""
        d2 = self.d2(block.steady_scores(weights), self.labels(block))
        return d2 if d2.ndim == 1 else np.asarray(_one_stretch_each(d2).sum(axis=1))

    def squared_slopes(self, block: Block, weights: Array, limit: float) -> Array:
        """Return the square of every record's d1, clipped to ``limit``."""
        slopes = self.d1(block.steady_scores(weights), self.labels(block))
        return clip_slopes(slopes, limit) ** 2

    def hessian(self, block: Block, weights: Array) -> Array:
        """Return the sum of d2 x x'."""
        if self.n_outputs > 1:
            return super().hessian(block, weights)
        return block.gram(self.d2(block.scores(weights), self.labels(block)))

    def hessian_product(self, block: Block, weights: Array, direction: Array) -> Array:
        """Return the sum of Hessians times a direction, for any number of outputs."""
        along = block.scores(direction)
        return block.weighted_sum(
            self.hessian_times(block.scores(weights), self.labels(block), along)
        )


def clip_slopes(d1: Array, limit: float | Array) -> Array:
    """Scale every record's d1 (a number, or a row of numbers) to norm at most ``limit``.

    ``limit`` is one number for all records, or one per record.
    """
    if isinstance(limit, float) and math.isinf(limit):
        return d1
    if d1.ndim == 1:
        return np.clip(d1, -limit, limit)
    sizes = np.maximum(np.linalg.norm(_one_stretch_each(d1), axis=1), 1e-200)
    result: Array = d1 * np.minimum(1.0, limit / sizes)[:, None]
    return result


def _one_stretch_each(rows: Array) -> Array:
    """Return a copy with contiguous rows, which NumPy sums one by one.

    In other layouts the order of additions, and so the last bit, depends on the number of rows
    (docs/proofs/exact_sums.md, section 2).
    """
    return np.ascontiguousarray(rows)
