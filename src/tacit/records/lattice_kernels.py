"""Products of rows in whole steps with whole numbers: compiled by numba if it is there, or BLAS.

All numbers are whole and all sums below 2^53, so that every order of additions and every way of
rounding gives the same bits; compilers may add up as they like.
"""

from __future__ import annotations

from functools import lru_cache
from types import ModuleType

# BLAS multiplies small matrices as they lie; larger ones it copies first.
_SMALL_PRODUCT = 1_000_000
# Rows of a tile for compiled loops: as many 16-bit numbers as are multiplied at once, so that one
# tile after the other is one stretch of memory.
TILE_ROWS = 32
# Fewer numbers than this are not worth what compiling costs.
_WORTH_COMPILING = 1 << 21


@lru_cache(maxsize=1)
def compiled() -> ModuleType | None:
    """Return `tacit.records.compiled_tiles`, or None without numba (the extra ``fast``)."""
    try:
        from tacit.records import compiled_tiles
    except ImportError:
        return None
    return compiled_tiles


def small_rows(d: int, n_outputs: int) -> int:
    """Return how many rows of d numbers BLAS multiplies as they lie."""
    return max(8, _SMALL_PRODUCT // max(d * n_outputs, 1) // 8 * 8)


def is_worth_compiling(n: int, d: int) -> bool:
    """Return whether sums over so many rows are large enough to compile for them."""
    return n * d >= _WORTH_COMPILING
