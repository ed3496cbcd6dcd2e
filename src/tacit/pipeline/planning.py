"""Plan all steps of a pipeline and their total cost, before a record is read."""

from __future__ import annotations

import copy
import inspect
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sklearn.base import clone

from tacit.engine import Planned, plan_lines, without_noise
from tacit.estimators.parameters import with_table_facts
from tacit.metrics.planning import EvaluationPlan, evaluation_plan
from tacit.pipeline.budget_shares import checked_shares, shared_plans
from tacit.pipeline.steps import admitted, prepared, spends
from tacit.preprocessing import PrivateQuantileBounds, PrivateVocabulary
from tacit.privacy import Budget, Event
from tacit.privacy.budget import WeakPromiseWarning
from tacit.queries import Facts, Slot, composed
from tacit.queries.base import plain_facts
from tacit.queries.prepaid import rehearse
from tacit.queries.session import ChildPlan, InParts, Questions
from tacit.schema import SchemaEncoder
from tacit.table_facts import TableFacts

HELD_OUT = "held__out"  # a slot beside the steps; step names cannot contain "__"


@dataclass(frozen=True)
class PipelinePlan:
    """The planned releases of all steps, and their total cost."""

    budget: Budget
    shares: Mapping[str, float]
    steps: Mapping[str, Planned]
    evaluation: EvaluationPlan | None = None
    before_the_split: tuple[str, ...] = ()  # steps that also learn from the held-out records
    name: str = "pipeline"
    reason: str = "several steps share one budget, and are charged at once"
    rejected: tuple[str, ...] = ()

    @property
    def event(self) -> Event:
        """The event of all steps together."""
        return composed(self.slots())

    @property
    def facts(self) -> Facts:
        """The public facts of the table; each step derives further facts of its input."""
        return plain_facts(self.budget.relation)

    def slots(self) -> Mapping[str, Slot]:
        """Return a slot for each step, and slots for the parts if records are held out."""
        return _slots(self._events(), self.before_the_split, self.parts)

    @property
    def parts(self) -> InParts | None:
        """The plans on the training records and on the held-out records, if any."""
        if self.evaluation is None:
            return None
        return _parts(self._events(), self.before_the_split, self.evaluation)

    def _events(self) -> dict[str, Event]:
        return {name: plan.event for name, plan in self.steps.items()}

    @property
    def settings(self) -> Mapping[str, float]:
        """The share of the budget of each step."""
        return self.shares

    def __str__(self) -> str:
        lines = plan_lines(self)[:1]
        for name, plan in self.steps.items():
            budget = plan.budget
            lines.append(
                f"{name}: {self.shares[name]:.0%} of the budget, epsilon {budget.epsilon:.3g} and "
                f"delta {budget.delta:.1g} by itself"
            )
            lines += [f"  {line}" for line in str(plan).splitlines()]
        if self.evaluation is not None:
            lines.append(
                "evaluation: on records held out, which are in no other part: it costs nothing more"
            )
            lines += [f"  {line}" for line in str(self.evaluation).splitlines()]
        return "\n".join(lines)


def whole_event(
    events: Mapping[str, Event], before: Sequence[str], held_out: Event | None
) -> Event:
    """Return the event of all steps, with parallel composition if records are held out.

    A record is either held out or used for training, except by the steps ``before`` the split.
    """
    if held_out is None:
        return composed(_slots(events, before, None))
    evaluation = Questions(plain_facts(held_out.relation), {"sums": Slot(held_out)})
    return composed(_slots(events, before, _parts(events, before, evaluation)))


def _parts(events: Mapping[str, Event], before: Sequence[str], evaluation: ChildPlan) -> InParts:
    learned = {name: Slot(event) for name, event in events.items() if name not in before}
    return InParts((Questions(evaluation.facts, learned), evaluation))


def _slots(
    events: Mapping[str, Event], before: Sequence[str], parts: InParts | None
) -> dict[str, Slot]:
    if parts is None:
        return {name: Slot(event) for name, event in events.items()}
    return {**{name: Slot(events[name]) for name in before}, HELD_OUT: Slot(parts.event)}


def check_budgets(pipeline: Any) -> None:
    """Refuse a last step without a budget, and budgets that would not count.

    Either the pipeline has the budget, or, if its ``epsilon`` is None, the estimator has it.
    """
    last = pipeline.steps[-1][1]
    own = last.get_params(deep=False) if hasattr(last, "get_params") else {}
    plans = hasattr(last, "plan") or pipeline.epsilon is None
    if "epsilon" not in own or not plans or not hasattr(last, "fit"):
        raise TypeError(
            f"the last step must be an estimator of tacit, got {type(last).__name__}; the "
            "pipeline's guarantee needs its event."
        )
    if pipeline.epsilon is None:
        _check_estimator_alone(pipeline)
        return
    for name, step in pipeline.steps:
        for parameter in ("epsilon", "accountant") if spends(step) else ():
            if not _is_set(step, parameter):
                continue
            value = getattr(step, parameter)
            shown = repr(value) if parameter == "epsilon" else f"a {type(value).__name__}"
            raise ValueError(
                f"step {name!r} ({type(step).__name__}) has {parameter}={shown} of its own, "
                "but the budget is the pipeline's, for all steps together; pass "
                f"{parameter}=... to the pipeline, and shares={{{name!r}: ...}} for how much "
                "of it the step gets."
            )


def _check_estimator_alone(pipeline: Any) -> None:
    first = pipeline.steps[0][1]
    if isinstance(first, SchemaEncoder):
        first.schema.refuse_open()
    for name, step in pipeline.steps[:-1]:
        if spends(step):
            raise ValueError(
                f"epsilon is None, but step {name!r} ({type(step).__name__}) learns from the "
                "records too, and needs a share of the budget; pass epsilon=... to the "
                "pipeline, and none to its steps."
            )
    for name in ("delta", "relation", "shares", "evaluate", "accountant", "random_state"):
        if _is_set(pipeline, name):
            raise ValueError(
                f"{name} of the pipeline is set, but epsilon is None: the estimator has its "
                f"own budget; pass epsilon=... to the pipeline too, or {name} to the estimator."
            )


def _is_set(model: Any, parameter: str) -> bool:
    """Return whether a parameter is neither None nor the default of its class."""
    value = getattr(model, parameter, None)
    default = inspect.signature(type(model).__init__).parameters.get(parameter)
    return value is not None and (default is None or value != default.default)


Steps = list[tuple[str, Any]]


def all_steps(steps: Steps) -> Steps:
    """Return the steps, including those that learn open bounds and words of the schema."""
    (name, first), *rest = steps
    if not isinstance(first, SchemaEncoder):
        return list(steps)
    words: dict[str | int, int] = dict(first.schema.open_words.items())
    numbers = list(first.schema.open_numbers)
    before = [(f"{name} words", PrivateVocabulary(words))] if words else []
    bounds = f"{name} bounds"  # exists in a pipeline that was loaded from a file
    open_numbers = numbers and bounds not in dict(rest)
    after = [(bounds, PrivateQuantileBounds(columns=numbers))] if open_numbers else []
    return [*before, (name, first), *after, *rest]


@dataclass(frozen=True)
class Planner:
    """Divide a pipeline's budget among its private steps, and plan each.

    Parameters
    ----------
    steps
        The steps of the pipeline.
    encodes
        Whether the first step encodes tables.
    shares
        The shares of the budget, by step name.
    evaluate
        The share of the records to hold out.
    weighted
        Whether the records have weights; without them a ``max_weight`` that is declared has no
        effect.
    """

    steps: Steps
    encodes: bool
    shares: Mapping[str, float] | None
    evaluate: float
    weighted: bool = True

    def planned(self, facts: TableFacts, budget: Budget, n_records: int | None) -> PipelinePlan:
        """Plan a fit to a table with these public facts."""
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
                name: self._plan_of(steps[name], met[name], budgets[name], n_records)
                for name in names
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
        """Return the public facts of the input rows of each step."""
        met, encoded = {}, not self.encodes
        facts = facts.of_part(1.0 - self.evaluate)  # of the training records
        for name, step in all_steps(self.steps):
            met[name] = facts
            if isinstance(step, SchemaEncoder):
                encoded = True
            elif encoded and name != self.steps[-1][0]:
                prepared(name, step, facts)  # raises now if the facts do not fit
                facts = facts.through(admitted(name, step))
        return met

    def rehearse(self, plan: PipelinePlan, facts: TableFacts) -> None:
        """Run the fit of each step up to its charge, so that it raises now what it would then.

        A plan does not see every parameter of a step. No record is read.
        """
        steps, met = dict(all_steps(self.steps)), self.facts_met(facts)
        for name, own in plan.steps.items():
            if isinstance(steps[name], PrivateVocabulary) or own.budget.is_infinite:
                continue
            step = with_budget(steps[name], own.budget).set_params(random_state=None)
            who = f"step {name!r}"
            rehearse(step, met[name], own.event, own.budget, who, weighted=self.weighted)

    def _plan_of(
        self, step: Any, facts: TableFacts, budget: Budget, n_records: int | None
    ) -> Planned:
        """Plan a step on a table with these facts."""
        step_with_facts = with_table_facts(with_budget(step, budget), facts)
        if not self.weighted:
            step_with_facts = without_weights(step_with_facts)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", WeakPromiseWarning)  # warned once, for the whole
            plan: Planned = step_with_facts.plan(len(facts.names), n_records)
        return plan

    def _spending(self) -> list[str]:
        """Return the names of the steps that learn from records."""
        return [name for name, step in all_steps(self.steps) if spends(step)]


def with_budget(step: Any, budget: Budget) -> Any:
    """Return a copy of a step with its share of the budget."""
    share = {"epsilon": budget.epsilon, "delta": budget.delta, "relation": budget.relation}
    return clone(step).set_params(**share, accountant=None)


def without_weights(step: Any) -> Any:
    """Return a copy of a step for records without weights: what bounds them has no effect."""
    if getattr(step, "max_weight", None) is None:
        return step
    return copy.copy(step).set_params(max_weight=None)
