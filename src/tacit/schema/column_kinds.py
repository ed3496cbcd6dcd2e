"""Define the kinds of columns: numbers, words, and columns with learned bounds or words."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from tacit.io.errors import SchemaError
from tacit.io.values import MISSING, Numbers, Values
from tacit.schema import _check
from tacit.schema.columns import (
    NEUTRAL,
    Absent,
    ColumnCheck,
    Encodes,
    Fill,
    Indicator,
    Missing,
    OfLevels,
    OnOneScale,
    Out,
    check_numbers,
    check_words,
    places,
    without_codes,
    write_ones,
)


class ClippedNumber(OnOneScale):
    """Shared code of numbers that are clipped to a range and mapped to [-1/2, 1/2]."""

    lower: float
    upper: float
    log: bool
    per: float | None

    def _settle_range(self, where: str) -> None:
        """Check the range, the scale and the unit of effects."""
        lower, upper = _check.interval(where, self.lower, self.upper)
        object.__setattr__(self, "lower", lower)
        object.__setattr__(self, "upper", upper)
        _check.flag(where, "log", self.log)
        if self.log:
            _check.log_interval(where, lower, upper)
        self._settle_missing(where, partial(_check.within, lower=lower, upper=upper))
        if self.per is not None:
            object.__setattr__(self, "per", _check.unit_of_effects(where, self.per, self.log))

    def _numbers(self, values: Values) -> Numbers:
        """Return the numbers of the values before clipping; NaN for a missing one."""
        return without_codes(values.numbers(), self.missing_codes)

    @property
    def _span(self) -> float:
        """The length of the range on its scale."""
        if not self.log:
            return self.upper - self.lower
        if self.lower == 0.0:
            return math.log1p(self.upper)
        return math.log(self.upper) - math.log(self.lower)

    def effect_units(self) -> list[tuple[str, float]]:
        """Return the names with the unit of effects, and its share of the range.

        A coefficient is the effect of the whole range, because that has length 1. The effect of a
        step of ``per`` is the coefficient times per / (upper - lower); with logarithms, of a factor
        of ``per``, the coefficient times log(per) / (log(upper) - log(lower)).
        """
        (name, _), *rest = super().effect_units()
        if self.per is None:
            return [(name, 1.0), *rest]
        per = _check.text_of_number(self.per)
        if self.log:
            return [(f"{name} (per factor {per})", math.log(self.per) / self._span), *rest]
        return [(f"{name} (per {per})", self.per / self._span), *rest]

    def _scaled(self, numbers: Numbers) -> Numbers:
        clipped = np.clip(numbers, self.lower, self.upper)
        if not self.log:
            share = (clipped - self.lower) / (self.upper - self.lower)
        elif self.lower == 0.0:
            share = np.minimum(np.log1p(clipped) / np.log1p(self.upper), 1.0)
        else:
            share = np.clip((np.log(clipped) - math.log(self.lower)) / self._span, 0.0, 1.0)
        return np.asarray(share - 0.5)

    def _write(self, values: Values, out: Out) -> Absent:
        scaled = self._scaled(self._numbers(values))
        absent = np.isnan(scaled)
        if isinstance(self.missing, Fill):
            scaled[absent] = self._scaled(np.array([self.missing.value], dtype=np.float64))
        else:
            scaled[absent] = 0.0
        out[:, 0] = scaled
        return absent


@dataclass(frozen=True)
class Number(ClippedNumber):
    """A number, clipped to [lower, upper] and mapped to [-1/2, 1/2].

        (v - lower) / (upper - lower) - 1/2
        (log v - log lower) / (log upper - log lower) - 1/2     with log, if lower > 0
        log(1 + v) / log(1 + upper) - 1/2                       with log, if lower = 0 (counts)

    The scale is centred at zero, because that halves the longest row and its noise, and
    leaves less to the intercept (docs/decisions/0015-features-around-zero.md).

    Text that is not a number, infinity and NaN are missing values.

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
    missing_codes
        Values that mean a missing one, such as 9999; compared before values are clipped.
    per
        The difference in which a summary tells effects, such as 10 (years); with ``log``, the
        factor. By default the whole range.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.schema import Number
    >>> Number("age", 0, 110, missing_codes=(9999,)).encode(np.array([11.0, 9999.0]))
    array([[-0.4],
           [ 0. ]])
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
    missing_codes: tuple[str, ...] = ()
    per: float | None = None

    def __post_init__(self) -> None:
        self._settle_range(_check.named(self.name))

    def _names(self) -> list[str]:
        return [f"log {self.name}" if self.log else self.name]

    def check(self, values: Values) -> ColumnCheck:
        """Count values that are missing, not a number, or outside the range."""
        limits = (self.lower, self.upper)
        return check_numbers(self.name, self.kind, values, *limits, codes=self.missing_codes)


@dataclass(frozen=True)
class Intervals(OfLevels):
    """A number cut into intervals: below cut 0, from cut 0 to below cut 1, ..., from the last.

    Parameters
    ----------
    name
        The column's name in the table.
    cuts
        The public cut points, in order.
    missing
        ``Neutral()`` (in no interval), ``Indicator()`` or ``Fill(number)``.
    reference
        The interval with which others are compared, by the name of its feature, such as
        ``"age < 20"``; see `Category`.
    missing_codes
        Values that mean a missing one, such as 9999.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.schema import Intervals
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
    reference: str | None = None
    missing_codes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        where = _check.named(self.name)
        object.__setattr__(self, "cuts", _check.cuts(where, self.cuts))
        self._settle_missing(where, _check.finite)
        self._settle_reference(where)

    @property
    def levels(self) -> tuple[str, ...]:
        """The intervals, by the names of their features."""
        return tuple(self._level_names())

    def _level_names(self) -> list[str]:
        # "name < 20", "20 <= name < 25", "name >= 25"; an unusual name is quoted
        name = _check.quoted_if_unusual(self.name)
        cuts = [_check.text_of_number(cut) for cut in self.cuts]
        between = [f"{low} <= {name} < {high}" for low, high in pairwise(cuts)]
        return [f"{name} < {cuts[0]}", *between, f"{name} >= {cuts[-1]}"]

    def _write(self, values: Values, out: Out) -> Absent:
        numbers = without_codes(values.numbers(), self.missing_codes)
        absent = np.isnan(numbers)
        if isinstance(self.missing, Fill):
            numbers = np.where(absent, float(self.missing.value), numbers)
            absent = np.zeros_like(absent)
        found = np.searchsorted(self.cuts, numbers, side="right")
        self._write_levels(np.where(absent, MISSING, found), out)
        return absent

    def check(self, values: Values) -> ColumnCheck:
        """Count values that are missing or not a number; nothing is clipped."""
        return check_numbers(self.name, self.kind, values, codes=self.missing_codes)


TRUE_WORDS = ("true", "True", "TRUE", "t", "T", "yes", "Yes", "YES", "y", "Y", "1")
FALSE_WORDS = ("false", "False", "FALSE", "f", "F", "no", "No", "NO", "n", "N", "0")


@dataclass(frozen=True)
class Category(OfLevels):
    """One of several words, each with a feature; an undeclared value gives zeros.

    With a reference, each of the other values has a feature that compares it with the
    reference, and an undeclared value counts as the average of the declared ones.

    Parameters
    ----------
    name
        The column's name in the table.
    values
        The public values, compared as text without outer blanks; or, with ``words``, the names of
        the levels.
    missing
        ``Neutral()`` (like an undeclared value), ``Indicator()`` or ``Fill(one of the
        values)``.
    reference
        The value with which others are compared; it has no feature. None gives each value a
        feature. Standard errors beside an intercept need a reference.
    words
        The values of the table that each level stands for; `merged` takes both together. By default
        each value is its own level.
    fold_case
        Whether small letters and capitals are the same.
    missing_codes
        Values that mean a missing one, such as 9 or "unknown".

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.schema import Category
    >>> Category("sex", ("Female", "Male")).encode(np.array(["Male", "?"]))
    array([[0., 1.],
           [0., 0.]])
    >>> Category("sex", ("Female", "Male"), reference="Female").encode(np.array(["Male", "?"]))
    array([[1. ],
           [0.5]])
    >>> sex = Category.merged("sex", {"f": ["w", "female"], "m": ["m", "male"]}, fold_case=True)
    >>> sex.encode(np.array(["W", "Male"]))
    array([[1., 0.],
           [0., 1.]])
    """

    kind: ClassVar[str] = "category"
    name: str
    values: tuple[str, ...]
    missing: Missing = NEUTRAL
    reference: str | None = None
    words: tuple[tuple[str, ...], ...] | None = None
    fold_case: bool = False
    missing_codes: tuple[str, ...] = ()

    @classmethod
    def merged(cls, name: str, values: Mapping[str, Sequence[Any]], **more: Any) -> Category:
        """Return a category whose levels stand for one or more values of the table each."""
        words: Any = tuple(values.values())
        return cls(name, tuple(values), words=words, **more)

    def __post_init__(self) -> None:
        where = _check.named(self.name)
        object.__setattr__(self, "values", _check.words(where, "values", self.values))
        if self.words is not None:
            merged = _check.merged(where, "values", "level", self.values, self.words)
            object.__setattr__(self, "words", merged)
        _check.flag(where, "fold_case", self.fold_case)
        declared = [word for own in self._words for word in own]
        if self.fold_case:
            _check.folded(where, "values", declared)
        self._settle_missing(where, partial(_check.member, among=self.values), declared)
        self._settle_reference(where)

    @property
    def _words(self) -> Sequence[Sequence[str]]:
        """The values of the table for each level."""
        return [(word,) for word in self.values] if self.words is None else self.words

    @property
    def levels(self) -> tuple[str, ...]:
        """The values, or the names of merged ones."""
        return self.values

    def _level_names(self) -> list[str]:
        return [f"{self.name}={value}" for value in self.values]

    @property
    def _place(self) -> Mapping[str, int]:
        return places(self._words, self.missing_codes, self.fold_case)

    def _write(self, values: Values, out: Out) -> Absent:
        codes = values.codes(self._place)
        absent: Absent = codes == MISSING
        if isinstance(self.missing, Fill):
            codes[absent] = self.values.index(str(self.missing.value))
        self._write_levels(codes, out)
        return absent

    def check(self, values: Values) -> ColumnCheck:
        """Count values that are missing or not declared."""
        return check_words(self.name, self.kind, values, self._place)


@dataclass(frozen=True)
class Boolean(OnOneScale):
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
    fold_case
        Whether small letters and capitals are the same.
    missing_codes
        Values that mean a missing one; other words are missing too, and counted as unreadable.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.schema import Boolean
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
    fold_case: bool = False
    missing_codes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        where = _check.named(self.name)
        object.__setattr__(self, "true", _check.words(where, "true", self.true))
        object.__setattr__(self, "false", _check.words(where, "false", self.false))
        _check.disjoint(where, self.true, self.false)
        if _check.flag(where, "fold_case", self.fold_case):
            folded = [tuple({word.casefold() for word in w}) for w in (self.true, self.false)]
            _check.disjoint(where, *folded)
        self._settle_missing(where, _check.flag, (*self.true, *self.false))

    def _names(self) -> list[str]:
        return [self.name]

    @property
    def _place(self) -> Mapping[str, int]:
        return places([self.false, self.true], self.missing_codes, self.fold_case)

    def _write(self, values: Values, out: Out) -> Absent:
        codes = values.codes(self._place)
        absent = codes < 0
        filled = float(self.missing.value) - 0.5 if isinstance(self.missing, Fill) else 0.0
        out[:, 0] = np.where(absent, filled, codes - 0.5)
        return absent

    def check(self, values: Values) -> ColumnCheck:
        """Count values that are missing or neither true nor false."""
        return check_words(self.name, self.kind, values, self._place)


_MOST_VALUES = 100_000


@dataclass(frozen=True)
class OpenNumber(Number):
    """A number with wide public bounds; a `PrivatePipeline` learns narrower ones.

    Encoded by the public bounds like a `Number`, except for missing values, which are NaN: the
    learning step ignores them and replaces them by the middle of the learned range.

    Parameters
    ----------
    name, log
        As in `Number`.
    lower, upper
        Public bounds, which may be wide; the learned ones lie inside.
    missing
        ``Neutral()`` (the middle of the learned range), ``Indicator()`` or ``Fill(number)``.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.schema import OpenNumber
    >>> OpenNumber("income", 0, 10_000).encode(np.array([100.0, np.nan]))
    array([[-0.49],
           [  nan]])
    """

    kind: ClassVar[str] = "open_number"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.per is not None:
            raise SchemaError(
                f"{_check.named(self.name)}: per = {self.per!r} in a column of kind 'open_number', "
                "whose range is learned, so the step has no known share of it; declare "
                "kind = 'number', or leave per out."
            )

    def _write(self, values: Values, out: Out) -> Absent:
        absent = super()._write(values, out)
        if not isinstance(self.missing, Fill):
            out[absent, 0] = np.nan
        return absent


@dataclass(frozen=True)
class OpenCategory(Encodes):
    """One of several undeclared words; a `PrivatePipeline` learns the frequent ones.

    Parameters
    ----------
    name
        The column's name in the table.
    max_values
        The largest number of words to learn; also the number of features, whatever is learned.
    learned
        The released words, in a schema completed by a fit; None before.
    missing
        ``Neutral()`` (zeros) or ``Indicator()``.
    missing_codes
        Values that mean a missing one; they are no words to learn.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.schema import OpenCategory
    >>> OpenCategory("town", 3, ("Bergen", "Oslo")).encode(np.array(["Oslo", "Utsira"]))
    array([[0., 1., 0.],
           [0., 0., 0.]])
    """

    kind: ClassVar[str] = "open_category"
    name: str
    max_values: int
    learned: tuple[str, ...] | None = None
    missing: Missing = NEUTRAL
    missing_codes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        where = _check.named(self.name)
        most = self.max_values
        if type(most) is not int or not 1 <= most <= _MOST_VALUES:
            raise SchemaError(
                f"{where}: max_values must be a whole number from 1 to {_MOST_VALUES}, got "
                f"{_check.shown(most)}; write how many words to learn at most."
            )
        if self.learned is not None:
            words = _check.words(where, "learned", self.learned) if len(self.learned) else ()
            object.__setattr__(self, "learned", words)
        if self.learned is not None and len(self.learned) > most:
            raise SchemaError(f"{where}: learned lists more than max_values words.")
        if not isinstance(self.missing, Indicator | type(NEUTRAL)):
            raise SchemaError(
                f"{where}: missing must be 'neutral' or 'indicator', because its words are unknown "
                "until they are learned."
            )
        codes = _check.missing_codes(where, self.missing_codes, self.learned or ())
        object.__setattr__(self, "missing_codes", codes)

    def _names(self) -> list[str]:
        known = self.learned or ()
        rest = range(len(known) + 1, self.max_values + 1)
        return [
            *(f"{self.name}={word}" for word in known),
            *(f"{self.name}#{place}" for place in rest),
        ]

    @property
    def _place(self) -> Mapping[str, int]:
        return places([(word,) for word in self.learned or ()], self.missing_codes)

    def _write(self, values: Values, out: Out) -> Absent:
        if self.learned is None:
            raise SchemaError(
                f"{_check.named(self.name)}: its words are not learned yet; fit a PrivatePipeline "
                "that begins with a SchemaEncoder of this schema, which learns them."
            )
        codes = values.codes(self._place)
        write_ones(out, codes)
        absent: Absent = codes == MISSING
        return absent

    def check(self, values: Values) -> ColumnCheck:
        """Count values that are missing or not among the learned words."""
        return check_words(self.name, self.kind, values, self._place)
