from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import erfi, gammaln

from tacit.local.learners import (
    LARGEST_LOG,
    log_scale_free_magnitude,
    log_uniform_magnitude,
)

BOTH = [log_uniform_magnitude, log_scale_free_magnitude]

# (x, y, a): a sqrt(y) from 1e-8 to 1e8, x from far below sqrt(y) to far above 2 a y.
WIDE = [
    (2.0 * z * size / a, (size / a) ** 2, a)
    for a, size, z in [
        (0.25, 1e-8, 1e-6),
        (0.25, 1e-8, 1e9),
        (0.68, 1e-3, 1e-30),
        (0.68, 1e-3, 30.0),
        (0.68, 1e-3, 1e4),
        (0.25, 0.05, 1e-3),
        (0.25, 0.05, 7.0),
        (0.25, 0.05, 300.0),
        (0.01, 0.5, 0.3),
        (0.01, 0.5, 3.0),
        (0.01, 0.5, 30.0),
        (0.68, 2.0, 1e-6),
        (0.68, 2.0, 1.9),
        (0.68, 2.0, 2.1),
        (0.68, 2.0, 1e4),
        (0.25, 6.0, 0.3),
        (0.25, 6.0, 5.9),
        (0.25, 6.0, 6.5),
        (0.25, 50.0, 3.0),
        (0.25, 50.0, 49.0),
        (0.25, 50.0, 1e3),
        (0.68, 1e4, 1e-6),
        (0.68, 1e4, 5.0),
        (0.68, 1e4, 1.1e4),
        (0.68, 1e4, 1e7),
    ]
]
# t = 1 and t = 1e9 people at the variance of sphere noise, d = 50, epsilon = 1.
PEOPLE = [(x, t * 118.4, 0.25) for t in (1.0, 1e9) for x in (1e-12, 1.0, 300.0, 1e6, 1e11)]


def precise(x: float, y: float, a: float, power: int) -> mpmath.mpf:
    """Return log of the integral over [0, a] of v^power sinh(v x) exp(-v^2 y), to 50 digits."""
    x, y, a = mpmath.mpf(x), mpmath.mpf(y), mpmath.mpf(a)
    peak = min(x / (2 * y), a)
    top = peak * x - peak**2 * y
    # 12 of these away from its peak the integrand is below 1e-62 of it
    width = 1 / max(mpmath.sqrt(y), (x - 2 * a * y) / 12)
    knots = sorted({min(max(peak + k * width, mpmath.mpf(0)), a) for k in range(-12, 13, 4)})
    total = mpmath.quad(
        lambda v: v**power * mpmath.sinh(v * x) * mpmath.exp(-v * v * y - top),
        knots,
        method="gauss-legendre",
    )
    return top + mpmath.log(total)


def reference(magnitude, x: float, y: float, a: float) -> float:
    with mpmath.workdps(60):
        if magnitude is log_uniform_magnitude:
            return float(precise(x, y, a, 1) - mpmath.log(a))
        return float(precise(x, y, a, -1) + mpmath.log(2 / mpmath.pi))


def close(value: float, exact: float) -> bool:
    """A relative error of 1e-12 in m, or as many digits of log m as a double has."""
    return abs(value - exact) <= 1e-12 + 4e-15 * abs(exact)


@pytest.mark.parametrize(
    ("x", "y", "m"), [(3.0, 5.0, 0.0548642970442), (100.0, 5000.0, 8.26546270824e-4)]
)
def test_pins(x, y, m):
    assert math.exp(log_uniform_magnitude(x, y, 0.25)) == pytest.approx(m, rel=1e-11, abs=0.0)


def test_pin_of_the_logarithm():
    assert log_uniform_magnitude(1e4, 5000.0, 0.25) == pytest.approx(2177.883483535, abs=1e-9)


@pytest.mark.parametrize("magnitude", BOTH)
@pytest.mark.parametrize(("x", "y", "a"), WIDE + PEOPLE)
def test_agrees_with_sixty_digits(magnitude, x, y, a):
    assert close(magnitude(x, y, a), reference(magnitude, x, y, a))


# The closed form subtracts numbers as large as e^{(x - 2ay)^2 / 4y}.
CLOSED = [
    (x, y, a) for x, y, a in WIDE + PEOPLE if max(x - 2.0 * a * y, 0.0) ** 2 / (4.0 * y) < 500.0
]


@pytest.mark.parametrize(("x", "y", "a"), CLOSED)
def test_uniform_agrees_with_the_closed_form(x, y, a):
    # m = [sqrt(pi) x e^{x^2/4y} (erf(A) + erf(C)) - 4 sqrt(y) e^{-a^2 y} sinh(a x)] / (8 a y^1.5)
    with mpmath.workdps(350):
        x, y, a = mpmath.mpf(x), mpmath.mpf(y), mpmath.mpf(a)
        root = mpmath.sqrt(y)
        errors = mpmath.erf(a * root - x / (2 * root)) + mpmath.erf(a * root + x / (2 * root))
        first = mpmath.sqrt(mpmath.pi) * x * mpmath.exp(x**2 / (4 * y)) * errors
        second = 4 * root * mpmath.exp(-(a**2) * y) * mpmath.sinh(a * x)
        exact = mpmath.log((first - second) / (8 * a * root**3))
    assert close(log_uniform_magnitude(float(x), float(y), float(a)), float(exact))


@pytest.mark.parametrize("z", [1e-8, 0.01, 0.3, 1.0, 3.0, 10.0, 25.0])
@pytest.mark.parametrize("y", [1e-3, 1.0, 1e9])
def test_scale_free_is_erfi_for_large_bets(z, y):
    # a sqrt(y) = z + 10: what is cut off is below e^-100
    value = log_scale_free_magnitude(2.0 * z * math.sqrt(y), y, (z + 10.0) / math.sqrt(y))
    assert value == pytest.approx(math.log(erfi(z)), abs=1e-12, rel=1e-14)


@pytest.mark.parametrize("y", [1.0, 1e6])
def test_uniform_is_a_gaussian_moment_for_large_bets(y):
    # integral of v exp(v x - v^2 y) = x / (2 y) sqrt(pi / y) exp(x^2 / 4y)
    x = 4.0 * math.sqrt(y)
    a = 20.0 / math.sqrt(y)
    exact = x * x / (4 * y) + math.log(x / (2 * y)) + gammaln(0.5) - 0.5 * math.log(y)
    assert log_uniform_magnitude(x, y, a) == pytest.approx(exact - math.log(2 * a), abs=1e-12)


@pytest.mark.parametrize("magnitude", BOTH)
@pytest.mark.parametrize("y", [0.1, 7.0, 1e4, 1e10])
def test_grows_with_the_gain_and_falls_with_the_variance(magnitude, y):
    x = np.geomspace(1e-9, 1e12, 400)
    values = np.array([magnitude(v, y, 0.3) for v in x])
    assert np.all(np.isfinite(values))
    assert np.all(np.diff(values) > 0.0)
    later = np.array([magnitude(v, 1.5 * y, 0.3) for v in x])
    assert np.all(later <= values)


@settings(max_examples=300, deadline=None)
@given(
    st.sampled_from(BOTH),
    st.floats(1e-250, 1e150),
    st.floats(1e-8, 1e20),
    st.floats(1e-6, 1e3),
)
def test_finite_anywhere(magnitude, x, y, a):
    value = magnitude(x, y, a)
    assert math.isfinite(value)
    # m <= a sinh(a x), respectively (2 / pi) x a cosh(a x)
    bound = a * x + (math.log(a) if magnitude is log_uniform_magnitude else math.log(a * x))
    assert value <= bound + 1e-9 * max(1.0, abs(bound))


def test_points_can_be_squared():
    assert math.exp(LARGEST_LOG) < 1e22
