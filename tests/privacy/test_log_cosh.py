"""Objective perturbation of log cosh against exact one-dimensional densities."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest

from tacit.erm.losses import LogCoshLoss
from tacit.privacy import LogCoshObjective
from tacit.privacy.accounting.gaussian_profile import gaussian_delta
from tests.test_exact_density import Mechanism, exact_delta

EPSILONS = (0.005, 0.01, 0.03, 0.25, 0.5, 1.0, 2.0)


def worst(regularization: float, std: float) -> float:
    """Return the worst exact delta over what the event says."""
    event = LogCoshObjective(1.0, 1.0, regularization, std)
    claimed = event.profile(np.array(EPSILONS))
    found = 0.0
    for label in (0.0, 0.5, 3.0):
        one = Mechanism(
            LogCoshLoss(), np.ones((1, 1)), np.array([label]), np.array([regularization])
        )
        none = Mechanism(LogCoshLoss(), np.ones((0, 1)), np.empty(0), np.array([regularization]))
        for epsilon, delta in zip(EPSILONS, claimed, strict=True):
            for a, b in ((one, none), (none, one)):
                found = max(found, exact_delta(a, b, std, epsilon) / max(delta, 1e-300))
    return found


@pytest.mark.parametrize("regularization", [0.1, 0.5, 2.0, 20.0])
@pytest.mark.parametrize("std", [1.0, 3.0])
def test_no_more_leaks_than_is_said(regularization: float, std: float) -> None:
    assert worst(regularization, std) <= 1.002


@pytest.mark.slow
@pytest.mark.parametrize(
    ("k", "mu"),
    [
        pytest.param(0.02, 0.1, marks=pytest.mark.slow),
        *((0.5, 0.26), (1.4, 0.5), (10.0, 0.3), (0.03, 1.0)),
    ],
)
def test_the_profile_is_that_of_the_bound_which_is_proved(k: float, mu: float) -> None:
    """E(1 - exp(epsilon - X))_+ for X as docs/proofs has it, over all Z and t."""
    z = np.linspace(-9.0, 9.0, 18001)
    density = np.exp(-(z**2) / 2)
    density /= density.sum()
    t = np.linspace(-1.0, 1.0, 2001)[:, None]
    x = np.max(t * mu * z + t**2 * mu**2 / 2 + (1 - t**2) * k, axis=0)
    x = np.minimum(x, np.log1p(k) + mu * np.abs(z) + mu**2 / 2)
    epsilons = np.array([-0.5, 0.0, 0.01, k / 2, k, 1.5 * k, 2.0])
    expected = [(density * -np.expm1(np.minimum(e - x, 0.0))).sum() for e in epsilons]
    found = LogCoshObjective(mu, k, 1.0, 1.0).profile(epsilons)
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-6)


# k and mu: with all three pieces of X, with two, and with none but the last.
FORMS = [(0.02, 0.1), (0.5, 0.26), (1.4, 0.5), (10.0, 0.3), (0.03, 1.0), (4.0, 1.5), (0.1, 3.0)]


def laws(k: float, mu: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return a fine grid of |Z|, twice its density times the spacing, and X, piece by piece."""
    z = np.linspace(0.0, 12.0, 120_001)
    weight = np.exp(-(z**2) / 2) * math.sqrt(2 / math.pi) * (z[1] - z[0])
    weight[0] /= 2
    best = np.full_like(z, -np.inf)
    for t in np.linspace(0.0, 1.0, 21):
        best = np.maximum(best, t * mu * z + t**2 * mu**2 / 2 + (1 - t**2) * k)
    # where the maximum is inside: t = mu z / (2 (k - mu^2/2))
    excess = k - mu**2 / 2
    if excess > 0:
        t = np.minimum(mu * z / (2 * excess), 1.0)
        best = np.maximum(best, t * mu * z + t**2 * mu**2 / 2 + (1 - t**2) * k)
    return z, weight, np.minimum(best, math.log1p(k) + mu * z + mu**2 / 2)


@pytest.mark.parametrize(("k", "mu"), FORMS)
def test_the_profile_is_an_integral_over_the_loss(k: float, mu: float) -> None:
    _, weight, x = laws(k, mu)
    ends = [float(x[0]), k, k + abs(k - mu**2 / 2), mu**2 / 2]
    shares = (0.5, 0.8, 1.0, 1.2)
    epsilons = np.array([-0.5, 0.0, 0.01, *(share * end for end in ends for share in shares)])
    expected = [(weight * -np.expm1(np.minimum(e - x, 0.0))).sum() for e in epsilons]
    # lipschitz, smoothness, regularization and noise_std each count
    event = LogCoshObjective(3.0 * mu, 5.0 * k, 5.0, 3.0)
    found = event.profile(epsilons)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize(("k", "mu"), FORMS[:-1])
def test_renyi_is_an_integral_over_the_ends_of_pieces(k: float, mu: float) -> None:
    z, weight, x = laws(k, mu)
    excess = max(k - mu**2 / 2, 0.0)
    corner = 2 * excess / mu
    first = max(2 * (excess - math.sqrt(excess * math.log1p(k))) / mu, 0.0)
    linear = mu * z + mu**2 / 2
    ends = np.where(z < first, math.log1p(k) + linear, np.where(z < corner, k + excess, linear))
    for order in (1.5, 2.0, 6.0):
        found = LogCoshObjective(3.0 * mu, 5.0 * k, 5.0, 3.0).renyi(np.array([order]))[0]
        stated, least = (
            math.log((weight * np.exp((order - 1) * loss)).sum()) / (order - 1)
            for loss in (ends, x)
        )
        # Where pieces meet the grid of Z is as coarse as 1e-4.
        assert found == pytest.approx(stated, rel=1e-3, abs=2e-4)
        assert found >= least * (1 - 1e-6)


@pytest.mark.parametrize(("mu", "corner"), [(300.0, 39.5), (2500.0, 38.5), (1e4, 38.5)])
@pytest.mark.parametrize("share", [0.97, 1.0])
def test_renyi_sees_tails_that_floats_do_not_hold(mu: float, corner: float, share: float) -> None:
    """Phi(-38) is no float, but it matters at an order at which exp((a - 1) X) is as large."""
    k, b = corner * mu / 2 + mu**2 / 2, share * corner / mu
    found = float(LogCoshObjective(mu, k, 1.0, 1.0).renyi(np.array([1.0 + b]))[0])
    with mpmath.workdps(60):
        m, a = mpmath.mpf(mu), (1 + mpmath.mpf(1.0 + b)) - 2
        e, c = mpmath.mpf(k) - m**2 / 2, mpmath.log1p(k)
        z1, z2 = 2 * (e - mpmath.sqrt(c * e)) / m, 2 * e / m
        linear = 2 * mpmath.exp(a * (a + 1) * m**2 / 2)
        total = linear * mpmath.ncdf(a * m - z2)
        total += linear * mpmath.exp(a * c) * (mpmath.ncdf(a * m) - mpmath.ncdf(a * m - z1))
        total += 2 * mpmath.exp(a * (k + e)) * (mpmath.ncdf(-z1) - mpmath.ncdf(-z2))
        assert float(found / (mpmath.log(total) / a)) == pytest.approx(1.0, abs=1e-12)


def test_the_profile_has_no_hole_where_the_loss_becomes_linear() -> None:
    """A few floats below 2 k - mu^2/2, where the least |Z| is rounded to either side."""
    for mu in np.linspace(0.7, 6.0, 40).tolist():
        event = LogCoshObjective(mu, mu**2, 1.0, 1.0)
        free = 2 * mu**2 - mu**2 / 2
        at = free * (1.0 - np.arange(12) * 2.0**-53)
        found = event.profile(at)
        assert np.all(found >= 2 * gaussian_delta(mu, free) * (1 - 1e-9))


def test_renyi_is_a_number_where_pieces_end_at_infinity() -> None:
    found = LogCoshObjective(1e-308, 1.0, 1e-2, 100.0).renyi(np.array([1.001, 2.0, 1e4]))
    # nothing but the Jacobian, log(1 + k), is left
    np.testing.assert_allclose(found, math.log(101.0), rtol=1e-10)
