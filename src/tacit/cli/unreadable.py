"""What is said of values that a schema cannot read: how many, never which."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tacit.preprocessing import ColumnCheck

_NUMBERS = "values are no numbers, and count as missing; a number is written 1234.5, with a point"
_SAID = {
    "number": _NUMBERS,
    "intervals": _NUMBERS,
    "category": "values are none that the schema declares, and count as none of them; words are "
    "compared letter by letter",
    "boolean": "values are none of the words that the schema declares, and count as missing; words "
    "are compared letter by letter",
    "target": "labels are missing or cannot be read by the schema; their records are left out of "
    "a fit",
}
_MOST_LEFT_OUT = (
    "MOST RECORDS WOULD BE LEFT OUT of a fit, and nothing there would tell: declare all classes as "
    "they are written in the table, or merge those that are not told apart, such as "
    'classes = { early = ["<30"], other = [">30", "NO"] }.'
)


def unreadable(checks: Iterable[ColumnCheck]) -> Iterator[str]:
    """Yield a sentence for each column that has values its schema cannot read.

    Examples
    --------
    >>> from tacit.cli.unreadable import unreadable
    >>> from tacit.preprocessing import ColumnCheck
    >>> for sentence in unreadable([ColumnCheck("sex", "category", 1000, unreadable=812)]):
    ...     print(sentence[:69])
    column 'sex': 812 of 1,000 values are none that the schema declares,
    """
    for check in checks:
        # A gap in a feature is declared in the schema; one in the target costs the record.
        count = check.unreadable + (check.missing if check.kind == "target" else 0)
        if count:
            yield f"column {check.name!r}: {count:,} of {check.records:,} {_SAID[check.kind]}."
        if check.kind == "target" and 2 * count > check.records:
            yield _MOST_LEFT_OUT
