"""What shipped wrong elsewhere."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from tacit.linear_model import (
    LinearRegression,
    LogisticRegression,
)
from tests.estimators.helpers import (
    LABELS,
    NORM,
    RANGE,
    X,
    Y,
)


def test_labels_beyond_their_range_are_clipped_at_both_ends() -> None:
    # an upper bound ignored, or a lower bound used twice, would show here
    wild = Y.copy()
    wild[0], wild[1] = 1e9, -1e9
    tame = np.clip(wild, -4.0, 4.0)
    for intercept in (True, False):
        quiet = LinearRegression(
            math.inf, row_norm=NORM, label_range=(-4.0, 4.0), fit_intercept=intercept
        )
        np.testing.assert_allclose(
            clone(quiet).fit(X, wild).coef_, clone(quiet).fit(X, tame).coef_, atol=1e-8
        )


def test_features_are_clipped_without_an_intercept_too() -> None:
    outlier = np.vstack([X, 1e6 * np.ones((1, 4))])
    quiet = LinearRegression(math.inf, row_norm=3.0, fit_intercept=False, label_range=RANGE)
    a = clone(quiet).fit(X, Y).coef_
    b = clone(quiet).fit(outlier, np.append(Y, 50.0)).coef_
    assert np.linalg.norm(a - b) < 1.0


def test_moments_are_never_released_exactly() -> None:
    # bounds (0, 10) once gave a sensitivity of 0
    rows = np.abs(X)
    fits = [
        LinearRegression(
            1.0, 1e-5, row_norm=10.0, label_range=(0, 10), mechanism="sufficient_statistics"
        )
        .fit(rows, np.abs(Y))
        .coef_
        for _ in range(3)
    ]
    assert not np.allclose(fits[0], fits[1])
    assert not np.allclose(fits[1], fits[2])


def test_more_budget_gives_a_better_fit() -> None:
    # "epsilon changes nothing" is a bug elsewhere: the error must fall as epsilon grows
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((5000, 5))
    labels = rows @ [1, -1, 1, -1, 0.5] > 0
    errors = []
    for epsilon in (0.05, 0.5, 5.0):
        scores = [
            LogisticRegression(epsilon, 1e-6, row_norm=3.0).fit(rows, labels).score(rows, labels)
            for _ in range(6)
        ]
        errors.append(1 - np.mean(scores))
    assert errors[0] > errors[1] > errors[2]
    assert errors[2] < 0.03


def test_null_columns_cost_no_accuracy() -> None:
    # the rank bound: padding with zero columns must not change the risk
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((4000, 3))
    labels = rows[:, 0] > 0
    padded = np.hstack([rows, np.zeros((4000, 200))])
    options: Any = {"row_norm": 3.0, "mechanism": "noisy_gradient", "n_records": 4000}

    def error(table: Any) -> float:
        fits = [LogisticRegression(0.5, 1e-6, **options).fit(table, labels) for _ in range(8)]
        return float(np.mean([1 - model.score(table, labels) for model in fits]))

    assert error(padded) < error(rows) + 0.02


def test_noise_is_fresh_and_never_from_a_weak_seed() -> None:
    weights = {float(LogisticRegression(1.0).fit(X, LABELS).coef_[0, 0]) for _ in range(20)}
    assert len(weights) == 20


def test_verbose_prints_the_plan_and_the_promise(capsys: pytest.CaptureFixture[str]) -> None:
    LogisticRegression(1.0, row_norm=3.0, verbose=1).fit(X, LABELS)
    shown = capsys.readouterr().err
    assert "objective_perturbation" in shown
    assert "differentially private" in shown


@pytest.mark.parametrize("mechanism", ["noisy_gradient", "sufficient_statistics"])
def test_a_release_that_is_not_the_planned_one_is_withheld(
    mechanism: str, monkeypatch: pytest.MonkeyPatch
) -> None:

    import tacit.queries.noise as home

    module: Any = home

    honest = module.gaussian
    monkeypatch.setattr(module, "gaussian", lambda b, z, source: honest(b, 0.9 * z, source))
    model = LinearRegression(1.0, 1e-5, row_norm=3.0, label_range=RANGE, mechanism=mechanism)
    with pytest.raises(RuntimeError, match="withheld"):
        model.fit(X, Y)
    assert not hasattr(model, "coef_")
