"""The little of TOML that a schema needs written, and TOML read within bounds."""

from __future__ import annotations

import json
import re
import tomllib
from typing import Any

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_WIDTH = 100
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
    """Return what a text in TOML says, refusing keys that no schema has before it is parsed.

    Raises
    ------
    ValueError
        If the text is no TOML, or has a dotted key of more than 16 parts.

    Examples
    --------
    >>> from tacit.schema.toml_text import read_toml
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
    n_parts, joined = 0, False  # of the key so far, and whether a dot asks for more
    for token in _TOKEN.finditer(text):
        if token.lastgroup in ("open", "stray"):
            return  # a text that does not end, at which tomllib stops
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
    """Return a key, quoted where it has to be.

    Examples
    --------
    >>> from tacit.schema.toml_text import key_text
    >>> print(key_text("hours-per-week"), key_text("blood pressure"))
    hours-per-week "blood pressure"
    """
    return name if _BARE_KEY.fullmatch(name) else value_text(name)


def value_text(value: Any) -> str:
    """Return text, a number, a truth value, a list or a table of these as TOML.

    Examples
    --------
    >>> from tacit.schema.toml_text import value_text
    >>> print(value_text({"kind": "number", "lower": 0.5, "log": True}))
    { kind = "number", lower = 0.5, log = true }
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        # JSON's escapes are TOML's, but for the one control character JSON leaves as it is.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key_text(k)} = {value_text(v)}" for k, v in value.items()) + " }"
    if isinstance(value, list):
        return _list_text([value_text(item) for item in value])
    return repr(value)


def _list_text(items: list[str]) -> str:
    """Return a list on one line, or on several where it is long."""
    line = "[" + ", ".join(items) + "]"
    if len(line) <= _WIDTH // 2:
        return line
    lines = [" "]
    for item in items:
        if len(lines[-1]) + len(item) > _WIDTH:
            lines.append(" ")
        lines[-1] += f" {item},"
    return "[\n" + "\n".join(lines) + "\n]"
