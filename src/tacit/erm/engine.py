"""The road of one fit: plan, charge, solve, check the receipt."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from tacit.erm.losses import Loss, PointLoss, QuantileLoss
from tacit.erm.minimizer import minimize_exactly
from tacit.erm.objective import Objective
from tacit.erm.perturbed import Perturbed
from tacit.erm.plan import Mechanism, Plan, Problem
from tacit.erm.planner import choose_plan
from tacit.noise import Source
from tacit.privacy import Accountant, Budget, Event, Guarantee, NonPrivate
from tacit.records import RecordSource

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Result:
    """Released weights, what they cost, and the plan they came from.

    ``plan`` is None for an infinite budget, where there is nothing to plan.
    """

    weights: Array
    privacy: Guarantee
    plan: Plan | None


def minimize(
    records: RecordSource,
    objective: Objective,
    budget: Budget,
    mechanism: str | Mechanism = "auto",
    *,
    accountant: Accountant | None = None,
    source: Source | None = None,
    assumptions: Sequence[str] = (),
) -> Result:
    """Minimise an objective over records within a budget.

    Parameters
    ----------
    records
        The private records, with their bounds.
    objective
        Loss, regulariser and set.
    budget
        What may be spent; an infinite epsilon gives the exact minimiser and no privacy.
    mechanism
        "auto", a name, or a configured mechanism.
    accountant
        A budget shared with other releases; charged, or refusing, before a record is read.
    source
        Randomness; a seeded one voids the guarantee.
    assumptions
        What was vouched for, for the guarantee to repeat.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.erm import Objective, minimize
    >>> from tacit.erm.losses import LogisticLoss
    >>> from tacit.privacy import Budget
    >>> from tacit.records import Bounds, MemoryRecords
    >>> x = np.random.default_rng(0).standard_normal((2000, 3))
    >>> y = np.where(x[:, 0] > 0, 1.0, -1.0)
    >>> bounds = Bounds(row_norm=2.0)
    >>> records = MemoryRecords(x, y, bounds)
    >>> result = minimize(records, Objective(LogisticLoss(), bounds), Budget(1.0, 1e-6))
    >>> bool(result.privacy.epsilon(1e-6) <= 1.0)
    True
    """
    if records.bounds != objective.bounds:
        raise ValueError(
            f"the records are clipped to {records.bounds} but the objective's sensitivities are "
            f"derived from {objective.bounds}; give both the same Bounds."
        )
    problem = Problem(objective, records.n_features)
    if budget.is_infinite:
        event: Event = NonPrivate("the budget is infinite", relation=budget.relation)
        if accountant is not None:
            accountant.charge(event, budget.delta)
        return Result(_exact(problem, records), Guarantee(event, budget.delta), None)
    plan = choose_plan(problem, budget, mechanism)
    if accountant is not None:
        accountant.charge(plan.event, budget.delta)
    release = plan.mechanism.solve(plan, records, source)
    _check_receipt(plan, release.event)
    privacy = Guarantee(release.event, budget.delta, tuple(assumptions))
    return Result(np.asarray(release.value), privacy, plan)


def _check_receipt(plan: Plan, event: Event) -> None:
    """The event of what was released must be the event that was charged."""
    paid = event.would_be if isinstance(event, NonPrivate) else event
    if paid != plan.event:
        raise RuntimeError(
            f"released {paid} but planned {plan.event}: the release is withheld. This is a bug "
            "in the mechanism; please report it as SECURITY.md says."
        )


def _exact(problem: Problem, records: RecordSource) -> Array:
    """Return the non-private minimiser."""
    objective = problem.objective
    if objective.regularization is None:
        objective = objective.with_regularization(0.0)
    weights, flat = np.zeros(problem.shape), np.zeros(problem.shape)
    # A sharp corner is approached through rounder ones, which have a Hessian to go by.
    for loss in _rounded(objective.loss, objective.score_unit):
        weights = minimize_exactly(Perturbed(replace(objective, loss=loss), records, flat), weights)
    return weights


def _rounded(loss: Loss | PointLoss, unit: float) -> Iterator[Loss | PointLoss]:
    if isinstance(loss, QuantileLoss):
        sharpest = max(loss.smoothing, 1e-6 * unit)
        width = unit
        while width > sharpest:
            yield replace(loss, smoothing=width)
            width /= 2
        yield replace(loss, smoothing=sharpest)
    else:
        yield loss
