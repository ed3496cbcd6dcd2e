"""What a pipeline will run, and what all of it costs together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tacit.engine import Planned, plan_lines
from tacit.metrics.planning import EvaluationPlan
from tacit.privacy import Budget, Event
from tacit.queries import ChildPlan, Facts, InParts, Questions, Slot, composed, plain_facts

HELD_OUT = "held__out"  # beside the names of steps; no step may have such a name


@dataclass(frozen=True)
class PipelinePlan:
    """What each step of a pipeline will release, and what all of it costs."""

    budget: Budget
    shares: Mapping[str, float]
    steps: Mapping[str, Planned]
    evaluation: EvaluationPlan | None = None
    before_the_split: tuple[str, ...] = ()  # steps that learn from the records held out, too
    name: str = "pipeline"
    reason: str = "several steps share one budget, and are charged at once"
    rejected: tuple[str, ...] = ()

    @property
    def event(self) -> Event:
        """What all steps cost together."""
        return composed(self.slots())

    @property
    def facts(self) -> Facts:
        """What is public of the table: each step knows more of what it meets."""
        return plain_facts(self.budget.relation)

    def slots(self) -> Mapping[str, Slot]:
        """Return what was paid for each step, and for the parts if some records are held out."""
        return _slots(self._events(), self.before_the_split, self.parts)

    @property
    def parts(self) -> InParts | None:
        """What is asked of the records to learn from, and of those held out, if any are."""
        if self.evaluation is None:
            return None
        return _parts(self._events(), self.before_the_split, self.evaluation)

    def _events(self) -> dict[str, Event]:
        return {name: plan.event for name, plan in self.steps.items()}

    @property
    def settings(self) -> Mapping[str, float]:
        """The part of the budget that each step has."""
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
    """Return what steps cost together, where some of the records may be held out.

    A record is either held out or learned from, except by the steps ``before`` the split.
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
