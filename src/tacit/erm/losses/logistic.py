"""Logistic loss."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tacit.erm.losses.base import Array
from tacit.erm.losses.scores import Loss
from tacit.privacy import Event, LogisticObjective, Relation
from tacit.queries.minimizer import Sizes
from tacit.records.exact_rows import RowLattice
from tacit.records.lattice_block import LatticeBlock
from tacit.records.lattice_tiles import Tiles
from tacit.records.sigmoid import sigmoid


@dataclass(frozen=True)
class LogisticLoss(Loss):
    """Logistic loss of the margin m = y z, y = -1 or 1.

        value = log(1 + exp(-m)),  d1 = -y t,  d2 = t (1 - t),  t = 1 / (1 + exp(m))

    Guarantee: |d1| <= 1; 0 <= d2 <= 1/4; monotone.

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
        return -label * _tilt(score, label)

    def steady_d1(self, score: Array, label: Array) -> Array:
        """Return the same as sigmoid(z) - (y > 0), to the bit on every machine."""
        return sigmoid(score) - (label > 0)

    def sum_in_steps(self, block: LatticeBlock, weights: Array, rows: RowLattice) -> Array:
        """Return the sum of the records' gradients; in one compiled loop where there is one."""
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
        t = _tilt(score, label)
        return t * (1.0 - t)


def _tilt(score: Array, label: Array) -> Array:
    """Return t = 1 / (1 + exp(m)) in place: the inner loop of every logistic fit."""
    m = label * score
    np.minimum(m, 700.0, out=m)  # exp stays finite; t is below 1e-304 from there on
    np.exp(m, out=m)
    m += 1.0
    return np.reciprocal(m, out=m)
