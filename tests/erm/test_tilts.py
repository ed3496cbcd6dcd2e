"""Noise on the output of a tilt covers two certified points and the float error of b."""

from __future__ import annotations

import math

import pytest

from tacit.erm.tilts import GaussianTilt, SphereTilt
from tacit.privacy import Budget


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
    assert perturbation.output_std == pytest.approx(multiplier * reach, rel=1e-12)
    assert certified >= perturbation.error * (1 - 1e-12)
    sphere = SphereTilt(ridge, noise)
    perturbation, certified = sphere.perturbation(shape, budget)
    reach = 2 * (certified + perturbation.error) / ridge
    assert perturbation.noise_radius == noise
    assert perturbation.output_radius == pytest.approx(
        reach / sphere.output(budget).epsilon, rel=1e-12
    )
    assert perturbation.output_std == pytest.approx(
        perturbation.output_radius * math.sqrt(11), rel=1e-12
    )
    assert certified >= perturbation.error * (1 - 1e-12)
