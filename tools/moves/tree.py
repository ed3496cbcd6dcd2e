"""Find the modules of the tree and the text files that may name them."""

from __future__ import annotations

import ast
import subprocess
from functools import cache
from pathlib import Path

SOURCE = Path("src")
PACKAGE = SOURCE / "tacit"
# Files written by older code, measured results, and these tables: none of them is rewritten.
UNTOUCHED = (
    "tests/golden/kept/",
    "tests/golden/pins/",
    "tests/saving/golden/",
    "benchmarks/results/",
    "docs/sources/figures/",
    "tools/moves/",
)
TEXTS = {".py", ".md", ".toml", ".yml", ".yaml", ".txt", ".ini", ".cfg", ""}


def git(*words: str) -> str:
    """Return what a git command prints."""
    return subprocess.run(["git", *words], check=True, capture_output=True, text=True).stdout


def text_files() -> list[Path]:
    """Return every tracked or new text file that names modules."""
    names = git("ls-files", "--cached", "--others", "--exclude-standard").splitlines()
    return [
        Path(name)
        for name in sorted(set(names))
        if not name.startswith(UNTOUCHED)
        and Path(name).suffix in TEXTS
        and Path(name).is_file()
        and not Path(name).is_symlink()
    ]


def path_of(module: str, root: Path = SOURCE) -> Path:
    """Return the file of a module that is not a package."""
    return root.joinpath(*module.split(".")).with_suffix(".py")


def init_of(package: str, root: Path = SOURCE) -> Path:
    """Return the ``__init__`` file of a package."""
    return root.joinpath(*package.split("."), "__init__.py")


def is_module(module: str) -> bool:
    """Return whether a module stands in a file of its own."""
    return path_of(module).is_file()


def is_package(package: str) -> bool:
    """Return whether a package is there."""
    return init_of(package).is_file()


@cache
def exported_by(package: str) -> frozenset[str]:
    """Return the names that a package's ``__init__`` binds: they hide submodules of that name."""
    path = init_of(package)
    return (
        frozenset(bound_names(ast.parse(path.read_text()).body)) if path.is_file() else frozenset()
    )


def bound_names(body: list[ast.stmt]) -> dict[str, ast.AST]:
    """Return the names that statements of a module bind, each with what binds it."""
    found: dict[str, ast.AST] = {}
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found[node.name] = node
        elif isinstance(node, ast.Import | ast.ImportFrom):
            for alias in node.names:
                found[alias.asname or alias.name.split(".")[0]] = node
        elif isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                for inner in ast.walk(target):
                    if isinstance(inner, ast.Name):
                        found[inner.id] = node
        elif isinstance(node, ast.If | ast.Try | ast.With | ast.For | ast.While):
            inner_body = [*node.body, *getattr(node, "orelse", []), *getattr(node, "finalbody", [])]
            for handler in getattr(node, "handlers", []):
                inner_body += handler.body
            for name in bound_names(inner_body):
                found[name] = node
            if isinstance(node, ast.For):
                for inner in ast.walk(node.target):
                    if isinstance(inner, ast.Name):
                        found[inner.id] = node
    return found
