"""What words look like that are no numbers to a schema, so that a draft can say why."""

from __future__ import annotations

import re

# A year first, or last; a time of day may follow.
_DATE = re.compile(
    r"(?:[0-9]{4}([-/.])[0-9]{1,2}\1[0-9]{1,2}|[0-9]{1,2}([-/.])[0-9]{1,2}\2(?:[0-9]{4}|[0-9]{2}))"
    r"(?:[T ][0-9]{1,2}:[0-9]{2}.*)?"
)
# "id", "nr", "nbr" or "number" as a word of its own, or with a capital at the end of one.
_IDENTIFIER = re.compile(
    r"(?:^|[^A-Za-z])(?i:id|nr|nbr|number)$|[a-z](?:ID|Id|NR|Nr|NBR|Nbr|Number)$|^[pP]id$|^PID$"
)
_CODE = re.compile(r"(?:^|[^A-Za-z])(?i:code|cd|type|group)$|[a-z](?:Code|Type|Group)$")
_DECIMAL_COMMA = re.compile(r"[+-]?(?:[0-9]+|[0-9]{1,3}(?:\.[0-9]{3})+),[0-9]+")


def is_date(word: str) -> bool:
    """Return whether a word looks like a date, with or without a time of day.

    Examples
    --------
    >>> from tacit.preprocessing.draft.looks import is_date
    >>> [is_date(word) for word in ("2024-02-29", "3.1.1999", "1/2/99 10:30", "10.5", "1-2")]
    [True, True, True, False, False]
    """
    return _DATE.fullmatch(word) is not None


def has_decimal_comma(word: str) -> bool:
    """Return whether a word looks like a number with a decimal comma.

    Examples
    --------
    >>> from tacit.preprocessing.draft.looks import has_decimal_comma
    >>> [has_decimal_comma(word) for word in ("1,5", "-1.234,50", "1.5", "a,b", "1,2,3")]
    [True, True, False, False, False]
    """
    return _DECIMAL_COMMA.fullmatch(word) is not None


def is_name_of_identifiers(name: str) -> bool:
    """Return whether a column's name says that it identifies records.

    Examples
    --------
    >>> from tacit.preprocessing.draft.looks import is_name_of_identifiers
    >>> [is_name_of_identifiers(name) for name in ("id", "patient_nbr", "caseID", "paid", "idle")]
    [True, True, True, False, False]
    """
    return _IDENTIFIER.search(name) is not None


def is_name_of_codes(name: str) -> bool:
    """Return whether a column's name says that its whole numbers are codes.

    Examples
    --------
    >>> from tacit.preprocessing.draft.looks import is_name_of_codes
    >>> [is_name_of_codes(name) for name in ("admission_type_id", "zip code", "decode", "age")]
    [True, True, False, False]
    """
    return is_name_of_identifiers(name) or _CODE.search(name) is not None
