"""Noise on the output of a tilt covers two certified points and the float error of b."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from tacit.erm import Objective, Problem
from tacit.erm.losses import LogisticLoss
from tacit.erm.mechanisms.objective_perturbation.perturbation import (
    GaussianPerturbationSettings,
    SpherePerturbationSettings,
    slots_of,
)
from tacit.noise.perturbed_minimizer import SpherePerturbation
from tacit.privacy import Budget, Gaussian, PureEpsilon, Relation
from tacit.queries import Facts
from tacit.records import Bounds

U = Fraction(1, 2**53)
FACTS = Facts(Bounds(), 5, Relation.ADD_REMOVE)


def output_multiplier(perturbation: GaussianPerturbationSettings, budget: Budget) -> float:
    """Return that of the output's noise, as its event states it."""
    event = perturbation.law(budget).output(FACTS)
    assert isinstance(event, Gaussian)
    return event.noise_multiplier


def output_epsilon(perturbation: SpherePerturbationSettings, budget: Budget) -> float:
    """Return that of the output's noise, as its event states it."""
    event = perturbation.law(budget).output(FACTS)
    assert isinstance(event, PureEpsilon)
    return event.epsilon


@pytest.mark.parametrize("ridge", [0.3, 1.0, 50.0])
@pytest.mark.parametrize("noise", [0.5, 20.0, 1e12])
def test_output_noise_covers_what_is_certified(ridge: float, noise: float) -> None:
    budget, shape = Budget(1.0, 1e-6), (5, 2)
    # A gradient of length tau puts a point within tau / lam of the minimiser: two, 2 tau / lam.
    gaussian = GaussianPerturbationSettings(ridge, noise)
    perturbation, certified = gaussian.law(budget).laws(ridge, shape)
    gradient_scale = 2 * (certified + perturbation.error) / ridge
    multiplier = output_multiplier(gaussian, budget)
    assert perturbation.noise_std == noise
    assert perturbation.output_std == pytest.approx(multiplier * gradient_scale, rel=1e-12, abs=0.0)
    assert certified >= perturbation.error * (1 - 1e-12)
    sphere = SpherePerturbationSettings(ridge, noise)
    pure, certified = sphere.law(budget).laws(ridge, shape)
    gradient_scale = 2 * (certified + pure.error) / ridge
    assert pure.noise_radius == noise
    assert pure.output_radius == pytest.approx(
        gradient_scale / output_epsilon(sphere, budget), rel=1e-12, abs=0.0
    )
    assert pure.output_std == pytest.approx(pure.output_radius * math.sqrt(11), rel=1e-12, abs=0.0)
    assert certified >= pure.error * (1 - 1e-12)


@pytest.mark.parametrize("ridge", [0.3, 1.0, 7.0, 49.0])
@pytest.mark.parametrize("noise", [0.5, 3.1, 23.0])
@pytest.mark.parametrize("epsilon", [0.7, 1.0, 3.0])
def test_no_rounding_lets_certified_points_be_further_apart(
    ridge: float, noise: float, epsilon: float
) -> None:
    """In real numbers: noise is for 2 tau / lam, the float error of b in tau, and 2^-45 more."""
    budget, shape = Budget(epsilon, 1e-6), (5, 2)
    gaussian, sphere = (
        GaussianPerturbationSettings(ridge, noise),
        SpherePerturbationSettings(ridge, noise),
    )
    law, certified = gaussian.law(budget).laws(ridge, shape)
    gradient_scale = 2 * (Fraction(certified) + Fraction(law.error)) / Fraction(ridge)
    multiplier = Fraction(output_multiplier(gaussian, budget))
    assert 200 * U < Fraction(law.output_std) / (gradient_scale * multiplier) - 1 < 300 * U
    pure, certified = sphere.law(budget).laws(ridge, shape)
    assert isinstance(pure, SpherePerturbation)
    gradient_scale = 2 * (Fraction(certified) + Fraction(pure.error)) / Fraction(ridge)
    radius = gradient_scale / Fraction(output_epsilon(sphere, budget))
    assert 200 * U < Fraction(pure.output_radius) / radius - 1 < 300 * U


@pytest.mark.parametrize("row_scale", [1.0, 0.25])
@pytest.mark.parametrize("trace", [0.0, 30.0])
def test_what_steps_may_cost_instead_of_a_tilt(trace: float, row_scale: float) -> None:
    """(L / s)^2 + 1 / z_output^2 + 1 / z_trace^2, rows as long as they count, and no more."""
    objective = Objective(LogisticLoss(), Bounds(row_norm=3.0, intercept=4.0))
    budget = Budget(1.0, 1e-6)
    perturbation = GaussianPerturbationSettings(
        2.0, 8.0, row_scale=row_scale, trace_noise_multiplier=trace
    )
    steps = slots_of(perturbation, Problem(objective, 5), budget)["steps"].event
    assert isinstance(steps, Gaussian)
    part = Fraction(steps.noise_multiplier)
    length = Fraction(math.hypot(3.0 * row_scale, 4.0))
    mu2 = (length / 8) ** 2 + 1 / Fraction(output_multiplier(perturbation, budget)) ** 2
    mu2 += 1 / Fraction(trace) ** 2 if trace else 0
    # less twice 2^-40, and what roundings of a few products do
    assert abs((1 - 1 / (part**2 * mu2)) * 2**39 - 1) < Fraction(1, 100)


def test_half_of_what_is_certified_is_left_where_the_float_error_of_b_is_large() -> None:
    """Of many weights and a small budget: tau is twice that error, whatever else it would be."""
    budget, shape = Budget(1e-3, 1e-6), (1_000_000,)
    for perturbation in (
        GaussianPerturbationSettings(0.3, 2.0),
        SpherePerturbationSettings(0.3, 2.0),
    ):
        law, certified = perturbation.law(budget).laws(perturbation.regularization, shape)
        assert certified == pytest.approx(law.error, rel=1e-12, abs=0.0)
        assert 0.0 < law.error < 1.0
