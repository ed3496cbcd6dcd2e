"""BANCO: the update itself."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tacit.local import Banco, Tail
from tacit.local._compiled import machine_code
from tacit.local.learners import BancoState
from tests.local.learners.banco_helpers import (
    LEARNERS,
    MAGNITUDE,
    run,
)


@pytest.mark.parametrize("kind", LEARNERS)
def test_steps_by_hand(kind):
    learner = kind(Tail(2.0, 0.5), norm=1.0, unit=3.0, averaging=0.0)
    reports = [np.array([3.0, 4.0]), np.array([1.0, -2.0]), np.array([0.0, 7.0])]
    state = learner.init(2)
    x, energy, q, w, points = 0.0, 0.0, np.zeros(2), np.zeros(2), []
    for t, report in enumerate(reports, start=1):
        points.append(w)
        x += float(report @ q)
        energy += float(report @ report)
        q = q + report / math.sqrt(energy)
        q = q / max(1.0, float(np.linalg.norm(q)))
        m = math.exp(MAGNITUDE[kind](abs(x), t * 2.0, 0.5)) if x else 0.0
        w = 3.0 * math.copysign(m, x) * q
        state = learner.update(state, report)
        np.testing.assert_allclose(state.point, w, rtol=1e-13)
        np.testing.assert_allclose(state.estimate, np.mean(points, axis=0), rtol=1e-13)
    assert state.n_reports == 3
    assert state.gain == pytest.approx(x)
    assert x != 0.0


@pytest.mark.parametrize("kind", LEARNERS)
def test_flipping_the_direction_changes_no_point(kind):
    rng = np.random.default_rng(5)
    learner = kind(Tail(2.0))
    state = learner.init(3)
    state = learner.update(state, np.array([1.0, -1.0, 0.5]))
    # The other learner moves against the reports: it is the same one, seen from the other side.
    gain, energy, q, point = state.gain, state.energy, -state.direction, state.point
    for t in range(2, 60):
        report = rng.normal(size=3) + 0.5
        gain_of_flipped = -gain + report @ q
        energy += float(report @ report)
        q = q - report / math.sqrt(energy)
        q = q / max(1.0, float(np.linalg.norm(q)))
        log_m = MAGNITUDE[kind](abs(gain_of_flipped), t * learner.settings.variance, 0.6838)
        point = math.copysign(math.exp(log_m), gain_of_flipped) * q
        gain = -gain_of_flipped
        state = learner.update(state, report)
        np.testing.assert_allclose(state.point, point, rtol=1e-10)
        assert state.gain == pytest.approx(gain)


@pytest.mark.parametrize("kind", LEARNERS)
def test_negated_reports_negate_the_points(kind):
    rng = np.random.default_rng(6)
    learner = kind(Tail(2.0))
    one = other = learner.init(3)
    for report in rng.normal(size=(50, 3)) + 0.3:
        one, other = learner.update(one, report), learner.update(other, -report)
        np.testing.assert_array_equal(one.point, -other.point)
        np.testing.assert_array_equal(one.estimate, -other.estimate)
        assert one.gain == other.gain
    assert np.linalg.norm(one.point) > 0.01


@pytest.mark.slow
def test_unit_is_a_unit():
    rng = np.random.default_rng(7)
    reports = rng.normal(size=(40, 2)) + 1.0
    small, large = (run(Banco(Tail(2.0), unit=u), reports)[0] for u in (1.0, 8.0))
    np.testing.assert_allclose(large.point, 8.0 * small.point, rtol=1e-12)
    np.testing.assert_allclose(large.estimate, 8.0 * small.estimate, rtol=1e-12)


@pytest.mark.parametrize("k", [0.0, 1.0, 3.0, 2.5])
def test_averaging_weighs_points_as_the_proof_says(k):
    rng = np.random.default_rng(8)
    learner = Banco(Tail(2.0), averaging=k)
    state, points = learner.init(2), []
    for report in rng.normal(size=(30, 2)) + 1.0:
        points.append(state.point)
        state = learner.update(state, report)
    # Gamma(t + k) / Gamma(t)
    weights = np.array([math.exp(math.lgamma(t + k) - math.lgamma(t)) for t in range(1, 31)])
    expected = weights @ np.array(points) / weights.sum()
    np.testing.assert_allclose(state.estimate, expected, rtol=1e-11)


@pytest.mark.parametrize("kind", LEARNERS)
def test_update_is_pure(kind):
    learner = kind(Tail(2.0))
    state = learner.update(learner.update(learner.init(2), np.ones(2)), np.array([2.0, 1.0]))
    report = np.array([0.5, -3.0])
    before = [np.copy(field) for field in state]
    first = learner.update(state, report)
    for field, copy in zip(state, before, strict=True):
        np.testing.assert_array_equal(field, copy)
    np.testing.assert_array_equal(report, [0.5, -3.0])
    for arrays_of in ("direction", "point", "estimate"):
        for old in (*state[3:], report):
            assert not np.shares_memory(getattr(first, arrays_of), old)
    second = learner.update(state, report)
    for one, other in zip(first, second, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.slow
@pytest.mark.parametrize("kind", LEARNERS)
def test_compiled_step_is_the_python_step(kind):
    rng = np.random.default_rng(9)
    learner = kind(Tail(20.0, 0.25), norm=2.0, unit=0.5)
    reports = 5.0 * rng.standard_t(3, size=(1000, 4)) + 0.4
    state = learner.init(4)
    for report in reports:
        state = learner.update(state, report)
    fast, _ = run(learner, reports)
    assert isinstance(fast, BancoState)
    assert fast.n_reports == state.n_reports
    for one, other in zip(fast[1:], state[1:], strict=True):
        np.testing.assert_allclose(np.asarray(one), other, rtol=1e-10)
    # and one step to the last digits but one
    step = machine_code(learner.step)
    for one, other in zip(
        step(state, reports[0], learner.settings), learner.update(state, reports[0]), strict=True
    ):
        np.testing.assert_allclose(one, other, rtol=1e-12)
