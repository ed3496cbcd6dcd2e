"""Public schemas of data sets, in the words of `tacit.preprocessing`.

A schema here is a tuple of columns, written with literals: `OneHot` and `Intervals` are
preprocessing's own, and `Scaled` and `LogScaled` are numbers on two scales, from 0 to 1 as in
published results.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from tacit.preprocessing import Category as OneHot
from tacit.preprocessing import Column as Feature
from tacit.preprocessing import ColumnCheck, Intervals, Number, encode_rows

__all__ = [
    "Feature",
    "FromZero",
    "Intervals",
    "LogScaled",
    "OneHot",
    "Scaled",
    "encode",
    "feature_names",
]

Array = npt.NDArray[np.float64]
Table = npt.NDArray[np.void]


@dataclass(frozen=True)
class FromZero:
    """A number as preprocessing encodes it, moved to [0, 1].

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.datasets.schema import FromZero
    >>> from tacit.preprocessing import Number
    >>> FromZero(Number("hours", 0, 50)).encode(np.array([0.0, 50.0]))
    array([[0.],
           [1.]])
    """

    kind: ClassVar[str] = "number from zero"
    number: Number
    largest: ClassVar[float] = 1.0

    @property
    def name(self) -> str:
        """The column's name in the table."""
        return self.number.name

    def names(self) -> list[str]:
        """Return the name of its feature."""
        return self.number.names()

    def ranges(self) -> list[tuple[float, float]]:
        """Return the range of its feature."""
        return [(0.0, 1.0)]

    def write(self, values: Any, out: npt.NDArray[Any]) -> None:
        """Scale."""
        self.number.write(values, out)
        out += 0.5

    def check(self, values: Any) -> ColumnCheck:
        """Count what is missing, no number, or outside the range."""
        return self.number.check(values)

    def encode(self, values: npt.NDArray[Any]) -> Array:
        """Return the feature of an array of values."""
        return self.number.encode(values) + 0.5


def Scaled(column: str, low: float, high: float) -> FromZero:  # noqa: N802
    """Return a number clipped to [low, high] and mapped to [0, 1].

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.datasets.schema import Scaled
    >>> Scaled("hours", 0.0, 50.0).encode(np.array([10.0, 99.0]))
    array([[0.2],
           [1. ]])
    """
    return FromZero(Number(column, low, high))


def LogScaled(column: str, high: float) -> FromZero:  # noqa: N802
    """Return a count clipped to [0, high] and mapped to [0, 1] by log(1 + v) / log(1 + high).

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.datasets.schema import LogScaled
    >>> LogScaled("bytes", 99.0).encode(np.array([0.0, 9.0, 1e6]))
    array([[0. ],
           [0.5],
           [1. ]])
    """
    return FromZero(Number(column, 0.0, high, log=True))


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
    return encode_rows(table, schema)


def feature_names(schema: Sequence[Feature]) -> tuple[str, ...]:
    """Return the names of all features of a schema, in the order of the columns."""
    return tuple(name for feature in schema for name in feature.names())
