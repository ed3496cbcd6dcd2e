"""Sum counts, totals and second moments of records exactly (docs/proofs/exact_sums.md)."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from tacit.records.bounds import Bounds
from tacit.records.exact_rows import constant_steps
from tacit.records.exact_sums import Rounding, exact_sum
from tacit.records.lattice_block import LatticeBlock, check_few_rows
from tacit.records.lattice_rows import ROW_BITS, in_steps, power_above, row_step
from tacit.records.source import RecordSource

Array = npt.NDArray[np.float64]

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
    >>> from tacit.records.exact_moments import exact_totals
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
    >>> from tacit.records.exact_moments import exact_moment
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
