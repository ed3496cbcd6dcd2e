"""BANCO: the inequalities of docs/proofs/banco.md, at the learner's own constants."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import erfi

from tacit.local import Banco, PosterBanco, Tail
from tacit.local.learners import (
    log_scale_free_magnitude,
    log_uniform_magnitude,
)
from tests.local.learners.banco_helpers import (
    LEARNERS,
    MAGNITUDE,
    potential,
)


@pytest.mark.parametrize("kind", LEARNERS)
@pytest.mark.parametrize("norm", [0.1, 1.0, 7.0])
@pytest.mark.parametrize("tail", [Tail(0.0), Tail(3.0), Tail(60.0, 0.25), Tail(1.0, 0.01)])
def test_one_coin(kind, norm, tail):
    # Lemma 2: exp(v g + v^2 variance / 2 - v^2 c) <= 1 + v g for |v| <= a, |g| <= norm
    c, a = kind(tail, norm).settings[:2]
    assert a <= tail.largest_rate
    assert a == pytest.approx(min(0.6838 / norm, tail.largest_rate))
    v = np.linspace(-a, a, 401)[:, None]
    g = np.linspace(-norm, norm, 41)
    left = v * g + v**2 * (0.5 * tail.variance - c)
    assert np.all(left <= np.log1p(v * g) + 1e-15)
    # without norm^2 it fails at once
    assert np.any(left + v**2 * norm**2 > np.log1p(v * g) + 1e-9)
    # a 1 % larger bet, where the noise allows it, fails as well
    if tail.largest_rate > 0.7 / norm:
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
