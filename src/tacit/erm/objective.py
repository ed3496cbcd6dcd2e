"""Loss + regulariser + set + bounds: the only place where per-record constants are derived.

    F(w) = sum_i loss(<w, x_i>, y_i) + (regularization / 2) ||w||^2,   w in the feasible set

in SUM form, so that the number of records is in no sensitivity. The intercept is a coordinate of
w like any other: it counts in the row norm and it is regularised.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from tacit.erm.losses import Loss, PointLoss, SoftmaxLoss
from tacit.erm.sets import FeasibleSet, WholeSpace
from tacit.privacy import Relation
from tacit.records import Block, Bounds, RecordSource

Array = npt.NDArray[np.float64]

_SHARP = 2.0**13


@dataclass(frozen=True)
class Objective:
    """What is minimised, and every constant a proof needs.

    Parameters
    ----------
    loss
        A loss on scores, or on points.
    bounds
        What is declared about every record.
    regularization
        lam of (lam / 2) ||w||^2, in SUM form; None lets a mechanism choose.
    feasible
        Where w may be.

    Examples
    --------
    >>> from tacit.erm import Objective
    >>> from tacit.erm.losses import LogisticLoss
    >>> from tacit.records import Bounds
    >>> objective = Objective(LogisticLoss(), Bounds(row_norm=12.0))
    >>> objective.lipschitz, objective.smoothness
    (12.0, 36.0)
    """

    loss: Loss | PointLoss
    bounds: Bounds
    regularization: float | None = None
    feasible: FeasibleSet = field(default_factory=WholeSpace)

    def __post_init__(self) -> None:
        lam = self.regularization
        if lam is not None and not 0.0 <= lam < math.inf:
            raise ValueError(
                f"regularization must be finite and not negative, got {lam!r}; it multiplies "
                "||w||^2 / 2 against the SUM of the losses. None lets theory choose."
            )

    @property
    def is_linear_model(self) -> bool:
        """Whether the loss is a function of scores <w, x>, so that gradients follow rows."""
        return isinstance(self.loss, Loss)

    @property
    def n_outputs(self) -> int:
        """How many scores a record has."""
        return self.loss.n_classes if isinstance(self.loss, SoftmaxLoss) else 1

    @property
    def row_norm(self) -> float:
        """R: the greatest norm of a row with its intercept coordinate."""
        return self.bounds.total_norm

    @property
    def lipschitz(self) -> float:
        """L: the greatest norm of one record's gradient. R to the first power."""
        if not isinstance(self.loss, Loss):
            return self.loss.lipschitz
        return self.loss.lipschitz * self.row_norm

    @property
    def smoothness(self) -> float:
        """beta: the greatest norm of one record's Hessian. The only place R becomes R^2."""
        if not isinstance(self.loss, Loss):
            return self.loss.smoothness
        return self.loss.smoothness * self.row_norm**2

    @property
    def hessian_rank(self) -> int:
        """The greatest rank of one record's Hessian."""
        return max(self.n_outputs - 1, 1)

    @property
    def hessian_trace(self) -> float:
        """The greatest trace of one record's Hessian."""
        if isinstance(self.loss, SoftmaxLoss):
            # the trace of diag(p) - p p' is 1 - ||p||^2 <= 1 - 1/K
            return (1.0 - 1.0 / self.loss.n_classes) * self.row_norm**2
        return self.smoothness

    @property
    def score_unit(self) -> float:
        """The size a score has when the model fits: 1 for classes, the labels' own else."""
        if isinstance(self.loss, Loss):
            return self.loss.score_unit(self.bounds.label_bound)
        return self.bounds.row_norm

    def with_regularization(self, regularization: float) -> Objective:
        """Return the same objective with lam set."""
        return replace(self, regularization=regularization)

    def dimension(self, n_features: int) -> int:
        """Return the number of weights."""
        return (n_features + (1 if self.bounds.intercept else 0)) * self.n_outputs

    def shape(self, n_features: int) -> tuple[int, ...]:
        """Return the shape of the weights."""
        rows = n_features + (1 if self.bounds.intercept else 0)
        return (rows, self.n_outputs) if self.n_outputs > 1 else (rows,)

    def labels(self, block: Block) -> Array:
        """Return a block's labels, moved to where the loss's constants hold."""
        if block.labels is None:
            raise ValueError(
                f"{type(self.loss).__name__} needs labels, and the records have none; pass them "
                "to the record source."
            )
        return (
            self.loss.usable_labels(block.labels) if isinstance(self.loss, Loss) else block.labels
        )

    def values(self, block: Block, weights: Array) -> Array:
        """Return the loss of every record of a block."""
        if isinstance(self.loss, Loss):
            return self.loss.value(block.scores(weights), self.labels(block))
        return self.loss.value(weights, block.points())

    def value(self, block: Block, weights: Array) -> float:
        """Return the sum of the losses of a block."""
        return float(self.values(block, weights).sum())

    def gradient(self, block: Block, weights: Array, clip: float = math.inf) -> Array:
        """Return the sum over a block of the records' gradients, each clipped to norm ``clip``.

        For a loss on scores a record's gradient is d1 times its row, of norm at most |d1| R, so
        clipping is one factor a row and no per-record gradient is ever formed.
        """
        if isinstance(self.loss, Loss):
            limit = clip / self.row_norm
            scores = block.steady_scores if self.is_sharp(limit) else block.scores
            d1 = self.loss.d1(scores(weights), self.labels(block))
            return block.weighted_sum(clip_slopes(d1, limit))
        gradients = self.loss.gradients(weights, block.points())
        sizes = np.linalg.norm(gradients, axis=1)
        result: Array = gradients.T @ np.minimum(1.0, clip / np.maximum(sizes, 1e-300))
        return result

    def is_sharp(self, steepest: float = math.inf) -> bool:
        """Return whether slopes of size up to ``steepest`` jump, or all but: rounding then shows.

        A smooth slope turns by at most smoothness times the rounding of a score, which is nothing;
        one that turns over less than 2^-13 of a score's unit is taken for a jump.
        """
        if not isinstance(self.loss, Loss):
            return False
        steepest = min(steepest, self.loss.lipschitz)
        return self.loss.smoothness * self.score_unit > _SHARP * steepest

    def curvature(self, block: Block, weights: Array) -> Array:
        """Return the Hessian of a block's losses (one output)."""
        if not isinstance(self.loss, Loss) or self.n_outputs > 1:
            raise TypeError("the Hessian is formed only for losses on one score.")
        return block.gram(self.loss.d2(block.scores(weights), self.labels(block)))


def clip_slopes(d1: Array, limit: float) -> Array:
    """Scale every record's slope (a number, or a row of them) to size at most ``limit``."""
    if math.isinf(limit):
        return d1
    if d1.ndim == 1:
        return np.clip(d1, -limit, limit)
    sizes = np.linalg.norm(d1, axis=1, keepdims=True)
    result: Array = d1 * np.minimum(1.0, limit / np.maximum(sizes, 1e-300))
    return result


def moved(relation: Relation) -> int:
    """Return how many records' contributions change between neighbours."""
    return 1 if relation is Relation.ADD_REMOVE else 2


def records_gradient(
    objective: Objective,
    records: RecordSource,
    weights: Array,
    *,
    clip: float = math.inf,
    fine: bool = False,
) -> Array:
    """Return the sum of all records' gradients, without the regulariser."""
    (total,) = records.sum(lambda b: (objective.gradient(b, weights, clip),), fine=fine)
    return total


def needs_fine_sums(records: RecordSource, slack: float) -> bool:
    """Return whether sums need small blocks to keep their float error within ``slack`` / 2.

    A sum may be off by its error on either of two neighbours, so twice the error is charged.
    """
    if 2 * records.sum_error() <= slack:
        return False
    if 2 * records.sum_error(fine=True) > slack:
        raise ValueError(
            "there are too many records for a sum in double precision to keep its sensitivity; "
            "split them, or fit on a sample."
        )
    return True
