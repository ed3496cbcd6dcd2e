"""Balance classes: count the records of each class privately, then weight rare classes up."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from tacit.arrays import Array
from tacit.erm.minimization import choose_plan
from tacit.erm.plan import (
    NUMBER_SHARE,
    CannotSolve,
    Counted,
    Mechanism,
    NoiseError,
    Plan,
    Problem,
    Solved,
)
from tacit.noise import Norm
from tacit.privacy import Budget, Composed, Guarantee, Relation
from tacit.privacy.accounting.gaussian_profile import gaussian_epsilon
from tacit.queries import ClassCounts, Facts, LaplaceNoise, NoisySum, Session, Slot
from tacit.queries.noise import split_epsilon, split_gaussian
from tacit.queries.session import Reweighted
from tacit.records import RecordSource
from tacit.records.reweighted import ClassWeights, ReweightedRecords

# Limit on the weight n / (K count) of a class.
GREATEST_WEIGHT = 10.0
# For budgets that are neither pure nor Gaussian throughout: lower epsilon by 0.1 % until the
# composition fits.
_STEP, _MOST_STEPS = 0.999, 100
_SETTING = "epsilon_after_counting"
_SHARES = {"classes": NUMBER_SHARE, "weights": None}


@dataclass(frozen=True)
class Balanced(Mechanism):
    """Run another mechanism over records that are weighted by the rarity of their class.

    The counts of the classes take a hundredth of the budget, with Gaussian noise, or Laplace noise
    for a pure budget. A class of count c gets the weight n / (K c), at most 10. All weights are
    divided by the greatest of them, so that no record weighs more than 1.

    Guarantee: the event composes those of the counts and of the other mechanism, and is within the
    budget.

    Parameters
    ----------
    inner
        The other mechanism, or its name.

    Examples
    --------
    >>> from tacit.erm import Balanced, Objective, Problem
    >>> from tacit.erm.losses import LogisticLoss
    >>> from tacit.privacy import Budget
    >>> from tacit.records import Bounds
    >>> objective = Objective(LogisticLoss(), Bounds(n_classes=2, max_weight=1.0))
    >>> plan = Balanced("noisy_gradient").plan(Problem(objective, 20), Budget(1.0, 1e-6))
    >>> round(plan.settings["epsilon_after_counting"], 3)
    0.995
    """

    inner: str | Mechanism = "auto"

    title = "Balanced classes"
    is_named = False
    counts_classes = True

    def __post_init__(self) -> None:
        # Take the other mechanism's name: plans and reports compare where the noise is added.
        own = self.inner if isinstance(self.inner, str) else self.inner.name
        object.__setattr__(self, "name", own)

    def plan(self, problem: Problem, budget: Budget) -> Plan:
        """Plan the other mechanism with the budget that the counts leave."""
        if problem.objective.bounds.n_classes is None:
            raise CannotSolve("there are no classes to balance; leave class_weight out.")
        counts, rest = _class_counts(budget).event(problem.facts(budget.relation)), _rest(budget)
        for _ in range(_MOST_STEPS):
            inner = choose_plan(problem, rest, self.inner)
            event = Composed((counts, inner.event))
            if Guarantee(event).epsilon(budget.delta) <= budget.epsilon:
                return replace(
                    inner,
                    mechanism=Balanced(inner.mechanism),
                    budget=budget,
                    event=event,
                    reason=f"{inner.reason}; classes are counted first",
                    settings={**inner.settings, _SETTING: rest.epsilon},
                )
            rest = replace(rest, epsilon=rest.epsilon * _STEP)
        raise CannotSolve("no plan fits the budget after counting the classes; raise epsilon.")

    def slots(self, plan: Plan) -> dict[str, Slot]:
        """Return the slot of the counts, and the slots of the other mechanism's plan."""
        counts = _class_counts(plan.budget).event(plan.facts)
        return {"classes": Slot(counts), "weights": Slot(self._inner(plan).event)}

    def solve(self, plan: Plan, session: Session) -> Solved:
        """Count the classes, weight the records, and run the other mechanism."""
        query, inner = _class_counts(plan.budget), self._inner(plan)
        counts = np.asarray(session.ask(query, "classes"))
        std = query.noise_std(session.facts)
        shares = balanced_shares(counts, std)
        child = session.on(Reweighted(ClassWeights(shares))).child("weights", inner)
        solved = inner.solve(child)
        child.close()
        total, of_total = float(counts.sum()), std * math.sqrt(counts.size)
        least = max(total - 2 * of_total, 1.0)
        count = Counted(max(total, of_total, 1.0), least, total, of_total)
        return Solved(solved.weights, count=count, slope_bound=solved.slope_bound)

    def _inner(self, plan: Plan) -> Plan:
        """Return the part of a plan that belongs to the other mechanism."""
        assert isinstance(plan.event, Composed), "made by plan"
        assert not isinstance(self.inner, str), "made by plan"
        settings = {name: v for name, v in plan.settings.items() if name != _SETTING}
        return replace(
            plan,
            mechanism=self.inner,
            budget=replace(plan.budget, epsilon=plan.settings[_SETTING]),
            event=plan.event.events[1],
            settings=settings,
        )

    def noise_in_words(self, plan: Plan, number: Callable[[float], str]) -> str:
        """Describe the other mechanism's noise, and the noise of the counts."""
        inner = self._inner(plan)
        std = number(_class_counts(plan.budget).noise_std(plan.facts))
        return (
            f"{inner.mechanism.noise_in_words(inner, number)} The number of records of each class "
            f"is counted first, with noise of standard deviation {std}."
        )

    def noise_error(self, plan: Plan, weight_norm: float | None) -> NoiseError:
        """Return the other mechanism's error bars."""
        inner = self._inner(plan)
        return inner.mechanism.noise_error(inner, weight_norm)


def balanced_exactly(records: RecordSource) -> ReweightedRecords:
    """Return records weighted by the exact counts of their classes, without any privacy."""
    facts = Facts(records.bounds, records.n_features, Relation.ADD_REMOVE)
    shares = balanced_shares(ClassCounts().total(records, facts), 0.0)
    return ReweightedRecords(records, ClassWeights(shares))


def balanced_shares(counts: Array, noise_std: float) -> tuple[float, ...]:
    """Return the weight n / (K count) of every class, divided by the greatest weight.

    A count below its noise carries no information and is raised to the noise. A count is also
    raised so far that no class has a weight above 10.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.erm.mechanisms.balanced import balanced_shares
    >>> balanced_shares(np.array([900.0, 100.0]), 5.0)
    (0.1111111111111111, 1.0)
    """
    known = np.maximum(counts, max(noise_std, 1.0))
    known = np.maximum(known, known.sum() / (len(known) * GREATEST_WEIGHT))
    return tuple((known.min() / known).tolist())


def _class_counts(budget: Budget) -> NoisySum:
    """Return a query for the counts at a hundredth of mu squared, or of a pure epsilon."""
    if budget.is_pure:
        epsilon = split_epsilon(budget.epsilon, _SHARES)["classes"]
        return NoisySum(ClassCounts(Norm.L1), LaplaceNoise(epsilon))
    return NoisySum(ClassCounts(), split_gaussian(budget, _SHARES)["classes"])


def _rest(budget: Budget) -> Budget:
    """Return the budget that the counts leave: exact if Gaussian or pure, else a first guess."""
    if budget.is_pure:
        return replace(budget, epsilon=split_epsilon(budget.epsilon, _SHARES)["weights"])
    rest = split_gaussian(budget, _SHARES)["weights"]
    return replace(budget, epsilon=gaussian_epsilon(1 / rest.multiplier, budget.delta))
