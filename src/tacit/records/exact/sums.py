"""Exact sums of records on a public lattice: counts, totals, rows and second moments.

A block's sum, an integer below 2^53, is split into its low 26 bits and the rest. Each part is added
separately: floats add both exactly for up to 2^26 blocks. At the end the two parts are joined. The
result is exact below 2^53 and rounded once above (docs/proofs/exact_sums.md, section 3).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tacit.records.bounds import Bounds
from tacit.records.exact.lattice import (
    COEFFICIENT_BITS,
    ROW_BITS,
    LatticeBlock,
    check_few_rows,
    in_steps,
    power_above,
    row_step,
    sum_in_steps,
)
from tacit.records.source import RecordSource
from tacit.row_clipping import clipped_rows

Array = npt.NDArray[np.float64]

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
    >>> from tacit.records.exact.sums import split
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
    >>> from tacit.records.exact.sums import Rounding
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
    >>> from tacit.records.exact.sums import Rounding, exact_sum
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
    >>> from tacit.records.exact.sums import RowLattice
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
        >>> from tacit.records.exact.sums import RowLattice
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
    >>> from tacit.records.exact.sums import exact_totals
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
    >>> from tacit.records.exact.sums import exact_moment
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
