"""A session hands out what was planned, once, and nothing else; mutants of it are caught."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tacit.noise import Norm, Release, seeded_source
from tacit.noise.bounded import Bounded
from tacit.noise.gaussian import gaussian
from tacit.privacy import Composed, Gaussian, NonPrivate, Repeated
from tacit.queries import (
    AtMost,
    Count,
    Exactly,
    Facts,
    GaussianNoise,
    NoisySum,
    PointSum,
    Session,
    Slot,
    composed,
)
from tests.queries.helpers import BOUNDS, FACTS, records

COUNT = NoisySum(Count(), GaussianNoise(2.0))
TOTAL = NoisySum(PointSum(), GaussianNoise(4.0))
SLOTS = {"count": Slot(COUNT.event(FACTS)), "total": Slot(TOTAL.event(FACTS))}


def session(slots: Any = None, planned: Any = None, source: Any = None) -> Session:
    slots = SLOTS if slots is None else slots
    return Session(records(), FACTS, planned or composed(slots), slots, source)


def test_what_was_asked_is_what_was_charged() -> None:
    one = session()
    assert 30 < one.ask(COUNT, "count") < 70
    assert np.shape(one.ask(TOTAL, "total")) == (2,)
    assert one.close() == Composed((Gaussian(2.0), Gaussian(4.0)))


def test_a_seed_voids_the_run() -> None:
    one = session(source=seeded_source(1))
    one.ask(COUNT, "count")
    one.ask(TOTAL, "total")
    assert one.close().reasons_void()


def test_a_slot_that_was_dropped_withholds_the_release() -> None:
    one = session()
    one.ask(COUNT, "count")
    with pytest.raises(RuntimeError, match="'total' was asked 0 times"):
        one.release(3.0)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda one: (one.ask(COUNT, "count"), one.ask(COUNT, "count")), "asked before: 1"),
        (lambda one: one.ask(COUNT, "other"), "the plan has no slot 'other'"),
        (lambda one: one.ask(NoisySum(Count(), GaussianNoise(1.9)), "count"), "paid for it"),
        (lambda one: one.ask(TOTAL, "count"), "paid for it"),
        (lambda one: one.without_noise(lambda view: view), "under a guarantee"),
    ],
)
def test_what_was_not_planned_is_refused(wrong: Callable[[Session], Any], words: str) -> None:
    with pytest.raises(RuntimeError, match=words):
        wrong(session())


def test_a_question_is_refused_before_a_record_is_read() -> None:
    class Unreadable:
        bounds, n_features = BOUNDS, 2

        def count(self) -> int:
            raise AssertionError("read")

    view: Any = Unreadable()
    one = Session(view, FACTS, composed(SLOTS), SLOTS)
    with pytest.raises(RuntimeError, match="paid for it"):
        one.ask(NoisySum(Count(), GaussianNoise(1.0)), "count")
    with pytest.raises(AssertionError, match="read"):
        one.ask(COUNT, "count")


def test_nothing_is_asked_after_the_end() -> None:
    one = session({"count": SLOTS["count"]})
    one.ask(COUNT, "count")
    one.close()
    with pytest.raises(RuntimeError, match="closed"):
        one.ask(COUNT, "count")


def test_slots_that_were_not_charged_are_refused() -> None:
    with pytest.raises(RuntimeError, match="not what was charged"):
        session(planned=Gaussian(2.0))
    with pytest.raises(RuntimeError, match="not what was charged"):
        session(planned=Composed((Gaussian(2.0), Gaussian(4.1))))


def test_several_of_a_kind() -> None:
    slots = {"count": Slot(COUNT.event(FACTS), Exactly(3))}
    assert composed(slots) == Repeated(Gaussian(2.0), 3)
    one = session(slots)
    for _ in range(3):
        one.ask(COUNT, "count")
    with pytest.raises(RuntimeError, match="asked before: 3"):
        one.ask(COUNT, "count")
    assert one.close() == Repeated(Gaussian(2.0), 3)


def test_what_is_not_asked_stays_paid_for() -> None:
    slots = {"count": Slot(COUNT.event(FACTS), AtMost(3))}
    one = session(slots)
    one.ask(COUNT, "count")
    assert one.close() == Repeated(Gaussian(2.0), 3)


def test_a_total_that_is_held_is_computed_once_and_not_shown() -> None:
    one = session()
    held = one.hold(Count())
    assert "50" not in repr(held)
    assert 30 < one.ask(COUNT, "count", of=held) < 70


def test_an_answer_with_less_noise_than_it_says_is_withheld() -> None:
    class Quiet:
        def event(self, facts: Facts) -> Any:
            return Gaussian(2.0)

        def answer(self, view: Any, facts: Facts, source: Any) -> Release[Any]:
            return gaussian(Bounded(1.0, 1.0, Norm.L2, facts.relation), 1.0, source)

    with pytest.raises(RuntimeError, match="but its price is"):
        session().ask(Quiet(), "count")


def test_without_a_promise_records_are_read() -> None:
    event = NonPrivate("the budget is infinite")
    one = Session(records(), FACTS, event, {})
    assert one.without_noise(lambda view: view.count()) == 50  # type: ignore[union-attr]
    assert one.close() == event
