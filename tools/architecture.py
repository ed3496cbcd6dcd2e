"""Write docs/architecture.md: the packages in the order of the import contract, and their files.

The table of packages follows from `pyproject.toml` and from the first lines of docstrings, so that
it cannot say what the linter does not hold. The text around it is tools/architecture.in.md.

    python tools/architecture.py
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ROOT / "src" / "tacit"
TEXT, PAGE = Path(__file__).with_suffix(".in.md"), ROOT / "docs" / "architecture.md"
_MARK = "<!-- packages -->"


def layers() -> list[list[str]]:
    """Return the packages of the contract "Imports go one way", lowest first."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    (found,) = [contract["layers"] for contract in contracts if contract["type"] == "layers"]
    return [[name.strip() for name in re.split(r"[|:]", line)] for line in reversed(found)]


def first_line(path: Path) -> str:
    """Return the first line of a module's docstring."""
    text = ast.get_docstring(ast.parse(path.read_text("utf-8"))) or ""
    return text.split("\n")[0].rstrip(".")


def row(module: str) -> str:
    """Return the line of one package or module: its name, what it is, its files or packages."""
    place = SOURCES.joinpath(*module.split(".")[1:])
    if not place.is_dir():
        return f"| `{place.name}.py` | {first_line(place.with_suffix('.py'))} | |"
    inside = [f"`{p.name}/`" for p in sorted(place.iterdir()) if (p / "__init__.py").exists()]
    inside += [
        f"`{p.stem}`" for p in sorted(place.glob("*.py")) if p.stem not in ("__init__", "__main__")
    ]
    return f"| `{place.name}/` | {first_line(place / '__init__.py')} | {', '.join(inside)} |"


def page() -> str:
    """Return the page."""
    rows = [row(module) for layer in layers() for module in layer]
    table = "\n".join(["| package | purpose | files |", "|---|---|---|", *rows])
    text = TEXT.read_text("utf-8")
    head = (
        "<!-- Written by tools/architecture.py from tools/architecture.in.md; edit that file. -->\n"
    )
    return head + text.replace(_MARK, table)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    sys.stdout.write("docs/architecture.md is written\n")
