"""Where to look for the ends of a quantile's interval: two more quantiles, farther out.

With m the true quantile of level q, the number of records below m is normal around q n with
variance S^2 = n q (1 - q). A draw of the exponential mechanism at level q - a / n has Laplace noise
in its rank, of width b = 2 Delta / epsilon. It is below m 39 times in 40 if

    P(S Z + b L > a) = 1/40        Z normal, L Laplace

(docs/proofs/inference.md, section 4).
"""

from __future__ import annotations

import math
from collections.abc import Callable

from scipy.optimize import brentq
from scipy.special import erfcx, ndtr

_TAIL = 0.025
# The grid has fewer than 2^21 + 2 points, one in which is best: one that costs so many widths more
# than the best is drawn once in 100 times at most.
_FAR = math.log(100.0 * 2**21)
_ROUNDS = 10
FINEST = 2.0**-20  # levels are fractions with a denominator of at most its inverse


def normal_laplace_tail(x: float, normal: float, laplace: float) -> float:
    """Return P(normal Z + laplace L > x), Z normal and L Laplace of mean size 1.

    Examples
    --------
    >>> from tacit.location._intervals import normal_laplace_tail
    >>> round(normal_laplace_tail(1.959964, 1.0, 1e-9), 6)
    0.025
    """
    z, ratio = x / normal, normal / laplace
    sides = _tilted(z, ratio) - _tilted(-z, ratio)
    return float(ndtr(-z)) + sides / 2


def _tilted(z: float, ratio: float) -> float:
    """Return exp(ratio^2 / 2 - ratio z) Phi(z - ratio), whatever the ratio.

    With u = (ratio - z) / sqrt(2) it is exp(-z^2 / 2) erfcx(u) / 2, where u is not negative.
    """
    if z > ratio:
        return math.exp(ratio * (ratio / 2 - z)) * float(ndtr(z - ratio))
    return math.exp(-(z**2) / 2) * float(erfcx((ratio - z) / math.sqrt(2))) / 2


def lower_level(level: float, n: float, width: Callable[[float], float]) -> float | None:
    """Return the level whose draw is below the quantile 39 times in 40; None if no level is.

    Parameters
    ----------
    level
        Of the quantile.
    n
        The number of records, as far as it is known.
    width
        The width of the noise in ranks, at a level.
    """
    spread, low = math.sqrt(n * level * (1 - level)), level
    for _ in range(_ROUNDS):  # the noise depends on the level, a little
        b = width(low)
        low = level - _away(spread, b) / n
        # A draw above all records costs n (1 - low) ranks.
        if low < FINEST or n * (1 - low) < _FAR * b:
            return None
    return low


def _away(normal: float, laplace: float) -> float:
    """Return what normal Z + laplace L is above once in 40 times."""
    most = 9 * (normal + laplace)
    return float(brentq(lambda x: normal_laplace_tail(x, normal, laplace) - _TAIL, 0.0, most))
