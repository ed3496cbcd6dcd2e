"""Budgets: asked before a record is read, spent whatever comes after, planned without data."""

from __future__ import annotations

import math
from typing import Any

import pytest
from sklearn.base import clone

from tacit.erm import CannotSolve, NotCertified
from tacit.linear_model import (
    LinearRegression,
    LogisticRegression,
)
from tacit.privacy import Accountant, Budget, BudgetExceeded
from tests.estimators.helpers import (
    LABELS,
    RANGE,
    Exploding,
    X,
    Y,
)


def test_shared_accountant_refuses_before_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    from tacit.records import MemoryRecords

    accountant = Accountant(Budget(1.0, 1e-6))
    first = LogisticRegression(0.7, 1e-6, row_norm=3.0, accountant=accountant).fit(X, LABELS)
    assert accountant.spent() == pytest.approx(0.7, rel=1e-3)

    def explode(*args: Any, **kwargs: Any) -> Any:
        raise AssertionError("records were read")

    monkeypatch.setattr(MemoryRecords, "sum", explode)
    monkeypatch.setattr(MemoryRecords, "clip_factors", explode)
    with pytest.raises(BudgetExceeded, match="Nothing was released"):
        clone(first).fit(X, LABELS)
    with pytest.raises(BudgetExceeded):
        LogisticRegression(math.inf, accountant=accountant).fit(X, LABELS)

    class Wide(Exploding):
        shape = (400, 4)  # type: ignore[assignment]

    with pytest.raises(BudgetExceeded):
        clone(first).fit(Wide(), LABELS)
    assert len(accountant.events) == 1


def test_clones_share_one_budget() -> None:
    accountant = Accountant(Budget(1.0, 1e-5))
    assert clone(LogisticRegression(accountant=accountant)).accountant is accountant


def test_a_failed_minimisation_leaves_the_budget_spent(monkeypatch: pytest.MonkeyPatch) -> None:
    import tacit.erm.solvers as module

    monkeypatch.setattr(module, "_MAX_STEPS", 0)
    accountant = Accountant(Budget(1.0, 1e-5))
    model = LogisticRegression(0.5, 1e-6, row_norm=3.0, accountant=accountant)
    with pytest.raises(NotCertified, match="Nothing was released"):
        model.fit(X, LABELS)
    assert len(accountant.events) == 1
    assert not hasattr(model, "coef_")


@pytest.mark.parametrize("no_accountant", [Budget(1.0, 1e-5), "survey.ledger", 1.0])
def test_what_keeps_no_budget_is_refused(no_accountant: object) -> None:
    model = LogisticRegression(0.5, 1e-6, row_norm=3.0, accountant=no_accountant)
    with pytest.raises(TypeError, match=r"accountant must keep a budget, got a .* pass"):
        model.fit(X, LABELS)


def test_plan_needs_no_data() -> None:
    model = LogisticRegression(0.5, 1e-6, classes=[0, 1])
    plan = model.plan(n_features=30, n_records=10_000)
    assert plan.mechanism.name == "objective_perturbation"
    assert "also considered" in str(plan)
    assert plan.event == model.plan(30).event
    assert plan.excess_risk > model.plan(30, 100_000).excess_risk
    with pytest.raises(ValueError, match="declare them"):
        LogisticRegression(classes="infer").plan(3)
    with pytest.raises(ValueError, match="declare label_range"):
        LinearRegression(label_range="infer").plan(3)
    with pytest.raises(ValueError, match="infinite"):
        LogisticRegression(math.inf, classes=[0, 1]).plan(3)
    under = LinearRegression(relation="replace", n_records=5000, label_range=RANGE)
    assert under.plan(3).mechanism.name == "noisy_gradient"
    better = LogisticRegression(5.0, 1e-6, classes=[0, 1]).plan(30, 10_000)
    assert better.excess_risk < plan.excess_risk
    fitted = model.set_params(row_norm=3.0).fit(X, LABELS.astype(int))
    assert fitted.plan_.event == fitted.privacy_.event


def test_mechanisms_say_when_they_do_not_apply() -> None:
    with pytest.raises(CannotSolve, match="delta"):
        LogisticRegression(1.0, 0.0, mechanism="noisy_gradient").fit(X, LABELS)
    with pytest.raises(CannotSolve, match="SquaredLoss"):
        LogisticRegression(mechanism="sufficient_statistics").fit(X, LABELS)
    with pytest.raises(CannotSolve, match="too weak"):
        LogisticRegression(0.01, regularization=1e-3, mechanism="objective_perturbation").fit(
            X, LABELS
        )
    with pytest.raises(CannotSolve, match="no mechanism applies"):
        LinearRegression(1.0, 0.0, label_range=RANGE, regularization=0.0).fit(X, Y)
    with pytest.raises(ValueError, match="unknown"):
        LogisticRegression(mechanism="magic").fit(X, LABELS)
