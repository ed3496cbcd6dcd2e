"""Laws of weights, beside the mechanisms they describe."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tacit.erm import Objective, Problem
from tacit.erm.losses import SquaredLoss
from tacit.erm.mechanisms.noisy_gradient import DescentSchedule, _descend
from tacit.erm.plan import DescentLaw, MomentLaw, PerturbedMinimizerLaw
from tacit.queries import GaussianNoise, Gradient, NoisySum, Session
from tacit.queries.moments import pack, unpack
from tacit.records import Bounds

OBJECTIVE = Objective(SquaredLoss(), Bounds())
CURVATURE = np.array([40.0, 3.0, 0.2])


TARGET = np.array([1.0, -2.0, 0.5])


class Answers(Session):
    """Answers every step with the gradient of a parabola and the next of given noises."""

    def __init__(self, noise: np.ndarray) -> None:
        self.steps = iter(noise)

    def ask(self, query: Any, slot: str, **_: Any) -> Any:
        assert isinstance(query, NoisySum)
        assert isinstance(query.statistic, Gradient)
        assert slot == "steps"
        return CURVATURE * (query.statistic.weights - TARGET) + next(self.steps)


@pytest.mark.parametrize("n_steps", [1, 7, 60])
def test_a_descent_does_what_its_law_says(n_steps: int) -> None:
    ridge, step, std = 2.0, 1 / 50, 0.7
    law = DescentLaw(OBJECTIVE, 1.0, None, ridge, std, n_steps, step)
    problem = Problem(OBJECTIVE, 3)
    schedule = DescentSchedule(problem, 100.0, n_steps, 1.0, ridge, std, 50.0, OBJECTIVE)
    assert vars(schedule.law(std, step)) == vars(law)

    def end(noise: np.ndarray) -> np.ndarray:
        return _descend(schedule, Answers(noise), "steps", GaussianNoise(std), problem, step)

    quiet = np.zeros((n_steps, 3))
    np.testing.assert_allclose(end(quiet), law.share(CURVATURE) * TARGET, rtol=1e-10)
    effects = np.array([end(quiet + np.eye(n_steps)[t][:, None]) for t in range(n_steps)])
    variance = std**2 * np.sum((effects - end(quiet)) ** 2, axis=0)
    # as if the gradient had had this noise: w = P(h) (h w0 + e)
    expected = variance / (law.share(CURVATURE) / CURVATURE) ** 2
    np.testing.assert_allclose(np.diag(law.noise(CURVATURE, TARGET)), expected, rtol=1e-9)


def test_a_tilt() -> None:
    law = PerturbedMinimizerLaw(OBJECTIVE, 1.0, None, 2.0, 3.0, 0.1)
    np.testing.assert_allclose(law.share(CURVATURE), CURVATURE / (CURVATURE + 2))
    noise = np.diag(law.noise(CURVATURE, np.zeros(3)))
    np.testing.assert_allclose(noise, 9 + 0.01 * (CURVATURE + 2) ** 2)


@pytest.mark.slow
def test_moments_times_weights() -> None:
    """N w has covariance t^2 (||w||^2 I + w w') / 2 for packed noise of standard deviation t."""
    w, t, rng = np.array([2.0, -1.0, 0.5]), 1.5, np.random.default_rng(0)
    drawn = np.array([unpack(t * rng.standard_normal(6), 3) @ w for _ in range(40_000)])
    law = MomentLaw(OBJECTIVE, 1.0, np.eye(3), 0.0, 0.0, t)
    np.testing.assert_allclose(np.cov(drawn.T), law.noise(np.ones(3), w), atol=0.25)


def test_packing_keeps_the_norm() -> None:
    matrix = np.array([[1.0, 2.0], [2.0, -3.0]])
    assert np.linalg.norm(pack(matrix)) == pytest.approx(np.linalg.norm(matrix))
    np.testing.assert_allclose(unpack(pack(matrix), 2), matrix)
