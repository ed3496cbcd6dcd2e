"""Compute tail and quantiles of the first coordinate T of a uniform direction in d dimensions.

    P(T > t) = 1/2 I_(1 - t^2)((d - 1) / 2, 1/2),   density c_d (1 - t^2)^((d - 3) / 2)

Proofs: docs/proofs/cap_mechanism.md, sections 3 and 5.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from tacit.arrays import Array
from tacit.noise.exact.interval_arithmetic import Arithmetic, Enclosure, ends, smallness_bits

# Each octave [2^-k-1, 2^-k) of tail probabilities is cut into 2^5 segments.
_SEGMENT_BITS = 5
_N_SEGMENTS = 1 << _SEGMENT_BITS
_DEGREE = 8
# The float 1/2 belongs to the octave above, and 0 to none.
_SMALLEST_TAIL, _LARGEST_TAIL = 2.0**-1022, 0.5 - 2.0**-54


@dataclass(frozen=True)
class Latitude:
    """The law of <V, u> for V uniform on the sphere of ``n_coordinates`` >= 2 dimensions."""

    n_coordinates: int

    @property
    def peak(self) -> float:
        """The density at 0, c_d = Gamma(d / 2) / (sqrt(pi) Gamma((d - 1) / 2))."""
        return _peak(self.n_coordinates)

    @property
    def mills(self) -> float:
        """The largest tail over density for t >= 0, reached at 0: 1 / (2 c_d)."""
        return 0.5 / self.peak

    @property
    def quantile_error(self) -> float:
        """|float quantile - quantile| over `mills`, for an exact tail."""
        return 2.0**-45 * max(1.0, self.n_coordinates / 2.0**16)

    def quantile(self, tail: Array) -> Array:
        """Return t >= 0 with P(T > t) = tail, for tails in (0, 1/2].

        SciPy's inverse errs by up to 2^-44 mills; one Newton step corrects that.
        """
        from scipy.special import betaincc, betainccinv

        half = (self.n_coordinates - 1) / 2
        # P(T^2 > x) = 1 - I_x(1/2, (d - 1) / 2)
        square = betainccinv(0.5, half, 2.0 * tail)
        excess = 0.5 * betaincc(0.5, half, square) - tail
        t: Array = np.sqrt(square) + excess / self.density(tail)
        return t

    def density(self, tail: Array) -> Array:
        """Return the density c_d (1 - t^2)^((d - 3) / 2) where P(T > t) = tail <= 1/2."""
        y = self.square_distance(tail)
        density: Array = self.peak * np.exp(0.5 * (self.n_coordinates - 3) * np.log(y))
        return density

    def square_distance(self, tail: Array) -> Array:
        """Return 1 - t^2 with P(T > t) = tail, for tails in (0, 1/2]."""
        from scipy.special import betaincinv

        x: Array = betaincinv((self.n_coordinates - 1) / 2, 0.5, 2.0 * tail)
        return x

    def fast_quantile(self, tail: Array, n_octaves: int) -> Array:
        """Return the quantile by a table of ``n_octaves``; NaN for smaller tails.

        The error is at most mills * quantile_error + 2^-52.
        """
        table = _taylor_table(self, n_octaves)
        mantissa, exponent = np.frexp(np.clip(tail, _SMALLEST_TAIL, _LARGEST_TAIL))
        # Position in the octave, in segments: exact.
        position = (mantissa - 0.5) * (2.0 * _N_SEGMENTS)
        whole = position.astype(np.int64)
        octave = np.minimum(-exponent.astype(np.int64) - 1, n_octaves)
        coefficients = table[octave * _N_SEGMENTS + whole]
        z = 2.0 * (position - whole) - 1.0
        t = coefficients[:, _DEGREE].copy()
        for k in range(_DEGREE - 1, -1, -1):
            t *= z
            t += coefficients[:, k]
        return t

    def enclose_tail(self, t: Fraction, precision: int) -> Enclosure:
        """Return bounds on P(T > t), to about 2^-precision relative, -1 < t < 1."""
        bits = precision + 64
        while True:
            arithmetic = Arithmetic(bits)
            low, high = ends(self.tail_at(_arc_cosine(t, bits), arithmetic))
            if low > 0 and (high - low) * (1 << precision) <= low:
                return low, high
            bits *= 2

    def tail_at(self, angle: Any, arithmetic: Arithmetic) -> Any:
        """Return an enclosure of P(T > cos(angle)).

        tail_2 = angle / pi,   tail_3 = (1 - cos) / 2 = sin(angle / 2)^2
        tail_(j+2) = tail_j - k_j sin^(j-1) cos,   k_2 = 1 / pi, k_3 = 1/4,
        k_(j+2) = k_j j / (j + 1)
        """
        context = arithmetic.context
        cosine, sine = context.cos(angle), context.sin(angle)
        first = 2 + self.n_coordinates % 2
        square = sine * sine
        total = _nested(square, first, self.n_coordinates - 4, arithmetic)
        if first == 2:
            tail = angle / context.pi
            lost = sine / context.pi
        else:
            tail = context.sin(angle / 2) ** 2
            lost = square / 4
        return tail if self.n_coordinates <= 3 else tail - lost * cosine * total

    def enclose_quantile(self, tail: Any, arithmetic: Arithmetic) -> tuple[Any, Any] | None:
        """Return enclosures of t and sqrt(1 - t^2) for all tails in an interval.

        None if the precision does not suffice.
        """
        low, high = ends(tail)
        middle = (low + high) / 2
        if not 0 < low < high < 1:
            return None
        if middle > Fraction(1, 2):
            mirrored = self.enclose_quantile(1 - tail, arithmetic)
            return None if mirrored is None else (-mirrored[0], mirrored[1])
        angle = self._angle(low, high, arithmetic)
        if angle is None:
            return None
        return arithmetic.context.cos(angle), arithmetic.context.sin(angle)

    def _angle(self, low: Fraction, high: Fraction, arithmetic: Arithmetic) -> Any:
        """Return an interval of angles whose tails enclose [low, high], or None.

        Newton's method finds it and interval arithmetic verifies it, so the method only affects
        its width.
        """
        middle, width = (low + high) / 2, high - low
        angle = Fraction(self._guess(middle))
        # Bits that the arithmetic loses: as many as the tail is small, and some for d terms.
        lost = smallness_bits(low) + 28
        for _ in range(1000):
            point = arithmetic.number(angle)
            excess = _middle(self.tail_at(point, arithmetic)) - middle
            slope = _middle(self._slope(point, arithmetic))
            if slope <= 0 or angle <= 0:
                return None
            room = width / slope + angle / (1 << max(0, arithmetic.context.prec - lost))
            step = excess / slope
            angle = _rounded(angle - step, arithmetic)
            if abs(step) <= room / 8:
                break
        below, above = angle - room, angle + room
        if below <= 0 or above >= 3:
            return None
        if ends(self.tail_at(arithmetic.number(below), arithmetic))[1] > low:
            return None
        if ends(self.tail_at(arithmetic.number(above), arithmetic))[0] < high:
            return None
        return arithmetic.between(below, above)

    def _slope(self, angle: Any, arithmetic: Arithmetic) -> Any:
        """Return approximately the derivative of the tail by the angle, c_d sin^(d-2)."""
        return arithmetic.number(self.peak) * arithmetic.context.sin(angle) ** (
            self.n_coordinates - 2
        )

    def _guess(self, tail: Fraction) -> float:
        from scipy.special import betainccinv, betaincinv

        d = self.n_coordinates
        double = min(1.0, 2.0 * float(tail))
        cosine = math.sqrt(betainccinv(0.5, (d - 1) / 2, double))
        sine = math.sqrt(betaincinv((d - 1) / 2, 0.5, double))
        return math.atan2(sine, cosine)


@lru_cache(maxsize=64)
def _peak(n_coordinates: int) -> float:
    import mpmath

    context = mpmath.mp.clone()
    context.prec = 160
    half = context.mpf(1) / 2
    return float(1 / context.beta(context.mpf(n_coordinates - 1) / 2, half))


@lru_cache(maxsize=16)
def _taylor_table(law: Latitude, n_octaves: int) -> Array:
    """Return Taylor coefficients of the quantile q around the centre of every segment.

    With q(centre + width z) = sum of q_k z^k, |z| <= 1, and v = dq/dz:

        v = -width / (c_d y^e),   y = 1 - q^2,   e = (d - 3) / 2,   so   y v' = 2 e q v^2
    """
    segment = np.arange(n_octaves * _N_SEGMENTS)
    octave, part = segment // _N_SEGMENTS, segment % _N_SEGMENTS
    # segment: 2^-(octave + 2) (1 + [part, part + 1) / 32)
    size = np.ldexp(1.0, -(octave + 2))
    centre = size * (1.0 + (part + 0.5) / _N_SEGMENTS)
    width = size * (0.5 / _N_SEGMENTS)
    exponent = (law.n_coordinates - 3) / 2
    q = np.zeros((_DEGREE + 1, segment.size))
    v, y = np.zeros_like(q), np.zeros_like(q)
    q[0] = law.quantile(centre)
    y[0] = law.square_distance(centre)
    v[0] = -width / law.density(centre)
    for k in range(_DEGREE):
        q[k + 1] = v[k] / (k + 1)
        y[k + 1] = -_product(q, q, k + 1)
        squares = np.stack([_product(v, v, i) for i in range(k + 1)])
        known = sum(y[i] * (k + 1 - i) * v[k + 1 - i] for i in range(1, k + 1))
        v[k + 1] = (2.0 * exponent * _product(q, squares, k) - known) / ((k + 1) * y[0])
    table = np.full((segment.size + _N_SEGMENTS, _DEGREE + 1), np.nan)
    table[: segment.size] = q.T
    return table


def _product(a: Array, b: Array, k: int) -> Array:
    """Return coefficient ``k`` of the product of two power series."""
    total: Array = np.sum([a[i] * b[k - i] for i in range(k + 1)], axis=0)
    return total


def _nested(square: Any, first: int, last: int, arithmetic: Arithmetic) -> Any:
    """Return an enclosure of 1 + r(first) x (1 + r(first + 2) x (... (1 + r(last) x))).

    r(j) = j / (j + 1) and x = ``square`` in [0, 1]. All terms are positive and at most 1, so
    integer multiples of 2^-bits suffice, rounded down for the lower end and up for the upper.
    """
    bits = arithmetic.context.prec
    low, high = (max(Fraction(0), end) for end in ends(square))
    x_low, x_high = math.floor(low * (1 << bits)), math.ceil(high * (1 << bits))
    one = 1 << bits
    below = above = one
    for j in range(last - (last - first) % 2, first - 1, -2):
        below = one + below * x_low * j // ((j + 1) << bits)
        above = one - (-above * x_high * j // ((j + 1) << bits))
    return arithmetic.dyadic(below, above, bits)


def _arc_cosine(t: Fraction, bits: int) -> Any:
    """Return an interval around the arc cosine of ``t``, verified by interval cosines."""
    import mpmath

    arithmetic = Arithmetic(bits)
    context = mpmath.mp.clone()
    context.prec = bits + 20
    guess = context.acos(context.mpf(t.numerator) / t.denominator)
    angle = Fraction(*mpmath.libmp.to_rational(guess._mpf_))
    room = Fraction(1, 1 << (bits - 8))
    while True:
        below, above = max(Fraction(0), angle - room), angle + room
        cosine = arithmetic.context.cos
        if (
            ends(cosine(arithmetic.number(below)))[0] >= t
            and ends(cosine(arithmetic.number(above)))[1] <= t
        ):
            return arithmetic.between(below, above)
        room *= 4


def _middle(interval: Any) -> Fraction:
    low, high = ends(interval)
    return (low + high) / 2


def _rounded(value: Fraction, arithmetic: Arithmetic) -> Fraction:
    """Return ``value`` rounded to the working precision, so that fractions do not grow."""
    low, high = ends(arithmetic.number(value))
    return low if low == high else (low + high) / 2
