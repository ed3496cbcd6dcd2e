"""A block of rows, each within its bounds: its products, its coordinates, and sums over blocks.

A matrix product may round a score differently in the middle of a block and at its edge, so that one
record more can change the scores of others. Here every operation is on single numbers, each rounded
by IEEE arithmetic on its own.

Each thread sums a share of the blocks. A block stays in one core's cache from the scores to the
sum, and the element-wise work in between is shared too. The blocks determine the order of
additions, not the speed of a thread, so a sum is reproducible.

A source chooses the rows per block (`usual_rows`, `fine_rows`), adds up the results of a function
on each (`added_up`) and states the bound (`float_error`). The three belong together.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, runtime_checkable

import numpy as np
import numpy.typing as npt

from tacit.arrays import Array, Integers, Mask
from tacit.disk_arrays import own
from tacit.privacy.fork import generation
from tacit.records.bounds import Bounds
from tacit.row_clipping import clip_factors, row_norms

if TYPE_CHECKING:
    from tacit.records.source import RecordSource


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
    people: Integers | None = None  # first row of each person, if sorted by person
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


def some_of(values: npt.NDArray[Any] | None, at: Any) -> npt.NDArray[Any] | None:
    """Return the values at some places, None if there are no values."""
    return None if values is None else values[at]


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


def of_a_class(labels: Any | None, bounds: Bounds) -> Mask | None:
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

    def known(at: int) -> Mask:
        some = labels[at : at + _LABELS]
        among: Mask = (some >= lowest) & (some <= highest)
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


def _without(rows: Any, absurd: Mask) -> Any:
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


@dataclass(frozen=True, eq=False)
class Coordinates:
    """The map x -> A x of a record's vector x, its intercept coordinate included.

    Parameters
    ----------
    matrix
        A, symmetric: a function of releases and public facts (a preconditioner).

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.records import Bounds, MemoryRecords
    >>> from tacit.records.block import Coordinates
    >>> records = MemoryRecords(np.array([[3.0, 4.0]]), None, Bounds(row_norm=10.0))
    >>> halved = Coordinates(np.diag([1.0, 0.5]))
    >>> records.sum(lambda block: (halved.lengths(block),))[0].round(3)
    array([3.606])
    """

    matrix: Array

    def of(self, vectors: Array) -> Array:
        """Return A times a vector, or times each column of several."""
        product: Array = self.matrix @ vectors
        return product

    def lengths(self, block: Block) -> Array:
        """Return ||A x|| of every record of a block, stored or computed."""
        if block.lengths is not None:
            return block.lengths
        return row_norms(block.points() @ self.matrix)

    def squares(self, inner: Any, last: Array, intercept: float) -> Array:
        """Return ||A s||^2 of sums s; the intercept coordinate is passed separately."""
        dense = inner.toarray() if hasattr(inner, "tocsr") else inner
        sums = np.column_stack([dense, last]) if intercept else dense
        squares: Array = row_norms(sums @ self.matrix) ** 2
        return squares


@runtime_checkable
class NotesLengths(Protocol):
    """A source that can store a norm of each record from one pass to the next."""

    def measured(self, lengths: Callable[[Block], Array]) -> RecordSource:
        """Return the records with blocks that know a norm of each record."""


def measured(records: RecordSource, coordinates: Coordinates) -> RecordSource:
    """Return the records; if the source can store norms, compute them once.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.records import Bounds, MemoryRecords
    >>> from tacit.records.block import Coordinates, measured
    >>> records = MemoryRecords(np.array([[3.0, 4.0]]), None, Bounds(row_norm=10.0))
    >>> measured(records, Coordinates(np.eye(2))).sum(lambda block: (block.lengths,))
    (array([5.]),)
    """
    if isinstance(records, NotesLengths):
        return records.measured(coordinates.lengths)
    return records


T = TypeVar("T")


@lru_cache(maxsize=1)
def _controller() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def available_threads() -> int:
    """Return the number of threads that the user allows BLAS."""
    counts = [library["num_threads"] for library in _controller().select(user_api="blas").info()]
    return max(counts, default=1)


class Workers:
    """As many threads as BLAS may have, for work that is mostly NumPy."""

    def __init__(self) -> None:
        self.n_threads = available_threads()
        self._begin()

    def _begin(self) -> None:
        self._generation = generation()
        self._pool = ThreadPoolExecutor(self.n_threads) if self.n_threads > 1 else None

    def map(self, function: Callable[[Any], T], shares: Sequence[Any]) -> list[T]:
        """Return function(share) for every share, in order."""
        if self._generation != generation():  # threads do not survive a fork; a pool would hang
            self._begin()
        if self._pool is None or len(shares) < 2:
            return [function(share) for share in shares]
        with _controller().limit(limits=1, user_api="blas"):
            return list(self._pool.map(function, shares))

    def share(
        self, function: Callable[[Sequence[int]], T], starts: Sequence[int], *, several: bool
    ) -> list[T]:
        """Return the results of each thread's contiguous share of the blocks, in order.

        One thread does all of a small table (not ``several``).
        """
        n_shares = min(self.n_threads, len(starts)) if several else 1
        edges = [len(starts) * i // n_shares for i in range(n_shares + 1)]
        return self.map(function, [starts[a:b] for a, b in pairwise(edges)])


class Buffers:
    """One buffer per thread for a block's rows in double precision.

    A new array for every block costs more in page faults than the arithmetic. Buffers belong to
    threads, not to shares: two simultaneous fits on the same records would otherwise overwrite
    each other's blocks, and a record could enter a sum more than once.
    """

    def __init__(self) -> None:
        self._own = threading.local()

    def __reduce__(self) -> tuple[Any, ...]:
        return Buffers, ()  # a copy, or another process, has its own

    def room(self, n: int, d: int) -> Array:
        """Return room for n rows of d numbers, the same for every block of a thread."""
        buffer = getattr(self._own, "rows", None)
        if buffer is None or len(buffer) < n:
            buffer = self._own.rows = np.empty((n, d))
        room: Array = buffer[:n]
        return room


_UNIT = 2.0**-53  # unit roundoff of a double
_BLOCK_BYTES = 4 << 20
_FEWEST_ROWS = 256
# Small blocks are as large as the bound on float error allows: (rows) u n stays near 2^-24, a
# quarter of what the most demanding certificate allows
# (tests/erm/mechanisms/objective_perturbation/test_mechanism.py).
_FINE_PRODUCT = 2**29
_FINE_ROWS = (64, 4096)


def usual_rows(n_features: int) -> int:
    """Return the number of rows per block if no tight bound on float error is needed."""
    # A temporary of one number per row costs page faults above 128 kB; with blocks of 4 MB it is
    # smaller from 32 columns on, and stays in the cache.
    return max(_BLOCK_BYTES // max(n_features * 8, 1), _FEWEST_ROWS)


def fine_rows(n_features: int, n_records: int) -> int:
    """Return the number of rows per small block."""
    least, most = _FINE_ROWS
    return min(max(_FINE_PRODUCT // max(n_records, 1), least), most, usual_rows(n_features))


def float_error(n_records: int, block_rows: int, *, fine: bool) -> float:
    """Return e such that a sum of n terms of size at most 1, added in blocks, is off by at most e.

    Within a block of m rows float summation in any order errs by at most (m - 1) u times the
    sum of sizes. Adding b block sums errs by b u, or (log2(b) + 1) u in pairs. Forming each term
    costs a few u more (docs/proofs/noisy_gradient.md, section 3).

    Examples
    --------
    >>> from tacit.records.block import float_error
    >>> float_error(1000, 256, fine=False) == (256 + 4 + 8) * 2.0**-53 * 1000
    True
    """
    n = max(n_records, 1)
    rows = min(block_rows, n)
    blocks = math.ceil(n / rows)
    return (rows + (math.log2(blocks) + 1 if fine else blocks) + 8) * _UNIT * n


def added_up(parts: Iterator[tuple[Array, ...]], *, fine: bool) -> tuple[Array, ...]:
    """Return the sum of at least one part; added in pairs if ``fine``."""
    return _paired(parts) if fine else _in_turn(parts)


def _in_turn(parts: Iterator[tuple[Array, ...]]) -> tuple[Array, ...]:
    """Add each part to the running totals."""
    totals = tuple(np.array(value, dtype=np.float64) for value in next(parts))
    for part in parts:
        for total, value in zip(totals, part, strict=True):
            total += value
    return totals


def _paired(parts: Iterator[tuple[Array, ...]]) -> tuple[Array, ...]:
    """Add parts in pairs, pairs in pairs, and so on; only log2(b) of b parts are held at a time."""
    partial_sums: list[tuple[int, tuple[Array, ...]]] = []
    for part in parts:
        level, total = 0, tuple(np.array(value, dtype=np.float64) for value in part)
        while partial_sums and partial_sums[-1][0] == level:
            total, level = _added(partial_sums.pop()[1], total), level + 1
        partial_sums.append((level, total))
    _, total = partial_sums.pop()
    while partial_sums:
        total = _added(partial_sums.pop()[1], total)
    return total


def _added(first: tuple[Array, ...], second: tuple[Array, ...]) -> tuple[Array, ...]:
    return tuple(np.asarray(a + b) for a, b in zip(first, second, strict=True))


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
