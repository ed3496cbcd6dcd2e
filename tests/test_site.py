"""The documentation site lists every page and every public name, and builds without a warning."""

from __future__ import annotations

import importlib
import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
API = sorted((DOCS / "api").glob("*.md"))
NAV_PAGE = re.compile(r"^ +- (?:.+: )?(\S+\.md)$", re.MULTILINE)
DIRECTIVE = re.compile(r"^::: (tacit\.[\w.]+)$", re.MULTILINE)
LOADED = re.compile(r"""<(?:script|img|iframe|source)\b[^>]*\bsrc=["']?([^"'\s>]+)""")
LINKED = re.compile(r"""<link\b[^>]*\bhref=["']?([^"'\s>]+)""")
PACKAGES = (
    "queries",
    "tuning",
    "pipeline",
    "metrics",
    "kernel",
    "features",
    "images",
    "datasets",
    "erm",
    "erm.losses",
    "ledger",
    "linear_model",
    "local",
    "location",
    "noise",
    "io",
    "preprocessing",
    "privacy",
    "records",
    "report",
    "saving",
    "schema",
    "testing",
)
# Offered here too, for convenience.
AGAIN = {
    ("tuning", law) for law in ("Capped", "FixedTries", "Poisson", "TruncatedNegativeBinomial")
}
# Modules without an __all__: what is public there.
MODULES = {"table_model": {"TableModel"}}


def documented() -> list[str]:
    return [name for page in API for name in DIRECTIVE.findall(page.read_text(encoding="utf-8"))]


def test_nav_lists_every_page_once() -> None:
    listed = NAV_PAGE.findall((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    pages = {page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md")}
    outside = {page for page in listed if page.startswith("repository/")}
    assert len(listed) == len(set(listed))
    assert set(listed) - outside == pages
    assert all((ROOT / page.removeprefix("repository/")).is_file() for page in outside)


@pytest.mark.parametrize("package", PACKAGES)
def test_reference_has_every_public_name(package: str) -> None:
    # What is offered a second time, like the laws of a search, is documented where it is from.
    public = {
        f"tacit.{package}.{name}"
        for name in importlib.import_module(f"tacit.{package}").__all__
        if (package, name) not in AGAIN
    }
    here = [name for name in documented() if name.rpartition(".")[0] == f"tacit.{package}"]
    assert sorted(here) == sorted(public)


@pytest.mark.parametrize("module", MODULES)
def test_reference_has_every_public_class(module: str) -> None:
    loaded = importlib.import_module(f"tacit.{module}")
    public = {
        name
        for name, value in vars(loaded).items()
        if not name.startswith("_") and getattr(value, "__module__", None) == f"tacit.{module}"
    }
    assert public == MODULES[module]
    assert {f"tacit.{module}.{name}" for name in public} <= set(documented())


@pytest.mark.skipif(
    importlib.util.find_spec("mkdocstrings") is None,
    reason="the site's tools come with `make docs`",
)
def test_site_builds_and_loads_nothing_from_elsewhere(tmp_path: Path) -> None:
    site = tmp_path / "site"
    subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(site)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        check=True,
        timeout=300,
    )
    pages = {page: page.read_text(encoding="utf-8") for page in site.rglob("*.html")}
    assert site / "index.html" in pages
    assert site / "api" / "privacy.html" in pages
    assert 'id="tacit.privacy.Budget"' in pages[site / "api" / "privacy.html"]
    # A "<" in a formula is a less-than sign, not a tag.
    assert "&lt;r_t - p_t, e&gt;" in pages[site / "proofs" / "banco.html"]
    sources = {
        url for html in pages.values() for url in LOADED.findall(html) + LINKED.findall(html)
    }
    assert sources
    assert not [url for url in sources if url.startswith(("http:", "https:", "//"))]
