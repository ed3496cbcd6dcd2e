"""The kinds of columns: what is public about each, and how its values become features.

The features of one column have an L2 norm of at most `largest`, which some value reaches. So the
largest possible norm of a row is the root of the sum of their squares.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from tacit.preprocessing.files.values import ArrayValues, Numbers, Values
from tacit.preprocessing.files.words import MISSING
from tacit.preprocessing.schema import _check
from tacit.preprocessing.schema.column_check import ColumnCheck, check_numbers, check_words
from tacit.preprocessing.schema.missing import Fill, Indicator, Missing, Neutral
from tacit.preprocessing.schema.toml_text import key_text

Out = npt.NDArray[Any]

TRUE_WORDS = ("true", "True", "TRUE", "t", "T", "yes", "Yes", "YES", "y", "Y", "1")
FALSE_WORDS = ("false", "False", "FALSE", "f", "F", "no", "No", "NO", "n", "N", "0")
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

    def write(self, values: Values, out: Out) -> None:
        """Fill ``out``, one row a value and zero so far, with the features."""

    def check(self, values: Values) -> ColumnCheck:
        """Return how many values `write` does not take as they stand."""

    def encode(self, values: npt.NDArray[Any]) -> Numbers:
        """Return the features of an array of values."""


class _Encodes:
    """What follows from `names` and `write` alone."""

    def encode(self: Any, values: npt.NDArray[Any]) -> Numbers:
        """Return the features of an array of values, one row a value."""
        out = np.zeros((len(values), len(self.names())))
        self.write(ArrayValues(np.asarray(values)), out)
        return out


def _indicator_name(name: str, missing: Missing) -> list[str]:
    return [f"{name} is missing"] if isinstance(missing, Indicator) else []


def _write_missing(out: Out, absent: npt.NDArray[np.bool_], missing: Missing) -> None:
    """Mark missing values in the last feature, if that is their treatment."""
    if isinstance(missing, Indicator):
        out[:, -1] = absent


def _write_ones(out: Out, codes: npt.NDArray[np.int64]) -> None:
    """Set the feature each code names; negative codes set none."""
    rows = np.flatnonzero(codes >= 0)
    out[rows, codes[rows]] = 1.0


@dataclass(frozen=True)
class Number(_Encodes):
    """A number, clipped to [lower, upper] and mapped to [-1/2, 1/2].

        (v - lower) / (upper - lower) - 1/2
        (log v - log lower) / (log upper - log lower) - 1/2   with log, where lower > 0
        log(1 + v) / log(1 + upper) - 1/2                     with log, where lower = 0 (counts)

    Around zero rather than from it, because that halves the longest row, and the noise with it, and
    leaves less to the intercept (docs/decisions/0015-features-around-zero.md).

    Text that is no number, infinity and NaN are missing values.

    Parameters
    ----------
    name
        The column's name in the table.
    lower, upper
        The range to which values are clipped, a public fact.
    log
        Whether the scale is logarithmic.
    missing
        ``Neutral()`` (the middle of the scale), ``Indicator()`` or ``Fill(number)``.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.preprocessing import Number
    >>> Number("hours", 0, 50).encode(np.array([10.0, 99.0]))
    array([[-0.3],
           [ 0.5]])
    >>> Number("bytes", 0, 99, log=True).encode(np.array([0.0, 9.0, 1e6]))
    array([[-0.5],
           [ 0. ],
           [ 0.5]])
    """

    kind: ClassVar[str] = "number"
    name: str
    lower: float
    upper: float
    log: bool = False
    missing: Missing = NEUTRAL

    def __post_init__(self) -> None:
        where = _check.named(self.name)
        lower, upper = _check.interval(where, self.lower, self.upper)
        object.__setattr__(self, "lower", lower)
        object.__setattr__(self, "upper", upper)
        _check.flag(where, "log", self.log)
        if self.log:
            _check.log_interval(where, lower, upper)
        object.__setattr__(self, "missing", _check.missing(where, self.missing, self._fill))

    def _fill(self, where: str, value: object) -> float:
        return _check.within(where, "missing", value, self.lower, self.upper)

    @property
    def largest(self) -> float:
        """One half, at either end; one where a missing value has a feature of its own."""
        return 1.0 if isinstance(self.missing, Indicator) else 0.5

    def names(self) -> list[str]:
        """Return the column's name, with "log" before it on that scale."""
        scaled = f"log {self.name}" if self.log else self.name
        return [scaled, *_indicator_name(self.name, self.missing)]

    def _scaled(self, numbers: Numbers) -> Numbers:
        clipped = np.clip(numbers, self.lower, self.upper)
        if not self.log:
            share = (clipped - self.lower) / (self.upper - self.lower)
        elif self.lower == 0.0:
            share = np.minimum(np.log1p(clipped) / np.log1p(self.upper), 1.0)
        else:
            span = math.log(self.upper) - math.log(self.lower)
            share = np.clip((np.log(clipped) - math.log(self.lower)) / span, 0.0, 1.0)
        return np.asarray(share - 0.5)

    def write(self, values: Values, out: Out) -> None:
        """Scale; treat what is missing as declared."""
        scaled = self._scaled(values.numbers())
        absent = np.isnan(scaled)
        if absent.any():
            scaled[absent] = self._of_missing()
        out[:, 0] = scaled
        _write_missing(out, absent, self.missing)

    def check(self, values: Values) -> ColumnCheck:
        """Count what is missing, no number, or outside the range."""
        return check_numbers(self.name, self.kind, values, self.lower, self.upper)

    def _of_missing(self) -> float:
        if isinstance(self.missing, Fill):
            return float(self._scaled(np.array([self.missing.value], dtype=np.float64))[0])
        return 0.0


@dataclass(frozen=True)
class Intervals(_Encodes):
    """A number cut into intervals: below cut 0, from cut 0 to below cut 1, ..., from the last.

    Parameters
    ----------
    name
        The column's name in the table.
    cuts
        The public cut points, in order.
    missing
        ``Neutral()`` (in no interval), ``Indicator()`` or ``Fill(number)``.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.preprocessing import Intervals
    >>> ages = Intervals("age", (20, 25))
    >>> ages.encode(np.array([19.0, 20.0, 80.0]))
    array([[1., 0., 0.],
           [0., 1., 0.],
           [0., 0., 1.]])
    >>> ages.names()
    ['age < 20', '20 <= age < 25', 'age >= 25']
    """

    kind: ClassVar[str] = "intervals"
    name: str
    cuts: tuple[float, ...]
    missing: Missing = NEUTRAL

    def __post_init__(self) -> None:
        where = _check.named(self.name)
        object.__setattr__(self, "cuts", _check.cuts(where, self.cuts))
        object.__setattr__(self, "missing", _check.missing(where, self.missing, self._fill))

    def _fill(self, where: str, value: object) -> float:
        return _check.finite(where, "missing", value)

    @property
    def largest(self) -> float:
        """One: a single feature is set."""
        return 1.0

    def names(self) -> list[str]:
        """Return "name < 20", "20 <= name < 25", "name >= 25"; an odd name is in quotes."""
        name, cuts = key_text(self.name), [_check.text_of_number(cut) for cut in self.cuts]
        between = [f"{low} <= {name} < {high}" for low, high in pairwise(cuts)]
        intervals = [f"{name} < {cuts[0]}", *between, f"{name} >= {cuts[-1]}"]
        return [*intervals, *_indicator_name(self.name, self.missing)]

    def write(self, values: Values, out: Out) -> None:
        """Mark the interval each value lies in."""
        numbers = values.numbers()
        absent = np.isnan(numbers)
        if isinstance(self.missing, Fill):
            numbers = np.where(absent, float(self.missing.value), numbers)
            absent = np.zeros_like(absent)
        found = np.searchsorted(self.cuts, numbers, side="right")
        _write_ones(out, np.where(absent, MISSING, found))
        _write_missing(out, absent, self.missing)

    def check(self, values: Values) -> ColumnCheck:
        """Count what is missing or no number; nothing is clipped."""
        return check_numbers(self.name, self.kind, values)


@dataclass(frozen=True)
class Category(_Encodes):
    """One of several words: a feature each; a value that is not declared gives zeros.

    Parameters
    ----------
    name
        The column's name in the table.
    values
        The public values, compared as text without outer blanks.
    missing
        ``Neutral()`` (zeros), ``Indicator()`` or ``Fill(one of the values)``.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.preprocessing import Category
    >>> Category("sex", ("Female", "Male")).encode(np.array(["Male", "?"]))
    array([[0., 1.],
           [0., 0.]])
    """

    kind: ClassVar[str] = "category"
    name: str
    values: tuple[str, ...]
    missing: Missing = NEUTRAL

    def __post_init__(self) -> None:
        where = _check.named(self.name)
        object.__setattr__(self, "values", _check.words(where, "values", self.values))
        object.__setattr__(self, "missing", _check.missing(where, self.missing, self._fill))

    def _fill(self, where: str, value: object) -> str:
        return _check.member(where, "missing", value, self.values)

    @property
    def largest(self) -> float:
        """One: a single feature is set."""
        return 1.0

    def names(self) -> list[str]:
        """Return "name=value" for each value."""
        words = [f"{self.name}={value}" for value in self.values]
        return [*words, *_indicator_name(self.name, self.missing)]

    @property
    def _place(self) -> Mapping[str, int]:
        return {word: place for place, word in enumerate(self.values)}

    def write(self, values: Values, out: Out) -> None:
        """Mark the value each record has."""
        codes = values.codes(self._place)
        absent = codes == MISSING
        if isinstance(self.missing, Fill):
            codes[absent] = self.values.index(str(self.missing.value))
        _write_ones(out, codes)
        _write_missing(out, absent, self.missing)

    def check(self, values: Values) -> ColumnCheck:
        """Count what is missing or not declared."""
        return check_words(self.name, self.kind, values, self._place)


@dataclass(frozen=True)
class Boolean(_Encodes):
    """Yes or no: 1/2 or -1/2. Any other word is a missing value.

    Parameters
    ----------
    name
        The column's name in the table.
    true, false
        The words for each. By default true, t, yes, y and 1, and false, f, no, n and 0, in small
        letters, capitals or with a capital.
    missing
        ``Neutral()`` (zero), ``Indicator()`` or ``Fill(True)`` or ``Fill(False)``.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.preprocessing import Boolean
    >>> Boolean("smoker").encode(np.array(["yes", "no", ""]))
    array([[ 0.5],
           [-0.5],
           [ 0. ]])
    """

    kind: ClassVar[str] = "boolean"
    name: str
    true: tuple[str, ...] = TRUE_WORDS
    false: tuple[str, ...] = FALSE_WORDS
    missing: Missing = NEUTRAL

    def __post_init__(self) -> None:
        where = _check.named(self.name)
        object.__setattr__(self, "true", _check.words(where, "true", self.true))
        object.__setattr__(self, "false", _check.words(where, "false", self.false))
        _check.disjoint(where, self.true, self.false)
        object.__setattr__(self, "missing", _check.missing(where, self.missing, self._fill))

    def _fill(self, where: str, value: object) -> bool:
        return _check.flag(where, "missing", value)

    @property
    def largest(self) -> float:
        """One half, at either end; one where a missing value has a feature of its own."""
        return 1.0 if isinstance(self.missing, Indicator) else 0.5

    def names(self) -> list[str]:
        """Return the column's name."""
        return [self.name, *_indicator_name(self.name, self.missing)]

    @property
    def _place(self) -> Mapping[str, int]:
        return {**dict.fromkeys(self.false, 0), **dict.fromkeys(self.true, 1)}

    def write(self, values: Values, out: Out) -> None:
        """Set 1/2 for each true word, -1/2 for each false one."""
        codes = values.codes(self._place)
        absent = codes < 0
        out[:, 0] = np.where(absent, self._of_missing(), codes - 0.5)
        _write_missing(out, absent, self.missing)

    def check(self, values: Values) -> ColumnCheck:
        """Count what is missing or neither true nor false."""
        return check_words(self.name, self.kind, values, self._place)

    def _of_missing(self) -> float:
        return float(self.missing.value) - 0.5 if isinstance(self.missing, Fill) else 0.0


@dataclass(frozen=True)
class Ignored(_Encodes):
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

    def write(self, values: Values, out: Out) -> None:
        """Write nothing."""

    def check(self, values: Values) -> ColumnCheck:
        """Look at nothing."""
        return ColumnCheck(self.name, self.kind, len(values))
