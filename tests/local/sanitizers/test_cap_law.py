import math

import mpmath
import numpy as np
import pytest
from scipy.integrate import quad

from tacit.local.sanitizers.cap import (
    LARGEST_GAMMA,
    best_gamma,
    first_moment,
    mass,
    mean_length,
    second_moment,
    widest_cap,
)
from tacit.noise import Cap

DIMENSIONS = [2, 3, 5, 50, 1000]


def _integral(d, power, low, high):
    """Return the integral of t^power under the law of one coordinate of the uniform law."""
    mpmath.mp.dps = 30
    density = lambda t: mpmath.sin(t) ** (d - 2)  # noqa: E731
    points = [mpmath.acos(high), mpmath.pi / 2, mpmath.acos(low)]
    points = sorted({p for p in points if mpmath.acos(high) <= p <= mpmath.acos(low)})
    top = mpmath.quad(lambda t: mpmath.cos(t) ** power * density(t), points)
    return float(top / mpmath.quad(density, [0, mpmath.pi / 2, mpmath.pi]))


@pytest.mark.parametrize("d", DIMENSIONS)
@pytest.mark.parametrize("share", [0.0, 0.5, 2.0])
def test_mass_and_moments(d, share):
    gamma = min(0.9, share / math.sqrt(d))
    assert mass(d, gamma) == pytest.approx(_integral(d, 0, gamma, 1), rel=1e-10, abs=0.0)
    assert first_moment(d, gamma) == pytest.approx(_integral(d, 1, gamma, 1), rel=1e-10, abs=0.0)
    q, p = mass(d, gamma), 0.8
    cap = Cap(d, gamma, p)
    for power, value in ((1, mean_length(cap)), (2, second_moment(cap))):
        inside, outside = _integral(d, power, gamma, 1), _integral(d, power, -1, gamma)
        truth = p * inside / q + (1 - p) * outside / (1 - q)
        assert value == pytest.approx(truth, rel=1e-9)


def test_one_coordinate_is_a_coin():
    assert (mass(1, 0.0), first_moment(1, 0.0), best_gamma(1, 2.0)) == (0.5, 0.5, 0.0)
    cap = widest_cap(1, 0.0, 2.0)
    assert mean_length(cap) == pytest.approx(math.tanh(1.0), rel=1e-12, abs=0.0)
    assert second_moment(cap) == pytest.approx(1.0)


@pytest.mark.parametrize("d", [2, 3, 10, 100, 1000, 10_000])
@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1.0, 4.0, 8.0, 30.0])
def test_no_other_gamma_is_better(d, epsilon):
    best = best_gamma(d, epsilon)
    grid = np.concatenate(
        [np.linspace(0.0, LARGEST_GAMMA, 60), best + np.array([-1e-3, -1e-5, 1e-5, 1e-3])]
    )
    grid = grid[(grid >= 0.0) & (grid <= LARGEST_GAMMA)]
    e = math.expm1(epsilon)

    def length(gamma):
        return first_moment(d, gamma) * e / (1.0 + mass(d, gamma) * e)

    assert max(length(g) for g in grid) <= length(best) * (1.0 + 1e-9)
    assert mean_length(widest_cap(d, best, epsilon)) == pytest.approx(
        length(best), rel=1e-9, abs=0.0
    )
    if best < LARGEST_GAMMA:
        assert length(best) == pytest.approx(best, abs=1e-7)  # the fixed point gamma = m


def _true_epsilon(d, gamma, p):
    """Return log(p (1 - Q) / ((1 - p) Q)) to 40 digits: the greatest log ratio of densities."""
    with mpmath.workdps(40):
        g = mpmath.mpf(gamma)
        q = mpmath.betainc(mpmath.mpf(d - 1) / 2, 0.5, 0, 1 - g * g, regularized=True) / 2
        odds = mpmath.mpf(p) / (1 - mpmath.mpf(p))
        return mpmath.log(odds * (1 - q) / q)


@pytest.mark.parametrize("d", [2, 3, 5, 100, 1000])
@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1.0, 8.0, 30.0])
def test_the_density_ratio_is_never_above_epsilon(d, epsilon):
    for gamma in (0.0, best_gamma(d, epsilon)):
        cap = widest_cap(d, gamma, epsilon)
        spent = _true_epsilon(d, gamma, cap.p)
        assert spent <= epsilon
        # All but the last digits of p are used. Near p = 1 a double has fewer of them.
        assert spent >= epsilon - 1e-12 * (1.0 + epsilon) - 2.0**-51 / (1.0 - cap.p)
        # the same test sees p 1 % nearer to 1, or a cap 1 % smaller at the same p
        assert _true_epsilon(d, gamma, 1.0 - (1.0 - cap.p) * 0.99) > epsilon
        assert _true_epsilon(d, gamma + 0.01 * (1.0 - gamma) / math.sqrt(d), cap.p) > epsilon


def test_a_large_epsilon_leaves_something_outside():
    cap = widest_cap(3, 0.0, 200.0)
    assert cap.p < 1.0
    assert cap.epsilon < 200.0


def test_closed_form_of_the_mean_agrees_with_quadrature_in_five_dimensions():
    cap = widest_cap(5, best_gamma(5, 2.0), 2.0)
    density = lambda t: 0.75 * (1.0 - t * t)  # noqa: E731
    q = quad(density, cap.gamma, 1)[0]
    inside = quad(lambda t: t * density(t), cap.gamma, 1)[0]
    truth = cap.p * inside / q - (1 - cap.p) * inside / (1 - q)
    assert mean_length(cap) == pytest.approx(truth, rel=1e-9)
    assert mean_length(Cap(5, cap.gamma, cap.p * 0.95)) != pytest.approx(truth, rel=1e-2)
