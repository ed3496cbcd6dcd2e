"""The little of TOML that a schema needs written."""

from __future__ import annotations

import json
import re
from typing import Any

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_WIDTH = 100


def key_text(name: str) -> str:
    """Return a key, quoted where it has to be.

    Examples
    --------
    >>> from tacit.preprocessing.schema.toml_text import key_text
    >>> print(key_text("hours-per-week"), key_text("blood pressure"))
    hours-per-week "blood pressure"
    """
    return name if _BARE_KEY.fullmatch(name) else value_text(name)


def value_text(value: Any) -> str:
    """Return text, a number, a truth value, a list or a table of these as TOML.

    Examples
    --------
    >>> from tacit.preprocessing.schema.toml_text import value_text
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
