"""What a column seems to be, from the values in it, and why."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from tacit.preprocessing.draft.distinct import Distinct
from tacit.preprocessing.draft.looks import (
    has_decimal_comma,
    is_date,
    is_name_of_codes,
    is_name_of_identifiers,
)
from tacit.preprocessing.errors import TableError
from tacit.preprocessing.files.one_value import MISSING_WORDS, number_of, text_of
from tacit.preprocessing.schema.columns import Column, Ignored
from tacit.preprocessing.schema.number_columns import Number
from tacit.preprocessing.schema.targets import ClassTarget, NumberTarget, Target
from tacit.preprocessing.schema.word_columns import FALSE_WORDS, TRUE_WORDS, Boolean, Category

# More different words than this are taken for names or free text.
_MOST_VALUES = 100
# A column holds numbers, or dates, if at least this share of its different words are such.
_MOST = 0.9
# Fewer records than this may all differ in a number by chance.
_FEW_RECORDS = 20
# A column named like an identifier is one if at least this share of its records differ; the
# others may be further visits of a patient.
_MOST_DIFFER = 0.5
# So few whole numbers among many records may be codes.
_FEW_NUMBERS = 20
# Numbers beyond these would overflow, or vanish, when a range is widened to round ends.
_LARGEST, _SMALLEST_POWER = 1e299, -300

_GUESSED = "guessed"
_DATES = "looks like dates; to use them, make a number of them, such as the year"
_COMMAS = "looks like numbers with decimal commas; to use them, write 1.5 for 1,5 in the table"
_SOME_COMMAS = "some have decimal commas and are not read; write 1.5 for 1,5 in the table"
_CODES = 'few whole numbers; if they are codes, kind = "category" with values = [...]'
_NAMED_CODES = 'codes by its name; if they are amounts, kind = "number" with lower and upper'
_IDENTIFIER = 'looks like an identifier; if it is not, kind = "number" with lower and upper'
_WHOSE = 'it repeats: if it says whose a record is, kind = "unit" protects people as a whole'


class Guess:
    """What the values of a column look like so far. Comments never repeat a value.

    Examples
    --------
    >>> from tacit.preprocessing.draft.guess import Guess
    >>> guess = Guess("weight")
    >>> guess.look(2, ["61.5", "80"])
    >>> guess.column()
    (Number(name='weight', lower=60.0, upper=80.0, ...), 'guessed')
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._words: set[str] = set()
        self._records = self._whole = 0
        self._numbers = self._dates = self._commas = self._others = 0
        self._low, self._high = math.inf, -math.inf
        self._distinct = Distinct(_MOST_DIFFER)
        self._has_wrong_type = False

    def cannot_look(self) -> None:
        """Take note that the file stores values of a type that no kind reads."""
        self._has_wrong_type = True

    def look(self, n_records: int, values: Iterable[Any]) -> None:
        """Take note of the different values of some more records."""
        texts = [text for value in values if (text := text_of(value)) and text not in MISSING_WORDS]
        for text in texts:
            if len(self._words) <= _MOST_VALUES:
                self._words.add(text)
            self._look_at(text)
        self._records += n_records
        self._distinct.add(n_records, texts)

    def _look_at(self, text: str) -> None:
        number = number_of(text)
        if not math.isnan(number):
            self._numbers += 1
            self._whole += number.is_integer()
            self._low, self._high = min(self._low, number), max(self._high, number)
        elif has_decimal_comma(text):
            self._commas += 1
        elif is_date(text):
            self._dates += 1
        else:
            self._others += 1

    @property
    def _total(self) -> int:
        return self._numbers + self._dates + self._commas + self._others

    def _is_number(self) -> bool:
        return self._total > 0 and self._numbers >= _MOST * self._total

    def _is_whole(self) -> bool:
        return self._whole == self._total

    def _is_identifier(self) -> bool:
        counted = self._distinct
        if counted.n_records < _FEW_RECORDS:
            return False
        # An amount may differ in every record too, but hardly fills its range or leaves equal gaps.
        if counted.is_each and counted.is_counted_up:
            return True
        many = counted.is_most or (self._is_whole() and len(self._words) > _MOST_VALUES)
        return many and is_name_of_identifiers(self._name)

    def _are_codes(self, most: int) -> bool:
        """Whether there are no more whole numbers than that, in more records than chance has."""
        enough = self._records >= max(_FEW_RECORDS, 2 * len(self._words))
        return self._is_whole() and len(self._words) <= most and enough

    def _number(self) -> tuple[Column, str]:
        """Return a column of numbers, by its name perhaps one of codes."""
        if self._are_codes(_MOST_VALUES) and is_name_of_codes(self._name):
            codes = tuple(sorted(self._words, key=number_of))
            return Category(self._name, codes), self._comment(_NAMED_CODES)
        hint = _CODES if self._are_codes(_FEW_NUMBERS) else _SOME_COMMAS if self._commas else ""
        return Number(self._name, *self._range()), self._comment(hint)

    def _look(self) -> str:
        """Return what most words look like that are no numbers, or nothing."""
        if self._dates and self._dates >= _MOST * self._total:
            return _DATES
        if self._commas and self._numbers + self._commas >= _MOST * self._total:
            return _COMMAS
        return ""

    def _range(self) -> tuple[float, float]:
        return round_outward(self._low, self._high)

    def column(self) -> tuple[Column, str]:
        """Return a column, and why it is of this kind."""
        name, look = self._name, self._look()
        if self._words and self._words <= {*TRUE_WORDS, *FALSE_WORDS}:
            return Boolean(name), _GUESSED
        if self._is_number():
            if self._is_identifier():
                return Ignored(name), self._ignored(_IDENTIFIER, not self._distinct.is_each)
            return self._number()
        if 0 < len(self._words) <= _MOST_VALUES:
            return Category(name, tuple(sorted(self._words))), self._comment(look)
        repeats = self._others > 0 and self._total < self._records
        return Ignored(name), self._ignored(look or self._why_ignored(), repeats)

    def _ignored(self, why: str, repeats: bool) -> str:
        """Return why a column is ignored, and what else it may be if its name says so."""
        is_unit = repeats and is_name_of_identifiers(self._name)
        return f"ignored: {why}; {_WHOSE}" if is_unit else f"ignored: {why}"

    def _comment(self, look: str) -> str:
        return f"{_GUESSED}; {look}" if look else _GUESSED

    def _why_ignored(self) -> str:
        if self._has_wrong_type:
            return "stored as neither numbers nor text, such as dates; store it as one of them"
        if not self._total:
            return "it has no values"
        share = 100 * (self._total - self._numbers) / self._total
        return f"{share:.0f} % of the different values are no numbers, and too many to list"

    def target(self, shown: str) -> tuple[Target, str]:
        """Return the column as what is predicted, and a comment; ``shown`` is the file."""
        words = sorted(self._words)
        few = 2 <= len(words) <= _MOST_VALUES
        if few and (len(words) == 2 or not self._is_number()):
            return ClassTarget(self._name, tuple(words)), self._comment(self._look())
        if self._is_number():
            return NumberTarget(self._name, *self._range()), _GUESSED
        look = self._look()
        raise TableError(
            f"{shown}: the column {self._name!r} is neither numbers nor two to {_MOST_VALUES} "
            "different words, so it cannot be the target"
            + (f"; it {look}." if look else "; choose another.")
        )


def round_outward(low: float, high: float) -> tuple[float, float]:
    """Return a wider range whose ends are round numbers.

    Examples
    --------
    >>> from tacit.preprocessing.draft.guess import round_outward
    >>> round_outward(17, 88), round_outward(0, 99_999), round_outward(3, 3)
    ((10.0, 90.0), (0.0, 100000.0), (2.0, 4.0))
    """
    low, high = max(min(low, _LARGEST), -_LARGEST), max(min(high, _LARGEST), -_LARGEST)
    if low == high:
        margin = max(1.0, abs(low) / 10.0)
        low, high = low - margin, high + margin
    unit = 10.0 ** max(math.floor(math.log10(high - low)), _SMALLEST_POWER)
    # Ten significant digits: 3 * 0.1 is to read 0.3.
    lower = float(f"{math.floor(low / unit) * unit:.10g}")
    upper = float(f"{math.ceil(high / unit) * unit:.10g}")
    return (lower, upper) if lower <= low and high <= upper else (low, high)
