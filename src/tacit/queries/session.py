"""The charged run in which private questions are asked, on the records or on a view of them.

A view is public: words and numbers that follow from a plan and from answers. It says what it does
to the records, and what is then public of them; `Session.on` applies both together.

A session holds the records; an algorithm sees its public facts and says `ask`. Every question goes
to a *slot* of the plan, which says what it may cost and how often it may be asked
(`tacit.queries.rules`). A question that does not fit its slot is refused before a record is read,
and `close` refuses a run that left a slot open: what was released is then what was charged.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar

import numpy as np

from tacit.noise import Ahead, Release, Source, secure_source
from tacit.noise.release import priced
from tacit.noise.replay import decide
from tacit.privacy import Booking, Budget, Event, NonPrivate, Parallel, Relation
from tacit.queries.base import CanBeHeld, Facts, Held, Private, Query
from tacit.queries.prepaid import Prepaid
from tacit.queries.rules import ExchangedFor, Slot, composed, exchanged, leaf_counts
from tacit.records.grouped import PeopleInMemory, PeopleInSource
from tacit.records.privacy_unit import people_of
from tacit.records.reweighted import ReweightedRecords, WeightFunction
from tacit.records.splits import new_key, parts_of


class View(Protocol):
    """What turns records, and what is public of them, into others."""

    def apply(self, records: Private, facts: Facts, source: Source) -> tuple[Private, Facts]:
        """Return the records in this view, and their facts."""


@dataclass(frozen=True)
class OneRecordEach:
    """One record of each person, chosen by who they are; all records where they are nobody's."""

    def apply(self, records: Private, facts: Facts, source: Source) -> tuple[Private, Facts]:
        """Return one record of each person."""
        if isinstance(records, PeopleInMemory | PeopleInSource):
            records = records.one_each()
        return records, replace(facts, sums_by_person=False)


@dataclass(frozen=True, eq=False)
class Reweighted:
    """The same records, each times a weight in [0, 1] that is a function of it alone."""

    weight: WeightFunction

    def apply(self, records: Private, facts: Facts, source: Source) -> tuple[Private, Facts]:
        """Return the records with the weights."""
        weighted = ReweightedRecords(records, self.weight)
        return weighted, replace(facts, bounds=self.weight.bounds(facts.bounds))


@dataclass(frozen=True)
class PoissonSample:
    """Each record, or person, independently with probability ``rate``.

    The records themselves say at which rate they were sampled, and that is what a question costs.
    """

    rate: float

    def apply(self, records: Private, facts: Facts, source: Source) -> tuple[Private, Facts]:
        """Return a fresh sample."""
        sample = records.poisson_sample(self.rate, source.words)
        return sample.records, replace(facts, sampling_rate=sample.rate)


@dataclass(frozen=True, eq=False)
class DisjointParts:
    """Parts of a table of which no two share a record; `Session.parts` asks each by itself."""

    parts: tuple[Private, ...]

    def __repr__(self) -> str:
        return f"DisjointParts({len(self.parts)} parts)"


@dataclass(frozen=True)
class Split:
    """Disjoint parts of an `EncodedTable`; which part a record is in, no other record decides.

    Parameters
    ----------
    shares
        The share of the records that each part gets, about; they add up to 1.
    key
        Random bytes by which records are split, drawn without regard to them; None to draw some.
    """

    shares: tuple[float, ...]
    key: bytes | None = None

    def apply(self, records: Private, facts: Facts, source: Source) -> tuple[Private, Facts]:
        """Return the parts, read now."""
        rows, labels = records.read()
        key = new_key(source) if self.key is None else self.key
        part = parts_of(
            self.shares,
            key,
            facts.relation,
            rows,
            labels,
            people=people_of(records.identifiers()) if records.has_people else None,
            positions=records.places,
        )
        shares = enumerate(self.shares)
        return DisjointParts(tuple(records.part(part == i, share) for i, share in shares)), facts

    def sizes(self, n_records: int | None, relation: Relation) -> list[int | None]:
        """Return how many records each part has, where that follows from their positions alone."""
        if n_records is None or relation is not Relation.REPLACE or self.key is None:
            return [None] * len(self.shares)
        part = parts_of(self.shares, self.key, relation, np.empty((n_records, 0)))
        return [int(n) for n in np.bincount(part, minlength=len(self.shares))]


def check_unit(records: object, facts: Facts) -> None:
    """Refuse records that do not know their people where their sums are clipped, and the reverse.

    What is bounded for one says nothing about the other. Weighted records of people are of neither
    kind: one of each is weighted.
    """
    knows = isinstance(records, PeopleInMemory | PeopleInSource)
    beneath = records
    while isinstance(beneath, ReweightedRecords):
        beneath = beneath.records
    hides = beneath is not records and isinstance(beneath, PeopleInMemory | PeopleInSource)
    if facts.sums_by_person != knows or hides:
        raise ValueError(
            "a plan that adds up what each person has needs records grouped by person, and grouped "
            "records need such a plan; view them as OneRecordEach() otherwise."
        )


T = TypeVar("T")
_BUG = "This is a bug in the mechanism; please report it as SECURITY.md says."


class ChildPlan(Protocol):
    """A plan that is part of another: a step of a pipeline, the weights behind standard errors."""

    @property
    def event(self) -> Event:
        """What it costs."""

    @property
    def facts(self) -> Facts:
        """What is public of the records it is asked of."""

    def slots(self) -> Mapping[str, Slot]:
        """Return what may be asked, by name."""


@dataclass(frozen=True)
class Questions:
    """A plan that says no more than what may be asked: its event is that of its slots together."""

    facts: Facts
    paid: Mapping[str, Slot]

    @property
    def event(self) -> Event:
        """What they cost."""
        return composed(self.paid)

    def slots(self) -> Mapping[str, Slot]:
        """Return what may be asked, by name."""
        return self.paid


@dataclass(frozen=True)
class InParts:
    """A plan of disjoint parts of the records, each with a plan of its own: see `Session.parts`."""

    parts: tuple[ChildPlan, ...]

    @property
    def event(self) -> Event:
        """What they cost together: what the worst of them does."""
        return Parallel(tuple(part.event for part in self.parts))

    @property
    def facts(self) -> Facts:
        """What is public of the records."""
        return self.parts[0].facts

    def slots(self) -> Mapping[str, Slot]:
        """Return the one slot of all parts."""
        return {"parts": Slot(self.event)}


class _Tally:
    """What was asked of each slot, in one run or in any of its views."""

    def __init__(
        self,
        planned: Event,
        slots: Mapping[str, Slot],
        source: Source,
        booking: Booking | None = None,
    ) -> None:
        self.planned, self.slots, self.source = planned, dict(slots), source
        self.booking = booking
        self.answered: dict[str, Counter[Event]] = {name: Counter() for name in slots}
        self.given_up: set[str] = set()
        self.children: list[tuple[str, Session]] = []
        self.is_closed = self.is_settled = False
        _check_charged(self.slots, planned)

    def paid(self, slot: str) -> Slot:
        """Return what was paid for under a name."""
        paid = self.slots.get(slot)
        if paid is None:
            raise RuntimeError(
                f"nothing was planned under the name {slot!r}; the plan has "
                f"{', '.join(map(repr, self.slots)) or 'no slots'}. {_BUG}"
            )
        return paid

    def take(self, slot: str, price: Event) -> None:
        """Note one more question, or refuse it."""
        if self.is_closed:
            raise RuntimeError(f"the session is closed; {slot!r} was asked too late. {_BUG}")
        paid, answered = self.paid(slot), self.answered[slot]
        if slot in self.given_up or not paid.rule.allows(paid.event, price, answered):
            raise RuntimeError(
                f"{slot!r} would release {price}, and what was paid for it is {paid.event}, "
                f"{paid.rule}; asked before: {answered.total()} times. {_BUG}"
            )
        if isinstance(paid.rule, ExchangedFor):
            if any(self.answered[name] for name in paid.rule.slots):
                raise RuntimeError(
                    f"{slot!r} is in the place of {paid.rule.slots}, of which some was asked "
                    f"already. {_BUG}"
                )
            self.given_up.update(paid.rule.slots)
        answered[price] += 1

    def close(self) -> Event:
        self.is_closed = True
        for name, slot in self.slots.items():
            answered = self.answered[name]
            if name not in self.given_up and not slot.rule.is_met(answered):
                raise RuntimeError(
                    f"{name!r} was asked {answered.total()} times and planned {slot.rule}: the "
                    f"release is withheld. {_BUG}"
                )
        for name, child in self.children:
            if not child._tally.is_settled:
                raise RuntimeError(f"{name!r} was begun and not closed. {_BUG}")
        self.is_settled = True
        return priced(self.planned, self.source)


class Session:
    """Asks the questions of one plan, after its charge.

    Parameters
    ----------
    records
        Private: nothing but `ask`, `hold`, `fit`, views and `without_noise` reads them.
    facts
        What is public of them.
    planned
        The event that was charged.
    slots
        What may be asked, by name. Their events together are ``planned``.
    source
        Randomness; a seeded one voids the guarantee. A fresh secure one by default.
    booking
        Where the charge is written, if anywhere.

    Notes
    -----
    **Guarantee**. `close` returns ``planned`` (void where the source is seeded) only if every slot
    was asked as its rule says; a question to an unknown slot, at a price that the rule does not
    allow, or once more than was paid for raises before it reads a record.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.privacy import Gaussian, Relation
    >>> from tacit.queries import Count, Facts, GaussianNoise, NoisySum, Slot
    >>> from tacit.queries.session import Session
    >>> from tacit.records import Bounds, MemoryRecords
    >>> bounds = Bounds(row_norm=1.0)
    >>> records = MemoryRecords(np.zeros((100, 2)), None, bounds)
    >>> count = NoisySum(Count(), GaussianNoise(2.0))
    >>> facts = Facts(bounds, 2, Relation.ADD_REMOVE)
    >>> session = Session(records, facts, Gaussian(2.0), {"count": Slot(count.event(facts))})
    >>> 80 < session.ask(count, "count") < 120
    True
    >>> session.close() == Gaussian(2.0)
    True
    """

    def __init__(
        self,
        records: Private,
        facts: Facts,
        planned: Event,
        slots: Mapping[str, Slot],
        source: Source | None = None,
        *,
        booking: Booking | None = None,
    ) -> None:
        source = secure_source() if source is None else source
        self._begin(records, facts, _Tally(planned, slots, source, booking))

    def _begin(self, records: Private, facts: Facts, tally: _Tally) -> Session:
        if not isinstance(tally.planned, NonPrivate):
            check_unit(records, facts)
        self._records, self.facts, self._tally = records, facts, tally
        return self

    @property
    def booking(self) -> Booking | None:
        """Where the charge is written, if anywhere."""
        return self._tally.booking

    @property
    def is_closed(self) -> bool:
        """Whether nothing may be asked any more."""
        return self._tally.is_closed

    def ask(
        self, query: Query[T], slot: str, *, of: Held | None = None, noise: Ahead | None = None
    ) -> T:
        """Return the noisy answer to a question, at the price of a slot.

        ``of`` names a total that is held; by default the question is asked of the records.
        ``noise`` for a `NoisySum` was drawn by `tacit.noise.draw_ahead`, which hides one value and
        never another; what it costs is compared with the price as for any other.
        """
        price, source, records = query.event(self.facts), self._tally.source, self._records
        if of is not None and of._session not in (None, self):
            raise RuntimeError(f"{slot!r} would ask what another session or view holds. {_BUG}")
        if records is _USED_SAMPLE:
            raise RuntimeError(f"{slot!r} would ask a Poisson sample twice. {_BUG}")
        self._tally.take(slot, price)
        if self.facts.sampling_rate is not None:
            self._records = _USED_SAMPLE  # its event is that of one release from it
        drawn: dict[str, Any] = {} if noise is None else {"noise": noise}
        released = query.answer(records if of is None else of, self.facts, source, **drawn)
        if released.event != priced(price, source):
            raise RuntimeError(
                f"{slot!r} released {released.event} and was to cost {price}: it is withheld. "
                f"{_BUG}"
            )
        return released.value

    def hold(self, statistic: CanBeHeld) -> Held:
        """Compute what several questions are about, once; it cannot be read, only asked of."""
        return Held(statistic.held(self._records, self.facts), statistic, self)

    def on(self, view: View) -> Session:
        """Return the same run over another view of the records: the slots are shared."""
        records, facts = view.apply(self._records, self.facts, self._tally.source)
        return Session.__new__(Session)._begin(records, facts, self._tally)

    def child(self, slot: str, plan: ChildPlan) -> Session:
        """Return the session of a plan that is part of this one; it is closed by who runs it.

        Records that a view has weighted stay weighted, whether or not the plan knows.
        """
        self._tally.take(slot, plan.event)
        return self._child(slot, plan, self._records)

    def parts(self, slot: str, plan: InParts) -> tuple[Session, ...]:
        """Return a session for each disjoint part of records that the view `Split` has split.

        The slot's event is that of parallel composition, `Parallel` of the parts' events. Each
        session is closed by who runs it.

        Proof: docs/proofs/events.md, section 12. A record is in one part, whatever others there
        are, so that neighbours differ in one part. What a session asks of its part costs the
        part's event; it may depend on answers from other parts, the events do not.
        """
        parted = self._records
        if not isinstance(parted, DisjointParts) or len(parted.parts) != len(plan.parts):
            raise RuntimeError(
                f"{slot!r} is for {len(plan.parts)} disjoint parts, and the records are not split "
                f"into so many. {_BUG}"
            )
        self._tally.take(slot, plan.event)
        each = zip(plan.parts, parted.parts, strict=True)
        return tuple(self._child(slot, own, records) for own, records in each)

    def fit(
        self,
        slot: str,
        estimator: Any,
        budget: Budget,
        who: str,
        *,
        table: Callable[[Any], Any] | None = None,
        unit: Callable[[Any], Any] | None = None,
    ) -> Any:
        """Fit an estimator that charges an accountant: it is given one that draws from a slot.

        Parameters
        ----------
        slot
            What was paid for the fit.
        estimator
            Of any author: it is held to what was paid (`tacit.queries.prepaid.Prepaid`).
        budget
            The share of the budget that the fit was planned for.
        who
            What is fitted, for errors, which add its class.
        table
            Makes what is fitted to of the records; by default it is them.
        unit
            Makes whose each record is of them, if that is told.
        """
        paid, records = self._tally.paid(slot).event, self._records
        accountant = Prepaid(
            priced(paid, self._tally.source),
            budget,
            who,
            lambda: self._tally.take(slot, paid),
        )
        made = records if table is None else table(records)
        return accountant.fit(estimator, made, None if unit is None else unit(records))

    def has_used(self, slot: str) -> bool:
        """Return whether anything was asked for what was paid under a name."""
        return self._tally.answered[slot].total() > 0

    def _child(self, slot: str, plan: ChildPlan, records: Private) -> Session:
        tally = _Tally(plan.event, plan.slots(), self._tally.source)
        weight = plan.facts.bounds.max_weight or self.facts.bounds.max_weight
        facts = replace(plan.facts, bounds=replace(plan.facts.bounds, max_weight=weight))
        child = Session.__new__(Session)._begin(records, facts, tally)
        self._tally.children.append((slot, child))
        return child

    def decide(self, name: str, value: object) -> None:
        """Note a public decision, which a replay on a neighbour repeats or refuses."""
        decide(name, value)

    def without_noise(self, function: Callable[[Any], T]) -> T:
        """Return a function of the records where no privacy was promised: an infinite budget."""
        if not isinstance(self._tally.planned, NonPrivate):
            raise RuntimeError(f"records were to be read without noise under a promise. {_BUG}")
        return function(self._records)

    def close(self) -> Event:
        """Return what the run cost, if every slot was asked as was planned."""
        return self._tally.close()

    def release(self, value: T) -> Release[T]:
        """Close, and return a value computed from the answers with what it cost."""
        return Release(value, self.close())


_USED_SAMPLE = object()


def _check_charged(slots: Mapping[str, Slot], planned: Event) -> None:
    """Refuse slots that are not, leaf by leaf, what was charged."""
    if isinstance(planned, NonPrivate):
        return  # nothing is promised
    answered: Counter[Event] = Counter()
    given_up = [n for s in slots.values() if isinstance(s.rule, ExchangedFor) for n in s.rule.slots]
    if len(given_up) > len(set(given_up)):
        raise RuntimeError(f"a slot of {dict(slots)} would be exchanged twice. {_BUG}")
    for slot in slots.values():
        answered += leaf_counts(slot.event, slot.rule.n)
        if isinstance(slot.rule, ExchangedFor) and slot != exchanged(slots, slot.rule.slots):
            raise RuntimeError(f"{slot} is not what its slots can be exchanged for. {_BUG}")
    if answered != leaf_counts(planned):
        raise RuntimeError(f"the slots {dict(slots)} are not what was charged, {planned}. {_BUG}")
