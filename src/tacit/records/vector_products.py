"""Multiply 16-bit integers in compiled loops, 32 at a time; imported only if numba is installed.

Processors multiply pairs of 16-bit numbers and add the two products in 32 bits in one instruction,
for many pairs at once. Compilers do not find that instruction if the numbers are not adjacent. So
it is written out here, in LLVM IR and not for one processor. Arguments are addresses; distances are
counted in numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from tacit.records.lattice_kernels import TILE_ROWS
from tacit.records.sigmoid import BIAS, MANTISSA

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
    following = builder.add(index, _LONG(1))
    zeros = ir.Constant(_PAIRS, [0] * _PAIRS.count)
    starts, ends = [_LONG(0), *[zeros] * n_sums], [following, *sums]
    for phi, start, end in zip([index, *held], starts, ends, strict=True):
        phi.add_incoming(start, before)
        phi.add_incoming(end, loop)
    builder.cbranch(builder.icmp_signed("<", following, count), loop, after)
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
