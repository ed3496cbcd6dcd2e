from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import tacit


def test_importing_tacit_loads_nothing_heavy() -> None:
    code = (
        "import sys, tacit, tacit.privacy, tacit.noise\n"
        "heavy = ['pandas', 'matplotlib', 'dp_accounting', 'scipy.stats', 'sklearn', 'polars']\n"
        "heavy += ['torch']\n"
        "print([m for m in heavy if m in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_importing_saving_loads_no_model() -> None:
    """A file's words choose what is imported, when it is loaded."""
    code = (
        "import sys, tacit.saving\nprint(*[m for m in sys.modules if m.split('.')[0] == 'tacit'])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert len(run.stdout.split()) < 10
    code = (
        "import sys, tacit.saving; tacit.saving.load\n"
        "print([m for m in sys.modules if m.startswith(('tacit.pate', 'tacit.deep'))])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_front_door() -> None:
    for name in tacit.__all__:
        assert getattr(tacit, name) is not None
        assert name in dir(tacit)
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = tacit.no_such_name


def test_every_package_with_a_page_is_reachable_after_import_tacit() -> None:
    """`import tacit; tacit.metrics` must not depend on what was imported before."""
    pages = (Path(__file__).parents[1] / "docs" / "api").glob("*.md")
    names = sorted({page.stem for page in pages} - {"index", "deep"} | {"cluster", "table_model"})
    code = "import sys, tacit\nprint([name for name in sys.argv[1:] if not hasattr(tacit, name)])"
    run = subprocess.run(
        [sys.executable, "-c", code, *names], capture_output=True, text=True, check=True
    )
    assert run.stdout.strip() == "[]"
    assert set(names) <= set(tacit.__all__)
