from __future__ import annotations

import subprocess
import sys

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


def test_front_door() -> None:
    for name in tacit.__all__:
        assert getattr(tacit, name) is not None
        assert name in dir(tacit)
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = tacit.no_such_name
