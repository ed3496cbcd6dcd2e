"""Check arguments: each error names the parameter, its value and the remedy."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from numbers import Integral, Real
from typing import Any, ParamSpec, TypeVar

import numpy as np

from tacit.arrays import Array

T = TypeVar("T")
P = ParamSpec("P")


def number(name: str, value: object, *, remedy: str = "") -> float:
    """Return ``value`` as a float, NaN allowed; raise if it is not a number."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(
            f"{name} must be a real number, got {value!r} ({type(value).__name__}); "
            f"{remedy or f'pass a float such as {name}=1.0.'}"
        )
    return float(value)


def real(name: str, value: object) -> float:
    """Return ``value`` as a float; raise if it is NaN."""
    found = number(name, value)
    if math.isnan(found):
        raise ValueError(f"{name} is NaN, which bounds nothing; pass the number you vouch for.")
    return found


def positive(
    name: str,
    value: object,
    *,
    remedy: str = "pass a number above 0.",
    least: float = 0.0,
    most: float = math.inf,
) -> float:
    """Return ``value``; raise unless it is finite, above zero, and from ``least`` to ``most``."""
    found = number(name, value, remedy=remedy)
    if not (0.0 < found < math.inf and least <= found <= most):
        span = "" if (least, most) == (0.0, math.inf) else f", from {least:g} to {most:g}"
        raise ValueError(f"{name} must be positive and finite{span}, got {found!r}; {remedy}")
    return found


def above_zero(name: str, value: object, *, remedy: str = "pass a number above 0.") -> float:
    """Return ``value``; raise unless it is above zero, infinity allowed."""
    found = real(name, value)
    if found <= 0.0:
        raise ValueError(f"{name} must be above 0, got {found!r}: {remedy}")
    return found


def at_least(name: str, value: object, least: float) -> float:
    """Return ``value``; raise unless it is finite and at least ``least``."""
    found = real(name, value)
    if not least <= found < math.inf:
        raise ValueError(f"{name} must be finite and at least {least:g}, got {found!r}.")
    return found


def count(
    name: str,
    value: object,
    *,
    least: int = 1,
    most: int | None = None,
    remedy: str = "pass an int.",
) -> int:
    """Return ``value``; raise unless it is an integer from ``least`` to ``most``."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f"{name} must be a whole number, got {value!r}; {remedy}")
    found = int(value)
    if found < least or (most is not None and found > most):
        span = f"at least {least}" if most is None else f"in [{least}, {most}]"
        raise ValueError(f"{name} must be {span}, got {found}; {remedy}")
    return found


def flag(name: str, value: object) -> bool:
    """Return ``value``; raise unless it is True, False, 1 or 0: a text such as "no" is true."""
    if not isinstance(value, bool | np.bool_ | Integral) or value not in (0, 1):
        raise TypeError(f"{name} must be True or False, got {value!r}.")
    return bool(value)


def keep_plain_numbers(record: Any) -> None:
    """Convert numbers of a frozen dataclass to Python's: a NumPy int8 overflows when squared."""
    for name, value in vars(record).items():
        if isinstance(value, Real) and not isinstance(value, bool):
            plain = int(value) if isinstance(value, Integral) else float(value)
            object.__setattr__(record, name, plain)


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


def epsilon(value: object) -> float:
    """Return a budget's epsilon; raise unless it is above zero, infinity allowed."""
    return above_zero(
        "epsilon",
        value,
        remedy="already at 0 the output may not depend on the data at all; pass a positive "
        "number, or math.inf for no privacy.",
    )


def finite_epsilon(value: object) -> float:
    """Return a mechanism's epsilon; raise unless it is positive and finite."""
    return positive(
        "epsilon",
        value,
        remedy="noise needs a finite positive epsilon: calibrate it to a Budget, or release the "
        "value outside this package and record NonPrivate(reason=...).",
    )


def delta(value: object) -> float:
    """Return delta; raise unless it is in [0, 1)."""
    found = real("delta", value)
    if not 0.0 <= found < 1.0:
        raise ValueError(
            f"delta must be in [0, 1), got {found!r}: it is the probability with which the "
            "promise may fail, so choose one far below 1 / (number of records), such as 1e-6."
        )
    return found


_SEARCH = {"space": "param_distributions", "n_candidates": "n_iter"}
# Parameters of tacit 0.1 by class, and what they are called now (docs/renamed.md).
RENAMED: Mapping[str, Mapping[str, str]] = {
    "DisjointSearch": _SEARCH,
    "PrivateSearch": {**_SEARCH, "score": "scoring"},
    "Scattering": {"centred": "centered"},
    "private_score": {"estimator": "model", "labels": "y", "people": "unit", "rows": "X"},
}


def names_of_today(init: Callable[P, T]) -> Callable[P, T]:
    """Make a function that is given a parameter by its old name say the new one.

    scikit-learn finds the parameters of today: it reads the signature of what is wrapped.
    """
    renamed = RENAMED[init.__qualname__.split(".")[0]]

    @functools.wraps(init)
    def checked(*args: P.args, **kwargs: P.kwargs) -> T:
        for old in renamed.keys() & kwargs.keys():
            raise TypeError(f"{old} is called {renamed[old]} since tacit 0.2.")
        return init(*args, **kwargs)

    return checked
