"""What holds for every test and every example in a docstring.

Noise is drawn from keys that follow from the name of the test, so that a run can be repeated and no
test fails by chance: in ten thousand tests one that fails once in a thousand runs does so in every
tenth run of them all. ``TACIT_TEST_SEED`` names another sequence of keys, and ``random`` takes them
from the operating system, as every release outside of tests does. Processes that a test starts, by
a fork or otherwise, always do.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import random
import secrets
import sys
from collections.abc import Generator
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest
from hypothesis import settings

# Examples in docstrings of what is not installed are left out.
collect_ignore_glob = [] if find_spec("torch") else ["src/tacit/deep/*"]

SEED = os.environ.get("TACIT_TEST_SEED", "0")
REPEATED = SEED != "random"

# How long an example takes is a matter of the machine and its neighbours.
settings.register_profile("tacit", deadline=None, derandomize=REPEATED)
settings.load_profile("tacit")


class _Keys:
    """Instead of ``secrets.randbits``: the n-th key under a name follows from both."""

    def __init__(self) -> None:
        self.begin("")
        self._process, self._system = os.getpid(), secrets.randbits

    def begin(self, name: str) -> None:
        self.name, self.numbers = name, itertools.count()

    def randbits(self, k: int) -> int:
        if os.getpid() != self._process:
            return self._system(k)
        words = f"{SEED} {self.name} {next(self.numbers)} {k}".encode()
        return int.from_bytes(hashlib.shake_256(words).digest(-(-k // 8))) >> (-k % 8)


_KEYS = _Keys()


def pytest_configure() -> None:
    """Let every source of noise ask for its key here."""
    if REPEATED:
        secrets.randbits = _KEYS.randbits


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Begin a test's keys, and what scikit-learn falls back on, anew."""
    _KEYS.begin(item.nodeid)
    if REPEATED:
        random.seed(item.nodeid)
        np.random.seed(_KEYS.randbits(32))  # noqa: NPY002
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(
    fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest
) -> Generator[None, object, object]:
    """What many tests share does not depend on which of them asks for it first."""
    if fixturedef.scope == "function":
        return (yield)
    before = _KEYS.name, _KEYS.numbers
    parameter = getattr(request, "param_index", 0)
    _KEYS.begin(f"{fixturedef.baseid} {fixturedef.argname} {parameter}")
    try:
        return (yield)
    finally:
        _KEYS.name, _KEYS.numbers = before


# Caches of these are kept: compiled code, tables of bits and of filters, connections. No test
# breaks what they follow from, and they are slow to make.
_KEPT_PLACES = ("cluster", "features", "ledger", "local.stream", "noise", "records")
_KEPT = tuple(f"tacit.{name}" for name in _KEPT_PLACES)
_CACHES: dict[int, list[Any]] = {}


def _plan_caches() -> list[Any]:
    """Return every functools cache of planning, in the modules that are loaded."""
    loaded = len(sys.modules)
    if loaded not in _CACHES:
        _CACHES.clear()
        modules = [
            module
            for name, module in sys.modules.items()
            if name.startswith("tacit.") and not name.startswith(_KEPT)
        ]
        found = (value for module in modules for value in vars(module).values())
        _CACHES[loaded] = list({id(v): v for v in found if hasattr(v, "cache_clear")}.values())
    return _CACHES[loaded]


@pytest.fixture(autouse=True)
def _nothing_is_remembered() -> None:
    """A plan of an earlier test would hide what this one breaks on purpose."""
    for remembered in _plan_caches():
        remembered.cache_clear()
