"""Choose how integer rows are multiplied, and compute a sigmoid with reproducible bits.

Integer rows are multiplied by loops that numba compiles, if it is installed, else by BLAS. All
numbers are integers and all sums below 2^53. So every order of additions gives the same bits, and
compilers may reorder them.

The sigmoid 1 / (1 + exp(-z)) takes additions, multiplications and one division:

    z = k log 2 + r,  |r| <= log(2) / 2,    exp(r) = (a + b) / (a - b)      (Pade, 5 by 5)
    sigmoid = 2^k (a + b) / (a - b + 2^k (a + b))

Machines agree to the last bit on these operations, but not on a library's exp. So gradients of
lattice rows are the same on every processor, and in the loops of `tacit.records.exact.compiled`,
which use the same operations in the same order.
"""

from __future__ import annotations

from functools import lru_cache
from types import ModuleType

import numpy as np
import numpy.typing as npt

# BLAS multiplies small matrices in place; it copies larger ones first.
_SMALL_PRODUCT = 1_000_000
# Rows of a tile for compiled loops: as many 16-bit numbers as are multiplied at once, so that
# consecutive tiles are contiguous in memory.
TILE_ROWS = 32
# For fewer numbers compilation takes longer than it saves.
_WORTH_COMPILING = 1 << 21


@lru_cache(maxsize=1)
def compiled() -> ModuleType | None:
    """Return `tacit.records.exact.compiled`, or None without numba (the extra ``fast``)."""
    try:
        from tacit.records.exact import compiled as compiled_tiles
    except ImportError:
        return None
    return compiled_tiles


def small_rows(d: int, n_outputs: int) -> int:
    """Return how many rows of d numbers BLAS multiplies without a copy."""
    return max(8, _SMALL_PRODUCT // max(d * n_outputs, 1) // 8 * 8)


def is_worth_compiling(n: int, d: int) -> bool:
    """Return whether sums over so many rows are worth compiling for."""
    return n * d >= _WORTH_COMPILING


Array = npt.NDArray[np.float64]

LOG2E = 1.4426950408889634
LN2 = 0.6931471805599453
# Adding this constant rounds a number of size up to 2^51 to an integer, in its lowest bits.
WHOLE = 1.5 * 2.0**52
# Beyond this score the sigmoid is 0 or 1 within 2^-57.
FARTHEST = 40.0
BIAS, MANTISSA = 1023, 52  # exponent bias and mantissa bits of a double


def sigmoid(scores: Array) -> Array:
    """Return 1 / (1 + exp(-z)) within 2^-48, for finite z.

    Guarantee: an entry depends on its own score alone, and is the same on every machine whose
    doubles are those of IEEE 754.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.records.exact.kernels import sigmoid
    >>> sigmoid(np.array([0.0, np.log(3.0), -1000.0])).round(12)
    array([0.5 , 0.75, 0.  ])
    """
    z = np.clip(scores, -FARTHEST, FARTHEST)
    shifted = z * LOG2E
    shifted += WHOLE
    z -= (shifted - WHOLE) * LN2
    square = z * z
    even = square * 30.0
    even += 3360.0
    even *= square
    even += 30240.0
    odd = square + 420.0
    odd *= square
    odd += 15120.0
    odd *= z
    power = shifted.view(np.int64)
    power += BIAS
    power <<= MANTISSA
    top = even + odd
    top *= power.view(np.float64)
    even -= odd
    even += top
    top /= even
    return top
