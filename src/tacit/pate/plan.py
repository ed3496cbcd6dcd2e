"""What will be asked of the teachers, and what it will cost, before any record is read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from tacit import checks
from tacit.engine import plan_lines
from tacit.pate.accounting import Sanitised, SeveralClasses, TwoClasses, WorstCase
from tacit.pate.accounting.smooth import Table
from tacit.pate.aggregators import Aggregator, Confident, GNMax, LNMax, Majority
from tacit.privacy import Budget, Composed, Event, Guarantee, NonPrivate
from tacit.privacy.roots import decreasing_root

MOST_CLASSES = 65_535
# Shares of agreeing teachers at which a plan says what it would answer.
CONSENSUS = (0.6, 0.75, 0.9)


@dataclass(frozen=True)
class PATEPlan:
    """How teachers are asked: how many of each there are, how votes are added up, at what cost.

    Notes
    -----
    **Guarantee**. It is made from public numbers alone, and `fit` releases what its event says.

    Examples
    --------
    >>> from tacit.pate import PATEClassifier
    >>> plan = PATEClassifier(epsilon=1.0, delta=1e-5, n_queries=100).plan(n_classes=10)
    >>> round(plan.settings["noise_std"], 1)
    52.8
    >>> 0.95 < plan.right(consensus=0.75) < 0.955
    True
    """

    aggregator: GNMax | LNMax | Confident | Majority
    n_teachers: int
    n_queries: int
    n_classes: int
    budget: Budget
    accounting: WorstCase | Sanitised = field(default_factory=WorstCase)

    @property
    def name(self) -> str:
        """How votes are added up, in a word."""
        return self.aggregator.name if not self.budget.is_infinite else "exact"

    @property
    def reason(self) -> str:
        """What is done with votes."""
        if self.budget.is_infinite:
            return "no noise: the budget is infinite"
        return self.aggregator.reason

    @property
    def event(self) -> Event:
        """The cost: of the answers, and of the sanitised figure if one is told."""
        relation = self.budget.relation
        if self.budget.is_infinite:
            return NonPrivate("the budget is infinite", relation=relation)
        answers = self.aggregator.event(self.n_queries, relation)
        if isinstance(self.accounting, Sanitised):
            return Composed((answers, self.accounting.event(relation)))
        return answers

    @property
    def settings(self) -> Mapping[str, float]:
        """The numbers that were decided."""
        decided = {} if self.budget.is_infinite else self.aggregator.settings
        return {
            "n_teachers": float(self.n_teachers),
            "n_queries": float(self.n_queries),
            **decided,
        }

    @property
    def rejected(self) -> tuple[str, ...]:
        """What fewer or more queries and teachers would do."""
        return () if self.budget.is_infinite else tuple(_what_if(self))

    def right(self, consensus: float) -> float:
        """Return the expected share of queries answered as most teachers would.

        ``consensus`` is the share of teachers who agree, all others agreeing on something else.
        """
        if self.budget.is_infinite:
            return float(consensus > 0.5)
        return self.aggregator.right(consensus, self.n_teachers)

    def table(self) -> Table | None:
        """Return how the votes' own cost is computed at the order that will be told, if any."""
        if not isinstance(self.accounting, Sanitised) or self.accounting.order is None:
            return None
        if isinstance(self.aggregator, Majority) and self.aggregator.noise_std is not None:
            lead = self.aggregator.lead_needed(self.n_teachers) - self.n_teachers
            order = self.accounting.order
            return TwoClasses(self.aggregator.noise_std, self.n_teachers, order, lead)
        if isinstance(self.aggregator, GNMax) and self.aggregator.noise_std is not None:
            order = self.accounting.order
            return SeveralClasses(self.aggregator.noise_std, self.n_classes, order)
        return None

    def __str__(self) -> str:
        shares = ", ".join(
            f"{self.right(share):.1%} where {share:.0%} of teachers agree" for share in CONSENSUS
        )
        return "\n".join(plan_lines(self, f"right answers expected: {shares}"))


def _what_if(plan: PATEPlan) -> list[str]:
    """Return one line for half and twice the queries, and for half and twice the teachers."""
    lines = []
    for factor in (0.5, 2.0):
        n_queries = max(round(plan.n_queries * factor), 1)
        other = replace(plan, n_queries=n_queries, aggregator=_undecided(plan.aggregator))
        noise = other.aggregator.planned(plan.budget, n_queries)
        right = noise.right(CONSENSUS[1], plan.n_teachers)
        lines.append(f"{n_queries} queries: {right:.1%} right where 75% of teachers agree")
    for factor in (0.5, 2.0):
        n_teachers = max(round(plan.n_teachers * factor), 1)
        right = plan.aggregator.right(CONSENSUS[1], n_teachers)
        lines.append(
            f"{n_teachers} teachers: {right:.1%} right where 75% of them agree, each with "
            f"{1 / factor:g} times the records"
        )
    return lines


def _undecided(aggregator: Aggregator) -> GNMax | LNMax | Confident | Majority:
    if isinstance(aggregator, Confident):
        return replace(aggregator, noise_std=None, threshold_noise_std=None)
    if isinstance(aggregator, LNMax):
        return LNMax()
    return Majority(cut=aggregator.cut) if isinstance(aggregator, Majority) else GNMax()


def make_plan(
    budget: Budget,
    n_teachers: int,
    n_queries: int,
    n_classes: int,
    aggregator: GNMax | LNMax | Confident | Majority | None,
    accounting: WorstCase | Sanitised,
) -> PATEPlan:
    """Return the plan of public numbers, or say what is wrong with them.

    Without an aggregator, two classes are decided by whichever of `Majority` and `GNMax` needs less
    noise, and more by `GNMax`.
    """
    checks.count("n_teachers", n_teachers, least=1, most=2**31)
    checks.count("n_queries", n_queries)
    checks.count("n_classes", n_classes, least=2, most=MOST_CLASSES)
    if not isinstance(aggregator, (GNMax, LNMax, Confident, Majority, type(None))):
        raise TypeError(
            f"aggregator must add up votes, got {aggregator!r}; pass GNMax(), LNMax(), "
            "Confident(...) or Majority() of tacit.pate, or None for the one with the least noise."
        )
    if isinstance(aggregator, Majority) and n_classes != 2:
        raise ValueError(
            f"Majority decides between 2 classes, got {n_classes}; pass aggregator=GNMax()."
        )
    tried = (aggregator,) if aggregator is not None else _candidates(n_classes)
    plans = [PATEPlan(each, n_teachers, n_queries, n_classes, budget, accounting) for each in tried]
    if budget.is_infinite:
        return replace(plans[0], accounting=WorstCase())
    made = [_with_noise(plan) for plan in plans]
    return min(made, key=lambda plan: plan.settings.get("noise_std", 0.0))


def _candidates(n_classes: int) -> tuple[GNMax | Majority, ...]:
    return (Majority(), GNMax()) if n_classes == 2 else (GNMax(),)


def _with_noise(plan: PATEPlan) -> PATEPlan:
    """Return the plan with the least noise within its budget, the sanitised figure included."""
    budget, n_queries = plan.budget, plan.n_queries
    if not isinstance(plan.accounting, Sanitised):
        return _checked(replace(plan, aggregator=plan.aggregator.planned(budget, n_queries)))
    if budget.is_pure:
        raise ValueError("a sanitised figure needs a delta above 0; pass accounting='worst_case'.")
    plan = replace(plan, accounting=plan.accounting.fixed_for(budget))

    def whole(share: float) -> PATEPlan:
        part = replace(budget, epsilon=budget.epsilon * share)
        return replace(plan, aggregator=plan.aggregator.planned(part, n_queries))

    def excess(less: float) -> float:
        spent = Guarantee(whole(1.0 / less).event).epsilon(budget.delta)
        return float(np.log(max(spent, 1e-300) / budget.epsilon))

    return _checked(whole(1.0 / decreasing_root(excess, 1.1, 1e-4)))


def _checked(plan: PATEPlan) -> PATEPlan:
    """Refuse noise that was given and is not within the budget."""
    spent = Guarantee(plan.event).epsilon(plan.budget.delta)
    if spent > plan.budget.epsilon * (1 + 1e-9):
        raise ValueError(
            f"the noise of {plan.aggregator} costs epsilon {spent:.4g} for {plan.n_queries} "
            f"queries, above the budget of {plan.budget.epsilon:g}; leave the noise out, ask "
            "fewer queries, or raise epsilon."
        )
    if isinstance(plan.accounting, Sanitised) and plan.table() is None:
        raise ValueError(
            "accounting='sanitised' is proved for GNMax and Majority; pass one of them, or "
            "accounting='worst_case'."
        )
    return plan
