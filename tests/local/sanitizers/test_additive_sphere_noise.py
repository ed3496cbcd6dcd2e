import math

import numpy as np
import pytest
from scipy.stats import beta, gamma, kstest

from tacit.local import SphereNoise
from tacit.testing import exact_epsilon_1d
from tests.local.sanitizers.helpers import ACCEPT, REJECT, gradient, reports


def test_pins():
    assert SphereNoise(1.0, 100).rms_norm == pytest.approx(201.0, abs=0.05)
    assert SphereNoise(8.0, 100).rms_norm == pytest.approx(25.1, abs=0.05)
    assert SphereNoise(8.0, 100, 3.0).rms_norm == pytest.approx(3.0 * 25.145, rel=1e-4)


@pytest.mark.parametrize(("d", "epsilon", "norm"), [(1, 1.0, 1.0), (5, 0.5, 3.0), (40, 4.0, 1.0)])
def test_length_and_direction(d, epsilon, norm):
    sanitizer = SphereNoise(epsilon, d, norm)
    truth = gradient(d, norm)
    noise = (reports(sanitizer, truth, 100_000) - truth) / (2.0 * norm / epsilon)
    length = np.linalg.norm(noise, axis=1)
    assert kstest(length, gamma(d).cdf).pvalue > ACCEPT
    for wrong in (0.9, 1.1):
        assert kstest(length * wrong, gamma(d).cdf).pvalue < REJECT
    if d > 1:
        law = beta((d - 1) / 2, (d - 1) / 2)
        assert kstest((1.0 + noise[:, 0] / length) / 2.0, law.cdf).pvalue > ACCEPT


@pytest.mark.parametrize(("epsilon", "norm"), [(0.1, 1.0), (1.0, 0.3), (8.0, 5.0)])
def test_the_density_ratio_is_never_above_epsilon(epsilon, norm):
    def spent(width, d):
        # log density -||x - g|| / width; the largest difference is at x beyond g on the line g g'
        x = np.random.default_rng().standard_normal((2000, d)) * width
        a = norm * np.eye(d)[0]
        far = 100.0 * a[None, :] * np.array([[1.0], [-1.0]])
        x = np.concatenate([x, far])
        difference = np.linalg.norm(x + a, axis=1) - np.linalg.norm(x - a, axis=1)
        return np.abs(difference).max() / width

    for d in (1, 3):
        width = SphereNoise(epsilon, d, norm).width
        assert epsilon * (1.0 - 1e-9) <= spent(width, d) <= epsilon
        assert spent(0.9 * width, d) > epsilon
        assert spent(0.5 * width, d) > 1.9 * epsilon
    width = SphereNoise(epsilon, 1, norm).width

    def laplace(centre):
        return lambda x: -np.abs(x - centre) / width - math.log(2.0 * width)

    seen = exact_epsilon_1d(laplace(norm), laplace(-norm), (-30.0 * width, 30.0 * width))
    assert seen <= epsilon * (1.0 + 1e-9)


@pytest.mark.parametrize("d", [1, 5, 100, 1000])
def test_tail(d):
    sanitizer = SphereNoise(0.5, d, 2.0)
    tail = sanitizer.tail
    assert tail.largest_rate == pytest.approx(0.5 / (4.0 * 2.0), rel=1e-9)
    ideal = 4.603 * (d + 1) * 2.0**2 / 0.5**2
    # rounding to the lattice adds at most sqrt(d) / 2^10, relative, and a little for the reach
    assert ideal * 0.9999 <= tail.variance <= ideal * (1.0 + 1.6 * math.sqrt(d) / 1024.0)
    assert 16.0 * math.log(4.0 / 3.0) == pytest.approx(4.603, abs=2e-4)
    # the exact moment generating function, on a grid of v up to the reach
    v = np.linspace(0.01, 1.0, 100) * tail.largest_rate
    exact = -(d + 1) / 2 * np.log1p(-((2.0 * 2.0 * v / 0.5) ** 2))
    assert np.all(exact <= v**2 * tail.variance / 2)
    # with 3 % (and the rounding's share) less it would not hold
    less = tail.variance * 0.97 / (1.0 + 1.6 * math.sqrt(d) / 1024.0)
    assert np.any(exact > v**2 * less / 2)


def test_reports_obey_the_moment_generating_function():
    d, epsilon = 5, 1.0
    sanitizer = SphereNoise(epsilon, d)
    truth = gradient(d)
    along = (reports(sanitizer, truth, 400_000) - truth) @ gradient(d)
    v = sanitizer.tail.largest_rate
    sample = np.exp(v * along)
    error = 6.0 * sample.std() / math.sqrt(sample.size)
    exact = (1.0 - (2.0 * v / epsilon) ** 2) ** (-(d + 1) / 2)
    assert abs(sample.mean() - exact) < error
    assert sample.mean() - error < math.exp(v**2 * sanitizer.tail.variance / 2)
    wrong = np.exp(1.1 * v * along).mean()
    assert abs(wrong - exact) > error


def test_far_reports_are_refused():
    sanitizer = SphereNoise(1.0, 3)
    # width 2, Gamma(3): beyond 2 (3 + sqrt(600) + 100) + 1 a report has probability below e^-100
    limit = 2.0 * (3.0 + math.sqrt(600.0) + 100.0) + 1.0
    for factor, possible in ((0.99, True), (1.01, False)):
        steps = np.array([int(factor * limit / sanitizer.spacing), 0, 0])
        assert sanitizer.is_possible(steps) is possible
