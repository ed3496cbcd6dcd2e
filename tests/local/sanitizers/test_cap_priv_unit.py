import math

import numpy as np
import pytest

from tacit.local import HalfSphere, PrivUnit, SphereNoise
from tacit.local.sanitizers.cap import mass
from tests.local.sanitizers.helpers import gradient, reports


def test_pins():
    assert PrivUnit(1.0, 100).rms_norm == pytest.approx(25.11, abs=0.005)
    assert PrivUnit(8.0, 100).rms_norm == pytest.approx(3.71, abs=0.005)


@pytest.mark.parametrize("d", [1, 2, 3, 10, 100, 1000, 10_000])
@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1.0, 8.0, 30.0])
def test_it_is_never_worse_than_the_others(d, epsilon):
    best = PrivUnit(epsilon, d, 2.0)
    assert best.rms_norm <= HalfSphere(epsilon, d, 2.0).rms_norm * (1.0 + 1e-12)
    assert best.rms_norm <= SphereNoise(epsilon, d, 2.0).rms_norm
    assert best.rms_norm >= 2.0
    assert best.cap.epsilon <= epsilon


@pytest.mark.parametrize(("d", "epsilon"), [(2, 1.0), (5, 2.0), (20, 4.0)])
def test_how_often_a_report_is_in_the_cap(d, epsilon):
    n = 200_000
    sanitizer = PrivUnit(epsilon, d)
    truth = gradient(d)
    edge = sanitizer.cap.gamma * sanitizer.radius
    inside = np.mean(reports(sanitizer, truth, n) @ truth >= edge)
    error = 6.0 * 0.5 / math.sqrt(n)
    assert abs(inside - sanitizer.cap.p) < error
    # someone with the opposite gradient is there with probability Q (1 - p) / (1 - Q)
    q = mass(d, sanitizer.cap.gamma)
    opposite = np.mean(reports(sanitizer, -truth, n) @ truth >= edge)
    assert abs(opposite - q * (1.0 - sanitizer.cap.p) / (1.0 - q)) < error
    # The ratio of the two is e^epsilon; the same test sees half of epsilon, and a quarter more.
    for factor in (0.5, 1.25):
        wrong = PrivUnit(epsilon * factor, d, gamma=sanitizer.gamma).cap.p
        assert abs(inside - wrong) > error


def test_a_shorter_gradient_is_turned_around_sometimes():
    n = 200_000
    sanitizer = PrivUnit(4.0, 5, 2.0)
    u = gradient(5)
    share = np.mean(reports(sanitizer, 0.8 * u, n) @ u >= sanitizer.cap.gamma * sanitizer.radius)
    p, q = sanitizer.cap.p, mass(5, sanitizer.cap.gamma)
    towards = 0.5 + 0.8 / (2.0 * 2.0)
    expected = towards * p + (1.0 - towards) * q * (1.0 - p) / (1.0 - q)
    assert abs(share - expected) < 3.0 / math.sqrt(n)
    assert abs(share - p) > 30.0 / math.sqrt(n)


def test_a_gamma_of_ones_own_costs_the_same():
    for gamma in (0.0, 0.3, 0.6):
        sanitizer = PrivUnit(2.0, 5, gamma=gamma)
        assert 2.0 - 1e-9 <= sanitizer.cap.epsilon <= 2.0
        assert sanitizer.rms_norm >= PrivUnit(2.0, 5).rms_norm
    for gamma in (-0.1, 1.0, math.nan):
        with pytest.raises(ValueError, match="gamma must be"):
            PrivUnit(1.0, 5, gamma=gamma)
    for epsilon, d in ((1.0, 10), (1.0, 10_000)):
        with pytest.raises(ValueError, match=r"gamma = 0.9 makes too small a cap"):
            PrivUnit(epsilon, d, gamma=0.9)
    for wrong in ("0.1", True):
        with pytest.raises(TypeError, match="gamma must be"):
            PrivUnit(1.0, 5, gamma=wrong)


def test_tail_pins():
    # as multiples of radius^2 / d; see docs/proofs/local_sanitizers.md
    for d, epsilon, multiple in (
        (5, 1.0, 1.142),
        (50, 1.0, 1.161),
        (100, 1.0, 1.163),
        (100, 8.0, 8.247),
    ):
        sanitizer = PrivUnit(epsilon, d, 3.0)
        found = sanitizer.tail.variance / sanitizer.radius**2 * d
        assert found == pytest.approx(multiple, abs=2e-3)
        assert sanitizer.tail.largest_rate == pytest.approx(0.6838 / 3.0)
