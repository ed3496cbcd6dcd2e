"""Every problem gets a plan or a reason, never another error."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import get_args

import numpy as np
import pytest

from tacit.erm import (
    Balanced,
    Box,
    CannotSolve,
    L1Ball,
    L2Ball,
    Objective,
    ObjectivePerturbation,
    Problem,
    Simplex,
    WholeSpace,
    choose_plan,
)
from tacit.erm.losses import (
    AbsoluteLoss,
    DistanceLoss,
    HingeLoss,
    HuberLoss,
    LogisticLoss,
    PoissonLoss,
    QuantileLoss,
    SmoothHingeLoss,
    SoftmaxLoss,
    SquaredDistanceLoss,
    SquaredLoss,
)
from tacit.erm.minimization import CANDIDATES, KINDS, MECHANISMS, MechanismName
from tacit.privacy import Budget, Relation
from tacit.records import Bounds

# The first was found by a search over random problems: a ridge so weak that what one record does
# to the curvature costs millions, of a budget of a two-thousandth.
TOO_WEAK = [
    (29, 0.9992384746717679, 19.038531510763057, 1.4261056773772552e-05, 5.109e-4, 3.66e-10),
    (29, 1.0, 0.0, 1e-7, 1e-3, 1e-9),
    (10, 30.0, 0.0, 1e-4, 0.1, 1e-6),
]


@pytest.mark.parametrize(("k", "size", "intercept", "ridge", "epsilon", "delta"), TOO_WEAK)
def test_a_ridge_far_too_weak_is_refused(
    k: int, size: float, intercept: float, ridge: float, epsilon: float, delta: float
) -> None:
    bounds = Bounds(row_norm=size, intercept=intercept)
    problem = Problem(Objective(SoftmaxLoss(k), bounds, ridge), 10)
    with pytest.raises(CannotSolve, match="too weak for epsilon"):
        ObjectivePerturbation().plan(problem, Budget(epsilon, delta))
    assert choose_plan(problem, Budget(epsilon, delta)).mechanism.name == "noisy_gradient"


def some_problem(rng: np.random.Generator) -> tuple[Problem, Budget]:
    def size(low: float, high: float) -> float:
        return float(10.0 ** rng.uniform(low, high))

    top = size(-3, 3)
    losses = [
        LogisticLoss(),
        HingeLoss(),
        SmoothHingeLoss(size(-2, 0)),
        AbsoluteLoss(),
        QuantileLoss(float(rng.uniform(0.01, 0.99)), float(rng.choice([0.0, 1e-3, 1.0]))),
        SquaredLoss(),
        SquaredLoss(size(-2, 3), top),
        HuberLoss(size(-3, 3)),
        PoissonLoss(size(-2, 3), top),
        SoftmaxLoss(int(rng.integers(2, 30))),
        DistanceLoss(),
        SquaredDistanceLoss(),
    ]
    sets = [WholeSpace(), WholeSpace(), L2Ball(size(-3, 3)), L1Ball(1.0), Box(-1.0, 2.0), Simplex()]
    bounds = Bounds(
        row_norm=size(-6, 6),
        label_range=None if rng.uniform() < 0.3 else (-top, top),
        n_records=None if rng.uniform() < 0.4 else int(size(0, 9)),
        intercept=0.0 if rng.uniform() < 0.5 else size(-3, 3),
    )
    ridge = None if rng.uniform() < 0.5 else 0.0 if rng.uniform() < 0.2 else size(-8, 8)
    objective = Objective(
        losses[rng.integers(len(losses))], bounds, ridge, sets[rng.integers(len(sets))]
    )
    delta = 0.0 if rng.uniform() < 0.25 else size(-12, -2)
    budget = Budget(size(-4, 2), delta, list(Relation)[rng.integers(2)])
    return Problem(objective, int(size(0, 4.5))), budget


@pytest.mark.parametrize("seed", range(150))
def test_any_problem_has_a_plan_or_a_reason(seed: int) -> None:
    problem, budget = some_problem(np.random.default_rng(seed))
    try:
        plan = choose_plan(problem, budget)
    except CannotSolve:
        return
    assert math.isfinite(plan.excess_risk)
    assert plan.event.relation is budget.relation


def test_what_else_was_considered_is_beside_what_it_was_compared_with() -> None:
    # whoever expects another number of records, or fits, is shown another risk of the plan itself
    problem = Problem(Objective(LogisticLoss(), Bounds()), n_features=100)
    typical = choose_plan(problem, Budget(1.0, 1e-6))
    beside = f", beside {typical.excess_risk:.3g} for {problem.n_records:,} records"
    expecting = choose_plan(replace(problem, expected_records=500), Budget(1.0, 1e-6))
    assert expecting.excess_risk > 2 * typical.excess_risk
    assert beside in expecting.rejected[0]
    assert expecting.rejected == typical.rejected


# Whether a name says enough, "auto" tries it, it counts classes, has a law, tilts an objective.
FLAGS = ("is_named", "is_candidate", "counts_classes", "has_law", "perturbs_objective")
KNOWN = {
    "objective_perturbation": (True, True, False, True, True),
    "noisy_gradient": (True, True, False, True, False),
    "output_perturbation": (True, True, False, False, False),
    "sufficient_statistics": (True, True, False, True, False),
    "noisy_sgd": (True, False, False, False, False),
    "quantile_on_a_line": (False, True, False, False, False),
    "public_candidates": (False, True, False, False, False),
    "exponential_in_a_ball": (False, True, False, False, False),
}


def test_what_mechanisms_say_of_themselves() -> None:
    said = {word: tuple(getattr(kind, flag) for flag in FLAGS) for word, kind in KINDS.items()}
    # a new one may be added
    assert said.items() >= KNOWN.items()
    tried = [word for word, known in KNOWN.items() if known[0] and known[1]]
    assert [word for word in CANDIDATES if word in KNOWN] == tried
    assert (Balanced.is_named, Balanced.counts_classes) == (False, True)


def test_the_type_of_mechanism_names_what_the_registry_has() -> None:
    assert get_args(MechanismName) == ("auto", *MECHANISMS)
