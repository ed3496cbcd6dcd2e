"""Run ``tacit schema``: draft a schema, confirm it line by line, check a table by it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from tacit.cli import options as opt
from tacit.cli import output
from tacit.cli.running import before_records

if TYPE_CHECKING:
    from tacit.schema import ColumnCheck
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.cli.files import check_new
from tacit.cli.running import Refused

if TYPE_CHECKING:
    from tacit.schema import Schema


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
    from tacit.schema import check_file

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
    >>> from tacit.cli.schema import unreadable
    >>> from tacit.schema import ColumnCheck
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


_QUESTION = "  [y]es, [e]dit, [i]gnore or [q]uit? "
_INTRODUCTION = """\
Each line was guessed from the data. Would you write it without having seen
them, from a code book or from common sense?
  y  yes, this is known without the data
  e  edit it: write what is known
  i  ignore the column; it will not be read
  q  quit, and keep the answers given so far (Ctrl-C keeps none)
"""
_EDITED = ("lower", "upper", "cuts", "values", "classes")


@dataclass
class _Answers:
    """The schema as answered so far, and what was done to which column."""

    schema: Schema
    done: dict[str, list[str]] = field(
        default_factory=lambda: {"accepted": [], "edited": [], "ignored": []}
    )

    def take(self, name: str, line: dict[str, Any], what: str) -> None:
        """Put a line in the place of a column's; a SchemaError leaves all as it was."""
        self.schema = _with_line(self.schema, name, line)
        self.done[what].append(name)


def confirm(
    path: Annotated[Path, typer.Argument(metavar="SCHEMA", help="A draft: .toml or .json.")],
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Where to write; by default the draft is replaced."),
    ] = None,
    force: opt.Force = False,
    as_json: opt.AsJson = False,
) -> None:
    """Go through the guessed lines of a draft, one by one.

    Asks of each line whether it is known without the data; accept it, edit it, ignore its column,
    or quit. The file is written once, whole, at the end or when you quit; other lines and your own
    comments stay as they are.

    \b
    Examples:
      tacit schema confirm draft.toml
      tacit schema confirm draft.toml --out schema.toml
    """  # noqa: D301
    from tacit.saving.container import write_whole
    from tacit.schema import Schema
    from tacit.schema.schema_file import comments_in

    target = path if out is None else out
    check_new(out, force, path)
    draft = Schema.from_file(path)
    check_new(target, True)
    before = path.read_bytes()
    text = before.decode("utf-8-sig").replace("\r\n", "\n")
    if not draft.unconfirmed:
        output.say(f"{path.name}: every line is confirmed; there is nothing to do.")
        return
    answers = _answers(draft, comments_in(text) if path.suffix.lower() == ".toml" else {})
    if path.read_bytes() != before:
        raise Refused(f"{path.name} was changed meanwhile; nothing was written. Start again.")
    changed = frozenset(name for names in answers.done.values() for name in names)
    if changed or out is not None:
        write_whole(target, _text(target, text, answers.schema, changed).encode("utf-8"))
    _report(target, answers, as_json)


def _answers(draft: Schema, comments: dict[str, str]) -> _Answers:
    answers = _Answers(draft)
    _tell(_INTRODUCTION)
    for place, name in enumerate(draft.unconfirmed, start=1):
        _tell(f"{place} of {len(draft.unconfirmed)}  {_shown(draft, name)}")
        if name in comments:
            _tell(f"  {comments[name]}")
        if not _answered(answers, name):
            break
    return answers


def _answered(answers: _Answers, name: str) -> bool:
    """Ask about one line until there is an answer; return whether to go on."""
    from tacit.schema import SchemaError

    while True:
        answer = ask(_QUESTION).lower()[:1]
        line = _line(answers.schema, name)
        try:
            if answer == "y":
                answers.take(name, line, "accepted")
            elif answer == "i":
                answers.take(name, {"kind": "ignored"}, "ignored")
            elif answer == "e" and (edited := _edited(name, line)) != line:
                answers.take(name, edited, "edited")
                _tell(f"  now: {_shown(answers.schema, name)}")
            elif answer == "q":
                return False
            else:
                continue
        except (SchemaError, ValueError, RecursionError) as error:
            _tell(f"  That cannot be: {error}")
        else:
            return True


def _edited(name: str, line: dict[str, Any]) -> dict[str, Any]:
    """Return a line with what a person writes for each of its keys, or for all of it."""
    from tacit.schema.toml_text import key_text, read_toml, value_text

    keys = [key for key in _EDITED if key in line]
    if not keys:
        _tell('  Write all of it, such as { kind = "number", lower = 0, upper = 120 }.')
        written = ask(f"  {key_text(name)} = ")
        found = read_toml(f"it = {written}")["it"] if written else line
        return found if isinstance(found, dict) else {"kind": found}
    for key in keys:
        written = ask(f"  {key} (Enter keeps {value_text(line[key])}): ")
        if written:
            line = {**line, key: read_toml(f"it = {written}")["it"]}
    return line


def ask(question: str) -> str:
    """Return a line from standard input; the question goes to standard error."""
    sys.stderr.write(output.shown_lines(question))
    sys.stderr.flush()
    try:
        answer = sys.stdin.readline()
    except UnicodeDecodeError:
        raise Refused("an answer is not text; nothing was written.") from None
    if not sys.stdin.isatty():  # nobody pressed Enter: what is written next is on a line of its own
        _tell(answer.rstrip("\n"))
    if not answer:
        raise Refused(
            "the answers ended before the questions; nothing was written. Answer q to keep some."
        )
    return answer.strip()


def _tell(text: str) -> None:
    sys.stderr.write(output.shown_lines(text) + "\n")


def _line(schema: Schema, name: str) -> dict[str, Any]:
    """Return the keys of a column's line, as if somebody had confirmed it."""
    (line,) = (line for line in schema.to_dict()["columns"] if line["name"] == name)
    return {key: value for key, value in line.items() if key not in ("name", "confirmed")}


def _with_line(schema: Schema, name: str, line: dict[str, Any]) -> Schema:
    record = schema.to_dict()
    columns = [c if c["name"] != name else {**line, "name": name} for c in record["columns"]]
    return schema.from_dict({**record, "columns": columns})


def _shown(schema: Schema, name: str) -> str:
    from tacit.schema.schema_file import line_text

    return line_text(name, _line(schema, name))


def _text(path: Path, text: str, schema: Schema, changed: frozenset[str]) -> str:
    from tacit.schema.draft import HEADER
    from tacit.schema.schema_file import json_of, toml_with

    if path.suffix.lower() == ".json":
        return json_of(schema)
    if not schema.unconfirmed:  # it is no draft any more
        text = text.replace(HEADER, "").lstrip("\n")
    return toml_with(text, schema, changed)


def _report(path: Path, answers: _Answers, as_json: bool) -> None:
    left = list(answers.schema.unconfirmed)
    if as_json:
        output.document({"out": str(path), **answers.done, "unconfirmed": left})
        return
    counts = ", ".join(f"{len(names)} {what}" for what, names in answers.done.items())
    rest = f"; {len(left)} still to confirm" if left else "; every line is confirmed"
    output.say(f"{path}: {counts}{rest}")


schema = typer.Typer(invoke_without_command=True, rich_markup_mode=None)

_LOOKED = (
    "THIS DRAFT LOOKED AT THE DATA, without any privacy. Until every line is checked it is as "
    'secret as they are. Check each line, by tacit schema confirm or by deleting its "confirmed = '
    'false" yourself.'
)


@schema.callback()
def _group(context: typer.Context) -> None:
    """Write down what is public about a table."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@schema.command()
def draft(
    data: opt.Data,
    target: Annotated[
        str | None, typer.Option("--target", help="The column that is to be predicted.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Where to write; by default to the screen.")
    ] = None,
    delimiter: opt.Delimiter = None,
    force: opt.Force = False,
    as_json: opt.AsJson = False,
) -> None:
    """Draft a schema by looking at a table. Every line is a guess, and marked as one.

    A fit refuses a schema with such lines: they may tell of single people, the oldest or the one in
    a rare category. Replace each guess by what you know without the data, then delete its mark;
    tacit schema confirm goes through them with you.

    \b
    Examples:
      tacit schema draft people.csv --target income --out schema.toml
      tacit schema draft people.parquet --json
    """  # noqa: D301
    from tacit.saving.container import write_whole
    from tacit.schema import draft_schema
    from tacit.schema.toml_text import read_toml

    check_new(out, force, data)
    text = draft_schema(data, target, delimiter=delimiter)
    output.note(_LOOKED)
    if out is not None:
        write_whole(out, text.encode("utf-8"))
    if as_json:
        output.document(read_toml(text))
    elif out is None:
        output.written(text.rstrip("\n"))
    else:
        output.say(f"wrote {out}")


schema.command()(confirm)
schema.command()(check)
