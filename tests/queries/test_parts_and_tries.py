"""Sessions of disjoint parts, of tries, and of estimators that charge an accountant."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tacit.noise import SensitivityViolation, secure_source, seeded_source
from tacit.privacy import (
    BestOf,
    Budget,
    Event,
    Gaussian,
    Guarantee,
    NonPrivate,
    OneOf,
    Parallel,
    Relation,
)
from tacit.privacy.accounting.number_of_trials import FixedTries
from tacit.queries import (
    AtMost,
    Facts,
    GaussianNoise,
    NoisySum,
    Selection,
    Sensitivity,
    Session,
    Slot,
)
from tacit.queries.base import plain_facts
from tacit.queries.evaluation import CandidateMistakes, MistakeBalance
from tacit.queries.prepaid import Prepaid
from tacit.queries.session import BestOfTries, DisjointParts, InParts, Questions, Split, best_of
from tacit.records import Bounds
from tacit.table_facts import EncodedTable, TableFacts
from tacit.testing import replay

FACTS = plain_facts(Relation.ADD_REMOVE)
SCORE = NoisySum(MistakeBalance(whole=True), GaussianNoise(2.0))
ONE = Questions(FACTS, {"score": Slot(SCORE.event(FACTS))})
BOTH = InParts((ONE, ONE))
WRONG = np.array([0.0, 1.0, 1.0])
TRIES = best_of([Gaussian(2.0), Gaussian(3.0)], FixedTries(2))


def parted(n_parts: int = 2) -> Session:
    return Session(DisjointParts((WRONG,) * n_parts), FACTS, BOTH.event, BOTH.slots())


def test_each_part_is_asked_for_what_was_paid_for_it() -> None:
    session = parted()
    for part in session.parts("parts", BOTH):
        part.ask(SCORE, "score")
        with pytest.raises(RuntimeError, match="asked before: 1"):
            part.ask(SCORE, "score")
        part.close()
    assert session.close() == Parallel((Gaussian(2.0), Gaussian(2.0)))


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda: parted(3).parts("parts", BOTH), "not split into so many"),
        (lambda: Session(WRONG, FACTS, BOTH.event, BOTH.slots()).parts("parts", BOTH), "not split"),
        (lambda: parted().parts("parts", InParts((ONE, dearer()))), "paid for it"),
        (lambda: parted().ask(SCORE, "parts"), "paid for it"),
        (lambda: twice(parted()), "asked before: 1"),
    ],
)
def test_parts_that_were_not_planned_are_refused(wrong: Callable[[], Any], words: str) -> None:
    with pytest.raises(RuntimeError, match=words):
        wrong()


def dearer() -> Questions:
    return Questions(FACTS, {"score": Slot(Gaussian(1.0))})


def twice(session: Session) -> None:
    session.parts("parts", BOTH)
    session.parts("parts", BOTH)


def test_a_part_that_is_not_closed_withholds_the_release() -> None:
    session = parted()
    first, second = session.parts("parts", BOTH)
    first.ask(SCORE, "score")
    first.close()
    with pytest.raises(RuntimeError, match="'parts' was begun and not closed"):
        session.release(1.0)
    with pytest.raises(RuntimeError, match="was asked 0 times"):
        second.close()
    with pytest.raises(RuntimeError, match="'parts' was begun and not closed"):
        session.close()  # a part whose end was refused is not closed either


def table(n: int) -> EncodedTable:
    rows = np.arange(2.0 * n).reshape(n, 2)
    return EncodedTable(TableFacts(("a", "b"), 1.0, n), lambda: (rows, rows[:, 0]))


def split_of(n: int, relation: Relation) -> DisjointParts:
    facts = plain_facts(relation)
    parts, _ = Split((0.7, 0.3), b"key").apply(table(n), facts, seeded_source(0))
    assert isinstance(parts, DisjointParts)
    return parts


@pytest.mark.parametrize("relation", [Relation.ADD_REMOVE, Relation.REPLACE])
def test_a_split_puts_every_record_into_one_part(relation: Relation) -> None:
    parts = split_of(200, relation).parts
    rows = np.concatenate([part.read()[0] for part in parts])
    np.testing.assert_array_equal(np.sort(rows[:, 0]), np.arange(0.0, 400.0, 2.0))
    for part in parts:
        np.testing.assert_array_equal(part.read()[0][:, 0], part.read()[1])
    assert [part.facts.n_records for part in parts] == [140, 60]
    sizes = Split((0.7, 0.3), b"key").sizes(200, relation)
    known = [len(part.read()[0]) for part in parts]
    assert sizes == (known if relation is Relation.REPLACE else [None, None])
    assert Split((0.7, 0.3)).sizes(200, relation) == [None, None]
    assert Split((0.7, 0.3), b"key").sizes(None, relation) == [None, None]
    assert "2 parts" in repr(split_of(5, relation))


def test_one_record_more_changes_one_part() -> None:
    less, more = (split_of(n, Relation.ADD_REMOVE).parts for n in (60, 61))
    grown = [len(b.read()[0]) - len(a.read()[0]) for a, b in zip(less, more, strict=True)]
    assert sorted(grown) == [0, 1]


def tries(n: int | None) -> Session:
    slots = {"best": Slot(TRIES.event, BestOfTries(n))}
    return Session(WRONG, FACTS, TRIES.event, slots)


def tried(session: Session, multiplier: float = 2.0) -> None:
    plan = Questions(FACTS, {"score": Slot(Gaussian(multiplier))})
    one = session.child("best", plan)
    one.ask(NoisySum(MistakeBalance(whole=True), GaussianNoise(multiplier)), "score")
    one.close()


def test_as_many_tries_are_made_as_were_drawn() -> None:
    session = tries(2)
    tried(session)
    tried(session, 3.0)
    assert session.close() == BestOf(OneOf((Gaussian(2.0), Gaussian(3.0))), FixedTries(2))
    one = tries(1)
    tried(one)
    with pytest.raises(RuntimeError, match="best of a secret number"):
        tried(one)
    less = tries(2)
    tried(less)
    with pytest.raises(RuntimeError, match="'best' was asked 1 times"):
        less.close()


@pytest.mark.parametrize(
    ("session", "multiplier"),
    [
        (tries(2), 1.9),  # none of the planned
        (tries(None), 2.0),  # a plan that is kept, which does not say how many
        (Session(WRONG, FACTS, Gaussian(2.0), {"best": Slot(Gaussian(2.0), BestOfTries(1))}), 2.0),
    ],
)
def test_a_try_that_was_not_planned_is_refused(session: Session, multiplier: float) -> None:
    with pytest.raises(RuntimeError, match="paid for it"):
        tried(session, multiplier)


def test_a_try_that_is_not_closed_withholds_the_release() -> None:
    session = tries(1)
    session.child("best", Questions(FACTS, {"score": Slot(Gaussian(2.0), AtMost())}))
    with pytest.raises(RuntimeError, match="'best' was begun and not closed"):
        session.release(1.0)


class Charging:
    """Charges what it is told to, and reads its table."""

    def __init__(self, *events: Any) -> None:
        self.events, self.accountant = events, None

    def set_params(self, accountant: Any) -> Charging:
        self.accountant = accountant
        return self

    def fit(self, X: Any, y: Any = None) -> Charging:
        accountant: Any = self.accountant
        for event in self.events:
            accountant.charge(event)
        self.seen = X.read()
        self.privacy_ = Guarantee(self.events[0])
        return self


def fitting(source: Any = None, n: int = 1) -> Session:
    slots = {"fit": Slot(Gaussian(2.0)), "other": Slot(Gaussian(3.0), AtMost())}
    event = Questions(FACTS, slots).event
    return Session(table(5), FACTS, event, slots, source)


def fitted(session: Session, *events: Any, slot: str = "fit") -> Any:
    return session.fit(slot, Charging(*events), Budget(1.0, 1e-6), "a step")


def test_a_fit_draws_from_its_slot() -> None:
    session = fitting()
    assert not session.has_used("fit")
    made = fitted(session, Gaussian(2.0))
    assert made.accountant is None
    assert session.has_used("fit")
    assert not session.has_used("other")
    session.close()


@pytest.mark.parametrize(
    ("events", "words"),
    [
        ((Gaussian(1.9),), "about to release"),
        ((Gaussian(3.0),), "about to release"),  # what was paid under another name
        ((Gaussian(2.0), Gaussian(2.0)), "used up"),
    ],
)
def test_a_fit_that_charges_something_else_is_refused(events: Any, words: str) -> None:
    with pytest.raises(RuntimeError, match=rf"a step \(Charging\) .*{words}"):
        fitted(fitting(), *events)


def test_a_slot_pays_for_one_fit() -> None:
    session = fitting()
    fitted(session, Gaussian(2.0))
    with pytest.raises(RuntimeError, match="asked before: 1"):
        fitted(session, Gaussian(2.0))
    with pytest.raises(RuntimeError, match="the plan has no slot 'more'"):
        fitted(session, Gaussian(2.0), slot="more")
    session.close()
    with pytest.raises(RuntimeError, match="closed"):
        fitted(session, Gaussian(3.0), slot="other")


def test_a_seeded_fit_charges_that_it_is_seeded() -> None:
    session = fitting(seeded_source(1))
    with pytest.raises(RuntimeError, match="about to release"):
        fitted(session, Gaussian(2.0))
    seeded = NonPrivate("drawn from a seeded generator, for tests only", would_be=Gaussian(2.0))
    fitted(fitting(seeded_source(1)), seeded)


CHOICE = Selection(CandidateMistakes(2), 1.0)


def scored(wrong: Any, facts: Any = FACTS) -> Any:
    event = SCORE.event(facts)
    return Session(wrong, facts, event, {"score": Slot(event)}).ask(SCORE, "score")


def chosen(wrong: Any, facts: Any = FACTS) -> Any:
    event = CHOICE.event(facts)
    return Session(wrong, facts, event, {"choice": Slot(event)}).ask(CHOICE, "choice")


MORE = np.append(WRONG, 1.0)


@pytest.mark.parametrize(
    ("run", "statistic", "here", "there"),
    [
        (scored, MistakeBalance, WRONG, MORE),
        (chosen, CandidateMistakes, (WRONG, WRONG), (MORE, MORE)),
    ],
)
def test_a_wrong_constant_is_found_by_replay(
    run: Any, statistic: Any, here: Any, there: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert replay(run, here, there) == 1
    stated = statistic.sensitivity

    def less(self: Any, facts: Any) -> Sensitivity:
        whole = stated(self, facts)
        return Sensitivity(0.9 * whole.value, whole.norm, whole.proof)

    monkeypatch.setattr(statistic, "sensitivity", less)
    with pytest.raises(SensitivityViolation):
        replay(run, here, there)


def test_mistakes_that_are_replaced_are_not_monotone() -> None:
    """One candidate is right about the new record, the other about the old."""
    facts = plain_facts(Relation.REPLACE)
    here, there = (MORE, WRONG_AND_RIGHT), (WRONG_AND_RIGHT, MORE)
    assert replay(lambda wrong: chosen(wrong, facts), here, there) == 1
    with pytest.raises(SensitivityViolation, match="monotone"):
        replay(chosen, here, there)


WRONG_AND_RIGHT = np.append(WRONG, 0.0)


def test_as_many_candidates_are_compared_as_were_planned() -> None:
    with pytest.raises(ValueError, match="3 candidates, but 2 were planned"):
        chosen((WRONG, WRONG, WRONG))


# What is paid for a fit.


class Persistent:
    """An estimator that charges what it is told to, and goes on if that is refused."""

    privacy_: Guarantee

    def __init__(self, *events: Event, reads_first: bool = False) -> None:
        self.events, self.reads_first = events, reads_first

    def set_params(self, accountant: Any) -> None:
        self.accountant = accountant

    def fit(self, table: Any, _: None) -> None:
        if self.reads_first:
            table.read()
        for event in self.events:
            with contextlib.suppress(RuntimeError):
                self.accountant.charge(event)
        self.privacy_ = Guarantee(Gaussian(2.0))
        if hasattr(table, "read"):
            table.read()


def paid_for() -> Prepaid:
    return Prepaid(Gaussian(2.0), Budget(0.7, 1e-6), "a step", lambda: None)


def unread_table() -> Any:
    return EncodedTable(None, lambda: (np.zeros((2, 1)), None))  # type: ignore[arg-type]


def test_a_share_is_left_until_it_is_used() -> None:
    paid = paid_for()
    assert (paid.spent(), paid.remaining()) == (0.0, 0.7)
    assert paid.charge(Gaussian(2.0)) == 0.7
    assert (paid.spent(), paid.remaining()) == (0.7, 0.0)


@pytest.mark.parametrize("table", [unread_table(), np.zeros((2, 1))], ids=["table", "array"])
def test_a_fit_is_held_to_what_was_paid(table: Any) -> None:
    assert paid_for().fit(Persistent(Gaussian(2.0)), table).accountant is None
    for charged in ((Gaussian(1.0), Gaussian(2.0)), (Gaussian(2.0), Gaussian(2.0))):
        with pytest.raises(RuntimeError, match="had refused a charge"):
            paid_for().fit(Persistent(*charged), table)


def test_a_table_is_not_read_before_the_charge() -> None:
    with pytest.raises(RuntimeError, match="reads the records without a charge"):
        paid_for().fit(Persistent(Gaussian(2.0), reads_first=True), unread_table())


class ReadRows:
    """A table as the view `Split` needs it."""

    places = None

    def __init__(self, rows: Any, named: list[str] | None = None) -> None:
        self.rows, self.named, self.has_people = rows, named, named is not None

    def read(self) -> Any:
        return self.rows, np.zeros(len(self.rows))

    def identifiers(self) -> list[str]:
        assert self.named is not None
        return self.named

    def part(self, chosen: Any, share: float) -> Any:
        return chosen


def test_all_records_of_a_person_are_in_one_part() -> None:
    rows = np.random.default_rng(0).standard_normal((60, 2))
    named = [f"person {i % 6}" for i in range(60)]
    facts = Facts(Bounds(), 2, Relation.ADD_REMOVE_PERSON)
    view = Split((0.5, 0.5), b"k" * 32)
    parts, _ = view.apply(ReadRows(rows, named), facts, secure_source())
    one, other = parts.parts
    assert not np.any(one & other)
    for i in range(6):
        assert len(set(one[i::6].tolist())) == 1
    assert one.any()
    assert other.any()
    alone = replace(facts, relation=Relation.ADD_REMOVE)
    parts, _ = view.apply(ReadRows(rows), alone, secure_source())
    assert len(set(parts.parts[0][::6].tolist())) == 2
