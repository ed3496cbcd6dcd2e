"""Between tests no plan is remembered, and what is slow to compile is."""

from __future__ import annotations

from conftest import _plan_caches

from tacit.erm import inference, minimization
from tacit.linear_model import LogisticRegression
from tacit.local import stream
from tacit.privacy.accounting import calibration, dominating


def test_every_cache_of_planning_is_found() -> None:
    found = _plan_caches()
    for cache in (
        minimization._remembered,
        inference._remembered,
        calibration.gaussian_multiplier,
        dominating.dominating,
    ):
        assert any(cache is other for other in found)
    assert not any(other is stream._loop for other in found)


def test_nothing_is_remembered_of_another_test() -> None:
    assert minimization._remembered.cache_info().currsize == 0
    LogisticRegression(1.0, 1e-6, row_norm=1.0, classes=[0, 1]).plan(3)
    assert minimization._remembered.cache_info().currsize == 1


def test_nor_of_the_one_before() -> None:
    assert minimization._remembered.cache_info().currsize == 0
