"""Refuse words of tacit's old private vocabulary in identifiers and module names.

Nobody can search for a word that only this code uses. The glossary (docs/glossary.md) has the
field's words for all of these.

    python tools/words.py
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

SOURCES = Path(__file__).resolve().parents[1] / "src" / "tacit"
# Refused as whole parts of an identifier, in snake_case or CamelCase.
OLD = {
    "tilt",
    "tilts",
    "tilting",
    "tilted",
    "turned",
    "turning",
    "there",
    "bending",
    "bend",
    "following",
    "descending",
    "descended",
    "expecting",
    "steep",
    "moved",
    "reach",
    "informed",
    "told",
    "asked",
    "heard",
    "paying",
    "steadying",
    "widened",
    "sharpened",
    "taken_apart",
    "sharing",
    "apart",
    "kept",
    "standing",
    "forks",
    "books",
    "course",
    "courses",
}

# Public attributes of additive models: the columns that are kept.
ALLOWED = {"tacit/additive/estimators.py": {"kept_"}, "tacit/additive/terms.py": {"kept"}}


def parts_of(name: str) -> set[str]:
    """Return the words of an identifier, and the identifier itself."""
    snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
    return {part for part in snake.split("_") if part} | {snake.strip("_")}


def identifiers(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Yield every name that a module defines or assigns, with its line."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name, node.lineno
        elif isinstance(node, ast.arg):
            yield node.arg, node.lineno
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id, node.lineno
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr, node.lineno


def problems(sources: Path = SOURCES) -> list[str]:
    """Return every place where an old word names something."""
    found = []
    for path in sorted(sources.rglob("*.py")):
        where = path.relative_to(sources.parent).as_posix()
        if parts_of(path.stem) & OLD:
            found.append(f"{where}: the module's name has an old word")
        for name, line in identifiers(ast.parse(path.read_text("utf-8"))):
            if parts_of(name) & OLD and name not in ALLOWED.get(where, ()):
                found.append(f"{where}:{line}: {name} has an old word; see docs/glossary.md")
    return found


if __name__ == "__main__":
    refused = problems()
    sys.stdout.writelines(f"{line}\n" for line in refused)
    sys.exit(bool(refused))
