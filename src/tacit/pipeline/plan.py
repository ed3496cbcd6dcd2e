"""What a pipeline will run, and what all of it costs together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tacit.engine import Planned, plan_lines
from tacit.metrics.planning import EvaluationPlan
from tacit.pipeline.shares import together
from tacit.privacy import Budget, Event, Parallel


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
        events = {name: plan.event for name, plan in self.steps.items()}
        held_out = None if self.evaluation is None else self.evaluation.event
        return whole_event(events, self.before_the_split, held_out)

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
        return together(list(events.values()))
    learned = together([event for name, event in events.items() if name not in before])
    return together([*(events[name] for name in before), Parallel((learned, held_out))])
