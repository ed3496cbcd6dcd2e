"""What a plan predicts is of the right size, for tables as a schema encodes them and others."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.metrics import log_loss

import tacit.erm.plan as plan_module
from tacit.erm.plan import HARDER_THAN_IDEAL
from tacit.erm.planner import _remembered
from tacit.linear_model import LogisticRegression

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
    assert 1 / 100 < lost / predicted < 40


def test_all_mechanisms_are_scaled_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else which one is chosen would depend on how pessimistic a prediction is."""

    def risks() -> list[float]:
        model = LogisticRegression(1.0, 1e-6, classes=[False, True])
        names = ("objective_perturbation", "noisy_gradient", "output_perturbation")
        return [model.set_params(mechanism=name).plan(D, N).excess_risk for name in names]

    usual = risks()
    monkeypatch.setattr(plan_module, "HARDER_THAN_IDEAL", 1.0)
    _remembered.cache_clear()
    assert usual == pytest.approx([HARDER_THAN_IDEAL * risk for risk in risks()])
