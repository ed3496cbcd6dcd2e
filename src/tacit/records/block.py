"""A few rows at a time, each already within its bounds."""

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

_LABELS = 1 << 16


@dataclass(frozen=True)
class Block:
    """Rows x_i, clip factors c_i and labels; the record's vector is (c_i x_i, intercept).

    Everything is linear in the rows, so clipping is one multiplication per row of a score or a
    residual and the rows themselves are never copied. Weights are shares in [0, 1] of the greatest
    that counts, None where all are 1; every sum over records has them in it, once.
    """

    rows: Any
    factors: Array
    labels: Array | None
    intercept: float
    weights: Array | None = None
    people: npt.NDArray[np.int64] | None = None  # where each person's rows start, if sorted so
    lengths: Array | None = None  # of each record in a descent's coordinates, where noted

    @property
    def n_rows(self) -> int:
        """How many records the block holds."""
        return int(self.rows.shape[0])

    def scores(self, weights: Array) -> Array:
        """Return <w, x> for every record; one column per output if ``weights`` has columns."""
        return self._scores(weights, lambda inner: self.rows @ inner)

    def steady_scores(self, weights: Array) -> Array:
        """Return the same scores, to the last bit a function of each record alone.

        For slopes that jump (docs/proofs/noisy_gradient.md, section 3); slower than a matrix
        product.
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
            # SciPy's product goes from row to row, and through each in the order of its entries.
            return np.asarray(self.rows @ weights)
        return row_products(self.rows, weights)

    def weighed(self, values: Array) -> Array:
        """Return a number, or a row of them, of every record times its weight."""
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
        """Return the sum of weight_i coefficient_i x_i x_i', for coefficients not negative."""
        coefficients = self.weighed(coefficients)
        # as A'A with A = sqrt(c) x, which BLAS computes in half the work
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
        """Return the squared length of every clipped row, without the intercept's coordinate."""
        lengths = sparse_norms(self.rows) if _is_sparse(self.rows) else row_norms(self.rows)
        result: Array = (self.factors * lengths) ** 2
        return result

    def points(self) -> Array:
        """Return the records' vectors as a dense array (point losses need them).

        Each is one stretch of memory, so that its distances are added up the same way everywhere.
        """
        dense = self.rows.toarray() if _is_sparse(self.rows) else self.rows
        points: Array = np.multiply(dense, self.factors[:, None], order="C")
        if not self.intercept:
            return points
        return np.hstack([points, np.full((points.shape[0], 1), self.intercept)])


def factors_of(rows: Any, bounds: Bounds) -> Array:
    """Return the factor, at most 1, by which each row is scaled to its norm.

    Dense rows, or a canonical CSR array. Sizes are in double precision whatever the rows are;
    `tacit.row_clipping` states the rule and proves it.
    """
    norms = sparse_norms(rows) if _is_sparse(rows) else row_norms(rows)
    return clip_factors(norms, bounds.row_norm, rows.shape[1])


def make_block(
    rows: Any, labels: Any | None, factors: Array, bounds: Bounds, weights: Any | None = None
) -> Block:
    """Return rows in double precision, dense or canonical, as a block within its bounds.

    ``factors`` are those of `factors_of`; labels are clipped here, and those not finite count as
    0. So are weights, of which one that is no number counts as 0.
    """
    if not factors.all():
        rows = _without(rows, factors == 0.0)
    shares = shares_of(weights, bounds)
    return Block(rows, factors, bounded_labels(labels, bounds), bounds.intercept, shares)


def of_a_class(labels: Any | None, bounds: Bounds) -> npt.NDArray[np.bool_] | None:
    """Return which records count, each by its own label: those of a class that bounds declare.

    None where all of them do. A source leaves the others out, with their rows, weights and people.

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
        if some.dtype.kind == "f":  # whole numbers between them; NaN is not between them
            among &= np.rint(some) == some
        return among

    # Some at a time: labels may be on disk, and more than memory holds.
    starts = range(0, len(labels), _LABELS)
    if all(known(at).all() for at in starts):
        return None
    return np.concatenate([known(at) for at in starts])


def bounded_labels(labels: Any | None, bounds: Bounds) -> Array | None:
    """Return labels as numbers within their range; those not finite count as 0."""
    if labels is None:
        return None
    is_whole = getattr(labels, "dtype", np.dtype(float)).kind in "biu"
    if is_whole:
        numbers = np.asarray(labels, dtype=float)
    else:
        # What is not finite counts as 0: a NaN would be in every sum that its record is in. Of a
        # copy, to which nobody writes after it was looked at.
        numbers = np.array(labels, dtype=float)
        numbers[~np.isfinite(numbers)] = 0.0
    return numbers if bounds.label_range is None else np.clip(numbers, *bounds.label_range)


def shares_of(weights: Any | None, bounds: Bounds) -> Array | None:
    """Return weights as shares of the greatest: whatever they are, finite and in [0, 1]."""
    if weights is None or bounds.max_weight is None:
        return None
    shares: Array = np.clip(np.asarray(weights, dtype=float), 0.0, bounds.max_weight)  # NaN stays
    shares[np.isnan(shares)] = 0.0
    return shares / bounds.max_weight


def _without(rows: Any, absurd: npt.NDArray[np.bool_]) -> Any:
    """Return a copy of a block's rows with some set to zero."""
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
