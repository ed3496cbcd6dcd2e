"""Choose a mechanism and its settings from public facts only."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from tacit.erm.mechanisms import CANDIDATES as CANDIDATES
from tacit.erm.mechanisms import KINDS as KINDS
from tacit.erm.mechanisms import MECHANISMS as MECHANISMS
from tacit.erm.planning.plan import CannotSolve, Mechanism, Plan, Problem
from tacit.mechanism_names import MechanismName as MechanismName
from tacit.privacy import Budget

_CLEARLY = 1.25  # a later candidate must have less risk by this factor


def choose_plan(problem: Problem, budget: Budget, mechanism: str | Mechanism = "auto") -> Plan:
    """Return the plan with the least predicted excess risk, or that of a named mechanism.

    Raises
    ------
    CannotSolve
        If the named mechanism, or every candidate, does not apply; with each one's reason.

    Examples
    --------
    >>> from tacit.erm import Objective, Problem, choose_plan
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
