"""Compute the mass of points of geometrically decreasing weight, and draw one of them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from tacit.arrays import Array, Integers
from tacit.noise.exact.interval_arithmetic import (
    GUARD_BITS,
    Arithmetic,
    LazyUniform,
    ends,
    magnitude_bits,
    nearest_float,
    smallness_bits,
)
from tacit.noise.source import Source

# Smaller slopes do not change a float; the exact enclosures use the true slope.
_FLAT = 1e-290
# Error of `log_series` in floats: a relative error r of fall changes the log by at most r, and the
# three functions add 2^-44 each (docs/proofs/selection_on_a_line.md, section 3).
SERIES_ERROR = 2.0**-38
# Error of a share in floats: a quotient of two expm1 whose arguments are off by 2^-51, 2^-42.
_SHARE_ERROR = 2.0**-41


def log_series(fall: Array, n: Integers) -> Array:
    """Return log((1 - exp(-fall n)) / (1 - exp(-fall))), the log mass of n points from 1 down."""
    with np.errstate(all="ignore"):
        rate = np.maximum(fall, _FLAT)
        mass = np.expm1(-rate * n) / np.expm1(-rate)
        logs: Array = np.log(np.where(fall < _FLAT, n, mass))
        return logs


@dataclass(frozen=True)
class Run:
    """Points of geometrically decreasing weight: exp(top - fall * m), m = 0, ..., n - 1.

    log mass = top + log((1 - exp(-fall n)) / (1 - exp(-fall))),  or top + log n without slope
    """

    top: Fraction
    fall: Fraction
    n: int

    @property
    def extra_bits(self) -> int:
        """Bits of precision that the log mass needs beyond those of the noise."""
        return (
            magnitude_bits(self.top)
            + magnitude_bits(self.fall * self.n)
            + (2 * smallness_bits(self.fall) if self.fall else 0)
        )

    def enclose(self, arithmetic: Arithmetic) -> Any:
        """Return an interval around the log mass."""
        log = arithmetic.context.log
        if not self.fall:
            return arithmetic.number(self.top) + log(arithmetic.number(Fraction(self.n)))
        mass = self._missing(arithmetic, self.n) / self._missing(arithmetic, 1)
        return arithmetic.number(self.top) + log(mass)

    def share_before(self, m: int, precision: int) -> tuple[Fraction, Fraction]:
        """Return bounds on the probability of the first m points."""
        if not self.fall:
            return Fraction(m, self.n), Fraction(m, self.n)
        arithmetic = Arithmetic(precision + self.extra_bits)
        return ends(self._missing(arithmetic, m) / self._missing(arithmetic, self.n))

    def _missing(self, arithmetic: Arithmetic, m: int) -> Any:
        return 1 - arithmetic.context.exp(-arithmetic.number(self.fall * m))

    def draw(self, source: Source) -> int:
        """Return m with probability exactly proportional to exp(-fall * m)."""
        uniform = LazyUniform(int(source.words(1)[0]))
        share = uniform.numerator * 2.0**-64
        m = self._guess(min(share, 1.0 - 2.0**-53))
        if self._surely(m, share):
            return m
        while True:
            low, high = uniform.ends
            start = self.share_before(m, uniform.n_bits + GUARD_BITS)
            stop = self.share_before(m + 1, uniform.n_bits + GUARD_BITS)
            if m > 0 and high <= start[0]:
                m -= 1
            elif m + 1 < self.n and low >= stop[1]:
                m += 1
            elif (m == 0 or low >= start[1]) and (m + 1 == self.n or high <= stop[0]):
                return m
            else:
                uniform = uniform.refined(source)

    def _surely(self, m: int, share: float) -> bool:
        """Return whether floats can prove that m is the place of a uniform variable."""
        fall = nearest_float(self.fall)
        if fall < _FLAT:
            start, stop = m / self.n, (m + 1) / self.n
        else:
            whole = math.expm1(-fall * self.n)
            start, stop = math.expm1(-fall * m) / whole, math.expm1(-fall * (m + 1)) / whole
        return bool(
            (m == 0 or share >= start + _SHARE_ERROR)
            and (m + 1 == self.n or share <= stop - _SHARE_ERROR)
        )

    def _guess(self, share: float) -> int:
        fall = nearest_float(self.fall)
        if fall < _FLAT:
            m = share * self.n
        else:
            m = -math.log1p(share * math.expm1(-min(fall * self.n, 700.0))) / fall
        return min(max(int(m), 0), self.n - 1)
