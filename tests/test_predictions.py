"""What a plan predicts is of the right size, for tables as a schema encodes them and others."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.metrics import log_loss

from tacit.erm import NoisyGradient, Objective, Problem
from tacit.erm.losses import AnyLoss, DistanceLoss, SquaredDistanceLoss
from tacit.linear_model import LogisticRegression
from tacit.privacy import Budget
from tacit.records import Bounds

N, D = 5000, 5


@pytest.mark.parametrize("is_box", [True, False], ids=["in a box", "around zero"])
@pytest.mark.parametrize("mechanism", ["objective_perturbation", "noisy_gradient"])
def test_the_predicted_loss_is_of_the_right_size(is_box: bool, mechanism: str) -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 1, (N, D)) if is_box else rng.standard_normal((N, D))
    weights = rng.standard_normal(D)
    y = (X - X.mean(axis=0)) @ weights + rng.logistic(size=N) > 0
    shared = {"row_norm": math.sqrt(D), "mechanism": mechanism}

    def loss(model: LogisticRegression) -> float:
        return float(log_loss(y, model.fit(X, y).predict_proba(X)))

    private = LogisticRegression(1.0, 1e-6, classes=[False, True], **shared)
    predicted = private.plan(D, N).excess_risk
    lost = np.mean([loss(private) for _ in range(5)]) - loss(LogisticRegression(math.inf, **shared))
    assert 1 / 30 < lost / predicted < 10


def test_how_many_records_are_expected_decides_nothing() -> None:
    """A plan for a known number of records names what a fit will run, with the same settings."""
    model = LogisticRegression(1.0, 1e-6, row_norm=1.0, classes=[False, True])
    usual, expected = model.plan(D), model.plan(D, 100)
    assert expected.mechanism == usual.mechanism
    assert expected.settings == usual.settings
    assert expected.event == usual.event
    assert expected.excess_risk > usual.excess_risk


@pytest.mark.parametrize("n_records", [10, 10**3, 10**5])
def test_no_more_is_lost_than_there_is_to_explain(n_records: int) -> None:
    model = LogisticRegression(0.01, 1e-6, row_norm=1.0, classes=[False, True])
    plan = model.plan(D, n_records)
    assert plan.excess_risk < math.log(2)


@pytest.mark.parametrize("dimension", [1, 20])
def test_noise_on_a_sum_of_points_loses_what_is_predicted(dimension: int) -> None:
    """A mean off by b / n loses ||b||^2 / (2 n^2), in however many dimensions."""
    points = np.random.default_rng(0).uniform(-0.1, 0.1, (N, dimension))
    noise, mean = np.ones(dimension), points.mean(axis=0)
    loss = SquaredDistanceLoss()
    lost = np.mean(loss.value(mean + noise / N, points) - loss.value(mean, points))
    problem = Problem(Objective(loss, Bounds(n_records=N)), dimension)
    assert problem.risk_of_noise(dimension, 0.0) == pytest.approx(lost, 1e-4)


@pytest.mark.parametrize(("loss", "power"), [(SquaredDistanceLoss(), 2), (DistanceLoss(), 1)])
def test_points_in_other_units_lose_as_much(loss: AnyLoss, power: int) -> None:
    def risk(row_norm: float) -> float:
        problem = Problem(Objective(loss, Bounds(row_norm=row_norm, n_records=N)), D)
        return NoisyGradient(n_steps=100).plan(problem, Budget(1.0, 1e-6)).excess_risk

    assert risk(100.0) == pytest.approx(100.0**power * risk(1.0))
