"""Add exact noise on a public lattice: output = h * round((value + noise) / h).

The noise is an ideal real variable, so the output is post-processing of the ideal mechanism and
has exactly its guarantee. Floats decide the rounding where they provably can. Otherwise more bits
of the noise are drawn until the answer is certain. Proof: docs/proofs/lazily_exact_noise.md.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import Any, Protocol

import numpy as np

from tacit.arrays import Array
from tacit.noise.exact.interval_arithmetic import GUARD_BITS, Enclosure, LazyUniform
from tacit.noise.source import Source, Words
from tacit.privacy.fork import generation

SMALLEST_STD, LARGEST_STD = 2.0**-500, 2.0**500

# Lattice points per noise_std: 2^10 to 2^11. Rounding then adds less than 1e-7 of the variance.
_LATTICE_BITS = 10
# Coordinates processed at once: enough to amortise the calls, few enough for a cache.
_BLOCK = 1 << 15
# Segments of the inversion table, of equal probability.
_SEGMENT_BITS = 12
_N_SEGMENTS = 1 << _SEGMENT_BITS
# Segments omitted at either end, where one polynomial cannot follow the quantile.
_TAIL_SEGMENTS = 32
_DEGREE = 2
_POSITION_BITS = 64 - _SEGMENT_BITS
_POSITION_MASK = np.uint64((1 << _POSITION_BITS) - 1)
# Smaller tail probabilities are decided exactly: the word's interval is too wide beside them.
_SMALLEST_FAST_TAIL = 2.0**-24
# Bounds on |float quantile - quantile at any U of the word's interval|, for the table and for the
# float function. Words that the coarser table leaves undecided go to the float function.
_TABLE_MARGIN = 2.0**-21
_QUANTILE_MARGIN = 2.0**-34
# Float error of (fraction + ratio * z), at most 2^15 in size: two roundings of 2^-53 * 2^15.
_ROUNDING_MARGIN = 2.0**-36


class Law(Protocol):
    """A symmetric law of noise, defined by its tail P(Z > x)."""

    def __hash__(self) -> int:
        """Return equal hashes for equal laws: tables are cached by law."""

    def quantile(self, tail: Array) -> Array:
        """Return z >= 0 with P(Z > z) = tail in floats, for tails in (0, 1/2]."""

    def enclose_tail(self, x: Fraction, precision: int) -> Enclosure:
        """Return bounds on P(Z > x) for x > 0, to about 2^-precision relative."""


def lattice_spacing(noise_std: float) -> float:
    """Return the spacing of the public lattice for noise of this standard deviation.

        spacing = 2^(floor(log2(noise_std)) - 10)

    Notes
    -----
    **Guarantee**. The spacing is a power of two and a function of ``noise_std`` alone, which is
    public; 2^10 <= noise_std / spacing < 2^11.

    Examples
    --------
    >>> from tacit.noise.exact.lattice import lattice_spacing
    >>> lattice_spacing(3.0) == 2.0**-9
    True
    """
    if not SMALLEST_STD <= noise_std <= LARGEST_STD:
        raise ValueError(
            f"noise_std must be in [2^-500, 2^500], got {noise_std!r}: outside, values on the "
            "lattice are not doubles; state the value and its sensitivity in other units."
        )
    # frexp returns m in [1/2, 1), so floor(log2) = exponent - 1.
    return math.ldexp(1.0, math.frexp(noise_std)[1] - 1 - _LATTICE_BITS)


class Ahead:
    """Noise drawn before its value is known, to be used once, in the process that drew it.

    The quantiles of its words may be computed in floats already. Undecided coordinates are decided
    when the value is known, with more bits of the same source.

    Examples
    --------
    >>> from tacit.noise.gaussian import GaussianLaw
    >>> from tacit.noise import secure_source
    >>> from tacit.noise.exact.lattice import Ahead
    >>> Ahead(1000, GaussianLaw(), secure_source()).n_coordinates
    1000
    """

    def __init__(self, n_coordinates: int, law: Law, source: Source) -> None:
        self.law, self.source, self.n_coordinates = law, source, n_coordinates
        self._words, self._generation = source.words(n_coordinates), generation()
        self._quantiles = np.empty(n_coordinates)
        table, buffers = _inversion_table(law), np.empty((2, min(_BLOCK, n_coordinates)))
        with np.errstate(all="ignore"):
            for start in range(0, n_coordinates, _BLOCK):
                z = self._quantiles[start : start + _BLOCK]
                words = self._words[start : start + _BLOCK]
                _table_quantile(words, table, z, *buffers[:, : z.size])
                _fill_tails(words, law, z)

    def taken(self, n_coordinates: int, law: Law) -> tuple[Words, Array]:
        """Return words and quantiles, once and never again."""
        if self._words.size == 0:
            raise ValueError("this noise has hidden a value already; draw new noise.")
        if self._generation != generation():
            raise ValueError(
                "this noise was drawn before the process was forked, and the parent may use it for "
                "a value of its own; draw new noise."
            )
        if n_coordinates != self.n_coordinates or law != self.law:
            raise ValueError(
                f"{self.n_coordinates} numbers of {self.law} were drawn ahead, and "
                f"{n_coordinates} of {law} are needed; draw as many as the value has."
            )
        taken = self._words, self._quantiles
        self._words, self._quantiles = self._words[:0], self._quantiles[:0]
        return taken

    def __reduce__(self) -> str | tuple[Any, ...]:
        raise TypeError(
            "noise drawn ahead cannot be copied or pickled: it would hide two values, and their "
            "difference would be noiseless; draw new noise."
        )


def add_rounded(
    value: float | Array,
    width: float,
    spacing: float,
    law: Law,
    source: Source,
    ahead: Ahead | None = None,
) -> float | Array:
    """Return spacing * round((value + width * Z) / spacing), Z independent of ``law``.

    Z is drawn from ``source``, or was drawn ``ahead``.

    **Guarantee**: the law of the result is exactly that of real arithmetic.

    **Assumes**: width / spacing < 2^11; |value| <= 2^500; independent words; the margins above
    (tests/noise/exact/test_lattice.py checks these functions to a thousandth of the margins).
    """
    flat = np.ascontiguousarray(np.asarray(value, dtype=np.float64)).ravel()
    result = np.empty_like(flat)
    words, quantiles = (None, None) if ahead is None else ahead.taken(flat.size, law)
    table = _inversion_table(law)
    buffers = np.empty((4, min(_BLOCK, flat.size)))
    with np.errstate(all="ignore"):  # infinities and NaN mark values that floats cannot decide
        for start in range(0, flat.size, _BLOCK):
            block = flat[start : start + _BLOCK]
            out = result[start : start + _BLOCK]
            room = buffers[:, : out.size]
            if words is None or quantiles is None:
                some = source.words(block.size)
                _table_quantile(some, table, room[0], room[1], room[3])
            else:
                some, room[0] = words[start : start + _BLOCK], quantiles[start : start + _BLOCK]
            _add_block(block, out, width, spacing, law, room, some, source)
    if isinstance(value, np.ndarray):
        return result.reshape(value.shape)
    return float(result[0])


def _add_block(
    value: Array,
    out: Array,
    width: float,
    spacing: float,
    law: Law,
    buffers: Array,
    words: Words,
    source: Source,
) -> None:
    """Write the rounded sums into ``out``; the first buffer holds z for each word."""
    position, nearest, fraction, _ = buffers
    ratio = width / spacing  # exact: spacing is a power of two
    # value / spacing = whole + fraction, both exact; the noise is only ever added to fraction.
    np.multiply(value, 1.0 / spacing, out=fraction)
    whole = np.rint(fraction, out=out)
    fraction -= whole
    # position = fraction + ratio * z, with z from the table (NaN in its tails)
    position *= ratio
    position += fraction
    np.rint(position, out=nearest)
    position -= nearest
    np.abs(position, out=position)
    left = np.flatnonzero(~(position <= 0.5 - ratio * _TABLE_MARGIN - _ROUNDING_MARGIN))
    nearest[left] = _decide(words[left], fraction[left], ratio, law, source)
    whole += nearest
    whole += 0.0  # -0.0 becomes 0.0: the sign of a zero would reveal the sign of the value
    out *= spacing


def _table_quantile(
    words: Words, table: tuple[Array, ...], z: Array, x: Array, coefficient: Array
) -> None:
    """Write z for each word into ``z``: a polynomial in the low bits, chosen by the high bits."""
    segment = (words >> np.uint64(_POSITION_BITS)).view(np.int64)
    low_bits = np.bitwise_and(words, _POSITION_MASK, out=coefficient.view(np.uint64))
    # Signed integers convert to floats faster, and these are below 2^52.
    np.multiply(low_bits.view(np.int64), 2.0**-_POSITION_BITS, out=x)
    table[-1].take(segment, out=z, mode="clip")
    for coefficients in table[-2::-1]:
        z *= x
        z += coefficients.take(segment, out=coefficient, mode="clip")


@lru_cache(maxsize=8)
def _inversion_table(law: Law) -> tuple[Array, ...]:
    """Return, for each power, the coefficients of the polynomial on every segment.

    Segment k is U in [k, k + 1) / 2^12. The parabola through the quantile Q at the three Chebyshev
    nodes errs by at most

        max |Q'''| w^3 / (3! 2^2) <= (w / p)^3 / 12 <= 2^-21.5,   w = 2^-13, p >= 2^5 / 2^12

    because |Q'''(p)| p^3 <= 2 for both laws (docs/proofs/lazily_exact_noise.md).
    """
    nodes = 0.5 - 0.5 * np.cos((2 * np.arange(_DEGREE + 1) + 1) * np.pi / (2 * _DEGREE + 2))
    to_coefficients = np.linalg.inv(np.vander(nodes, increasing=True))
    half = np.arange(_N_SEGMENTS // 2)
    tails = (half[:, None] + nodes) / _N_SEGMENTS
    upper = law.quantile(tails) @ to_coefficients.T
    upper[:_TAIL_SEGMENTS] = np.nan
    # The lower half mirrors the upper: U -> 1 - U, z -> -z; in segment terms x -> 1 - x.
    mirrored = ((_N_SEGMENTS // 2 + half)[:, None] + nodes) / _N_SEGMENTS
    lower = -law.quantile(1.0 - mirrored) @ to_coefficients.T
    lower[-_TAIL_SEGMENTS:] = np.nan
    return tuple(np.ascontiguousarray(column) for column in np.vstack([upper, lower]).T)


def _fill_tails(words: Words, law: Law, z: Array) -> None:
    """Write the float quantile where the table has none; its error margin is smaller.

    NaN stays for tails that are so small that they are decided exactly.
    """
    open_ones = np.flatnonzero(np.isnan(z))
    found, tail = _float_quantile(words[open_ones], law)
    z[open_ones] = np.where(tail >= _SMALLEST_FAST_TAIL, found, np.nan)


def _float_quantile(words: Words, law: Law) -> tuple[Array, Array]:
    """Return z for each word by the law's float function, and the tail beyond it."""
    # U < 1/2: Z > 0 with tail U. Otherwise Z < 0 with tail 1 - U, in (~word, ~word + 1] / 2^64.
    positive = words < np.uint64(1 << 63)
    # In floats take the middle of that interval, which is never 0.
    tail = np.where(positive, words, ~words) * 2.0**-64 + 2.0**-65
    return np.where(positive, 1.0, -1.0) * law.quantile(tail), tail


def _decide(words: Words, fraction: Array, ratio: float, law: Law, source: Source) -> Array:
    """Return round(fraction + ratio * z) for words that the table did not decide."""
    z, tail = _float_quantile(words, law)
    position = z * ratio + fraction
    nearest = np.rint(position)
    threshold = 0.5 - ratio * _QUANTILE_MARGIN - _ROUNDING_MARGIN
    certain = (np.abs(position - nearest) <= threshold) & (tail >= _SMALLEST_FAST_TAIL)
    for i in np.flatnonzero(~certain):
        uniform = LazyUniform(int(words[i]))
        guess = int(nearest[i])
        nearest[i] = _decide_exactly(uniform, guess, float(fraction[i]), ratio, law, source)
    return nearest


def _decide_exactly(
    uniform: LazyUniform, guess: int, fraction: float, ratio: float, law: Law, source: Source
) -> int:
    """Return round(fraction + ratio * Z) by comparing U with the tail at the two boundaries."""
    k = guess
    while True:
        # Z > b(k) = (k + 1/2 - fraction) / ratio means that the result is above k.
        above = _is_above(uniform, k, fraction, ratio, law)
        not_below = _is_above(uniform, k - 1, fraction, ratio, law)
        if above:
            k += 1
        elif not_below is False:
            k -= 1
        elif above is False and not_below:
            return k
        else:
            uniform = uniform.refined(source)


def _is_above(uniform: LazyUniform, k: int, fraction: float, ratio: float, law: Law) -> bool | None:
    """Return whether Z > (k + 1/2 - fraction) / ratio, or None while that is uncertain."""
    boundary = (k + Fraction(1, 2) - Fraction(fraction)) / Fraction(ratio)
    if boundary < 0:
        # Z > b  iff  not (-Z > -b), and -Z is the noise of 1 - U.
        mirror = LazyUniform((1 << uniform.n_bits) - 1 - uniform.numerator, uniform.n_bits)
        below = _is_beyond(mirror, -boundary, law)
        return None if below is None else not below
    return _is_beyond(uniform, boundary, law)


def _is_beyond(uniform: LazyUniform, boundary: Fraction, law: Law) -> bool | None:
    """Return whether Z > boundary >= 0, that is U < P(Z > boundary), or None."""
    low, high = uniform.ends
    if boundary == 0:
        tail_low = tail_high = Fraction(1, 2)
    else:
        tail_low, tail_high = law.enclose_tail(boundary, uniform.n_bits + GUARD_BITS)
    if high <= tail_low:
        return True
    return False if low >= tail_high else None
