"""Choose how integer rows are multiplied: loops compiled by numba if installed, else BLAS.

All numbers are integers and all sums below 2^53. So every order of additions gives the same bits,
and compilers may reorder them.
"""

from __future__ import annotations

from functools import lru_cache
from types import ModuleType

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
