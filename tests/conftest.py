"""What holds for every test."""

from __future__ import annotations

import sys

import pytest
from hypothesis import settings

# How long an example takes is a matter of the machine and its neighbours.
settings.register_profile("tacit", deadline=None)
settings.load_profile("tacit")


@pytest.fixture(autouse=True)
def _nothing_is_remembered() -> None:
    """A plan of an earlier test would hide what this one breaks on purpose."""
    if "tacit.erm.planner" in sys.modules:
        sys.modules["tacit.erm.planner"]._remembered.cache_clear()
