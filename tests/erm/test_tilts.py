"""Noise on the output of a tilt covers two certified points and the float error of b."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from tacit.erm import Objective
from tacit.erm.losses import LogisticLoss
from tacit.erm.tilts import GaussianTilt, SphereTilt
from tacit.noise.minimizer import SpherePerturbation
from tacit.privacy import Budget
from tacit.records import Bounds

U = Fraction(1, 2**53)


@pytest.mark.parametrize("ridge", [0.3, 1.0, 50.0])
@pytest.mark.parametrize("noise", [0.5, 20.0, 1e12])
def test_output_noise_covers_what_is_certified(ridge: float, noise: float) -> None:
    budget, shape = Budget(1.0, 1e-6), (5, 2)
    # A gradient of length tau puts a point within tau / lam of the minimiser: two, 2 tau / lam.
    gaussian = GaussianTilt(ridge, noise)
    perturbation, certified = gaussian.perturbation(shape, budget)
    reach = 2 * (certified + perturbation.error) / ridge
    multiplier = gaussian.output(budget).noise_multiplier
    assert perturbation.noise_std == noise
    assert perturbation.output_std == pytest.approx(multiplier * reach, rel=1e-12, abs=0.0)
    assert certified >= perturbation.error * (1 - 1e-12)
    sphere = SphereTilt(ridge, noise)
    perturbation, certified = sphere.perturbation(shape, budget)
    reach = 2 * (certified + perturbation.error) / ridge
    assert perturbation.noise_radius == noise
    assert perturbation.output_radius == pytest.approx(
        reach / sphere.output(budget).epsilon, rel=1e-12, abs=0.0
    )
    assert perturbation.output_std == pytest.approx(
        perturbation.output_radius * math.sqrt(11), rel=1e-12, abs=0.0
    )
    assert certified >= perturbation.error * (1 - 1e-12)


@pytest.mark.parametrize("ridge", [0.3, 1.0, 7.0, 49.0])
@pytest.mark.parametrize("noise", [0.5, 3.1, 23.0])
@pytest.mark.parametrize("epsilon", [0.7, 1.0, 3.0])
def test_no_rounding_lets_certified_points_be_further_apart(
    ridge: float, noise: float, epsilon: float
) -> None:
    """In real numbers: noise is for 2 tau / lam, the float error of b in tau, and 2^-45 more."""
    budget, shape = Budget(epsilon, 1e-6), (5, 2)
    gaussian, sphere = GaussianTilt(ridge, noise), SphereTilt(ridge, noise)
    law, certified = gaussian.perturbation(shape, budget)
    reach = 2 * (Fraction(certified) + Fraction(law.error)) / Fraction(ridge)
    multiplier = Fraction(gaussian.output(budget).noise_multiplier)
    assert 200 * U < Fraction(law.output_std) / (reach * multiplier) - 1 < 300 * U
    pure, certified = sphere.perturbation(shape, budget)
    assert isinstance(pure, SpherePerturbation)
    reach = 2 * (Fraction(certified) + Fraction(pure.error)) / Fraction(ridge)
    radius = reach / Fraction(sphere.output(budget).epsilon)
    assert 200 * U < Fraction(pure.output_radius) / radius - 1 < 300 * U


@pytest.mark.parametrize("row_scale", [1.0, 0.25])
@pytest.mark.parametrize("trace", [0.0, 30.0])
def test_what_steps_may_cost_instead_of_a_tilt(trace: float, row_scale: float) -> None:
    """(L / s)^2 + 1 / z_output^2 + 1 / z_trace^2, rows as long as they count, and no more."""
    objective = Objective(LogisticLoss(), Bounds(row_norm=3.0, intercept=4.0))
    budget = Budget(1.0, 1e-6)
    tilt = GaussianTilt(2.0, 8.0, row_scale=row_scale, trace_noise_multiplier=trace)
    part = Fraction(tilt.gaussian_part(objective, budget).noise_multiplier)
    length = Fraction(math.hypot(3.0 * row_scale, 4.0))
    mu2 = (length / 8) ** 2 + 1 / Fraction(tilt.output(budget).noise_multiplier) ** 2
    mu2 += 1 / Fraction(trace) ** 2 if trace else 0
    # less twice 2^-40, and what roundings of a few products do
    assert abs((1 - 1 / (part**2 * mu2)) * 2**39 - 1) < Fraction(1, 100)


def test_half_of_what_is_certified_is_left_where_the_float_error_of_b_is_large() -> None:
    """Of many weights and a small budget: tau is twice that error, whatever else it would be."""
    budget, shape = Budget(1e-3, 1e-6), (1_000_000,)
    for tilt in (GaussianTilt(0.3, 2.0), SphereTilt(0.3, 2.0)):
        law, certified = tilt.perturbation(shape, budget)
        assert certified == pytest.approx(law.error, rel=1e-12, abs=0.0)
        assert 0.0 < law.error < 1.0
