"""Loops over tiles of lattice rows in machine code; imported only where there is numba.

Processors multiply pairs of 16-bit numbers and add the two products in 32 bits in one instruction,
for many pairs at once. Compilers do not find that instruction if the numbers are not adjacent. So
it is written out here, in LLVM IR and not for one processor. Arguments are addresses; distances are
counted in numbers. Plain numba loops over the same tiles give the same bits, but took 2 times as
long for scores and 6 times as long for sums. A noisy-gradient fit of 400,000 rows of 100 float32
columns took 9.5 s instead of 2.5 s (one thread, median of 5 fits in one run, AMD EPYC); fits by
objective perturbation, with few passes, took 1.0 to 1.1 times as long.

A tile stores the same column of many rows contiguously, so that processors handle several rows at
once. Weights and gradient coefficients are split into limbs, whose products with rows add up in 32
bits:

    weight = high 2^13 + low,   |high| <= 2^14, |low| <= 2^12   128 columns at a time
    slope  = high 2^9 + low,    |high| <= 2^9, |low| <= 2^8     1,024 rows at a time

Nothing is rounded (docs/proofs/exact_sums.md, section 3). The operations from a score to its slope
have the order of `tacit.records.exact.kernels.sigmoid`, operation by operation.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import lru_cache
from hashlib import sha256
from inspect import getsource
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

from tacit.records.exact import kernels
from tacit.records.exact.kernels import BIAS, FARTHEST, LN2, LOG2E, MANTISSA, TILE_ROWS, WHOLE

LANES = TILE_ROWS
# Number of limbs of a weight and bits of each; the same for a slope.
WEIGHT_LIMBS, WEIGHT_BITS = 2, 13
SLOPE_LIMBS, SLOPE_BITS = 2, 9
# Columns that are summed at once.
ABREAST = 4

_SHORT, _INT, _LONG, _DOUBLE = ir.IntType(16), ir.IntType(32), ir.IntType(64), ir.DoubleType()
_SHORTS, _PAIRS = ir.VectorType(_SHORT, LANES), ir.VectorType(_INT, LANES // 2)
_DOUBLES, _LONGS = ir.VectorType(_DOUBLE, LANES), ir.VectorType(_LONG, LANES // 2)

# Interleave four and four numbers of two vectors, which processors do in one instruction; and the
# resulting position of each row.
_HALVES = [
    [at for q in range(0, LANES, 8) for i in range(q + h, q + h + 4) for at in (i, i + LANES)]
    for h in (0, 4)
]
_BACK = [i // 8 * 4 + i % 4 + i % 8 // 4 * (LANES // 2) for i in range(LANES)]


@intrinsic(prefer_literal=True)  # type: ignore[untyped-decorator]
def add_scores(_: Any, n_outputs: Any, where: Any) -> Any:
    """Add the products of 32 rows with the weights of 1 or 2 outputs to ``out``, doubles.

        add_scores(n_outputs, (rows, n_columns, limbs, out))

    ``limbs`` are pairs of 16-bit numbers, (pair of columns, output, limb from the lowest). A last
    column without a partner is multiplied by both numbers of its pair, so the second must be 0.
    """
    n = n_outputs.literal_value

    def code(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        rows, n_columns, limbs, out = _each(builder, arguments[1])

        def terms(pair: Any) -> list[Any]:
            first = builder.mul(pair, _LONG(2))
            columns = (first, _within(builder, builder.add(first, _LONG(1)), n_columns))
            left, right = (
                _loaded(builder, rows, builder.mul(at, _LONG(LANES)), _SHORTS) for at in columns
            )
            halves = [_picked(builder, left, right, half) for half in _HALVES]
            start = builder.mul(pair, _LONG(n * WEIGHT_LIMBS))
            at = [builder.add(start, _LONG(k)) for k in range(n * WEIGHT_LIMBS)]
            both = [_everywhere(builder, _loaded(builder, limbs, each, _INT)) for each in at]
            return [_products(builder, half, limb) for limb in both for half in halves]

        pairs = builder.ashr(builder.add(n_columns, _LONG(1)), _LONG(1))
        sums = _summed(builder, pairs, 2 * n * WEIGHT_LIMBS, terms)
        for output in range(n):
            start = 2 * output * WEIGHT_LIMBS
            total = _in_doubles(builder, sums[start : start + 2 * WEIGHT_LIMBS])
            place = builder.add(out, _LONG(8 * LANES * output))
            to = builder.inttoptr(place, _DOUBLES.as_pointer())
            builder.store(builder.fadd(builder.load(to, align=8), total), to, align=8)
        return _LONG(0)

    return types.intp(n_outputs, where), code


@intrinsic(prefer_literal=True)  # type: ignore[untyped-decorator]
def add_sums(_: Any, n_outputs: Any, where: Any) -> Any:
    """Add the sums over 32 n rows of their first columns, each times its slopes, to ``out``.

        add_sums(n_outputs, (rows, n_columns, tile, limbs, far, n, out, n_out))

    The first four columns are used; if there are fewer, the last one is repeated. There are 1 or 2
    outputs. Results are 64-bit numbers, ``n_out`` per column. Tiles are ``tile`` numbers apart,
    limbs, (output, limb from the lowest), ``far`` numbers.
    """
    n_limbs = n_outputs.literal_value * SLOPE_LIMBS

    def code(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        rows, n_columns, tile, limbs, far, n, out, n_out = _each(builder, arguments[1])
        columns = [
            builder.mul(_within(builder, _LONG(c), n_columns), _LONG(LANES)) for c in range(ABREAST)
        ]

        def terms(index: Any) -> list[Any]:
            start, at = builder.mul(index, tile), builder.mul(index, _LONG(LANES))
            places = [builder.add(at, builder.mul(far, _LONG(k))) for k in range(n_limbs)]
            held = [_loaded(builder, limbs, place, _SHORTS) for place in places]
            found = [_loaded(builder, rows, builder.add(start, c), _SHORTS) for c in columns]
            return [_products(builder, column, limb) for column in found for limb in held]

        sums = _summed(builder, n, ABREAST * n_limbs, terms)
        for k in range(0, len(sums), SLOPE_LIMBS):
            column, output = divmod(k // SLOPE_LIMBS, n_outputs.literal_value)
            place = builder.add(builder.mul(n_out, _LONG(column)), _LONG(output))
            to = builder.gep(builder.inttoptr(out, _LONG.as_pointer()), [place])
            total = _in_long(builder, sums[k : k + SLOPE_LIMBS])
            builder.store(builder.add(builder.load(to), total), to)
        return _LONG(0)

    return types.intp(n_outputs, where), code


@intrinsic  # type: ignore[untyped-decorator]
def power_of_two(_: Any, shifted: Any) -> Any:
    """Return 2^k for the number k + 1.5 2^52, whose lowest bits are k."""

    def code(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        exponent = builder.add(builder.bitcast(arguments[0], _LONG), _LONG(BIAS))
        return builder.bitcast(builder.shl(exponent, _LONG(MANTISSA)), _DOUBLE)

    return types.float64(shifted), code


def _each(builder: Any, several: Any) -> list[Any]:
    return [builder.extract_value(several, i) for i in range(several.type.count)]


def _summed(
    builder: Any, count: Any, n_sums: int, terms: Callable[[Any], Sequence[Any]]
) -> list[Any]:
    """Return the sums of terms(i) for 0 <= i < ``count``, which is at least 1."""
    before = builder.block
    loop, after = builder.append_basic_block(), builder.append_basic_block()
    builder.branch(loop)
    builder.position_at_end(loop)
    index, held = builder.phi(_LONG), [builder.phi(_PAIRS) for _ in range(n_sums)]
    sums = [builder.add(*each) for each in zip(held, terms(index), strict=True)]
    next_index = builder.add(index, _LONG(1))
    zeros = ir.Constant(_PAIRS, [0] * _PAIRS.count)
    starts, ends = [_LONG(0), *[zeros] * n_sums], [next_index, *sums]
    for phi, start, end in zip([index, *held], starts, ends, strict=True):
        phi.add_incoming(start, before)
        phi.add_incoming(end, loop)
    builder.cbranch(builder.icmp_signed("<", next_index, count), loop, after)
    builder.position_at_end(after)
    return sums


def _products(builder: Any, first: Any, second: Any) -> Any:
    """Return first[2i] second[2i] + first[2i + 1] second[2i + 1] in 32 bits."""
    wide = ir.VectorType(_INT, LANES)
    terms = builder.mul(builder.sext(first, wide), builder.sext(second, wide))
    even, odd = (_picked(builder, terms, terms, range(start, LANES, 2)) for start in (0, 1))
    return builder.add(even, odd)


def _in_doubles(builder: Any, sums: Sequence[Any]) -> Any:
    """Return the sums of limbs, two halves each, as one double per row."""
    radix = ir.Constant(_DOUBLES, [2.0**WEIGHT_BITS] * LANES)
    parts = [
        builder.sitofp(_picked(builder, sums[k], sums[k + 1], _BACK), _DOUBLES)
        for k in range(0, len(sums), 2)
    ]
    total = parts.pop()
    while parts:
        total = builder.fadd(builder.fmul(total, radix), parts.pop())
    return total


def _in_long(builder: Any, sums: Sequence[Any]) -> Any:
    """Return the sums of limbs, sixteen parts each, as one integer."""
    low, high = (builder.sext(each, _LONGS) for each in sums)
    total = builder.add(low, builder.shl(high, ir.Constant(_LONGS, [SLOPE_BITS] * _LONGS.count)))
    n = _LONGS.count
    while n > 1:
        n //= 2
        upper = _picked(builder, total, total, range(n, 2 * n))
        total = builder.add(_picked(builder, total, total, range(n)), upper)
    return builder.extract_element(total, _INT(0))


def _picked(builder: Any, first: Any, second: Any, places: Sequence[int]) -> Any:
    mask = ir.Constant(ir.VectorType(_INT, len(places)), list(places))
    return builder.shuffle_vector(first, second, mask)


def _everywhere(builder: Any, pair: Any) -> Any:
    """Repeat a pair of 16-bit numbers over a vector."""
    one = builder.insert_element(ir.Constant(_PAIRS, ir.Undefined), pair, _INT(0))
    return builder.bitcast(_picked(builder, one, one, [0] * _PAIRS.count), _SHORTS)


def _loaded(builder: Any, address: Any, offset: Any, kind: Any) -> Any:
    """Load the value ``offset`` numbers beyond an address."""
    number = getattr(kind, "element", kind)
    at = builder.gep(builder.inttoptr(address, number.as_pointer()), [offset])
    return builder.load(builder.bitcast(at, kind.as_pointer()), align=number.width // 8)


def _within(builder: Any, index: Any, count: Any) -> Any:
    """Return the index, or the last one below ``count``."""
    last = builder.sub(count, _LONG(1))
    return builder.select(builder.icmp_signed("<", index, last), index, last)


Array = npt.NDArray[np.float64]
F = TypeVar("F", bound=Callable[..., Any])

# Columns, and rows, whose products with a limb add up below 2^31.
_COLUMNS, _ROWS = 128, 1024
# Numbers that stay in a core's cache from the scores to the sums.
_NUMBERS = 1 << 18


@lru_cache(maxsize=1)
def _made_of() -> str:
    """Return a digest of all sources that are compiled into machine code."""
    files = (sys.modules[__name__], kernels)
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
            target = to + 8 * (t * out.shape[1] + group * together) * size
            for j in range(0, d, _COLUMNS):
                some = at + 4 * (group * n_pairs + j // 2) * together * WEIGHT_LIMBS
                first, left = rows + 2 * (t * d + j) * size, min(_COLUMNS, d - j)
                if together == 1:
                    add_scores(1, (first, left, some, target))
                else:
                    add_scores(2, (first, left, some, target))


@_machine_code
def _tiles_sums(tiles: Any, limbs: Any, out: Any) -> None:
    """Add the sums of rows, each times its slopes, to out[column, output]."""
    n, d, size = tiles.shape
    n_outputs, far = limbs.shape[0], limbs.shape[2]
    rows, at, to = tiles.ctypes.data, limbs.ctypes.data, out.ctypes.data
    for j in range(0, d, ABREAST):
        first, left = rows + 2 * j * size, d - j
        for k in range(0, n_outputs, 2):
            some, target = at + 2 * k * SLOPE_LIMBS * far, to + 8 * (j * n_outputs + k)
            if n_outputs == 1:
                add_sums(1, (first, left, d * size, some, far, n, target, n_outputs))
            else:
                add_sums(2, (first, left, d * size, some, far, n, target, n_outputs))


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
