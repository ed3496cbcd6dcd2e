"""What `make registry` writes is up to date, and every mechanism has its page and its proof."""

from __future__ import annotations

from pathlib import Path

import pytest

import registry_pages
from tacit.erm import Mechanism
from tacit.erm.mechanisms import KINDS
from tacit.mechanism_names import MECHANISM_NAMES


@pytest.mark.parametrize("path", registry_pages.BLOCKS)
def test_nothing_is_out_of_date(path: str) -> None:
    file = registry_pages.ROOT / path
    assert file.read_text(encoding="utf-8") == registry_pages.written(path), "run make registry"


@pytest.mark.parametrize("kind", KINDS.values(), ids=list(KINDS))
def test_a_mechanism_has_its_page_and_its_proof(kind: type[Mechanism]) -> None:
    assert kind.suits, "say which tasks it is the choice for, and why"
    for place in (registry_pages.page_of(kind), registry_pages.proof_of(kind)):
        text = (registry_pages.DOCS / place).read_text(encoding="utf-8")
        assert kind.__name__ in text or kind.title.lower() in text.lower(), place


def test_help_names_every_mechanism() -> None:
    from tacit.cli.options import MechanismName

    (option,) = MechanismName.__metadata__  # type: ignore[attr-defined]
    assert all(name in option.help for name in MECHANISM_NAMES)


def test_a_file_without_its_marks_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry_pages, "ROOT", tmp_path)
    (tmp_path / "mkdocs.yml").write_text("nav:\n")
    with pytest.raises(ValueError, match=r"mkdocs.yml has marks of \[\]"):
        registry_pages.written("mkdocs.yml")
