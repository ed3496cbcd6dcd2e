"""Ask private queries in a charged run, on the records or on a view of them.

A session holds the records; an algorithm sees the public facts and calls `ask`. Every query uses a
*slot* of the plan, which states its price and how often it may be asked (`tacit.queries.rules`). A
query that does not fit its slot is refused before a record is read. `close` refuses a run that left
a slot unfinished, so that the release is what was charged.

A view is public: words and numbers that follow from a plan and from answers. It transforms the
records and their facts; `Session.on` applies both together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar

import numpy as np

from tacit.noise import Release, Source, secure_source
from tacit.noise.exact.lattice import Ahead
from tacit.noise.release import priced
from tacit.noise.replay import decide
from tacit.privacy import Budget, Event, NonPrivate, Parallel, Relation
from tacit.privacy.guarantee import Booking
from tacit.queries.base import CanBeHeld, Facts, Held, Private, Query
from tacit.queries.prepaid import Prepaid
from tacit.queries.rules import ExchangedFor, Slot, composed, exchanged, leaf_counts
from tacit.records.grouped import PeopleInMemory, PeopleInSource
from tacit.records.privacy_unit import people_of
from tacit.records.reweighted import ReweightedRecords, WeightFunction
from tacit.records.splits import new_key, parts_of


class View(Protocol):
    """A transformation of records and of their public facts."""

    def apply(self, records: Private, facts: Facts, source: Source) -> tuple[Private, Facts]:
        """Return the transformed records and facts."""


@dataclass(frozen=True)
class OneRecordEach:
    """One record per person, chosen by identifier; all records if they are not grouped."""

    def apply(self, records: Private, facts: Facts, source: Source) -> tuple[Private, Facts]:
        """Return one record per person."""
        if isinstance(records, PeopleInMemory | PeopleInSource):
            records = records.one_each()
        return records, replace(facts, sums_by_person=False)


@dataclass(frozen=True, eq=False)
class Reweighted:
    """The records, each times a weight in [0, 1] that depends on the record alone."""

    weight: WeightFunction

    def apply(self, records: Private, facts: Facts, source: Source) -> tuple[Private, Facts]:
        """Return the weighted records."""
        weighted = ReweightedRecords(records, self.weight)
        return weighted, replace(facts, bounds=self.weight.bounds(facts.bounds))


@dataclass(frozen=True)
class PoissonSample:
    """A Poisson sample: each record, or person, independently with probability ``rate``.

    The sampled records state the rate at which they were sampled; it determines the price.
    """

    rate: float

    def apply(self, records: Private, facts: Facts, source: Source) -> tuple[Private, Facts]:
        """Return a fresh sample."""
        sample = records.poisson_sample(self.rate, source.words)
        return sample.records, replace(facts, sampling_rate=sample.rate)


@dataclass(frozen=True, eq=False)
class DisjointParts:
    """Parts of a table, no two of which share a record; `Session.parts` queries each part."""

    parts: tuple[Private, ...]

    def __repr__(self) -> str:
        return f"DisjointParts({len(self.parts)} parts)"


@dataclass(frozen=True)
class Split:
    """Split an `EncodedTable` into disjoint parts; a record's part is independent of other records.

    Parameters
    ----------
    shares
        The approximate share of the records in each part; they add up to 1.
    key
        Random bytes that determine the split, drawn independently of the records; None draws some.
    """

    shares: tuple[float, ...]
    key: bytes | None = None

    def apply(self, records: Private, facts: Facts, source: Source) -> tuple[Private, Facts]:
        """Return the parts, which are read now."""
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
        """Return the number of records in each part, if positions alone determine it; else None."""
        if n_records is None or relation is not Relation.REPLACE or self.key is None:
            return [None] * len(self.shares)
        part = parts_of(self.shares, self.key, relation, np.empty((n_records, 0)))
        return [int(n) for n in np.bincount(part, minlength=len(self.shares))]


def check_unit(records: object, facts: Facts) -> None:
    """Refuse ungrouped records if sums per person are clipped, and grouped records otherwise.

    The sensitivities of one do not hold for the other. Weighted records of people are neither:
    one record per person is weighted.
    """
    knows = isinstance(records, PeopleInMemory | PeopleInSource)
    beneath = records
    while isinstance(beneath, ReweightedRecords):
        beneath = beneath.records
    hides = beneath is not records and isinstance(beneath, PeopleInMemory | PeopleInSource)
    if facts.sums_by_person != knows or hides:
        raise ValueError(
            "a plan with sums per person needs records grouped by person, and grouped "
            "records need such a plan; view them as OneRecordEach() otherwise."
        )


T = TypeVar("T")
_BUG = "This is a bug in the mechanism; please report it as SECURITY.md says."


class ChildPlan(Protocol):
    """A plan inside another plan: a step of a pipeline, the weights behind standard errors."""

    @property
    def event(self) -> Event:
        """The cost of the plan."""

    @property
    def facts(self) -> Facts:
        """The public facts of its records."""

    def slots(self) -> Mapping[str, Slot]:
        """Return the slots by name."""


@dataclass(frozen=True)
class Questions:
    """A plan that consists of slots alone; its event is their composition."""

    facts: Facts
    paid: Mapping[str, Slot]

    @property
    def event(self) -> Event:
        """The composition of the slots."""
        return composed(self.paid)

    def slots(self) -> Mapping[str, Slot]:
        """Return the slots by name."""
        return self.paid


@dataclass(frozen=True)
class InParts:
    """A plan for disjoint parts of the records, each with its own plan: see `Session.parts`."""

    parts: tuple[ChildPlan, ...]

    @property
    def event(self) -> Event:
        """The cost of all parts together: that of the most expensive part."""
        return Parallel(tuple(part.event for part in self.parts))

    @property
    def facts(self) -> Facts:
        """The public facts of the records."""
        return self.parts[0].facts

    def slots(self) -> Mapping[str, Slot]:
        """Return the single slot of all parts."""
        return {"parts": Slot(self.event)}


class _Tally:
    """The queries asked of each slot so far, shared by a run and its views."""

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
        """Return the slot of a name, or refuse an unknown name."""
        paid = self.slots.get(slot)
        if paid is None:
            raise RuntimeError(
                f"the plan has no slot {slot!r}; it has "
                f"{', '.join(map(repr, self.slots)) or 'no slots'}. {_BUG}"
            )
        return paid

    def take(self, slot: str, price: Event) -> None:
        """Count one more query, or refuse it."""
        if self.is_closed:
            raise RuntimeError(f"the session is closed, but {slot!r} was asked. {_BUG}")
        paid, answered = self.paid(slot), self.answered[slot]
        if slot in self.given_up or not paid.rule.allows(paid.event, price, answered):
            raise RuntimeError(
                f"{slot!r} would release {price}, but what was paid for it is {paid.event}, "
                f"{paid.rule}; asked before: {answered.total()} times. {_BUG}"
            )
        if isinstance(paid.rule, ExchangedFor):
            if any(self.answered[name] for name in paid.rule.slots):
                raise RuntimeError(
                    f"{slot!r} replaces {paid.rule.slots}, one of which was asked already. {_BUG}"
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
    """Ask the queries of one plan, after its charge.

    Parameters
    ----------
    records
        The private records; only `ask`, `hold`, `fit`, views and `without_noise` read them.
    facts
        The public facts of the records.
    planned
        The charged event.
    slots
        The slots by name; their composition is ``planned``.
    source
        The source of randomness, by default a fresh secure one; a seeded one voids the guarantee.
    booking
        The place where the charge is recorded, if any.

    Notes
    -----
    **Guarantee**. `close` returns ``planned`` (void if the source is seeded) only if every slot
    was used as its rule says. A query raises before it reads a record if its slot is unknown, if
    the rule does not allow its price, or if it is one more than was charged.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.privacy import Gaussian, Relation
    >>> from tacit.queries import Count, Facts, GaussianNoise, NoisySum, Slot
    >>> from tacit.queries import Session
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
        """The place where the charge is recorded, if any."""
        return self._tally.booking

    @property
    def is_closed(self) -> bool:
        """Whether the session accepts no more queries."""
        return self._tally.is_closed

    def ask(
        self, query: Query[T], slot: str, *, of: Held | None = None, noise: Ahead | None = None
    ) -> T:
        """Return the noisy answer to a query, at the price of a slot.

        ``of`` names a held total; by default the query is asked of the records. ``noise`` for a
        `NoisySum` was drawn by `tacit.noise.draw_ahead`, which hides one value and never another.
        Its cost is compared with the price like that of any noise.
        """
        price, source, records = query.event(self.facts), self._tally.source, self._records
        if of is not None and of._session not in (None, self):
            raise RuntimeError(f"{slot!r} asks a total that another session or view holds. {_BUG}")
        if records is _USED_SAMPLE:
            raise RuntimeError(f"{slot!r} would ask a Poisson sample twice. {_BUG}")
        self._tally.take(slot, price)
        if self.facts.sampling_rate is not None:
            self._records = _USED_SAMPLE  # the event covers one release per sample
        drawn: dict[str, Any] = {} if noise is None else {"noise": noise}
        released = query.answer(records if of is None else of, self.facts, source, **drawn)
        if released.event != priced(price, source):
            raise RuntimeError(
                f"{slot!r} released {released.event}, but its price is {price}: it is withheld. "
                f"{_BUG}"
            )
        return released.value

    def hold(self, statistic: CanBeHeld) -> Held:
        """Compute what several questions are about, once; it cannot be read, only asked of."""
        return Held(statistic.held(self._records, self.facts), statistic, self)

    def on(self, view: View) -> Session:
        """Return a session over another view of the records, with shared slots."""
        records, facts = view.apply(self._records, self.facts, self._tally.source)
        return Session.__new__(Session)._begin(records, facts, self._tally)

    def child(self, slot: str, plan: ChildPlan) -> Session:
        """Return the session of a plan inside this one; the caller closes it.

        Records that a view has weighted stay weighted, whether or not the plan declares weights.
        """
        self._tally.take(slot, plan.event)
        return self._child(slot, plan, self._records)

    def parts(self, slot: str, plan: InParts) -> tuple[Session, ...]:
        """Return a session for each disjoint part of records that the view `Split` has split.

        The slot's event is the parallel composition, `Parallel`, of the parts' events. The caller
        closes each session.

        Proof: docs/proofs/events.md, section 12. A record's part is independent of other records,
        so that neighbours differ in one part. The queries of a session cost its part's event. They
        may depend on answers from other parts; the events do not.
        """
        parted = self._records
        if not isinstance(parted, DisjointParts) or len(parted.parts) != len(plan.parts):
            raise RuntimeError(
                f"{slot!r} needs {len(plan.parts)} disjoint parts, but the records are not split "
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
        """Fit an estimator that charges an accountant; it gets one that draws from a slot.

        Parameters
        ----------
        slot
            The slot charged for the fit.
        estimator
            An estimator of any author; it may release only what was charged
            (`tacit.queries.prepaid.Prepaid`).
        budget
            The share of the budget for which the fit was planned.
        who
            The name of the fitted object for error messages, which add its class.
        table
            A function that makes the training table from the records; by default the records.
        unit
            A function that extracts the unit of each record, if there is one.
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
        """Return whether anything was asked of a slot."""
        return self._tally.answered[slot].total() > 0

    def _child(self, slot: str, plan: ChildPlan, records: Private) -> Session:
        tally = _Tally(plan.event, plan.slots(), self._tally.source)
        weight = plan.facts.bounds.max_weight or self.facts.bounds.max_weight
        facts = replace(plan.facts, bounds=replace(plan.facts.bounds, max_weight=weight))
        child = Session.__new__(Session)._begin(records, facts, tally)
        self._tally.children.append((slot, child))
        return child

    def decide(self, name: str, value: object) -> None:
        """Record a public decision, which a replay on a neighbour repeats or refuses."""
        decide(name, value)

    def without_noise(self, function: Callable[[Any], T]) -> T:
        """Return a function of the records without noise; only for an infinite budget."""
        if not isinstance(self._tally.planned, NonPrivate):
            raise RuntimeError(f"records would be read without noise under a guarantee. {_BUG}")
        return function(self._records)

    def close(self) -> Event:
        """Return the cost of the run, if every slot was used as planned."""
        return self._tally.close()

    def release(self, value: T) -> Release[T]:
        """Close, and return a value computed from the answers with its cost."""
        return Release(value, self.close())


_USED_SAMPLE = object()


def _check_charged(slots: Mapping[str, Slot], planned: Event) -> None:
    """Refuse slots that differ, leaf by leaf, from the charged event."""
    if isinstance(planned, NonPrivate):
        return  # the guarantee is void
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
