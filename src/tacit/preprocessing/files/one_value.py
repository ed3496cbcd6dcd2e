"""One value of a table as text or as a number: what every way of reading agrees on."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from decimal import Decimal
from numbers import Integral, Real
from typing import Any

import numpy as np

# Texts that say there is no value, unless a schema declares one of them as a value.
MISSING_WORDS = frozenset(
    ["", "?", "NA", "N/A", "n/a", "NaN", "nan", "NULL", "Null", "null", "None", "none", "<NA>"]
)

# The codes of a value that is no declared word.
UNKNOWN = -1
MISSING = -2

_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_BLANKS = " \t\n\r\f\v"
# From here on several whole numbers are one float.
_INEXACT = 2.0**53


def text_of(value: Any) -> str | None:
    """Return a value's text without outer blanks; None for a missing or unreadable one.

    Whole numbers have no decimal point, whatever type they are stored in, so that a column of
    codes reads the same whether or not one of its values is missing.

    Examples
    --------
    >>> from tacit.preprocessing.files.one_value import text_of
    >>> text_of(" Private"), text_of(3.0), text_of(True), text_of(float("nan"))
    ('Private', '3', 'true', None)
    """
    if isinstance(value, bytes):
        try:
            return bytes.decode(value, "utf-8").strip()
        except UnicodeDecodeError:
            return None
    if isinstance(value, str):
        return str.strip(value)  # not a method of its own kind of text
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    number = number_of(value)
    if math.isnan(number):
        return None
    if isinstance(value, Integral):
        return str(int(value))
    return str(int(number)) if number.is_integer() else repr(number)


def word_of(value: Any) -> str | None:
    """Return a value as a word that a schema could declare; None for what is no word, or missing.

    What `code_of` finds among declared words is what this returns, save for words that are
    declared and usually mean a missing value.

    Examples
    --------
    >>> from tacit.preprocessing.files.one_value import word_of
    >>> [word_of(value) for value in (" Oslo", b"Oslo", 3.0, "?", None, 2**60)]
    ['Oslo', 'Oslo', '3', None, None, None]
    """
    if not isinstance(value, str | bytes) and abs(number_of(value)) >= _INEXACT:
        return None
    text = text_of(value)
    return text if text is not None and text not in MISSING_WORDS and is_text(text) else None


def is_text(value: str) -> bool:
    """Return whether text can be written to a file."""
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def code_of(value: Any, place: Mapping[str, int]) -> int:
    """Return a value's place among declared words, or UNKNOWN, or MISSING.

    A whole number of size 2^53 or more that is stored as a number is UNKNOWN, whatever is
    declared: libraries turn whole numbers to floats when another record's is missing, and floats
    of that size have lost their last digits.

    Examples
    --------
    >>> from tacit.preprocessing.files.one_value import code_of
    >>> [code_of(value, {"a": 0, "NA": 1}) for value in ("a", "NA", "b", "?", None)]
    [0, 1, -1, -2, -2]
    """
    if not isinstance(value, str | bytes) and abs(number_of(value)) >= _INEXACT:
        return UNKNOWN
    text = text_of(value)
    if text is None:
        return UNKNOWN if isinstance(value, bytes) else MISSING
    found = place.get(text)
    if found is not None:
        return found
    return MISSING if text in MISSING_WORDS else UNKNOWN


def number_of(value: Any) -> float:
    """Return a value as a finite number, or NaN where it is none.

    Examples
    --------
    >>> from tacit.preprocessing.files.one_value import number_of
    >>> [number_of(value) for value in (" 39", "1e3", "1_000", "?", "inf", None)]
    [39.0, 1000.0, nan, nan, nan, nan]
    """
    if isinstance(value, bytes):
        value = bytes.decode(value, "latin-1")  # a digit is a digit in any of them
    if isinstance(value, str):
        text = str.strip(value, _BLANKS)
        if _NUMBER.fullmatch(text) is None:
            return math.nan
        value = float(text)
    elif isinstance(value, complex | np.complexfloating) and not value.imag:
        value = value.real  # pandas makes all numbers complex where one is
    elif not isinstance(value, Real | Decimal | np.bool_) or isinstance(value, np.timedelta64):
        return math.nan  # a span of time is a whole number to NumPy, in units it does not tell
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return math.nan
    return number if math.isfinite(number) else math.nan
