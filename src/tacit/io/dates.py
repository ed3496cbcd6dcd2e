"""Read dates as days since 1970: text in a declared format, and columns of a type for dates."""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.io.errors import wrong_type
from tacit.io.values import text_of

_EPOCH = datetime.date(1970, 1, 1).toordinal()
# The days of the years 1 to 9999, in which Python and databases can write a date.
_FIRST, _LAST = 1 - _EPOCH, datetime.date.max.toordinal() - _EPOCH
_DIGITS = {"%Y": "(?P<year>[0-9]{4})", "%m": "(?P<month>[0-9]{1,2})", "%d": "(?P<day>[0-9]{1,2})"}
# A time of day after a date is not read.
_TIME = r"(?:[T ][0-9]{1,2}:[0-9]{2}.*)?"

ISO = "%Y-%m-%d"


@dataclass(frozen=True)
class DateFormat:
    """How a date is written: ``%Y``, ``%m`` and ``%d``, each once, and any other characters.

    A time of day may follow, after a blank or a T; it is not read.

    Examples
    --------
    >>> from tacit.io.dates import DateFormat
    >>> [DateFormat("%d.%m.%Y").days(text) for text in ("2.1.1970", "1970-01-02", "30.2.1999")]
    [1.0, nan, nan]
    """

    text: str = ISO

    @property
    def is_valid(self) -> bool:
        """Whether year, month and day occur once each, and nothing else is asked for."""
        directives = re.findall(r"%.?", self.text)
        return sorted(directives) == ["%Y", "%d", "%m"]

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        parts = re.split(r"(%[Ymd])", self.text)
        return re.compile("".join(_DIGITS.get(part, re.escape(part)) for part in parts) + _TIME)

    def days(self, text: str) -> float:
        """Return the days from 1970-01-01 to the date in a text; NaN if it is no date."""
        found = self._pattern.fullmatch(text)
        if found is None:
            return math.nan
        year, month, day = int(found["year"]), int(found["month"]), int(found["day"])
        try:
            return float(datetime.date(year, month, day).toordinal() - _EPOCH)
        except ValueError:
            return math.nan

    def days_of(self, value: Any) -> float:
        """Return the days of a single value: text, a date, or a number such as 20240131.

        Examples
        --------
        >>> import datetime
        >>> from tacit.io.dates import DateFormat
        >>> DateFormat().days_of(datetime.date(1970, 1, 3)), DateFormat().days_of(b" 1969-12-31")
        (2.0, -1.0)
        """
        if isinstance(value, np.datetime64):
            return float(days_of_array(np.array([value]))[0])
        if isinstance(value, datetime.date):  # also a datetime, and pandas' NaT
            if value != value:
                return math.nan
            return float(datetime.date.toordinal(value) - _EPOCH)
        text = text_of(value)
        return math.nan if text is None else self.days(text)


def in_years(days: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the calendar year of each day; NaN stays.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.io.dates import in_years
    >>> in_years(np.array([0.0, -1.0, np.nan]))
    array([1970., 1969.,   nan])
    """
    known = ~np.isnan(days)
    result = np.full(len(days), np.nan)
    dates = days[known].astype(np.int64).view("datetime64[D]")
    result[known] = dates.astype("datetime64[Y]").view(np.int64) + 1970.0
    return result


def known_days(days: npt.NDArray[Any], absent: npt.NDArray[np.bool_]) -> npt.NDArray[np.float64]:
    """Return whole days as floats, NaN where absent or outside of the years 1 to 9999."""
    outside = absent | (days < _FIRST) | (days > _LAST)
    return np.where(outside, np.nan, days.astype(np.float64))


def days_of_array(dates: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Return the days of an array of datetime64; NaN for NaT."""
    whole = dates.astype("datetime64[D]")
    return known_days(whole.view(np.int64), np.isnat(whole))


@dataclass(frozen=True, eq=False)
class DateValues:
    """A column whose type holds dates; it is neither numbers nor words.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.io.dates import DateFormat, DateValues
    >>> column = DateValues(np.array(["1970-01-02", "NaT"], dtype="datetime64[D]"), "born")
    >>> column.days(DateFormat())
    array([ 1., nan])
    """

    array: npt.NDArray[Any]
    name: str
    shown_type: object = None

    def __len__(self) -> int:
        return len(self.array)

    def days(self, form: DateFormat) -> npt.NDArray[np.float64]:
        """Return the days since 1970; the format is for text."""
        return days_of_array(self.array)

    def numbers(self) -> npt.NDArray[np.float64]:
        """Refuse the column for its type."""
        raise wrong_type(self.name, self.shown_type or self.array.dtype)

    def codes(self, place: Mapping[str, int]) -> npt.NDArray[np.int64]:
        """Refuse the column for its type."""
        raise wrong_type(self.name, self.shown_type or self.array.dtype)

    def where(self, chosen: npt.NDArray[np.bool_]) -> DateValues:
        """Return the selected values."""
        return DateValues(self.array[chosen], self.name, self.shown_type)

    def raw(self) -> list[Any]:
        """Refuse the column for its type."""
        raise wrong_type(self.name, self.shown_type or self.array.dtype)
