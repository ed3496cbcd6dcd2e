"""What each rule of a slot allows, and that what it allows costs no more than what was charged."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.privacy import (
    Composed,
    Event,
    Gaussian,
    LinearModelObjective,
    LogCoshObjective,
    LogisticObjective,
    MonotoneObjective,
    PureEpsilon,
    PureObjective,
    Relation,
    SoftmaxObjective,
)
from tacit.privacy.accounting.gaussian_profile import gaussian_delta
from tacit.privacy.events.objective import LossBound, _below_curvature
from tacit.queries import (
    Count,
    CoveredBy,
    Facts,
    GaussianNoise,
    GaussianSum,
    NoisySum,
    OneRecordEach,
    PoissonSample,
    Session,
    Slot,
    composed,
)
from tacit.queries.session import CorrelatedSteps, ExchangedFor, exchanged
from tacit.records import MemoryRecords, Sample
from tacit.records.grouped import PeopleInMemory
from tacit.records.privacy_unit import people_of
from tests.queries.helpers import BOUNDS, FACTS, records

ADD = Relation.ADD_REMOVE
OBJECTIVES: list[Any] = [
    LogisticObjective(1.0, 10.0, 3.7),
    MonotoneObjective(1.0, 0.25, 10.0, 3.8),
    LinearModelObjective(1.0, 0.25, 10.0, 4.0),
    LogCoshObjective(1.0, 1.0, 2.0, 3.9),
    SoftmaxObjective(1.0, 5, 71.0, 5.9),
    PureObjective(1.0, 0.25, 10.0, 1.0, 2),
]


def session(slots: dict[str, Slot], facts: Facts = FACTS, of: Any = None) -> Session:
    return Session(records() if of is None else of, facts, composed(slots), slots)


def count(multiplier: float) -> NoisySum:
    return NoisySum(Count(), GaussianNoise(multiplier))


def noise_of(event: Any) -> str:
    return "noise_radius" if isinstance(event, PureObjective) else "noise_std"


# Sums of Gaussians.


def test_gaussians_add_up_to_one() -> None:
    one = session({"all": Slot(Gaussian(1.0), GaussianSum())})
    one.ask(count(2.0), "all")
    one.ask(count(2.0), "all")
    one.ask(count(math.sqrt(2.0) * (1 + 1e-15)), "all")
    with pytest.raises(RuntimeError, match="as often as mu"):
        one.ask(count(1e6), "all")
    assert one.close() == Gaussian(1.0)


@given(st.lists(st.floats(0.5, 50.0), min_size=1, max_size=8), st.floats(0.5, 5.0))
def test_no_sum_is_above_what_was_charged(multipliers: list[float], planned: float) -> None:
    rule, answered = GaussianSum(), Counter[Event]()
    for z in multipliers:
        if rule.allows(Gaussian(planned), Gaussian(z), answered):
            answered[Gaussian(z)] += 1
    spent = math.fsum(n / event.noise_multiplier**2 for event, n in answered.items())  # type: ignore[attr-defined]
    assert spent <= 1 / planned**2


def test_not_the_least_is_added_to_a_sum_that_is_full() -> None:
    """Floats do not tell 1/16 + 1e-18 from 1/16; fractions do."""
    answered = Counter[Event]({Gaussian(4.0): 1})
    assert GaussianSum().allows(Gaussian(4.0), Gaussian(4.0), Counter())
    assert not GaussianSum().allows(Gaussian(4.0), Gaussian(1e9), answered)


@pytest.mark.parametrize("price", [PureEpsilon(1e-6), Gaussian(1e3, Relation.REPLACE)])
def test_only_gaussians_under_the_same_relation_add_up(price: Event) -> None:
    assert not GaussianSum().allows(Gaussian(1.0), price, Counter())


# Events that cover others.


@pytest.mark.parametrize("event", OBJECTIVES, ids=lambda event: event.kind)
def test_what_covers(event: Any) -> None:
    noise = noise_of(event)
    more = replace(event, **{noise: getattr(event, noise) * 1.5})
    stronger = replace(event, regularization=event.regularization * 1.5)
    assert event.covers(event)
    assert event.covers(more)
    assert event.covers(stronger)
    assert not more.covers(event)
    assert not stronger.covers(event)
    # a little less noise, or a little less ridge, is not covered
    assert not event.covers(replace(event, **{noise: getattr(event, noise) * (1 - 1e-12)}))
    assert not event.covers(replace(event, regularization=event.regularization * (1 - 1e-12)))
    for other in OBJECTIVES:
        if other is not event:
            assert not event.covers(other)
    pair = Composed((event, Gaussian(50.0)))
    assert pair.covers(Composed((more, Gaussian(50.0))))
    assert not pair.covers(Composed((more, Gaussian(49.0))))
    assert not pair.covers(more)
    assert not Composed((more,)).covers(Composed((event,)))


def test_a_rank_and_a_number_of_classes_count() -> None:
    softmax, pure = OBJECTIVES[4], OBJECTIVES[5]
    assert not softmax.covers(replace(softmax, n_classes=6))
    assert not pure.covers(replace(pure, rank=3))
    assert pure.covers(replace(pure, rank=1))
    assert not OBJECTIVES[0].covers(replace(OBJECTIVES[0], relation=Relation.REPLACE))


@pytest.mark.parametrize("event", OBJECTIVES, ids=lambda event: event.kind)
@pytest.mark.parametrize("factors", [(1.1, 1.0), (1.0, 1.3), (2.0, 1.5), (1.01, 4.0), (8.0, 1.0)])
def test_what_is_covered_costs_no_more(event: Any, factors: tuple[float, float]) -> None:
    noise = noise_of(event)
    other = replace(
        event,
        **{noise: getattr(event, noise) * factors[0]},
        regularization=event.regularization * factors[1],
    )
    assert event.covers(other)
    epsilon = np.linspace(-3.0, 6.0, 91)
    assert np.all(other.profile(epsilon) <= event.profile(epsilon) * (1 + 1e-9) + 1e-15)
    orders = np.array([1.01, 1.5, 2.0, 4.0, 16.0, 64.0])
    # What an event states of a log cosh is a bound that need not fall with the noise.
    exact = log_cosh_renyi if isinstance(event, LogCoshObjective) else type(event).renyi
    assert np.all(exact(other, orders) <= event.renyi(orders) * (1 + 1e-9))


def log_cosh_renyi(event: Any, orders: Any) -> Any:
    """Return log E exp((a-1) X) / (a-1) by integration over |Z|, X as `profile` describes it."""
    z, step = np.linspace(0.0, 40.0, 400_001, retstep=True)
    mu, k = event.lipschitz / event.noise_std, event.smoothness / event.regularization
    e, c = max(k - mu**2 / 2, 0.0), math.log1p(k)
    middle = k + (mu * z) ** 2 / (4 * max(e, 1e-300))
    x = np.where(mu * z < 2 * e, middle, mu * z + mu**2 / 2)
    x = np.where(mu * z < 2 * (e - math.sqrt(c * e)), c + mu * z + mu**2 / 2, x)
    density = math.sqrt(2 / math.pi) * np.exp(-(z**2) / 2)
    return np.array(
        [np.log(step * np.sum(np.exp((a - 1) * x) * density)) / (a - 1) for a in orders]
    )


EPSILON = np.linspace(0.0, 12.0, 121)


def least_logistic_profile(event: LogisticObjective) -> Any:
    """Return the lesser of the two bounds that hold for any parameters; a plan states one by k."""
    mu, stretch = event.row_norm / event.noise_std, event.row_norm**2 / event.regularization
    k = stretch - mu**2 / 2
    if k <= 0.0:
        return gaussian_delta(mu, EPSILON)
    u = min(2 / mu**2 - 1 / stretch, 0.25)
    fixed = LossBound(math.log1p(u * stretch) - u * mu**2 / 2, ((1.0, mu),)).delta(EPSILON)
    low = _below_curvature(mu, k, np.minimum(EPSILON, k))
    return np.minimum(fixed, np.where(k <= EPSILON, gaussian_delta(mu, EPSILON), low))


@pytest.mark.parametrize("seed", range(4))
def test_logistic_noise_that_is_covered_costs_no_more_wherever_its_bound_changes(seed: int) -> None:
    """At 0 and 2 the event changes its bound (docs/proofs/objective_perturbation.md, section 13).

    For epsilon below 0 both directions follow from these.
    """
    rng = np.random.default_rng(seed)
    for _ in range(100):
        mu = 10 ** rng.uniform(-2.3, 0.9)
        stretch = mu**2 / 2 + rng.choice([rng.uniform(-0.1, 0.1), rng.uniform(1.7, 2.6), 10.0])
        if stretch <= 0.0:
            continue
        less = rng.choice([1.0, 0.999, 0.9, 0.3], 2)
        planned = LogisticObjective(1.0, 1 / stretch, 1 / mu)
        adapted = LogisticObjective(1.0, 1 / (stretch * less[1]), 1 / (mu * less[0]))
        bound = planned.profile(EPSILON) * (1 + 1e-7) + 1e-12
        assert np.all(least_logistic_profile(adapted) <= bound)


def test_an_adapted_question_is_asked_once_and_must_be_asked() -> None:
    event = OBJECTIVES[0]
    rule = CoveredBy()
    assert rule.allows(event, event, Counter())
    assert not rule.allows(event, event, Counter({event: 1}))
    assert not rule.is_met(Counter())
    assert rule.is_met(Counter({event: 1}))


# Gaussian questions in the place of others.


def slots_to_exchange() -> dict[str, Slot]:
    slots = {
        "weights": Slot(Composed((OBJECTIVES[0], Gaussian(200.0))), CoveredBy()),
        "trace": Slot(Gaussian(40.0)),
    }
    return {**slots, "steps": exchanged(slots, ("weights", "trace"))}


def test_an_exchange_is_for_what_its_slots_dominate() -> None:
    slot = slots_to_exchange()["steps"]
    assert isinstance(slot.event, Gaussian)
    mu2 = (1 / 3.7) ** 2 + 1 / 200.0**2 + 1 / 40.0**2
    assert 1 / slot.event.noise_multiplier**2 == pytest.approx(mu2, rel=1e-11, abs=0.0)
    assert 1 / slot.event.noise_multiplier**2 < mu2
    assert composed(slots_to_exchange()).relation is ADD  # what is exchanged is charged once


def test_what_is_exchanged_is_not_asked_too() -> None:
    slots = slots_to_exchange()
    one = session(slots)
    one.ask(count(10.0), "steps")
    for name in ("weights", "trace"):
        with pytest.raises(RuntimeError, match="what was paid for it"):
            one.ask(count(40.0), name)
    assert one.close() == composed(slots)


def test_what_was_asked_is_not_exchanged() -> None:
    one = session(slots_to_exchange())
    one.ask(count(40.0), "trace")
    with pytest.raises(RuntimeError, match="one of which was asked"):
        one.ask(count(10.0), "steps")


def test_an_exchange_that_nobody_derived_is_refused() -> None:
    slots = slots_to_exchange()
    slots["steps"] = Slot(Gaussian(1.0), ExchangedFor(("weights", "trace")))
    with pytest.raises(RuntimeError, match="can be exchanged for"):
        session(slots)


@pytest.mark.parametrize(
    "event", [OBJECTIVES[5], LogisticObjective(1.0, 10.0, 3.7, Relation.REPLACE)]
)
def test_only_what_dominates_a_gaussian_is_exchanged(event: Event) -> None:
    with pytest.raises(ValueError, match="not known to dominate"):
        exchanged({"weights": Slot(event, CoveredBy())}, ("weights",))


# Sequences, samples, views and children.


def test_a_sequence_is_charged_once_for_all_its_steps() -> None:
    slots = {"steps": Slot(Gaussian(2.0), CorrelatedSteps(3))}
    assert composed(slots) == Gaussian(2.0)
    one = session(slots)
    for _ in range(3):
        one.ask(count(2.0), "steps")
    with pytest.raises(RuntimeError, match="in up to 3 steps"):
        one.ask(count(2.0), "steps")


def sampled_slots(rate: float) -> dict[str, Slot]:
    return {"steps": Slot(GaussianNoise(2.0).event(replace(FACTS, sampling_rate=rate)))}


def test_a_sample_is_asked_once() -> None:
    sampled = session(sampled_slots(0.5)).on(PoissonSample(0.5))
    assert sampled.ask(count(2.0), "steps") < 60
    with pytest.raises(RuntimeError, match="a Poisson sample twice"):
        sampled.ask(count(2.0), "steps")


def test_all_records_are_no_sample() -> None:
    with pytest.raises(RuntimeError, match="what was paid for it"):
        session(sampled_slots(0.5)).ask(count(2.0), "steps")


def test_a_sample_costs_the_rate_that_its_records_say() -> None:
    class Twice(MemoryRecords):
        def poisson_sample(self, rate: float, words: Any) -> Sample:
            return super().poisson_sample(2 * rate, words)

    one = session(sampled_slots(0.25), of=Twice(np.zeros((9, 2)), None, BOUNDS))
    with pytest.raises(RuntimeError, match="what was paid for it"):
        one.on(PoissonSample(0.25)).ask(count(2.0), "steps")


def test_a_view_that_was_forgotten_is_refused() -> None:
    """Where one record of each person is promised, all of their records are not handed over."""
    people = PeopleInMemory(np.zeros((4, 2)), None, BOUNDS, people_of(["a", "a", "b", "b"]))
    facts = Facts(BOUNDS, 2, Relation.ADD_REMOVE_PERSON)
    slots = {"count": Slot(GaussianNoise(2.0).event(facts))}
    with pytest.raises(ValueError, match="OneRecordEach"):
        session(slots, facts, people)
    summed = session(slots, replace(facts, sums_by_person=True), people)
    assert summed.on(OneRecordEach()).facts == facts
    with pytest.raises(ValueError, match="grouped by person"):
        session(slots, replace(facts, sums_by_person=True))


class Part:
    """A plan that is part of another."""

    def __init__(self, multiplier: float) -> None:
        self.event, self.facts = Gaussian(multiplier), FACTS

    def slots(self) -> dict[str, Slot]:
        return {"count": Slot(self.event)}


def test_a_child_closes_by_itself() -> None:
    one = session({"part": Slot(Gaussian(2.0)), "count": Slot(Gaussian(3.0))})
    child = one.child("part", Part(2.0))
    child.ask(count(2.0), "count")
    assert child.close() == Gaussian(2.0)
    one.ask(count(3.0), "count")
    one.close()


def test_a_child_that_was_not_closed_withholds_the_release() -> None:
    one = session({"part": Slot(Gaussian(2.0))})
    one.child("part", Part(2.0)).ask(count(2.0), "count")
    with pytest.raises(RuntimeError, match="begun and not closed"):
        one.close()


def test_a_child_costs_what_its_slot_says() -> None:
    with pytest.raises(RuntimeError, match="what was paid for it"):
        session({"part": Slot(Gaussian(2.0))}).child("part", Part(1.9))
