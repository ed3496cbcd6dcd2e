"""The one home of argument checks for local privacy: each error names the remedy."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]


def real(name: str, value: object) -> float:
    """Return ``value`` as a float, or say that it is not a number."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name} must be a real number, got {value!r}; pass a float.")
    number = float(value)
    if math.isnan(number):
        raise ValueError(f"{name} is NaN; pass a number.")
    return number


def positive(name: str, value: object, *, allow_infinite: bool = False) -> float:
    """Return ``value`` if it is above zero, and finite unless infinity is allowed."""
    number = real(name, value)
    if number <= 0.0 or (math.isinf(number) and not allow_infinite):
        kind = "above 0" if allow_infinite else "positive and finite"
        raise ValueError(f"{name} must be {kind}, got {number!r}.")
    return number


def at_least(name: str, value: object, least: float) -> float:
    """Return ``value`` if it is finite and at least ``least``."""
    number = real(name, value)
    if not least <= number < math.inf:
        raise ValueError(f"{name} must be finite and at least {least:g}, got {number!r}.")
    return number


def count(name: str, value: object, *, least: int = 1) -> int:
    """Return ``value`` if it is a whole number of at least ``least``."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f"{name} must be a whole number, got {value!r}; pass an int.")
    number = int(value)
    if number < least:
        raise ValueError(f"{name} must be at least {least}, got {number}.")
    return number


def vector(name: str, value: Any, n_features: int) -> Array:
    """Return ``value`` as a finite float64 vector of ``n_features`` numbers."""
    array = np.asarray(value)
    if array.dtype.kind not in "fiu" or array.shape != (n_features,):
        raise ValueError(
            f"{name} must be {n_features} real numbers, got dtype {array.dtype} and shape "
            f"{array.shape}."
        )
    floats: Array = np.ascontiguousarray(array, dtype=np.float64)
    if not np.all(np.isfinite(floats)):
        raise ValueError(f"{name} has a coordinate that is not finite; it is refused.")
    return floats
