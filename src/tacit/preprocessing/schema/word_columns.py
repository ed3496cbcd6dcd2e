"""Columns of words: one of several, or yes and no."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np

from tacit.preprocessing.files.one_value import MISSING
from tacit.preprocessing.files.values import Values
from tacit.preprocessing.schema import _check
from tacit.preprocessing.schema.column_check import ColumnCheck, check_words
from tacit.preprocessing.schema.columns import NEUTRAL, Absent, OnOneScale, Out
from tacit.preprocessing.schema.levels import OfLevels
from tacit.preprocessing.schema.missing import Fill, Missing

TRUE_WORDS = ("true", "True", "TRUE", "t", "T", "yes", "Yes", "YES", "y", "Y", "1")
FALSE_WORDS = ("false", "False", "FALSE", "f", "F", "no", "No", "NO", "n", "N", "0")


@dataclass(frozen=True)
class Category(OfLevels):
    """One of several words: a feature each; a value that is not declared gives zeros.

    With a reference, each of the other values has a feature, by which it is compared with the
    reference, and a value that is not declared counts as the average of those declared.

    Parameters
    ----------
    name
        The column's name in the table.
    values
        The public values, compared as text without outer blanks.
    missing
        ``Neutral()`` (as a value that is not declared), ``Indicator()`` or ``Fill(one of the
        values)``.
    reference
        The value with which others are compared, which has no feature; None gives each value one.
        Standard errors beside an intercept need one.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.preprocessing import Category
    >>> Category("sex", ("Female", "Male")).encode(np.array(["Male", "?"]))
    array([[0., 1.],
           [0., 0.]])
    >>> Category("sex", ("Female", "Male"), reference="Female").encode(np.array(["Male", "?"]))
    array([[1. ],
           [0.5]])
    """

    kind: ClassVar[str] = "category"
    name: str
    values: tuple[str, ...]
    missing: Missing = NEUTRAL
    reference: str | None = None

    def __post_init__(self) -> None:
        where = _check.named(self.name)
        object.__setattr__(self, "values", _check.words(where, "values", self.values))
        self._settle_missing(where, partial(_check.member, among=self.values))
        self._settle_reference(where)

    @property
    def levels(self) -> tuple[str, ...]:
        """The values."""
        return self.values

    def _level_names(self) -> list[str]:
        return [f"{self.name}={value}" for value in self.values]

    @property
    def _place(self) -> Mapping[str, int]:
        return {word: place for place, word in enumerate(self.values)}

    def _write(self, values: Values, out: Out) -> Absent:
        codes = values.codes(self._place)
        absent: Absent = codes == MISSING
        if isinstance(self.missing, Fill):
            codes[absent] = self.values.index(str(self.missing.value))
        self._write_levels(codes, out)
        return absent

    def check(self, values: Values) -> ColumnCheck:
        """Count what is missing or not declared."""
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
        self._settle_missing(where, _check.flag)

    def _names(self) -> list[str]:
        return [self.name]

    @property
    def _place(self) -> Mapping[str, int]:
        return {**dict.fromkeys(self.false, 0), **dict.fromkeys(self.true, 1)}

    def _write(self, values: Values, out: Out) -> Absent:
        codes = values.codes(self._place)
        absent = codes < 0
        filled = float(self.missing.value) - 0.5 if isinstance(self.missing, Fill) else 0.0
        out[:, 0] = np.where(absent, filled, codes - 0.5)
        return absent

    def check(self, values: Values) -> ColumnCheck:
        """Count what is missing or neither true nor false."""
        return check_words(self.name, self.kind, values, self._place)
