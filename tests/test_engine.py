"""The engine charges first, hands the records to a session alone, and withholds what differs."""

from __future__ import annotations

from typing import Any

import pytest

from tacit.engine import (
    Plan,
    Released,
    check_accountant,
    plan_lines,
    release,
    release_answers,
    without_noise,
)
from tacit.ledger import Ledger
from tacit.noise import Release, seeded_source
from tacit.privacy import (
    Accountant,
    Budget,
    BudgetExceeded,
    Composed,
    Event,
    Gaussian,
    NonPrivate,
    Relation,
    Repeated,
)
from tacit.queries import AtMost, Count, GaussianNoise, NoisySum, PointSum, Slot
from tests.queries.helpers import FACTS, records

COUNT = NoisySum(Count(), GaussianNoise(4.0))
TOTAL = NoisySum(PointSum(), GaussianNoise(8.0))
COUNT_EVENT = COUNT.event(FACTS)
BUDGET = Budget(2.0, 1e-6)


def planned(event: Event = COUNT_EVENT, **more: Any) -> Plan:
    queries = {"count": COUNT}
    return Plan("count", event, BUDGET, "a noisy count", facts=FACTS, queries=queries, **more)


def released(plan: Plan, **more: Any) -> Released[Any]:
    return release_answers(plan, records, lambda session: session.ask(COUNT, "count"), **more)


def test_an_answer_has_the_promise_of_its_plan() -> None:
    found = released(planned(), assumptions=["rows are clipped"])
    assert 20 < found.value < 80
    assert found.privacy.event == Gaussian(4.0)
    assert found.privacy.target_delta == BUDGET.delta
    assert found.privacy.assumptions == ("rows are clipped",)
    assert found.privacy.booking is None


def test_a_refused_charge_opens_nothing() -> None:
    def opened() -> Any:
        raise AssertionError("opened")

    poor = Accountant(Budget(0.01, 1e-6))
    with pytest.raises(BudgetExceeded):
        release_answers(planned(), opened, lambda session: None, accountant=poor)
    with pytest.raises(BudgetExceeded):
        release(planned(), opened, accountant=poor)
    with pytest.raises(TypeError, match="must keep a budget"):
        release(planned(), opened, accountant=BUDGET)


def test_an_accountant_pays_once() -> None:
    purse = Accountant(BUDGET)
    released(planned(), accountant=purse)
    alone = Accountant(BUDGET)
    alone.charge(Gaussian(4.0), BUDGET.delta)
    assert purse.remaining() == alone.remaining() < BUDGET.epsilon


def test_a_ledger_s_entry_is_in_the_promise_and_in_the_session(tmp_path: Any) -> None:
    kept = Ledger.create(tmp_path / "kept.ledger", BUDGET)
    seen = []

    def work(session: Any) -> float:
        seen.append(session.booking)
        return float(session.ask(COUNT, "count"))

    found = release_answers(planned(), records, work, accountant=kept)
    assert found.privacy.booking is not None
    assert seen == [found.privacy.booking]
    again = release(planned(), lambda: Release(1.0, Gaussian(4.0)), accountant=kept)
    assert again.privacy.booking is not None
    assert again.privacy.booking.entry == found.privacy.booking.entry + 1


def test_a_crash_leaves_the_budget_spent() -> None:
    purse = Accountant(BUDGET)

    def work(session: Any) -> float:
        raise OSError("the disk is full")

    with pytest.raises(OSError, match="disk"):
        release_answers(planned(), records, work, accountant=purse)
    assert purse.remaining() < BUDGET.epsilon


@pytest.mark.parametrize(
    "event", [Gaussian(3.9), Gaussian(4.1), Composed((Gaussian(4.0),)), NonPrivate("no")]
)
def test_what_cost_something_else_is_withheld(event: Any) -> None:
    with pytest.raises(RuntimeError, match="is withheld"):
        release(planned(), lambda: Release(1.0, event))


def test_what_cost_what_was_planned_is_handed_out() -> None:
    assert release(planned(), lambda: Release(1.0, Gaussian(4.0))).value == 1.0


def test_a_seed_is_charged_as_what_it_is() -> None:
    found = released(planned(), source=seeded_source(1))
    assert isinstance(found.privacy.event, NonPrivate)
    assert released(planned(), source=seeded_source(1)).value == found.value
    with pytest.raises(BudgetExceeded):
        released(planned(), source=seeded_source(1), accountant=Accountant(BUDGET))


def test_a_question_that_was_not_asked_withholds_the_release() -> None:
    with pytest.raises(RuntimeError, match="'count' was asked 0 times"):
        release_answers(planned(), records, lambda session: 1.0)


def test_slots_are_queries_once_and_what_else_was_paid_for() -> None:
    both = Composed((Gaussian(4.0), Repeated(Gaussian(8.0), 3)))
    plan = planned(event=both, paid={"steps": Slot(Gaussian(8.0), AtMost(3))})
    assert plan.slots() == {
        "count": Slot(Gaussian(4.0)),
        "steps": Slot(Gaussian(8.0), AtMost(3)),
    }

    def work(session: Any) -> Any:
        session.ask(COUNT, "count")
        return [session.ask(TOTAL, "steps") for _ in range(2)]

    assert release_answers(plan, records, work).privacy.event == both


def test_slots_need_facts() -> None:
    plan = Plan("count", Gaussian(4.0), BUDGET, "a noisy count", queries={"count": COUNT})
    with pytest.raises(AssertionError, match="of what they are asked"):
        plan.slots()


def test_an_infinite_budget_promises_nothing() -> None:
    plan = without_noise(Budget(float("inf"), relation=Relation.REPLACE))
    assert isinstance(plan.event, NonPrivate)
    assert plan.event.relation is Relation.REPLACE
    assert plan.queries == {}


def test_an_accountant_can_charge() -> None:
    check_accountant(Accountant(BUDGET))
    for other in (BUDGET, "survey.ledger", None, 3.0):
        with pytest.raises(TypeError, match="must keep a budget"):
            check_accountant(other)


def test_a_plan_in_words() -> None:
    plan = planned(settings={"noise_multiplier": 4.0}, rejected=("less", "more"))
    assert plan_lines(plan, "rows are clipped") == [
        "count: a noisy count",
        "  rows are clipped",
        "  noise_multiplier = 4",
        "also considered:",
        "  less",
        "  more",
    ]
    assert plan_lines(planned()) == ["count: a noisy count"]
