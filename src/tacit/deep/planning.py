"""Plan a training: noise for a number of steps, or steps for a noise.

The cost is also listed by epoch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from tacit import checks
from tacit.deep.clipping import Clip
from tacit.engine import Plan, without_noise
from tacit.privacy import Budget, Event, Guarantee, Repeated, SampledGaussian
from tacit.privacy.accounting.calibration import least_noise
from tacit.privacy.accounting.composition import RenyiRoute
from tacit.queries import AtMost, Facts, GaussianNoise, Slot
from tacit.records import Bounds

_MOST_STEPS = 10_000_000


@dataclass(frozen=True)
class Sampling:
    """Poisson sampling: each record is in a batch with probability batch_size / n_records.

    Parameters
    ----------
    n_records
        An approximate public number of records.
    batch_size
        The average batch size.

    Examples
    --------
    >>> from tacit.deep.planning import Sampling
    >>> Sampling(60_000, 600).rate
    0.01
    """

    n_records: int
    batch_size: int

    def __post_init__(self) -> None:
        checks.count("n_records", self.n_records, remedy="pass an approximate public number.")
        checks.count("batch_size", self.batch_size)

    @property
    def rate(self) -> float:
        """The probability that a record is in a batch."""
        return min(1.0, self.batch_size / self.n_records)

    @property
    def steps_per_epoch(self) -> int:
        """The number of steps that see as many records as there are, on average."""
        return max(1, round(1 / self.rate))


@dataclass(frozen=True)
class EpochCost:
    """The epsilon of training up to the end of an epoch."""

    epoch: int
    n_steps: int
    epsilon: float


def plan_training(
    sampling: Sampling,
    budget: Budget,
    clip: Clip,
    *,
    n_steps: int | None = None,
    noise_multiplier: float | None = None,
) -> Plan:
    """Plan a training within a budget, from public facts alone.

    With ``n_steps`` the noise is calibrated to them. With ``noise_multiplier`` the budget
    determines the number of steps, at most ``n_steps`` if both are given.

    Examples
    --------
    >>> from tacit.deep import FlatClip
    >>> from tacit.deep.planning import Sampling, plan_training
    >>> from tacit.privacy import Budget
    >>> sampling, budget = Sampling(60_000, 600), Budget(0.947, 1e-5)
    >>> plan = plan_training(sampling, budget, FlatClip(1.0), noise_multiplier=4.0)
    >>> int(plan.settings["n_steps"])
    10001
    """
    if n_steps is None and noise_multiplier is None:
        raise ValueError(
            "pass n_steps, for which noise is calibrated, or noise_multiplier, "
            "with which training goes on until the budget is spent."
        )
    if n_steps is not None:
        checks.count("n_steps", n_steps)
    check_budget(budget)
    if budget.is_infinite:
        if n_steps is None:
            raise ValueError("epsilon is infinite: no number of steps spends it; pass n_steps.")
        z, exact = 0.0, without_noise(budget)
        event, reason = exact.event, exact.reason
    elif noise_multiplier is None:
        assert n_steps is not None
        planned: int = n_steps
        z = least_noise(lambda z: _event(_step(z, sampling, budget), planned), budget)
        reason = f"noise calibrated to {n_steps} steps"
    else:
        z = checks.positive(
            "noise_multiplier", noise_multiplier, remedy="leave it out to train a number of steps."
        )
        n_steps = _paid_for(z, sampling, budget, n_steps)
        reason = "as many steps as the budget pays for, or as were asked for"
    if not budget.is_infinite:
        event = _event(_step(z, sampling, budget), n_steps)
    settings = {
        "n_steps": n_steps,
        "sampling_rate": sampling.rate,
        "batch_size": sampling.batch_size,
        "steps_per_epoch": sampling.steps_per_epoch,
        "clip": clip.max_grad_norm,
        "noise_multiplier": z,
    }
    return Plan("noisy_network", event, budget, reason, settings)


def with_slots(plan: Plan) -> Plan:
    """Return a plan with the slots of its training: at most as many steps as charged."""
    event, facts = plan.event, facts_of(plan.budget)
    if not isinstance(event, Repeated):
        return replace(plan, facts=facts)
    return replace(plan, facts=facts, paid={"steps": Slot(event.event, AtMost(event.count))})


def epsilon_by_epoch(plan: Plan, epochs: Sequence[int] | None = None) -> list[EpochCost]:
    """Return the cost of a training after every epoch, or after some of them.

    Examples
    --------
    >>> from tacit.deep import FlatClip
    >>> from tacit.deep.planning import Sampling, epsilon_by_epoch, plan_training
    >>> from tacit.privacy import Budget
    >>> plan = plan_training(Sampling(60_000, 600), Budget(2, 1e-5), FlatClip(), n_steps=300)
    >>> [cost.n_steps for cost in epsilon_by_epoch(plan)]
    [100, 200, 300]
    """
    if not isinstance(plan.event, Repeated) or not isinstance(plan.event.event, SampledGaussian):
        raise ValueError("the plan has no steps on Poisson samples, so there is no cost by epoch.")
    n_steps, step = plan.event.count, plan.event.event
    each = int(plan.settings["steps_per_epoch"])
    last = math.ceil(n_steps / each)
    chosen_epochs = range(1, last + 1) if epochs is None else epochs
    wanted = [
        checks.count("epochs", epoch, remedy="pass some of 1, 2, 3 ...") for epoch in chosen_epochs
    ]
    made = [(epoch, min(epoch * each, n_steps)) for epoch in wanted]
    return [EpochCost(e, n, Guarantee(_event(step, n)).epsilon(plan.budget.delta)) for e, n in made]


def check_budget(budget: Budget) -> None:
    """Refuse a budget for which Poisson sampling is not proved."""
    if budget.is_pure and not budget.is_infinite:
        raise ValueError("training adds Gaussian noise, which needs delta > 0; set delta.")
    if budget.relation.by_person:
        raise ValueError(
            "gradients are clipped per record, which does not protect a person with several "
            "records (unit, relation 'add_remove_person'); use one record of each person, or fit a "
            "linear model of tacit.linear_model, which protects people."
        )
    if not budget.relation.adds_or_removes:
        raise ValueError(
            "each step draws a Poisson sample, which is proved for relation 'add_remove' only; "
            "use it, or OrderedTrainer for 'replace'."
        )


def facts_of(budget: Budget) -> Facts:
    """Return the public facts of a network's records: the clip alone bounds a contribution."""
    return Facts(Bounds(), 0, budget.relation)


def _step(z: float, sampling: Sampling, budget: Budget) -> Event:
    return GaussianNoise(z).event(replace(facts_of(budget), sampling_rate=sampling.rate))


def _event(step: Event, n_steps: int) -> Repeated:
    """Return the event of several steps."""
    return Repeated(step, n_steps)


def _paid_for(z: float, sampling: Sampling, budget: Budget, wanted: int | None) -> int:
    """Return the wanted number of steps, or the largest number within a budget."""
    step = _step(z, sampling, budget)

    def fits(n: int) -> bool:
        return Guarantee(_event(step, n)).epsilon(budget.delta) <= budget.epsilon

    renyi = RenyiRoute(((step, 1),))

    def surely_fits(n: int) -> bool:
        return replace(renyi, leaves=((step, n),)).epsilon(budget.delta) <= budget.epsilon

    if wanted is not None and fits(wanted):
        return wanted
    if not fits(1):
        raise ValueError(
            f"one step with noise_multiplier={z:g} costs more than the budget "
            f"({budget}); raise noise_multiplier or the budget."
        )
    # The Renyi bound is fast and close, so it gives the start of the exact search.
    start = _greatest(surely_fits, 1, _MOST_STEPS)
    return _greatest(fits, start, _MOST_STEPS)


def _greatest(fits: Callable[[int], bool], low: int, most: int) -> int:
    """Return the largest number that fits, starting from one that fits."""
    step = max(1, low // 4)
    high = low + step
    while high < most and fits(high):
        low, step = high, 2 * step
        high = low + step
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low
