"""Define feasible sets: projection, membership and radius."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from tacit import checks
from tacit.arrays import Array

_SLACK = 1e-9  # relative tolerance of membership, far above the rounding of a projection
_SIZE = "pass the size of the set, such as 1.0, or use WholeSpace() for no constraint."


@runtime_checkable
class FeasibleSet(Protocol):
    """A convex set of weights."""

    def project(self, weights: Array) -> Array:
        """Return the nearest point of the set."""

    def contains(self, weights: Array) -> bool:
        """Return whether a point is in the set, up to rounding."""

    def radius(self, dimension: int) -> float:
        """Return the greatest norm of a point of the set."""


@dataclass(frozen=True)
class WholeSpace:
    """No constraint.

    Examples
    --------
    >>> from tacit.erm import WholeSpace
    >>> WholeSpace().radius(3)
    inf
    """

    def project(self, weights: Array) -> Array:
        """Return the point itself."""
        return weights

    def contains(self, weights: Array) -> bool:
        """Return True."""
        return True

    def radius(self, dimension: int) -> float:
        """Return infinity."""
        return math.inf


@dataclass(frozen=True)
class _Ball:
    """A ball of some norm around 0, inside the Euclidean ball of the same radius, touching it."""

    bound: float

    def __post_init__(self) -> None:
        checks.positive("bound", self.bound, remedy=_SIZE)

    def radius(self, dimension: int) -> float:
        """Return the bound."""
        return self.bound


@dataclass(frozen=True)
class L2Ball(_Ball):
    """Points of norm at most ``bound``.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.erm import L2Ball
    >>> L2Ball(1.0).project(np.array([3.0, 4.0]))
    array([0.6, 0.8])
    """

    def project(self, weights: Array) -> Array:
        """Scale the weights down to the sphere."""
        size = float(np.linalg.norm(weights))
        return weights if size <= self.bound else weights * (self.bound / size)

    def contains(self, weights: Array) -> bool:
        """Compare the norm with the bound."""
        return float(np.linalg.norm(weights)) <= self.bound * (1 + _SLACK)


@dataclass(frozen=True)
class L1Ball(_Ball):
    """Points whose absolute entries sum to at most ``bound``.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.erm import L1Ball
    >>> L1Ball(1.0).project(np.array([3.0, 1.0]))
    array([1., 0.])
    """

    def project(self, weights: Array) -> Array:
        """Soft-threshold (Duchi et al. 2008)."""
        if np.abs(weights).sum() <= self.bound:
            return weights
        size = _onto_simplex(np.abs(weights).ravel(), self.bound).reshape(weights.shape)
        return np.sign(weights) * size

    def contains(self, weights: Array) -> bool:
        """Compare the sum of absolute entries with the bound."""
        return float(np.abs(weights).sum()) <= self.bound * (1 + _SLACK)


@dataclass(frozen=True)
class Box:
    """Points with every entry between ``low`` and ``high``.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.erm import Box
    >>> Box(0.0, 1.0).project(np.array([3.0, -4.0]))
    array([1., 0.])
    """

    low: float
    high: float

    def __post_init__(self) -> None:
        if not -math.inf < self.low < self.high < math.inf:
            raise ValueError(
                f"a box needs finite low < high, got ({self.low!r}, {self.high!r}); pass the least "
                "and greatest weight, such as Box(-1.0, 1.0)."
            )

    def project(self, weights: Array) -> Array:
        """Clip every entry."""
        return np.clip(weights, self.low, self.high)

    def contains(self, weights: Array) -> bool:
        """Compare every entry."""
        slack = _SLACK * (self.high - self.low)
        return bool(np.all((weights >= self.low - slack) & (weights <= self.high + slack)))

    def radius(self, dimension: int) -> float:
        """Return the norm of the farthest corner."""
        return max(abs(self.low), abs(self.high)) * math.sqrt(dimension)


@dataclass(frozen=True)
class Simplex:
    """Points with non-negative entries that sum to ``total``.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.erm import Simplex
    >>> Simplex().project(np.array([0.6, 0.6]))
    array([0.5, 0.5])
    """

    total: float = 1.0

    def __post_init__(self) -> None:
        checks.positive("total", self.total, remedy=_SIZE)

    def project(self, weights: Array) -> Array:
        """Subtract a threshold and cut at zero."""
        return _onto_simplex(weights.ravel(), self.total).reshape(weights.shape)

    def contains(self, weights: Array) -> bool:
        """Check signs and sum."""
        near = abs(float(weights.sum()) - self.total) <= _SLACK * self.total
        return near and bool(np.all(weights >= -_SLACK * self.total))

    def radius(self, dimension: int) -> float:
        """Return the total, the norm of a vertex."""
        return self.total


def _onto_simplex(weights: Array, total: float) -> Array:
    """Project onto the simplex by sorting (Held, Wolfe and Crowder 1974)."""
    # Adding a constant to all entries does not change the projection. Without the shift, large
    # entries would make ``total`` vanish in rounding.
    weights = weights - weights.max()
    ordered = np.sort(weights)[::-1]
    excess = (np.cumsum(ordered) - total) / np.arange(1, weights.size + 1)
    last = np.flatnonzero(ordered > excess)[-1]
    projected: Array = np.maximum(weights - excess[last], 0.0)
    return projected
