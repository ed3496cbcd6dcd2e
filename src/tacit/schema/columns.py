"""Define columns of a schema: public facts, missing values and encoding as features.

The features of one column have an L2 norm of at most `largest`, and some value attains it. So
the largest possible norm of a row is the root of the sum of the squares of these norms.

Beside an intercept, features for all levels are collinear: they add up to 1, as the intercept
does, so standard errors are undefined. With a reference, each of the other levels has a feature,
and its coefficient is the difference to the reference.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol, Self

import numpy as np
import numpy.typing as npt

from tacit.io.errors import SchemaError
from tacit.io.values import (
    MISSING,
    UNKNOWN,
    ArrayValues,
    FoldedWords,
    Numbers,
    Values,
    number_of,
)
from tacit.schema import _check


@dataclass(frozen=True)
class ColumnCheck:
    """Counts of how the values of one column were read.

    **The counts are not private**: they are computed from the records without noise.

    Parameters
    ----------
    name, kind
        The column and its kind in the schema; ``"target"`` for the target.
    records
        The number of values.
    missing
        How many are null, empty, stored as NaN or infinity, or a word such as ``NA``.
    unreadable
        How many are present but not a number, not a declared value or class, or not a
        word of a boolean.
    clipped
        How many are numbers outside the declared range.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.schema import Number
    >>> from tacit.io.values import ArrayValues
    >>> Number("age", 0, 100).check(ArrayValues(np.array(["39", "39,5", "", "130"])))
    ColumnCheck(name='age', kind='number', records=4, missing=1, unreadable=1, clipped=1)
    """

    name: str
    kind: str
    records: int = 0
    missing: int = 0
    unreadable: int = 0
    clipped: int = 0

    def __add__(self, other: ColumnCheck) -> ColumnCheck:
        """Add the counts of two checks of one column."""
        return replace(
            self,
            records=self.records + other.records,
            missing=self.missing + other.missing,
            unreadable=self.unreadable + other.unreadable,
            clipped=self.clipped + other.clipped,
        )


def places(
    words: Sequence[Sequence[str]], missing_codes: Sequence[str] = (), fold_case: bool = False
) -> Mapping[str, int]:
    """Return the code of every word: the place of its list, or MISSING.

    Examples
    --------
    >>> from tacit.schema.columns import places
    >>> places([["f", "w"], ["m"]], ["9"])
    {'9': -2, 'f': 0, 'w': 0, 'm': 1}
    """
    place = dict.fromkeys(missing_codes, MISSING)
    place.update({word: place for place, own in enumerate(words) for word in own})
    return FoldedWords(place) if fold_case else place


def without_codes(numbers: Numbers, missing_codes: Sequence[str]) -> Numbers:
    """Return numbers with NaN for those that are codes of a missing value.

    Each number is compared on its own, before it is clipped.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.schema.columns import without_codes
    >>> without_codes(np.array([39.0, 9999.0]), ["9999", "unknown"])
    array([39., nan])
    """
    codes = [number for code in missing_codes if not math.isnan(number := number_of(code))]
    if not codes:
        return numbers
    # A column of float32 holds 99.9 as the nearest float32.
    with np.errstate(over="ignore"):
        rounded = np.array(codes, dtype=np.float32).astype(np.float64)
    return np.where(np.isin(numbers, [*codes, *rounded]), np.nan, numbers)


def check_numbers(
    name: str,
    kind: str,
    values: Values,
    lower: float = -math.inf,
    upper: float = math.inf,
    *,
    codes: Sequence[str] = (),
) -> ColumnCheck:
    """Count how values are read as numbers of a range; ``codes`` mean missing values."""
    numbers = without_codes(values.numbers(), codes)
    absent = np.isnan(numbers)
    n_absent, n_unreadable = int(absent.sum()), 0
    if n_absent:
        rest = values.where(absent)
        # A number is absent if it is a code; other words are unreadable unless they mean missing.
        strange = (rest.codes(places([], codes)) == UNKNOWN) & np.isnan(rest.numbers())
        n_unreadable = int(strange.sum())
    clipped = int(((numbers < lower) | (numbers > upper)).sum())
    return ColumnCheck(name, kind, len(numbers), n_absent - n_unreadable, n_unreadable, clipped)


def check_words(name: str, kind: str, values: Values, place: Mapping[str, int]) -> ColumnCheck:
    """Count how values are read as declared words."""
    codes = values.codes(place)
    missing, unreadable = int((codes == MISSING).sum()), int((codes == UNKNOWN).sum())
    return ColumnCheck(name, kind, len(codes), missing, unreadable)


# How a missing value is encoded is a public choice per column, never a statistic.
@dataclass(frozen=True)
class Neutral:
    """Encode a missing value as neutral: the middle of a number's range, no category at all.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.schema import Neutral, Number
    >>> Number("age", 0, 100, missing=Neutral()).encode(np.array([20.0, np.nan]))
    array([[-0.3],
           [ 0. ]])
    """


@dataclass(frozen=True)
class Indicator:
    """Give a missing value its own feature, which is 1; the others are 0.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.schema import Indicator, Number
    >>> Number("age", 0, 100, missing=Indicator()).encode(np.array([20.0, np.nan]))
    array([[-0.3,  0. ],
           [ 0. ,  1. ]])
    """


@dataclass(frozen=True)
class Fill:
    """Replace a missing value by a declared one, in the column's own units.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.schema import Fill, Number
    >>> Number("age", 0, 100, missing=Fill(40)).encode(np.array([20.0, np.nan]))
    array([[-0.3],
           [-0.1]])
    """

    value: float | str | bool


Missing = Neutral | Indicator | Fill

Out = npt.NDArray[Any]
Absent = npt.NDArray[np.bool_]

NEUTRAL = Neutral()


class Column(Protocol):
    """A column of a table with its public facts."""

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

    def effect_units(self) -> list[tuple[str, float]]:
        """Return, for each feature, the name and the size of the step whose effect is told."""

    def write(self, values: Values, out: Out) -> None:
        """Fill ``out``, initially zero, with the features, one row per value."""

    def check(self, values: Values) -> ColumnCheck:
        """Count the values that `write` changes or drops."""

    def encode(self, values: npt.NDArray[Any]) -> Numbers:
        """Return the features of an array of values."""


class Encodes:
    """Shared code of columns with features: an optional feature for missing values."""

    name: str
    missing: Missing
    missing_codes: tuple[str, ...]

    @property
    def largest(self) -> float:
        """1, because at most one feature is set."""
        return 1.0

    def names(self) -> list[str]:
        """Return the names of its features; the feature of a missing value comes last."""
        marked = [f"{self.name} is missing"] if isinstance(self.missing, Indicator) else []
        return [*self._names(), *marked]

    def ranges(self) -> list[tuple[float, float]]:
        """Return the range of each feature, [0, 1]."""
        return [(0.0, 1.0)] * len(self.names())

    def effect_units(self) -> list[tuple[str, float]]:
        """Return the names of the features, each with a step of 1."""
        return [(name, 1.0) for name in self.names()]

    def write(self, values: Values, out: Out) -> None:
        """Fill ``out``, initially zero, with the features, one row per value."""
        absent = self._write(values, out)
        if isinstance(self.missing, Indicator):
            out[:, -1] = absent

    def encode(self, values: npt.NDArray[Any]) -> Numbers:
        """Return the features of an array of values, one row per value."""
        out = np.zeros((len(values), len(self.names())))
        self.write(ArrayValues(np.asarray(values)), out)
        return out

    def _names(self) -> list[str]:
        raise AssertionError("a column names its features")

    def _write(self, values: Values, out: Out) -> Absent:
        """Fill ``out`` except the feature of a missing value; return which values are missing."""
        raise AssertionError("a column writes its features")

    def _settle_missing(
        self,
        where: str,
        fill: Callable[[str, str, object], Any],
        declared: Sequence[str] = (),
    ) -> None:
        """Check codes and treatment of missing values; ``fill`` checks a replacement."""
        fold_case = getattr(self, "fold_case", False)
        codes = _check.missing_codes(where, self.missing_codes, declared, fold_case)
        object.__setattr__(self, "missing_codes", codes)
        value: object = self.missing
        if isinstance(value, Fill):
            object.__setattr__(self, "missing", Fill(fill(where, "missing", value.value)))
        elif not isinstance(value, Neutral | Indicator):
            raise SchemaError(
                f"{where}: missing must be Neutral(), Indicator() or Fill(value), got "
                f"{_check.shown(value)}."
            )


class OnOneScale(Encodes):
    """A column with one feature in [-1/2, 1/2] and an optional one for missing values."""

    @property
    def largest(self) -> float:
        """1/2 at either end; 1 if a missing value has its own feature."""
        return 1.0 if isinstance(self.missing, Indicator) else 0.5

    def ranges(self) -> list[tuple[float, float]]:
        """Return the range of each feature."""
        return [(-0.5, 0.5), *super().ranges()[1:]]


def write_ones(out: Out, codes: npt.NDArray[np.int64]) -> None:
    """Set the feature that each code names; negative codes set none."""
    rows = np.flatnonzero(codes >= 0)
    out[rows, codes[rows]] = 1.0


@dataclass(frozen=True)
class Ignored:
    """A column that is never read.

    Examples
    --------
    >>> from tacit.schema import Ignored
    >>> Ignored("patient number").names()
    []
    """

    kind: ClassVar[str] = "ignored"
    name: str

    def __post_init__(self) -> None:
        _check.named(self.name)

    @property
    def largest(self) -> float:
        """0, because the column has no features."""
        return 0.0

    def names(self) -> list[str]:
        """Return no names."""
        return []

    def ranges(self) -> list[tuple[float, float]]:
        """Return no ranges."""
        return []

    def effect_units(self) -> list[tuple[str, float]]:
        """Return no units."""
        return []

    def write(self, values: Values, out: Out) -> None:
        """Write nothing."""

    def check(self, values: Values) -> ColumnCheck:
        """Return empty counts; no value is read."""
        return ColumnCheck(self.name, self.kind, len(values))

    def encode(self, values: npt.NDArray[Any]) -> Numbers:
        """Return rows without features."""
        return np.zeros((len(values), 0))


class OfLevels(Encodes):
    """Shared code of columns with levels: a feature for each level except the reference."""

    reference: str | None

    @property
    def levels(self) -> tuple[str, ...]:
        """The names of the levels, including the reference."""
        raise AssertionError("a column of levels has some")

    @property
    def lacks_reference(self) -> bool:
        """Whether the features add up to 1, like an intercept."""
        return self.reference is None and len(self.levels) > 1

    def with_reference(self) -> Self:
        """Return the column with its first level as the reference, unless it declares one."""
        if not self.lacks_reference:
            return self
        column: Any = self  # all columns are dataclasses
        compared: Self = replace(column, reference=self.levels[0])
        return compared

    def _level_names(self) -> list[str]:
        """Return the name of every level's feature."""
        raise AssertionError("a column of levels names their features")

    def _names(self) -> list[str]:
        left_out = self._place_left_out
        return [name for place, name in enumerate(self._level_names()) if place != left_out]

    @property
    def _place_left_out(self) -> int | None:
        return None if self.reference is None else self.levels.index(self.reference)

    def _write_levels(self, codes: npt.NDArray[np.int64], out: Out) -> None:
        """Set the feature of each code's level.

        An unknown level is neutral: zeros or, if zeros mean the reference, 1 / k for each
        of the k - 1 features, so that its score is the average over the k levels. The
        norm, sqrt(k - 1) / k, is below 1, the norm of a level.
        """
        left_out, k = self._place_left_out, len(self.levels)
        if left_out is not None:
            unknown = codes < 0
            if isinstance(self.missing, Indicator):
                unknown &= codes != MISSING  # a missing value has its own feature
            out[unknown, : k - 1] = 1 / k
            codes = np.where(codes == left_out, MISSING, codes - (codes > left_out))
        write_ones(out, codes)

    def _settle_reference(self, where: str) -> None:
        """Check that the reference is one of several levels."""
        if self.reference is None:
            return
        if self.reference not in self.levels:
            listed = ", ".join(map(_check.shown, self.levels[:9]))
            raise SchemaError(
                f"{where}: reference = {_check.shown(self.reference)} is none of its levels; write "
                f"one of {listed}{' ...' if len(self.levels) > 9 else ''}."
            )
        if len(self.levels) == 1:
            raise SchemaError(
                f"{where}: reference needs at least two levels, and there is one; leave it out."
            )
