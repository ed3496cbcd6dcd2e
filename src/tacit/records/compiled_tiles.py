"""Loops over tiles of rows in whole steps, in machine code; imported only where there is numba.

A tile holds the same column of many rows side by side, so that processors take several rows at
once. Sums are of whole numbers below 2^53 and may be added in any order; what makes a slope of a
score is done in the order it is written, operation by operation as `tacit.records.sigmoid` has it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from numba import njit

from tacit.records.sigmoid import BIAS, FARTHEST, LN2, LOG2E, MANTISSA, WHOLE

Array = npt.NDArray[np.float64]
F = TypeVar("F", bound=Callable[..., Any])

# Sums of whole numbers below 2^53 do not depend on their order: it may be chosen.
_ANY_ORDER = frozenset({"reassoc", "contract"})


def _machine_code(*, fastmath: frozenset[str] = frozenset()) -> Callable[[F], F]:
    def decorate(function: F) -> F:
        options = {"nogil": True, "error_model": "numpy", "fastmath": set(fastmath)}
        try:
            made: F = njit(cache=True, **options)(function)
        except RuntimeError:  # nowhere to keep machine code: made anew in every process
            made = njit(**options)(function)
        return made

    return decorate


@_machine_code(fastmath=_ANY_ORDER)
def _add_four(
    a: Any, b: Any, c: Any, e: Any, wa: float, wb: float, wc: float, we: float, out: Array
) -> None:
    for i in range(out.shape[0]):
        out[i] += (a[i] * wa + b[i] * wb) + (c[i] * wc + e[i] * we)


@_machine_code(fastmath=_ANY_ORDER)
def _add_one(column: Any, weight: float, out: Array) -> None:
    for i in range(out.shape[0]):
        out[i] += column[i] * weight


@_machine_code(fastmath=_ANY_ORDER)
def _four_products(
    a: Any, b: Any, c: Any, e: Any, numbers: Array
) -> tuple[float, float, float, float]:
    ta = tb = tc = te = 0.0
    for i in range(numbers.shape[0]):
        x = numbers[i]
        ta += a[i] * x
        tb += b[i] * x
        tc += c[i] * x
        te += e[i] * x
    return ta, tb, tc, te


@_machine_code(fastmath=_ANY_ORDER)
def _product(column: Any, numbers: Array) -> float:
    total = 0.0
    for i in range(numbers.shape[0]):
        total += column[i] * numbers[i]
    return total


@_machine_code()
def _tile_along(tile: Any, weights: Array, out: Array) -> None:
    d, m = tile.shape[0], out.shape[0]
    out[:] = 0.0
    for j in range(0, d - d % 4, 4):
        a, b, c, e = tile[j, :m], tile[j + 1, :m], tile[j + 2, :m], tile[j + 3, :m]
        _add_four(a, b, c, e, weights[j], weights[j + 1], weights[j + 2], weights[j + 3], out)
    for j in range(d - d % 4, d):
        _add_one(tile[j, :m], weights[j], out)


@_machine_code()
def _tile_down(tile: Any, numbers: Array, out: Array) -> None:
    d, m = tile.shape[0], numbers.shape[0]
    for j in range(0, d - d % 4, 4):
        a, b, c, e = tile[j, :m], tile[j + 1, :m], tile[j + 2, :m], tile[j + 3, :m]
        ta, tb, tc, te = _four_products(a, b, c, e, numbers)
        out[j] += ta
        out[j + 1] += tb
        out[j + 2] += tc
        out[j + 3] += te
    for j in range(d - d % 4, d):
        out[j] += _product(tile[j, :m], numbers)


@_machine_code()
def along(tiles: Any, weights: Array, out: Array) -> None:
    """Set out[i] to the sum of row i times the weights."""
    size = tiles.shape[2]
    for t in range(tiles.shape[0]):
        _tile_along(tiles[t], weights, out[t * size : (t + 1) * size])


@_machine_code()
def down(tiles: Any, numbers: Array, out: Array) -> None:
    """Add the sum of every row times its number to ``out``."""
    size = tiles.shape[2]
    for t in range(tiles.shape[0]):
        _tile_down(tiles[t], numbers[t * size : (t + 1) * size], out)


@_machine_code()
def _slopes(
    scores: Array, labels: Array, bits: Any, under: Array, scale: float, most: float
) -> None:
    """Replace scores by clip(rint((sigmoid - (label > 0)) scale)): whole numbers."""
    floats = bits.view(np.float64)
    for i in range(scores.shape[0]):
        z = min(max(scores[i], -FARTHEST), FARTHEST)
        shifted = z * LOG2E + WHOLE
        r = z - (shifted - WHOLE) * LN2
        square = r * r
        even = (square * 30.0 + 3360.0) * square + 30240.0
        odd = ((square + 420.0) * square + 15120.0) * r
        floats[i] = shifted
        scores[i] = even + odd
        under[i] = even - odd
    for i in range(scores.shape[0]):
        bits[i] = (bits[i] + BIAS) << MANTISSA
    for i in range(scores.shape[0]):
        top = scores[i] * floats[i]
        share = top / (under[i] + top)
        steps = (share - (1.0 if labels[i] > 0.0 else 0.0)) * scale
        # held first: a number below 2^51 plus this one and minus it is the nearest whole one
        steps = min(max(steps, -most), most)
        scores[i] = (steps + WHOLE) - WHOLE


@_machine_code()
def logistic_sum(
    tiles: Any,
    labels: Array,
    weights: Array,
    step: float,
    constant: float,
    scale: float,
    most: float,
    out: Array,
) -> float:
    """Add the sum of every row times its whole slope to ``out``, and return that of the slopes.

    A score is step (row . weights) + constant; its slope in steps is that of `_slopes`.
    """
    size = tiles.shape[2]
    scores, under = np.empty(size), np.empty(size)
    bits = np.empty(size, dtype=np.int64)
    total = 0.0
    for t in range(tiles.shape[0]):
        some = labels[t * size : (t + 1) * size]
        m = some.shape[0]
        held = scores[:m]
        _tile_along(tiles[t], weights, held)
        for i in range(m):
            held[i] = held[i] * step + constant
        _slopes(held, some, bits[:m], under[:m], scale, most)
        _tile_down(tiles[t], held, out)
        for i in range(m):
            total += held[i]
    return total
