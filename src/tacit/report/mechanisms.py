"""Mechanisms in plain words: the one that ran, and what others would have cost.

Those are planned from the public facts of the one that ran.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from tacit import engine
from tacit.erm import CannotSolve, Plan
from tacit.erm.plan import TYPICAL_N_RECORDS
from tacit.erm.planner import KINDS, MECHANISMS
from tacit.report.facts import PlannedMechanism
from tacit.report.numbers import short

_TITLES = {kind.name: kind.title for kind in KINDS.values()}


def mechanism_title(name: str) -> str:
    """Return a mechanism's name as a heading has it.

    Examples
    --------
    >>> from tacit.report.mechanisms import mechanism_title
    >>> mechanism_title("noisy_gradient"), mechanism_title("my_own")
    ('Noisy gradient descent', 'My own')
    """
    return _TITLES.get(name, _capital(name.replace("_", " ")))


def planned(plan: Plan, chosen: bool) -> PlannedMechanism:
    """Return a plan in words."""
    noise = plan.noise_in_words(lambda value: short(value, 3))
    settings = tuple((name, float(value)) for name, value in plan.settings.items())
    return PlannedMechanism(plan.mechanism.name, plan.excess_risk, noise, chosen, settings)


def alone(plan: engine.Plan) -> PlannedMechanism:
    """Return a plan to which there are no others, such as that of a network."""
    said = ". ".join(text[:1].upper() + text[1:] for text in (plan.reason, *plan.notes))
    settings = tuple((name, float(value)) for name, value in plan.settings.items())
    return PlannedMechanism(plan.name, None, f"{said}.", chosen=True, settings=settings)


def mechanisms_for(estimator: Any, plan: Plan, expected: int | None) -> list[PlannedMechanism]:
    """Return the plan that was run, and one for each other mechanism, the best first.

    Contract: nothing is read but the estimator's parameters and the public facts in the plan.
    """
    if not hasattr(estimator, "plan"):
        return [planned(plan, chosen=True)]
    run = _comparable(estimator, plan, expected)
    others: list[PlannedMechanism] = []
    left = dict(MECHANISMS)
    left.pop(plan.mechanism.name, None)
    for name in left:
        try:
            others.append(planned(_plan_with(estimator, plan, name, expected), chosen=False))
        except (CannotSolve, ValueError) as why:
            others.append(PlannedMechanism(name, None, _capital(str(why))))
    rows = [planned(run, chosen=True), *others]
    return sorted(rows, key=lambda row: (row.excess_risk is None, row.excess_risk or 0.0))


def _comparable(estimator: Any, plan: Plan, expected: int | None) -> Plan:
    """Return the plan that was run with the risk that it had before, as the others have theirs."""
    try:
        before = _plan_with(estimator, plan, plan.mechanism, expected)
    except (CannotSolve, ValueError):
        return plan
    return before if expected is not None else replace(plan, excess_risk=before.excess_risk)


def _plan_with(estimator: Any, plan: Plan, mechanism: Any, expected: int | None) -> Plan:
    """Return the plan of the same estimator with another mechanism.

    The estimator is made anew from its own parameters: a mechanism may choose its own
    regularization, and a regressor another loss.
    """
    bounds = plan.problem.objective.bounds
    facts = {
        "mechanism": mechanism,
        "accountant": None,
        "n_records": bounds.n_records,
        # Read off the data or off the labels' type, these are facts of the plan by now. A range
        # around zero stands for any other of its width.
        "classes": None if bounds.n_classes is None else list(range(bounds.n_classes)),
        "label_range": bounds.label_range,
    }
    own = estimator.get_params(deep=False)
    if isinstance(own.get("class_weight"), Mapping):
        names = np.unique(getattr(estimator, "classes_", own["classes"])).tolist()
        places = {name: place for place, name in enumerate(names)}
        facts["class_weight"] = {places[name]: v for name, v in own["class_weight"].items()}
    anew = type(estimator)(**{**own, **{k: v for k, v in facts.items() if k in own}})
    found: Plan = anew.plan(plan.problem.n_features, expected)
    return found


def about_predictions(plan: Plan, expected: int | None) -> str:
    """Return what the predictions take for granted."""
    if plan.problem.objective.bounds.n_records is not None:
        return (
            f"Predicted for {plan.problem.objective.bounds.n_records:,} records, the public number."
        )
    if expected is not None:
        return f"Predicted for {expected:,} records, a number that was given as public."
    return (
        "The number of records is private, so the predictions are for a typical "
        f"{TYPICAL_N_RECORDS:,}; compare them with each other, not with the data."
    )


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
