"""A budget (e, d) takes one fit of (e, d), two of (e/2, d/2), and 0.3 e + 0.7 e, of any model.

Fits are planned, not made: what is charged follows from the plan. Models and mechanisms come from
the registry, so that a new one is tried without a line here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from sklearn.dummy import DummyClassifier, DummyRegressor

from tacit.erm import L2Ball
from tacit.erm.mechanisms.exponential import (
    ExponentialInABall,
    PublicCandidates,
)
from tacit.erm.minimization import KINDS, MECHANISMS
from tacit.erm.plan import CannotSolve
from tacit.linear_model import LogisticRegression
from tacit.metrics.evaluate import plan_for
from tacit.pate import PATEClassifier, PATERegressor
from tacit.pipeline import PrivatePipeline
from tacit.preprocessing import (
    PrivateMissing,
    PrivatePCA,
    PrivateQuantileBounds,
    PrivateStandardScaler,
    PrivateVocabulary,
)
from tacit.privacy import Accountant, Budget, BudgetExceeded, Guarantee
from tacit.privacy.accountant import planning_budget
from tacit.registry import MODELS, Example, ModelSpec
from tacit.tuning import DisjointSearch, PrivateSearch

BUDGET = Budget(1.0, 1e-6)
SPLITS = ((1.0,), (0.5, 0.5), (0.3, 0.7))
N_RECORDS = 20_000

# From a budget and who pays for it to a plan, which has an event and the budget it is charged at.
Planner = Callable[[Budget, Accountant], Any]


def check_adds_up(
    plan: Planner, budget: Budget = BUDGET, delta: float | None = None, *, always: bool = True
) -> int:
    """Charge plans that add up to a budget, and return how many were charged.

    A plan must exist, or, unless ``always``, may not exist for some budgets.
    """
    delta, n_charged = budget.delta if delta is None else delta, 0
    for shares in SPLITS:
        accountant = Accountant(budget)
        for share in shares:
            try:
                planned = plan(Budget(share * budget.epsilon, share * delta), accountant)
            except CannotSolve:
                if always:
                    raise
                continue
            n_charged += 1
            accountant.charge(planned.event, planned.budget.delta)
            asked = planned.budget.target_delta
            assert asked == pytest.approx(share * delta)
            assert Guarantee(planned.event, asked).within(planned.budget.epsilon, asked)
        assert accountant.spent() <= budget.epsilon * (1 + 1e-9)
    return n_charged


def planned(spec: ModelSpec, example: Example, mechanism: Any) -> Planner:
    """Return the planner of a model with the public facts of an example."""
    known = {**example.parameters, "n_records": N_RECORDS}
    possible = spec.model().get_params()
    if mechanism is not None:
        known["mechanism"] = mechanism

    def plan(budget: Budget, accountant: Accountant) -> Any:
        told = {name: value for name, value in known.items() if name in possible}
        model = spec.model(**told)
        model.set_params(epsilon=budget.epsilon, delta=budget.delta, accountant=accountant)
        return model.plan(example.rows.shape[1])

    return plan


CENTRAL = [spec for spec in MODELS if "accountant" in spec.model().get_params()]


def cases() -> Iterator[Any]:
    """Yield every model with each of its examples and each mechanism that has a name."""
    for spec in CENTRAL:
        takes = "mechanism" in spec.model().get_params()
        for example in spec.examples():
            for mechanism in [None, *MECHANISMS] if takes else [None]:
                words = (spec.word, example.name, mechanism or "default")
                yield pytest.param(spec, example, mechanism, id="-".join(words))


@pytest.mark.parametrize(("spec", "example", "mechanism"), list(cases()))
def test_fits_of_every_model_add_up(
    spec: ModelSpec, example: Example, mechanism: str | None
) -> None:
    # A named mechanism may not apply, and few are pure. The default has a plan for any delta.
    plan = planned(spec, example, mechanism)
    check_adds_up(plan, always=mechanism is None)
    check_adds_up(plan, delta=0.0, always=False)


@pytest.mark.parametrize("budget", [Budget(0.3, 1e-9), Budget(8.0, 1e-5)], ids=str)
@pytest.mark.parametrize("spec", CENTRAL, ids=lambda spec: spec.word)
def test_default_fits_add_up_in_other_budgets(spec: ModelSpec, budget: Budget) -> None:
    check_adds_up(planned(spec, spec.examples()[0], None), budget)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_every_mechanism_with_a_name_has_a_plan_above(mechanism: str) -> None:
    """A mechanism that no model could plan would be tried nowhere."""
    takers = [spec for spec in CENTRAL if "mechanism" in spec.model().get_params()]
    plans = (planned(spec, spec.examples()[0], mechanism) for spec in takers)
    assert any(check_adds_up(plan, always=False) for plan in plans)


FOUR = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
NAMELESS: dict[str, Callable[[], Any]] = {
    "public_candidates": lambda: PublicCandidates(FOUR),
    "exponential_in_a_ball": ExponentialInABall,
}


@pytest.mark.parametrize("word", NAMELESS)
def test_mechanisms_without_a_name_add_up(word: str) -> None:
    spec = next(spec for spec in CENTRAL if spec.word == "logistic")
    example = spec.examples()[0]
    known = {**example.parameters, "n_records": N_RECORDS, "fit_intercept": False}
    if word == "exponential_in_a_ball":
        known["constraint"] = L2Ball(5.0)

    def plan(budget: Budget, accountant: Accountant) -> Any:
        model = spec.model(budget.epsilon, budget.delta, **known, mechanism=NAMELESS[word]())
        return model.set_params(accountant=accountant).plan(3)

    check_adds_up(plan, delta=0.0)


def test_the_mechanisms_tried_are_all_there_are() -> None:
    of_the_median = {"quantile_on_a_line"}
    assert {*MECHANISMS, *NAMELESS, *of_the_median} == set(KINDS)


class Evaluated:
    """An evaluation as a model with a plan."""

    def __init__(self, epsilon: float, delta: float, accountant: Accountant) -> None:
        self.budget = planning_budget(Budget(epsilon, delta), accountant)

    def plan(self) -> Any:
        model = DummyClassifier().fit([[0.0], [1.0]], [0, 1])
        return plan_for(model, self.budget, classes=[0, 1], n_records=N_RECORDS)


LOGISTIC: dict[str, Any] = {"classes": [0, 1], "row_norm": 1.5, "n_records": N_RECORDS}
BOUNDED: dict[str, Any] = {"bounds": (0, 100)}
# What plans besides models: how it is made from epsilon, delta and accountant, and what plan takes.
OTHERS: dict[str, tuple[Callable[..., Any], tuple[int, ...]]] = {
    "scaler": (lambda **paid: PrivateStandardScaler(**BOUNDED, **paid), (3,)),
    "quantile bounds": (lambda **paid: PrivateQuantileBounds(**BOUNDED, **paid), (3,)),
    "missing": (lambda **paid: PrivateMissing(**BOUNDED, **paid), (3,)),
    "pca": (lambda **paid: PrivatePCA(2, row_norm=2.0, **paid), (3,)),
    "vocabulary": (lambda **paid: PrivateVocabulary({"job": 20}, **paid), (3,)),
    "pate": (
        lambda **paid: PATEClassifier(
            DummyClassifier(), 100, DummyClassifier(), 50, classes=[0, 1], **paid
        ),
        (),
    ),
    "pate of numbers": (
        lambda **paid: PATERegressor(
            DummyRegressor(), 100, DummyRegressor(), 50, label_range=(0, 1), **paid
        ),
        (),
    ),
    "search": (
        lambda **paid: PrivateSearch(
            LogisticRegression(**LOGISTIC), {"regularization": [1.0, 100.0]}, 5, n_iter=5, **paid
        ),
        (3,),
    ),
    "search of parts": (
        lambda **paid: DisjointSearch(
            LogisticRegression(**LOGISTIC), {"regularization": [1.0, 100.0]}, **paid
        ),
        (3,),
    ),
    "pipeline": (
        lambda **paid: PrivatePipeline(
            [
                ("scale", PrivateStandardScaler(**BOUNDED)),
                ("model", LogisticRegression(**LOGISTIC)),
            ],
            **paid,
        ),
        (3,),
    ),
    "evaluation": (Evaluated, ()),
}


@pytest.mark.parametrize("word", OTHERS)
def test_what_else_plans_adds_up(word: str) -> None:
    make, shape = OTHERS[word]

    def plan(budget: Budget, accountant: Accountant) -> Any:
        made = make(epsilon=budget.epsilon, delta=budget.delta, accountant=accountant)
        return made.plan(*shape)

    check_adds_up(plan)


def test_a_fit_more_than_adds_up_is_refused() -> None:
    spec = next(spec for spec in CENTRAL if spec.word == "linear")
    plan = planned(spec, spec.examples()[0], None)
    accountant = Accountant(BUDGET)
    for share in (0.6, 0.4):
        found = plan(Budget(share, share * 1e-6), accountant)
        accountant.charge(found.event, found.budget.delta)
    with pytest.raises(BudgetExceeded):
        accountant.charge(found.event, found.budget.delta)
