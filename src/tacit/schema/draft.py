"""Draft a schema from the data, for a person to correct and confirm."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Collection, Iterable
from typing import Any

from tacit.io.arrow import ArrowValues
from tacit.io.errors import SchemaError, TableError, shown_path
from tacit.io.reading import open_table
from tacit.io.values import MISSING_WORDS, number_of, text_of
from tacit.schema.column_kinds import FALSE_WORDS, TRUE_WORDS, Boolean, Category, Number
from tacit.schema.columns import Column, Ignored
from tacit.schema.schema import Schema
from tacit.schema.schema_file import schema_to_toml
from tacit.schema.targets import ClassTarget, NumberTarget, Target

# The year is first or last; a time of day may follow.
_DATE = re.compile(
    r"(?:[0-9]{4}([-/.])[0-9]{1,2}\1[0-9]{1,2}|[0-9]{1,2}([-/.])[0-9]{1,2}\2(?:[0-9]{4}|[0-9]{2}))"
    r"(?:[T ][0-9]{1,2}:[0-9]{2}.*)?"
)
# "id", "nr", "nbr" or "number" as a separate word, or capitalised at the end of a word.
_IDENTIFIER_NAME = re.compile(
    r"(?:^|[^A-Za-z])(?i:id|nr|nbr|number)$|[a-z](?:ID|Id|NR|Nr|NBR|Nbr|Number)$|^[pP]id$|^PID$"
)
_CODE = re.compile(r"(?:^|[^A-Za-z])(?i:code|cd|type|group)$|[a-z](?:Code|Type|Group)$")
# A code of a code book, such as V58.1 of ICD-9 or E11.9 of ICD-10.
_LETTER_CODE = re.compile(r"[A-Za-z]{1,2}[0-9][0-9A-Za-z]*(?:[.-][0-9A-Za-z]+)?")
# What stands for a byte that is not UTF-8 when a CSV is read.
_NOT_UTF8 = "\x1a"
# Numbers that often mean a missing value, if all others are far from them.
_SENTINELS = frozenset([99.0, 999.0, 9999.0, 99999.0, -1.0, -9.0, -99.0, -999.0, -9999.0])
_DECIMAL_COMMA = re.compile(r"[+-]?(?:[0-9]+|[0-9]{1,3}(?:\.[0-9]{3})+),[0-9]+")


def is_date(word: str) -> bool:
    """Return whether a word looks like a date, with or without a time of day.

    Examples
    --------
    >>> from tacit.schema.draft import is_date
    >>> [is_date(word) for word in ("2024-02-29", "3.1.1999", "1/2/99 10:30", "10.5", "1-2")]
    [True, True, True, False, False]
    """
    return _DATE.fullmatch(word) is not None


def date_format(word: str) -> str:
    """Return how a date is written, as a schema declares it; two ways if the month is unclear.

    Examples
    --------
    >>> from tacit.schema.draft import date_format
    >>> date_format("2024-02-29"), date_format("3.1.1999")
    ('"%Y-%m-%d"', '"%d.%m.%Y"')
    >>> date_format("1/2/1999 10:30")
    '"%d/%m/%Y" or "%m/%d/%Y"'
    """
    mark = re.sub("[0-9]", "", word)[0]
    if word[:4].isdigit():
        return f'"%Y{mark}%m{mark}%d"'
    day_first = f'"%d{mark}%m{mark}%Y"'
    return day_first if mark == "." else f'{day_first} or "%m{mark}%d{mark}%Y"'


def has_decimal_comma(word: str) -> bool:
    """Return whether a word looks like a number with a decimal comma.

    Examples
    --------
    >>> from tacit.schema.draft import has_decimal_comma
    >>> [has_decimal_comma(word) for word in ("1,5", "-1.234,50", "1.5", "a,b", "1,2,3")]
    [True, True, False, False, False]
    """
    return _DECIMAL_COMMA.fullmatch(word) is not None


def is_name_of_identifiers(name: str) -> bool:
    """Return whether a column's name suggests identifiers of records.

    Examples
    --------
    >>> from tacit.schema.draft import is_name_of_identifiers
    >>> [is_name_of_identifiers(name) for name in ("id", "patient_nbr", "caseID", "paid", "idle")]
    [True, True, True, False, False]
    """
    return _IDENTIFIER_NAME.search(name) is not None


def is_name_of_codes(name: str) -> bool:
    """Return whether a column's name suggests integer codes.

    Examples
    --------
    >>> from tacit.schema.draft import is_name_of_codes
    >>> [is_name_of_codes(name) for name in ("admission_type_id", "zip code", "decode", "age")]
    [True, True, False, False]
    """
    return is_name_of_identifiers(name) or _CODE.search(name) is not None


# Later records are not compared, to bound memory.
_MOST_RECORDS = 100_000
# From here on, float64 loses the last digits of integers.
_INEXACT = 2.0**53


class Distinct:
    """Count the distinct integers among records, and stop when too few are distinct.

    Parameters
    ----------
    least
        The share of records that must be distinct for counting to go on.

    Examples
    --------
    >>> from tacit.schema.draft import Distinct
    >>> number = Distinct(least=0.95)
    >>> number.add(3, ["4711", "4712", "4713"])
    >>> number.is_each
    True
    >>> number.add(1, ["4711"])
    >>> number.is_each, number.is_most
    (False, False)
    """

    def __init__(self, least: float) -> None:
        self._least = least
        self._seen: set[str] = set()
        self._low, self._high = math.inf, -math.inf
        self.n_records = 0
        self.is_most = True

    def add(self, n_records: int, texts: Collection[str]) -> None:
        """Add the distinct values of another batch of records."""
        if not self.is_most or self.n_records >= _MOST_RECORDS:
            return
        self.n_records += n_records
        self._seen.update(texts)
        numbers = [number_of(text) for text in texts]
        self._low, self._high = min([self._low, *numbers]), max([self._high, *numbers])
        whole = all(number.is_integer() for number in numbers)
        if not whole or len(self._seen) < self._least * self.n_records:
            self.is_most = False
            self._seen.clear()

    @property
    def is_counted_up(self) -> bool:
        """Whether the numbers have few gaps, or equal gaps."""
        span = self._high - self._low
        if span < 2 * self.n_records:
            return True
        if span >= _INEXACT:
            return False
        # All steps are multiples of their greatest common divisor; n - 1 such steps make the span.
        step = math.gcd(*(int(number_of(text) - self._low) for text in self._seen))
        return span == step * (len(self._seen) - 1)

    @property
    def is_each(self) -> bool:
        """Whether every record has an integer, and all are distinct."""
        return self.is_most and len(self._seen) == self.n_records


# More distinct words than this are assumed to be names or free text.
_MOST_VALUES = 100
# A column holds numbers, or dates, if at least this share of its distinct words do.
_MOST = 0.9
# In fewer records than this, all numbers may be distinct by chance.
_FEW_RECORDS = 20
# A column named like an identifier is one if at least this share of its records is distinct;
# the others may be further visits of a patient.
_MOST_DIFFER = 0.5
# At most this many distinct integers among many records may be codes.
_FEW_NUMBERS = 20
# Larger numbers would overflow, and smaller powers vanish, when a range is rounded outward.
_LARGEST, _SMALLEST_POWER = 1e299, -300

_GUESSED = "guessed"
_DATES = (
    'looks like dates; to use them, kind = "age" with origin, lower and upper, or "year" with '
    'lower and upper, or "weekday", and format = '
)
_FOLDED = "capitals and small letters were taken for the same"
_COMMAS = (
    "looks like numbers with decimal commas; to use them, write 1.5 for 1,5 in the table, or run "
    "tacit table import with --decimal ,"
)
_SOME_COMMAS = "some have decimal commas and are not read; write 1.5 for 1,5 in the table"
_LETTERS = (
    "looks like codes of a code book, numbers and words such as V58; to use them, merge levels, "
    'kind = "category" with values = { name = [...] }'
)
_FOREIGN = "some are not text in UTF-8, and left out here; run tacit table import with --encoding"
_SOME_WORDS = "some are words and not read; if they mean a missing value, missing_codes = [...]"
_CODED = "missing_codes were guessed too"
_CODES = 'few whole numbers; if they are codes, kind = "category" with values = [...]'
_NAMED_CODES = 'codes by its name; if they are amounts, kind = "number" with lower and upper'
_IDENTIFIER = 'looks like an identifier; if it is not, kind = "number" with lower and upper'
_WHOSE = 'it repeats: if it says whose a record is, kind = "unit" protects people as a whole'


class Guess:
    """A summary of the values of a column. Comments never quote a value.

    Examples
    --------
    >>> from tacit.schema.draft import Guess
    >>> guess = Guess("weight")
    >>> guess.look(2, ["61.5", "80"])
    >>> guess.column()
    (Number(name='weight', lower=60.0, upper=80.0, ...), 'guessed')
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._words: set[str] = set()
        self._records = self._whole = 0
        self._numbers = self._dates = self._commas = self._others = self._codes = 0
        self._foreign = 0
        self._date_format = ""
        self._sentinels: set[float] = set()
        self._low, self._high = math.inf, -math.inf
        self._distinct = Distinct(_MOST_DIFFER)
        self._has_wrong_type = False

    def cannot_look(self) -> None:
        """Record that the file stores values of an unreadable type."""
        self._has_wrong_type = True

    def look(self, n_records: int, values: Iterable[Any]) -> None:
        """Record the distinct values of another batch of records."""
        values = list(values)
        read = [text_of(value) for value in values]
        pairs = zip(values, read, strict=True)
        # Bytes that are not UTF-8 are replaced in a CSV, and are no text in other files.
        self._foreign += sum(
            _NOT_UTF8 in text if text else isinstance(value, bytes) and text is None
            for value, text in pairs
        )
        texts = [t for t in read if t and t not in MISSING_WORDS and _NOT_UTF8 not in t]
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
            if number in _SENTINELS:
                self._sentinels.add(number)
            else:
                self._low, self._high = min(self._low, number), max(self._high, number)
        elif has_decimal_comma(text):
            self._commas += 1
        elif is_date(text):
            self._dates += 1
            self._date_format = self._date_format or date_format(text)
        else:
            self._others += 1
            self._codes += _LETTER_CODE.fullmatch(text) is not None

    @property
    def _total(self) -> int:
        return self._numbers + self._dates + self._commas + self._others

    def _is_number(self) -> bool:
        # One code with a letter tells a code book from amounts.
        return self._total > 0 and self._numbers >= _MOST * self._total and not self._codes

    def _is_whole(self) -> bool:
        return self._whole == self._total

    def _is_identifier(self) -> bool:
        counted = self._distinct
        if counted.n_records < _FEW_RECORDS:
            return False
        # Amounts may all be distinct too, but rarely fill their range or leave equal gaps.
        if counted.is_each and counted.is_counted_up:
            return True
        many = counted.is_most or (self._is_whole() and len(self._words) > _MOST_VALUES)
        return many and is_name_of_identifiers(self._name)

    def _are_codes(self, most: int) -> bool:
        """Whether there are at most ``most`` distinct integers, in more records than by chance."""
        enough = self._records >= max(_FEW_RECORDS, 2 * len(self._words))
        return self._is_whole() and len(self._words) <= most and enough

    def _number(self) -> tuple[Column, str]:
        """Return a column of numbers, or of codes if its name suggests codes."""
        if self._are_codes(_MOST_VALUES) and is_name_of_codes(self._name):
            codes = tuple(sorted(self._words, key=number_of))
            return Category(self._name, codes), self._comment(_NAMED_CODES)
        hint = _CODES if self._are_codes(_FEW_NUMBERS) else _SOME_COMMAS if self._commas else ""
        hints = [hint, _SOME_WORDS if self._others else "", _CODED if self._missing_codes() else ""]
        column = Number(self._name, *self._range(), missing_codes=self._missing_codes())
        return column, self._comment("; ".join(filter(None, hints)))

    def _missing_codes(self) -> tuple[str, ...]:
        """Return numbers that look like codes of missing values: all others are far from them."""
        if not self._sentinels or self._low > self._high:
            return ()
        far = [
            code
            for code in sorted(self._sentinels)
            if (code > 0 and 2 * self._high <= code) or (code < 0 <= self._low)
        ]
        return tuple(str(int(code)) for code in far)

    def _look(self) -> str:
        """Describe the words that are not numbers, or return an empty text."""
        if self._dates and self._dates >= _MOST * self._total:
            return f"{_DATES}{self._date_format}"
        if self._commas and self._numbers + self._commas >= _MOST * self._total:
            return _COMMAS
        mostly = self._numbers >= 2 * self._codes > 0
        if mostly and self._numbers + self._codes >= _MOST * self._total:
            return _LETTERS
        return ""

    def _range(self) -> tuple[float, float]:
        near = self._sentinels - set(map(float, self._missing_codes()))
        return round_outward(min([self._low, *near]), max([self._high, *near]))

    def column(self) -> tuple[Column, str]:
        """Return a column, and the reason for its kind."""
        name, look = self._name, self._look()
        if self._words and self._words <= {*TRUE_WORDS, *FALSE_WORDS}:
            return Boolean(name), _GUESSED
        if self._is_number():
            if self._is_identifier():
                return Ignored(name), self._ignored(_IDENTIFIER, not self._distinct.is_each)
            return self._number()
        if 0 < len(self._words) <= _MOST_VALUES:
            words, folds = self._folded()
            hints = [look, _FOLDED if folds else ""]
            comment = self._comment("; ".join(filter(None, hints)))
            return Category(name, words, fold_case=folds), comment
        repeats = self._others > 0 and self._total < self._records
        return Ignored(name), self._ignored(look or self._why_ignored(), repeats)

    def _folded(self) -> tuple[tuple[str, ...], bool]:
        """Return the words, each in one case, and whether some differ by their case alone."""
        forms: dict[str, list[str]] = {}
        for word in sorted(self._words):
            forms.setdefault(word.casefold(), []).append(word)
        # Of Ja, JA and ja the last is kept: small letters sort last.
        return tuple(sorted(each[-1] for each in forms.values())), len(forms) < len(self._words)

    def _ignored(self, why: str, repeats: bool) -> str:
        """Return why a column is ignored, with a hint if its name suggests a unit."""
        is_unit = repeats and is_name_of_identifiers(self._name)
        return f"ignored: {why}; {_WHOSE}" if is_unit else f"ignored: {why}"

    def _comment(self, look: str) -> str:
        return "; ".join(filter(None, [_GUESSED, look, _FOREIGN if self._foreign else ""]))

    def _why_ignored(self) -> str:
        if self._has_wrong_type:
            return (
                "stored as neither numbers nor text; store it as one of them, or, if it is a date, "
                'kind = "age", "year" or "weekday"'
            )
        if self._foreign and not self._total:
            return _FOREIGN
        if not self._total:
            return "it has no values"
        share = 100 * (self._total - self._numbers) / self._total
        return f"{share:.0f} % of the different values are no numbers, and too many to list"

    def target(self, shown: str) -> tuple[Target, str]:
        """Return the column as the target, and a comment; ``shown`` names the file."""
        words, folds = self._folded()
        few = 2 <= len(words) <= _MOST_VALUES
        if few and (len(words) == 2 or not self._is_number()):
            hints = [self._look(), _FOLDED if folds else ""]
            comment = self._comment("; ".join(filter(None, hints)))
            return ClassTarget(self._name, words, fold_case=folds), comment
        if self._is_number():
            codes = self._missing_codes()
            comment = self._comment(_CODED if codes else "")
            return NumberTarget(self._name, *self._range(), codes), comment
        look = self._look()
        raise TableError(
            f"{shown}: the column {self._name!r} is neither numbers nor two to {_MOST_VALUES} "
            "different words, so it cannot be the target"
            + (f"; it {look}." if look else "; choose another.")
        )


def round_outward(low: float, high: float) -> tuple[float, float]:
    """Widen a range to round numbers.

    Examples
    --------
    >>> from tacit.schema.draft import round_outward
    >>> round_outward(17, 88), round_outward(0, 99_999), round_outward(3, 3)
    ((10.0, 90.0), (0.0, 100000.0), (2.0, 4.0))
    """
    low, high = max(min(low, _LARGEST), -_LARGEST), max(min(high, _LARGEST), -_LARGEST)
    if low == high:
        margin = max(1.0, abs(low) / 10.0)
        low, high = low - margin, high + margin
    unit = 10.0 ** max(math.floor(math.log10(high - low)), _SMALLEST_POWER)
    # Ten significant digits, so that 3 * 0.1 reads 0.3.
    lower = float(f"{math.floor(low / unit) * unit:.10g}")
    upper = float(f"{math.ceil(high / unit) * unit:.10g}")
    return (lower, upper) if lower <= low and high <= upper else (low, high)


HEADER = """\
# DRAFT, WRITTEN BY LOOKING AT THE DATA.
# Each range and list of values below was guessed from the records, so it may tell about single
# people (the oldest, the one in a rare category), and this file is as secret as they are.
# For each line: write what you know without the data, such as a code book or common sense;
# then delete "confirmed = false". Lines that keep it are refused by a fit unless it is told
# otherwise, and then the guarantee says that they are not protected.
#   numbers: lower and upper are clipped to; add log = true for sizes and counts
#   missing values: add missing = "indicator" or missing = { value = ... }; else the middle
#   what is predicted: kind = "target" with classes = [...] or lower and upper
#   n_records = ... on a line above, if the number of records is public
"""


def draft_schema(
    path: str | os.PathLike[str], target: str | None = None, *, delimiter: str | None = None
) -> str:
    r"""Return the text of a ``schema.toml`` guessed from a file; each guess must be confirmed.

    Parameters
    ----------
    path
        A file that `read_table` reads. **It is read without any privacy.**
    target
        The column to predict.
    delimiter
        The separator of the fields of a CSV.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from tacit.schema import draft_schema
    >>> path = pathlib.Path(tempfile.mkdtemp(), "people.csv")
    >>> _ = path.write_text("age,town,ill\n39,Rome,yes\n52,Oslo,no\n")
    >>> text = draft_schema(path, target="ill")
    >>> print(text[text.index("[columns]"):])
    [columns]
    age = { kind = "number", lower = 30, upper = 60, confirmed = false }  # guessed
    town = { kind = "category", values = ["Oslo", "Rome"], confirmed = false }  # guessed
    ill = { kind = "target", classes = ["no", "yes"], confirmed = false }  # guessed
    <BLANKLINE>
    """
    file = open_table(path, delimiter=delimiter)
    names = file.names()
    if not names or not all(names) or len(set(names)) < len(names):
        raise TableError(
            f"{shown_path(path)}: column names must be distinct; correct the header line."
        )
    if target is not None and target not in names:
        raise TableError(
            f"{shown_path(path)}: there is no column {target!r} for the target; check its spelling "
            "in the table's header."
        )
    guesses = {name: Guess(name) for name in names}
    for batch in file.batches(names):
        for name in names:
            _look(guesses[name], batch.num_rows, ArrowValues(batch.column(name), name))
    guessed = {name: guesses[name].column() for name in names if name != target}
    columns = tuple(column for column, _ in guessed.values())
    comments = {name: comment for name, (_, comment) in guessed.items()}
    predicted = None
    if target is not None:
        predicted, comments[target] = guesses[target].target(shown_path(path))
    try:
        schema = Schema(columns, predicted, unconfirmed=tuple(names))
    except SchemaError as error:
        raise TableError(f"{shown_path(path)}: no schema can be drafted: {error}") from None
    return HEADER + "\n" + schema_to_toml(schema, comments)


def _look(guess: Guess, n_records: int, values: ArrowValues) -> None:
    try:
        different = values.different()
    except TableError:
        guess.cannot_look()
    else:
        guess.look(n_records, different)
