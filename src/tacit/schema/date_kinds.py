"""Define columns of dates: as an age at a declared day, as a calendar year, as a day of the week.

A date is text in a declared format, or a value of a type for dates without a time zone. Each is
read on its own.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np

from tacit.io.dates import ISO, DateFormat, in_years
from tacit.io.errors import TableError
from tacit.io.values import MISSING, UNKNOWN, Numbers, Values
from tacit.schema import _check
from tacit.schema.column_kinds import ClippedNumber
from tacit.schema.columns import NEUTRAL, Absent, ColumnCheck, Fill, Missing, OfLevels, Out, places

# The mean length of a year of the calendar, in days.
_YEAR = 365.2425
# 1970-01-01 was a Thursday.
_FIRST_WEEKDAY = 3
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def _days(values: Values, form: str, missing_codes: Sequence[str]) -> Numbers:
    """Return the days since 1970 of values that are dates and no codes of a missing value."""
    days = values.days(DateFormat(form))
    if not missing_codes:
        return days
    # A code may be a date, such as 1900-01-01, in the declared format or as in ISO 8601.
    coded = [DateFormat(each).days(code) for each in (form, ISO) for code in missing_codes]
    absent = np.isin(days, coded)
    with contextlib.suppress(TableError):  # a type for dates, in which no word can stand
        absent |= values.codes(places([], missing_codes)) == MISSING
    return np.where(absent, np.nan, days)


def _check_dates(
    name: str,
    kind: str,
    values: Values,
    form: str,
    missing_codes: Sequence[str],
    clipped: int = 0,
) -> ColumnCheck:
    """Count how values are read as dates."""
    days = _days(values, form, missing_codes)
    absent = np.isnan(days)
    n_absent, n_unreadable = int(absent.sum()), 0
    with contextlib.suppress(TableError):  # a type for dates, in which nothing is unreadable
        codes = values.codes(places([], missing_codes))
        # A date that is absent is a code.
        strange = absent & (codes == UNKNOWN) & np.isnan(values.days(DateFormat(form)))
        n_unreadable = int(strange.sum())
    return ColumnCheck(name, kind, len(days), n_absent - n_unreadable, n_unreadable, clipped)


class _YearsOfDates(ClippedNumber):
    """Shared code of dates that become a number of years."""

    kind: ClassVar[str]
    format: str

    def _years(self, days: Numbers) -> Numbers:
        raise AssertionError("a column of dates makes a number of them")

    def _numbers(self, values: Values) -> Numbers:
        return self._years(_days(values, self.format, self.missing_codes))

    def check(self, values: Values) -> ColumnCheck:
        """Count values that are missing, no date, or outside the range."""
        years = self._numbers(values)
        clipped = int(((years < self.lower) | (years > self.upper)).sum())
        return _check_dates(self.name, self.kind, values, self.format, self.missing_codes, clipped)


@dataclass(frozen=True)
class Age(_YearsOfDates):
    """The years from a date, such as a birth, to a declared day; clipped and scaled as a `Number`.

    Parameters
    ----------
    name
        The column's name in the table.
    origin
        The public day at which the age is told, such as ``"2026-01-31"``.
    lower, upper
        The range in years to which ages are clipped, a public fact.
    format
        How dates are written in text: ``%Y``, ``%m`` and ``%d`` once each. A time of day after the
        date is not read.
    missing, missing_codes, per
        As in `Number`; ``Fill`` gives an age.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.schema import Age
    >>> born = Age("born", "2026-01-01", 0, 100, format="%d.%m.%Y")
    >>> born.encode(np.array(["01.01.1976", "unknown"])).round(3)
    array([[0.],
           [0.]])
    >>> born.names()
    ['age by born']
    """

    kind: ClassVar[str] = "age"
    name: str
    origin: str
    lower: float
    upper: float
    format: str = ISO
    missing: Missing = NEUTRAL
    missing_codes: tuple[str, ...] = ()
    per: float | None = None
    log: ClassVar[bool] = False  # type: ignore[misc]

    def __post_init__(self) -> None:
        where = _check.named(self.name)
        object.__setattr__(self, "origin", _check.date(where, "origin", self.origin))
        _check.date_format(where, self.format)
        self._settle_range(where)

    def _names(self) -> list[str]:
        return [f"age by {self.name}"]

    def _years(self, days: Numbers) -> Numbers:
        return np.asarray((DateFormat().days(self.origin) - days) / _YEAR)


@dataclass(frozen=True)
class Year(_YearsOfDates):
    """The calendar year of a date; clipped and scaled as a `Number`.

    Parameters
    ----------
    name
        The column's name in the table.
    lower, upper
        The years to which dates are clipped, a public fact.
    format, missing, missing_codes, per
        As in `Age`; ``Fill`` gives a year.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.schema import Year
    >>> Year("admitted", 2016, 2026).encode(np.array(["2021-07-01", "2026-12-31 10:30"]))
    array([[0. ],
           [0.5]])
    """

    kind: ClassVar[str] = "year"
    name: str
    lower: float
    upper: float
    format: str = ISO
    missing: Missing = NEUTRAL
    missing_codes: tuple[str, ...] = ()
    per: float | None = None
    log: ClassVar[bool] = False  # type: ignore[misc]

    def __post_init__(self) -> None:
        where = _check.named(self.name)
        _check.date_format(where, self.format)
        self._settle_range(where)

    def _names(self) -> list[str]:
        return [f"year of {self.name}"]

    def _years(self, days: Numbers) -> Numbers:
        return in_years(days)


@dataclass(frozen=True)
class Weekday(OfLevels):
    """The day of the week of a date: a feature for each, Monday to Sunday.

    Parameters
    ----------
    name
        The column's name in the table.
    format, missing_codes
        As in `Age`.
    missing
        ``Neutral()`` (no day), ``Indicator()`` or ``Fill("Monday")``.
    reference
        The day with which others are compared; see `Category`.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.schema import Weekday
    >>> days = Weekday("admitted", reference="Monday")
    >>> days.names()[:2], days.encode(np.array(["2026-01-06"]))
    (['admitted=Tuesday', 'admitted=Wednesday'], array([[1., 0., 0., 0., 0., 0.]]))
    """

    kind: ClassVar[str] = "weekday"
    name: str
    format: str = ISO
    missing: Missing = NEUTRAL
    missing_codes: tuple[str, ...] = ()
    reference: str | None = None

    def __post_init__(self) -> None:
        where = _check.named(self.name)
        _check.date_format(where, self.format)
        self._settle_missing(where, partial(_check.member, among=WEEKDAYS))
        self._settle_reference(where)

    @property
    def levels(self) -> tuple[str, ...]:
        """The days of the week."""
        return WEEKDAYS

    def _level_names(self) -> list[str]:
        return [f"{self.name}={day}" for day in WEEKDAYS]

    def _write(self, values: Values, out: Out) -> Absent:
        days = _days(values, self.format, self.missing_codes)
        absent: Absent = np.isnan(days)
        codes = (np.where(absent, 0.0, days).astype(np.int64) + _FIRST_WEEKDAY) % len(WEEKDAYS)
        otherwise = MISSING
        if isinstance(self.missing, Fill):
            otherwise = WEEKDAYS.index(str(self.missing.value))
        self._write_levels(np.where(absent, otherwise, codes), out)
        return absent

    def check(self, values: Values) -> ColumnCheck:
        """Count values that are missing or no date."""
        return _check_dates(self.name, self.kind, values, self.format, self.missing_codes)
