"""Compute with partly known numbers: uniform variables with lazily drawn bits, and intervals.

This is the slow, exact path of every sampler. About one draw in four million takes it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from tacit.arrays import Array
from tacit.noise.source import Source, Words

# Working bits beyond those of the uniform variable.
GUARD_BITS = 64

Enclosure = tuple[Fraction, Fraction]
Floats = Array


@dataclass(frozen=True)
class LazyUniform:
    """A uniform variable U in [numerator, numerator + 1) / 2^n_bits; more bits can be drawn."""

    numerator: int
    n_bits: int = 64

    def refined(self, source: Source) -> LazyUniform:
        """Return the variable with 64 more bits drawn."""
        more = int(source.words(1)[0])
        return LazyUniform((self.numerator << 64) | more, self.n_bits + 64)

    @property
    def ends(self) -> Enclosure:
        """The interval that contains the variable."""
        denominator = 1 << self.n_bits
        return Fraction(self.numerator, denominator), Fraction(self.numerator + 1, denominator)

    @property
    def is_interior(self) -> bool:
        """Whether 0 and 1 are excluded, so that logarithms are finite."""
        return 0 < self.numerator < (1 << self.n_bits) - 1


@lru_cache(maxsize=64)
def _interval_context(precision: int) -> Any:
    # Making a context takes milliseconds. Its precision never changes, so sharing it is safe.
    from mpmath.ctx_iv import MPIntervalContext

    context = MPIntervalContext()
    context.prec = precision
    return context


class Arithmetic:
    """Interval arithmetic at a chosen precision, in a context of its own.

    mpmath rounds the ends of every operation outwards.
    """

    def __init__(self, precision: int) -> None:
        self.context: Any = _interval_context(precision)

    def number(self, value: Fraction | float) -> Any:
        """Return an interval around one exact number."""
        exact = Fraction(value)
        return self.context.mpf(exact.numerator) / self.context.mpf(exact.denominator)

    def between(self, low: Fraction, high: Fraction) -> Any:
        """Return an interval around [low, high]."""
        return self.context.mpf([self.number(low).a, self.number(high).b])

    def dyadic(self, low: int, high: int, n_bits: int) -> Any:
        """Return an interval around [low, high] / 2^n_bits."""
        from mpmath import libmp

        precision = self.context.prec
        first = libmp.from_man_exp(low, -n_bits, precision, libmp.round_floor)
        last = libmp.from_man_exp(high, -n_bits, precision, libmp.round_ceiling)
        return self.context.make_mpf((first, last))

    def double(self, value: float) -> Any:
        """Return an interval around one double; exact, since the precision is at least 53."""
        mantissa, exponent = math.frexp(value)
        whole = int(mantissa * 2.0**53)
        return self.dyadic(whole, whole, 53 - exponent)

    def uniform(self, uniform: LazyUniform) -> Any:
        """Return an enclosure of U."""
        return self.dyadic(uniform.numerator, uniform.numerator + 1, uniform.n_bits)

    def exponential(self, uniform: LazyUniform) -> Any:
        """Return an enclosure of E = -log(1 - U), a standard exponential variable."""
        top = (1 << uniform.n_bits) - uniform.numerator
        return -self.context.log(self.dyadic(top - 1, top, uniform.n_bits))

    def sum_of_exponentials(self, uniforms: list[LazyUniform]) -> Any:
        """Return an enclosure of the sum of -log(1 - U), as one log of a product of integers."""
        # product of (1 - U) in [low, high] * 2^exponent
        low = high = 1
        exponent = 0
        for uniform in uniforms:
            top = (1 << uniform.n_bits) - uniform.numerator
            low, high, exponent = low * (top - 1), high * top, exponent - uniform.n_bits
            drop = max(0, high.bit_length() - self.context.prec)
            low, high, exponent = low >> drop, -(-high >> drop), exponent + drop
        product = self.between(Fraction(low), Fraction(high))
        return -(self.context.log(product) + exponent * self.context.log(self.context.mpf(2)))


def ends(interval: Any) -> Enclosure:
    """Return the two ends of an mpmath interval as exact fractions.

    Raises
    ------
    ArithmeticError
        If an end is infinite or not a number; mpmath would convert it to the fraction 0.
    """
    from mpmath import libmp

    low, high = interval._mpi_
    # Apart from zero itself, a mantissa of zero marks infinities and NaN.
    if not all(end[1] or end == libmp.fzero for end in (low, high)):
        raise ArithmeticError("an interval has an infinite or undefined end and decides nothing.")
    return Fraction(*libmp.to_rational(low)), Fraction(*libmp.to_rational(high))


def nearest_integer(interval: Any) -> int | None:
    """Return the integer to which every number of an mpmath interval rounds, or None."""
    first, last = (math.floor(end + Fraction(1, 2)) for end in ends(interval))
    return first if first == last else None


def nearest_float(value: Fraction) -> float:
    """Return ``value`` as a float, infinite if it is too large for one."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def magnitude_bits(value: Fraction) -> int:
    """Return a number of bits above the binary point: |value| < 2^result."""
    return max(0, value.numerator.bit_length() - value.denominator.bit_length() + 1)


def smallness_bits(value: Fraction) -> int:
    """Return a number of bits below the binary point: |value| > 2^-result, unless it is 0."""
    return max(0, value.denominator.bit_length() - value.numerator.bit_length() + 1)


# Error bound of the float functions log, log1p, expm1, sqrt (relative), sin and cos (absolute).
FUNCTION_ERROR = 2.0**-44
_MIDDLE = np.uint64(1 << 63)


def exponentials(words: Words) -> Floats:
    """Return float exponentials E = -log(1 - U), U in [word, word + 1) / 2^64."""
    low = words < _MIDDLE
    # Compute each half from its own end, so that neither loses digits: 2^64 - 1 - word = ~word.
    return np.where(
        low,
        -np.log1p(-(np.where(low, words, 0) * 2.0**-64)),
        -np.log(np.where(low, _MIDDLE, ~words) * 2.0**-64 + 2.0**-65),
    )


def exponential_errors(words: Words, values: Floats) -> Floats:
    """Return bounds on |E - float E| for any U in the word's interval.

    E moves by at most 2^-64 / (1 - U) = 1 / ~word at the interval's upper end.
    """
    return FUNCTION_ERROR * values + 1.0 / ~words
