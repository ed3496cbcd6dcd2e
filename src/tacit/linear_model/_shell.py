"""What the linear estimators share: the way from parameters and a table to released weights."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.erm import (
    FeasibleSet,
    Objective,
    Plan,
    Problem,
    WholeSpace,
    choose_plan,
    minimize_unread,
)
from tacit.erm.losses import Loss
from tacit.privacy import Budget, Guarantee
from tacit.public_facts import Fact, assumptions_of, budget_of, codes_of, source_of
from tacit.records import (
    INTERCEPT_SHARE,
    Bounds,
    MemoryRecords,
    RecordSource,
    UnreadRecords,
    UnreadTable,
    open_records,
)

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


def class_targets(classes: npt.NDArray[Any], rows: Any, labels: Any) -> tuple[Any, Array]:
    """Return the records of a declared class: -1 and 1 for two classes, codes for more."""
    codes, known = codes_of(labels, classes)
    if not known.all():
        rows, codes = rows[known], codes[known]
    if classes.size == 2:
        return rows, np.where(codes == 1, 1.0, -1.0)
    return rows, codes.astype(np.float64)


Targets = Callable[[Any, Any], tuple[Any, Array | None]]


def when_paid_for(
    table: UnreadTable, targets: Targets, bounds: Bounds
) -> Callable[[], RecordSource]:
    """Return what opens a table's records, to be called when their plan is charged.

    ``targets`` makes records of rows and labels as they are read; those of a record source are
    its own, within bounds that must be these, and that is asked now.
    """
    if isinstance(table, UnreadRecords):
        records = open_records(table.records, None, bounds)  # reads nothing
        return lambda: records
    return lambda: MemoryRecords(*targets(*table.read()), bounds)


def fit_objective(
    estimator: Any,
    objective: Objective,
    table: UnreadTable,
    targets: Targets,
    facts: Sequence[Fact[Any]],
) -> Fitted:
    """Minimise the objective over a table's records.

    The table is read when the plan is charged; ``targets`` then makes records of rows and labels
    (`when_paid_for`).
    """
    budget = budget_of(estimator.epsilon, estimator.delta, estimator.relation)
    if budget.is_infinite and objective.regularization is None:
        ridge = 0.0 if math.isfinite(objective.bounds.label_bound) else _LEAST_RIDGE
        objective = objective.with_regularization(ridge * objective.row_norm**2)
    result = minimize_unread(
        when_paid_for(table, targets, objective.bounds),
        Problem(objective, table.n_columns),
        budget,
        estimator.mechanism,
        accountant=estimator.accountant,
        source=source_of(estimator.random_state),
        assumptions=assumptions_of(*facts),
    )
    if estimator.verbose:
        sys.stderr.write(f"{result.plan or 'no noise: the budget is infinite'}\n")
        sys.stderr.write(result.privacy.statement() + "\n")
    weights, constant = result.weights, objective.bounds.intercept
    if constant:
        coef, intercept = weights[:-1], constant * weights[-1:]
    else:
        coef, intercept = weights, np.zeros_like(weights[:1])
    return Fitted(coef, np.atleast_1d(np.squeeze(intercept, 0)), result.privacy, result.plan)
