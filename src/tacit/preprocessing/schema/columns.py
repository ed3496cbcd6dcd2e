"""The kinds of columns: what is public about each, and how its values become features.

The features of one column have an L2 norm of at most `largest`, which some value reaches. So the
largest possible norm of a row is the root of the sum of their squares.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from tacit.preprocessing.files.values import ArrayValues, Numbers, Values
from tacit.preprocessing.schema import _check
from tacit.preprocessing.schema.column_check import ColumnCheck
from tacit.preprocessing.schema.missing import Indicator, Missing, Neutral

Out = npt.NDArray[Any]
Absent = npt.NDArray[np.bool_]

NEUTRAL = Neutral()


class Column(Protocol):
    """A column of a table with what is public about it."""

    kind: ClassVar[str]

    @property
    def name(self) -> str:
        """The column's name in the table."""

    @property
    def largest(self) -> float:
        """The largest L2 norm that the features of a value can have."""

    def names(self) -> list[str]:
        """Return the names of its features."""

    def ranges(self) -> list[tuple[float, float]]:
        """Return the least and the greatest value of each feature."""

    def write(self, values: Values, out: Out) -> None:
        """Fill ``out``, one row a value and zero so far, with the features."""

    def check(self, values: Values) -> ColumnCheck:
        """Return how many values `write` does not take as they stand."""

    def encode(self, values: npt.NDArray[Any]) -> Numbers:
        """Return the features of an array of values."""


class Encodes:
    """What the columns that become features share: a feature of its own for a missing value."""

    name: str
    missing: Missing

    @property
    def largest(self) -> float:
        """One: a single feature is set."""
        return 1.0

    def names(self) -> list[str]:
        """Return the names of its features, that of a missing value last."""
        marked = [f"{self.name} is missing"] if isinstance(self.missing, Indicator) else []
        return [*self._names(), *marked]

    def ranges(self) -> list[tuple[float, float]]:
        """Return the range of each feature: set or not."""
        return [(0.0, 1.0)] * len(self.names())

    def write(self, values: Values, out: Out) -> None:
        """Fill ``out``, one row a value and zero so far, with the features."""
        absent = self._write(values, out)
        if isinstance(self.missing, Indicator):
            out[:, -1] = absent

    def encode(self, values: npt.NDArray[Any]) -> Numbers:
        """Return the features of an array of values, one row a value."""
        out = np.zeros((len(values), len(self.names())))
        self.write(ArrayValues(np.asarray(values)), out)
        return out

    def _names(self) -> list[str]:
        raise AssertionError("a column names its features")

    def _write(self, values: Values, out: Out) -> Absent:
        """Fill ``out`` but for the feature of a missing value; return where values are missing."""
        raise AssertionError("a column writes its features")

    def _settle_missing(self, where: str, fill: Callable[[str, str, object], Any]) -> None:
        """Check the treatment of missing values, with ``fill`` a value that replaces them."""
        object.__setattr__(self, "missing", _check.missing(where, self.missing, fill))


class OnOneScale(Encodes):
    """A column of one feature from -1/2 to 1/2, besides that of a missing value."""

    @property
    def largest(self) -> float:
        """One half, at either end; one where a missing value has a feature of its own."""
        return 1.0 if isinstance(self.missing, Indicator) else 0.5

    def ranges(self) -> list[tuple[float, float]]:
        """Return the range of each feature."""
        return [(-0.5, 0.5), *super().ranges()[1:]]


def write_ones(out: Out, codes: npt.NDArray[np.int64]) -> None:
    """Set the feature each code names; negative codes set none."""
    rows = np.flatnonzero(codes >= 0)
    out[rows, codes[rows]] = 1.0


@dataclass(frozen=True)
class Ignored:
    """A column that is never read.

    Examples
    --------
    >>> from tacit.preprocessing import Ignored
    >>> Ignored("patient number").names()
    []
    """

    kind: ClassVar[str] = "ignored"
    name: str

    def __post_init__(self) -> None:
        _check.named(self.name)

    @property
    def largest(self) -> float:
        """Zero: it has no features."""
        return 0.0

    def names(self) -> list[str]:
        """Return no names."""
        return []

    def ranges(self) -> list[tuple[float, float]]:
        """Return no ranges."""
        return []

    def write(self, values: Values, out: Out) -> None:
        """Write nothing."""

    def check(self, values: Values) -> ColumnCheck:
        """Look at nothing."""
        return ColumnCheck(self.name, self.kind, len(values))

    def encode(self, values: npt.NDArray[Any]) -> Numbers:
        """Return rows of no features."""
        return np.zeros((len(values), 0))
