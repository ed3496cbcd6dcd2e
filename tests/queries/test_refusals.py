"""What rules, sessions and views refuse, case by case, at the edge of what they allow."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from tacit.noise import Norm, recording
from tacit.noise.release import Decision
from tacit.privacy import (
    Budget,
    Composed,
    Event,
    Gaussian,
    LogisticObjective,
    NonPrivate,
    PureEpsilon,
    Relation,
    Repeated,
)
from tacit.privacy.guarantee import Booking
from tacit.queries import (
    AtMost,
    Count,
    CoveredBy,
    Exactly,
    Facts,
    GaussianNoise,
    GaussianSum,
    NoisySum,
    OneRecordEach,
    PoissonSample,
    SecondMoment,
    Session,
    Slot,
    SphereNoise,
    composed,
    split_budget,
)
from tacit.queries.moments import LeastEigenvalue
from tacit.queries.session import CorrelatedSteps, ExchangedFor, Reweighted, exchanged
from tacit.queries.votes import GreatestCounts, Leads, Votes
from tacit.records import Bounds, MemoryRecords
from tacit.records.grouped import PeopleInMemory
from tacit.records.privacy_unit import people_of
from tacit.records.reweighted import ClassWeights
from tests.queries.helpers import BOUNDS, FACTS, records

PERSON = Facts(BOUNDS, 2, Relation.ADD_REMOVE_PERSON)
CLASSES = Bounds(row_norm=1.0, n_classes=2)
SHARES = ClassWeights((1.0, 0.5))


def count(multiplier: float) -> NoisySum:
    return NoisySum(Count(), GaussianNoise(multiplier))


def labelled() -> MemoryRecords:
    return MemoryRecords(np.zeros((4, 2)), np.array([1.0, 1.0, -1.0, 1.0]), CLASSES)


def people() -> PeopleInMemory:
    labels = np.array([1.0, 1.0, -1.0, 1.0])
    return PeopleInMemory(np.zeros((4, 2)), labels, CLASSES, people_of(["a", "a", "b", "b"]))


def session(slots: dict[str, Slot], facts: Facts = FACTS, of: Any = None) -> Session:
    return Session(records() if of is None else of, facts, composed(slots), slots)


# Rules.

PRICE = Gaussian(2.0)
NONE: Counter[Event] = Counter()


@pytest.mark.parametrize("rule", [Exactly(3), AtMost(3), CorrelatedSteps(3)])
def test_a_price_is_the_planned_one_and_asked_so_often(rule: Any) -> None:
    assert rule.allows(PRICE, PRICE, NONE)
    assert rule.allows(PRICE, PRICE, Counter({PRICE: 2}))
    assert not rule.allows(PRICE, PRICE, Counter({PRICE: 3}))
    for other in (Gaussian(1.9), Gaussian(2.1), PureEpsilon(1e-9)):
        assert not rule.allows(PRICE, other, NONE)


def test_what_is_adapted_is_covered_and_asked_so_often() -> None:
    planned = LogisticObjective(1.0, 10.0, 3.7)
    more, less = replace(planned, noise_std=3.8), replace(planned, noise_std=3.6)
    assert CoveredBy().allows(planned, more, NONE)
    assert not CoveredBy().allows(planned, less, NONE)
    assert not CoveredBy().allows(planned, more, Counter({more: 1}))


def test_a_run_of_any_length_may_end() -> None:
    for rule in (AtMost(3), GaussianSum(), ExchangedFor(("a",)), CorrelatedSteps(3)):
        assert rule.is_met(NONE)
    for once in (Exactly(), CoveredBy()):
        assert not once.is_met(NONE)
        assert once.is_met(Counter({PRICE: 1}))


def test_a_rule_says_how_often_it_is_charged() -> None:
    """Once unless it says more; what is asked in the place of others is charged with them."""
    for rule in (Exactly(), AtMost(), GaussianSum(), CoveredBy(), CorrelatedSteps(5)):
        assert rule.n_charged == 1
        assert composed({"a": Slot(PRICE, rule)}) == PRICE
    slots = {"a": Slot(PRICE), "b": Slot(Gaussian(3.0))}
    both = Composed((PRICE, Gaussian(3.0)))
    assert composed({**slots, "instead": exchanged(slots, ("a", "b"))}) == both


def test_no_gaussian_is_within_an_event_of_another_kind() -> None:
    for rule in (GaussianSum(), ExchangedFor(("a",))):
        assert not rule.allows(PureEpsilon(1.0), Gaussian(100.0), NONE)


def test_what_is_asked_several_times_is_exchanged_for_as_much() -> None:
    slots = {"a": Slot(Repeated(Gaussian(2.0), 3), Exactly(5))}
    event = exchanged(slots, ("a",)).event
    assert isinstance(event, Gaussian)
    assert 1 / event.noise_multiplier**2 == pytest.approx(15 / 4, rel=1e-11)
    assert 1 / Fraction(event.noise_multiplier) ** 2 < Fraction(15, 4)


@pytest.mark.parametrize("names", [("a", "a"), ("b", "a", "b")])
def test_a_slot_is_not_exchanged_twice_at_once(names: tuple[str, ...]) -> None:
    slots = {"a": Slot(PRICE), "b": Slot(PRICE)}
    with pytest.raises(RuntimeError, match="exchanged twice"):
        session({**slots, "instead": exchanged(slots, names)})


def test_a_slot_is_not_exchanged_for_two_others() -> None:
    slots = {"a": Slot(PRICE), "b": Slot(PRICE)}
    wide, narrow = exchanged(slots, ("a", "b")), exchanged(slots, ("a",))
    with pytest.raises(RuntimeError, match="exchanged twice"):
        session({**slots, "wide": wide, "narrow": narrow})
    apart = {"one": exchanged(slots, ("a",)), "two": exchanged(slots, ("b",))}
    run = session({**slots, **apart})
    run.ask(count(3.0), "one")
    run.ask(count(3.0), "two")
    assert run.close() == Composed((PRICE, PRICE))


# Sessions.


def test_what_another_session_holds_is_not_asked() -> None:
    slots = {"steps": Slot(GaussianNoise(2.0).event(replace(FACTS, sampling_rate=0.5)))}
    one = session(slots)
    everybody = one.hold(Count())
    with pytest.raises(RuntimeError, match="another session or view holds"):
        one.on(PoissonSample(0.5)).ask(count(2.0), "steps", of=everybody)
    first = one.on(PoissonSample(0.5))
    sampled = first.hold(Count())
    with pytest.raises(RuntimeError, match="another session or view holds"):
        one.on(PoissonSample(0.5)).ask(count(2.0), "steps", of=sampled)
    assert first.ask(count(2.0), "steps", of=sampled) < 60
    one.close()


@pytest.mark.parametrize(
    ("held", "asked"),
    [
        (SecondMoment(), Count()),
        (Count(), SecondMoment()),
        (Count(), LeastEigenvalue()),
        (Votes(5, 4, 3), Count()),
        (Votes(5, 4, 3), Votes(1, 4, 3)),
        (Votes(5, 4, 3), GreatestCounts(1, 4, 3)),
        (Votes(5, 4, 3), Leads(5, 4)),
    ],
    ids=str,
)
def test_what_is_held_for_another_statistic_is_not_asked(held: Any, asked: Any) -> None:
    """A matrix, or counts of many queries, would get the noise of one number."""
    slots = {"sum": Slot(PRICE)}
    source: Any = [np.zeros(5, dtype=int)] * 4 if isinstance(held, Votes) else records()
    one = Session(source, FACTS, PRICE, slots)
    with pytest.raises(RuntimeError, match="asked of what is held for"):
        one.ask(NoisySum(asked, GaussianNoise(2.0)), "sum", of=one.hold(held))


def test_what_is_held_is_the_same_in_every_norm() -> None:
    one = session({"count": Slot(PRICE)})
    assert one.ask(count(2.0), "count", of=one.hold(Count(Norm.L1))) < 90


def test_a_session_knows_where_its_charge_is_written() -> None:
    written = Booking("0" * 32, 7, "a" * 64)
    slots = {"count": Slot(PRICE)}
    assert Session(records(), FACTS, PRICE, slots, booking=written).booking == written
    assert session(slots).booking is None


def test_people_may_be_anybody_where_nothing_is_promised() -> None:
    one = Session(people(), replace(PERSON, bounds=CLASSES), NonPrivate("the budget is inf"), {})
    assert one.without_noise(lambda view: view.n_features) == 2


def test_decisions_are_on_the_tape() -> None:
    with recording() as tape:
        session({"count": Slot(PRICE)}).decide("steps", 7)
    assert tape.entries == [Decision("steps", 7)]


class Part:
    """A plan that is part of another."""

    def __init__(self, max_weight: float | None) -> None:
        self.event = PRICE
        self.facts = replace(FACTS, bounds=replace(CLASSES, max_weight=max_weight))

    def slots(self) -> dict[str, Slot]:
        return {"count": Slot(PRICE)}


@pytest.mark.parametrize(
    ("own", "weighted", "expected"),
    [(None, False, None), (2.0, False, 2.0), (None, True, 1.0), (2.0, True, 2.0)],
)
def test_a_child_of_weighted_records_has_weights(
    own: float | None, weighted: bool, expected: float | None
) -> None:
    one = session({"part": Slot(PRICE)}, replace(FACTS, bounds=CLASSES), labelled())
    one = one.on(Reweighted(SHARES)) if weighted else one
    assert one.child("part", Part(own)).facts.bounds.max_weight == expected


# Views, and the unit that is protected.


def test_records_of_nobody_are_one_each_as_they_are() -> None:
    one = session({"count": Slot(PRICE)})
    assert 30 < one.on(OneRecordEach()).ask(count(2.0), "count") < 70


def test_records_of_nobody_may_be_weighted() -> None:
    one = session({"count": Slot(PRICE)}, replace(FACTS, bounds=CLASSES), labelled())
    assert one.on(Reweighted(SHARES)).facts.bounds.max_weight == 1.0


@pytest.mark.parametrize("times", [1, 2])
def test_weights_do_not_hide_people(times: int) -> None:
    """All of a person's records, weighted, are neither one each nor clipped sums."""
    slots = {"count": Slot(GaussianNoise(2.0).event(PERSON))}
    facts = replace(PERSON, bounds=CLASSES, sums_by_person=True)
    one = session(slots, facts, people())
    hidden: Any = people()
    for _ in range(times):
        hidden = Reweighted(SHARES).apply(hidden, facts, None)[0]  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="grouped by person"):
        session(slots, replace(facts, sums_by_person=False), hidden)
    with pytest.raises(ValueError, match="grouped by person"):
        one.on(Reweighted(SHARES))
    one_each = one.on(OneRecordEach()).on(Reweighted(SHARES))
    assert not one_each.facts.sums_by_person


def test_only_people_have_sums() -> None:
    with pytest.raises(ValueError, match=r"needs Relation\.ADD_REMOVE_PERSON"):
        replace(FACTS, sums_by_person=True)
    assert replace(PERSON, sums_by_person=True).sums_by_person


# Shares of a budget.


def test_a_budget_may_be_given_away_in_full() -> None:
    assert set(split_budget(Budget(1.0), {"a": 0.5, "b": 0.5})) == {"a", "b"}
    assert set(split_budget(Budget(1.0, 1e-6), {"a": 0.5, "b": 0.5})) == {"a", "b"}


def test_the_rest_of_a_budget_is_rounded_down() -> None:
    """1 - 1e-17 is 1 as a double, which would be more than what is left."""
    parts = split_budget(Budget(1.0), {"a": 1e-17, "b": None})
    epsilons = [part.epsilon for part in parts.values() if isinstance(part, SphereNoise)]
    assert len(epsilons) == 2
    assert sum(map(Fraction, epsilons)) <= 1
    assert epsilons[1] > 1 - 2e-16
