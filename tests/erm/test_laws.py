"""Laws of weights, beside the mechanisms they describe."""

from __future__ import annotations

import numpy as np
import pytest

from tacit.erm import Objective, Problem
from tacit.erm.laws import DescentLaw, MomentLaw, TiltLaw
from tacit.erm.losses import SquaredLoss
from tacit.erm.noisy_gradient import _descend
from tacit.queries.second_moment import pack, unpack
from tacit.records import Bounds

OBJECTIVE = Objective(SquaredLoss(), Bounds())
CURVATURE = np.array([40.0, 3.0, 0.2])


@pytest.mark.parametrize("n_steps", [1, 7, 60])
def test_a_descent_does_what_its_law_says(n_steps: int) -> None:
    ridge, step, std = 2.0, 1 / 50, 0.7
    law = DescentLaw(OBJECTIVE, 1.0, None, ridge, std, n_steps, step)
    problem, target = Problem(OBJECTIVE, 3), np.array([1.0, -2.0, 0.5])

    def end(noise: np.ndarray) -> np.ndarray:
        steps = iter(noise)
        slope = lambda w: CURVATURE * (w - target) + ridge * w + next(steps)  # noqa: E731
        return _descend(slope, problem, n_steps, step)

    quiet = np.zeros((n_steps, 3))
    np.testing.assert_allclose(end(quiet), law.share(CURVATURE) * target, rtol=1e-10)
    effects = np.array([end(quiet + np.eye(n_steps)[t][:, None]) for t in range(n_steps)])
    variance = std**2 * np.sum((effects - end(quiet)) ** 2, axis=0)
    # as if the gradient had had this noise: w = P(h) (h w0 + e)
    expected = variance / (law.share(CURVATURE) / CURVATURE) ** 2
    np.testing.assert_allclose(np.diag(law.noise(CURVATURE, target)), expected, rtol=1e-9)


def test_a_tilt() -> None:
    law = TiltLaw(OBJECTIVE, 1.0, None, 2.0, 3.0, 0.1)
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
