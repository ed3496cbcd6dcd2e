"""Standard errors from a noisy Hessian: as wide as noise makes them, not as wide as draws do."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import chdtrc

from tacit.erm import Objective
from tacit.erm.inference import WITHIN, Noisy, errors_of
from tacit.erm.losses import LogisticLoss
from tacit.erm.plan import PerturbedMinimizerLaw
from tacit.records import Bounds

OBJECTIVE = Objective(LogisticLoss(), Bounds())
SIZE, RIDGE, STD = 2000.0, 40.0, 25.0


def symmetric(rng: np.random.Generator, d: int) -> np.ndarray:
    upper = np.triu(rng.standard_normal((d, d)), 1) / math.sqrt(2)
    result: np.ndarray = upper + upper.T + np.diag(rng.standard_normal(d))
    return result


def held(
    curvature: np.ndarray, std: float, tables: int, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Return which intervals hold the truth, and their width over that with the Hessian known."""
    rng, d = np.random.default_rng(seed), curvature.size
    inside, widths = [], []
    for _ in range(tables):
        axes = np.linalg.qr(rng.standard_normal((d, d)))[0]
        hessian, truth = (axes * curvature) @ axes.T, rng.standard_normal(d) / 2
        gradient = axes @ (np.sqrt(curvature + STD**2) * rng.standard_normal(d))
        weights = np.linalg.solve(hessian + RIDGE * np.eye(d), hessian @ truth + gradient)
        law = PerturbedMinimizerLaw(OBJECTIVE, 1.0, None, RIDGE, STD)
        found = errors_of(weights, law, Noisy(hessian + std * symmetric(rng, d), std), None)
        known = np.sqrt(np.sum((axes / curvature) ** 2 * (curvature + STD**2), axis=1))
        inside.append(np.abs(found.estimates - truth) <= WITHIN * found.standard_errors)
        widths.append(found.standard_errors / known)
    return np.array(inside), np.array(widths)


# Eigenvalues in units of SIZE, and how much wider than with the Hessian known is not too wide.
KNOWN = [([1.0], 0.2, 1.2), ([1.0] * 6, 0.2, 1.25), ([0.4, 0.6, 0.8, 0.9, 1.1, 1.9], 0.12, 1.25)]


@pytest.mark.slow
@pytest.mark.parametrize(("eigenvalues", "noise", "most"), KNOWN)
def test_noise_below_the_hessian_costs_little(
    eigenvalues: list[float], noise: float, most: float
) -> None:
    """Noise drives eigenvalues apart, once in the release and once more in draws around it."""
    inside, widths = held(SIZE * np.array(eigenvalues), noise * SIZE, 300 // len(eigenvalues))
    assert 0.93 < inside.mean() < 0.98
    assert 0.9 < np.median(widths) < most


UNKNOWN = [([0.05, 1.0, 1.0, 1.0], 0.2), ([0.02, 0.1, 0.5, 1.0], 0.1), ([1.0] * 4, 2.0)]


@pytest.mark.slow
@pytest.mark.parametrize(("eigenvalues", "noise"), UNKNOWN)
def test_a_hessian_below_its_noise_says_nothing(eigenvalues: list[float], noise: float) -> None:
    inside, widths = held(SIZE * np.array(eigenvalues), noise * SIZE, 60)
    assert inside.mean() > 0.95
    assert np.median(widths) > 5.0


JOINT = [([1.0] * 4, 0.0), ([0.4, 0.8, 1.0, 1.9], 0.12), ([0.05, 1.0, 1.0, 1.0], 0.2)]


@pytest.mark.slow
@pytest.mark.parametrize(("eigenvalues", "noise"), JOINT)
def test_the_ellipsoid_of_the_covariance_holds_the_truth(
    eigenvalues: list[float], noise: float
) -> None:
    """95 of 100 joint regions hold all coefficients, or more if the Hessian is below its noise."""
    rng, curvature = np.random.default_rng(1), SIZE * np.array(eigenvalues)
    d, std, inside = curvature.size, noise * SIZE, []
    for _ in range(200):
        axes = np.linalg.qr(rng.standard_normal((d, d)))[0]
        hessian, truth = (axes * curvature) @ axes.T, rng.standard_normal(d) / 2
        gradient = axes @ (np.sqrt(curvature + STD**2) * rng.standard_normal(d))
        weights = np.linalg.solve(hessian + RIDGE * np.eye(d), hessian @ truth + gradient)
        law = PerturbedMinimizerLaw(OBJECTIVE, 1.0, None, RIDGE, STD)
        found = errors_of(weights, law, Noisy(hessian + std * symmetric(rng, d), std), None)
        assert found.covariance is not None
        away = found.estimates - truth
        inside.append(chdtrc(d, away @ np.linalg.solve(found.covariance, away)) > 0.05)
    assert np.mean(inside) > 0.90  # 95 % but for one run in a thousand; this one is seeded
