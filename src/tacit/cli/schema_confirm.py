"""``tacit schema confirm``: go through the guessed lines of a schema, one by one."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.cli import options as opt
from tacit.cli import output
from tacit.cli.errors import Refused
from tacit.cli.files import check_new

if TYPE_CHECKING:
    from tacit.preprocessing import Schema

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
    from tacit.preprocessing import Schema
    from tacit.preprocessing.schema.schema_text import comments_in
    from tacit.saving.files import write_whole

    target = path if out is None else out
    check_new(out, force, path)
    draft = Schema.from_file(path)
    check_new(target, True)
    before = path.read_bytes()
    text = before.decode("utf-8-sig").replace("\r\n", "\n")
    if not draft.unconfirmed:
        output.say(f"{path.name}: every line is confirmed; there is nothing to do.")
        return
    answers = _asked(draft, comments_in(text) if path.suffix.lower() == ".toml" else {})
    if path.read_bytes() != before:
        raise Refused(f"{path.name} was changed meanwhile; nothing was written. Start again.")
    changed = frozenset(name for names in answers.done.values() for name in names)
    if changed or out is not None:
        write_whole(target, _text(target, text, answers.schema, changed).encode("utf-8"))
    _report(target, answers, as_json)


def _asked(draft: Schema, comments: dict[str, str]) -> _Answers:
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
    from tacit.preprocessing import SchemaError

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
    from tacit.preprocessing.schema.toml_text import key_text, read_toml, value_text

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
    from tacit.preprocessing.schema.schema_file import line_text

    return line_text(name, _line(schema, name))


def _text(path: Path, text: str, schema: Schema, changed: frozenset[str]) -> str:
    from tacit.preprocessing.draft.draft import HEADER
    from tacit.preprocessing.schema.schema_text import json_of, toml_with

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
