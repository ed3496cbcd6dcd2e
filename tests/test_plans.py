"""Every estimator plans without data, and the same question is worked out once."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import tacit.erm.minimization as planner
from tacit.kernel import KernelLogisticRegression
from tacit.linear_model import LogisticRegression
from tacit.location import GeometricMedian, Mean, Median
from tacit.preprocessing import PrivateStandardScaler
from tacit.privacy import Accountant, Budget
from tacit.schema import ClassTarget, Number, Schema
from tacit.table_model import TableModel

ROWS = np.random.default_rng(0).uniform(-1, 1, (50, 3))
LOCATIONS = [
    Mean(1.0, 1e-6),
    Mean(1.0, 0.0),
    Mean(1.0, 1e-6, n_records=50),
    Mean(1.0, 1e-6, relation="replace", n_records=50),
    Median(1.0),
    Median(1.0, 1e-6),
    Median(1.0, inference=0.2),
    Median(1.0, 1e-6, relation="replace", inference=0.2),
    GeometricMedian(1.0, 1e-6),
]


@pytest.mark.parametrize("estimator", LOCATIONS, ids=str)
def test_a_location_costs_what_its_plan_says(estimator: Any) -> None:
    accountant = Accountant(Budget(5.0, 1e-3, estimator.plan(3).budget.relation))
    plan = estimator.set_params(accountant=accountant).plan(3)
    fitted = estimator.fit(ROWS)
    assert accountant.events == (plan.event,)
    assert fitted.privacy_.event == plan.event
    assert str(plan).startswith(f"{plan.name}: ")


@pytest.mark.parametrize("estimator", [Mean(math.inf), Median(math.inf), GeometricMedian(math.inf)])
def test_without_noise_there_is_a_plan_that_says_so(estimator: Any) -> None:
    plan = estimator.plan(3)
    assert "no noise" in plan.reason
    assert plan.event.reasons_void() == ("the budget is infinite",)


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Return a list that grows by one for every plan that is worked out."""
    planner._remembered.cache_clear()
    calls: list[Any] = []
    plan = planner.MECHANISMS["objective_perturbation"].plan

    class Counting:
        name = "objective_perturbation"

        def plan(self, problem: Any, budget: Any) -> Any:
            calls.append(problem)
            return plan(problem, budget)

    monkeypatch.setitem(planner.MECHANISMS, "objective_perturbation", Counting())
    yield calls  # type: ignore[misc]
    planner._remembered.cache_clear()


def test_a_plan_is_worked_out_once(counted: list[Any]) -> None:
    model = LogisticRegression(1.0, 1e-6, classes=[0, 1])
    first = model.plan(3)
    assert model.plan(3) is first
    model.fit(ROWS, np.arange(50) % 2)
    # the same, with the risk of which the fit's releases speak
    assert model.plan_ is not None
    assert replace(model.plan_, excess_risk=first.excess_risk) == first
    assert len(counted) == 1
    model.plan(4)
    assert len(counted) == 2


def test_a_table_model_plans_once(counted: list[Any]) -> None:
    schema = Schema((Number("a", 0, 1),), ClassTarget("y", ("0", "1")))
    model = TableModel(schema, LogisticRegression(1.0, 1e-6))
    plan = model.plan()
    model.fit({"a": [0.1, 0.9] * 25, "y": ["0", "1"] * 25})
    assert model.plan_ is not None
    assert replace(model.plan_, excess_risk=plan.excess_risk) == plan
    assert len(counted) == 1


def test_a_mechanism_that_cannot_be_remembered_is_planned_anew() -> None:
    from tacit.erm import Objective, Problem, PublicCandidates, choose_plan
    from tacit.erm.losses import LogisticLoss
    from tacit.records import Bounds

    candidates = PublicCandidates(np.array([[0.0], [1.0]]))
    problem = Problem(Objective(LogisticLoss(), Bounds(), 1.0), 1)
    assert choose_plan(problem, Budget(1.0), candidates).mechanism is candidates


@pytest.mark.parametrize("seed", [None, 0])
def test_without_noise_a_seed_changes_nothing(seed: int | None) -> None:
    model = LogisticRegression(math.inf, classes=[0, 1], random_state=seed)
    assert model.fit(ROWS, np.arange(50) % 2).privacy_.voided_by == ("the budget is infinite",)
    assert Mean(math.inf, random_state=seed).fit(ROWS).privacy_.voided_by


PLANNERS = [
    LogisticRegression(classes=[0, 1], row_norm=1.0),
    Mean(1.0, 1e-6),
    Median(1.0),
    GeometricMedian(1.0, 1e-6),
    PrivateStandardScaler(bounds=(0, 1)),
    KernelLogisticRegression(classes=[0, 1], row_norm=1.0),
]


@pytest.mark.parametrize("estimator", PLANNERS, ids=lambda each: type(each).__name__)
@pytest.mark.parametrize(
    ("asked", "why"),
    [
        (("3",), "n_features must be a whole number, got '3'; pass the number of columns"),
        ((2.5,), "n_features must be a whole number"),
        ((-1,), "n_features must be at least 1"),
        ((3, "many"), "n_records must be a whole number, got 'many'; pass about how many rows"),
        ((3, -5), "n_records must be at least 0"),
    ],
    ids=repr,
)
def test_what_is_no_number_of_columns_or_rows_is_refused(
    estimator: Any, asked: tuple[Any, ...], why: str
) -> None:
    with pytest.raises((TypeError, ValueError), match=why):
        estimator.plan(*asked)
