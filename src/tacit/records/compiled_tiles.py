"""Compile loops over tiles of rows in lattice steps; imported only if numba is installed.

A tile stores the same column of many rows contiguously, so that processors handle several rows at
once. Weights and gradient coefficients are split into limbs, whose products with rows add up in 32
bits:

    weight = high 2^13 + low,   |high| <= 2^14, |low| <= 2^12   128 columns at a time
    slope  = high 2^9 + low,    |high| <= 2^9, |low| <= 2^8     1,024 rows at a time

Nothing is rounded (docs/proofs/exact_sums.md, section 3). The operations from a score to its slope
have the order of `tacit.records.sigmoid`, operation by operation.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import lru_cache
from hashlib import sha256
from inspect import getsource
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from numba import njit

from tacit.records import lattice_kernels, sigmoid, vector_products
from tacit.records.sigmoid import FARTHEST, LN2, LOG2E, WHOLE
from tacit.records.vector_products import (
    ABREAST,
    SLOPE_BITS,
    SLOPE_LIMBS,
    WEIGHT_BITS,
    WEIGHT_LIMBS,
    add_scores,
    add_sums,
    power_of_two,
)

Array = npt.NDArray[np.float64]
F = TypeVar("F", bound=Callable[..., Any])

# Columns, and rows, whose products with a limb add up below 2^31.
_COLUMNS, _ROWS = 128, 1024
# Numbers that stay in a core's cache from the scores to the sums.
_NUMBERS = 1 << 18


@lru_cache(maxsize=1)
def _made_of() -> str:
    """Return a digest of all sources that are compiled into machine code."""
    files = (sys.modules[__name__], vector_products, sigmoid, lattice_kernels)
    return sha256("".join(map(getsource, files)).encode()).hexdigest()[:16]


def _machine_code(function: F) -> F:
    """Compile a function, and cache the machine code under a digest of all its sources.

    numba itself only checks time and size of the function's file. It names the cache file after
    the function's full name, so the digest becomes part of that name.
    """
    options = {"nogil": True, "error_model": "numpy"}
    try:
        function.__qualname__ += f"_{_made_of()}"
        made: F = njit(cache=True, **options)(function)
    except (OSError, RuntimeError):  # no sources, or no writable cache: compile every time
        made = njit(**options)(function)
    return made


def weight_limbs(weights: Array) -> npt.NDArray[np.int32]:
    """Return integer weights of norm up to 2^27, (column, output), in the layout of `add_scores`.

    The shape is (group of outputs, pair of columns, output, limb), two 16-bit numbers per entry.
    Incomplete pairs and groups are filled with 0.
    """
    d, n_outputs = weights.shape
    together = min(n_outputs, 2)
    groups, pairs = -(-n_outputs // together), -(-d // 2)
    limbs = np.zeros((WEIGHT_LIMBS, 2 * pairs, groups * together))
    high = np.floor(weights / 2.0**WEIGHT_BITS + 0.5)
    limbs[:, :d, :n_outputs] = weights - high * 2.0**WEIGHT_BITS, high
    parts = limbs.reshape(WEIGHT_LIMBS, pairs, 2, groups, together).transpose(3, 1, 4, 0, 2)
    return parts.astype(np.int16, order="C").view(np.int32)[..., 0]


@_machine_code
def put(tiles: Any, start: int, rows: Any) -> None:
    """Write rows from position ``start`` on."""
    size = tiles.shape[2]
    for i in range(rows.shape[0]):
        tile, at = tiles[(start + i) // size], (start + i) % size
        for j in range(rows.shape[1]):
            tile[j, at] = rows[i, j]


@_machine_code
def _tiles_scores(tiles: Any, limbs: Any, out: Array) -> None:
    """Set out[tile, output, row] to the rows' integer scores."""
    n, d, size = tiles.shape
    out[:] = 0.0
    n_pairs, together = limbs.shape[1], limbs.shape[2]
    rows, at, to = tiles.ctypes.data, limbs.ctypes.data, out.ctypes.data
    for t in range(n):
        for group in range(limbs.shape[0]):
            there = to + 8 * (t * out.shape[1] + group * together) * size
            for j in range(0, d, _COLUMNS):
                some = at + 4 * (group * n_pairs + j // 2) * together * WEIGHT_LIMBS
                first, left = rows + 2 * (t * d + j) * size, min(_COLUMNS, d - j)
                if together == 1:
                    add_scores(1, (first, left, some, there))
                else:
                    add_scores(2, (first, left, some, there))


@_machine_code
def _tiles_sums(tiles: Any, limbs: Any, out: Any) -> None:
    """Add the sums of rows, each times its slopes, to out[column, output]."""
    n, d, size = tiles.shape
    n_outputs, far = limbs.shape[0], limbs.shape[2]
    rows, at, to = tiles.ctypes.data, limbs.ctypes.data, out.ctypes.data
    for j in range(0, d, ABREAST):
        first, left = rows + 2 * j * size, d - j
        for k in range(0, n_outputs, 2):
            some, there = at + 2 * k * SLOPE_LIMBS * far, to + 8 * (j * n_outputs + k)
            if n_outputs == 1:
                add_sums(1, (first, left, d * size, some, far, n, there, n_outputs))
            else:
                add_sums(2, (first, left, d * size, some, far, n, there, n_outputs))


@_machine_code
def _put_limbs(number: float, limbs: Any, i: int) -> Any:
    """Split an integer of up to 18 bits into limbs, and return it."""
    whole = np.int32(number)
    high = (whole + (1 << (SLOPE_BITS - 1))) >> SLOPE_BITS
    limbs[0, i] = whole - (high << SLOPE_BITS)
    limbs[1, i] = high
    return whole


@_machine_code
def _add_up(sums: Any, out: Array) -> None:
    for j in range(out.shape[0]):
        for k in range(out.shape[1]):
            out[j, k] += sums[j, k]


@_machine_code
def along(tiles: Any, limbs: Any, out: Array) -> None:
    """Set out[i, k] to the product of row i with the integer weights of output k."""
    size, most = tiles.shape[2], _ROWS // tiles.shape[2]
    held = np.empty((most, limbs.shape[0] * limbs.shape[2], size))
    for t in range(0, tiles.shape[0], most):
        some = out[t * size : t * size + _ROWS]
        _tiles_scores(tiles[t : t + most], limbs, held)
        for i in range(some.shape[0]):
            for k in range(some.shape[1]):
                some[i, k] = held[i // size, k, i % size]


@_machine_code
def down(tiles: Any, numbers: Array, out: Array) -> None:
    """Add the sums of every row times its integers to out[column, output]."""
    n_outputs, d, most = numbers.shape[1], tiles.shape[1], _ROWS // tiles.shape[2]
    padded = n_outputs if n_outputs == 1 else n_outputs + n_outputs % 2
    sums = np.zeros((d + ABREAST, padded), dtype=np.int64)
    limbs = np.zeros((padded, SLOPE_LIMBS, _ROWS), dtype=np.int16)
    for t in range(0, tiles.shape[0], most):
        some = numbers[t * tiles.shape[2] : t * tiles.shape[2] + _ROWS]
        limbs[:] = 0
        for k in range(n_outputs):
            for i in range(some.shape[0]):
                _put_limbs(some[i, k], limbs[k], i)
        _tiles_sums(tiles[t : t + most], limbs, sums)
    _add_up(sums, out)


@_machine_code
def _put_slopes(
    scores: Array,
    labels: Array,
    unit: float,
    constant: float,
    scale: float,
    most: float,
    limbs: Any,
) -> int:
    """Split clip(rint((sigmoid - (label > 0)) scale)) of integer scores; return their sum."""
    total = 0
    for i in range(scores.shape[0]):
        z = min(max(scores[i] * unit + constant, -FARTHEST), FARTHEST)
        shifted = z * LOG2E + WHOLE
        r = z - (shifted - WHOLE) * LN2
        square = r * r
        even = (square * 30.0 + 3360.0) * square + 30240.0
        odd = ((square + 420.0) * square + 15120.0) * r
        top = (even + odd) * power_of_two(shifted)
        share = top / ((even - odd) + top)
        steps = (share - (1.0 if labels[i] > 0.0 else 0.0)) * scale
        # Clip first: adding and subtracting WHOLE rounds a number below 2^51 to the nearest
        # integer.
        steps = min(max(steps, -most), most)
        total += _put_limbs((steps + WHOLE) - WHOLE, limbs, i)
    limbs[:, scores.shape[0] :] = 0
    return total


@_machine_code
def logistic_sum(
    tiles: Any,
    labels: Array,
    weights: Any,
    unit: float,
    constant: float,
    scale: float,
    most: float,
    out: Array,
) -> float:
    """Add the sum of every row times its integer slope to ``out``, and return the sum of slopes.

    A score is unit (row . weights) + constant, with the weights in limbs of one output; its slope
    in steps is that of `_put_slopes`.
    """
    _, d, size = tiles.shape
    n_tiles = max(1, min(_ROWS, _NUMBERS // d) // size)
    scores = np.empty((n_tiles, 1, size))
    limbs = np.empty((1, SLOPE_LIMBS, n_tiles * size), dtype=np.int16)
    sums = np.zeros((d + ABREAST, 1), dtype=np.int64)
    total = 0
    for t in range(0, tiles.shape[0], n_tiles):
        some, group = labels[t * size : (t + n_tiles) * size], tiles[t : t + n_tiles]
        _tiles_scores(group, weights, scores)
        held = scores.reshape(-1)[: some.shape[0]]
        total += _put_slopes(held, some, unit, constant, scale, most, limbs[0])
        _tiles_sums(group, limbs, sums)
    _add_up(sums, out.reshape(-1, 1))
    return float(total)
