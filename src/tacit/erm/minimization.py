"""The road of one minimisation: plan, then through the engine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.engine import release_answers, without_noise
from tacit.erm.inference.estimator_law import Errors, Solved
from tacit.erm.objective import Objective
from tacit.erm.planning.plan import Mechanism, Plan, Problem
from tacit.erm.planning.planner import choose_plan
from tacit.erm.solvers.certified import minimize_exactly
from tacit.erm.solvers.perturbed_objective import Perturbed
from tacit.noise import Release, Source
from tacit.privacy import AnyAccountant, Budget, Guarantee, Relation
from tacit.queries import Session
from tacit.records import RecordSource
from tacit.records.grouped import PeopleInMemory, PeopleInSource
from tacit.records.source import assumptions_of_source

Array = npt.NDArray[np.float64]


# What may be opened: records, or the same with their people where only one of each can be had.
Opened = RecordSource | PeopleInSource


@dataclass(frozen=True)
class Result:
    """Released weights, what they cost, and the plan they came from.

    ``plan`` is None for an infinite budget, where there is nothing to plan; ``errors`` where none
    were asked for.
    """

    weights: Array
    privacy: Guarantee
    plan: Plan | None
    errors: Errors | None = None


def minimize(
    records: RecordSource,
    objective: Objective,
    budget: Budget,
    mechanism: str | Mechanism = "auto",
    *,
    accountant: AnyAccountant | None = None,
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
    check_people(records, budget.relation)
    return minimize_unread(
        lambda: records,
        Problem(objective, records.n_features),
        budget,
        mechanism,
        accountant=accountant,
        source=source,
        assumptions=(*assumptions, *assumptions_of_source(records)),
    )


def minimize_unread(
    open_records: Callable[[], Opened],
    problem: Problem,
    budget: Budget,
    mechanism: str | Mechanism = "auto",
    *,
    accountant: AnyAccountant | None = None,
    source: Source | None = None,
    assumptions: Sequence[str] = (),
    inference: float = 0.0,
    weigh: Callable[[RecordSource], RecordSource] = lambda records: records,
) -> Result:
    """Minimise over records that are opened after the plan was made and charged.

    ``open_records`` returns them within the bounds of the problem's objective; the other
    parameters are those of `minimize`, the share of the budget kept for standard errors, and what
    weights the records that are used.
    """
    engine: dict[str, Any] = {
        "accountant": accountant,
        "source": source,
        "assumptions": assumptions,
    }
    if budget.is_infinite:
        return _without_noise(open_records, problem, budget, inference, weigh, **engine)
    plan = make_plan(problem, budget, mechanism, inference)
    done = release_answers(
        plan,
        lambda: weigh(_neighbourly(open_records(), plan)),
        plan.solve,
        **engine,
    )
    solved = done.value
    if solved.risk is not None:
        plan = replace(plan, excess_risk=solved.risk)  # what the releases say of it
    return Result(solved.weights, done.privacy, plan, solved.errors)


def make_plan(
    problem: Problem, budget: Budget, mechanism: str | Mechanism = "auto", inference: float = 0.0
) -> Plan:
    """Return the plan of a fit; with ``inference`` a share of the budget is for standard errors."""
    if not inference:
        return choose_plan(problem, budget, mechanism)
    from tacit.erm.inference.plan import plan_with_errors

    return plan_with_errors(problem, budget, mechanism, inference)


def run_plan(plan: Plan, records: Opened, source: Source | None = None) -> Release[Array]:
    """Carry out a plan on records, in a session of its own, and charge nobody.

    For audits and tests, which need a release with its event and no accountant.
    """
    session = Session(_neighbourly(records, plan), plan.facts, plan.event, plan.slots(), source)
    return session.release(plan.solve(session).weights)


def _without_noise(
    open_records: Callable[[], Opened],
    problem: Problem,
    budget: Budget,
    inference: float,
    weigh: Callable[[RecordSource], RecordSource],
    **engine: Any,
) -> Result:
    """Return the exact minimiser, and no privacy."""
    if inference:
        from tacit.erm.inference.plan import check_has_errors

        check_has_errors(problem.objective, budget, inference)
    plan = replace(without_noise(budget), facts=problem.facts(budget.relation))

    def opened() -> RecordSource:
        records = open_records()
        return weigh(_one_each(records) if inference else _everybody(records))

    def exact(records: RecordSource) -> Solved:
        weights, objective = _exact(problem, records)
        if not inference:
            return Solved(weights)
        from tacit.erm.inference.plan import errors_without_noise

        return Solved(weights, errors=errors_without_noise(records, objective, weights))

    done = release_answers(plan, opened, lambda session: session.without_noise(exact), **engine)
    return Result(done.value.weights, done.privacy, None, done.value.errors)


def check_people(records: Opened, relation: Relation) -> None:
    """Refuse records that do not know their people where these are protected, and the reverse."""
    if relation.by_person != isinstance(records, PeopleInMemory | PeopleInSource):
        raise ValueError(
            "records that know their people go with Relation.ADD_REMOVE_PERSON, and other records "
            "with other relations: what is bounded for one says nothing about the other."
        )


def _neighbourly(records: Opened, plan: Plan) -> RecordSource:
    """Return records of which neighbours differ in no more than the mechanism bounds."""
    check_people(records, plan.budget.relation)
    return _everybody(records) if plan.adds_up_people else _one_each(records)


def _one_each(records: Opened) -> RecordSource:
    """Return one record of each person, where it is known whose they are."""
    if isinstance(records, PeopleInMemory | PeopleInSource):
        return records.one_each()
    return records


def _everybody(records: Opened) -> RecordSource:
    return records.everybody() if isinstance(records, PeopleInSource) else records


def _exact(problem: Problem, records: RecordSource) -> tuple[Array, Objective]:
    """Return the non-private minimiser, and of what."""
    objective = problem.objective
    if objective.regularization is None:
        objective = objective.with_regularization(0.0)
    weights, flat = np.zeros(problem.shape), np.zeros(problem.shape)
    # A sharp corner is approached through rounder ones, which have a Hessian to go by.
    for loss in objective.loss.rounded(objective.score_unit):
        weights = minimize_exactly(Perturbed(replace(objective, loss=loss), records, flat), weights)
    return weights, objective
