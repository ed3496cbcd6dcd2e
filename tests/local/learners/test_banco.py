"""BANCO: what the proof uses (docs/proofs/banco.md), what it learns, and what cannot break it."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.special import erfi

from tacit.local import Banco, PosterBanco, Tail
from tacit.local.learners.banco import BancoState
from tacit.local.learners.magnitude import (
    LARGEST_LOG,
    log_scale_free_magnitude,
    log_uniform_magnitude,
)
from tacit.local.subgradients import distance_pull

numba = pytest.importorskip("numba")

LEARNERS = [Banco, PosterBanco]
MAGNITUDE = {Banco: log_scale_free_magnitude, PosterBanco: log_uniform_magnitude}
NODES, WEIGHTS = np.polynomial.legendre.leggauss(200)
LARGEST_POINT = math.exp(LARGEST_LOG)


@cache
def compiled(step):
    """Return a loop over reports, each with a pull towards ``target`` added, and one with none."""
    step, pull = numba.njit(step), numba.njit(distance_pull)

    @numba.njit
    def loop(state, reports, numbers, target):
        largest = 0.0
        for i in range(reports.shape[0]):
            report = reports[i]
            if target.size > 0:
                report = report + pull(state.point, target, 0.0, 0.0)
            state = step(state, report, numbers)
            size = np.max(np.abs(state.point)) + np.max(np.abs(state.estimate))
            # a NaN makes every comparison false
            if not size <= 1e30:
                return state, math.inf
            largest = max(largest, size)
        return state, largest

    return loop


NOWHERE = np.empty(0)


def run(learner, reports, target=NOWHERE):
    """Return the state after the reports and the largest coordinate on the way."""
    return compiled(learner.step)(learner.init(reports.shape[1]), reports, learner.settings, target)


def potential(kind, x, y, a):
    """Return psi(x, y) for unit = 1, by 200 nodes."""
    v, w = 0.5 * a * (1.0 + NODES), 0.5 * a * WEIGHTS
    # cosh(v x) exp(-v^2 y) - 1, without cancellation at v = 0
    rise = 2.0 * np.sinh(0.5 * v * x) ** 2 * np.exp(-v * v * y) + np.expm1(-v * v * y)
    if kind is Banco:
        return float(2.0 / math.pi * np.sum(w * rise / v**2))
    return float(np.sum(w * rise) / a)


# The inequalities of the proof, at the learner's own constants.


@pytest.mark.parametrize("kind", LEARNERS)
@pytest.mark.parametrize("norm", [0.1, 1.0, 7.0])
@pytest.mark.parametrize("tail", [Tail(0.0), Tail(3.0), Tail(60.0, 0.25), Tail(1.0, 0.01)])
def test_one_coin(kind, norm, tail):
    # Lemma 2: exp(v g + v^2 variance / 2 - v^2 c) <= 1 + v g for |v| <= a, |g| <= norm
    c, a = kind(tail, norm).settings[:2]
    assert a <= tail.reach
    assert a == pytest.approx(min(0.6838 / norm, tail.reach))
    v = np.linspace(-a, a, 401)[:, None]
    g = np.linspace(-norm, norm, 41)
    left = v * g + v**2 * (0.5 * tail.variance - c)
    assert np.all(left <= np.log1p(v * g) + 1e-15)
    # without norm^2 it fails at once
    assert np.any(left + v**2 * norm**2 > np.log1p(v * g) + 1e-9)
    # a 1 % larger bet, where the noise allows it, fails as well
    if tail.reach > 0.7 / norm:
        z = -1.01 * a * norm
        assert z - z * z > math.log1p(z)


@pytest.mark.parametrize("kind", LEARNERS)
@pytest.mark.parametrize("g", [-1.0, -0.3, 0.0, 0.6, 1.0])
def test_the_wealth_of_the_bettors(kind, g):
    # Lemma 3 for Gaussian noise: E psi(x + s, y + c) <= psi(x, y) + g m(x, y)
    tail = Tail(4.0)
    c, a = kind(tail).settings[:2]
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    for x in (-15.0, -2.0, 0.0, 1.0, 9.0):
        for t in (1, 4, 30):
            after = [potential(kind, x + g + 2.0 * z, (t + 1) * c, a) for z in nodes]
            mean = float(np.dot(weights, after)) / math.sqrt(2.0 * math.pi)
            m = math.exp(MAGNITUDE[kind](abs(x), t * c, a)) if x else 0.0
            assert mean <= potential(kind, x, t * c, a) + g * math.copysign(m, x) + 1e-9


@pytest.mark.parametrize("kind", LEARNERS)
def test_the_magnitude_is_the_slope_of_the_potential(kind):
    for x, y, a in [(0.5, 2.0, 0.6), (6.0, 30.0, 0.25), (40.0, 30.0, 0.25)]:
        slope = (potential(kind, x + 1e-4, y, a) - potential(kind, x - 1e-4, y, a)) / 2e-4
        assert math.exp(MAGNITUDE[kind](x, y, a)) == pytest.approx(slope, rel=1e-6)


def test_what_the_bettors_can_lose():
    for a in (0.01, 0.25, 0.6838):
        for y in (0.1, 1.0, 100.0, 1e4):
            loss = -potential(Banco, 0.0, y, a)
            assert 0.0 < loss <= 2.0 * math.sqrt(y / math.pi)
            assert 0.0 < -potential(PosterBanco, 0.0, y, a) <= 1.0
    assert loss > 0.95 * 2.0 * math.sqrt(y / math.pi)


def test_the_potential_without_a_largest_bet():
    # psi = x erfi(z) - 2 sqrt(y / pi) e^{z^2}, z = x / (2 sqrt y)
    x, y = 5.0, 4.0
    z = x / (2.0 * math.sqrt(y))
    exact = x * erfi(z) - 2.0 * math.sqrt(y / math.pi) * math.exp(z * z)
    # v > a costs 2 / (pi a) in the term -1, and nothing else
    assert potential(Banco, x, y, 20.0) - 2.0 / (math.pi * 20.0) == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize("a", [1e-3, 0.1, 0.6838])
def test_the_gain_that_a_size_needs(a):
    # m >= theta at the x of the theorem, for both mixtures
    for y in np.geomspace(1e-2, 1e9, 12):
        for theta in np.geomspace(1e-6, 1e12, 10):
            log_ratio = math.log1p(theta)
            x = max(3.0 * math.sqrt(y * log_ratio), 4.5 * log_ratio / a)
            assert log_scale_free_magnitude(x, y, a) >= math.log(theta)
            k = 1.0 + math.log1p(4.0 * theta * max(a * y, 1.0 / a))
            x = max(2.0 * math.sqrt(1.2 * y * k), 2.4 * k / a)
            assert log_uniform_magnitude(x, y, a) >= math.log(theta)


@pytest.mark.parametrize("name", ["turn", "against", "growing", "random"])
def test_the_regret_of_the_direction(name):
    # Lemma 4: sum <r, e - q> <= 3 sqrt(sum ||r||^2) for every unit e
    rng = np.random.default_rng(3)
    learner = Banco(Tail(1.0))
    state, total, gain = learner.init(2), np.zeros(2), 0.0
    for t in range(200):
        report = {
            "turn": np.array([1.0, 0.0]) * (1.0 if t < 100 else -1.0),
            "against": -state.direction + 0.1 * rng.normal(size=2),
            "growing": rng.normal(size=2) * 1.1**t,
            "random": rng.normal(size=2),
        }[name]
        gain += float(np.dot(report, state.direction))
        total += report
        state = learner.update(state, report)
        assert np.linalg.norm(state.direction) <= 1.0 + 1e-12
    assert state.gain == pytest.approx(gain)
    assert np.linalg.norm(total) - gain <= 3.0 * math.sqrt(state.energy)


# The update itself.


@pytest.mark.parametrize("kind", LEARNERS)
def test_steps_by_hand(kind):
    learner = kind(Tail(2.0, 0.5), norm=1.0, unit=3.0, averaging=0.0)
    reports = [np.array([3.0, 4.0]), np.array([1.0, -2.0]), np.array([0.0, 7.0])]
    state = learner.init(2)
    x, energy, q, w, points = 0.0, 0.0, np.zeros(2), np.zeros(2), []
    for t, report in enumerate(reports, start=1):
        points.append(w)
        x += report @ q
        energy += report @ report
        q = q + report / math.sqrt(energy)
        q = q / max(1.0, np.linalg.norm(q))
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
        energy += report @ report
        q = q - report / math.sqrt(energy)
        q = q / max(1.0, np.linalg.norm(q))
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
        np.testing.assert_allclose(one, other, rtol=1e-10)
    # and one step to the last digits but one
    step = numba.njit(learner.step)
    for one, other in zip(
        step(state, reports[0], learner.settings), learner.update(state, reports[0]), strict=True
    ):
        np.testing.assert_allclose(one, other, rtol=1e-12)


# Nothing breaks it.


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


# It learns.

TRUTH = np.array([0.6, 0.8])
EXACT = Tail(4.603 * 3.0, 0.25)
ANNOUNCED = Tail(18.0 * 4.0, 0.25)


@cache
def sphere_noise():
    """Eight streams of noise of density exp(-||z|| / 2): epsilon = 1, d = 2."""
    rng = np.random.default_rng(11)
    noise = rng.normal(size=(8, 50_000, 2))
    lengths = np.linalg.norm(noise, axis=2, keepdims=True)
    return noise * (rng.gamma(2.0, 2.0, size=lengths.shape) / lengths)


@cache
def errors(learner):
    """Return ||estimate - truth||, the excess loss, of each stream."""
    states = [run(learner, noise, TRUTH)[0] for noise in sphere_noise()]
    return np.array([np.linalg.norm(state.estimate - TRUTH) for state in states])


def test_the_variance_of_sphere_noise():
    # E e^{v <z, u>} = (1 - (2 v)^2)^{-3/2} for epsilon = 1, d = 2
    v = np.linspace(1e-4, 0.25, 100)
    log_mgf = -1.5 * np.log1p(-((2.0 * v) ** 2))
    assert np.all(log_mgf <= v**2 * EXACT.variance / 2.0)
    assert log_mgf[-1] > 0.999 * v[-1] ** 2 * EXACT.variance / 2.0
    sample = np.exp(0.2 * sphere_noise()[..., 0]).mean()
    assert sample == pytest.approx((1.0 - 0.16) ** -1.5, rel=0.01)


def test_the_corrected_variance_learns_faster():
    corrected = errors(PosterBanco(EXACT)).mean()
    announced = errors(PosterBanco(ANNOUNCED)).mean()
    # Half or twice the variance is outside.
    assert 0.0145 < corrected < 0.021
    assert 0.037 < announced < 0.049


def test_banco_learns_faster_still():
    plain = errors(Banco(EXACT, averaging=0.0))
    assert np.all(plain < errors(PosterBanco(EXACT)))
    assert plain.mean() < 0.008
    assert errors(Banco(EXACT)).mean() < 0.5 * plain.mean()


@pytest.mark.parametrize("size", [0.0, 0.1, 30.0])
def test_the_theorem(size):
    # E f(estimate) - f(w) with f = ||w - truth||, c = variance / 2 + 1, B^2 = 1 + 24
    truth, noise = size * TRUTH, sphere_noise()[:4, :20_000]
    n, c, a, log_ratio = noise.shape[1], EXACT.variance / 2.0 + 1.0, 0.25, math.log1p(size)
    k = 1.0 + math.log1p(4.0 * size * max(a * c * n, 1.0 / a))
    direction = 3.0 * size * 5.0 / math.sqrt(n)
    banco = 2.0 / math.sqrt(math.pi) * math.sqrt(c / n) + direction
    banco += size * max(3.0 * math.sqrt(c * log_ratio / n), 4.5 * log_ratio / (a * n))
    poster = 1.0 / n + direction
    poster += size * max(2.2 * math.sqrt(c * k / n), 2.4 * k / (a * n))
    for learner, bound in (
        (Banco(EXACT, averaging=0.0), banco),
        (PosterBanco(EXACT), poster),
        (Banco(EXACT), 4.0 * banco),
    ):
        estimates = [run(learner, stream, truth)[0].estimate for stream in noise]
        excess = np.mean([np.linalg.norm(estimate - truth) for estimate in estimates])
        assert excess <= bound
