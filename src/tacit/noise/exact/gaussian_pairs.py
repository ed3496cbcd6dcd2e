"""Compute standard Gaussian numbers: many rows in floats with error bounds, one row exactly.

A pair is sqrt(2 E) (cos A, sin A), E exponential and A a uniform angle (Box and Muller 1958). So
the sum of squares is twice a sum of exponentials, and the exact path needs no inversion.
Proof of the bounds: docs/proofs/cap_mechanism.md, section 4.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from tacit.arrays import Array
from tacit.noise.exact.interval_arithmetic import Arithmetic, LazyUniform
from tacit.noise.source import Source, Words

# Relative error bound of NumPy's log.
LOG_ERROR = 2.0**-47
# Bound on the norm of the error of the float pair (cos, sin), from arithmetic alone.
TURN_ERROR = 2.0**-50
# Relative error of a float sum, product or root.
UNIT = 2.0**-53

# The circle is cut into 2^12 arcs: within half an arc, two terms of each series suffice.
_ARC_BITS = 12
_ANGLE_BITS = 64 - _ARC_BITS
_ANGLE_MASK = np.uint64((1 << _ANGLE_BITS) - 1)
_HALF_ARC = 1 << (_ANGLE_BITS - 1)


@dataclass(frozen=True, eq=False)
class NormalWords:
    """The random words behind n rows of d Gaussian numbers; for odd d the last sine is unused.

    E = -log(U) with U in [word, word + 1) / 2^64 for the radius words.
    """

    n_coordinates: int
    radius: Words
    angle: Words

    @staticmethod
    def new(n_rows: int, n_coordinates: int, source: Source) -> NormalWords:
        """Draw the words."""
        n_pairs = (n_coordinates + 1) // 2
        shape = (n_rows, n_pairs)
        return NormalWords(
            n_coordinates,
            source.words(n_rows * n_pairs).reshape(shape),
            source.words(n_rows * n_pairs).reshape(shape),
        )

    def floats(self, rows: slice, factor: float, out: Array) -> Array:
        """Write factor * G into ``out`` and return bounds on the errors of a row's coordinates."""
        squares, spread, smallest, largest = _squared_radii(self.radius[rows])
        error = 2.0 * spread / np.sqrt(smallest) + _RELATIVE * np.sqrt(largest)
        radius = np.sqrt(squares, out=squares)
        radius *= factor
        self._put(radius, *turns(self.angle[rows]), out)
        bound: Array = factor * error
        return bound

    def directions(self, rows: slice, length: Array, out: Array) -> Array:
        """Write length * G / ||G|| into ``out`` and return bounds on its error, over the length."""
        squares, spread, smallest, _ = _squared_radii(self.radius[rows])
        cosine, sine = turns(self.angle[rows])
        n_pairs = squares.shape[1]
        if self.n_coordinates % 2:
            whole = squares @ np.ones(n_pairs)
            squares[:, -1] *= cosine[:, -1] ** 2
            total = squares @ np.ones(n_pairs)
            radius = np.sqrt(squares, out=squares)
            cosine[:, -1] = np.sign(cosine[:, -1])
        else:
            whole = total = squares @ np.ones(n_pairs)
            radius = np.sqrt(squares, out=squares)
        norm = np.sqrt(total)
        radius *= (length / norm)[:, None]
        self._put(radius, cosine, sine, out)
        # Norm of the error of G, by |dr| <= 2 spread / r and the part relative to r.
        error = 2.0 * spread * np.sqrt(n_pairs / smallest) + _RELATIVE * 1.001 * np.sqrt(whole)
        # ||x / ||x|| - y / ||y|||| <= 2 ||x - y|| / ||y||; a sum of n terms errs by n 2^-53,
        # its root by half of that.
        bound: Array = 2.0 * error / norm + (0.5 * n_pairs + 8.0) * UNIT
        return bound

    def _put(self, radius: Array, cosine: Array, sine: Array, out: Array) -> None:
        np.multiply(radius, cosine, out=out[:, 0::2])
        n_sines = self.n_coordinates // 2
        np.multiply(radius[:, :n_sines], sine[:, :n_sines], out=out[:, 1::2])

    def row(self, i: int) -> LazyNormals:
        """Return row ``i`` with only its first 64 bits drawn."""
        # -log(U) = -log(1 - (1 - U)), and 1 - U has the complement of every bit.
        return LazyNormals(
            self.n_coordinates,
            [LazyUniform(int(~word)) for word in self.radius[i]],
            [LazyUniform(int(word)) for word in self.angle[i]],
        )


# Error of a pair relative to its radius r: root and products, log, cosine and sine.
_RELATIVE = LOG_ERROR + TURN_ERROR + 4.0 * UNIT


def _squared_radii(words: Words) -> tuple[Array, Array, Array, Array]:
    """Return r^2 = 2 E in floats, its spread, and the least and the largest of each row.

        |dE| <= spread + LOG_ERROR E,   spread = 2^-52 + 2^-62 / U

    because U is rounded to 63 bits, then to a double: it moves by 2^-63 and 2^-53 U at most.
    """
    # Signed integers convert to floats faster.
    half = (words >> np.uint64(1)).view(np.int64)
    squares: Array = np.multiply(half, 2.0**-63, dtype=np.float64)
    np.log(squares, out=squares)
    squares *= -2.0
    smallest, largest = squares.min(axis=1), squares.max(axis=1)
    spread: Array = 2.0 * UNIT + 2.0**-62 * np.exp(0.5 * largest)
    return squares, spread, smallest, largest


@dataclass(frozen=True)
class LazyNormals:
    """One row of Gaussian numbers whose bits are drawn as needed."""

    n_coordinates: int
    radii: list[LazyUniform]
    angles: list[LazyUniform]

    def refined(self, source: Source) -> LazyNormals:
        """Return the row with 64 more bits of every uniform variable drawn."""
        radii, angles = ([u.refined(source) for u in us] for us in (self.radii, self.angles))
        return LazyNormals(self.n_coordinates, radii, angles)

    @property
    def is_interior(self) -> bool:
        """Whether every logarithm is finite."""
        return all(u.is_interior for u in self.radii)

    def coordinate(self, i: int, arithmetic: Arithmetic) -> Any:
        """Return an enclosure of coordinate ``i``."""
        return self.pair(i // 2, arithmetic)[i % 2]

    def pair(self, j: int, arithmetic: Arithmetic) -> tuple[Any, Any]:
        """Return enclosures of coordinates 2 j and 2 j + 1."""
        angle = 2 * arithmetic.context.pi * arithmetic.uniform(self.angles[j])
        cosine, sine = arithmetic.context.cos_sin(angle)
        radius = arithmetic.context.sqrt(2 * arithmetic.exponential(self.radii[j]))
        return radius * cosine, radius * sine

    def coordinates(self, arithmetic: Arithmetic) -> list[Any]:
        """Return enclosures of all coordinates."""
        pairs = [self.pair(j, arithmetic) for j in range(len(self.radii))]
        return [x for pair in pairs for x in pair][: self.n_coordinates]

    def square(self, arithmetic: Arithmetic) -> Any:
        """Return an enclosure of the sum of all squares."""
        odd = self.n_coordinates % 2
        square = 2 * arithmetic.sum_of_exponentials(self.radii[: len(self.radii) - odd])
        if odd:
            square += self.coordinate(self.n_coordinates - 1, arithmetic) ** 2
        return square


def turns(words: Words) -> tuple[Array, Array]:
    """Return float cosines and sines of 2 pi U, U in [word, word + 1) / 2^64.

    The top 12 bits choose an arc with centre a, the rest is b = 2 pi U - a, |b| <= pi / 4096:

        sin b = b - b^3 / 6,   cos b - 1 = b^2 (b^2 / 24 - 1/2)       within 2^-58 and 2^-71
        cos(a + b) = cos a + (cos a (cos b - 1) - sin a sin b),  sine alike
    """
    cosines, sines = _arcs()
    arc = (words >> np.uint64(_ANGLE_BITS)).view(np.int64)
    low = (words & _ANGLE_MASK).view(np.int64)
    low -= _HALF_ARC  # below 2^51 in size, so exact as a float
    b = low * (2.0 * np.pi * 2.0**-64)
    square = b * b
    small = square * (-1.0 / 6.0)
    small += 1.0
    small *= b
    rest = square * (1.0 / 24.0)
    rest -= 0.5
    rest *= square
    cosine, sine = cosines.take(arc, mode="clip"), sines.take(arc, mode="clip")
    change = cosine * rest
    change -= np.multiply(sine, small, out=b)
    rest *= sine
    rest += np.multiply(cosine, small, out=b)
    cosine += change
    sine += rest
    return cosine, sine


@lru_cache(maxsize=1)
def _arcs() -> tuple[Array, Array]:
    """Return cosines and sines of the arcs' centres 2 pi (k + 1/2) / 4096, rounded to nearest."""
    import mpmath

    quarter = 1 << (_ARC_BITS - 2)
    context = mpmath.mp.clone()
    context.prec = 120
    angles = [context.pi * (2 * k + 1) / (4 * quarter) for k in range(quarter)]
    cosine = np.array([float(context.cos(angle)) for angle in angles])
    sine = np.array([float(context.sin(angle)) for angle in angles])
    # Each quarter turn takes (cos, sin) to (-sin, cos).
    return (
        np.concatenate([cosine, -sine, -cosine, sine]),
        np.concatenate([sine, cosine, -sine, -cosine]),
    )
