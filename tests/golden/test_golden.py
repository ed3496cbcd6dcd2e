"""Every golden case is what was stored; ``make golden`` stores them anew and says what changed."""

from __future__ import annotations

import pytest

from tests.golden import stored
from tests.golden.cases import AREAS, areas, cases
from tests.golden.comparing import allowed, differences, environment
from tests.golden.regenerate import run

EVERY = [(area, name) for area in areas() for name in cases(area)]
AT_LEAST = 300


@pytest.mark.parametrize(("area", "name"), EVERY, ids=[f"{a}/{n}" for a, n in EVERY])
def test_case(area: str, name: str) -> None:
    kept = stored.read(area)
    assert name in kept["cases"], "this case is not stored; run `make golden`"
    may = allowed(area, name, kept["environment"], environment(area))
    found = differences(kept["cases"][name], run(area, name).pins, may.released, may.plans)
    how = f"to {may.released:g}" if may.released else "to the bit"
    lines = [f"compared {how} and plans to {may.plans:g}, since {may.why}:", *map(str, found)]
    assert not found, "\n".join(lines)


@pytest.mark.parametrize("area", AREAS)
def test_no_case_is_gone(area: str) -> None:
    kept = stored.read(area)["cases"]
    assert kept
    if area in areas():
        gone = set(kept) - set(cases(area))
        assert not gone, f"stored, and no case any more; run `make golden`: {sorted(gone)}"


def test_no_file_is_left_over() -> None:
    assert {path.stem for path in stored.FOLDER.glob("*.json")} == set(AREAS)


def test_there_are_enough() -> None:
    fits = [
        name
        for area in AREAS
        for name, pins in stored.read(area)["cases"].items()
        if "refused" not in pins
    ]
    assert len(fits) >= AT_LEAST
