"""Run ``tacit schema``: draft a schema, confirm its lines, check a table against it."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.cli import options as opt
from tacit.cli import output
from tacit.cli.files import check_new
from tacit.cli.running import Refused, before_records

if TYPE_CHECKING:
    from tacit.schema import Schema
    from tacit.schema.columns import ColumnCheck


_NOT_PRIVATE = (
    "NOT PRIVATE: the counts below are computed from the records without noise. This spends no "
    "budget because nothing is protected. Show them only to people who may see the table, and do "
    "not publish them. Use them to correct spellings and formats; a bound or a value taken from "
    "them would be read off the data."
)
_NUMBERS = "values are not numbers, and count as missing; write numbers as 1234.5, with a point"
_DATES = "values are not dates in the declared format, and count as missing"
_SAID = {
    **dict.fromkeys(("age", "year", "weekday"), _DATES),
    **dict.fromkeys(("number", "open_number", "intervals"), _NUMBERS),
    "open_category": "values are none of the learned words, and count as none of them",
    "category": "values are none that the schema declares, and count as none of them; words are "
    "compared letter by letter",
    "boolean": "values are none of the words that the schema declares, and count as missing; words "
    "are compared letter by letter",
    "target": "labels are missing or cannot be read by the schema; their records are left out of "
    "a fit",
}
_MOST_LEFT_OUT = (
    "MOST RECORDS WOULD BE LEFT OUT of a fit, without a warning: declare all classes as "
    "they are written in the table, or merge classes, such as "
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

    A fit treats such values as missing without a warning, because their number is private. Shows
    for every column that is not ignored how many values are missing, unreadable (no number, not a
    declared word) or clipped (outside the declared bounds). Records whose target is missing or
    unreadable are left out of a fit, and so are lines of a CSV that are no records; they are
    counted and explained too. Only counts are shown, never a value, but without noise: show them
    only to people who may see the table.

    \b
    Examples:
      tacit schema check people.csv --schema schema.toml
      tacit schema check people.csv --schema schema.toml --json | jq '.columns[].unreadable'
    """  # noqa: D301
    from tacit.cli.fit import read_schema
    from tacit.io.reading import line_counts
    from tacit.schema import check_file

    with before_records():
        declared = read_schema(schema, target)
    output.note(_NOT_PRIVATE)
    with output.progress("reading the table") as step:
        checks = check_file(data, declared, delimiter=delimiter, progress=step)
    lines = line_counts(data, delimiter=delimiter)
    if as_json:
        columns = [vars(column) for column in checks]
        output.document({"private": False, "lines": vars(lines), "columns": columns})
        return
    _show(checks)
    for sentence in lines.sentences():
        output.note(sentence)
    for sentence in unreadable(checks):
        output.note(sentence)


def unreadable(checks: Iterable[ColumnCheck]) -> Iterator[str]:
    """Yield a sentence for each column with values that its schema cannot read.

    Examples
    --------
    >>> from tacit.cli.schema import unreadable
    >>> from tacit.schema.columns import ColumnCheck
    >>> for sentence in unreadable([ColumnCheck("sex", "category", 1000, unreadable=812)]):
    ...     print(sentence[:69])
    column 'sex': 812 of 1,000 values are none that the schema declares,
    """
    for check in checks:
        # Missing features are handled by the schema; a missing target drops the record.
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


_QUESTION = "  [y]es, [e]dit, [c]hange, [i]gnore, [b]ack or [q]uit? "
_INTRODUCTION = """\
Each line was guessed from the data. Could you have written it without the
data, from a code book or common sense?
  y  yes, this is known without the data
  e  edit it: write what is known
  c  change a key: kind, log, missing, missing_codes, reference, per, ...
  i  ignore the column; it will not be read
  b  go back to the line before
  q  quit, and keep the answers given so far (Ctrl-C keeps none)
"""
_CHANGE = """\
  Write a key and its value, one a line, and Enter alone at the end. A key
  without a value is taken out. For instance:
    kind = category
    values = jan, feb, mar
    missing = indicator
    missing_codes = 9999, NA
"""
_EDITED = ("lower", "upper", "cuts", "values", "classes")
_LISTS = ("cuts", "values", "classes", "true", "false", "missing_codes")
_FLAGS = ("log", "fold_case")
_AMOUNTS = ("lower", "upper", "per", "max_values")
# A category and a target declare the same, under other names.
_RENAMED = {"target": ("values", "classes"), "category": ("classes", "values")}
_ACTIONS = ("accepted", "edited", "ignored")


@dataclass
class _Answers:
    """The schema as answered so far, and the last action taken on each column."""

    schema: Schema
    actions: dict[str, str] = field(default_factory=dict)

    @property
    def done(self) -> dict[str, list[str]]:
        """The columns by action."""
        return {
            action: [name for name, taken in self.actions.items() if taken == action]
            for action in _ACTIONS
        }

    def take(self, name: str, line: dict[str, Any], what: str) -> None:
        """Replace the line of a column; a SchemaError leaves the schema unchanged."""
        self.schema = _with_line(self.schema, name, line)
        self.actions[name] = what


def confirm(
    path: Annotated[Path, typer.Argument(metavar="SCHEMA", help="A draft: .toml or .json.")],
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Where to write; by default the draft is replaced."),
    ] = None,
    force: opt.Force = False,
    as_json: opt.AsJson = False,
) -> None:
    """Confirm the guessed lines of a draft, one by one.

    For each line, accept it if it is known without the data, edit it, change a key such as kind,
    log, missing or reference, ignore its column, go back, or quit. Lists need no quotes: jan, feb,
    mar. The file is written once, as a whole, at the end or when you quit; other lines and your
    comments are unchanged.

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
    place, names = 0, draft.unconfirmed
    while 0 <= place < len(names):
        name = names[place]
        _tell(f"{place + 1} of {len(names)}  {_shown(answers.schema, name)}")
        if name in comments and name not in answers.actions:
            _tell(f"  {comments[name]}")
        step = _answered(answers, name)
        if step is None:
            break
        if place + step < 0:
            _tell("  This is the first line.")
        place = max(place + step, 0)
    return answers


def _answered(answers: _Answers, name: str) -> int | None:
    """Ask about one line until the answer is valid; return the step to the next, None to quit."""
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
            elif answer == "c" and (changed := _changed(line)) != line:
                answers.take(name, changed, "edited")
                _tell(f"  now: {_shown(answers.schema, name)}")
            elif answer == "b":
                return -1
            elif answer == "q":
                return None
            else:
                continue
        except (SchemaError, ValueError, RecursionError) as error:
            _tell(f"  Invalid: {error}")
        else:
            return 1


def _edited(name: str, line: dict[str, Any]) -> dict[str, Any]:
    """Return a line with the values that a person enters for its keys, or for all of it."""
    from tacit.schema.schema_file import key_text, read_toml, value_text

    keys = [key for key in _EDITED if key in line]
    if not keys:
        _tell('  Write the whole line, such as { kind = "number", lower = 0, upper = 120 }.')
        written = ask(f"  {key_text(name)} = ")
        found = read_toml(f"it = {written}")["it"] if written else line
        return found if isinstance(found, dict) else {"kind": found}
    for key in keys:
        written = ask(f"  {key} (Enter keeps {value_text(line[key])}): ")
        if written:
            line = {**line, key: value_written(key, written)}
    return line


def _changed(line: dict[str, Any]) -> dict[str, Any]:
    """Return a line with the keys and values that a person writes, one a line."""
    from tacit.schema.schema_file import keys_of

    _tell(_CHANGE)
    kind = line["kind"]
    while written := ask("  "):
        key, _, value = (part.strip() for part in written.partition("="))
        line = {other: known for other, known in line.items() if other != key}
        if value:
            line[key] = value_written(key, value)
    if line.get("kind", kind) == kind:
        return {"kind": kind, **line}
    before, after = _RENAMED.get(line["kind"], ("", ""))
    if before in line and after not in line:
        line[after] = line[before]
    known, required = keys_of(line["kind"])
    for key in required:
        is_range = key == "classes" and ("lower" in line or "upper" in line)
        if key not in line and not is_range:
            line[key] = value_written(key, ask(f"  {key}: "))
    rest = {key: value for key, value in line.items() if key in known}
    return {"kind": line["kind"], **rest}


def value_written(key: str, text: str) -> Any:
    """Return the value of a key as a person writes it; lists and words need no quotes.

    Examples
    --------
    >>> from tacit.cli.schema import value_written
    >>> value_written("values", "jan, feb, mar"), value_written("cuts", "3, 7")
    (['jan', 'feb', 'mar'], [3, 7])
    >>> value_written("log", "yes"), value_written("missing", "{ value = 40 }")
    (True, {'value': 40})
    """
    from tacit.schema.schema_file import read_toml

    if key in _FLAGS and text.lower() in ("yes", "no", "true", "false"):
        return text.lower() in ("yes", "true")
    if key in _LISTS and '"' in text and text[:1] not in ("[", "{"):
        text = f"[{text}]"  # a word in quotes may have a comma
    if key in _LISTS and text[:1] not in ("[", "{"):
        return [_item(part) for part in text.split(",") if part.strip()]
    is_word = key not in (*_LISTS, *_FLAGS, *_AMOUNTS)
    if is_word and text[:1] not in ('"', "'", "{"):
        return text
    return read_toml(f"it = {text}")["it"]


def _item(text: str) -> Any:
    """Return an item of a list: a number, or a word with or without quotes."""
    from tacit.schema.schema_file import read_toml

    try:
        found = read_toml(f"it = {text}")["it"]
    except ValueError:
        return text.strip()
    # 01 and 1e3 are words as they stand: only plain numbers are numbers.
    return found if isinstance(found, str) or str(found) == text.strip() else text.strip()


def ask(question: str) -> str:
    """Return a line of standard input; the question goes to standard error."""
    sys.stderr.write(output.shown_lines(question))
    sys.stderr.flush()
    try:
        answer = sys.stdin.readline()
    except UnicodeDecodeError:
        raise Refused("an answer is not text; nothing was written.") from None
    if not sys.stdin.isatty():  # no Enter was echoed, so end the question's line
        _tell(answer.rstrip("\n"))
    if not answer:
        raise Refused(
            "the input ended before the questions; nothing was written. Answer q to keep some."
        )
    return answer.strip()


def _tell(text: str) -> None:
    sys.stderr.write(output.shown_lines(text) + "\n")


def _line(schema: Schema, name: str) -> dict[str, Any]:
    """Return the keys of a column's line without the mark ``confirmed``."""
    (line,) = (line for line in schema.to_dict()["columns"] if line["name"] == name)
    return {key: value for key, value in line.items() if key not in ("name", "confirmed")}


def _with_line(schema: Schema, name: str, line: dict[str, Any]) -> Schema:
    record = schema.to_dict()
    columns = [c if c["name"] != name else {**line, "name": name} for c in record["columns"]]
    return schema.from_dict({**record, "columns": columns})


def _shown(schema: Schema, name: str) -> str:
    from tacit.schema.schema_file import column_text

    return column_text(name, _line(schema, name))


def _text(path: Path, text: str, schema: Schema, changed: frozenset[str]) -> str:
    from tacit.schema.draft import HEADER
    from tacit.schema.schema_file import json_of, toml_with

    if path.suffix.lower() == ".json":
        return json_of(schema)
    if not schema.unconfirmed:  # no longer a draft
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
    "THIS DRAFT WAS MADE FROM THE DATA, without any privacy. Until every line is checked it is as "
    "sensitive as they are. Check each line, by tacit schema confirm or by deleting its "
    '"confirmed = false" yourself.'
)


@schema.callback()
def _group(context: typer.Context) -> None:
    """Declare what is public about a table."""
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
    """Draft a schema from a table. Every line is a guess, and marked as one.

    A fit refuses a schema with such lines: they may reveal single people, such as the oldest or
    the one in a rare category. Replace each guess by what you know without the data, then delete
    its mark; tacit schema confirm helps with this.

    \b
    Examples:
      tacit schema draft people.csv --target income --out schema.toml
      tacit schema draft people.parquet --json
    """  # noqa: D301
    from tacit.io.reading import line_counts
    from tacit.saving.container import write_whole
    from tacit.schema import draft_schema
    from tacit.schema.schema_file import read_toml

    check_new(out, force, data)
    text = draft_schema(data, target, delimiter=delimiter)
    output.note(_LOOKED)
    for sentence in line_counts(data, delimiter=delimiter).sentences():
        output.note(sentence)
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
