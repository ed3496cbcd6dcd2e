"""Every Python block of the README and the documentation runs, without a warning."""

from __future__ import annotations

import inspect
import operator
import re
import warnings
from pathlib import Path

import pytest

import aggregators
import renamed
import tacit

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page: Path) -> list[tuple[int, str]]:
    """Return each Python block with the number of its first line."""
    text = page.read_text(encoding="utf-8")
    return [(text.count("\n", 0, m.start(1)) + 1, m.group(1)) for m in BLOCK.finditer(text)]


PAGES = [
    page for page in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))) if blocks(page)
]


def test_pages_are_found() -> None:
    names = {page.name for page in PAGES}
    assert {"README.md", "tutorial.md", "which_mechanism.md", "noisy_gradient.md"} <= names


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_blocks_run(page: Path) -> None:
    if "tacit.deep" in page.read_text(encoding="utf-8"):
        pytest.importorskip("torch")
    # One namespace a page: a block may use what the ones above it made.
    namespace: dict[str, object] = {"__name__": "__main__"}
    for line, source in blocks(page):
        # Blank lines first, so that a traceback names the page's own line.
        code = compile("\n" * (line - 1) + source, str(page), "exec")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            exec(code, namespace)


def test_the_list_of_pages_names_every_page() -> None:
    folder = ROOT / "docs"
    listed = (folder / "README.md").read_text(encoding="utf-8")
    names = {page.relative_to(folder).as_posix() for page in folder.rglob("*.md")} - {"README.md"}
    assert [n for n in sorted(names) if not n.startswith("api/") and f"]({n})" not in listed] == []


def test_the_readme_names_every_package() -> None:
    """All but those that no user imports: the command line, and what estimators share."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    folder = Path(tacit.__file__).parent
    names = {path.parent.name for path in folder.glob("*/__init__.py")} - {"cli", "estimators"}
    assert [name for name in sorted(names) if f"`tacit.{name}`" not in text] == []


def test_every_target_of_the_makefile_is_phony() -> None:
    text = (ROOT / "Makefile").read_text(encoding="utf-8").replace("\\\n", " ")
    (phony,) = re.findall(r"^\.PHONY:(.*)$", text, re.MULTILINE)
    assert set(re.findall(r"^([a-z][\w-]*):(?!=)", text, re.MULTILINE)) == set(phony.split())


def test_the_page_of_renamed_names_is_up_to_date() -> None:
    assert renamed.PAGE.read_text(encoding="utf-8") == renamed.page(), "run make renamed"


def test_the_table_of_aggregators_is_up_to_date() -> None:
    assert aggregators.PAGE.read_text(encoding="utf-8") == aggregators.page(), "make trusted-code"


@pytest.mark.parametrize("kind", ["names", "parameters", "members"])
def test_new_names_are_there_and_old_ones_are_not(kind: str) -> None:
    pytest.importorskip("torch")
    for place, names in renamed.tables()[kind].items():
        of = operator.attrgetter(place.removeprefix("tacit."))(tacit)
        if kind == "parameters":
            known = set(inspect.signature(of).parameters)
        else:  # a field without a default is no attribute of its class
            known = {*dir(of), *getattr(of, "__dataclass_fields__", {})}
        assert set(names.values()) <= known, place
        assert not known & set(names), place
