"""Logistic loss, and cross-entropy for several classes."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import log_softmax, softmax

from tacit.erm.losses.base import Array, Loss
from tacit.privacy import Event, LogisticObjective, Relation, SoftmaxObjective
from tacit.queries.minimizer import Sizes
from tacit.records import Bounds
from tacit.records.exact.kernels import sigmoid
from tacit.records.exact.lattice import LatticeBlock, RowLattice
from tacit.records.exact.tiles import Tiles


@dataclass(frozen=True)
class LogisticLoss(Loss):
    """Logistic loss of the margin m = y z, y = -1 or 1.

        value = log(1 + exp(-m)),  d1 = -y t,  d2 = t (1 - t),  t = 1 / (1 + exp(m))

    Guarantee: |d1| <= 1; 0 <= d2 <= 1/4; monotone.

    |d1| = t is a sigmoid, below 1. A record's gradient d1 x has therefore at most the norm R of a
    row. Sensitivities follow from this bound in `queries/gradient.py` (clipped sums) and
    `queries/minimizer.py` (minimisers); none is stated here.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.erm.losses import LogisticLoss
    >>> LogisticLoss().value(np.array([0.0]), np.array([1.0])).round(4)
    array([0.6931])
    """

    key = "logistic"
    tried = (((), (-1.0, 1.0)),)
    monotone = True
    is_likelihood = True
    lipschitz = 1.0
    smoothness = 0.25

    def perturbed_event(
        self, sizes: Sizes, regularization: float, noise_std: float, relation: Relation
    ) -> Event | None:
        """Return its own event (docs/proofs/objective_perturbation.md, sections 3 and 5)."""
        return LogisticObjective(sizes.row_norm, regularization, noise_std, relation)

    def free_regularization(self, row_norm: float, epsilon: float) -> float | None:
        """Return R^2 / epsilon (docs/proofs/objective_perturbation.md, section 4)."""
        return row_norm**2 / epsilon

    def usable_labels(self, label: Array) -> Array:
        """Return -1 or 1."""
        return np.where(label > 0, 1.0, -1.0)

    def value(self, score: Array, label: Array) -> Array:
        """Return log(1 + exp(-m)), as log(1 + exp(-|m|)) + max(-m, 0)."""
        m = label * score
        tail = np.log1p(np.exp(-np.abs(m)))
        tail -= np.minimum(m, 0.0)
        return tail

    def d1(self, score: Array, label: Array) -> Array:
        """Return -y t."""
        return -label * _sigmoid_of_margin(score, label)

    def steady_d1(self, score: Array, label: Array) -> Array:
        """Return d1 as sigmoid(z) - (y > 0), equal to the bit on every machine."""
        return sigmoid(score) - (label > 0)

    def sum_in_steps(self, block: LatticeBlock, weights: Array, rows: RowLattice) -> Array:
        """Return the sum of the records' gradients, by a compiled loop if available."""
        tiles, labels = block.rows, block.labels
        if not isinstance(tiles, Tiles) or labels is None or block.weights is not None:
            return super().sum_in_steps(block, weights, rows)
        whole, unit, constant = block.lattice_weights(weights)
        total, of_slopes = tiles.logistic_sum(
            labels, whole, unit, constant, 1 / rows.step, rows.most
        )
        return rows.with_constant(total, of_slopes)

    def d2(self, score: Array, label: Array) -> Array:
        """Return t (1 - t)."""
        t = _sigmoid_of_margin(score, label)
        return t * (1.0 - t)


def _sigmoid_of_margin(score: Array, label: Array) -> Array:
    """Return t = 1 / (1 + exp(m)) in place: the inner loop of every logistic fit."""
    m = label * score
    np.minimum(m, 700.0, out=m)  # exp stays finite; beyond m = 700 t is below 1e-304
    np.exp(m, out=m)
    m += 1.0
    return np.reciprocal(m, out=m)


@dataclass(frozen=True)
class SoftmaxLoss(Loss):
    """Cross-entropy of K scores; labels are whole numbers below K.

        value = -log p_y,  d1 = p - e_y,  p = softmax(z)

    Guarantee: ||d1|| <= sqrt(2); the Hessian diag(p) - p p' has norm at most 1/2 and trace at
    most 1 - 1/K. ``d2`` is its diagonal.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.erm.losses import SoftmaxLoss
    >>> SoftmaxLoss(3).d1(np.zeros((1, 3)), np.array([2.0])).round(3)
    array([[ 0.333,  0.333, -0.667]])
    """

    n_classes: int

    key = "softmax"
    tried = tuple(((k,), tuple(map(float, range(k)))) for k in (2, 3, 10))
    lipschitz = math.sqrt(2.0)
    smoothness = 0.5

    def __post_init__(self) -> None:
        if not (isinstance(self.n_classes, int) and self.n_classes >= 2):
            raise ValueError(
                f"n_classes must be a whole number of at least 2, got {self.n_classes!r}; pass the "
                "number of classes, such as 3."
            )

    @property
    def n_outputs(self) -> int:
        """K."""
        return self.n_classes

    @property
    def hessian_rank(self) -> int:
        """K - 1: adding a constant to all scores does not change the loss."""
        return self.n_classes - 1

    @property
    def hessian_trace(self) -> float:
        """1 - ||p||^2 <= 1 - 1/K."""
        return 1.0 - 1.0 / self.n_classes

    def default_clip(self, bounds: Bounds) -> float | None:
        """Return 1.

        ||p - e_y|| exceeds 1 only for badly misclassified records. The bias is small, and the noise
        falls by a factor of sqrt(2).
        """
        return 1.0

    def perturbed_event(
        self, sizes: Sizes, regularization: float, noise_std: float, relation: Relation
    ) -> Event | None:
        """Return its own event (docs/proofs/objective_perturbation.md, section 8)."""
        size = sizes.row_norm
        return SoftmaxObjective(size, self.n_classes, regularization, noise_std, relation)

    def guess(self, bounds: Bounds) -> float | None:
        """Return log K."""
        return math.log(self.n_classes)

    def usable_labels(self, label: Array) -> Array:
        """Return whole numbers below K."""
        return np.clip(np.rint(label), 0, self.n_classes - 1)

    def value(self, score: Array, label: Array) -> Array:
        """Return -log p_y."""
        log_p = log_softmax(score, axis=1)
        result: Array = -np.take_along_axis(log_p, label.astype(np.int64)[:, None], axis=1)[:, 0]
        return result

    def d1(self, score: Array, label: Array) -> Array:
        """Return p - e_y, one row a record."""
        # One line per class: NumPy then works on whole lines. This is the inner loop of a fit.
        p = np.array(score.T, order="C")
        p -= p.max(axis=0)
        np.exp(p, out=p)
        p /= _added_in_turn(p)
        p[label.astype(np.int64), np.arange(p.shape[1])] -= 1.0
        return np.ascontiguousarray(p.T)

    def d2(self, score: Array, label: Array) -> Array:
        """Return p (1 - p)."""
        # Contiguous rows: NumPy then sums each row on its own, whatever the other rows are.
        p: Array = softmax(np.ascontiguousarray(score), axis=1)
        return p * (1.0 - p)

    def hessian_times(self, score: Array, label: Array, along: Array) -> Array:
        """Return (diag(p) - p p') s = p (s - <p, s>)."""
        p = self.d1(score, label)
        p[np.arange(p.shape[0]), label.astype(np.int64)] += 1.0
        result: Array = p * (along - np.sum(p * along, axis=1, keepdims=True))
        return result


def _added_in_turn(lines: Array) -> Array:
    """Return the sum of the lines, added one after another in every column, to the last bit.

    A record's column must not depend on other records. NumPy adds whole lines one after another,
    but a single column, which is contiguous in memory, in pairs.
    """
    if lines.shape[1] == 1:
        alone: Array = np.add.accumulate(lines, axis=0)[-1]
        return alone
    return np.asarray(np.add.reduce(lines, axis=0))
