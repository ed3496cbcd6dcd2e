"""A first schema, guessed from the data, for a person to correct and confirm."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable
from typing import Any

from tacit.preprocessing.arrow_values import ArrowValues
from tacit.preprocessing.columns import (
    FALSE_WORDS,
    TRUE_WORDS,
    Boolean,
    Category,
    Column,
    Ignored,
    Number,
)
from tacit.preprocessing.errors import SchemaError, TableError
from tacit.preprocessing.file_errors import shown_path
from tacit.preprocessing.reading import open_table
from tacit.preprocessing.schema import Schema
from tacit.preprocessing.schema_file import schema_to_toml
from tacit.preprocessing.targets import ClassTarget, NumberTarget, Target
from tacit.preprocessing.words import MISSING_WORDS, number_of, text_of

# More different words than this are taken for names or free text.
_MOST_VALUES = 100
# A column is one of numbers if at least this share of its different words are.
_NUMBERS_SHARE = 0.9
# Beyond these a range cannot be widened, or a unit divided by.
_LARGEST, _SMALLEST_POWER = 1e299, -300
_HEADER = """\
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
    r"""Return the text of a ``schema.toml`` guessed from a file, each guess to be confirmed.

    Parameters
    ----------
    path
        A file that `read_table` reads. **It is read without any privacy.**
    target
        The column that is predicted.
    delimiter
        What separates the fields of a CSV.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from tacit.preprocessing import draft_schema
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
            f"{shown_path(path)}: columns must have names that differ; mend the header line."
        )
    if target is not None and target not in names:
        raise TableError(f"{shown_path(path)}: there is no column {target!r} to be the target.")
    guesses = {name: _Guess() for name in names}
    for batch in file.batches(names):
        for name in names:
            guesses[name].look(_different(ArrowValues(batch.column(name), name)))
    columns = tuple(guesses[name].column(name) for name in names if name != target)
    predicted = None if target is None else guesses[target].target(path, target)
    try:
        schema = Schema(columns, predicted, unconfirmed=tuple(names))
    except SchemaError as error:
        raise TableError(f"{shown_path(path)}: no schema can be drafted: {error}") from None
    return _HEADER + "\n" + schema_to_toml(schema, comment="guessed")


def _different(values: ArrowValues) -> Iterable[Any]:
    """Return the different values of a column; none of a type that no schema can read."""
    try:
        return values.different()
    except TableError:
        return ()


class _Guess:
    """What the values of a column look like so far."""

    def __init__(self) -> None:
        self._words: set[str] = set()
        self._numbers = self._others = 0
        self._low, self._high = math.inf, -math.inf

    def look(self, values: Iterable[Any]) -> None:
        for value in values:
            text = text_of(value)
            if text is None or text in MISSING_WORDS:
                continue
            if len(self._words) <= _MOST_VALUES:
                self._words.add(text)
            number = number_of(text)
            if math.isnan(number):
                self._others += 1
            else:
                self._numbers += 1
                self._low, self._high = min(self._low, number), max(self._high, number)

    def _is_number(self) -> bool:
        total = self._numbers + self._others
        return total > 0 and self._numbers >= _NUMBERS_SHARE * total

    def _range(self) -> tuple[float, float]:
        return round_outward(self._low, self._high)

    def column(self, name: str) -> Column:
        if self._words and self._words <= {*TRUE_WORDS, *FALSE_WORDS}:
            return Boolean(name)
        if self._is_number():
            return Number(name, *self._range())
        if 0 < len(self._words) <= _MOST_VALUES:
            return Category(name, tuple(sorted(self._words)))
        return Ignored(name)

    def target(self, path: str | os.PathLike[str], name: str) -> Target:
        words = sorted(self._words)
        few = 2 <= len(words) <= _MOST_VALUES
        if few and (len(words) == 2 or not self._is_number()):
            return ClassTarget(name, tuple(words))
        if self._is_number():
            return NumberTarget(name, *self._range())
        raise TableError(
            f"{shown_path(path)}: the column {name!r} is neither numbers nor two to {_MOST_VALUES} "
            "different words, so it cannot be the target."
        )


def round_outward(low: float, high: float) -> tuple[float, float]:
    """Return a wider range whose ends are round numbers.

    Examples
    --------
    >>> from tacit.preprocessing.draft import round_outward
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
