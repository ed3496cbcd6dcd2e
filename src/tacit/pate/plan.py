"""Plan the queries to the teachers and their cost, before any record is read."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.special import ndtri

from tacit import checks
from tacit.engine import plan_lines, without_noise
from tacit.pate.aggregators import AGGREGATORS, Aggregator
from tacit.pate.aggregators.base import MOST_CLASSES
from tacit.pate.teachers import facts_of
from tacit.privacy import Budget, Event, Guarantee
from tacit.privacy.accounting.root_finding import decreasing_root
from tacit.queries import Facts, Slot, composed
from tacit.queries.votes import Votes
from tacit.queries.votes_cost import SmoothValue, Table, VotesCost


@dataclass(frozen=True)
class WorstCase:
    """Report only the worst-case cost, which is charged.

    Examples
    --------
    >>> from tacit.pate.plan import WorstCase
    >>> WorstCase()
    WorstCase()
    """


@dataclass(frozen=True)
class Sanitised:
    """Report a data-dependent cost beside the charge: by Theorem 6, or exactly for two classes.

    Parameters left out follow from the budget. All are fixed before any vote is counted.

    Parameters
    ----------
    order
        The Renyi order of the cost.
    smoothness
        The rate at which its sensitivity may change between neighbours, in logarithms.
    noise_multiplier
        The noise on it, in units of the smooth sensitivity.
    failure
        The probability with which the estimate may be too low.

    Notes
    -----
    **Guarantee**. The cost is released with a `SmoothGaussian`, which is charged in addition to the
    votes' worst case: it never lowers a charge. It is an estimate, too low with
    probability ``failure``, and not a bound.

    Examples
    --------
    >>> from tacit.pate.plan import Sanitised
    >>> from tacit.privacy import Budget
    >>> Sanitised(failure=0.01).fixed_for(Budget(1.0, 1e-5)).order
    24.0
    """

    order: float | None = None
    smoothness: float | None = None
    noise_multiplier: float | None = None
    failure: float = 0.05

    def __post_init__(self) -> None:
        for name in ("order", "smoothness", "noise_multiplier"):
            if getattr(self, name) is not None:
                checks.positive(name, getattr(self, name), least=1.0 if name == "order" else 0.0)
        if not 0.0 < checks.real("failure", self.failure) < 0.5:
            raise ValueError(
                f"failure must be between 0 and 0.5, got {self.failure!r}: it is the probability "
                "with which the estimate may be too low; 0.05 is one in twenty."
            )

    def fixed_for(self, budget: Budget) -> Sanitised:
        """Return a copy with every parameter fixed, from the budget alone.

        Half of epsilon goes to the conversion at the order, log(1/delta) / (a - 1); the
        noise takes a twentieth of it, a / (2 z^2); smoothness is a third of what the order allows.
        """
        order = self.order
        if order is None:
            order = 1.0 + round(math.log(1.0 / budget.delta) / (0.5 * budget.epsilon))
            order = max(order, 2.0)
        smoothness = self.smoothness or math.log1p(1 / (order - 1)) / 6
        multiplier = self.noise_multiplier or math.sqrt(order / (0.1 * budget.epsilon))
        return Sanitised(order, smoothness, multiplier, self.failure)

    @property
    def fixed(self) -> tuple[float, float, float]:
        """The order, smoothness and noise multiplier, once they are fixed."""
        if self.order is None or self.smoothness is None or self.noise_multiplier is None:
            raise ValueError("the parameters are not fixed; call fixed_for(budget) first.")
        return self.order, self.smoothness, self.noise_multiplier

    def query(self, votes: Votes, table: Table) -> SmoothValue:
        """Return the query for the cost, once all parameters are fixed."""
        _, smoothness, multiplier = self.fixed
        margin = -float(ndtri(self.failure))
        return SmoothValue(VotesCost(votes, table), multiplier, smoothness, margin)

    def figure(self, noisy: float, query: SmoothValue, facts: Facts, delta: float) -> SanitisedCost:
        """Convert a noisy answer to epsilon at delta, including the cost of its release."""
        table = query.statistic.table
        a = table.order
        divergence = max(noisy, 0.0) + float(query.event(facts).renyi(np.array([a]))[0])
        epsilon = divergence + math.log1p(-1 / a) - math.log(delta * a) / (a - 1)
        # The conditions of the proof depend on public numbers alone.
        known = max(epsilon, 0.0) if table.conditions_hold() else None
        return SanitisedCost(known, delta, a, self.failure)


@dataclass(frozen=True)
class SanitisedCost:
    """The data-dependent cost of votes: an epsilon that is too low with probability ``failure``.

    ``epsilon`` is None if the conditions of its proof (C5, C6) do not hold: then only the worst
    case is known. Never charge it: it is a noisy estimate.
    """

    epsilon: float | None
    delta: float
    order: float
    failure: float

    def __str__(self) -> str:
        if self.epsilon is None:
            return "the conditions of the data-dependent bound do not hold: see the worst case"
        return (
            f"epsilon {self.epsilon:.3g} at delta {self.delta:g}, from the votes, sanitised; "
            f"an estimate, too low with probability {self.failure:g}; the worst case is charged"
        )


# Shares of agreeing teachers for which a plan predicts the accuracy of answers.
CONSENSUS = (0.6, 0.75, 0.9)


@dataclass(frozen=True)
class PATEPlan:
    """The numbers of teachers, queries and classes, the aggregator and its cost.

    Notes
    -----
    **Guarantee**. It is made from public numbers alone, and `fit` releases only its event.

    Examples
    --------
    >>> from tacit.pate import PATEClassifier
    >>> plan = PATEClassifier(epsilon=1.0, delta=1e-5, n_queries=100).plan(n_classes=10)
    >>> round(plan.settings["noise_std"], 1)
    52.8
    >>> 0.95 < plan.right(consensus=0.75) < 0.955
    True
    """

    aggregator: Aggregator
    n_teachers: int
    n_queries: int
    n_classes: int
    budget: Budget
    accounting: WorstCase | Sanitised = field(default_factory=WorstCase)

    @property
    def name(self) -> str:
        """The name of the aggregator."""
        return without_noise(self.budget).name if self.budget.is_infinite else self.aggregator.name

    @property
    def reason(self) -> str:
        """The aggregation in a sentence."""
        if self.budget.is_infinite:
            return without_noise(self.budget).reason
        return self.aggregator.reason

    @property
    def facts(self) -> Facts:
        """The public facts of the teachers."""
        return facts_of(self.budget.relation)

    @property
    def votes(self) -> Votes:
        """The shape of the votes that all queries read."""
        return Votes(self.n_queries, self.n_teachers, self.n_classes)

    def cost_query(self) -> SmoothValue | None:
        """Return the query for the data-dependent cost, if it is released."""
        how = self.accounting
        if self.budget.is_infinite or not isinstance(how, Sanitised):
            return None
        table = self.aggregator.cost_table(self.votes, how.fixed[0])
        if table is None:
            proved = [each for each in AGGREGATORS if each.cost_table is not Aggregator.cost_table]
            raise ValueError(
                f"accounting='sanitised' is proved for {_named(proved)}; pass one of them, or "
                "accounting='worst_case'."
            )
        return how.query(self.votes, table)

    def slots(self) -> dict[str, Slot]:
        """Return the slots of the answers and of the sanitised cost, if it is released."""
        if self.budget.is_infinite:
            return {}
        slots, cost = self.aggregator.slots(self.votes, self.facts), self.cost_query()
        return slots if cost is None else {**slots, "cost": Slot(cost.event(self.facts))}

    @property
    def event(self) -> Event:
        """The cost of all queries."""
        if self.budget.is_infinite:
            return without_noise(self.budget).event
        return composed(self.slots())

    @property
    def settings(self) -> Mapping[str, float]:
        """The chosen parameters."""
        decided = {} if self.budget.is_infinite else self.aggregator.settings
        return {
            "n_teachers": float(self.n_teachers),
            "n_queries": float(self.n_queries),
            **decided,
        }

    @property
    def rejected(self) -> tuple[str, ...]:
        """The effect of fewer or more queries and teachers."""
        return () if self.budget.is_infinite else tuple(_what_if(self))

    def right(self, consensus: float) -> float:
        """Return the expected share of queries answered by the majority class.

        ``consensus`` is the share of teachers who agree; all others agree on one other class.
        """
        if self.budget.is_infinite:
            return float(consensus > 0.5)
        return self.aggregator.right(consensus, self.n_teachers)

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
        other = plan.aggregator.undecided().planned(plan.budget, n_queries)
        right = other.right(CONSENSUS[1], plan.n_teachers)
        lines.append(f"{n_queries} queries: {right:.1%} right where 75% of teachers agree")
    for factor in (0.5, 2.0):
        n_teachers = max(round(plan.n_teachers * factor), 1)
        right = plan.aggregator.right(CONSENSUS[1], n_teachers)
        lines.append(
            f"{n_teachers} teachers: {right:.1%} right where 75% of them agree, each with "
            f"{1 / factor:g} times the records"
        )
    return lines


def make_plan(
    budget: Budget,
    n_teachers: int,
    n_queries: int,
    n_classes: int,
    aggregator: Aggregator | None,
    accounting: WorstCase | Sanitised,
) -> PATEPlan:
    """Plan from public numbers, or raise if they are invalid.

    Without an aggregator, the one with the least noise of those ``by_default`` is taken: of
    `Majority` and `GNMax` for two classes, `GNMax` for more.
    """
    checks.count("n_teachers", n_teachers, least=1, most=2**31)
    checks.count("n_queries", n_queries)
    checks.count("n_classes", n_classes, least=2, most=MOST_CLASSES)
    if not isinstance(aggregator, Aggregator | None):
        raise TypeError(
            f"aggregator must be an Aggregator, got {aggregator!r}; pass one of "
            f"{_named(AGGREGATORS)} of tacit.pate.aggregators, or None for the one with the least "
            "noise."
        )
    default = [each for each in AGGREGATORS if each.by_default and n_classes <= each.most_classes]
    if aggregator is not None and n_classes > aggregator.most_classes:
        raise ValueError(
            f"{type(aggregator).__name__} decides between {aggregator.most_classes} classes, got "
            f"{n_classes}; pass {_named(default)}."
        )
    tried = [aggregator] if aggregator is not None else [each() for each in default]
    plans = [PATEPlan(each, n_teachers, n_queries, n_classes, budget, accounting) for each in tried]
    if budget.is_infinite:
        return replace(plans[0], accounting=WorstCase())
    made = [_with_noise(plan) for plan in plans]
    return min(made, key=lambda plan: plan.settings.get("noise_std", 0.0))


def _named(kinds: Iterable[type[Aggregator]]) -> str:
    return ", ".join(f"{kind.__name__}()" for kind in kinds)


def _with_noise(plan: PATEPlan) -> PATEPlan:
    """Return the plan with the least noise within its budget, including the sanitised cost."""
    budget, n_queries = plan.budget, plan.n_queries
    if not isinstance(plan.accounting, Sanitised):
        return _checked(replace(plan, aggregator=plan.aggregator.planned(budget, n_queries)))
    if budget.is_pure:
        raise ValueError("a sanitised cost needs a delta above 0; pass accounting='worst_case'.")
    plan = replace(plan, accounting=plan.accounting.fixed_for(budget))

    def whole(share: float) -> PATEPlan:
        part = replace(budget, epsilon=budget.epsilon * share)
        return replace(plan, aggregator=plan.aggregator.planned(part, n_queries))

    def excess(less: float) -> float:
        spent = Guarantee(whole(1.0 / less).event).epsilon(budget.delta)
        return float(np.log(max(spent, 1e-300) / budget.epsilon))

    return _checked(whole(1.0 / decreasing_root(excess, 1.1, 1e-4)))


def _checked(plan: PATEPlan) -> PATEPlan:
    """Refuse given noise that exceeds the budget."""
    spent = Guarantee(plan.event).epsilon(plan.budget.delta)
    if spent > plan.budget.epsilon * (1 + 1e-9):
        raise ValueError(
            f"the noise of {plan.aggregator} costs epsilon {spent:.4g} for {plan.n_queries} "
            f"queries, above the budget of {plan.budget.epsilon:g}; leave the noise out, ask "
            "fewer queries, or raise epsilon."
        )
    return plan
