"""The text of a schema file with some lines changed, so that what else stands in it stays."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from tacit.preprocessing.schema.schema import Schema
from tacit.preprocessing.schema.schema_file import line_text
from tacit.preprocessing.schema.toml_text import read_toml

# A column's entry may go over several lines, since lists of values do, but hardly more than this.
_MOST_LINES = 1000
_COMMENT = re.compile(r"\}\s*#\s*(.*)$")


def toml_with(text: str, schema: Schema, changed: frozenset[str]) -> str:
    r"""Return the text of a schema file with the lines of some columns replaced, and no others.

    Comments at the end of those lines go with them. Where the text is not written one line a
    column, all of it is written anew.

    Examples
    --------
    >>> from tacit.preprocessing import Number, Schema
    >>> from tacit.preprocessing.schema.schema_text import toml_with
    >>> text = '# ours\n[columns]\nage = { kind = "ignored" }  # guessed'
    >>> print(toml_with(text, Schema((Number("age", 0, 120),)), frozenset(["age"])))
    # ours
    [columns]
    age = { kind = "number", lower = 0, upper = 120 }
    """
    lines = {line.pop("name"): line for line in schema.to_dict()["columns"]}
    parts = [
        line_text(name, lines[name]) if name in changed and name in lines else block
        for name, block in _blocks(text)
    ]
    edited = "\n".join(parts)
    try:
        same = Schema.from_dict(read_toml(edited)) == schema
    except ValueError:
        same = False
    return edited if same else schema.to_toml()


def json_of(schema: Schema) -> str:
    """Return the content of a schema file in JSON."""
    return json.dumps(schema.to_dict(), indent=2, ensure_ascii=False) + "\n"


def comments_in(text: str) -> dict[str, str]:
    r"""Return the comments at the end of the lines of columns.

    Examples
    --------
    >>> from tacit.preprocessing.schema.schema_text import comments_in
    >>> comments_in('[columns]\nage = { kind = "ignored" }  # guessed')
    {'age': 'guessed'}
    """
    found = {name: _COMMENT.search(block) for name, block in _blocks(text) if name}
    return {name: match[1] for name, match in found.items() if match}


def _blocks(text: str) -> Iterator[tuple[str, str]]:
    """Yield the text piece by piece: the line of a column with its name, others without."""
    lines, start, inside = text.split("\n"), 0, False
    while start < len(lines):
        stop, found = _statement(lines, start)
        block = "\n".join(lines[start:stop])
        name = next(iter(found), "")
        is_column = inside and len(found) == 1 and isinstance(found[name], Mapping)
        inside = inside or found == {"columns": {}}
        yield (name if is_column else "", block)
        start = stop


def _statement(lines: list[str], start: int) -> tuple[int, dict[str, Any]]:
    """Return where a statement ends that starts on a line, and what it says."""
    for stop in range(start + 1, min(len(lines), start + _MOST_LINES) + 1):
        try:
            return stop, read_toml("\n".join(lines[start:stop]))
        except ValueError:
            continue
    return start + 1, {}
