"""Scale rows down to a norm: the only rule that enforces a bound on records.

    limit  = bound (1 - max(1e-9, (d + 8) 2^-51))       d columns
    factor = min(1, limit / ||row||), or 0 if that is 2^-300 or less

Some rows count as zeros: a row that is not finite, whose norm is no double, or that is 2^300 times
too long. Its products would overflow, and an error would reveal something about the record.

**Guarantee**

1. ||factor row|| <= bound in real numbers, for exact and for rounded products, for every bound
from `LEAST_BOUND` on. Proof, with u = 2^-53: a norm is computed with a relative error of
(d + 6) u (d additions in any order, a root, and, if squares leave the range of doubles, a
division before and a multiplication after), the quotient and the product with u each. So the row
is at most limit (1 + (d + 9) u), and limit is below bound by four times that. Products that
underflow add 2^-1075 per coordinate, which is negligible beside 1e-9 bound.
2. A row of norm at most limit is not changed, and one within 2^300 times the bound keeps its
direction.
3. A row's factor depends on that row and the bound alone: not on its position, the rows around it
or the memory layout.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tacit.arrays import Array

MARGIN = 1e-9
LEAST_FACTOR = 2.0**-300
LEAST_BOUND = 2.0**-900
# Between these norms no square overflows, and squares that underflow are negligible.
_SMALL, _LARGE = 1e-140, 1e140


def row_norms(rows: npt.NDArray[np.floating]) -> Array:
    """Return the Euclidean norm of every row; infinite or NaN if it has none.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.row_clipping import row_norms
    >>> row_norms(np.array([[3.0, 4.0], [3e200, 4e200]]))
    array([5.e+000, 5.e+200])
    """
    # Copy unless every row is contiguous doubles: another layout means another order of additions.
    # In this layout each row is summed by itself, in the same order at any position.
    block = np.require(rows, np.float64, ["C", "A"])
    with np.errstate(over="ignore", invalid="ignore"):
        norms = _lengths(block)
        odd = ~((norms > _SMALL) & (norms < _LARGE))
        if odd.any():  # squares overflow or underflow: scale those rows first
            largest = np.abs(block[odd]).max(axis=1, initial=0.0)
            scaled = block[odd] / np.where(largest > 0.0, largest, 1.0)[:, None]
            norms[odd] = largest * _lengths(scaled)
    return norms


def _lengths(block: Array) -> Array:
    if len(block) == 1:  # NumPy would sum a single row of more than 8,192 numbers in pieces
        return _lengths(np.repeat(block, 2, axis=0))[:1]
    lengths: Array = np.sqrt(np.einsum("ij,ij->i", block, block))
    return lengths


def clip_factors(norms: Array, bound: float, n_columns: int) -> Array:
    """Return the factor, at most 1, by which each row is scaled to a bound on its norm.

    ``norms`` may be of any kind, computed with a relative error of (n_columns + 6) 2^-53.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.row_clipping import clip_factors
    >>> clip_factors(np.array([0.5, 2.0, 1e200, np.nan]), 1.0, 3).round(6)
    array([1. , 0.5, 0. , 0. ])
    """
    if not bound >= LEAST_BOUND:
        raise ValueError(f"a bound on rows must be at least 2^-900, got {bound!r}; change units.")
    limit = bound * (1.0 - max(MARGIN, (n_columns + 8) * 2.0**-51))
    factors: Array = limit / np.maximum(norms, limit)  # NaN if the norm is NaN
    factors[~(factors > LEAST_FACTOR)] = 0.0
    return factors


def clipped_rows(rows: npt.NDArray[np.floating], bound: float) -> Array:
    """Return the rows, each scaled down to Euclidean norm ``bound`` if it is longer.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.row_clipping import clipped_rows
    >>> clipped_rows(np.array([[3.0, 4.0], [0.1, 0.0], [np.inf, 0.0]]), 1.0).round(6)
    array([[0.6, 0.8],
           [0.1, 0. ],
           [0. , 0. ]])
    """
    factors = clip_factors(row_norms(rows), bound, rows.shape[1])
    with np.errstate(invalid="ignore"):
        clipped: Array = np.multiply(rows, factors[:, None], dtype=np.float64)
    clipped[factors == 0.0] = 0.0  # infinity times 0 would be NaN
    return clipped
