"""Rows in whole steps of a public lattice, and exact sums of them.

    step = 2^(ceil(log2(row_norm)) - 15)        integers below 2^15 in size, two bytes each

A clipped row is rounded to the nearest multiples of the step. If that would exceed its norm, it is
rounded towards zero. The result depends on the row itself and its bound only
(docs/proofs/exact_sums.md, section 2).

A block's sum, an integer below 2^53, is split into its low 26 bits and the rest. Each part is added
separately: floats add both exactly for up to 2^26 blocks. At the end the two parts are joined. The
result is exact below 2^53 and rounded once above (docs/proofs/exact_sums.md, section 3).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from tacit.arrays import Array
from tacit.disk_arrays import is_on_disk, may_change
from tacit.records.block import (
    Block,
    Buffers,
    Workers,
    added_up,
    bounded_labels,
    shares_of,
    some_of,
)
from tacit.records.bounds import Bounds
from tacit.records.exact.kernels import TILE_ROWS, small_rows
from tacit.records.exact.tiles import Tiles
from tacit.records.source import RecordSource
from tacit.row_clipping import clipped_rows

Whole = npt.NDArray[np.int16]

ROW_BITS = 15
_GREATEST = 2**ROW_BITS - 1
# Numbers processed at once; they stay in the cache.
_AT_ONCE = 1 << 16


def power_above(value: float) -> int:
    """Return the least e with ``value`` <= 2^e.

    Examples
    --------
    >>> from tacit.records.exact.lattice import power_above
    >>> power_above(4.0), power_above(4.1)
    (2, 3)
    """
    mantissa, exponent = math.frexp(value)
    return exponent - 1 if mantissa == 0.5 else exponent


def row_step(row_norm: float) -> float:
    """Return the step of rows of norm at most ``row_norm``: a power of two.

    Examples
    --------
    >>> from tacit.records.exact.lattice import row_step
    >>> row_step(1.0) == row_step(0.7) == 2.0**-15
    True
    """
    return math.ldexp(1.0, power_above(row_norm) - ROW_BITS)


def in_steps(rows: Any, factors: Array, row_norm: float, out: Whole | None = None) -> Any:
    """Return rows, each times its factor, in integer steps; none exceeds its norm.

    Parameters
    ----------
    rows
        Dense, or a canonical CSR array, finite wherever its factor is not 0.
    factors
        Those of `factors_of`.
    row_norm
        Bound on the norm of a row times its factor.
    out
        Output for dense rows.

    Returns
    -------
    array of int16, or CSR array of integer float64
        A row whose nearest multiples would exceed its norm is rounded towards zero.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.records.exact.lattice import in_steps
    >>> in_steps(np.array([[0.5, 0.25], [3.0, 4.0]]), np.array([1.0, 0.2]), 1.0)
    array([[16384,  8192],
           [19661, 26214]], dtype=int16)
    """
    if hasattr(rows, "tocsr"):
        return _sparse_in_steps(rows, factors, row_norm)
    n, d = rows.shape
    whole = np.empty((n, d), dtype=np.int16) if out is None else out
    at_once = max(1, _AT_ONCE // max(d, 1))
    scales = factors / row_step(row_norm)  # exact: a power of two
    for start in range(0, n, at_once):
        at = slice(start, start + at_once)
        exact = np.multiply(rows[at], scales[at, None], dtype=np.float64)
        nearest = np.rint(exact)
        # Integers below 2^53 add up exactly in any order. A row within its norm has no entry of
        # 2^15 or more.
        too_long = np.einsum("ij,ij->i", nearest, nearest) > _longest(row_norm)
        if too_long.any():
            # If all are too long, as for one-hot rows, avoid the copy of a selection.
            which: Any = slice(None) if too_long.all() else too_long
            # Rounding towards zero suffices; the clip only prevents a wrap-around.
            held = np.trunc(exact[which])
            nearest[which] = np.clip(held, -_GREATEST, _GREATEST, out=held)
        whole[at] = nearest
    return whole


def _sparse_in_steps(rows: Any, factors: Array, row_norm: float) -> Any:
    from scipy.sparse import csr_array

    at = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
    exact = rows.data * (factors / row_step(row_norm))[at]
    nearest = np.rint(exact)
    squares = np.bincount(at, nearest * nearest, minlength=rows.shape[0])
    whole = np.where((squares > _longest(row_norm))[at], np.trunc(exact), nearest)
    return csr_array((whole, rows.indices, rows.indptr), shape=rows.shape)


def _longest(row_norm: float) -> float:
    """Return the greatest squared norm in steps, rounded down."""
    size = row_norm / row_step(row_norm)  # exact
    return math.floor(size * size * (1 - 2.0**-50))


# Bits of gradient coefficients, which are integers (`tacit.queries.gradient`): 2^20 rows of 2^15
# steps times coefficients of 2^18 add up below 2^53.
COEFFICIENT_BITS = 18
# Bits of weights below a power of two above their norm. The rounding moves the point at which a
# gradient is evaluated by less than the noise moves it (docs/proofs/exact_sums.md, section 5).
WEIGHT_BITS = 28
MOST_ROWS = 2 ** (53 - ROW_BITS - COEFFICIENT_BITS)


@dataclass(frozen=True)
class LatticeBlock:
    """Rows k_i in steps, labels and weights; the record's vector is (step k_i, intercept).

    Losses use it like a `Block`: it has scores, labels and weights.

    Notes
    -----
    **Guarantee** (docs/proofs/exact_sums.md)

    1. A score depends on its own row and the weights alone, to the last bit. It is the same with
    any BLAS, with numba and without.
    2. Sums of integers times rows are exact.
    """

    rows: Any  # int16, `Tiles` of int16 for compiled loops, or a CSR array of integer float64
    step: float
    labels: Array | None
    intercept: float
    weights: Array | None = None
    buffer: Array | None = None  # the rows in double precision
    people: None = None  # a person's records are summed in ordinary blocks

    @property
    def n_rows(self) -> int:
        """Number of records in the block."""
        return int(self.rows.shape[0])

    def scores(self, weights: Array) -> Array:
        """Return <w, x> for every record, for weights rounded to 28 bits."""
        whole, unit, constant = self.lattice_weights(weights)
        scores = self._along(whole)
        scores *= unit  # a power of two
        if self.intercept:
            scores += constant
        return scores

    def lattice_weights(self, weights: Array) -> tuple[Array, float, Any]:
        """Return the rows' weights as integers, and the numbers that turn their sums into scores.

        score = unit sum_j k_j whole_j + constant
        """
        constant = self.intercept * weights[-1] if self.intercept else 0.0
        _refuse_unless(np.all(np.isfinite(constant)))
        inner = np.asarray(weights[:-1] if self.intercept else weights, dtype=np.float64)
        whole, spacing = _known_on_lattice(inner.tobytes(), inner.shape)
        return whole, spacing * self.step, constant

    def steady_scores(self, weights: Array) -> Array:
        """Return `scores`: no score depends on other rows."""
        return self.scores(weights)

    def weighed(self, values: Array) -> Array:
        """Return each record's number, or row of numbers, times the record's weight."""
        if self.weights is None:
            return values
        return values * (self.weights if values.ndim == 1 else self.weights[:, None])

    def squared_norms(self) -> Array:
        """Return the squared norm of every row, without the intercept's coordinate; exact."""
        if hasattr(self.rows, "tocsr"):
            squares = np.asarray(self.rows.multiply(self.rows).sum(axis=1)).reshape(-1)
        else:
            rows = self._doubles()
            squares = np.einsum("ij,ij->i", rows, rows)
        result: Array = squares * self.step**2
        return result

    def whole_sum(self, coefficients: Array) -> Array:
        """Return sum_i c_i k_i, for integers c_i of at most `COEFFICIENT_BITS`; exact."""
        d, n = self.rows.shape[1], self.n_rows
        total = np.zeros((d, *coefficients.shape[1:]))
        if hasattr(self.rows, "tocsr"):
            for at in _slices(n, MOST_ROWS):
                total += self.rows[at].T @ coefficients[at]
        elif isinstance(self.rows, Tiles):
            return self.rows.down(coefficients)
        else:
            rows = self._doubles()
            for at in _slices(n, small_rows(d, total.size // max(d, 1))):
                total += rows[at].T @ coefficients[at]
        return total

    def doubles(self) -> Array:
        """Return the rows in steps as doubles, dense."""
        return self.rows.toarray() if hasattr(self.rows, "tocsr") else self._doubles()

    def _along(self, weights: Array) -> Array:
        if hasattr(self.rows, "tocsr"):
            return np.asarray(self.rows @ weights)
        if isinstance(self.rows, Tiles):
            return self.rows.along(weights)
        scores = np.empty((self.n_rows, *weights.shape[1:]))
        rows = self._doubles()
        for at in _slices(self.n_rows, small_rows(*weights.reshape(len(weights), -1).shape)):
            np.matmul(rows[at], weights, out=scores[at])
        return scores

    def _doubles(self) -> Array:
        if self.buffer is not None:
            return self.buffer  # filled by `LatticeTable`
        rows = self.rows.rows() if isinstance(self.rows, Tiles) else self.rows
        return np.asarray(rows, dtype=np.float64)


def _slices(n: int, step: int) -> list[slice]:
    return [slice(start, min(start + step, n)) for start in range(0, n, step)]


@lru_cache(maxsize=8)
def _known_on_lattice(weights: bytes, shape: tuple[int, ...]) -> tuple[Array, float]:
    """Return `on_lattice`, computed once for all blocks of a pass; nobody writes to the result."""
    return on_lattice(np.frombuffer(weights).reshape(shape))


def on_lattice(weights: Array) -> tuple[Array, float]:
    """Return weights as integer multiples of a spacing; products with lattice rows are then exact.

        spacing = 2^(e - 28),   ||w|| < 2^e for every column;
        sum_j |k_j w_j| <= ||k|| ||w|| <= 2^(15 + e)

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.records.exact.lattice import on_lattice
    >>> whole, spacing = on_lattice(np.array([0.1, 3.0]))
    >>> bool(np.abs(whole * spacing - [0.1, 3.0]).max() < 2.0**-25)
    True
    """
    size = float(np.sqrt(np.max(np.sum(weights * weights, axis=0), initial=0.0)))
    _refuse_unless(size < 2.0**400)
    if size < 2.0**-400:
        return np.zeros_like(weights), 1.0
    # One bit more than the norm needs, since the norm and the weights are rounded.
    spacing = math.ldexp(1.0, power_above(size) + 1 - WEIGHT_BITS)
    return np.rint(weights / spacing), spacing


def _refuse_unless(are_usable: Any) -> None:
    if not are_usable:
        raise ValueError("the weights are not finite or too large to compute with; add a ridge.")


def check_few_rows(n_rows: int) -> None:
    """Raise if a block has more rows than floats add up exactly.

    Examples
    --------
    >>> from tacit.records.exact.lattice import check_few_rows
    >>> check_few_rows(1000)
    """
    if n_rows > MOST_ROWS:
        raise ValueError(
            f"a block has more than {MOST_ROWS} rows; let the source cut smaller ones."
        )


def lattice_block(block: Block, bounds: Bounds) -> LatticeBlock:
    """Return a block in lattice steps."""
    check_few_rows(block.n_rows)
    rows = in_steps(block.rows, block.factors, bounds.row_norm)
    return LatticeBlock(
        rows, row_step(bounds.row_norm), block.labels, block.intercept, block.weights
    )


@runtime_checkable
class OnLattice(Protocol):
    """A source that stores its rows in lattice steps, or wraps one that does."""

    def sum_in_steps(
        self,
        function: Callable[[LatticeBlock], tuple[Array, ...]],
        *,
        n_outputs: int = 1,
        keep: bool = True,
    ) -> tuple[Array, ...]:
        """Add up ``function`` over lattice blocks, for ``n_outputs`` scores per record."""


def sum_in_steps(
    records: RecordSource,
    function: Callable[[LatticeBlock], tuple[Array, ...]],
    *,
    n_outputs: int = 1,
    keep: bool = True,
) -> tuple[Array, ...]:
    """Add up ``function`` over lattice blocks of any source.

    ``keep`` announces more such sums, so that a source may store the rows in steps.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.records import Bounds, MemoryRecords
    >>> from tacit.records.exact.lattice import sum_in_steps
    >>> records = MemoryRecords(np.array([[0.5, 0.25], [0.25, 0.0]]), None, Bounds(row_norm=1.0))
    >>> sum_in_steps(records, lambda block: (block.whole_sum(np.ones(block.n_rows)),))
    (array([24576.,  8192.]),)
    """
    if isinstance(records, OnLattice):
        return records.sum_in_steps(function, n_outputs=n_outputs, keep=keep)
    bounds = records.bounds
    return records.sum(lambda block: function(lattice_block(block, bounds)))


# Numbers in a block: enough to amortise the calls. For several outputs by BLAS, what the cache
# holds as doubles from scores to sums. Compiled loops manage their cache themselves.
_NUMBERS, _NUMBERS_IN_TILES = 1 << 20, 1 << 21
_NUMBERS_OF_SEVERAL = 1 << 18
# At least so many rows in wide tables, as each block splits the weights into limbs again.
_LEAST_ROWS = 2048
# Smaller tables are not worth sharing among threads.
_SHARED_NUMBERS = 1 << 21


class LatticeTable:
    """Rows in the steps of `in_steps`, with labels and weights as given.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.records import Bounds
    >>> from tacit.records.exact.lattice import LatticeTable
    >>> table = LatticeTable(np.array([[3, 4], [1, 0]], dtype=np.int16), None, Bounds())
    >>> table.sum(lambda block: (block.whole_sum(np.array([1.0, 10.0])),))
    (array([13.,  4.]),)
    """

    def __init__(
        self, rows: Any, labels: Any | None, bounds: Bounds, weights: Any | None = None
    ) -> None:
        self.rows, self.bounds = rows, bounds
        # Labels in memory are clipped once; labels on disk block by block.
        self._labels = labels if is_on_disk(labels) else bounded_labels(labels, bounds)
        self._are_usable = not is_on_disk(labels) or (
            not may_change(labels) and _are_within(labels, bounds)
        )
        self._weights = weights
        self._buffers = Buffers()
        self._workers: Workers | None = None

    def some(self, at: Any) -> LatticeTable:
        """Return the rows at some places."""
        labels, weights = some_of(self._labels, at), some_of(self._weights, at)
        rows = self.rows
        if isinstance(rows, Tiles):
            places = np.arange(rows.shape[0])[at]
            return LatticeTable(rows.at(places), labels, self.bounds, weights)
        return LatticeTable(rows[at], labels, self.bounds, weights)

    def sum(
        self, function: Callable[[LatticeBlock], tuple[Array, ...]], *, n_outputs: int = 1
    ) -> tuple[Array, ...]:
        """Add up ``function`` over blocks, with several threads if the table is large."""
        n, d = self.rows.shape
        is_tiled = isinstance(self.rows, Tiles)
        of_rows = _NUMBERS if n_outputs == 1 else _NUMBERS_OF_SEVERAL
        numbers = _NUMBERS_IN_TILES if is_tiled else of_rows
        step = min(max(1, numbers // max(d, 1)), MOST_ROWS)
        if is_tiled:  # cut between tiles only
            step = max(step, _LEAST_ROWS) // TILE_ROWS * TILE_ROWS
        starts = range(0, max(n, 1), step)

        def total(share: Sequence[int]) -> tuple[Array, ...]:
            blocks = (self._block(slice(at, at + step)) for at in share)
            return added_up(map(function, blocks), fine=False)

        if self._workers is None:
            self._workers = Workers()
        is_large = n * d * n_outputs >= _SHARED_NUMBERS
        return added_up(iter(self._workers.share(total, starts, several=is_large)), fine=False)

    def _some_labels(self, at: slice) -> Array | None:
        if self._labels is None:
            return None
        labels = self._labels[at]
        if self._are_usable:
            return np.asarray(labels, dtype=np.float64)
        return bounded_labels(labels, self.bounds)

    def _block(self, at: slice) -> LatticeBlock:
        rows, buffer = self.rows[at], None
        if not (hasattr(rows, "tocsr") or isinstance(rows, Tiles)):
            buffer = self._buffers.room(*rows.shape)
            np.copyto(buffer, rows)
        return LatticeBlock(
            rows,
            row_step(self.bounds.row_norm),
            self._some_labels(at),
            self.bounds.intercept,
            shares_of(some_of(self._weights, at), self.bounds),
            buffer,
        )


def _are_within(labels: Any, bounds: Bounds) -> bool:
    """Return whether labels are integers within their range."""
    if labels.dtype.kind not in "iu" or not len(labels):
        return False
    lower, upper = bounds.label_range or (-np.inf, np.inf)
    return bool(lower <= labels.min() and labels.max() <= upper)


_LOW = 2.0**26
_MOST = 2.0**53
_MOST_RECORDS = 2**31
# Safety factor: four times the stated number of records may exist before a sum is clipped.
_MARGIN = 4


def split(whole: Array) -> tuple[Array, Array]:
    """Return integers of size up to 2^53 as high and low parts.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.records.exact.lattice import split
    >>> split(np.array([2.0**26 + 5, -1.0]))
    (array([ 1., -1.]), array([5.0000000e+00, 6.7108863e+07]))
    """
    high = np.floor(whole / _LOW)
    return high, whole - high * _LOW


@dataclass(frozen=True)
class Rounding:
    """Rounding of a sum of terms with a given number of bits, and its cost in sensitivity.

    Parameters
    ----------
    term_bits
        A term is a vector of integers; its norm and each integer are below 2^term_bits.
    n_records
        Approximate number of records, if public; it only decides the way of rounding.

    Notes
    -----
    **Guarantee** (docs/proofs/exact_sums.md, section 3). If one of two data sets has one term more,
    the result moves by at most the term's norm times 1 + `slack`. The slack is

    - 0, if four times ``n_records`` terms are below 2^53. A larger sum is clipped to 2^53, per
      coordinate: that loses accuracy, never privacy.
    - 2^-21 otherwise: the sum is rounded once, by 2^-53 of itself, and there are at most 2^31
      records.

    Examples
    --------
    >>> from tacit.records.exact.lattice import Rounding
    >>> Rounding(33, 200_000).slack, Rounding(33).slack == 2.0**-21
    (0.0, True)
    """

    term_bits: int
    n_records: float | None = None

    @property
    def is_exact(self) -> bool:
        """Whether no sum is rounded."""
        if self.n_records is None:
            return self.term_bits <= 20  # 2^33 records
        return _MARGIN * max(self.n_records, 1.0) * 2.0**self.term_bits <= _MOST

    @property
    def slack(self) -> float:
        """Relative increase of the sensitivity by rounding."""
        return 0.0 if self.is_exact else 2.0**-52 * _MOST_RECORDS

    def joined(self, parts: tuple[Array, Array]) -> Array:
        """Return the joined parts as doubles."""
        high, low = parts
        carried = np.floor(low / _LOW)
        # Normalise the low part to [0, 2^26): it is then unique, however the sum was split.
        high, low = high + carried, low - carried * _LOW
        if not self.is_exact:
            return high * _LOW + low  # one rounding: both terms are doubles
        limit = _MOST / _LOW
        # At the limit drop the low part, which would make the sum jump.
        low = np.where((high >= -limit) & (high < limit), low, 0.0)
        return np.clip(high, -limit, limit) * _LOW + low


def exact_sum(
    records: RecordSource,
    function: Callable[[LatticeBlock], Array],
    rounding: Rounding,
    *,
    n_outputs: int = 1,
    keep: bool = True,
) -> Array:
    """Return the sum over lattice blocks of ``function``, integers of size up to 2^53.

    ``keep`` as in `sum_in_steps`.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.records import Bounds, MemoryRecords
    >>> from tacit.records.exact.lattice import Rounding, exact_sum
    >>> records = MemoryRecords(np.array([[0.5, 0.25], [0.25, 0.0]]), None, Bounds(row_norm=1.0))
    >>> exact_sum(records, lambda block: block.whole_sum(np.ones(block.n_rows)), Rounding(16))
    array([24576.,  8192.])
    """
    check_not_too_many(records, rounding)
    high, low = sum_in_steps(
        records, lambda block: split(function(block)), n_outputs=n_outputs, keep=keep
    )
    return rounding.joined((high, low))


def check_not_too_many(records: RecordSource, rounding: Rounding) -> None:
    """Raise if there are more records than the rounding slack covers."""
    if not rounding.is_exact and records.count() > _MOST_RECORDS:
        raise ValueError("there are more than 2^31 records to add up; fit on a part of them.")


# Bits of one row-coordinate x coefficient product.
TERM_BITS = ROW_BITS + COEFFICIENT_BITS


@dataclass(frozen=True)
class RowLattice:
    """Rows x with their intercept, and coefficients a (or rows of them) of norm at most ``limit``.

    Guarantee (docs/proofs/exact_sums.md, section 2): the norm of a record's term is at most
    ``limit`` R in real numbers, with R the norm of a row with its intercept.

    Examples
    --------
    >>> from tacit.records.exact.lattice import RowLattice
    >>> from tacit.records import Bounds
    >>> RowLattice(Bounds(row_norm=1.0), 1.0).units((3,)) * 2.0**33
    array([1., 1., 1.])
    """

    bounds: Bounds
    limit: float

    @property
    def step(self) -> float:
        """Step of the coefficients: a power of two, 2^-18 of the limit or a little more."""
        return math.ldexp(1.0, power_above(self.limit) - COEFFICIENT_BITS)

    def units(self, shape: tuple[int, ...]) -> Array:
        """Return the value of one integer step, on each coordinate of a sum."""
        units = np.full(shape, row_step(self.bounds.row_norm))
        if self.bounds.intercept:
            units[-1] = row_step(self.bounds.intercept)
        return units * self.step

    def whole_sum(self, block: LatticeBlock, numbers: Array) -> Array:
        """Return sum_i a_i x_i over a block, in integers."""
        whole = self.whole(numbers)
        return self.with_constant(block.whole_sum(whole), whole.sum(axis=0, keepdims=True))

    def with_constant(self, inner: Array, total: Array) -> Array:
        """Append the intercept's sum, which is the total of the coefficients."""
        if not self.bounds.intercept:
            return inner
        return np.concatenate([inner, constant_steps(self.bounds) * total])

    @property
    def most(self) -> int:
        """The greatest integer whose value is at most the limit."""
        return math.floor(self.limit / self.step)

    def whole(self, numbers: Array) -> Array:
        """Return coefficients in integer steps, each (or each row of them) within the limit.

        Examples
        --------
        >>> import numpy as np
        >>> from tacit.records.exact.lattice import RowLattice
        >>> from tacit.records import Bounds
        >>> RowLattice(Bounds(), 0.75).whole(np.array([0.25, -9.0])) / 2.0**18
        array([ 0.25, -0.75])
        """
        if numbers.ndim == 1:
            steps = numbers * (1 / self.step)  # a power of two
            return np.clip(np.rint(steps, out=steps), -self.most, self.most, out=steps)
        # Rounding towards zero makes no row longer.
        whole: Array = np.trunc(clipped_rows(numbers, self.limit) / self.step)
        return whole


def constant_steps(bounds: Bounds) -> int:
    """Return the intercept's coordinate in steps of its own, rounded down.

    Its relative error is at most 2^-14, and only sums contain it: the zero of a sum does not move.
    """
    if not bounds.intercept:
        return 0
    return math.floor(bounds.intercept / row_step(bounds.intercept))


# Bits of a number that a record adds to a total: 2^33 such numbers add up below 2^53.
_TOTAL_BITS = 20


def exact_totals(
    records: RecordSource, function: Callable[[LatticeBlock], Array], greatest: float
) -> Array:
    """Return the sum of ``function``, a number or row of numbers per record, without float error.

    Each number is clipped to [0, ``greatest``] and rounded towards zero to 20 bits, so that no
    record adds more than before.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.records.exact.lattice import exact_totals
    >>> from tacit.records import Bounds, MemoryRecords
    >>> records = MemoryRecords(np.ones((3, 1)), np.array([0.5, 1.0, 9.0]), Bounds())
    >>> float(exact_totals(records, lambda block: block.labels, 1.0))
    2.5
    """
    unit = math.ldexp(1.0, power_above(greatest) - _TOTAL_BITS)

    def whole(block: LatticeBlock) -> Array:
        check_few_rows(block.n_rows)
        held = np.clip(np.nan_to_num(function(block)), 0.0, greatest)
        return np.asarray(np.trunc(held / unit).sum(axis=0))

    return exact_sum(records, whole, Rounding(_TOTAL_BITS), keep=False) * unit


# The matrix is rounded once, and once more when it is packed with a factor of sqrt(2).
MOMENT_SLACK = 2 * Rounding(2 * ROW_BITS).slack + 2.0**-50


def exact_moment(records: RecordSource) -> Array:
    """Return the sum of a x x' for rows x with their intercept and weights a in [0, 1].

    Rows times sqrt(a) are multiples of the lattice step, so their products are exact.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.records.exact.lattice import exact_moment
    >>> from tacit.records import Bounds, MemoryRecords
    >>> records = MemoryRecords(np.array([[0.5, 0.25]]), None, Bounds(row_norm=1.0))
    >>> exact_moment(records)
    array([[0.25  , 0.125 ],
           [0.125 , 0.0625]])
    """
    bounds = records.bounds
    units = np.full(records.n_features, row_step(bounds.row_norm))
    if bounds.intercept:
        units = np.append(units, row_step(bounds.intercept))

    def whole(block: LatticeBlock) -> Array:
        vectors = _vectors(block, bounds)  # 2^20 products below 2^30 are below 2^53
        return vectors.T @ vectors

    return exact_sum(records, whole, Rounding(2 * ROW_BITS), keep=False) * np.outer(units, units)


def _vectors(block: LatticeBlock, bounds: Bounds) -> Array:
    """Return sqrt(a) x in lattice steps, with the intercept in steps of its own."""
    check_few_rows(block.n_rows)
    rows, constant = block.doubles(), np.full(block.n_rows, float(constant_steps(bounds)))
    if block.weights is not None:
        roots = np.sqrt(block.weights)
        rows = in_steps(rows * block.step, roots, bounds.row_norm).astype(np.float64)
        constant = np.trunc(constant * roots)
    return np.column_stack([rows, constant]) if bounds.intercept else rows
