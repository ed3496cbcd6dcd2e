"""BANCO: it learns, as fast as the theorem says."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest

from tacit.local import Banco, PosterBanco, Tail
from tests.local.learners.banco_helpers import (
    run,
)

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


@pytest.mark.slow
def test_the_corrected_variance_learns_faster():
    corrected = errors(PosterBanco(EXACT)).mean()
    announced = errors(PosterBanco(ANNOUNCED)).mean()
    # Half or twice the variance is outside.
    assert 0.0145 < corrected < 0.021
    assert 0.037 < announced < 0.049


@pytest.mark.slow
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
