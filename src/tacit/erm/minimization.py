"""Choose a mechanism for a problem, and minimise an objective with it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from tacit.arrays import Array
from tacit.engine import release_answers, without_noise
from tacit.erm.mechanisms import CANDIDATES as CANDIDATES
from tacit.erm.mechanisms import KINDS as KINDS
from tacit.erm.mechanisms import MECHANISMS as MECHANISMS
from tacit.erm.objective import Objective
from tacit.erm.plan import CannotSolve, Counted, Errors, Mechanism, Plan, Problem, Solved
from tacit.erm.solvers import Perturbed, minimize_exactly
from tacit.mechanism_names import MechanismName as MechanismName
from tacit.noise import Release, Source
from tacit.privacy import AnyAccountant, Budget, Guarantee, Relation
from tacit.queries import Session
from tacit.records import RecordSource
from tacit.records.grouped import PeopleInMemory, PeopleInSource
from tacit.records.source import assumptions_of_source

_CLEARLY = 1.25  # a later candidate must have less risk by this factor


def choose_plan(problem: Problem, budget: Budget, mechanism: str | Mechanism = "auto") -> Plan:
    """Return the plan with the least predicted excess risk, or that of a named mechanism.

    Raises
    ------
    CannotSolve
        If the named mechanism, or every candidate, does not apply; with each one's reason.

    Examples
    --------
    >>> from tacit.erm import Objective, Problem
    >>> from tacit.erm.minimization import choose_plan
    >>> from tacit.erm.losses import HingeLoss
    >>> from tacit.privacy import Budget
    >>> from tacit.records import Bounds
    >>> problem = Problem(Objective(HingeLoss(), Bounds()), n_features=3)
    >>> choose_plan(problem, Budget(1.0, 1e-6)).mechanism.name
    'noisy_gradient'
    """
    if problem.expected_records is not None:
        # The expected number of records sharpens the prediction and decides nothing.
        known = choose_plan(replace(problem, expected_records=None), budget, mechanism)
        expected = replace(known.problem, expected_records=problem.expected_records)
        risk = known.mechanism.predicted(known, expected)
        return replace(known, problem=expected, excess_risk=risk)
    try:
        hash((problem, mechanism))
    except TypeError:  # a mechanism that holds an array is not hashable
        return _chosen(problem, budget, mechanism)
    return _remembered(problem, budget, mechanism)


def _chosen(problem: Problem, budget: Budget, mechanism: str | Mechanism) -> Plan:
    if not isinstance(mechanism, str):
        return mechanism.plan(problem, budget)
    if mechanism != "auto":
        if mechanism not in MECHANISMS:
            raise ValueError(
                f"mechanism {mechanism!r} is unknown; choose from {['auto', *MECHANISMS]} or pass "
                "a configured mechanism."
            )
        return MECHANISMS[mechanism].plan(problem, budget)
    plans, refusals = [], []
    for name in CANDIDATES:
        try:
            plans.append(MECHANISMS[name].plan(problem, budget))
        except CannotSolve as reason:
            refusals.append(f"{name}: {reason}")
    if not plans:
        raise CannotSolve("no mechanism applies to this problem. " + " ".join(refusals))
    # Predictions are rough: an earlier candidate, which needs fewer assumptions, is kept unless a
    # later one is clearly better.
    least = min(plan.excess_risk for plan in plans)
    best = next(plan for plan in plans if plan.excess_risk <= _CLEARLY * least)
    tuned = best.mechanism.tuned(problem, budget)
    # A fit replaces the risk of the chosen plan by a released estimate. The alternatives are
    # therefore shown beside the predicted risk with which they were compared.
    beside = f"beside {best.excess_risk:.3g} for {problem.n_predicted:,} records"
    others = [
        f"{plan.mechanism.name}: predicted excess risk {plan.excess_risk:.3g}, {beside}"
        for plan in plans
        if plan is not best
    ]
    chosen = best if tuned is best.mechanism else tuned.plan(problem, budget)
    return replace(chosen, rejected=(*others, *refusals))


# A plan depends on public facts alone. `plan`, a table model before it opens its file, and `fit`
# request the same plan: it is computed once.
_remembered = lru_cache(maxsize=256)(_chosen)


# Records, or records grouped by person of which only one per person can be used.
Opened = RecordSource | PeopleInSource


@dataclass(frozen=True)
class Result:
    """Released weights, their guarantee, and the plan they came from.

    ``plan`` is None for an infinite budget. ``errors`` is None if no standard errors were
    requested. ``count`` is the number of records as it was released, None if it was not.
    ``residual_bound`` is set if records and budget were too few for residuals to count in full.
    """

    weights: Array
    privacy: Guarantee
    plan: Plan | None
    errors: Errors | None = None
    count: Counted | None = None
    residual_bound: float | None = None


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
        Loss, regulariser and feasible set.
    budget
        The budget to spend; an infinite epsilon gives the exact minimiser without privacy.
    mechanism
        "auto", a name, or a configured mechanism.
    accountant
        A budget shared with other releases; it charges or refuses before a record is read.
    source
        The source of randomness; a seeded source voids the guarantee.
    assumptions
        Facts that somebody vouches for; the guarantee repeats them.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.erm import Objective
    >>> from tacit.erm.minimization import minimize
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
    """Minimise over records that are opened only after the plan was made and charged.

    ``open_records`` returns records within the bounds of the problem's objective. ``inference`` is
    the share of the budget for standard errors, and ``weigh`` sets the weights of the records. The
    other parameters are those of `minimize`.
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
        lambda: weigh(_bound_people(open_records(), plan)),
        plan.solve,
        **engine,
    )
    solved = done.value
    if solved.risk is not None:
        plan = replace(plan, excess_risk=solved.risk)  # the estimate from the releases
    bound = _residual_bound(problem.objective, solved)
    return Result(solved.weights, done.privacy, plan, solved.errors, solved.count, bound)


def _residual_bound(objective: Objective, solved: Solved) -> float | None:
    """Return the residual above which the loss counts less, if it is below the greatest label.

    A loss that may be widened starts with a part of the greatest label, and exceeds it with enough
    records and budget. Other losses take residuals in full, or bound them because they are meant
    to. Public facts and the released number of records decide.
    """
    loss, greatest = objective.loss, objective.bounds.label_bound
    if loss.with_wider_slope(2.0) == loss:
        return None
    bound = solved.slope_bound or loss.lipschitz
    return bound if bound < greatest else None


def make_plan(
    problem: Problem, budget: Budget, mechanism: str | Mechanism = "auto", inference: float = 0.0
) -> Plan:
    """Return the plan of a fit; ``inference`` is the share of the budget for standard errors."""
    if not inference:
        return choose_plan(problem, budget, mechanism)
    from tacit.erm.inference import plan_with_errors

    return plan_with_errors(problem, budget, mechanism, inference)


def run_plan(plan: Plan, records: Opened, source: Source | None = None) -> Release[Array]:
    """Run a plan on records in a session of its own, without charging an accountant.

    Audits and tests use it: they need a release with its event.
    """
    session = Session(_bound_people(records, plan), plan.facts, plan.event, plan.slots(), source)
    return session.release(plan.solve(session).weights)


def _without_noise(
    open_records: Callable[[], Opened],
    problem: Problem,
    budget: Budget,
    inference: float,
    weigh: Callable[[RecordSource], RecordSource],
    **engine: Any,
) -> Result:
    """Return the exact minimiser, without privacy."""
    if inference:
        from tacit.erm.inference import check_has_errors

        check_has_errors(problem.objective, budget, inference)
    plan = replace(without_noise(budget), facts=problem.facts(budget.relation))

    def opened() -> RecordSource:
        records = open_records()
        return weigh(_one_each(records) if inference else _everybody(records))

    def exact(records: RecordSource) -> Solved:
        weights, objective = _exact(problem, records)
        n = float(records.count())
        count = Counted(n, n, n, 0.0)
        if not inference:
            return Solved(weights, count=count)
        from tacit.erm.inference import errors_without_noise

        errors = errors_without_noise(records, objective, weights)
        return Solved(weights, errors=errors, count=count)

    done = release_answers(plan, opened, lambda session: session.without_noise(exact), **engine)
    solved = done.value
    return Result(solved.weights, done.privacy, None, solved.errors, solved.count)


def check_people(records: Opened, relation: Relation) -> None:
    """Refuse ungrouped records if people are protected, and grouped records otherwise."""
    if relation.by_person != isinstance(records, PeopleInMemory | PeopleInSource):
        raise ValueError(
            "Relation.ADD_REMOVE_PERSON needs records grouped by person, and grouped records need "
            "Relation.ADD_REMOVE_PERSON; the sensitivities of one do not hold for the other."
        )


def _bound_people(records: Opened, plan: Plan) -> RecordSource:
    """Return records of which a person adds no more than the plan's sensitivities allow.

    A mechanism that clips the sum over a person's records gets all records; any other gets one
    record of each person.
    """
    check_people(records, plan.budget.relation)
    return _everybody(records) if plan.adds_up_people else _one_each(records)


def _one_each(records: Opened) -> RecordSource:
    """Return one record per person, if records are grouped by person."""
    if isinstance(records, PeopleInMemory | PeopleInSource):
        return records.one_each()
    return records


def _everybody(records: Opened) -> RecordSource:
    return records.everybody() if isinstance(records, PeopleInSource) else records


def _exact(problem: Problem, records: RecordSource) -> tuple[Array, Objective]:
    """Return the non-private minimiser, and the objective that it minimises."""
    objective = problem.objective
    if objective.regularization is None:
        objective = objective.with_regularization(0.0)
    weights, flat = np.zeros(problem.shape), np.zeros(problem.shape)
    # Approach a non-smooth loss through smoothings, which have a Hessian.
    for loss in objective.loss.rounded(objective.score_unit):
        weights = minimize_exactly(Perturbed(replace(objective, loss=loss), records, flat), weights)
    return weights, objective
