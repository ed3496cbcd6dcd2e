"""The one home of argument checks for noise: each error names the remedy."""

from __future__ import annotations

import math
from numbers import Integral, Real


def positive(name: str, value: object, *, remedy: str) -> float:
    """Return ``value`` as a float if it is a finite number above zero."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(
            f"{name} must be a real number, got {value!r} ({type(value).__name__}); {remedy}"
        )
    number = float(value)
    if not 0.0 < number < math.inf:
        raise ValueError(f"{name} must be positive and finite, got {number!r}; {remedy}")
    return number


def count(name: str, value: object, *, least: int, most: int, remedy: str) -> int:
    """Return ``value`` if it is a whole number in [least, most]."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f"{name} must be a whole number, got {value!r}; {remedy}")
    number = int(value)
    if not least <= number <= most:
        raise ValueError(f"{name} must be in [{least}, {most}], got {number}; {remedy}")
    return number


def epsilon(value: object) -> float:
    """Return a mechanism's epsilon: positive and finite."""
    return positive(
        "epsilon",
        value,
        remedy="noise needs a finite positive epsilon: calibrate it to a Budget, or release the "
        "value outside this package and record NonPrivate(reason=...).",
    )


def round_up(value: float) -> float:
    """Return the next double above: a product or quotient of doubles may have been rounded down."""
    return math.nextafter(value, math.inf)
