"""Every public name is in the reference, is reached by a test through its package, and is needed.

Public is what a package of tacit names in ``__all__``: what a user types, or somebody who adds a
loss, a query, a mechanism or a record source. What tacit's own modules share is imported from the
module that defines it.
"""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import renamed
import tacit

ROOT = Path(__file__).parents[1]
DIRECTIVE = re.compile(r"^::: (tacit\.[\w.]+)$", re.MULTILINE)
# As many distinct names as there are; a new one is a deliberate step.
MOST_NAMES = 370


@cache
def packages() -> dict[str, tuple[str, ...]]:
    """Return the public names of every package, without those that are packages."""
    found = {}
    for info in pkgutil.walk_packages(tacit.__path__, "tacit."):
        if info.ispkg and not (info.name.startswith("tacit.deep") and find_spec("torch") is None):
            package = importlib.import_module(info.name)
            found[info.name] = tuple(getattr(package, "__all__", ()))
    return found


def public() -> Iterator[tuple[str, str]]:
    return ((package, name) for package, names in packages().items() for name in names)


def value(module: str, name: str) -> Any:
    """Return what a module holds under a name, or None."""
    try:
        return getattr(importlib.import_module(module), name, None)
    except ImportError:
        return None


def not_among(used: Iterable[tuple[str, str]]) -> list[str]:
    """Return the public names whose objects are not used, under whichever path."""
    known = {id(value(*place)) for place in used if place[0].startswith("tacit")}
    return [
        f"{package}.{name}" for package, name in public() if id(value(package, name)) not in known
    ]


def used_by_tests() -> set[tuple[str, str]]:
    """Return what tests import from modules of tacit, or use as an attribute of one."""
    found = set()
    for path in (ROOT / "tests").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module:
                found |= {(node.module, alias.name) for alias in node.names}
            elif isinstance(node, ast.Attribute) and ast.unparse(node).startswith("tacit."):
                place, _, name = ast.unparse(node).rpartition(".")
                found.add((place, name))
    return found


@pytest.mark.parametrize("package", packages())
def test_every_name_is_there_once(package: str) -> None:
    names = packages()[package]
    assert len(set(names)) == len(names)
    assert not [name for name in names if name.startswith("_")]
    loaded = importlib.import_module(package)
    assert [name for name in names if not hasattr(loaded, name)] == []


def test_every_name_has_its_place_in_the_reference() -> None:
    pages = (ROOT / "docs" / "api").glob("*.md")
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages)
    places = [
        (place, name) for place, _, name in (n.rpartition(".") for n in DIRECTIVE.findall(text))
    ]
    gone = [place for place in places if value(*place) is None]
    assert gone == [] or find_spec("torch") is None
    # The command line has a page of its own.
    assert not_among([*places, ("tacit.cli", "main")]) == []


def test_every_name_is_reached_by_a_test() -> None:
    assert not_among(used_by_tests()) == []


def test_there_are_no_more_names_than_needed() -> None:
    assert len({name for _, name in public()} | set(tacit.__all__)) <= MOST_NAMES


def test_names_that_left_are_not_public() -> None:
    for package, names in renamed.removed().items():
        if package in packages():
            assert not set(names) & set(packages()[package]), package
