"""The page on architecture follows from the import contract and from docstrings."""

from __future__ import annotations

from architecture import PAGE, SOURCES, layers, page


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run make trusted-code"


def test_every_package_is_in_the_contract() -> None:
    named = {module.split(".")[1] for layer in layers() for module in layer}
    there = {path.stem for path in SOURCES.glob("*.py") if path.stem != "__init__"}
    there |= {path.parent.name for path in SOURCES.glob("*/__init__.py")}
    assert named == there
