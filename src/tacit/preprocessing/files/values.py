"""A column of raw values, as numbers or as places among declared words."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from tacit.odd_values import alone
from tacit.preprocessing.files.one_value import UNKNOWN, code_of, number_of

Numbers = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]


class Values(Protocol):
    """A column that can be asked for numbers or for codes, one per record."""

    def __len__(self) -> int: ...

    def numbers(self) -> Numbers:
        """Return finite numbers, and NaN where there is none."""

    def codes(self, place: Mapping[str, int]) -> Codes:
        """Return the place of each value among declared words, or UNKNOWN, or MISSING."""

    def where(self, chosen: npt.NDArray[np.bool_]) -> Values:
        """Return some of the values."""

    def raw(self) -> list[Any]:
        """Return the values as they are, text as text or bytes; None for a missing one."""


@dataclass(frozen=True, eq=False)
class ArrayValues:
    """The values of a NumPy array: numbers, text or objects.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.preprocessing.files.values import ArrayValues
    >>> ArrayValues(np.array(["3", "x"])).numbers()
    array([ 3., nan])
    >>> ArrayValues(np.array(["b", "x", "?"])).codes({"a": 0, "b": 1})
    array([ 1, -1, -2])
    """

    array: npt.NDArray[Any]

    def __len__(self) -> int:
        return len(self.array)

    def numbers(self) -> Numbers:
        """Convert numbers and parse text."""
        if self.array.dtype.kind in "biuf":
            with np.errstate(all="ignore"):  # a warning would tell of one record
                numbers = self.array.astype(np.float64)
            numbers[~np.isfinite(numbers)] = np.nan
            return numbers
        return np.array(_each(number_of, self.array.tolist(), np.nan), dtype=np.float64)

    def codes(self, place: Mapping[str, int]) -> Codes:
        """Look every value up."""
        found = _each(lambda value: code_of(value, place), self.array.tolist(), UNKNOWN)
        return np.array(found, dtype=np.int64)

    def where(self, chosen: npt.NDArray[np.bool_]) -> ArrayValues:
        """Return some of the values."""
        return ArrayValues(self.array[chosen])

    def raw(self) -> list[Any]:
        """Return the values as they are."""
        values: list[Any] = self.array.tolist()
        return values


class ReadOnce:
    """Values that are read once, though they are asked for several times.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.preprocessing.files.values import ArrayValues, ReadOnce
    >>> ages = ReadOnce(ArrayValues(np.array(["3", "x"])))
    >>> ages.numbers(), ages.numbers()
    (array([ 3., nan]), array([ 3., nan]))
    """

    def __init__(self, values: Values) -> None:
        self._values = values
        self._numbers: Numbers | None = None
        self._codes: tuple[Mapping[str, int], Codes] | None = None

    def __len__(self) -> int:
        return len(self._values)

    def numbers(self) -> Numbers:
        """Return a copy of the numbers, which whoever asks may change."""
        if self._numbers is None:
            self._numbers = self._values.numbers()
        return self._numbers.copy()

    def codes(self, place: Mapping[str, int]) -> Codes:
        """Return a copy of the codes, which whoever asks may change."""
        if self._codes is None or self._codes[0] != place:
            self._codes = (place, self._values.codes(place))
        return self._codes[1].copy()

    def where(self, chosen: npt.NDArray[np.bool_]) -> Values:
        """Return some of the values."""
        return self._values.where(chosen)

    def raw(self) -> list[Any]:
        """Return the values as they are."""
        return self._values.raw()


def _each(read: Callable[[Any], Any], values: list[Any], otherwise: float) -> list[Any]:
    """Return what ``read`` makes of each value, asking it once for each different text."""
    # Only texts are remembered: 1, 1.0 and True are one key but not one word.
    known: dict[str, Any] = {}
    results = []
    for value in values:
        if type(value) is not str:
            results.append(alone(read, value, otherwise))
            continue
        if value not in known:
            known[value] = read(value)
        results.append(known[value])
    return results
