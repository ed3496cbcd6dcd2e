"""Files and names of tacit that the documentation, docstrings and comments mention exist.

Decisions, the page of renamed names and the changelog speak of earlier versions: they are left out.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
TACIT = ROOT / "src" / "tacit"
# Dotted names in proofs whose first part is a variable of the page, not a module.
VARIABLES = {"tail.variance"}
CODE = re.compile(r"`([^`\n]+)`|^::: (tacit\S+)")  # in backticks, or in the reference
FILE = re.compile(r"(?<![\w*<>{}./-])([\w./-]*\w\.py)\b(?![\w<*{])")
NAME = re.compile(r"(?<![\w./-])((?:[a-z_]\w*\.)+\w+)(?![\w*<]|\.(?:md|py|toml|json|csv|html))")


Texts = Callable[[], Iterator[tuple[str, str]]]  # places, and what stands there in backticks


def _code_in(path: Path) -> Iterator[tuple[str, str]]:
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        for code, documented in CODE.findall(line):
            yield f"{path.relative_to(ROOT)}:{number}", code or documented


def in_pages() -> Iterator[tuple[str, str]]:
    """Yield what the pages put in backticks."""
    pages = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")]
    pages += [ROOT / "tests" / "README.md", ROOT / "tools" / "architecture.in.md"]
    for page in [*pages, *sorted((ROOT / "docs").rglob("*.md"))]:
        if "decisions" not in page.parts and page.name != "renamed.md":
            yield from _code_in(page)


def in_sources() -> Iterator[tuple[str, str]]:
    """Yield what docstrings, comments and messages put in backticks."""
    for path in sorted([*TACIT.rglob("*.py"), *(ROOT / "tools").glob("*.py")]):
        yield from _code_in(path)


@cache
def _files() -> frozenset[str]:
    """Return every file of the repository, and every end of its path that begins at a folder."""
    found = set()
    for folder in ("src", "tests", "tools", "benchmarks", "docs", ".ci"):
        for path in (ROOT / folder).rglob("*.py"):
            parts = path.relative_to(ROOT).parts
            found |= {"/".join(parts[i:]) for i in range(len(parts))}
    return frozenset(found | {path.name for path in ROOT.glob("*.py")})


@cache
def _modules() -> frozenset[str]:
    parts = (path.relative_to(TACIT.parent).with_suffix("").parts for path in TACIT.rglob("*.py"))
    return frozenset(".".join(names).removesuffix(".__init__") for names in parts)


@cache
def _exists(name: str) -> bool:
    """Return whether a dotted name is a module of tacit, or something that a module has."""
    parts = name.split(".")
    # The longest module first: a package may have a function of a module's name.
    n_parts = next((n for n in range(len(parts), 1, -1) if ".".join(parts[:n]) in _modules()), 1)
    found: Any = importlib.import_module(".".join(parts[:n_parts]))
    for part in parts[n_parts:]:
        if not hasattr(found, part) and part not in getattr(found, "__dataclass_fields__", {}):
            return False
        found = getattr(found, part, object)
    return True


def missing_files(code: str) -> list[str]:
    """Return the Python files that are named and are not in the repository."""
    names = [name.removeprefix("./") for name in FILE.findall(code)]
    return [name for name in names if name not in _files()]


def missing_names(code: str) -> list[str]:
    """Return the dotted names of tacit that are named and do not exist."""
    names = [name for name in NAME.findall(code) if name.startswith("tacit.")]
    return [name for name in names if not _exists(name)]


def _exists_somewhere(name: str) -> bool:
    """Return whether a name like `solvers.certified_solver` is one of some module."""
    head, _, rest = name.partition(".")
    found = [module for module in _modules() if module.endswith(f".{head}")]
    return any(_exists(f"{module}.{rest}") for module in found)


@pytest.mark.parametrize("texts", [in_pages, in_sources])
def test_files_that_texts_mention_exist(texts: Texts) -> None:
    found = [f"{where}: {name}" for where, code in texts() for name in missing_files(code)]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("texts", [in_pages, in_sources])
def test_names_that_texts_mention_exist(texts: Texts) -> None:
    pytest.importorskip("torch")
    found = [f"{where}: {name}" for where, code in texts() for name in missing_names(code)]
    assert not found, "\n".join(found)


def test_modules_that_proofs_mention_without_their_package_exist() -> None:
    found = [
        f"{where}: {name}"
        for where, code in in_pages()
        if where.startswith("docs/proofs/")
        for name in NAME.findall(code)
        if not name.startswith(("tacit.", "self.", "np.")) and name not in VARIABLES
        if not FILE.search(name) and not _exists_somewhere(name)
    ]
    assert not found, "\n".join(found)


def test_pages_that_sources_mention_exist() -> None:
    found = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in sorted(TACIT.rglob("*.py"))
        for name in re.findall(r"\bdocs/[\w/]+\.md\b", path.read_text("utf-8"))
        if not (ROOT / name).is_file()
    ]
    assert not found, "\n".join(found)


def test_stale_names_are_found() -> None:
    assert missing_files("`no_such_file.py`, `noise/gaussian.py`") == ["no_such_file.py"]
    assert missing_names("tacit.noise.no_such_name") == ["tacit.noise.no_such_name"]
    assert not missing_names("tacit.privacy.Budget.epsilon")
    assert not _exists_somewhere("two_worlds._judged")
