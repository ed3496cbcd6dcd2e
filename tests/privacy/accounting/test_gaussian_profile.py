"""The Gaussian profile keeps its digits however small mu is."""

from __future__ import annotations

import itertools
import math

import mpmath
import numpy as np
import pytest

from tacit.privacy.accounting.gaussian_profile import (
    gaussian_delta,
    gaussian_epsilon,
    gaussian_mu,
    log_gaussian_delta,
)

# Quotients e / mu up to delta about 1e-100.
QUOTIENTS = (0.0, 1e-6, 0.01, 0.5, 1.0, 3.0, 8.0, 20.0)


def exact(mu: float, epsilon: float) -> mpmath.mpf:
    with mpmath.workdps(400):
        m, e = mpmath.mpf(mu), mpmath.mpf(epsilon)
        return mpmath.ncdf(m / 2 - e / m) - mpmath.exp(e) * mpmath.ncdf(-m / 2 - e / m)


@pytest.mark.parametrize("mu", [10.0**k for k in range(-100, -20, 20)] + [3.0e-16, 1e-15, 7e-12])
@pytest.mark.parametrize("quotient", QUOTIENTS)
def test_delta_of_tiny_mu_is_not_understated(mu: float, quotient: float) -> None:
    _hold_to_exact(mu, quotient * mu)


@pytest.mark.parametrize("mu", np.logspace(-11, 1, 25).tolist())
@pytest.mark.parametrize("quotient", QUOTIENTS)
def test_delta_of_ordinary_mu_is_exact(mu: float, quotient: float) -> None:
    _hold_to_exact(mu, quotient * mu)


def _hold_to_exact(mu: float, epsilon: float) -> None:
    truth = exact(mu, epsilon)
    for computed in (
        float(gaussian_delta(mu, epsilon)),
        float(mpmath.exp(log_gaussian_delta(mu, epsilon))),
    ):
        assert float(computed / truth) == pytest.approx(1.0, abs=1e-8)


@pytest.mark.parametrize("mu", [1e-15, 1e-13, 1e-9, 1e-7, 1e-5, 1e-3])
def test_negative_epsilons_obey_the_symmetry(mu: float) -> None:
    # dG(mu, -e) = 1 - exp(-e) + exp(-e) dG(mu, e)
    e = mu * np.array([0.1, 1.0, 3.0])
    expected = -np.expm1(-e) + np.exp(-e) * gaussian_delta(mu, e)
    assert gaussian_delta(mu, -e) == pytest.approx(expected, rel=1e-9, abs=0.0)


def test_the_inverses_agree_with_it_for_tiny_mu() -> None:
    for mu in (1e-14, 1e-12, 1e-8, 3e-5):
        epsilon = gaussian_epsilon(mu, 0.01 * mu)
        assert float(exact(mu, epsilon) / (0.01 * mu)) == pytest.approx(1.0, rel=1e-6)
        assert exact(mu, epsilon) <= 0.01 * mu * (1 + 1e-9)
        again = gaussian_mu(epsilon, 0.01 * mu)
        assert again == pytest.approx(mu, rel=1e-6, abs=0.0)


@pytest.mark.parametrize("mu", [1e-90, 1e-9, 9e-5, 1.1e-4, 0.003, 0.1, 1.0, 7.0, 300.0, 2e3])
@pytest.mark.parametrize("delta", [0.3, 1e-3, 1e-6, 1e-12, 1e-100])
def test_epsilon_is_enough_and_hardly_more(mu: float, delta: float) -> None:
    delta *= min(mu, 1.0)  # or none is needed
    epsilon = gaussian_epsilon(mu, delta)
    assert log_gaussian_delta(mu, epsilon) <= math.log(delta)
    assert exact(mu, epsilon) <= delta * (1 + 1e-8)
    assert exact(mu, epsilon * (1 - 1e-7)) > delta


def test_log_delta_falls_ever_more_steeply() -> None:
    # so that Newton's steps from above stay above
    for mu in (1e-3, 0.1, 1.0, 10.0):
        grid = mu * np.linspace(0.0, 12.0 + mu, 60)
        logs = [mpmath.log(exact(mu, float(e))) for e in grid]
        falls = [before - after for before, after in itertools.pairwise(logs)]
        assert all(later > earlier > 0 for earlier, later in itertools.pairwise(falls))


def test_the_midpoint_rule_errs_by_what_its_docstring_says() -> None:
    # g = 1 - t R is convex and g'' <= 2 g on t >= 0, with R'' = R + t R'.
    with mpmath.workdps(50):
        for k in range(400):
            t = mpmath.mpf(k) / 8
            mills = mpmath.ncdf(-t) / mpmath.npdf(t)
            g = 1 - t * mills
            second = 2 * g - t * (mills - t * g)
            assert 0 < second <= 2 * g


def test_the_ends_of_the_profile() -> None:
    at = np.array([-math.inf, -1.0, 0.0, 1.0, math.inf])
    for mu in (1e-5, 0.003, 1.0):
        with np.errstate(invalid="ignore"):
            found = gaussian_delta(mu, at)
        assert found[0] == 1.0
        assert found[-1] == 0.0
        assert np.all(np.diff(found) <= 0.0)
    # nothing moves: only what the outputs' own ratio says is left
    assert gaussian_delta(0.0, at) == pytest.approx([1.0, 1 - math.exp(-1.0), 0.0, 0.0, 0.0])
    assert log_gaussian_delta(0.0, 0.1) == -math.inf


@pytest.mark.parametrize("quotient", [49.0, 51.0, 300.0])
def test_far_tails_of_tiny_mu_are_not_understated(quotient: float) -> None:
    mu = 1e-6
    truth = mpmath.log(exact_tail(mu, quotient))
    assert 0 <= float(log_gaussian_delta(mu, quotient * mu) - truth) < 2e-3


def exact_tail(mu: float, quotient: float) -> mpmath.mpf:
    with mpmath.workdps(60):
        m, x = mpmath.mpf(mu), mpmath.mpf(quotient * mu) / mpmath.mpf(mu)
        # phi(x - m/2) times the integral of -R' over the interval
        return mpmath.npdf(x - m / 2) * mpmath.quad(
            lambda t: 1 - t * mpmath.ncdf(-t) / mpmath.npdf(t), [x - m / 2, x + m / 2]
        )


def test_digits_that_cancel_far_out_are_added() -> None:
    # 1 - x R(x) lost 7.6e-13 of itself near here
    mu, quotient = 1e-15, 45.21010786874956
    found = log_gaussian_delta(mu, mu * quotient)
    with mpmath.workdps(60):
        x = mpmath.mpf(mu * quotient) / mpmath.mpf(mu)
        fall = 1 - x * mpmath.ncdf(-x) / mpmath.npdf(x)
        truth = mpmath.log(mpmath.npdf(x - mpmath.mpf(mu) / 2)) + mpmath.log(mu * fall)
        assert 0.0 <= float(mpmath.mpf(found) - truth) <= 2e-12


def test_a_delta_that_floats_cannot_tell_from_none() -> None:
    # the logarithms of both terms are the same float
    assert log_gaussian_delta(1.0, 1e20) == -math.inf
    assert gaussian_delta(1.0, 1e20) == 0.0
    # nothing moves: no epsilon above 0 has a delta, and none is negative
    assert gaussian_delta(0.0, np.array([0.1, 0.5, 1.0])).tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("mu", [0.5, 1.0, 1e-6, 0.001104963653452159, 0.023322633384214097, 0.7])
def test_an_epsilon_near_zero_is_not_negative(mu: float) -> None:
    """A delta a few floats below that of epsilon 0, where Newton's last step may pass 0.

    A cost below 0 would pay for other releases.
    """
    whole = math.exp(log_gaussian_delta(mu, 0.0))
    for n in (0, 1, 2, 3, 4, 6, 8, 12, 20, 50, 200, 1000):
        delta = whole * (1.0 - n * 2.0**-53)
        epsilon = gaussian_epsilon(mu, delta)
        assert 0.0 <= epsilon <= 1e-11 * mu
        assert log_gaussian_delta(mu, epsilon) <= math.log(delta)
        assert (epsilon == 0.0) == (log_gaussian_delta(mu, 0.0) <= math.log(delta))
