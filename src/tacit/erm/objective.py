"""Define the objective; derive all per-record constants from loss, regulariser, set and bounds.

    F(w) = sum_i a_i loss(<w, x_i>, y_i) + (regularization / 2) ||w||^2,   w in the feasible set

F is in SUM form, so that no sensitivity depends on the number of records. The intercept is an
ordinary coordinate of w: it counts in the row norm and is regularised. Weights a_i are in [0, 1],
and 1 by default. The constants are those of a record of weight 1, the worst case
(docs/proofs/weights.md).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

from tacit.arrays import Array
from tacit.erm.constraints import FeasibleSet, WholeSpace
from tacit.erm.losses import AnyLoss
from tacit.privacy import Relation
from tacit.records import Block, Bounds, RecordSource


@dataclass(frozen=True)
class Objective:
    """A loss, a regulariser and a feasible set, with the constants that proofs need.

    Parameters
    ----------
    loss
        A loss on scores, or on points.
    bounds
        The declared bounds of every record.
    regularization
        lam of (lam / 2) ||w||^2, in SUM form; None lets a mechanism choose.
    feasible
        The feasible set of w.

    Examples
    --------
    >>> from tacit.erm import Objective
    >>> from tacit.erm.losses import LogisticLoss
    >>> from tacit.records import Bounds
    >>> objective = Objective(LogisticLoss(), Bounds(row_norm=12.0))
    >>> objective.lipschitz, objective.smoothness
    (12.0, 36.0)
    """

    loss: AnyLoss
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
        if isinstance(self.feasible, type) or not isinstance(self.feasible, FeasibleSet):
            raise TypeError(
                f"a constraint must be a set of feasible weights, got {self.feasible!r}; pass "
                "tacit.erm.L2Ball(5.0), say, another set of tacit.erm (L1Ball, Box, Simplex), or "
                "None for none."
            )
        if self.bounds.max_weight is not None and not self.loss.is_linear:
            raise ValueError(
                "weights are proved for losses of scores <w, x> alone; leave max_weight out of the "
                "bounds of a location."
            )

    @property
    def is_linear_model(self) -> bool:
        """Whether the loss is a function of scores <w, x>; gradients are multiples of rows."""
        return self.loss.is_linear

    @property
    def n_outputs(self) -> int:
        """The number of scores per record."""
        return self.loss.n_outputs

    @property
    def row_norm(self) -> float:
        """R: the greatest norm of a row with its intercept coordinate."""
        return self.bounds.total_norm

    @property
    def gradient_scale(self) -> float:
        """The greatest factor between d1 and a gradient's norm: R for a loss on scores."""
        return self.loss.gradient_scale(self.row_norm)

    @property
    def squared_gradient_scale(self) -> float:
        """The greatest factor between d2 and a Hessian's norm. The only place R becomes R^2."""
        return self.gradient_scale**2

    @property
    def lipschitz(self) -> float:
        """L: the greatest norm of one record's gradient. R to the first power."""
        return self.loss.lipschitz * self.gradient_scale

    @property
    def smoothness(self) -> float:
        """beta: the greatest norm of one record's Hessian."""
        return self.loss.smoothness * self.squared_gradient_scale

    @property
    def hessian_trace(self) -> float:
        """The greatest trace of one record's Hessian."""
        return self.loss.hessian_trace * self.squared_gradient_scale

    @property
    def score_unit(self) -> float:
        """The typical size of a score if the model fits: 1 for classes, else the label bound."""
        return self.loss.score_unit(self.bounds)

    def with_regularization(self, regularization: float) -> Objective:
        """Return a copy with lam set."""
        return replace(self, regularization=regularization)

    def dimension(self, n_features: int) -> int:
        """Return the number of weights."""
        return (n_features + (1 if self.bounds.intercept else 0)) * self.n_outputs

    def shape(self, n_features: int) -> tuple[int, ...]:
        """Return the shape of the weights."""
        rows = n_features + (1 if self.bounds.intercept else 0)
        return (rows, self.n_outputs) if self.n_outputs > 1 else (rows,)

    def gradient(self, block: Block, weights: Array, clip: float = math.inf) -> Array:
        """Return the sum over a block of the records' gradients, each clipped to norm ``clip``."""
        return self.loss.gradient(block, weights, self.bounds, clip)


def n_changed(relation: Relation) -> int:
    """Return how many contributions, of records or people, differ between neighbours."""
    return 1 if relation.adds_or_removes else 2


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
