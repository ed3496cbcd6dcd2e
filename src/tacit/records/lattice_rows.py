"""Round rows to integer steps of a public lattice, so that floats add and multiply them exactly.

    step = 2^(ceil(log2(row_norm)) - 15)        integers below 2^15 in size, two bytes each

A clipped row is rounded to the nearest multiples of the step. If that would exceed its norm, it is
rounded towards zero. The result depends on the row itself and its bound only
(docs/proofs/exact_sums.md, section 2).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Whole = npt.NDArray[np.int16]

ROW_BITS = 15
_GREATEST = 2**ROW_BITS - 1
# Numbers processed at once; they stay in the cache.
_AT_ONCE = 1 << 16


def power_above(value: float) -> int:
    """Return the least e with ``value`` <= 2^e.

    Examples
    --------
    >>> from tacit.records.lattice_rows import power_above
    >>> power_above(4.0), power_above(4.1)
    (2, 3)
    """
    mantissa, exponent = math.frexp(value)
    return exponent - 1 if mantissa == 0.5 else exponent


def row_step(row_norm: float) -> float:
    """Return the step of rows of norm at most ``row_norm``: a power of two.

    Examples
    --------
    >>> from tacit.records.lattice_rows import row_step
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
    >>> from tacit.records.lattice_rows import in_steps
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
