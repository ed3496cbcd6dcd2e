import math

import numpy as np
import pytest
from scipy.stats import kstest
from scipy.stats import norm as normal

from tacit.local import GaussianNoise
from tacit.privacy import Gaussian, Guarantee, Relation
from tacit.testing import exact_delta_1d
from tests.local.sanitizers.helpers import ACCEPT, REJECT, gradient, reports


def test_pins():
    sanitizer = GaussianNoise(1.0, 1e-5, 10)
    assert sanitizer.noise_multiplier == pytest.approx(3.730632, abs=1e-5)
    assert sanitizer.noise_std == pytest.approx(2.0 * 3.730632, abs=1e-4)
    assert sanitizer.rms_norm == pytest.approx(math.sqrt(1.0 + 10.0 * 7.461264**2), rel=1e-5)
    assert sanitizer.event == Gaussian(sanitizer.noise_multiplier, Relation.REPLACE)


@pytest.mark.parametrize(("epsilon", "delta", "bound"), [(0.5, 1e-6, 1.0), (4.0, 1e-4, 3.0)])
def test_the_exact_delta_is_never_above_delta(epsilon, delta, bound):
    std = GaussianNoise(epsilon, delta, 4, bound).noise_std

    def exact(std):
        return exact_delta_1d(
            lambda x: -((x - bound) ** 2) / (2 * std**2) - math.log(std * math.sqrt(2 * math.pi)),
            lambda x: -((x + bound) ** 2) / (2 * std**2) - math.log(std * math.sqrt(2 * math.pi)),
            epsilon,
            (-15.0 * std, 15.0 * std),
            n_panels=20_000,
        )

    assert 0.98 * delta < exact(std) <= delta * (1.0 + 1e-6)
    assert exact(0.9 * std) > 1.5 * delta
    assert Guarantee(GaussianNoise(epsilon, delta, 4, bound).event).epsilon(delta) <= epsilon


@pytest.mark.parametrize(("d", "bound"), [(1, 1.0), (7, 3.0)])
def test_the_noise(d, bound):
    sanitizer = GaussianNoise(1.0, 1e-6, d, bound)
    truth = gradient(d, bound)
    noise = (reports(sanitizer, truth, 100_000) - truth) / sanitizer.noise_std
    for i in {0, d - 1}:
        assert kstest(noise[:, i], normal.cdf).pvalue > ACCEPT
        for wrong in (0.9, 1.1):
            assert kstest(noise[:, i] * wrong, normal.cdf).pvalue < REJECT
    products = noise.T @ noise / len(noise)
    assert np.abs(products - np.eye(d)).max() < 8.0 * math.sqrt(2.0 / len(noise))


def test_tail():
    sanitizer = GaussianNoise(1.0, 1e-6, 5)
    tail = sanitizer.tail
    assert tail.largest_rate == math.inf
    assert 1.0 <= tail.variance / sanitizer.noise_std**2 <= 1.0011
    truth = gradient(5)
    along = (reports(sanitizer, truth, 400_000) - truth) @ gradient(5)
    v = 1.5 / sanitizer.noise_std
    sample = np.exp(v * along)
    error = 6.0 * sample.std() / math.sqrt(sample.size)
    assert sample.mean() - error < math.exp(v**2 * tail.variance / 2)
    assert sample.mean() - error > math.exp(v**2 * 0.9 * tail.variance / 2)


def test_pure_is_refused():
    for delta in (0.0, -1e-6, 0.9, math.nan):
        with pytest.raises(ValueError, match="delta must be"):
            GaussianNoise(1.0, delta, 3)


def test_far_reports_are_refused():
    sanitizer = GaussianNoise(1.0, 1e-6, 3)
    limit = sanitizer.noise_std * math.sqrt(3.0 + 2.0 * math.sqrt(300.0) + 200.0) + 1.0
    for factor, possible in ((0.99, True), (1.01, False)):
        steps = np.array([0, -int(factor * limit / sanitizer.spacing), 0])
        assert sanitizer.is_possible(steps) is possible
