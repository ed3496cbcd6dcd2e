"""The files of pins, one for each area."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "pins"


@cache
def read(area: str) -> Mapping[str, Any]:
    """Return an area's environment and cases, or none of either."""
    path = FOLDER / f"{area}.json"
    if not path.exists():
        return {"environment": {}, "cases": {}}
    found: Mapping[str, Any] = json.loads(path.read_text())
    return found


def write(area: str, environment: Mapping[str, Any], cases: Mapping[str, Any]) -> None:
    """Write an area's pins, a line for each part of a case, so that a diff shows what changed."""
    content = {"environment": environment, "cases": dict(sorted(cases.items()))}
    (FOLDER / f"{area}.json").write_text(_lines(content, 0) + "\n")


_DEPTH = 3  # cases, a case, its parts


def _lines(value: Any, depth: int) -> str:
    if depth == _DEPTH or not isinstance(value, dict) or not value:
        return json.dumps(value, allow_nan=False, separators=(",", ":"))
    inner = ",\n".join(
        f"{' ' * (depth + 1)}{json.dumps(name)}: {_lines(each, depth + 1)}"
        for name, each in value.items()
    )
    return f"{{\n{inner}\n{' ' * depth}}}"
