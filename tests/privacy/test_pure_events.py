"""Pure releases against exact pairs of laws, in arithmetic of many digits."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest

from tacit.privacy import ExponentialMechanism, PureEpsilon, SmoothGaussian, ZeroConcentrated

# On either side of where closed forms would lose their digits or overflow.
LOSSES = (1e-9, 3e-4, 0.999e-3, 1.001e-3, 0.02, 0.5, 3.0, 40.0, 699.0, 701.0, 2e3)
ORDERS = (1.2, 1.5, 2.0, 7.0, 300.0)


def response_renyi(epsilon: float, order: float) -> float:
    """Return the divergence of randomised response."""
    with mpmath.workdps(1500):
        a, p = mpmath.mpf(order), 1 / (1 + mpmath.exp(-mpmath.mpf(epsilon)))
        q = 1 - p
        return float(mpmath.log(p**a * q ** (1 - a) + q**a * p ** (1 - a)) / (a - 1))


@pytest.mark.parametrize("epsilon", LOSSES)
def test_pure_releases_cost_what_randomised_response_does(epsilon: float) -> None:
    found = PureEpsilon(epsilon).renyi(np.array(ORDERS))
    for order, value in zip(ORDERS, found, strict=True):
        exact = response_renyi(epsilon, order)
        assert exact * (1 - 1e-5) <= value <= min(order * epsilon**2 / 2, epsilon) * (1 + 1e-9)
        if epsilon > 1e-3:
            assert value == pytest.approx(exact, rel=1e-9, abs=0.0)
    with mpmath.workdps(1500):
        top = mpmath.exp(mpmath.mpf(epsilon))
        for share in (-0.999, -0.3, 0.0, 0.6, 0.999):
            exact = float((top - mpmath.exp(mpmath.mpf(share * epsilon))) / (1 + top))
            at = PureEpsilon(epsilon).profile(np.array([share * epsilon]))[0]
            assert at == pytest.approx(exact, rel=1e-9, abs=0.0)
    ends = PureEpsilon(epsilon).profile(np.array([-2.0 * epsilon, epsilon, 2.0 * epsilon]))
    assert ends == pytest.approx([-math.expm1(-2.0 * epsilon), 0.0, 0.0], rel=1e-6, abs=0.0)


def range_renyi(eta: float, order: float) -> float:
    """Return the greatest divergence of two outcomes whose losses are t and t - eta."""
    with mpmath.workdps(1500):
        a, e = mpmath.mpf(order), mpmath.exp(mpmath.mpf(eta))
        upper, lower = e - e ** (1 - a), 1 - e ** (1 - a)
        x = min(max(upper * (a - 1) / (a * lower), mpmath.mpf(1)), e)
        return float(mpmath.log(x ** (a - 1) * (upper - lower * x) / (e - 1)) / (a - 1))


@pytest.mark.parametrize("eta", LOSSES)
def test_choices_cost_what_the_worst_pair_of_bounded_range_does(eta: float) -> None:
    found = ExponentialMechanism(eta).renyi(np.array(ORDERS))
    for order, value in zip(ORDERS, found, strict=True):
        exact = range_renyi(eta, order)
        assert exact * (1 - 1e-5) <= value <= min(order * eta**2 / 8, eta) * (1 + 1e-9)
        if 1e-3 < eta < 700.0:
            assert value == pytest.approx(exact, rel=1e-5)
    with mpmath.workdps(1500):
        for share in (-0.999, -0.3, 0.0, 0.6, 0.999):
            half, at = mpmath.exp(mpmath.mpf(eta) / 2), mpmath.mpf(share * eta)
            exact = float((half - mpmath.exp(at / 2)) ** 2 / (mpmath.exp(mpmath.mpf(eta)) - 1))
            claimed = ExponentialMechanism(eta).profile(np.array([share * eta]))[0]
            assert claimed == pytest.approx(exact, rel=1e-9, abs=0.0)
    ends = ExponentialMechanism(eta).profile(np.array([-2.0 * eta, eta, 2.0 * eta]))
    assert ends == pytest.approx([-math.expm1(-2.0 * eta), 0.0, 0.0], rel=1e-6, abs=0.0)


def test_zero_concentrated_is_what_it_says() -> None:
    assert ZeroConcentrated(0.3).renyi(np.array([2.0, 5.0])) == pytest.approx([0.6, 1.5])


@pytest.mark.parametrize("margin", [0.0, 1.5])
@pytest.mark.parametrize(("multiplier", "smoothness"), [(2.0, 0.05), (0.7, 0.01)])
def test_smooth_noise_costs_what_two_gaussians_do(
    margin: float, multiplier: float, smoothness: float
) -> None:
    # N(0, w^2) against N(moved, 1), in units of the wider S: Gil, Alajaji and Linder 2013
    for order in (1.5, 3.0, 8.0):
        ratio = math.exp(smoothness)
        room = order - (order - 1) * ratio**2
        moved = 1.0 + margin * multiplier * (ratio - 1)
        means = order * moved**2 / (2 * multiplier**2 * room)
        widths = -(math.log(1 - order + order / ratio**2) / 2 + order * smoothness) / (order - 1)
        event = SmoothGaussian(multiplier, smoothness, margin)
        assert event.renyi(np.array([order]))[0] == pytest.approx(means + widths, rel=1e-9)
    last = 1 / (1 - math.exp(-2 * smoothness))  # where room is used up
    at = SmoothGaussian(multiplier, smoothness, margin).renyi(np.array([0.99, 1.01]) * last)
    assert np.isfinite(at).tolist() == [True, False]


# The least orders that are ever asked, and losses from where the closed forms are used on.
@pytest.mark.parametrize("order", [1.001, 1.25, 2.0, 16.0, 512.0, 8192.0])
def test_divergences_of_small_losses_are_not_understated(order: float) -> None:
    for epsilon in (1.0005e-3, 1.37e-3, 2.9e-3, 0.0123, 0.17, 1.1, 9.0):
        with mpmath.workdps(60):
            a, e = mpmath.mpf(order), mpmath.mpf(epsilon)
            pure = 2 * mpmath.sinh(a * e / 2) * mpmath.sinh((a - 1) * e / 2) / mpmath.cosh(e / 2)
            top = mpmath.exp(e)
            upper, lower = top - top ** (1 - a), 1 - top ** (1 - a)
            x = upper * (a - 1) / (a * lower)
            choice = x ** (a - 1) * (upper - lower * x) / (top - 1)
            found = PureEpsilon(epsilon).renyi(np.array([order]))[0]
            assert mpmath.log1p(pure) / (a - 1) <= mpmath.mpf(found)
            found = ExponentialMechanism(epsilon).renyi(np.array([order]))[0]
            assert mpmath.log(choice) / (a - 1) <= mpmath.mpf(found)


@pytest.mark.parametrize(("order", "epsilon"), [(1.001, 0.5), (3.0, 8.0)])
def test_what_rounding_may_take_is_added_and_hardly_more(order: float, epsilon: float) -> None:
    with mpmath.workdps(60):
        a, e = mpmath.mpf(order), mpmath.mpf(epsilon)
        pure = 2 * mpmath.sinh(a * e / 2) * mpmath.sinh((a - 1) * e / 2) / mpmath.cosh(e / 2)
        found = mpmath.mpf(PureEpsilon(epsilon).renyi(np.array([order]))[0])
        assert 0.9e-13 < float(found / (mpmath.log1p(pure) / (a - 1)) - 1) < 1.1e-13
        top = mpmath.exp(e)
        upper, lower = top - top ** (1 - a), 1 - top ** (1 - a)
        x = upper * (a - 1) / (a * lower)
        choice = mpmath.log(x ** (a - 1) * (upper - lower * x) / (top - 1))
        found = mpmath.mpf(ExponentialMechanism(epsilon).renyi(np.array([order]))[0])
        # docs/proofs/events.md, section 6: 16 (a / (1 - exp(-a eta)) + a eta) 2^-53 of (a-1) r(a)
        added = float(found * (a - 1) - choice) / float(a / (1 - mpmath.exp(-a * e)) + a * e)
        assert added * 2.0**53 == pytest.approx(16.0, rel=0.3)
