"""``tacit schema check``: how many values of a table its schema cannot read, never which."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from tacit.cli import options as opt
from tacit.cli import output
from tacit.cli.errors import before_records

if TYPE_CHECKING:
    from tacit.preprocessing import ColumnCheck

_NOT_PRIVATE = (
    "NOT PRIVATE: the counts below are taken from the records, without noise. This spends no "
    "budget because it protects nobody. It is for the eyes of those who may see the table: do not "
    "publish it. Mend spellings and formats by it; a bound or a value that you take from it was "
    "read off the data."
)
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
_HEADER = ("column", "kind", "records", "missing", "unreadable", "clipped")


def check(
    data: opt.Data,
    schema: opt.SchemaFile,
    target: opt.TargetColumn = None,
    delimiter: opt.Delimiter = None,
    as_json: opt.AsJson = False,
) -> None:
    """Count the values of a table that its schema cannot read.

    A fit takes them as missing, and is silent about it because how many there are is private. Shows
    for every column that is not ignored how many values are missing, unreadable (no number, none of
    the declared words) or clipped (outside the declared bounds). Of the target, records whose label
    is missing or unreadable are left out of a fit. Only counts are shown, never a value, and not
    privately: keep them to those who may see the table.

    \b
    Examples:
      tacit schema check people.csv --schema schema.toml
      tacit schema check people.csv --schema schema.toml --json | jq '.columns[].unreadable'
    """  # noqa: D301
    from tacit.cli.fit import read_schema
    from tacit.preprocessing import check_file

    with before_records():
        declared = read_schema(schema, target)
    output.note(_NOT_PRIVATE)
    with output.progress("reading the table") as step:
        checks = check_file(data, declared, delimiter=delimiter, progress=step)
    if as_json:
        output.document({"private": False, "columns": [vars(column) for column in checks]})
        return
    _show(checks)
    for sentence in unreadable(checks):
        output.note(sentence)


def unreadable(checks: Iterable[ColumnCheck]) -> Iterator[str]:
    """Yield a sentence for each column that has values its schema cannot read.

    Examples
    --------
    >>> from tacit.cli.schema_check import unreadable
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


def _show(checks: Sequence[ColumnCheck]) -> None:
    form = "{:,}" if output.is_watched() else "{}"
    rows = []
    for column in checks:
        counts = (column.records, column.missing, column.unreadable, column.clipped)
        rows.append((column.name, column.kind, *map(form.format, counts)))
    output.table("How the table is read", _HEADER, rows, texts=2)
