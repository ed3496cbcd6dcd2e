"""What a pipeline would run on a table and what that would cost, before any record is read."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sklearn.base import clone

from tacit.engine import Planned, without_noise
from tacit.features import FeatureMap
from tacit.metrics.planning import EvaluationPlan, evaluation_plan
from tacit.pipeline.plan import HELD_OUT, PipelinePlan
from tacit.pipeline.shares import checked_shares, shared_plans
from tacit.pipeline.steps import admitted, spends
from tacit.preprocessing import SchemaEncoder
from tacit.preprocessing.private import PrivateQuantileBounds, PrivateVocabulary
from tacit.privacy import Budget
from tacit.privacy.weakness import WeakPromiseWarning
from tacit.public_facts import informed
from tacit.table_facts import TableFacts

Steps = list[tuple[str, Any]]


def all_steps(steps: Steps) -> Steps:
    """Return the steps, with those that learn what the schema leaves open."""
    (name, first), *rest = steps
    if not isinstance(first, SchemaEncoder):
        return list(steps)
    words: dict[str | int, int] = dict(first.schema.open_words.items())
    numbers = list(first.schema.open_numbers)
    before = [(f"{name} words", PrivateVocabulary(words))] if words else []
    bounds = f"{name} bounds"  # already there in a pipeline that was loaded from a file
    open_numbers = numbers and bounds not in dict(rest)
    after = [(bounds, PrivateQuantileBounds(columns=numbers))] if open_numbers else []
    return [*before, (name, first), *after, *rest]


@dataclass(frozen=True)
class Planner:
    """Divides a pipeline's budget among what learns from records, and plans each.

    Parameters
    ----------
    steps
        As the pipeline was given them.
    encodes
        Whether the first of them encodes tables.
    shares
        Of the budget, by the names of steps.
    evaluate
        The share of the records that is held out.
    """

    steps: Steps
    encodes: bool
    shares: Mapping[str, float] | None
    evaluate: float

    def planned(self, facts: TableFacts, budget: Budget, n_records: int | None) -> PipelinePlan:
        """Return the plan of a table of which ``facts`` are public."""
        if self.encodes:
            self.steps[0][1].schema.check_references(self.steps[-1][1])
        met, names = self.facts_met(facts), self._spending()
        if not 0.0 <= self.evaluate < 1.0:
            raise ValueError(
                f"evaluate must be a share of the records, at least 0 and below 1, got "
                f"{self.evaluate!r}; 0.1 holds out one in ten."
            )
        steps, shares = dict(all_steps(self.steps)), checked_shares(self.shares, names)
        before = tuple(name for name in names if isinstance(steps[name], PrivateVocabulary))
        before = before if self.evaluate and self.encodes else ()
        left = 1.0 - sum(shares[name] for name in before)

        def plan_all(budgets: Mapping[str, Budget]) -> PipelinePlan:
            plans = {
                name: _plan_of(steps[name], met[name], budgets[name], n_records) for name in names
            }
            evaluation = self._evaluation(facts, budgets[HELD_OUT]) if self.evaluate else None
            return PipelinePlan(budget, shares, plans, evaluation, before)

        if budget.is_infinite:
            exact = {name: without_noise(budget) for name in names}
            evaluation = self._evaluation(facts, budget) if self.evaluate else None
            return PipelinePlan(budget, shares, exact, evaluation, before)
        return shared_plans(budget, {**shares, HELD_OUT: left}, plan_all)

    def _evaluation(self, facts: TableFacts, budget: Budget) -> EvaluationPlan:
        return evaluation_plan(
            budget,
            classes=facts.classes,
            label_range=facts.label_range,
            n_records=facts.of_part(self.evaluate).n_records,
            probabilities=hasattr(self.steps[-1][1], "predict_proba"),
        )

    def facts_met(self, facts: TableFacts) -> dict[str, TableFacts]:
        """Return what is public of the rows that each step meets."""
        met, encoded = {}, not self.encodes
        facts = facts.of_part(1.0 - self.evaluate)  # of those that are learned from
        for name, step in all_steps(self.steps):
            met[name] = facts
            if isinstance(step, SchemaEncoder):
                encoded = True
            elif encoded and name != self.steps[-1][0]:
                if isinstance(step, FeatureMap):
                    clone(step).fit(facts)  # refuses now what does not fit
                facts = facts.through(admitted(name, step))
        return met

    def _spending(self) -> list[str]:
        """Return the names of the steps that learn from records."""
        last = self.steps[-1][1]
        if not spends(last) or not hasattr(last, "fit"):
            raise TypeError(
                f"the last step must be an estimator of tacit, got {type(last).__name__}; its "
                "guarantee is what the pipeline's rests on."
            )
        return [name for name, step in all_steps(self.steps) if spends(step)]


def with_budget(step: Any, budget: Budget) -> Any:
    """Return a copy of a step with a share of the budget."""
    share = {"epsilon": budget.epsilon, "delta": budget.delta, "relation": budget.relation}
    return clone(step).set_params(**share, accountant=None)


def _plan_of(step: Any, facts: TableFacts, budget: Budget, n_records: int | None) -> Planned:
    """Return the plan of a step that meets a table of these facts."""
    told = informed(with_budget(step, budget), facts)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", WeakPromiseWarning)  # said once, of the whole
        plan: Planned = told.plan(len(facts.names), n_records)
    return plan
