"""Check declared facts; each error names the column, the key and a remedy."""

from __future__ import annotations

import datetime
import difflib
import itertools
import json
import math
import re
from collections.abc import Collection, Iterable, Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np

from tacit.io.dates import DateFormat
from tacit.io.errors import SchemaError
from tacit.io.values import is_text, text_of

# The difference of the ends of a wider range would overflow.
_LARGEST = 1e300
# At most this many names are listed in an error.
_MOST_NAMES = 8


def shown(value: object) -> str:
    """Return a declared value as quoted in errors, shortened if long."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # an int with too many digits, a nested list
        text = f"a {type(value).__name__}"
    return text if len(text) <= 80 else text[:77] + "..."


def named(name: object) -> str:
    """Return how errors name a column, after checking its name."""
    if not isinstance(name, str) or not name or name != name.strip() or not is_text(name):
        raise SchemaError(
            f"a column is named {shown(name)}; a name is non-empty text without surrounding "
            "blanks: write it as in the table's header."
        )
    return f"column {shown(name)}"


def nearest(name: str, names: Sequence[str]) -> str:
    """Return the remedy for an undeclared name: the declared ones, or the nearest."""
    close = difflib.get_close_matches(name, names, n=3)
    if len(names) <= _MOST_NAMES:
        listed, what = names, "declare it, or choose from"
    elif close:
        listed, what = close, "declare it, or choose another; the nearest names are"
    else:
        listed, what = names[:_MOST_NAMES], "declare it, or choose another, such as"
    return f"{what} {', '.join(map(shown, listed))}" if listed else "declare it"


def finite(where: str, key: str, value: object) -> float:
    """Check that a value is a finite number."""
    if isinstance(value, Real) and not isinstance(value, bool | np.bool_):
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if abs(number) <= _LARGEST:
            return number + 0.0  # -0.0 becomes 0.0
    raise SchemaError(
        f"{where}: {key} must be a number of at most {_LARGEST:g} in size, got {shown(value)}; "
        "write a number you know without looking at the data."
    )


def flag(where: str, key: str, value: object) -> bool:
    """Check that a value is true or false."""
    if isinstance(value, bool):
        return value
    raise SchemaError(f"{where}: {key} must be true or false, got {shown(value)}.")


def interval(where: str, lower: object, upper: object) -> tuple[float, float]:
    """Check that two values are finite numbers in order."""
    low, high = finite(where, "lower", lower), finite(where, "upper", upper)
    if not low < high:
        raise SchemaError(
            f"{where}: lower must be below upper, got lower = {low!r} and upper = {high!r}; write "
            "the least and the greatest value that should count."
        )
    return low, high


def log_interval(where: str, lower: float, upper: float) -> None:
    """Refuse a range that has no logarithmic scale."""
    if lower < 0.0:
        raise SchemaError(
            f"{where}: lower must be 0 or above where log = true, got {lower!r}; write lower = 0 "
            "for counts, a positive number for sizes, or leave log out."
        )
    span = math.log1p(upper) if lower == 0.0 else math.log(upper) - math.log(lower)
    if not span > 0.0:
        raise SchemaError(
            f"{where}: lower = {lower!r} and upper = {upper!r} are the same on a logarithmic "
            "scale; write a wider range, or leave log out."
        )


def within(where: str, key: str, value: object, lower: float, upper: float) -> float:
    """Check that a number is inside a range."""
    number = finite(where, key, value)
    if not lower <= number <= upper:
        raise SchemaError(
            f"{where}: {key} = {number!r} lies outside lower = {lower!r} and upper = {upper!r}; "
            "write a value inside the range."
        )
    return number


def cuts(where: str, values: object) -> tuple[float, ...]:
    """Check that values are one or more numbers in strictly increasing order."""
    numbers = tuple(finite(where, "cuts", value) for value in _listed(where, "cuts", values))
    if not numbers or any(a >= b for a, b in itertools.pairwise(numbers)):
        raise SchemaError(
            f"{where}: cuts must be at least one number, each above the one before, got "
            f"{shown(values)}; write the points at which intervals start, such as [20, 40, 60]."
        )
    return numbers


def words(where: str, key: str, values: object) -> tuple[str, ...]:
    """Check that values are one or more words, all different."""
    result = tuple(_word(where, key, value) for value in _listed(where, key, values))
    if not result:
        raise SchemaError(f"{where}: {key} is empty; list the values the column may have.")
    if len(set(result)) < len(result):
        twice = next(word for word in result if result.count(word) > 1)
        raise SchemaError(f"{where}: {key} lists {shown(twice)} twice; list each value once.")
    return result


def _listed(where: str, key: str, values: object) -> Iterable[Any]:
    if isinstance(values, list | tuple):
        return values
    raise SchemaError(f"{where}: {key} must be a list, got {shown(values)}; write [...] around it.")


def _word(where: str, key: str, value: object) -> str:
    if isinstance(value, str | Integral | float):
        word = text_of(value)
        if word and is_text(word) and (not isinstance(value, str) or word == value):
            return word
    raise SchemaError(
        f"{where}: {key} holds {shown(value)}; a value is text without surrounding blanks, a "
        "number or true or false. For empty values, use the key missing."
    )


def member(where: str, key: str, value: object, among: tuple[str, ...]) -> str:
    """Check that a value is one of the declared words."""
    word = _word(where, key, value)
    if word not in among:
        raise SchemaError(
            f"{where}: {key} = {shown(value)} is not among its values; write one of them."
        )
    return word


def disjoint(where: str, true: tuple[str, ...], false: tuple[str, ...]) -> None:
    """Refuse a word that means both yes and no."""
    both = set(true) & set(false)
    if both:
        raise SchemaError(
            f"{where}: {shown(min(both))} is in both true and false; take it out of one. A list "
            "that is left out has its default words."
        )


def missing_codes(
    where: str, values: object, declared: Collection[str] = (), fold_case: bool = False
) -> tuple[str, ...]:
    """Check the codes of missing values; none may be a declared value too."""
    if values == () or values == []:
        return ()
    codes = words(where, "missing_codes", values)
    known = {word.casefold() for word in declared} if fold_case else set(declared)
    both = [code for code in codes if (code.casefold() if fold_case else code) in known]
    if both:
        raise SchemaError(
            f"{where}: missing_codes lists {shown(min(both))}, which is also a declared value; "
            "take it out of one of them."
        )
    return codes


def folded(where: str, key: str, values: Iterable[str]) -> None:
    """Refuse words that are the same in small letters, where the case of letters is ignored."""
    seen: dict[str, str] = {}
    for word in values:
        other = seen.setdefault(word.casefold(), word)
        if other != word:
            raise SchemaError(
                f"{where}: {key} lists {shown(other)} and {shown(word)}, which are the same where "
                "fold_case = true; list one of them, or leave fold_case out."
            )


def merged(
    where: str, key: str, what: str, names: Sequence[object], values: object
) -> tuple[tuple[str, ...], ...]:
    """Check the values of the table that each name stands for, none under two names."""
    if not isinstance(values, list | tuple) or len(values) != len(names):
        raise SchemaError(f"{where}: words must be a list of values for each {what}.")
    if not all(isinstance(name, str) for name in names):
        raise SchemaError(f"{where}: {key} that stand for several values have names, in quotes.")
    result = tuple(
        words(where, f"the {what} {shown(name)}", own)
        for name, own in zip(names, values, strict=True)
    )
    owner: dict[str, object] = {}
    for name, own in zip(names, result, strict=True):
        for word in own:
            if word in owner:
                raise SchemaError(
                    f"{where}: the value {shown(word)} is in the {key} {shown(owner[word])} and "
                    f"{shown(name)}; take it out of one."
                )
            owner[word] = name
    for name in names:
        # A reader of the results would take the name for that value.
        if owner.get(str(name), name) != name:
            raise SchemaError(
                f"{where}: the {what} {shown(name)} is named as a value of the {what} "
                f"{shown(owner[str(name)])}; call it something else."
            )
    return result


def date(where: str, key: str, value: object) -> str:
    """Check that a value is a date; return it as text, such as 2026-01-31."""
    if isinstance(value, datetime.date) and not isinstance(value, datetime.datetime):
        return value.isoformat()
    if isinstance(value, str) and not math.isnan(DateFormat().days(value)) and len(value) == 10:
        return value
    raise SchemaError(
        f"{where}: {key} must be a date, got {shown(value)}; write it as year, month and day, such "
        'as "2026-01-31".'
    )


def date_format(where: str, value: object) -> str:
    """Check that a value describes how dates are written."""
    if isinstance(value, str) and DateFormat(value).is_valid:
        return value
    raise SchemaError(
        f"{where}: format must have %Y, %m and %d, each once, and nothing else with a %, got "
        f'{shown(value)}; write "%d.%m.%Y" for 31.01.2026.'
    )


def unit_of_effects(where: str, value: object, is_log: bool) -> float:
    """Check the difference, or with logarithms the factor, in which effects are told."""
    number = finite(where, "per", value)
    if number > (1.0 if is_log else 0.0):
        return number
    raise SchemaError(
        f"{where}: per must be above {1 if is_log else 0}, got {shown(value)}; "
        + (
            "with log = true it is a factor: write per = 2 for the effect of doubling."
            if is_log
            else "write per = 10 for the effect of a difference of 10."
        )
    )


def text_of_number(number: float) -> str:
    """Format a number without needless decimals and without loss."""
    return str(int(number)) if number.is_integer() and abs(number) < 1e15 else repr(number)


def quoted_if_unusual(name: str) -> str:
    """Return a name as it stands in the names of features, which saved models hold.

    A name of other characters than letters, digits, - and _ is quoted as in JSON.
    """
    if re.fullmatch(r"[A-Za-z0-9_-]+", name):
        return name
    return json.dumps(name, ensure_ascii=False).replace("\x7f", "\\u007f")
