"""What a fit says that it lost, beside what it lost."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tacit.erm import Objective
from tacit.erm.inference.estimator_law import PerturbedMinimizerLaw
from tacit.erm.inference.shrinkage import _spread, expected_risk
from tacit.erm.losses import LogCoshLoss, LogisticLoss
from tacit.erm.planning.plan import TYPICAL_SPECTRUM
from tacit.linear_model import LinearRegression, LogisticRegression
from tacit.records import Bounds

P, N, RIDGE, STD = 50, 10_000.0, 30.0, 8.0  # a score has no more than fifty directions
TRACE = 40.0 * P


def law() -> PerturbedMinimizerLaw:
    return PerturbedMinimizerLaw(Objective(LogisticLoss(), Bounds()), 1.0, None, RIDGE, STD, 0.0)


@pytest.mark.parametrize("signal", [1.0, 3.0])
@pytest.mark.parametrize("kept", [0.0, 0.5, 1.0])
def test_it_is_what_noise_and_ridge_do(signal: float, kept: float) -> None:
    """Weights drawn from their law around a truth that explains equally much in all directions."""
    rng = np.random.default_rng(0)
    h = np.repeat(TRACE / P * TYPICAL_SPECTRUM, P // 10)
    told, happened = [], []
    for _ in range(200):
        truth = signal / np.sqrt(h)
        w = (h * truth + STD * rng.standard_normal(P)) / (h + RIDGE)
        told.append(expected_risk(law(), float(np.sum(w**2)), P, TRACE, kept, N))
        happened.append(float(np.sum(h * (kept * w - truth) ** 2)) / 2 / N)
    assert np.mean(told) == pytest.approx(np.mean(happened), rel=0.2)


def test_what_noise_may_hide_is_the_least() -> None:
    nothing = expected_risk(law(), 0.0, P, TRACE, 0.0, N)
    assert nothing > 0.0
    assert nothing == expected_risk(law(), 1e-9, P, TRACE, 0.0, N)
    assert nothing < expected_risk(law(), 0.0, P, TRACE, 1.0, N)


def test_no_more_is_explained_than_there_is() -> None:
    assert expected_risk(law(), 1e12, P, TRACE, 0.0, N) == pytest.approx(math.log(2))


@pytest.mark.parametrize("mean", [1e-9, 0.02, 1.0, 30.0, 99.0, 1e3])
def test_what_is_left_is_spread_with_its_mean(mean: float) -> None:
    numbers = _spread(mean, 0.01, 100.0, 40)
    assert np.all((numbers >= 0.01 * (1 - 1e-9)) & (numbers <= 100.0 * (1 + 1e-9)))
    assert float(numbers.mean()) == pytest.approx(min(max(mean, 0.01), 100.0), rel=1e-6)
    assert _spread(mean, 200.0, 100.0, 3).max() <= 100.0


def table(slack: float, is_class: bool, n: int) -> tuple[Any, Any, Any, Any]:
    """Rows ``slack`` times shorter than they may be, half as long in each direction in turn."""
    rng = np.random.default_rng(1)
    rows = rng.standard_normal((n, 8)) * np.geomspace(1.0, 0.1, 8) / 2
    rows /= np.maximum(1.0, np.linalg.norm(rows, axis=1))[:, None]
    scores = rows @ np.geomspace(0.3, 3.0, 8)
    if is_class:
        return slack * 1.0, rows, rng.uniform(size=n) < 1 / (1 + np.exp(-2 * scores)), rng
    return slack * 1.0, rows, np.clip(0.3 * scores + 0.2 * rng.standard_normal(n), -1, 1), rng


@pytest.mark.parametrize("is_class", [False, True])
@pytest.mark.parametrize("slack", [1.0, 3.0])
@pytest.mark.parametrize("n", [1_000, 20_000])
def test_a_fit_tells_what_it_lost(is_class: bool, slack: float, n: int) -> None:
    """Within a factor of four on tables that a plan knows nothing of; five seeded fits."""
    norm, rows, labels, _ = table(slack, is_class, n)
    facts: dict[str, Any] = {"classes": [False, True]} if is_class else {"label_range": (-1, 1)}
    kind = LogisticRegression if is_class else LinearRegression

    def loss(model: Any) -> float:
        scores = rows @ np.ravel(model.coef_) + model.intercept_
        if is_class:
            return float(np.mean(np.logaddexp(0.0, np.where(labels, -scores, scores))))
        return float(np.mean((scores - labels) ** 2)) / 2

    least = loss(kind(np.inf, row_norm=norm, **facts).fit(rows, labels))
    lost, told = [], []
    for seed in range(5):
        model = kind(0.5, 1e-6, row_norm=norm, random_state=seed, **facts).fit(rows, labels)
        lost.append(loss(model) - least)
        told.append(model.plan_.excess_risk)
    assert 0.25 < np.mean(told) / np.mean(lost) < 4.0


def test_bounded_slopes_are_counted_for_numbers() -> None:
    bounds = Bounds(label_range=(-1.0, 1.0))
    still = PerturbedMinimizerLaw(Objective(LogCoshLoss(0.25), bounds), 1.0, None, 1e-9, 1e-9, 0.0)
    few = expected_risk(still, 1e-6, 10, 1e6, 1.0, 1_000)
    assert few > 0.0
    assert expected_risk(still, 1e-6, 10, 1e6, 1.0, 10_000) == pytest.approx(few / 10, rel=1e-3)
