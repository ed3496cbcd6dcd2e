"""Products of rows in whole steps with whole numbers: compiled by numba if it is there, or BLAS.

All numbers are whole and all sums below 2^53, so that every order of additions and every way of
rounding gives the same bits; compilers may add up as they like.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

# BLAS multiplies small matrices as they lie; larger ones it copies first.
_SMALL_PRODUCT = 1_000_000
# Fewer numbers than this are not worth what compiling costs.
_WORTH_COMPILING = 1 << 21


class Kernels(NamedTuple):
    """What adds up along rows, and down columns."""

    along: Callable[[Any, Array, Array], None]
    down: Callable[[Any, Array, Array], None]


@lru_cache(maxsize=1)
def compiled() -> Kernels | None:
    """Return compiled kernels, or None without numba (the extra ``fast``)."""
    try:
        from numba import njit
    except ImportError:
        return None
    # Sums of whole numbers below 2^53 do not depend on their order: it may be chosen.
    options = {"nogil": True, "fastmath": {"reassoc", "contract"}}
    try:
        return Kernels(njit(cache=True, **options)(_along), njit(cache=True, **options)(_down))
    except RuntimeError:  # nowhere to keep machine code: made anew in every process
        return Kernels(njit(**options)(_along), njit(**options)(_down))


def _along(rows: Any, weights: Array, out: Array) -> None:
    """Set out[i] to sum_j rows[i, j] weights[j]."""
    for i in range(rows.shape[0]):
        total = 0.0
        for j in range(rows.shape[1]):
            total += rows[i, j] * weights[j]
        out[i] = total


def _down(rows: Any, coefficients: Array, out: Array) -> None:
    """Add sum_i coefficients[i] rows[i, j] to out[j]; four rows at once, for fewer stores."""
    n, d = rows.shape
    for i in range(0, n - n % 4, 4):
        a, b = coefficients[i], coefficients[i + 1]
        c, e = coefficients[i + 2], coefficients[i + 3]
        for j in range(d):
            first = rows[i, j] * a + rows[i + 1, j] * b
            out[j] += first + (rows[i + 2, j] * c + rows[i + 3, j] * e)
    for i in range(n - n % 4, n):
        for j in range(d):
            out[j] += rows[i, j] * coefficients[i]


def small_rows(d: int, n_outputs: int) -> int:
    """Return how many rows of d numbers BLAS multiplies as they lie."""
    return max(8, _SMALL_PRODUCT // max(d * n_outputs, 1) // 8 * 8)


def is_worth_compiling(n: int, d: int) -> bool:
    """Return whether sums over so many rows are large enough to compile for them."""
    return n * d >= _WORTH_COMPILING
