from __future__ import annotations

import math

import numpy as np
import pytest

from tacit.local import GradientDescent
from tacit.local._compiled import machine_code
from tacit.local.learners import GradientDescentState

pytest.importorskip("numba")


def follow(learner, reports):
    """Return the states after each report, the empty one first."""
    states = [learner.init(reports.shape[1])]
    for report in reports:
        states.append(learner.update(states[-1], report))
    return states


@pytest.mark.parametrize("decay", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("radius", [0.8, math.inf])
@pytest.mark.parametrize("averaging", [0.0, 3.0])
def test_steps_by_hand(decay, radius, averaging):
    rng = np.random.default_rng(0)
    reports = rng.normal(size=(40, 3)) + 0.5
    states = follow(GradientDescent(0.3, decay, radius, averaging), reports)
    point, points = np.zeros(3), []
    for t, report in enumerate(reports, start=1):
        points.append(point)
        point = point + 0.3 * t**-decay * report
        point = point * min(1.0, radius / np.linalg.norm(point))
        np.testing.assert_allclose(states[t].point, point, rtol=1e-12)
        assert states[t].n_reports == t
    # Gamma(t + k) / Gamma(t)
    weights = np.array(
        [math.exp(math.lgamma(t + averaging) - math.lgamma(t)) for t in range(1, 41)]
    )
    expected = weights @ np.array(points) / weights.sum()
    np.testing.assert_allclose(states[-1].estimate, expected, rtol=1e-11)


def test_points_stay_in_the_ball():
    rng = np.random.default_rng(1)
    for state in follow(GradientDescent(5.0, radius=2.0), rng.normal(size=(200, 2)) * 1e3):
        assert np.linalg.norm(state.point) <= 2.0 * (1.0 + 1e-12)
        assert np.linalg.norm(state.estimate) <= 2.0 * (1.0 + 1e-12)
    assert np.linalg.norm(state.point) > 1.99


def test_it_learns_with_the_right_rate_only():
    rng = np.random.default_rng(2)
    truth, noise = np.array([3.0, -4.0]), rng.normal(size=(4000, 2))

    def excess(rate):
        learner = GradientDescent(rate)
        state = learner.init(2)
        for row in noise:
            state = learner.update(state, np.sign(truth - state.point) + row)
        return np.abs(state.estimate - truth).sum()

    assert excess(0.5) < 0.2
    assert excess(0.001) > 5.0
    assert excess(5e4) > 5.0


def test_update_is_pure():
    learner = GradientDescent(1.0, radius=10.0)
    state = learner.update(learner.init(2), np.ones(2))
    before = [np.copy(field) for field in state]
    report = np.array([0.5, -1.0])
    after = learner.update(state, report)
    for field, copy in zip(state, before, strict=True):
        np.testing.assert_array_equal(field, copy)
    np.testing.assert_array_equal(report, [0.5, -1.0])
    for new in after[1:]:
        for old in (*state[1:], report):
            assert not np.shares_memory(new, old)


def test_compiled_step_is_the_python_step():
    rng = np.random.default_rng(3)
    reports = rng.normal(size=(300, 4)) * 10.0
    learner = GradientDescent(0.7, 0.5, 3.0, 3.0)
    step = machine_code(learner.step)
    state = learner.init(4)
    for report in reports:
        state = step(state, report, learner.settings)
    assert isinstance(state, GradientDescentState)
    expected = follow(learner, reports)[-1]
    for one, other in zip(state, expected, strict=True):
        np.testing.assert_allclose(np.asarray(one), other, rtol=1e-11)


@pytest.mark.parametrize("radius", [1.0, math.inf])
def test_wild_reports(radius):
    learner = GradientDescent(1.0, 0.0, radius)
    rng = np.random.default_rng(4)
    scale = 10.0 ** rng.uniform(-300.0, 99.0, size=(500, 1))
    for state in follow(learner, rng.normal(size=(500, 2)) * scale):
        assert np.all(np.isfinite(state.point))
        assert np.all(np.isfinite(state.estimate))
    # a report beyond every scale still leads to the rim of the ball
    if radius == 1.0:
        state = learner.update(learner.init(2), np.array([1e100, 1e100]))
        np.testing.assert_allclose(state.point, [math.sqrt(0.5), math.sqrt(0.5)])


@pytest.mark.parametrize(
    "report", [np.array([np.nan, 0.0]), np.array([1e101, 0.0]), np.ones(3), np.array(["a", "b"])]
)
def test_reports_are_refused(report):
    learner = GradientDescent(1.0)
    with pytest.raises(ValueError, match="report"):
        learner.update(learner.init(2), report)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("rate", (0.0, -1.0, math.inf, math.nan)),
        ("decay", (-0.1, 1.1, math.nan)),
        ("radius", (0.0, -1.0, math.nan)),
        ("averaging", (-0.1, math.inf, math.nan)),
    ],
)
def test_settings_are_refused(name, values):
    for value in values:
        with pytest.raises(ValueError, match=name):
            GradientDescent(**{"rate": 1.0, name: value})
    with pytest.raises(TypeError, match=name):
        GradientDescent(**{"rate": 1.0, name: "1"})
