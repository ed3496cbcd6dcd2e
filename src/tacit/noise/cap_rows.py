"""Draw rows of directions with a cap's law about e1 before their values are known."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from tacit.noise.additive_rows import blocks, check_shape, forget_unknown
from tacit.noise.cap import Cap
from tacit.noise.exact import GUARD_BITS, Arithmetic, LazyUniform, ends, nearest_integer
from tacit.noise.generator import Source, Words
from tacit.noise.normals import UNIT, LazyNormals, NormalWords
from tacit.noise.prepared_noise import (
    CHUNK,
    Kernel,
    Steps,
    reflect_row,
    turned_rows,
    turning_margin,
)
from tacit.noise.sphere_coordinate import Latitude

Array = npt.NDArray[np.float64]

# Tails below 2^-30 of the cap or of its complement are decided in exact arithmetic.
_TABLE_OCTAVES = 30
# First-order error bounds are multiplied by this factor, which covers second-order terms.
_SECOND_ORDER = 1.01


@dataclass(frozen=True, eq=False)
class CapRows:
    """Rows of directions with the law of a cap about e1; see `prepare_cap`."""

    kernel: ClassVar[Kernel] = staticmethod(reflect_row)

    cap: Cap
    floats: Array
    coins: Array
    margins: Array
    words: CapWords
    source: Source

    @property
    def scale(self) -> float:
        """Steps per unit of length."""
        return 1.0 / self.cap.spacing

    def exactly(self, i: int, value: Array, norm: float) -> Steps:
        """Return round(V / spacing) in exact arithmetic."""
        steps, left = self._float_steps(i, value, norm)
        row = self.words.row(self.cap, i)
        while left:
            decided = row.decide(value, norm, left)
            steps[list(decided)] = list(decided.values())
            left = [j for j in left if j not in decided]
            row = row.refined(self.source) if left else row
        return steps

    def _float_steps(self, i: int, value: Array, norm: float) -> tuple[Steps, list[int]]:
        """Return the steps by floats, and the coordinates that floats do not decide."""
        one = slice(i, i + 1)
        position, sure = turned_rows(
            value[None], self.floats[one], self.coins[one], self.scale, norm
        )
        nearest = np.rint(position[0])
        margin = self.margins[i] + turning_margin(self.cap.d, self.scale)
        left = ~(np.abs(position[0] - nearest) <= 0.5 - margin) | ~sure
        return nearest.astype(np.int64), [int(j) for j in np.flatnonzero(left)]


def prepare_cap(n: int, d: int, cap: Cap, source: Source) -> CapRows:
    """Draw ``n`` rows of directions about e1 = (1, 0, ..., 0).

        V0 = (T, sqrt(1 - T^2) G / ||G||),   G ~ N(0, I_(d-1))
        T = q(Q U) with probability p, otherwise -q((1 - Q) U),   U uniform

    Here q is the inverse tail of the first coordinate of a uniform direction, and Q the cap's share
    of the sphere. `reflect_row` reflects V0 towards a value and rounds it.

    Parameters
    ----------
    n : int
        The number of rows.
    d : int
        The number of coordinates, that of the cap.
    cap : Cap
        The law.
    source : Source
        Source of random bits, now and if more are needed.

    Notes
    -----
    **Guarantee**. Steps decided by `reflect_row` or `exactly` have exactly the law of
    round(V / spacing) in real arithmetic (docs/proofs/cap_mechanism.md).

    **Assumes** what `tacit.noise.cap` does.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.noise import Cap, prepare_cap, secure_source
    >>> rows = prepare_cap(10, 3, Cap(3, 0.2, 0.9), secure_source())
    >>> bool(np.allclose(np.linalg.norm(rows.floats, axis=1), 1.0))
    True
    """
    check_shape(n, d)
    if not isinstance(cap, Cap) or cap.d != d:
        raise ValueError(f"cap must be a Cap of d={d} coordinates, got {cap!r}; make one for it.")
    words = CapWords.new(n, cap, source)
    # The float holds 53 bits of the coin; the others only matter within 2^-53 of the threshold.
    coins: Array = np.multiply(words.coin >> np.uint64(11), 2.0**-53, dtype=np.float64)
    if d == 1:
        floats = np.where(words.is_inside(cap), 1.0, -1.0)[:, None]
        return CapRows(cap, floats, coins, np.full(n, _kernel_margin(cap)), words, source)
    floats, margins = np.empty((n, d)), np.empty(n)
    with np.errstate(all="ignore"):  # infinities and NaN mark rows that floats cannot decide
        t, r, t_error, r_error = _latitudes(words, cap)
        floats[:, 0] = t
        for rows in blocks(n, d):
            error = words.normals.directions(rows, r[rows], floats[rows, 1:])
            margins[rows] = r[rows] * (error + 4.0 * UNIT)
        margins += t_error + r_error
        margins *= _SECOND_ORDER / cap.spacing
        margins += _kernel_margin(cap)
    forget_unknown(floats, margins)
    return CapRows(cap, floats, coins, margins, words, source)


@dataclass(frozen=True, eq=False)
class CapWords:
    """The random words behind n rows: cap or complement, depth in it, direction, coin."""

    choice: Words
    depth: Words
    coin: Words
    normals: NormalWords

    @staticmethod
    def new(n: int, cap: Cap, source: Source) -> CapWords:
        """Draw the words."""
        return CapWords(
            source.words(n), source.words(n), source.words(n), NormalWords.new(n, cap.d - 1, source)
        )

    def is_inside(self, cap: Cap) -> npt.NDArray[np.bool_]:
        """Return which rows are in the cap: word < p 2^64, an integer."""
        inside: npt.NDArray[np.bool_] = self.choice < np.uint64(_threshold(cap))
        return inside

    def row(self, cap: Cap, i: int) -> LazyCapRow:
        """Return row ``i`` with only its first 64 bits drawn."""
        return LazyCapRow(
            cap,
            int(self.choice[i]) < _threshold(cap),
            LazyUniform(int(self.depth[i])),
            LazyUniform(int(self.coin[i])),
            self.normals.row(i),
        )


def _threshold(cap: Cap) -> int:
    # p is a double of at least 2^-11, so p 2^64 is an integer.
    return int(Fraction(cap.p) * 2**64)


def _latitudes(words: CapWords, cap: Cap) -> tuple[Array, Array, Array, Array]:
    """Return T and sqrt(1 - T^2) in floats, and bounds on their errors."""
    t, t_error = _first(words.depth, words.is_inside(cap), cap)
    r = np.sqrt((1.0 - t) * (1.0 + t))
    # |sqrt x - sqrt y| <= |x - y| / sqrt x
    r_error = t_error * (2.0 * np.abs(t) + t_error) / r + 4.0 * UNIT
    return t, r, t_error, r_error


def _first(depth: Words, inside: npt.NDArray[np.bool_], cap: Cap) -> tuple[Array, Array]:
    """Return the first coordinates T in floats, and bounds on their errors."""
    law = Latitude(cap.d)
    low, high = cap.enclose_share(120)
    share, rest = float(low), float(1 - high)
    side = np.where(inside, share, rest)
    # the tail s = side * U and its complement, each a sum of positive terms
    s = side * (depth * 2.0**-64)
    complement = np.where(inside, rest, share) + side * (np.invert(depth) * 2.0**-64)
    tail = np.minimum(s, complement)
    octaves = _TABLE_OCTAVES + math.ceil(-math.log2(min(share, rest)))
    t = law.fast_quantile(tail, octaves)
    t[(s > complement) == inside] *= -1.0
    # |dq| <= mills |d log tail|; U is known within 2^-64
    error = law.mills * (2.0**-64 * side / tail + 8.0 * UNIT + law.quantile_error) + 2.0 * UNIT
    return t, _SECOND_ORDER * error


def _kernel_margin(cap: Cap) -> float:
    """Return a bound on the float error of `reflect_row`, in steps.

    A sum has at most n = 16 + d / 16 roundings per term, so a coordinate errs by (3 n + 28) 2^-53.
    """
    n = CHUNK + -(-cap.d // CHUNK)
    return (3 * n + 32) * UNIT / cap.spacing


@dataclass(frozen=True)
class LazyCapRow:
    """One row of a cap whose bits are drawn as needed."""

    cap: Cap
    inside: bool
    depth: LazyUniform
    coin: LazyUniform
    normals: LazyNormals

    def refined(self, source: Source) -> LazyCapRow:
        """Return the row with 64 more bits of every uniform variable drawn."""
        return LazyCapRow(
            self.cap,
            self.inside,
            self.depth.refined(source),
            self.coin.refined(source),
            self.normals.refined(source),
        )

    def decide(self, value: Array, norm: float, left: list[int]) -> dict[int, int]:
        """Return the coordinates of round(V / spacing) that the drawn bits decide."""
        exact = [Fraction(float(x)) for x in value]
        positive = _is_positive(self.coin, sum(x * x for x in exact), Fraction(norm))
        if positive is None:
            return {}
        if not any(exact):
            exact[0] = Fraction(1)
        if not positive:
            exact = [-x for x in exact]
        if self.cap.d == 1:
            towards = (exact[0] > 0) == self.inside
            return {0: int(1 / self.cap.spacing) * (1 if towards else -1)}
        if not self.normals.is_interior or not self.depth.is_interior:
            return {}
        return self._decide_direction(exact, left)

    def _decide_direction(self, exact: list[Fraction], left: list[int]) -> dict[int, int]:
        d = self.cap.d
        share_low, share_high = self.cap.enclose_share(self.depth.n_bits + GUARD_BITS)
        bits = -math.floor(math.log2(min(share_low, 1 - share_high)))
        precision = self.depth.n_bits + GUARD_BITS + 2 * d.bit_length() + bits
        arithmetic = Arithmetic(precision)
        share = arithmetic.between(share_low, share_high)
        side = share if self.inside else 1 - share
        latitude = Latitude(d).enclose_quantile(
            side * arithmetic.between(*self.depth.ends), arithmetic
        )
        square = self.normals.square(arithmetic)
        if latitude is None or ends(square)[0] <= 0:
            return {}
        t, r = latitude
        first = t if self.inside else -t
        rest = r / arithmetic.context.sqrt(square)
        v0 = [first, *(g * rest for g in self.normals.coordinates(arithmetic))]
        return _turned(v0, exact, arithmetic, int(1 / self.cap.spacing), left)


def _turned(
    v0: list[Any], value: list[Fraction], arithmetic: Arithmetic, scale: int, left: list[int]
) -> dict[int, int]:
    """Return the decided coordinates of round(scale * V); formulas as in `reflect_row`."""
    square = arithmetic.number(sum((x * x for x in value), Fraction(0)))
    inverse = 1 / arithmetic.context.sqrt(square)
    u = [arithmetic.double(float(x)) * inverse for x in value]
    sign = 1 if value[0] >= 0 else -1
    across = arithmetic.context.mpf(0)
    for u_i, v_i in zip(u[1:], v0[1:], strict=True):
        across += u_i * v_i
    along = v0[0] + sign * across / (1 + sign * u[0])
    decided: dict[int, int] = {}
    for i in left:
        turned = u[0] * v0[0] + across if i == 0 else u[i] * along - sign * v0[i]
        nearest = nearest_integer(scale * turned)
        if nearest is not None:
            decided[i] = nearest
    return decided


def _is_positive(coin: LazyUniform, square: Fraction | int, norm: Fraction) -> bool | None:
    """Return whether U < 1/2 + ||value|| / (2 norm), i.e. (2 U - 1) norm < ||value||, or None."""
    low, high = ((2 * end - 1) * norm for end in coin.ends)
    if high <= 0 or high * high <= square:
        return True
    return False if low >= 0 and low * low >= square else None
