"""Read and write schemas as TOML and JSON, and edit the text of a schema file."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tacit.io.errors import SchemaError, shown_path
from tacit.schema import _check
from tacit.schema.column_kinds import (
    Boolean,
    Category,
    Intervals,
    Number,
    OpenCategory,
    OpenNumber,
)
from tacit.schema.columns import Column, Fill, Ignored, Indicator, Missing, Neutral
from tacit.schema.date_kinds import Age, Weekday, Year
from tacit.schema.schema import Schema, Unit
from tacit.schema.targets import ClassTarget, NumberTarget, Target

# A schema's longest dotted key, columns.NAME.missing.value, has 4 parts. The time and the memory
# that tomllib needs for a key grow with the square of its parts: 50,000 took 42 s and 4 GB.
_MOST_PARTS = 16
# In the order in which tomllib would take them: a text of several lines may end in two quotes more.
_TOKEN = re.compile(
    r'"""(?:[^"\\]|\\.|"(?!""))*+"""(?:"{0,2})'
    r"|'''(?:[^']|'(?!''))*+'''(?:'{0,2})"
    r'|(?P<open>"""|\'\'\')'
    r"|#[^\n]*"
    r'|(?P<part>[A-Za-z0-9_-]++|"(?:[^"\\\n]|\\.)*+"|\'[^\'\n]*+\')'
    r"|(?P<dot>[ \t]*\.[ \t]*)"
    r"|(?P<stray>[\"'])"
    r"|[ \t]+"
    r"|.",
    re.S,
)


def read_toml(text: str) -> dict[str, Any]:
    """Parse a text in TOML; refuse long dotted keys before it is parsed.

    Raises
    ------
    ValueError
        If the text is not TOML, or has a dotted key of more than 16 parts.

    Examples
    --------
    >>> from tacit.schema.schema_file import read_toml
    >>> read_toml("age.lower = 0")
    {'age': {'lower': 0}}
    >>> read_toml("a." * 50_000 + "b = 0")
    Traceback (most recent call last):
        ...
    ValueError: line 1 has a dotted key of more than 16 parts, which no schema has; shorten it...
    """
    if text.count(".") >= _MOST_PARTS:
        _refuse_long_keys(text)
    return tomllib.loads(text)


def _refuse_long_keys(text: str) -> None:
    n_parts, joined = 0, False  # parts of the key so far, and whether a dot follows them
    for token in _TOKEN.finditer(text):
        if token.lastgroup in ("open", "stray"):
            return  # a text without an end, at which tomllib stops
        if token.lastgroup == "dot":
            joined = n_parts > 0
            continue
        n_parts = (n_parts if joined else 0) + 1 if token.lastgroup == "part" else 0
        joined = False
        if n_parts > _MOST_PARTS:
            line = text.count("\n", 0, token.start()) + 1
            raise ValueError(
                f"line {line} has a dotted key of more than {_MOST_PARTS} parts, which no schema "
                'has; shorten it, or put a name that has dots into quotes, "a.b"'
            )


def key_text(name: str) -> str:
    """Return a key as TOML, quoted if necessary."""
    import tomlkit

    return tomlkit.key(name).as_string()


# Lists longer than half of it, in characters, are written on several lines.
_WIDTH = 100


def value_text(value: Any) -> str:
    """Return a value as TOML, a table on one line.

    Examples
    --------
    >>> from tacit.schema.schema_file import value_text
    >>> print(value_text({"kind": "number", "lower": 0.5, "log": True}))
    { kind = "number", lower = 0.5, log = true }
    """
    import tomlkit

    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key_text(k)} = {value_text(v)}" for k, v in value.items()) + " }"
    if not isinstance(value, list):
        return str(tomlkit.item(value).as_string())
    items = [value_text(item) for item in value]
    line = "[" + ", ".join(items) + "]"
    if len(line) <= _WIDTH // 2:
        return line
    lines = [" "]
    for item in items:
        if len(lines[-1]) + len(item) > _WIDTH:
            lines.append(" ")
        lines[-1] += f" {item},"
    return "[\n" + "\n".join(lines) + "\n]"


def toml_with(text: str, schema: Schema, changed: frozenset[str]) -> str:
    r"""Replace the lines of some columns in the text of a schema file.

    Comments at the end of the replaced lines are dropped. If the text does not have one line per
    column, all of it is written anew.

    Examples
    --------
    >>> from tacit.schema import Number, Schema
    >>> from tacit.schema.schema_file import toml_with
    >>> text = '# ours\n[columns]\nage = { kind = "ignored" }  # guessed'
    >>> print(toml_with(text, Schema((Number("age", 0, 120),)), frozenset(["age"])))
    # ours
    [columns]
    age = { kind = "number", lower = 0, upper = 120 }
    """
    import tomlkit

    document = tomlkit.parse(text)
    lines = _columns_on_lines(document)
    for name, facts in _facts(schema):
        if name in changed and name in lines:
            lines[name] = tomlkit.value(value_text(_as_in_toml(facts)))
            lines[name].trivia.comment_ws = lines[name].trivia.comment = ""
    edited = document.as_string()
    try:
        same = Schema.from_dict(read_toml(edited)) == schema
    except ValueError:
        same = False
    return edited if same else schema.to_toml()


def comments_in(text: str) -> dict[str, str]:
    r"""Return the comments at the end of the lines of columns.

    Examples
    --------
    >>> from tacit.schema.schema_file import comments_in
    >>> comments_in('[columns]\nage = { kind = "ignored" }  # guessed')
    {'age': 'guessed'}
    """
    import tomlkit

    lines = _columns_on_lines(tomlkit.parse(text))
    found = {name: line.trivia.comment.lstrip("# ") for name, line in lines.items()}
    return {name: comment for name, comment in found.items() if comment}


def _columns_on_lines(document: Any) -> Any:
    """Return the table of columns if each is on a line of its own, else an empty one."""
    from tomlkit.items import InlineTable

    columns = document.get("columns")
    whole = isinstance(columns, Mapping) and not isinstance(columns, InlineTable)
    lines = whole and all(isinstance(line, InlineTable) for line in columns.values())
    return columns if lines else {}


def json_of(schema: Schema) -> str:
    """Return the content of a schema file in JSON."""
    return json.dumps(schema.to_dict(), indent=2, ensure_ascii=False) + "\n"


FORMAT = "tacit-schema"
VERSION = 1
_LARGEST_FILE = 16 * 2**20

# The keys of a line are the fields of its class; those without a default are required.
_KINDS: dict[str, type[Any]] = {
    kind.kind: kind
    for kind in (
        *(Number, Intervals, Category, Boolean, Age, Year, Weekday),
        *(OpenNumber, OpenCategory, Ignored, Unit),
    )
}
_REMEDIES = {
    "lower": "write the least value that should count, known without looking at the data",
    "upper": "write the greatest value that should count, known without looking at the data",
    "cuts": "write the points at which intervals start, such as cuts = [20, 40, 60]",
    "values": 'list the values it may have, such as values = ["no", "yes"]',
    "origin": 'write the day at which ages are told, such as origin = "2026-01-31"',
    "max_values": "write how many of its words to learn at most, such as max_values = 20",
    "kind": f"write one of {', '.join(_KINDS)} or target",
    "name": "write the column's name as in the table's header",
}


def read_schema(path: str | os.PathLike[str]) -> Schema:
    """Read a schema from a file, for `Schema.from_file`."""
    shown = shown_path(path)
    content = _content(path, shown)
    suffix = Path(path).suffix.lower()
    if suffix not in (".toml", ".json"):
        raise SchemaError(f"{shown}: a schema is a .toml or a .json file; rename it.")
    try:
        record = read_toml(content) if suffix == ".toml" else _from_json(content)
    except RecursionError:
        raise SchemaError(f"{shown}: lists are nested too deeply for a schema.") from None
    except ValueError as error:
        raise SchemaError(f"{shown} is not valid {suffix[1:].upper()}: {error}.") from None
    try:
        return schema_from_dict(record)
    except SchemaError as error:
        raise SchemaError(f"{shown}: {error}") from None


def _content(path: str | os.PathLike[str], shown: str) -> str:
    try:
        if not Path(path).is_file():
            what = "is a directory" if Path(path).is_dir() else "there is no such file"
            raise SchemaError(f"{shown}: {what}; pass the path of a schema.toml.")
        with Path(path).open("rb") as file:
            content = file.read(_LARGEST_FILE + 1)
    except (OSError, ValueError) as error:
        if isinstance(error, SchemaError):
            raise
        why = getattr(error, "strerror", None) or "the path is not valid"
        raise SchemaError(f"{shown}: the schema cannot be read ({why}).") from None
    if len(content) > _LARGEST_FILE:
        raise SchemaError(f"{shown}: larger than 16 MiB, the limit for a schema; is it the data?")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise SchemaError(f"{shown}: not text in UTF-8; save it as UTF-8.") from None


def _from_json(content: str) -> Any:
    def distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        record = dict(pairs)
        if len(record) < len(pairs):
            names = [name for name, _ in pairs]
            twice = next(name for name in names if names.count(name) > 1)
            raise ValueError(f"the key {_check.shown(twice)} occurs twice")
        return record

    return json.loads(content, object_pairs_hook=distinct)


def schema_from_dict(record: Mapping[str, Any]) -> Schema:
    """Read a schema from plain lists and dictionaries, for `Schema.from_dict`."""
    if not isinstance(record, Mapping):
        raise SchemaError(f"a schema is a table of keys, got {_check.shown(record)}.")
    _refuse_unknown("the schema", record, ("format", "version", "n_records", "columns"))
    if record.get("format", FORMAT) != FORMAT or record.get("version", VERSION) != VERSION:
        raise SchemaError(
            f"format and version must be {FORMAT!r} and {VERSION}; this file was written for "
            "another program or a newer tacit: leave both keys out, or update tacit."
        )
    columns: list[Column] = []
    targets: list[Target] = []
    unconfirmed = []
    for name, line in _lines(record.get("columns")):
        where = _check.named(name)
        if not _check.flag(where, "confirmed", line.get("confirmed", True)):
            unconfirmed.append(name)
        facts = {key: value for key, value in line.items() if key != "confirmed"}
        if facts.get("kind") == "target":
            targets.append(_target(where, name, facts))
        else:
            columns.append(_column(where, name, facts))
    if len(targets) > 1:
        raise SchemaError(
            f"column {_check.shown(targets[1].name)}: kind = 'target' a second time, after "
            f"{_check.shown(targets[0].name)}; declare one target, and the other as ignored."
        )
    return Schema(
        tuple(columns),
        targets[0] if targets else None,
        record.get("n_records"),
        tuple(unconfirmed),
    )


def _lines(columns: object) -> list[tuple[str, dict[str, Any]]]:
    """Return each column's name and its keys, from a table of tables or a list of tables."""
    if isinstance(columns, Mapping):
        lines = list(columns.items())
    elif isinstance(columns, list):
        lines = []
        for line in columns:
            if not isinstance(line, Mapping) or "name" not in line:
                raise _absent("each table in the list columns", "name")
            lines.append((line["name"], {k: v for k, v in line.items() if k != "name"}))
    else:
        raise SchemaError(
            "the schema has no columns; write a table [columns] with a line for each, such as "
            "age = { kind = 'number', lower = 0, upper = 120 }."
        )
    for name, line in lines:
        if not isinstance(line, Mapping):
            raise SchemaError(
                f"{_check.named(name)}: must be a table of keys, got {_check.shown(line)}; write "
                "{ kind = ... }."
            )
    return [(name, dict(line)) for name, line in lines]


def _column(where: str, name: str, facts: dict[str, Any]) -> Column:
    if "kind" not in facts:
        raise _absent(where, "kind")
    kind = facts.pop("kind")
    if not isinstance(kind, str) or kind not in _KINDS:
        raise SchemaError(
            f"{where}: kind = {_check.shown(kind)} is not known; {_REMEDIES['kind']}."
        )
    make = _KINDS[kind]
    # Values of merged levels are written under the key values.
    keys = [field for field in dataclasses.fields(make) if field.name not in ("name", "words")]
    known = ("kind", *(field.name for field in keys))
    _refuse_unknown(f"{where} of kind {kind!r}", facts, known)
    for key in keys:
        if key.default is dataclasses.MISSING and key.name not in facts:
            raise _absent(where, key.name)
    if "missing" in facts:
        facts["missing"] = _missing(where, facts["missing"])
    if make is Category:
        names, words = _levels(where, "values", facts.pop("values"))
        return Category(name, names, words=words, **facts)
    column: Column = make(name, **facts)
    return column


def keys_of(kind: str) -> tuple[list[str], list[str]]:
    """Return the keys that a line of a kind may have, and those that it must have.

    A target must have ``classes``, or ``lower`` and ``upper``; this names the classes.

    Examples
    --------
    >>> from tacit.schema.schema_file import keys_of
    >>> keys_of("intervals")
    (['cuts', 'missing', 'reference', 'missing_codes'], ['cuts'])
    """
    if kind == "target":
        return ["classes", "lower", "upper", "fold_case", "missing_codes"], ["classes"]
    if kind not in _KINDS:
        raise SchemaError(f"kind = {_check.shown(kind)} is not known; {_REMEDIES['kind']}.")
    fields = [f for f in dataclasses.fields(_KINDS[kind]) if f.name not in ("name", "words")]
    required = [f.name for f in fields if f.default is dataclasses.MISSING]
    return [field.name for field in fields], required


def _missing(where: str, treatment: object) -> Missing:
    if treatment == "neutral":
        return Neutral()
    if treatment == "indicator":
        return Indicator()
    if isinstance(treatment, Mapping) and set(treatment) == {"value"}:
        return Fill(treatment["value"])
    raise SchemaError(
        f"{where}: missing = {_check.shown(treatment)} is not known; write 'neutral', 'indicator' "
        "or { value = ... }."
    )


def _target(where: str, name: str, facts: dict[str, Any]) -> Target:
    by_class, by_range = "classes" in facts, "lower" in facts or "upper" in facts
    own = ("classes", "lower", "upper", "missing_codes")
    known = ("kind", *own) if by_range else ("kind", *own, "fold_case")
    _refuse_unknown(f"{where} of kind 'target'", facts, known)
    if by_class == by_range:
        raise SchemaError(
            f"{where}: a target has either classes or lower and upper; write, for instance, "
            'classes = ["no", "yes"].'
        )
    codes = facts.get("missing_codes", ())
    if by_class:
        names, words = _levels(where, "classes", facts["classes"])
        return ClassTarget(name, names, words, facts.get("fold_case", False), codes)
    for key in ("lower", "upper"):
        if key not in facts:
            raise _absent(where, key)
    return NumberTarget(name, facts["lower"], facts["upper"], codes)


def _levels(where: str, key: str, levels: object) -> tuple[Any, Any]:
    """Return plain levels and None, or the names of merged levels and the values of each.

    Merged levels are a table, ``{ early = ["<30"], other = [">30", "NO"] }``, or a list of tables
    with name and values, in which `schema_to_dict` keeps their order.
    """
    if isinstance(levels, Mapping):
        return tuple(levels), tuple(levels.values())
    if not isinstance(levels, list | tuple):
        raise SchemaError(
            f"{where}: {key} must be a list or a table, got {_check.shown(levels)}; write "
            '["no", "yes"], or { no = ["0"], yes = ["1", "2"] } to merge values.'
        )
    if not any(isinstance(line, Mapping) for line in levels):
        return tuple(levels), None
    if not all(isinstance(line, Mapping) and set(line) == {"name", "values"} for line in levels):
        raise SchemaError(
            f"{where}: {key} must all be values, or all tables of name and values, got "
            f"{_check.shown(levels)}."
        )
    return tuple(line["name"] for line in levels), tuple(line["values"] for line in levels)


def _absent(where: str, key: str) -> SchemaError:
    return SchemaError(f"{where}: {key} is not declared; {_REMEDIES[key]}.")


def _refuse_unknown(where: str, record: Mapping[str, Any], known: tuple[str, ...]) -> None:
    for key in record:
        if key not in known:
            raise SchemaError(
                f"{where}: the key {_check.shown(key)} is not known; the keys are "
                f"{', '.join(known)}."
            )


def schema_to_dict(schema: Schema) -> dict[str, Any]:
    """Convert a schema to plain lists and dictionaries, for `Schema.to_dict`."""
    record: dict[str, Any] = {"format": FORMAT, "version": VERSION}
    if schema.n_records is not None:
        record["n_records"] = schema.n_records
    # A list, because the order of columns is the order of features.
    record["columns"] = [{"name": name, **line} for name, line in _facts(schema)]
    return record


def schema_to_toml(schema: Schema, comments: Mapping[str, str] | None = None) -> str:
    """Return a schema as TOML, one line per column, each with its comment at the end."""
    head = [] if schema.n_records is None else [f"n_records = {schema.n_records}", ""]
    lines = [*head, "[columns]"]
    for name, facts in _facts(schema):
        line = column_text(name, facts)
        lines.append(f"{line}  # {comments[name]}" if comments and name in comments else line)
    return "\n".join(lines) + "\n"


def column_text(name: str, facts: Mapping[str, Any]) -> str:
    """Return the line of a column in TOML."""
    return f"{key_text(name)} = {value_text(_as_in_toml(facts))}"


def _as_in_toml(facts: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the facts of a column with merged levels as a table, which keeps its order."""
    for key in ("classes", "values"):
        levels = facts.get(key, ())
        if any(isinstance(line, Mapping) for line in levels):
            return {**facts, key: {line["name"]: line["values"] for line in levels}}
    return facts


def _facts(schema: Schema) -> list[tuple[str, dict[str, Any]]]:
    lines = [*schema.columns, *([] if schema.target is None else [schema.target])]
    unconfirmed = set(schema.unconfirmed)
    return [
        (line.name, {**_line(line), **({"confirmed": False} if line.name in unconfirmed else {})})
        for line in lines
    ]


def _line(line: Any) -> dict[str, Any]:
    """Return the keys of a column or target that differ from their defaults."""
    facts: dict[str, Any] = {"kind": line.kind}
    for field in dataclasses.fields(line):
        value = getattr(line, field.name)
        if field.name not in ("name", "missing", "words") and value != field.default:
            facts[field.name] = (
                list(map(_plain, value)) if isinstance(value, tuple) else _plain(value)
            )
    if isinstance(line, ClassTarget | Category) and line.words is not None:
        key = "classes" if isinstance(line, ClassTarget) else "values"
        # A list, because the digest's JSON sorts the keys of tables.
        named = zip(getattr(line, key), line.words, strict=True)
        facts[key] = [{"name": name, "values": list(words)} for name, words in named]
    missing = getattr(line, "missing", Neutral())
    if isinstance(missing, Indicator):
        facts["missing"] = "indicator"
    elif isinstance(missing, Fill):
        facts["missing"] = {"value": _plain(missing.value)}
    return facts


def _plain(value: Any) -> Any:
    """Return an integral float as an int, the form that all JSON readers preserve."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    return value
