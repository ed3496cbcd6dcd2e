"""The one home of argument checks for promises: each error names the remedy."""

from __future__ import annotations

import math
from numbers import Integral, Real

from tacit.privacy.relation import Relation


def real(name: str, value: object) -> float:
    """Return ``value`` as a float, or say that it is not a number."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(
            f"{name} must be a real number, got {value!r} ({type(value).__name__}); "
            f"pass a float such as {name}=1.0."
        )
    number = float(value)
    if math.isnan(number):
        raise ValueError(f"{name} is NaN, which bounds nothing; pass the number you vouch for.")
    return number


def positive(name: str, value: object, *, remedy: str) -> float:
    """Return ``value`` if it is a finite number above zero."""
    number = real(name, value)
    if not 0.0 < number < math.inf:
        raise ValueError(f"{name} must be positive and finite, got {number!r}; {remedy}")
    return number


def count(name: str, value: object, *, least: int = 1) -> int:
    """Return ``value`` if it is a whole number of at least ``least``."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f"{name} must be a whole number, got {value!r}; pass an int.")
    number = int(value)
    if number < least:
        raise ValueError(f"{name} must be at least {least}, got {number}.")
    return number


def epsilon(value: object) -> float:
    """Return a budget's epsilon: above zero, infinity allowed."""
    number = real("epsilon", value)
    if number <= 0.0:
        raise ValueError(
            f"epsilon must be above 0, got {number!r}: zero epsilon means the output may not "
            "depend on the data at all; pass a positive number, or math.inf for no privacy."
        )
    return number


def delta(value: object, *, least: float = 0.0) -> float:
    """Return delta if it is in [least, 1)."""
    number = real("delta", value)
    if not least <= number < 1.0:
        raise ValueError(
            f"delta must be in [{least:g}, 1), got {number!r}: it is the probability with which "
            "the promise may fail, so choose one far below 1 / (number of records), such as 1e-6."
        )
    return number


def relation(value: object) -> Relation:
    """Return ``value`` if it is a Relation."""
    if not isinstance(value, Relation):
        raise TypeError(
            f"relation must be a tacit.privacy.Relation, got {value!r}; "
            "pass Relation.ADD_REMOVE or Relation.REPLACE."
        )
    return value
