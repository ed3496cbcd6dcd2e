"""What the linear estimators share: the way from parameters and a table to released weights."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.erm import FeasibleSet, Objective, Plan, Problem, WholeSpace, choose_plan, minimize
from tacit.erm.losses import Loss
from tacit.privacy import Accountant, Budget, Guarantee
from tacit.public_facts import budget_of, source_of
from tacit.records import INTERCEPT_SHARE, Bounds, MemoryRecords

Array = npt.NDArray[np.float64]

# Without noise there is nothing to choose a ridge by; this keeps separable classes finite.
_LEAST_RIDGE = 1e-6


@dataclass(frozen=True)
class Fitted:
    """Weights split into what users know them as, with their promise."""

    coef: Array
    intercept: Array
    privacy: Guarantee
    plan: Plan | None


def intercept_coordinate(row_norm: float, fit_intercept: bool) -> float:
    """Return the constant coordinate appended to rows of this norm."""
    return INTERCEPT_SHARE * row_norm if fit_intercept else 0.0


def objective_of(
    loss: Loss, bounds: Bounds, regularization: float | None, constraint: FeasibleSet | None
) -> Objective:
    """Return the objective an estimator's parameters describe."""
    return Objective(loss, bounds, regularization, constraint or WholeSpace())


def plan_of(
    objective: Objective, n_features: int, expected: int | None, budget: Budget, mechanism: Any
) -> Plan:
    """Return the plan of a fit, without data."""
    if budget.is_infinite:
        raise ValueError("epsilon is infinite: there is no noise to plan; pass a finite one.")
    return choose_plan(Problem(objective, n_features, expected), budget, mechanism)


def refuse_early(estimator: Any, X: Any, n_classes: int) -> None:
    """Ask the accountant before the table is even validated, if its width can be known."""
    shape = getattr(X, "shape", None)
    budget = budget_of(estimator.epsilon, estimator.delta, estimator.relation)
    if estimator.accountant is None or budget.is_infinite or shape is None or len(shape) != 2:
        return
    event = estimator._plan(int(shape[1]), None, n_classes).event
    estimator.accountant.check(event, budget.delta)


def fit_objective(
    objective: Objective,
    rows: Any,
    labels: Array,
    budget: Budget,
    mechanism: Any,
    *,
    accountant: Accountant | None,
    random_state: int | None,
    verbose: int,
    notes: tuple[str, ...],
) -> Fitted:
    """Minimise the objective over a table's records."""
    if budget.is_infinite and objective.regularization is None:
        ridge = 0.0 if math.isfinite(objective.bounds.label_bound) else _LEAST_RIDGE
        objective = objective.with_regularization(ridge * objective.row_norm**2)
    result = minimize(
        MemoryRecords(rows, labels, objective.bounds),
        objective,
        budget,
        mechanism,
        accountant=accountant,
        source=source_of(random_state),
        assumptions=notes,
    )
    if verbose:
        sys.stderr.write(f"{result.plan or 'no noise: the budget is infinite'}\n")
        sys.stderr.write(result.privacy.statement() + "\n")
    weights, constant = result.weights, objective.bounds.intercept
    if constant:
        coef, intercept = weights[:-1], constant * weights[-1:]
    else:
        coef, intercept = weights, np.zeros_like(weights[:1])
    return Fitted(coef, np.atleast_1d(np.squeeze(intercept, 0)), result.privacy, result.plan)
