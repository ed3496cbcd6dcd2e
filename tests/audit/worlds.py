"""Two worlds for whole releases: what is looked at, and how sure it must be."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tacit.audit import Audit, audit_fits
from tacit.audit.results import Finding
from tacit.noise import Release
from tacit.noise.bounded import Bounded
from tacit.privacy import Budget, Event

Array = npt.NDArray[np.float64]

# A bound is too high less than once in a million audits. Where the best attack known is far from
# the claim, one that is too high is not above it yet, and less is enough.
LEVEL = 1e-6
LEVEL_FAR_FROM_THE_CLAIM = 1e-3


@pytest.fixture
def one_thread() -> Any:
    """Tiny fits are slower on several threads."""
    torch = pytest.importorskip("torch")
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def audited(
    fit: Callable[[Any], Any],
    worlds: tuple[Any, Any],
    claim: Budget,
    runs: int,
    score: Callable[[Array], float],
    promised: Callable[[float], Event],
    level: float = LEVEL,
) -> Audit:
    """Return what an attacker finds who sees so many releases of each world."""

    def released(data: Any, rng: np.random.Generator) -> Any:
        del rng  # every release has noise of the secure source, as outside of audits
        return fit(data)

    return audit_fits(
        released, *worlds, claim, score=score, promised=promised, fits=2 * runs, level=level
    )


def by_errors(found: Audit) -> Finding:
    """Return what errors say, with nothing assumed of the mechanism."""
    return found.findings[0]


def by_means(found: Audit) -> Finding:
    """Return what means say, of scores that are Gaussian."""
    return found.findings[2]


def by_promise(found: Audit) -> Finding:
    """Return what errors say beside the whole promise; above the claim nothing is assumed."""
    return found.findings[-1]


Noise = Callable[..., Release[Any]]


def with_less(noise: Noise, share: float) -> Noise:
    """Return a mechanism that adds so much of its noise, and claims to add all of it."""

    def cut(bounded: Bounded, *words: Any, **more: Any) -> Release[Any]:
        release = noise(bounded, *words, **more)
        exact = np.asarray(bounded.value)
        return Release(exact + share * (np.asarray(release.value) - exact), release.event)

    return cut


def without_one(noise: Noise, each: int, which: int) -> Noise:
    """Return a mechanism that forgets the noise of one in so many releases."""
    calls = 0

    def forgets(bounded: Bounded, *words: Any, **more: Any) -> Release[Any]:
        nonlocal calls
        calls += 1
        share = 0.0 if calls % each == which else 1.0
        return with_less(noise, share)(bounded, *words, **more)

    return forgets
