"""A block of rows, dense or sparse, each within its bounds, and its products.

A matrix product may round a score differently in the middle of a block and at its edge, so that one
record more can change the scores of others. Here every operation is on single numbers, each rounded
by IEEE arithmetic on its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.disk_arrays import own
from tacit.records.bounds import Bounds
from tacit.row_clipping import clip_factors, row_norms

Array = npt.NDArray[np.float64]


def canonical(matrix: Any) -> Any:
    """Return the rows as a CSR array without duplicate entries.

    Norms are per place and products are per entry: with two entries at one place a row could be
    short for the norm and long for the product. Duplicates are added up in double precision, once,
    before anything is computed. ``has_canonical_format`` may be out of date and is ignored. The
    matrix itself stays as it was. Its memory is shared if nothing changes and nobody else can write
    to it: indices that change after the check could be arbitrary.

    Raises
    ------
    ValueError
        If the index arrays do not describe a matrix of this shape.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> from tacit.records.block import canonical
    >>> canonical(csr_array(([1e200, -1e200, 1.0], [2, 2, 0], [0, 3]), shape=(1, 3))).toarray()
    array([[1., 0., 0.]])
    """
    from scipy.sparse import csr_array, issparse

    rows = matrix if issparse(matrix) else matrix.tocsr()
    try:
        rows = rows if rows.format == "csr" else _as_csr(rows)
        # A new array over the same memory has no cached flags and must check the indices.
        parts = (own(part) for part in (rows.data, rows.indices, rows.indptr))
        rows = csr_array(tuple(parts), shape=rows.shape)
        rows.check_format(full_check=True)
    except ValueError:
        raise ValueError(
            "the index arrays of the sparse rows do not describe a matrix of their shape; build "
            "it anew, for example with scipy.sparse.csr_array(X.toarray())."
        ) from None
    if rows.dtype not in (np.float32, np.float64):
        rows = rows.astype(np.float64)
    if not rows.has_canonical_format:
        rows = rows.astype(np.float64, copy=True)
        rows.sum_duplicates()
    return rows


def _as_csr(matrix: Any) -> Any:
    from scipy.sparse import coo_array

    if hasattr(matrix, "check_format"):  # check before the conversion, which trusts the indices
        matrix = matrix.copy()
        matrix.check_format(full_check=True)
    entries = matrix.tocoo()
    # In double precision before duplicates are added; a new array checks the indices.
    data, places = entries.data.astype(np.float64), tuple(map(own, entries.coords))
    return coo_array((data, places), shape=matrix.shape).tocsr()


def sparse_norms(rows: Any) -> Array:
    """Return the Euclidean norm of every row of a canonical CSR array, in double precision."""
    n, data = rows.shape[0], rows.data.astype(np.float64, copy=False)
    at = np.repeat(np.arange(n), np.diff(rows.indptr))
    largest = np.zeros(n)
    with np.errstate(over="ignore", invalid="ignore"):
        np.maximum.at(largest, at, np.abs(data))
        scaled = data / np.where(largest > 0.0, largest, 1.0)[at]
        norms: Array = largest * np.sqrt(np.bincount(at, scaled * scaled, minlength=n))
    return norms


# Terms held at once: a quarter of a megabyte, which stays in the cache.
_TERMS = 1 << 15


def row_products(rows: Array, weights: Array) -> Array:
    """Return <row, weights> for every row, as a function of that row and the weights alone.

    For several outputs, pass one column of weights each.

    Guarantee: the same bits for any position of the row, any rows around it, any number of rows and
    any memory layout. The terms x_j w_j are added in pairs, term j to term j + ceil(d / 2), until
    one is left.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.records.block import row_products
    >>> row_products(np.array([[1.0, 2.0, 3.0], [0.0, 1.0, 0.0]]), np.array([1.0, 10.0, 100.0]))
    array([321.,  10.])
    """
    n, d = rows.shape
    outputs = np.atleast_2d(weights.T)
    products = np.zeros((n, len(outputs)))
    step = max(1, _TERMS // max(d, 1))
    for start in range(0, n if d else 0, step):
        # Store columns contiguously, so that whole columns are added at once.
        columns = np.ascontiguousarray(rows[start : start + step].T)
        for made, output in zip(products.T, outputs, strict=True):
            terms = columns * output[:, None]
            while len(terms) > 1:
                n_left = (len(terms) + 1) // 2
                terms[: len(terms) - n_left] += terms[n_left:]
                terms = terms[:n_left]
            made[start : start + step] = terms[0]
    return products.reshape(n, *weights.shape[1:])


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
