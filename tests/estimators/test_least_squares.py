"""Least squares as the budget grows, and where there is nothing to learn."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from tacit.linear_model import LinearRegression

Array = npt.NDArray[np.float64]
N, D = 4000, 6


def table(signal: float, seed: int = 0) -> tuple[Array, Array]:
    """Return rows of norm at most 1 and skewed labels in [-1, 1]."""
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((N, D))
    rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1.0)
    noise = 0.2 * (rng.exponential(size=N) - 1.0)
    return rows, np.clip(rows @ np.full(D, signal) + noise, -1.0, 1.0)


def squared(epsilon: float, rows: Array, labels: Array) -> float:
    model = LinearRegression(epsilon, 1e-6, row_norm=1.0, label_range=(-1.0, 1.0))
    return float(np.mean((model.fit(rows, labels).predict(rows) - labels) ** 2))


def test_a_large_budget_gives_least_squares() -> None:
    rows, labels = table(0.3)
    least = squared(np.inf, rows, labels)
    assert np.mean([squared(100.0, rows, labels) for _ in range(3)]) < 1.001 * least
    # the knot of a small budget, kept, would not: residuals are skewed
    assert squared(1.0, rows, labels) < 1.05 * least


@pytest.mark.parametrize("epsilon", [0.02, 0.1, 1.0])
def test_nothing_to_learn_costs_little(epsilon: float) -> None:
    rows, labels = table(0.0)
    errors = [squared(epsilon, rows, labels) for _ in range(20)]
    assert np.mean(errors) < 1.25 * float(np.var(labels))
