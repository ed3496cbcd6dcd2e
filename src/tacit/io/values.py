"""Read values of a table as text, numbers or declared words."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from tacit.column_values import alone

if TYPE_CHECKING:
    from tacit.io.dates import DateFormat

# Texts that mean a missing value, unless a schema declares one of them as a value.
MISSING_WORDS = frozenset(
    ["", "?", "NA", "N/A", "n/a", "NaN", "nan", "NULL", "Null", "null", "None", "none", "<NA>"]
)

# The code of a value that is not a declared word.
UNKNOWN = -1
MISSING = -2

_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_BLANKS = " \t\n\r\f\v"
# From here on, several integers round to one float64.
_INEXACT = 2.0**53


def text_of(value: Any) -> str | None:
    """Return a value's text without outer blanks; None if missing or unreadable.

    Integers have no decimal point, whatever their stored type, so that a column of
    codes reads the same whether or not one of its values is missing.

    Examples
    --------
    >>> from tacit.io.values import text_of
    >>> text_of(" Private"), text_of(3.0), text_of(True), text_of(float("nan"))
    ('Private', '3', 'true', None)
    """
    if isinstance(value, bytes):
        try:
            return bytes.decode(value, "utf-8").strip()
        except UnicodeDecodeError:
            return None
    if isinstance(value, str):
        return str.strip(value)  # not value.strip(), which a subclass may override
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    number = number_of(value)
    if math.isnan(number):
        return None
    if isinstance(value, Integral):
        return str(int(value))
    return str(int(number)) if number.is_integer() else repr(number)


def word_of(value: Any) -> str | None:
    """Return a value as a word that a schema could declare; None if missing or not a word.

    Agrees with `code_of` on declared words, except for declared words that usually mean
    a missing value.

    Examples
    --------
    >>> from tacit.io.values import word_of
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

    An integer of size 2^53 or more that is stored as a number is UNKNOWN, whatever is
    declared: libraries convert integers to floats if another record's value is missing, and
    floats of that size have lost their last digits.

    Examples
    --------
    >>> from tacit.io.values import code_of
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
    """Return a value as a finite number, or NaN if it is not one.

    Examples
    --------
    >>> from tacit.io.values import number_of
    >>> [number_of(value) for value in (" 39", "1e3", "1_000", "?", "inf", None)]
    [39.0, 1000.0, nan, nan, nan, nan]
    """
    if isinstance(value, bytes):
        value = bytes.decode(value, "latin-1")  # digits are ASCII in any encoding
    if isinstance(value, str):
        text = str.strip(value, _BLANKS)
        if _NUMBER.fullmatch(text) is None:
            return math.nan
        value = float(text)
    elif isinstance(value, complex | np.complexfloating) and not value.imag:
        value = value.real  # pandas makes a column complex if one number is
    elif not isinstance(value, Real | Decimal | np.bool_) or isinstance(value, np.timedelta64):
        return math.nan  # a duration is an integer in NumPy, in an unknown unit
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return math.nan
    return number if math.isfinite(number) else math.nan


Numbers = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]


class FoldedWords(dict[str, int]):
    """Declared words that are found in small letters and in capitals.

    Examples
    --------
    >>> from tacit.io.values import FoldedWords, code_of
    >>> place = FoldedWords({"male": 0, "STRASSE": 1})
    >>> [code_of(value, place) for value in ("Male", "stra\u00dfe", "female", "NA")]
    [0, 1, -1, -2]
    """

    def __init__(self, place: Mapping[str, int]) -> None:
        super().__init__({word.casefold(): code for word, code in place.items()})

    def get(self, text: str, default: Any = None) -> Any:
        """Return the code of a text, whatever the case of its letters."""
        return super().get(text.casefold(), default)


class Values(Protocol):
    """A column that gives numbers, codes or days, one per record."""

    def __len__(self) -> int: ...

    def numbers(self) -> Numbers:
        """Return finite numbers, and NaN for other values."""

    def codes(self, place: Mapping[str, int]) -> Codes:
        """Return the place of each value among declared words, or UNKNOWN, or MISSING."""

    def days(self, form: DateFormat) -> Numbers:
        """Return the days from 1970-01-01 to each date, and NaN for other values."""

    def where(self, chosen: npt.NDArray[np.bool_]) -> Values:
        """Return the selected values."""

    def raw(self) -> list[Any]:
        """Return the values unchanged, text as text or bytes; None for a missing one."""


@dataclass(frozen=True, eq=False)
class ArrayValues:
    """The values of a NumPy array: numbers, text or objects.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.io.values import ArrayValues
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
            with np.errstate(all="ignore"):  # a warning would reveal one record
                numbers = self.array.astype(np.float64)
            numbers[~np.isfinite(numbers)] = np.nan
            return numbers
        return np.array(_each(number_of, self.array.tolist(), np.nan), dtype=np.float64)

    def codes(self, place: Mapping[str, int]) -> Codes:
        """Look up every value."""
        found = _each(lambda value: code_of(value, place), self.array.tolist(), UNKNOWN)
        return np.array(found, dtype=np.int64)

    def days(self, form: DateFormat) -> Numbers:
        """Read every value as a date."""
        return np.array(_each(form.days_of, self.array.tolist(), np.nan), dtype=np.float64)

    def where(self, chosen: npt.NDArray[np.bool_]) -> ArrayValues:
        """Return the selected values."""
        return ArrayValues(self.array[chosen])

    def raw(self) -> list[Any]:
        """Return the values unchanged."""
        values: list[Any] = self.array.tolist()
        return values


class ReadOnce:
    """Values that are parsed once and cached.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.io.values import ArrayValues, ReadOnce
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
        """Return a copy of the numbers, which the caller may change."""
        if self._numbers is None:
            self._numbers = self._values.numbers()
        return self._numbers.copy()

    def codes(self, place: Mapping[str, int]) -> Codes:
        """Return a copy of the codes, which the caller may change."""
        known = self._codes
        # Folded words are equal to others as dictionaries, and find more.
        if known is None or type(known[0]) is not type(place) or known[0] != place:
            known = self._codes = (place, self._values.codes(place))
        return known[1].copy()

    def days(self, form: DateFormat) -> Numbers:
        """Return the days."""
        return self._values.days(form)

    def where(self, chosen: npt.NDArray[np.bool_]) -> Values:
        """Return the selected values."""
        return self._values.where(chosen)

    def raw(self) -> list[Any]:
        """Return the values unchanged."""
        return self._values.raw()


def _each(read: Callable[[Any], Any], values: list[Any], otherwise: float) -> list[Any]:
    """Apply ``read`` to each value, once per distinct text."""
    # Only texts are cached: 1, 1.0 and True are equal as keys but differ as words.
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
