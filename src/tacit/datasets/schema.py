"""Public schemas: how a table becomes rows of numbers without looking at the other records.

Each class encodes one column of a table and knows the names of the features it makes. A schema
is a tuple of them, written with literals.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Table = npt.NDArray[np.void]


class Feature(Protocol):
    """One column of a table, encoded."""

    @property
    def column(self) -> str:
        """The column of the table."""

    def names(self) -> list[str]:
        """Return the names of the features."""

    def encode(self, values: npt.NDArray[Any]) -> Array:
        """Return one row of features per value."""


@dataclass(frozen=True)
class OneHot:
    """One feature per category; a value outside the categories gives zeros.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.datasets.schema import OneHot
    >>> OneHot("sex", ("Female", "Male")).encode(np.array(["Male", "?"]))
    array([[0., 1.],
           [0., 0.]])
    """

    column: str
    categories: tuple[str, ...]

    def names(self) -> list[str]:
        """Return "column=category" for each."""
        return [f"{self.column}={category}" for category in self.categories]

    def encode(self, values: npt.NDArray[Any]) -> Array:
        """Compare every value with every category."""
        return np.asarray(values[:, None] == np.array(self.categories), dtype=np.float64)


@dataclass(frozen=True)
class Intervals:
    """One feature per interval below cut 0, from cut 0 to below cut 1, ..., from the last cut.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.datasets.schema import Intervals
    >>> Intervals("age", (20.0, 25.0)).encode(np.array([19.0, 20.0, 80.0]))
    array([[1., 0., 0.],
           [0., 1., 0.],
           [0., 0., 1.]])
    """

    column: str
    cuts: tuple[float, ...]

    def names(self) -> list[str]:
        """Return "column<first cut", then "column>=cut" for the cut each interval starts at."""
        return [f"{self.column}<{self.cuts[0]:g}", *(f"{self.column}>={c:g}" for c in self.cuts)]

    def encode(self, values: npt.NDArray[Any]) -> Array:
        """Mark the interval each value lies in."""
        found = np.searchsorted(self.cuts, values, side="right")
        return np.asarray(found[:, None] == np.arange(len(self.cuts) + 1), dtype=np.float64)


@dataclass(frozen=True)
class Scaled:
    """A number clipped to [low, high] and mapped to [0, 1].

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.datasets.schema import Scaled
    >>> Scaled("hours", 0.0, 50.0).encode(np.array([10.0, 99.0]))
    array([[0.2],
           [1. ]])
    """

    column: str
    low: float
    high: float

    def names(self) -> list[str]:
        """Return the column's own name."""
        return [self.column]

    def encode(self, values: npt.NDArray[Any]) -> Array:
        """(clip(v) - low) / (high - low)."""
        clipped = np.clip(values, self.low, self.high)
        return np.asarray((clipped - self.low) / (self.high - self.low), dtype=np.float64)[:, None]


@dataclass(frozen=True)
class LogScaled:
    """A count clipped to [0, high] and mapped to [0, 1] by its logarithm.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.datasets.schema import LogScaled
    >>> LogScaled("bytes", 99.0).encode(np.array([0.0, 9.0, 1e6]))
    array([[0. ],
           [0.5],
           [1. ]])
    """

    column: str
    high: float

    def names(self) -> list[str]:
        """Return "log column"."""
        return [f"log {self.column}"]

    def encode(self, values: npt.NDArray[Any]) -> Array:
        """log(1 + clip(v)) / log(1 + high)."""
        clipped = np.clip(values, 0.0, self.high)
        return np.asarray(np.log1p(clipped) / np.log1p(self.high), dtype=np.float64)[:, None]


def encode(table: Table, schema: Sequence[Feature]) -> Array:
    """Return the rows of a table, encoded.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.datasets.schema import OneHot, Scaled, encode
    >>> table = np.array([(30.0, "Male")], dtype=[("age", "f8"), ("sex", "U6")])
    >>> encode(table, (Scaled("age", 0.0, 100.0), OneHot("sex", ("Female", "Male"))))
    array([[0.3, 0. , 1. ]])
    """
    return np.hstack([feature.encode(table[feature.column]) for feature in schema])


def feature_names(schema: Sequence[Feature]) -> tuple[str, ...]:
    """Return the names of all features of a schema, in the order of the columns."""
    return tuple(name for feature in schema for name in feature.names())
