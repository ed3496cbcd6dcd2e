"""Ask private queries in a charged run, each within a slot of its plan.

A plan consists of named slots. A `Slot` is an event that was charged under a name, and a rule for
the queries that may use it. Each rule has a proof that the queries it allows cost no more than the
event. A session applies the rule before a record is read, and again when it closes.

A session holds the records; an algorithm sees the public facts and calls `ask`. A query that does
not fit its slot is refused before a record is read. `close` refuses a run that left a slot
unfinished, so that the release is what was charged.

A view holds public values only. It transforms the records and their facts together (`Session.on`).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Protocol, TypeVar

import numpy as np

from tacit.noise import Release, Source, secure_source
from tacit.noise.exact.lattice import Ahead
from tacit.noise.release import decide, priced
from tacit.privacy import (
    BestOf,
    Budget,
    Composed,
    Event,
    Gaussian,
    NonPrivate,
    OneOf,
    Parallel,
    Relation,
)
from tacit.privacy.accounting.number_of_trials import TriesLaw
from tacit.privacy.events import Repeated
from tacit.privacy.guarantee import Booking
from tacit.queries.base import CanBeHeld, Facts, Held, Private, Query
from tacit.queries.prepaid import Prepaid
from tacit.records.grouped import PeopleInMemory, PeopleInSource
from tacit.records.privacy_unit import people_of
from tacit.records.reweighted import ReweightedRecords, WeightFunction
from tacit.records.splits import new_key, parts_of

# Sums of mu^2 within this relative distance of the charge are compared as exact fractions.
_NEAR = 1e-12


class _ChargedEachTime:
    """A rule that is charged as often as its query may be asked."""

    n: int

    @property
    def n_charged(self) -> int:
        """How often the slot's event is charged."""
        return self.n


class _AnyNumber:
    """A rule under which a run may end after any number of queries."""

    def is_met(self, questions_taken: Counter[Event]) -> bool:
        """Return True: any number is allowed."""
        return True


@dataclass(frozen=True)
class Exactly(_ChargedEachTime):
    """A query that is asked exactly ``n`` times, each time at the price of the slot.

    Proof: the charge is the list of all slots' events, each ``n`` times; nothing else may be asked.
    Composition allows each query to depend on earlier answers.
    """

    n: int = 1

    def allows(self, planned: Event, price: Event, questions_taken: Counter[Event]) -> bool:
        """Return whether one more query may be asked at this price."""
        return price == planned and questions_taken.total() < self.n

    def is_met(self, questions_taken: Counter[Event]) -> bool:
        """Return whether the run may end."""
        return questions_taken.total() == self.n

    def __str__(self) -> str:
        return f"exactly {self.n} times"


@dataclass(frozen=True)
class AtMost(_ChargedEachTime, _AnyNumber):
    """A query that is asked at most ``n`` times; unused queries stay charged.

    Proof: a charged event that is not released costs nothing, so that omitting releases can only
    lower the cost.
    """

    n: int = 1

    def allows(self, planned: Event, price: Event, questions_taken: Counter[Event]) -> bool:
        """Return whether one more query may be asked at this price."""
        return price == planned and questions_taken.total() < self.n

    def __str__(self) -> str:
        return f"at most {self.n} times"


@dataclass(frozen=True)
class GaussianSum(_AnyNumber):
    """Any number of Gaussian queries, with any noise, within one Gaussian event.

    The sum of their 1 / multiplier^2 is at most that of the slot. Earlier answers may decide which
    queries are asked, and with how much noise.

    Proof: adaptive Gaussian releases of mu_1, mu_2, ... are dominated by one of
    sqrt(mu_1^2 + mu_2^2 + ...), if a bound on this sum holds for all answers
    (docs/proofs/events.md, section 3).
    """

    n_charged: int = 1  # multiplicity of the charged event

    def allows(self, planned: Event, price: Event, questions_taken: Counter[Event]) -> bool:
        """Return whether one more query may be asked at this price."""
        return _fits_gaussian(planned, price, questions_taken)

    def __str__(self) -> str:
        return "as often as mu^2 allows"


@dataclass(frozen=True)
class CoveredBy(_ChargedEachTime):
    """One query whose event costs no more than the slot's: noise adapted to a count.

    Proof: `Event.covers` compares the parameters in which the bound on the privacy loss is monotone
    (docs/proofs/objective_perturbation.md, section 13). The slot's profile bounds the query's
    profile for all earlier answers.
    """

    n: int = 1

    def allows(self, planned: Event, price: Event, questions_taken: Counter[Event]) -> bool:
        """Return whether the query may be asked at this price."""
        return questions_taken.total() < self.n and planned.covers(price)

    def is_met(self, questions_taken: Counter[Event]) -> bool:
        """Return whether the run may end."""
        return questions_taken.total() == self.n

    def __str__(self) -> str:
        return "once, at this price or less"


@dataclass(frozen=True)
class ExchangedFor(_AnyNumber):
    """Gaussian queries in place of other slots, which are then not used.

    The slot's event is a Gaussian release that costs no more than those slots together
    (`exchanged`). It is charged with these slots, not in addition.

    Proof: docs/proofs/objective_perturbation.md, section 15.
    """

    slots: tuple[str, ...]
    n_charged: int = 0  # it charges nothing of its own

    def allows(self, planned: Event, price: Event, questions_taken: Counter[Event]) -> bool:
        """Return whether one more query may be asked at this price."""
        return _fits_gaussian(planned, price, questions_taken)

    def __str__(self) -> str:
        return f"in the place of {' and '.join(self.slots)}, as often as mu^2 allows"


@dataclass(frozen=True)
class CorrelatedSteps(_AnyNumber):
    """Steps of one run with correlated noise; the event is that of all steps together.

    The price of each step is the event of the run, and its noise is part of the run's noise, drawn
    by one strategy. There are at most ``most`` steps.

    Proof: docs/proofs/networks.md, on trainings with correlated noise; fewer steps are a
    function of the release of all steps.
    """

    most: int
    n_charged: int = 1

    def allows(self, planned: Event, price: Event, questions_taken: Counter[Event]) -> bool:
        """Return whether one more step may be taken."""
        return price == planned and questions_taken.total() < self.most

    def __str__(self) -> str:
        return f"in up to {self.most} steps"


@dataclass(frozen=True)
class BestOfTries:
    """Runs of which only the best is released, each at the price of one of several events.

    The slot's event is `BestOf` of a `OneOf`. ``n_tries``, the number K of runs, is drawn from the
    distribution in that event, independently of the records. K is secret: a stored plan omits it,
    and only the session that makes the runs receives it.

    Proof: docs/proofs/best_of.md, sections 1 to 3, for any release of the runs and any order that
    selects the best. Each run's candidate is drawn before the run and without the records. The
    caller must keep the other runs secret.
    """

    n_tries: int | None = None
    n_charged: int = 1  # multiplicity of the charged event

    def allows(self, planned: Event, price: Event, questions_taken: Counter[Event]) -> bool:
        """Return whether one more run may be made at a price."""
        if self.n_tries is None or questions_taken.total() >= self.n_tries:
            return False
        if planned.reasons_void():  # the guarantee is void
            return bool(price.reasons_void())
        cases = planned.base if isinstance(planned, BestOf) else None
        return isinstance(cases, OneOf) and price in cases.events

    def is_met(self, questions_taken: Counter[Event]) -> bool:
        """Return whether all runs were made."""
        return questions_taken.total() == self.n_tries

    def __str__(self) -> str:
        return "for the best of a secret number of tries"


Rule = Exactly | AtMost | GaussianSum | CoveredBy | ExchangedFor | CorrelatedSteps | BestOfTries


@dataclass(frozen=True)
class Slot:
    """An event that a plan charged under a name, and the rule for its queries."""

    event: Event
    rule: Rule = Exactly()


def composed(slots: Mapping[str, Slot]) -> Event:
    """Return the composition of all slots, which is the event that a plan charges."""
    events = [
        slot.event if slot.rule.n_charged == 1 else Repeated(slot.event, slot.rule.n_charged)
        for slot in slots.values()
        if slot.rule.n_charged
    ]
    return events[0] if len(events) == 1 else Composed(tuple(events))


def best_of(events: Iterable[Event], law: TriesLaw) -> Slot:
    """Return the slot of the best of K runs, each at the price of one of several events.

    Examples
    --------
    >>> from tacit.privacy import Gaussian
    >>> from tacit.privacy.accounting.number_of_trials import FixedTries
    >>> from tacit.queries.session import best_of
    >>> best_of([Gaussian(2.0), Gaussian(3.0)], FixedTries(4)).event.law
    FixedTries(count=4)
    """
    return Slot(BestOf(OneOf(tuple(events)), law), BestOfTries())


def leaf_counts(event: Event, times: int = 1) -> Counter[Event]:
    """Return how often each elementary event occurs in an event."""
    counts: Counter[Event] = Counter()
    for leaf, n in event.leaves():
        counts[leaf] += n * times
    return counts


def exchanged(slots: Mapping[str, Slot], names: tuple[str, ...]) -> Slot:
    """Return the slot of Gaussian queries that may be asked in place of others.

    mu^2 = sum over the events of ``names`` of the mu^2 of a Gaussian release that each dominates,
    rounded down.
    """
    parts = []
    for name in names:
        for leaf, n in slots[name].event.leaves():
            mu = leaf.dominated_gaussian_mu()
            if mu is None:
                raise ValueError(f"{leaf} is not known to dominate a Gaussian release.")
            parts += [mu] * n * slots[name].rule.n_charged
    mu = math.sqrt(math.fsum(part**2 for part in parts)) * (1 - 2.0**-40)
    relation = slots[names[0]].event.relation
    return Slot(Gaussian(1 / mu, relation), ExchangedFor(names))


def _fits_gaussian(planned: Event, price: Event, questions_taken: Counter[Event]) -> bool:
    if not (isinstance(planned, Gaussian) and isinstance(price, Gaussian)):
        return False
    if price.relation is not planned.relation:
        return False
    multipliers = Counter({price.noise_multiplier: 1})
    for event, n in questions_taken.items():
        assert isinstance(event, Gaussian), "nothing else was allowed"
        multipliers[event.noise_multiplier] += n
    share = math.fsum(n * (planned.noise_multiplier / z) ** 2 for z, n in multipliers.items())
    if abs(share - 1.0) > _NEAR:
        return share < 1.0
    exact = sum(n / Fraction(z) ** 2 for z, n in multipliers.items())
    return exact <= 1 / Fraction(planned.noise_multiplier) ** 2


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

    The sensitivities of one do not hold for the other. Do not weight grouped records: take
    OneRecordEach first.
    """
    is_grouped = isinstance(records, PeopleInMemory | PeopleInSource)
    beneath = records
    while isinstance(beneath, ReweightedRecords):
        beneath = beneath.records
    weights_grouped_records = beneath is not records and isinstance(
        beneath, PeopleInMemory | PeopleInSource
    )
    if facts.sums_by_person != is_grouped or weights_grouped_records:
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
        self.questions_taken: dict[str, Counter[Event]] = {name: Counter() for name in slots}
        self.given_up: set[str] = set()
        self.children: list[tuple[str, Session]] = []
        self.is_closed = self.is_settled = False
        _check_charged(self.slots, planned)

    def slot_named(self, name: str) -> Slot:
        """Return the slot of a name, or refuse an unknown name."""
        slot = self.slots.get(name)
        if slot is None:
            raise RuntimeError(
                f"the plan has no slot {name!r}; it has "
                f"{', '.join(map(repr, self.slots)) or 'no slots'}. {_BUG}"
            )
        return slot

    def take(self, slot: str, price: Event) -> None:
        """Count one more query, or refuse it."""
        if self.is_closed:
            raise RuntimeError(f"the session is closed, but {slot!r} was asked. {_BUG}")
        planned, questions_taken = self.slot_named(slot), self.questions_taken[slot]
        if slot in self.given_up or not planned.rule.allows(planned.event, price, questions_taken):
            raise RuntimeError(
                f"{slot!r} would release {price}, but what was paid for it is {planned.event}, "
                f"{planned.rule}; asked before: {questions_taken.total()} times. {_BUG}"
            )
        if isinstance(planned.rule, ExchangedFor):
            replaced = planned.rule.slots
            if any(self.questions_taken[name] for name in replaced):
                raise RuntimeError(
                    f"{slot!r} replaces {replaced}, one of which was asked already. {_BUG}"
                )
            # Asking this slot gives up the slots that it replaces.
            self.given_up.update(replaced)
        questions_taken[price] += 1

    def close(self) -> Event:
        self.is_closed = True
        for name, slot in self.slots.items():
            questions_taken = self.questions_taken[name]
            if name not in self.given_up and not slot.rule.is_met(questions_taken):
                raise RuntimeError(
                    f"{name!r} was asked {questions_taken.total()} times and planned {slot.rule}: "
                    f"the release is withheld. {_BUG}"
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
    >>> from tacit.queries import Count, Facts, GaussianNoise, NoisySum
    >>> from tacit.queries.session import Slot
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
        """The place where the charge is recorded, if any."""
        return self._tally.booking

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
        charged, records = self._tally.slot_named(slot).event, self._records
        accountant = Prepaid(
            priced(charged, self._tally.source),
            budget,
            who,
            lambda: self._tally.take(slot, charged),
        )
        made = records if table is None else table(records)
        return accountant.fit(estimator, made, None if unit is None else unit(records))

    def has_used(self, slot: str) -> bool:
        """Return whether anything was asked of a slot."""
        return self._tally.questions_taken[slot].total() > 0

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
    charged: Counter[Event] = Counter()
    given_up = [n for s in slots.values() if isinstance(s.rule, ExchangedFor) for n in s.rule.slots]
    if len(given_up) > len(set(given_up)):
        raise RuntimeError(f"a slot of {dict(slots)} would be exchanged twice. {_BUG}")
    for slot in slots.values():
        charged += leaf_counts(slot.event, slot.rule.n_charged)
        if isinstance(slot.rule, ExchangedFor) and slot != exchanged(slots, slot.rule.slots):
            raise RuntimeError(f"{slot} is not what its slots can be exchanged for. {_BUG}")
    if charged != leaf_counts(planned):
        raise RuntimeError(f"the slots {dict(slots)} are not what was charged, {planned}. {_BUG}")
