"""No identifier has a word of the old vocabulary, and the check finds one that has."""

from __future__ import annotations

from pathlib import Path

import pytest

from words import problems


def test_the_tree_has_none() -> None:
    assert problems() == []


@pytest.mark.parametrize(
    "source", ["def tilt_of(x): pass", "class TurnedRows: pass", "told = 1", "def f(asked): pass"]
)
def test_an_old_word_is_found(tmp_path: Path, source: str) -> None:
    (tmp_path / "some.py").write_text(source)
    (line,) = problems(tmp_path)
    assert "some.py:1" in line


def test_a_module_is_found_and_other_words_are_not(tmp_path: Path) -> None:
    (tmp_path / "following.py").write_text("stored = reached = parts = 1\n")
    (line,) = problems(tmp_path)
    assert "module" in line
