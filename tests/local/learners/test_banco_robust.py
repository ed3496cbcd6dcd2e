"""BANCO: nothing breaks it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tacit.local import Tail
from tests.local.learners.banco_helpers import (
    LARGEST_POINT,
    LEARNERS,
    run,
)


def wild(name, n):
    rng = np.random.default_rng(10)
    t = np.arange(n)[:, None]
    return {
        "huge and equal": np.full((n, 2), 1e100),
        "equal": np.full((n, 2), 1.0),
        "alternating": np.where(t % 2 == 0, 1e100, -1e100) * np.ones(2),
        "zeros": np.zeros((n, 2)),
        "one spike": np.where(t == 7, 1e100, 0.0) * np.ones(2),
        "a spike in noise": np.where(t == 7, 1e50, rng.normal(size=(n, 2))),
        "tiny": np.full((n, 2), 1e-200),
        "subnormal": np.full((n, 2), 5e-324),
        "all scales": rng.normal(size=(n, 2)) * 10.0 ** rng.uniform(-300.0, 99.0, size=(n, 1)),
        "turning": np.where(t < n // 2, 1.0, -1.0) * np.ones(2),
    }[name]


WILD = [
    "huge and equal",
    "equal",
    "alternating",
    "zeros",
    "one spike",
    "a spike in noise",
    "tiny",
    "subnormal",
    "all scales",
    "turning",
]


@pytest.mark.parametrize("kind", LEARNERS)
@pytest.mark.parametrize("name", WILD)
def test_a_hundred_thousand_wild_reports(kind, name):
    learner = kind(Tail(55.0, 0.25))
    reports = wild(name, 100_000)
    state, largest = run(learner, reports)
    assert largest <= 2.0 * LARGEST_POINT * (1.0 + 1e-9)
    assert all(np.all(np.isfinite(field)) for field in state)
    # and the same in Python, which raises where compiled code would carry on
    state = learner.init(2)
    for report in wild(name, 300):
        state = learner.update(state, report)
        assert np.all(np.isfinite(state.point))
    assert all(np.all(np.isfinite(field)) for field in state)


@pytest.mark.parametrize("kind", LEARNERS)
def test_the_cap(kind):
    learner = kind(Tail(1.0), unit=3.0)
    state, largest = run(learner, np.full((2000, 1), 1.0))
    assert state.point[0] == pytest.approx(3.0 * LARGEST_POINT, rel=1e-12)
    assert largest <= 6.0 * LARGEST_POINT * (1.0 + 1e-12)


@settings(max_examples=200, deadline=None)
@given(
    arrays(np.float64, (6, 3), elements=st.floats(-1e100, 1e100)),
    st.floats(0.0, 1e12),
    st.floats(1e-6, 1e6),
    st.sampled_from(LEARNERS),
)
def test_any_reports(reports, variance, norm, kind):
    learner = kind(Tail(variance), norm=norm)
    state = learner.init(3)
    for report in reports:
        state = learner.update(state, report)
    assert all(np.all(np.isfinite(field)) for field in state)


@pytest.mark.parametrize(
    "report",
    [
        np.array([1.0, np.nan]),
        np.array([np.inf, 0.0]),
        np.array([1e101, 0.0]),
        np.array([1.7e308, -1.7e308]),
        np.ones(3),
        np.ones((1, 2)),
        np.array(["a", "b"]),
        np.array([True, False]),
        np.array([1j, 0]),
        None,
    ],
)
@pytest.mark.parametrize("kind", LEARNERS)
def test_reports_are_refused(kind, report):
    learner = kind(Tail(1.0))
    with pytest.raises(ValueError, match="report"):
        learner.update(learner.init(2), report)


@pytest.mark.parametrize("kind", LEARNERS)
def test_settings_are_refused(kind):
    for name in ("norm", "unit", "averaging"):
        for value in (-1.0, math.inf, math.nan):
            with pytest.raises(ValueError, match=name):
                kind(Tail(1.0), **{name: value})
        with pytest.raises(TypeError, match=name):
            kind(Tail(1.0), **{name: "1"})
    with pytest.raises(TypeError, match=r"sanitizer\.tail"):
        kind(1.0)
    for d in (0, -1):
        with pytest.raises(ValueError, match="n_features"):
            kind(Tail(1.0)).init(d)
    with pytest.raises(TypeError, match="n_features"):
        kind(Tail(1.0)).init(2.0)
