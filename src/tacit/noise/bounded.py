"""Pair a value computed from records with its sensitivity."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit import checks
from tacit.arrays import Array
from tacit.privacy.budget import Relation, checked_relation

# Larger values could overflow once divided by the lattice spacing.
LARGEST_VALUE = 2.0**500


class Norm(Enum):
    """The norm in which a sensitivity is stated.

    Examples
    --------
    >>> from tacit.noise import Norm
    >>> Norm.L2.length([3.0, 4.0])
    5.0
    """

    L1 = "l1"
    L2 = "l2"
    LINF = "linf"

    def length(self, vector: npt.ArrayLike) -> float:
        """Return the norm of ``vector``, all axes taken together."""
        size = np.abs(np.asarray(vector, dtype=np.float64)).ravel()
        if self is Norm.L1:
            return float(size.sum())
        largest = float(size.max(initial=0.0))
        if self is Norm.LINF or largest == 0.0:
            return largest
        return largest * float(np.sqrt(np.sum((size / largest) ** 2)))


@dataclass(frozen=True, eq=False)
class Bounded:
    """A value and its sensitivity: the only input that a noise mechanism accepts.

    Parameters
    ----------
    value : float or array of floats
        The value computed from the records. Finite, at most 2^500 in size. An array may have any
        shape; norms take all its coordinates together.
    sensitivity : float
        The most that the value moves, in ``norm``, between two data sets that are neighbours under
        ``relation``.
    norm : Norm
        The norm of the sensitivity.
    relation : Relation
        Relation of the neighbours.

    Notes
    -----
    **Guarantee**

    1. ``value`` is a float or a float64 array, with every coordinate finite.
    2. ``sensitivity`` is finite and above zero.

    **Assumes** that the sensitivity is true. Sums made by `bounded_sum` have a proved sensitivity;
    `tacit.testing.replay` checks any other on chosen neighbours.

    Examples
    --------
    >>> from tacit.noise import Norm
    >>> from tacit.noise.bounded import Bounded
    >>> from tacit.privacy import Relation
    >>> count = Bounded(120.0, sensitivity=1.0, norm=Norm.L1, relation=Relation.ADD_REMOVE)
    >>> count.n_coordinates
    1
    """

    value: float | Array
    sensitivity: float
    norm: Norm
    relation: Relation

    def __post_init__(self) -> None:
        sensitivity = checks.positive(
            "sensitivity",
            self.sensitivity,
            remedy="pass the most that one record can move the value; a value that no record can "
            "move is public and needs no noise.",
        )
        if not isinstance(self.norm, Norm):
            raise TypeError(f"norm must be a Norm, got {self.norm!r}; pass Norm.L1, L2 or LINF.")
        checked_relation(self.relation)
        object.__setattr__(self, "sensitivity", sensitivity)
        object.__setattr__(self, "value", _as_floats(self.value))

    @property
    def n_coordinates(self) -> int:
        """Number of coordinates of the value."""
        return self.value.size if isinstance(self.value, np.ndarray) else 1


def round_up(value: float) -> float:
    """Return the next double above, since a product or quotient may have been rounded down."""
    return math.nextafter(value, math.inf)


def _as_floats(value: Any) -> float | Array:
    if isinstance(value, np.ndarray) and value.ndim > 0:
        if value.dtype.kind != "f" or value.dtype.itemsize > 8:
            raise TypeError(
                f"value has dtype {value.dtype}, which may not convert to float64 exactly, and "
                "a rounded value can move further than its sensitivity; convert it where the "
                "sensitivity is derived, with value.astype(np.float64)."
            )
        array: Array = value.astype(np.float64, copy=False)
        if array.size == 0:
            raise ValueError("value is empty: there is nothing to release; pass at least one.")
        largest = float(np.max(np.abs(array)))
    else:
        number = value.item() if isinstance(value, np.ndarray) else value
        if isinstance(number, bool) or not isinstance(number, Real):
            raise TypeError(
                f"value must be a float or a float64 array, got {type(value).__name__}; "
                "convert it with float(...) or np.asarray(..., dtype=np.float64)."
            )
        array = np.float64(number)  # type: ignore[assignment]
        largest = abs(float(number))
        if largest <= LARGEST_VALUE and float(number) != number:
            raise ValueError("value is not a double; round it where the sensitivity is derived.")
    if not largest <= LARGEST_VALUE:
        raise ValueError(
            "value has a coordinate that is not finite or is above 2^500, so no noise can hide "
            "it; clip the records before summing them."
        )
    return float(array) if not isinstance(array, np.ndarray) else array


def check_norm(bounded: Bounded, mechanism: str, allowed: tuple[Norm, ...]) -> None:
    """Raise if a sensitivity is stated in a norm that the mechanism cannot use.

    All norms of a single number are equal, so one coordinate may use any norm.
    """
    if not isinstance(bounded, Bounded):
        raise TypeError(
            f"{mechanism} accepts a Bounded, got {type(bounded).__name__}; wrap the value with "
            "its sensitivity: Bounded(value, sensitivity, norm, relation)."
        )
    if bounded.norm not in allowed and bounded.n_coordinates > 1:
        names = " or ".join(f"Norm.{norm.name}" for norm in allowed)
        raise ValueError(
            f"{mechanism} needs a sensitivity in {names}, got Norm.{bounded.norm.name} for "
            f"{bounded.n_coordinates} coordinates; derive the sensitivity in {names}, or use a "
            "mechanism made for this norm."
        )
