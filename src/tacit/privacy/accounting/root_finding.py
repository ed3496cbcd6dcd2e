"""Solve for the zero of a decreasing function, rounded to the side where it is not positive."""

from __future__ import annotations

import math
from collections.abc import Callable

_FLOOR = -1e3  # stands for minus infinity, the logarithm of delta = 0; the solver needs a number


def decreasing_root(
    function: Callable[[float], float],
    guess: float,
    relative_tolerance: float = 1e-13,
    spread: float = 1.0,
) -> float:
    """Return x > 0 with function(x) <= 0, at most ``relative_tolerance`` above the crossing.

    Parameters
    ----------
    function
        Decreasing in x; may return infinities.
    guess
        A positive starting point.
    spread
        How far off the guess may be, relatively; the bracket starts that wide and grows.

    Returns
    -------
    float
        ``math.inf`` if no crossing exists below 1e100.

    Examples
    --------
    >>> from tacit.privacy.accounting.root_finding import decreasing_root
    >>> round(decreasing_root(lambda x: 2.0 - x, 1.0), 9)
    2.0
    """
    from scipy.optimize import brentq

    def clipped(x: float) -> float:
        value = function(x)
        if math.isnan(value):
            raise ArithmeticError(f"a cost is NaN at {x!r}: refusing to guess.")
        return min(max(value, _FLOOR), -_FLOOR)

    low = high = guess
    at_low = at_high = clipped(guess)
    factor = 1.0 + spread
    while at_high > 0.0:
        low, at_low = high, at_high
        high *= factor
        factor = min(factor**3, 1e6)
        if high > 1e100:
            return math.inf
        at_high = clipped(high)
    factor = 1.0 + spread
    while at_low <= 0.0:
        high, at_high = low, at_low
        low /= factor
        factor = min(factor**3, 1e6)
        if low < 1e-100:
            return high
        at_low = clipped(low)
    root = float(brentq(clipped, low, high, xtol=1e-300, rtol=max(relative_tolerance, 1e-14)))
    # Brent's answer may lie on either side: step to the side where the function is not positive.
    step = relative_tolerance / 4
    while clipped(root) > 0.0:
        root = min(root * (1.0 + step), high)
        step *= 2.0
    return root
