"""Hold a few rows at a time, each already within its bounds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.records.bounds import Bounds
from tacit.records.row_products import row_products
from tacit.records.sparse_rows import sparse_norms
from tacit.row_clipping import clip_factors, row_norms

Array = npt.NDArray[np.float64]

_LABELS = 1 << 16  # labels compared at once


@dataclass(frozen=True)
class Block:
    """Rows x_i, clip factors c_i and labels; the record's vector is (c_i x_i, intercept).

    Scores and sums are linear in the rows. So clipping is one multiplication per row of a score or
    a residual, and the rows are never copied. Weights are shares in [0, 1] of the greatest weight,
    None if all are 1. Every sum over records contains them exactly once.
    """

    rows: Any
    factors: Array
    labels: Array | None
    intercept: float
    weights: Array | None = None
    people: npt.NDArray[np.int64] | None = None  # first row of each person, if sorted by person
    lengths: Array | None = None  # norm of each record in preconditioned coordinates, if stored

    @property
    def n_rows(self) -> int:
        """Number of records in the block."""
        return int(self.rows.shape[0])

    def scores(self, weights: Array) -> Array:
        """Return <w, x> for every record; one column per output if ``weights`` has columns."""
        return self._scores(weights, lambda inner: self.rows @ inner)

    def steady_scores(self, weights: Array) -> Array:
        """Return the scores; each is bitwise a function of its own record and the weights.

        Losses with discontinuous gradients need them (docs/proofs/noisy_gradient.md, section 3).
        This is slower than a matrix product.
        """
        return self._scores(weights, self._one_by_one)

    def _scores(self, weights: Array, product: Callable[[Array], Array]) -> Array:
        if not self.intercept:
            return _scale(self.factors, product(weights))
        scores = _scale(self.factors, product(weights[:-1]))
        scores += self.intercept * weights[-1]
        return scores

    def _one_by_one(self, weights: Array) -> Array:
        if _is_sparse(self.rows):
            # SciPy's product goes row by row, and through each row in the order of its entries.
            return np.asarray(self.rows @ weights)
        return row_products(self.rows, weights)

    def weighed(self, values: Array) -> Array:
        """Return each record's number, or row of numbers, times the record's weight."""
        return values if self.weights is None else _scale(self.weights, values)

    def weighted_sum(self, coefficients: Array) -> Array:
        """Return the sum of weight_i coefficient_i x_i over the block's records."""
        coefficients = self.weighed(coefficients)
        inner = self.rows.T @ _scale(self.factors, coefficients)
        if not self.intercept:
            return np.asarray(inner)
        last = self.intercept * coefficients.sum(axis=0, keepdims=True)
        return np.concatenate([inner, last])

    def gram(self, coefficients: Array) -> Array:
        """Return the sum of weight_i coefficient_i x_i x_i', for nonnegative coefficients."""
        coefficients = self.weighed(coefficients)
        # As A'A with A = sqrt(c) x, which BLAS computes with half the work.
        root = self.factors * np.sqrt(coefficients)
        if _is_sparse(self.rows):
            scaled = self.rows.multiply(root[:, None]).tocsr()
            inner = (scaled.T @ scaled).toarray()
        else:
            scaled = self.rows * root[:, None]
            inner = scaled.T @ scaled
        if not self.intercept:
            return np.asarray(inner)
        border = self.intercept * (self.rows.T @ (self.factors * coefficients))
        corner = self.intercept**2 * coefficients.sum()
        return np.block([[inner, border[:, None]], [border[None, :], np.array([[corner]])]])

    def squared_norms(self) -> Array:
        """Return the squared norm of every clipped row, without the intercept's coordinate."""
        lengths = sparse_norms(self.rows) if _is_sparse(self.rows) else row_norms(self.rows)
        result: Array = (self.factors * lengths) ** 2
        return result

    def points(self) -> Array:
        """Return the records' vectors as a dense array (point losses need them).

        Each vector is contiguous in memory, so that its distances are summed in a fixed order.
        """
        dense = self.rows.toarray() if _is_sparse(self.rows) else self.rows
        points: Array = np.multiply(dense, self.factors[:, None], order="C")
        if not self.intercept:
            return points
        return np.hstack([points, np.full((points.shape[0], 1), self.intercept)])


def factors_of(rows: Any, bounds: Bounds) -> Array:
    """Return the factor, at most 1, by which each row is scaled down to its norm.

    Rows are dense, or a canonical CSR array. Norms are computed in double precision for any dtype.
    `tacit.row_clipping` states the rule and proves it.
    """
    norms = sparse_norms(rows) if _is_sparse(rows) else row_norms(rows)
    return clip_factors(norms, bounds.row_norm, rows.shape[1])


def make_block(
    rows: Any, labels: Any | None, factors: Array, bounds: Bounds, weights: Any | None = None
) -> Block:
    """Return rows in double precision, dense or canonical, as a block within its bounds.

    ``factors`` are those of `factors_of`. Labels are clipped here, and a label that is not finite
    counts as 0. Weights are clipped too, and a weight that is no number counts as 0.
    """
    if not factors.all():
        rows = _without(rows, factors == 0.0)
    shares = shares_of(weights, bounds)
    return Block(rows, factors, bounded_labels(labels, bounds), bounds.intercept, shares)


def of_a_class(labels: Any | None, bounds: Bounds) -> npt.NDArray[np.bool_] | None:
    """Return which records have a label among the declared classes; each by its own label.

    None if all of them have. A source drops the others, with their rows, weights and people.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.records import Bounds
    >>> from tacit.records.block import of_a_class
    >>> of_a_class(np.array([-1.0, 0.0, 1.0, 2.0, np.nan]), Bounds(n_classes=2))
    array([ True,  True,  True, False, False])
    """
    if labels is None or bounds.n_classes is None:
        return None
    lowest, highest = (-1, 1) if bounds.n_classes == 2 else (0, bounds.n_classes - 1)

    def known(at: int) -> npt.NDArray[np.bool_]:
        some = labels[at : at + _LABELS]
        among: npt.NDArray[np.bool_] = (some >= lowest) & (some <= highest)
        if some.dtype.kind == "f":  # integers only; the comparison has excluded NaN
            among &= np.rint(some) == some
        return among

    # Process some at a time: labels may be on disk and larger than memory.
    starts = range(0, len(labels), _LABELS)
    if all(known(at).all() for at in starts):
        return None
    return np.concatenate([known(at) for at in starts])


def bounded_labels(labels: Any | None, bounds: Bounds) -> Array | None:
    """Return labels as numbers within their range; a label that is not finite counts as 0."""
    if labels is None:
        return None
    is_whole = getattr(labels, "dtype", np.dtype(float)).kind in "biu"
    if is_whole:
        numbers = np.asarray(labels, dtype=float)
    else:
        # A label that is not finite counts as 0, as a NaN would spoil the whole sum. Change a copy,
        # which nobody else can write to after the check.
        numbers = np.array(labels, dtype=float)
        numbers[~np.isfinite(numbers)] = 0.0
    return numbers if bounds.label_range is None else np.clip(numbers, *bounds.label_range)


def shares_of(weights: Any | None, bounds: Bounds) -> Array | None:
    """Return weights as shares of the greatest weight: finite and in [0, 1] for any input."""
    if weights is None or bounds.max_weight is None:
        return None
    shares: Array = np.clip(np.asarray(weights, dtype=float), 0.0, bounds.max_weight)  # NaN stays
    shares[np.isnan(shares)] = 0.0
    return shares / bounds.max_weight


def _without(rows: Any, absurd: npt.NDArray[np.bool_]) -> Any:
    """Return a copy of a block's rows with some rows set to zero."""
    rows = rows.copy()
    if _is_sparse(rows):
        rows.data[np.repeat(absurd, np.diff(rows.indptr))] = 0.0
    else:
        rows[absurd] = 0.0
    return rows


def _is_sparse(rows: Any) -> bool:
    return hasattr(rows, "tocsr")


def _scale(factors: Array, values: Array) -> Array:
    return values * (factors if values.ndim == 1 else factors[:, None])
