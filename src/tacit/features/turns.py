"""Cosines and sines of whole turns: the cost of random Fourier features.

    x = cos(2 pi t), y = sin(2 pi t)

With r = t - round(t), of size at most 1/2, s = sin(pi r) and c = cos(pi r) by their Taylor series
of 11 terms, whose rest is below 3e-17, and x = 1 - 2 s^2, y = 2 s c. Rounding to the nearest turn
is exact, so that there is nothing to reduce, and every operation is on one number at a time: the
compiled loop and NumPy give the same bits, whatever stands around a number.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

# t + _WHOLE - _WHOLE is t rounded to a whole number, for |t| <= 2^51.
_WHOLE = 1.5 * 2.0**52
_TERMS = 11
_SIN = tuple((-1) ** k * math.pi ** (2 * k + 1) / math.factorial(2 * k + 1) for k in range(_TERMS))
_COS = tuple((-1) ** k * math.pi ** (2 * k) / math.factorial(2 * k) for k in range(_TERMS))
# Compiling takes about as long as so many numbers do without.
WORTH_COMPILING = 1 << 26
# Rows at a time without a compiler: what they need stays in the cache.
_TILE = 1 << 14


def waves(turns: Array, length: float, out: Array, *, compiled: bool = False) -> None:
    """Write ``length`` times the cosines, then the sines, of every row of ``turns`` to ``out``.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.features.turns import waves
    >>> out = np.empty((1, 4))
    >>> waves(np.array([[0.0, 7.25]]), 2.0, out)
    >>> out.round(12)
    array([[2., 0., 0., 2.]])
    """
    loop = _compiled() if compiled else None
    (loop or _plain)(turns, length, out)


def _plain(turns: Array, length: float, out: Array) -> None:
    n, half = turns.shape
    step = max(1, _TILE // max(half, 1))
    for start in range(0, n, step):
        t, at = turns[start : start + step], slice(start, start + step)
        r = t + _WHOLE
        r -= _WHOLE
        np.subtract(t, r, out=r)
        square = r * r
        s = _series(_SIN, square)
        s *= r
        c = _series(_COS, square)
        c *= s
        c *= 2.0
        np.multiply(c, length, out=out[at, half:])
        s *= s
        s *= 2.0
        np.subtract(1.0, s, out=s)
        np.multiply(s, length, out=out[at, :half])


def _series(coefficients: tuple[float, ...], square: Array) -> Array:
    total = square * coefficients[-1]
    for coefficient in coefficients[-2:0:-1]:
        total += coefficient
        total *= square
    total += coefficients[0]
    return total


@lru_cache(maxsize=1)
def _compiled() -> Callable[[Array, float, Array], None] | None:
    """Return the same loop in machine code, or None without numba (the extra ``fast``)."""
    try:
        from numba import njit
    except ImportError:
        return None
    s0, s1, s2, s3, s4, s5, s6, s7, s8, s9, s10 = _SIN
    c0, c1, c2, c3, c4, c5, c6, c7, c8, c9, c10 = _COS
    whole = _WHOLE

    # Horner written out, and each half of a row by itself: so the loop becomes vector code.
    def loop(turns: Array, length: float, out: Array) -> None:
        n, half = turns.shape
        for i in range(n):
            t, x, y = turns[i], out[i, :half], out[i, half:]
            for j in range(half):
                r = t[j] - ((t[j] + whole) - whole)
                z = r * r
                s = ((((s10 * z + s9) * z + s8) * z + s7) * z + s6) * z + s5
                s = ((((s * z + s4) * z + s3) * z + s2) * z + s1) * z + s0
                s = s * r
                c = ((((c10 * z + c9) * z + c8) * z + c7) * z + c6) * z + c5
                c = ((((c * z + c4) * z + c3) * z + c2) * z + c1) * z + c0
                x[j] = (1.0 - s * s * 2.0) * length
                y[j] = c * s * 2.0 * length

    function: Callable[[Array, float, Array], None] = njit(nogil=True)(loop)
    return function
