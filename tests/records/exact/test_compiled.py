"""Machine code on disk is that of today's sources, whichever of them changed."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from inspect import getsource
from pathlib import Path
from types import ModuleType
from unittest import mock

import numba
import pytest

from tacit.records.exact import compiled, kernels

FILES = [compiled, kernels]


@contextmanager
def changed(module: ModuleType | None) -> Iterator[None]:
    """Have a line more in one of the sources."""

    def read(each: ModuleType) -> str:
        return getsource(each) + ("LANES = 64\n" if each is module else "")

    compiled._made_of.cache_clear()
    with mock.patch.object(compiled, "getsource", read):
        yield
    compiled._made_of.cache_clear()


def test_an_upgrade_of_one_file_leaves_no_old_machine_code_in_use(tmp_path: Path) -> None:
    def same(number: float) -> float:
        return number

    for n, module in enumerate([None, compiled], start=1):
        same.__qualname__ = "same"
        with changed(module), mock.patch.object(numba.config, "CACHE_DIR", str(tmp_path)):
            compiled._machine_code(same)(1.0)
        assert len(list(tmp_path.rglob("*.nbi"))) == n


def test_the_digest_is_one_of_all_sources() -> None:
    digests = set[str]()
    for module in (None, None, *FILES):
        with changed(module):
            digests.add(compiled._made_of())
    assert len(digests) == 1 + len(FILES)


def test_every_file_that_machine_code_is_made_of_is_in_its_name() -> None:
    names = {module.__name__ for module in FILES}
    for module in FILES:
        for line in ast.walk(ast.parse(getsource(module))):
            if isinstance(line, ast.ImportFrom) and str(line.module).startswith("tacit"):
                found = {f"{line.module}.{name.name}" for name in line.names} & set(sys.modules)
                assert (found or {line.module}) <= names


def test_without_sources_machine_code_is_made_anew() -> None:
    with mock.patch.object(compiled, "_made_of", side_effect=OSError):
        assert compiled._machine_code(lambda: 3)() == 3


@pytest.mark.parametrize("name", ["put", "along", "down", "logistic_sum"])
def test_what_is_called_is_kept(name: str) -> None:
    assert compiled._made_of() in getattr(compiled, name).py_func.__qualname__
