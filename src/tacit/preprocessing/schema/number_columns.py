"""Columns of numbers: on a scale, or cut into intervals."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import ClassVar

import numpy as np

from tacit.preprocessing.files.one_value import MISSING
from tacit.preprocessing.files.values import Numbers, Values
from tacit.preprocessing.schema import _check
from tacit.preprocessing.schema.column_check import ColumnCheck, check_numbers
from tacit.preprocessing.schema.columns import NEUTRAL, Absent, OnOneScale, Out
from tacit.preprocessing.schema.levels import OfLevels
from tacit.preprocessing.schema.missing import Fill, Missing
from tacit.preprocessing.schema.toml_text import key_text


@dataclass(frozen=True)
class Number(OnOneScale):
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
        self._settle_missing(where, partial(_check.within, lower=lower, upper=upper))

    def _names(self) -> list[str]:
        return [f"log {self.name}" if self.log else self.name]

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

    def _write(self, values: Values, out: Out) -> Absent:
        scaled = self._scaled(values.numbers())
        absent = np.isnan(scaled)
        if isinstance(self.missing, Fill):
            scaled[absent] = self._scaled(np.array([self.missing.value], dtype=np.float64))
        else:
            scaled[absent] = 0.0
        out[:, 0] = scaled
        return absent

    def check(self, values: Values) -> ColumnCheck:
        """Count what is missing, no number, or outside the range."""
        return check_numbers(self.name, self.kind, values, self.lower, self.upper)


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
        The interval with which others are compared, as its feature would be called, such as
        ``"age < 20"``; as in `Category`.

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
    reference: str | None = None

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
        # "name < 20", "20 <= name < 25", "name >= 25"; an odd name is in quotes
        name, cuts = key_text(self.name), [_check.text_of_number(cut) for cut in self.cuts]
        between = [f"{low} <= {name} < {high}" for low, high in pairwise(cuts)]
        return [f"{name} < {cuts[0]}", *between, f"{name} >= {cuts[-1]}"]

    def _write(self, values: Values, out: Out) -> Absent:
        numbers = values.numbers()
        absent = np.isnan(numbers)
        if isinstance(self.missing, Fill):
            numbers = np.where(absent, float(self.missing.value), numbers)
            absent = np.zeros_like(absent)
        found = np.searchsorted(self.cuts, numbers, side="right")
        self._write_levels(np.where(absent, MISSING, found), out)
        return absent

    def check(self, values: Values) -> ColumnCheck:
        """Count what is missing or no number; nothing is clipped."""
        return check_numbers(self.name, self.kind, values)
