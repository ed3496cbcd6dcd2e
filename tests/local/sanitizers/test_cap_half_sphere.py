import math

import numpy as np
import pytest
from scipy.special import gammaln

from tacit.local import HalfSphere, PrivUnit
from tests.local.sanitizers.helpers import gradient, reports


def test_pins():
    assert HalfSphere(1.0, 100).rms_norm == pytest.approx(27.05, abs=0.005)
    assert HalfSphere(8.0, 100).rms_norm == pytest.approx(12.5, abs=0.02)


@pytest.mark.parametrize("d", [1, 2, 3, 17, 1000])
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 8.0])
def test_radius_in_closed_form(d, epsilon):
    ratio = (math.exp(epsilon) + 1.0) / (math.exp(epsilon) - 1.0)
    radius = 2.0 * ratio * math.sqrt(math.pi) * math.exp(gammaln((d + 1) / 2) - gammaln(d / 2))
    assert HalfSphere(epsilon, d, 2.0).rms_norm == pytest.approx(radius, rel=1e-9)
    p = math.exp(epsilon) / (1.0 + math.exp(epsilon))
    assert HalfSphere(epsilon, d).cap.p == pytest.approx(p, rel=1e-12, abs=0.0)


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_how_often_a_report_is_on_the_right_side(epsilon):
    n = 200_000
    truth = gradient(4)
    sanitizer = HalfSphere(epsilon, 4)
    right = np.mean(reports(sanitizer, truth, n) @ truth >= 0.0)
    wrong = np.mean(reports(sanitizer, -truth, n) @ truth >= 0.0)
    error = 6.0 * 0.5 / math.sqrt(n)
    p = 1.0 / (1.0 + math.exp(-epsilon))
    assert abs(right - p) < error
    assert abs(wrong - (1.0 - p)) < error
    # Half or one and a quarter times the epsilon would be seen.
    for factor in (0.5, 1.25):
        assert abs(right - 1.0 / (1.0 + math.exp(-epsilon * factor))) > error


def test_it_is_a_cap_that_begins_at_zero():
    assert HalfSphere(1.0, 7).cap == PrivUnit(1.0, 7, gamma=0.0).cap
    assert HalfSphere(1.0, 7).tail == PrivUnit(1.0, 7, gamma=0.0).tail


def test_every_report_has_the_same_length():
    sanitizer = HalfSphere(1.0, 9, 3.0)
    length = np.linalg.norm(reports(sanitizer, gradient(9, 3.0), 1000), axis=1)
    assert length == pytest.approx(sanitizer.radius, rel=2.0**-19)


def test_a_point_off_the_sphere_is_not_a_report():
    sanitizer = HalfSphere(1.0, 9)
    steps = np.rint(reports(sanitizer, gradient(9), 1)[0] / sanitizer.spacing).astype(np.int64)
    assert sanitizer.is_possible(steps)
    largest = int(np.abs(steps).argmax())
    for change in (16, -16):
        wrong = steps.copy()
        wrong[largest] += change
        assert not sanitizer.is_possible(wrong)
    assert not sanitizer.is_possible(np.zeros(9, dtype=np.int64))
    assert not sanitizer.is_possible(2 * steps)


def test_one_coordinate_has_two_reports():
    sanitizer = HalfSphere(1.0, 1)
    one = round(1.0 / sanitizer.cap.spacing)
    possible = [k for k in range(one - 3, one + 4) if sanitizer.is_possible([k])]
    assert possible == [one]
    assert sanitizer.is_possible([-one])
    seen = set(np.unique(np.rint(reports(sanitizer, np.zeros(1), 1000) / sanitizer.spacing)))
    assert seen == {one, -one}
