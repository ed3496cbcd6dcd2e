"""Sensitivities and noise that stand outside of `queries`, `noise` and `privacy`: fewer and fewer.

A statistic in `tacit.queries` states its own sensitivity; what is counted here has not been moved
there yet (docs/decisions/0057-queries-and-sessions.md). Whoever moves some lowers the counts.
"""

from __future__ import annotations

import ast
from collections import Counter
from functools import cache
from pathlib import Path

import tacit

ROOT = Path(tacit.__file__).parent
HOMES = {"noise", "queries", "testing", "privacy", "audit"}
SENSITIVITIES = {"Bounded", "Sensitivity"}
NOISE = {
    *("gaussian", "laplace", "sphere", "bounded_sum", "noisy_max", "gaussian_above", "frequent"),
    *("release_minimizer", "choose", "select_on_line", "select_in_ball"),
}

STRAY_SENSITIVITIES: dict[str, int] = {}
STRAY_NOISE: dict[str, int] = {}


@cache
def calls() -> Counter[tuple[str, str]]:
    """Return what each file outside of the homes calls, and how often."""
    found: Counter[tuple[str, str]] = Counter()
    for path in ROOT.rglob("*.py"):
        where, text = path.relative_to(ROOT), path.read_text(encoding="utf-8")
        # Most files name none of it: they need not be parsed.
        if where.parts[0] in HOMES or not any(name in text for name in SENSITIVITIES | NOISE):
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Call):
                called = getattr(node.func, "id", getattr(node.func, "attr", ""))
                found[where.as_posix(), called] += 1
    return found


def stray(names: set[str]) -> dict[str, int]:
    """Return how many calls by such names each file outside of the homes has."""
    found: Counter[str] = Counter()
    for (where, called), n in calls().items():
        found[where] += n * (called in names)
    return {name: n for name, n in sorted(found.items()) if n}


def test_sensitivities_are_stated_by_queries() -> None:
    assert stray(SENSITIVITIES) == STRAY_SENSITIVITIES


def test_noise_is_drawn_by_queries() -> None:
    assert stray(NOISE) == STRAY_NOISE


def test_an_algorithm_that_was_moved_holds_no_records() -> None:
    """Whoever asks a session calls no noise."""
    for name in ("location/mean.py", "location/median.py", "erm/sufficient_statistics.py"):
        assert name not in {**stray(SENSITIVITIES), **stray(NOISE)}
