"""Classes that count alike: each is counted first, and its records weigh as it is rare."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from tacit.erm.counting import COUNT_MULTIPLE
from tacit.erm.laws import Solved
from tacit.erm.objective import moved
from tacit.erm.plan import CannotSolve, Mechanism, NoiseError, Plan, Problem
from tacit.erm.planner import choose_plan
from tacit.noise import Norm
from tacit.privacy import Budget, Composed, Guarantee, Relation
from tacit.privacy.gaussian_profile import gaussian_epsilon, gaussian_mu
from tacit.queries import (
    ClassCounts,
    Facts,
    GaussianNoise,
    LaplaceNoise,
    NoisySum,
    Reweighted,
    Session,
    Slot,
)
from tacit.records import ClassWeights, RecordSource, ReweightedRecords

Array = npt.NDArray[np.float64]

# n / (K count) is the weight of a class, and never more than this.
GREATEST_WEIGHT = 10.0
# Of a budget that is not Gaussian throughout, what is left after the counts is sought in steps.
_STEP, _MOST_STEPS = 0.999, 100
_SETTING = "epsilon_after_counting"


@dataclass(frozen=True)
class Balanced(Mechanism):
    """Another mechanism, over records weighted by how rare their class is.

    The classes are counted with a hundredth of the budget, with Gaussian noise, or Laplace noise
    for a pure budget. A class of count c gets the weight n / (K c), at most 10, and all weights are
    divided by the greatest of them, so that no record weighs more than 1.

    Guarantee: the event is that of the counts and that of the other mechanism, composed; it is
    within the budget.

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
        # It goes by the other's name: where noise is put is what plans and reports compare.
        own = self.inner if isinstance(self.inner, str) else self.inner.name
        object.__setattr__(self, "name", own)

    def plan(self, problem: Problem, budget: Budget) -> Plan:
        """Plan the other mechanism within what the counts leave of the budget."""
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
        raise CannotSolve("no plan is within the budget after counting the classes; raise epsilon.")

    def slots(self, plan: Plan) -> dict[str, Slot]:
        """Return the counts, and the other mechanism's plan."""
        counts = _class_counts(plan.budget).event(plan.facts)
        return {"classes": Slot(counts), "weights": Slot(self._inner(plan).event)}

    def solve(self, plan: Plan, session: Session) -> Solved:
        """Count the classes, weight the records, and go on."""
        query, inner = _class_counts(plan.budget), self._inner(plan)
        counts = np.asarray(session.ask(query, "classes"))
        shares = balanced_shares(counts, _noise_std(plan.budget))
        child = session.on(Reweighted(ClassWeights(shares))).child("weights", inner)
        solved = inner.solve(child)
        child.close()
        return Solved(solved.weights)

    def _inner(self, plan: Plan) -> Plan:
        """Return the other mechanism's own part of a plan."""
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
        """Return what the other mechanism says, and what counting costs."""
        inner = self._inner(plan)
        std = number(_noise_std(plan.budget))
        return (
            f"{inner.mechanism.noise_in_words(inner, number)} The number of records of each class "
            f"is counted first, with noise of standard deviation {std}."
        )

    def noise_error(self, plan: Plan, weight_norm: float | None) -> NoiseError:
        """Return what the other mechanism says."""
        inner = self._inner(plan)
        return inner.mechanism.noise_error(inner, weight_norm)


def balanced_exactly(records: RecordSource) -> ReweightedRecords:
    """Return records weighted by the exact counts of their classes: for no privacy at all."""
    facts = Facts(records.bounds, records.n_features, Relation.ADD_REMOVE)
    shares = balanced_shares(ClassCounts().total(records, facts), 0.0)
    return ReweightedRecords(records, ClassWeights(shares))


def balanced_shares(counts: Array, noise_std: float) -> tuple[float, ...]:
    """Return n / (K count) of every class, over the greatest of them.

    A count below the noise in it says nothing, and none counts as less than would give its class a
    weight of more than 10.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.erm.balanced import balanced_shares
    >>> balanced_shares(np.array([900.0, 100.0]), 5.0)
    (0.1111111111111111, 1.0)
    """
    known = np.maximum(counts, max(noise_std, 1.0))
    known = np.maximum(known, known.sum() / (len(known) * GREATEST_WEIGHT))
    return tuple((known.min() / known).tolist())


def _class_counts(budget: Budget) -> NoisySum:
    """Return the counts with a hundredth of mu squared, or of a pure epsilon."""
    if budget.is_pure:
        return NoisySum(ClassCounts(Norm.L1), LaplaceNoise(budget.epsilon / COUNT_MULTIPLE**2))
    return NoisySum(ClassCounts(), GaussianNoise(_count_multiplier(budget)))


def _count_multiplier(budget: Budget) -> float:
    return COUNT_MULTIPLE / gaussian_mu(budget.epsilon, budget.delta)


def _noise_std(budget: Budget) -> float:
    if budget.is_pure:
        return math.sqrt(2) * moved(budget.relation) * COUNT_MULTIPLE**2 / budget.epsilon
    return math.sqrt(moved(budget.relation)) * _count_multiplier(budget)


def _rest(budget: Budget) -> Budget:
    """Return what the counts leave, exactly where all is Gaussian or pure, and a guess elsewhere.

    As mu^2 = (mu / 10)^2 + (1 - 1/100) mu^2.
    """
    share = (1 - COUNT_MULTIPLE**-2) * (1 - 2.0**-30)
    if budget.is_pure:
        return replace(budget, epsilon=budget.epsilon * share)
    mu = gaussian_mu(budget.epsilon, budget.delta) * math.sqrt(share)
    return replace(budget, epsilon=gaussian_epsilon(mu, budget.delta))
