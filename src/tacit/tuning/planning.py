"""Plan a search before any record is read: the budget of each candidate's trial."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tacit.engine import Plan, without_noise
from tacit.privacy import BestOf, Budget, Event, Gaussian, Guarantee, PureEpsilon
from tacit.privacy.accounting.gaussian_profile import gaussian_epsilon, gaussian_mu
from tacit.privacy.accounting.number_of_trials import TriesLaw
from tacit.privacy.accounting.root_finding import decreasing_root
from tacit.queries import AtMost, GaussianNoise, LaplaceNoise, Slot
from tacit.queries.base import plain_facts
from tacit.queries.session import BestOfTries, InParts, Questions, best_of

PlanFit = Callable[[Mapping[str, Any], Budget], Event]
ScoreNoise = GaussianNoise | LaplaceNoise

# Use 97 % of the budget (mu or epsilon) of a single run, so that non-Gaussian candidates fit too.
_SHARE = 0.97
_MOST_ROUNDS = 40


@dataclass(frozen=True)
class Try:
    """A candidate, the budget of its fit, and the event of that fit."""

    parameters: Mapping[str, Any]
    budget: Budget
    fit: Event

    @property
    def questions(self) -> Questions:
        """The queries allowed on the records of the fit."""
        return Questions(plain_facts(self.fit.relation), {"fit": Slot(self.fit)})

    def scored(self, score: Event) -> InParts:
        """Plan a fit to one part of the records, and a score on the other.

        A fit that fails after its charge is not scored.
        """
        scoring = Questions(self.questions.facts, {"score": Slot(score, AtMost())})
        return InParts((self.questions, scoring))


@dataclass(frozen=True)
class Tries:
    """All candidates, the noise of a score, and the event of the search.

    ``noise`` is None if scores have no noise; ``score`` is the event of a score, or None if no
    records are held out.
    """

    each: tuple[Try, ...]
    noise: ScoreNoise | None
    score: Event | None
    event: Event
    noise_factor: float


def plan_tries(
    candidates: tuple[Mapping[str, Any], ...],
    plan_fit: PlanFit,
    budget: Budget,
    law: TriesLaw,
    *,
    scored: bool,
) -> Tries:
    """Find the largest budgets of trials that keep the search within its own budget.

    Parameters
    ----------
    plan_fit
        Returns the event of a fit with a candidate's parameters, within a budget.
    scored
        Whether a trial includes a private score.
    """
    if budget.is_infinite:
        return _without_noise(candidates, budget, scored)
    facts = plain_facts(budget.relation)
    alone, size = _one_run(budget, law)
    size = size.scaled(_SHARE)
    run = _run_noise(size, budget).event(facts)
    each = [_fitting(candidate, plan_fit, budget, law, size, run) for candidate in candidates]
    for _ in range(_MOST_ROUNDS):
        noise = _run_noise(size, budget) if scored else None
        score = None if noise is None else noise.event(facts)
        tried = (one.fit if score is None else one.scored(score).event for one in each)
        event = best_of(tried, law).event
        over = _over(event, budget)
        if over <= 1.0:
            return Tries(tuple(each), noise, score, event, alone / size.amount)
        factor = _less_than(over)
        size = size.scaled(factor)
        each = [_tried(one.parameters, plan_fit, _less(one.budget, factor)) for one in each]
    raise ValueError(
        f"no budget of a trial brings the search within {budget}: raise epsilon or delta, or leave "
        "out candidates with little regularization."
    )


@dataclass(frozen=True)
class _Size:
    """The cost limit of a run: a Gaussian mu or a pure epsilon, and the delta of its budget."""

    amount: float
    delta: float

    def scaled(self, factor: float) -> _Size:
        return _Size(self.amount * factor, self.delta)

    @property
    def epsilon(self) -> float:
        return gaussian_epsilon(self.amount, self.delta) if self.delta else self.amount


def _one_run(budget: Budget, law: TriesLaw) -> tuple[float, _Size]:
    """Return the mu, or epsilon, of a fit without search, and of a trial."""
    if budget.is_pure:

        def excess(x: float) -> float:
            run = PureEpsilon(1 / x, budget.relation)
            return BestOf(run, law).pure_epsilon() - budget.epsilon

        least = decreasing_root(excess, 2 / budget.epsilon, 1e-4)
        if math.isinf(least):
            raise ValueError(
                f"{law} has no pure guarantee; pass a delta, or a law that may try once."
            )
        return budget.epsilon, _Size(1 / least, 0.0)
    alone = gaussian_mu(budget.epsilon, budget.delta)
    at = np.array([budget.epsilon])

    def over(z: float) -> float:
        found = BestOf(Gaussian(z, budget.relation), law).profile(at)
        return math.log(max(float(found[0]), 1e-300) / budget.delta) if found is not None else 0.0

    z = decreasing_root(over, 1.5 / alone, 1e-4, 0.3)
    # The tail of a run's profile matters at this delta, since about E K runs happen.
    return alone, _Size(1 / z, budget.delta / max(law.mean, 1.0))


def _fitting(
    parameters: Mapping[str, Any],
    plan_fit: PlanFit,
    budget: Budget,
    law: TriesLaw,
    size: _Size,
    run: Event,
) -> Try:
    """Lower a candidate's budget until it and a typical run together are within the budget."""
    own = Budget(size.epsilon, size.delta, budget.relation)
    for _ in range(_MOST_ROUNDS):
        one = _tried(parameters, plan_fit, own)
        over = _over(best_of((one.fit, run), law).event, budget)
        if over <= 1.0:
            return one
        own = _less(own, _less_than(over))
    raise ValueError(
        f"a trial with {dict(parameters)} cannot be brought within {budget}: raise epsilon or "
        "delta, or leave this candidate out."
    )


def _over(event: Event, budget: Budget) -> float:
    """Return the ratio of an event's epsilon to the budget's, at least 1."""
    promise = Guarantee(event)
    if not budget.is_pure and promise.delta(budget.epsilon) <= budget.delta:
        return 1.0
    return max(promise.epsilon(budget.delta) / budget.epsilon, 1.0)


def _less_than(over: float) -> float:
    """Return a factor for budgets; costs fall more slowly than budgets if others remain."""
    return min(max(over**-2, 0.1), 0.99)


def _tried(parameters: Mapping[str, Any], plan_fit: PlanFit, budget: Budget) -> Try:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # warned once, for the whole search
        return Try(parameters, budget, plan_fit(parameters, budget))


def _less(budget: Budget, factor: float) -> Budget:
    return Budget(budget.epsilon * factor, budget.delta, budget.relation)


def _run_noise(size: _Size, budget: Budget) -> ScoreNoise:
    return LaplaceNoise(size.amount) if budget.is_pure else GaussianNoise(1 / size.amount)


def _without_noise(
    candidates: tuple[Mapping[str, Any], ...], budget: Budget, scored: bool
) -> Tries:
    event = without_noise(budget).event
    each = tuple(Try(candidate, budget, event) for candidate in candidates)
    return Tries(each, None, event if scored else None, event, 1.0)


def plan_of(tries: Tries, budget: Budget, law: TriesLaw) -> Plan:
    """Describe the plan of a search: its noise, and that of a fit without search."""
    epsilons = [one.budget.epsilon for one in tries.each]
    delta = tries.each[0].budget.delta
    notes = (
        f"the best of K fits, K secret with mean {law.mean:.3g} ({law}), among "
        f"{len(tries.each)} candidates",
        f"noise is {tries.noise_factor:.3g} times that of one fit without a search, which would "
        f"have epsilon {budget.epsilon:g} and delta {budget.delta:g} for itself",
        f"a try has epsilon {_span(epsilons)} at delta {delta:.3g}"
        + (", its score too" if tries.score is not None else "; its score is public"),
    )
    return Plan(
        "private_search",
        tries.event,
        budget,
        "the best of a secret number of private fits is released, and nothing of the others",
        {"mean_tries": law.mean, "noise_factor": tries.noise_factor, "try_epsilon": min(epsilons)},
        notes=notes,
        facts=plain_facts(budget.relation),
        paid={"best": Slot(tries.event, BestOfTries())},
    )


def _span(values: list[float]) -> str:
    low, high = min(values), max(values)
    return f"{low:.3g}" if high <= low * 1.001 else f"{low:.3g} to {high:.3g}"
