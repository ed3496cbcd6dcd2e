"""Define the public search space: lists of values, and laws of numbers."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from tacit import checks

Candidates = tuple[dict[str, Any], ...]


@runtime_checkable
class Law(Protocol):
    """The law of a number, or of a function of one, by its quantiles."""

    def quantile(self, u: float) -> Any:
        """Return the ``u``-quantile."""


@dataclass(frozen=True)
class Uniform:
    """The uniform law on [low, high].

    Examples
    --------
    >>> from tacit.tuning import Uniform
    >>> Uniform(0.0, 10.0).quantile(0.5)
    5.0
    """

    low: float
    high: float

    def __post_init__(self) -> None:
        if not checks.real("low", self.low) < checks.real("high", self.high) < math.inf:
            raise ValueError(f"low must be below high, got {self.low!r} and {self.high!r}.")

    def quantile(self, u: float) -> float:
        """Return low + u (high - low)."""
        return self.low + u * (self.high - self.low)


@dataclass(frozen=True)
class LogUniform:
    """The law on [low, high] whose logarithm is uniform.

    Examples
    --------
    >>> from tacit.tuning import LogUniform
    >>> round(LogUniform(0.01, 100.0).quantile(0.5), 9)
    1.0
    """

    low: float
    high: float

    def __post_init__(self) -> None:
        low, high = checks.positive("low", self.low), checks.positive("high", self.high)
        if not low < high:
            raise ValueError(f"low must be below high, got {low!r} and {high!r}.")

    def quantile(self, u: float) -> float:
        """Return low (high / low)^u."""
        return self.low * math.exp(u * math.log(self.high / self.low))


@dataclass(frozen=True)
class Made:
    """A function of a number with a law, such as a kernel of its bandwidth.

    Examples
    --------
    >>> from tacit.features import GaussianKernel
    >>> from tacit.tuning import Made, Uniform
    >>> Made(GaussianKernel, Uniform(0.0, 4.0)).quantile(0.5)
    GaussianKernel(bandwidth=2.0)
    """

    make: Callable[[float], Any]
    law: Law

    def __post_init__(self) -> None:
        if not callable(self.make) or not isinstance(self.law, Law):
            raise TypeError(
                f"Made takes a function and a law such as LogUniform(0.1, 10), got {self.make!r} "
                f"and {self.law!r}."
            )

    def quantile(self, u: float) -> Any:
        """Return the function of the law's quantile."""
        return self.make(self.law.quantile(u))


def candidates(space: Mapping[str, Any], most: int) -> Candidates:
    """Return the configurations of a space: all of them, or ``most`` spread evenly.

    Candidates are fixed in advance and public, so that each can be planned; a run draws one.
    Points of a Kronecker sequence represent a space with laws, or with more than ``most``
    combinations of lists.

    Examples
    --------
    >>> from tacit.tuning.space import candidates
    >>> len(candidates({"a": [1, 2, 3], "b": ["x", "y"]}, most=32))
    6
    """
    checks.count("n_iter", most, least=2)
    if not isinstance(space, Mapping) or not space:
        raise ValueError(
            "param_distributions must name at least one parameter and what to try for it, got "
            f"{space!r}."
        )
    for name, values in space.items():
        _check_values(name, values)
    lists = [values for values in space.values() if not isinstance(values, Law)]
    if len(lists) == len(space) and math.prod(map(len, lists)) <= most:
        return tuple(dict(zip(space, values, strict=True)) for values in itertools.product(*lists))
    return tuple(_point(space, i) for i in range(most))


def _check_values(name: str, values: Any) -> None:
    if isinstance(values, Law):
        return
    if isinstance(values, str | bytes) or not isinstance(values, Sequence) or not values:
        raise ValueError(
            f"param_distributions[{name!r}] must be a list of values to try, or a law such as "
            f"LogUniform(0.1, 10), got {values!r}."
        )


def _point(space: Mapping[str, Any], i: int) -> dict[str, Any]:
    """Return the i-th point: fractional parts of (i + 1/2) g^-1, g^-2, ..., g^(d+1) = g + 1."""
    g = 2.0
    for _ in range(60):
        g = (1.0 + g) ** (1.0 / (len(space) + 1))
    found = {}
    for k, (name, values) in enumerate(space.items(), start=1):
        u = ((i + 0.5) * g**-k) % 1.0
        found[name] = (
            values.quantile(u) if isinstance(values, Law) else values[int(u * len(values))]
        )
    return found
