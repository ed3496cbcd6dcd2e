"""The charged run in which private questions are asked.

A session holds the records; an algorithm sees its public facts and says `ask`. Every question goes
to a *slot* of the plan, which says what it may cost and how often it may be asked. A question that
does not fit its slot is refused before noise is drawn, and `close` refuses a run that left a slot
open: what was released is then exactly what was charged.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from tacit.noise import Release, Source, secure_source
from tacit.noise.release import priced
from tacit.privacy import Composed, Event, NonPrivate
from tacit.privacy.events import Repeated
from tacit.queries.base import CanBeHeld, Facts, Held, Query, View

T = TypeVar("T")
_BUG = "This is a bug in the mechanism; please report it as SECURITY.md says."


@dataclass(frozen=True)
class Exactly:
    """A question that is asked so many times, each at the price of the slot.

    Proof: the events of all slots, each as often as it says, are the leaves of the event that was
    charged; composition allows each to depend on the answers before it.
    """

    n: int = 1

    def allows(self, n_asked: int) -> bool:
        """Return whether one more may be asked."""
        return n_asked < self.n

    def is_met(self, n_asked: int) -> bool:
        """Return whether the run may end."""
        return n_asked == self.n


@dataclass(frozen=True)
class AtMost:
    """A question that is asked so many times or fewer; what is not asked stays paid for.

    Proof: an event that is charged and not released costs nothing, so that leaving some out can
    only lower what was spent.
    """

    n: int = 1

    def allows(self, n_asked: int) -> bool:
        """Return whether one more may be asked."""
        return n_asked < self.n

    def is_met(self, n_asked: int) -> bool:
        """Return whether the run may end."""
        return True


Rule = Exactly | AtMost


@dataclass(frozen=True)
class Slot:
    """What a plan has paid for under one name: an event, and how often it may be asked."""

    event: Event
    rule: Rule = Exactly()


class Session:
    """Asks the questions of one plan, after its charge.

    Parameters
    ----------
    view
        The records. Private: nothing but `ask`, `hold` and `without_noise` reads them.
    facts
        What is public of them.
    planned
        The event that was charged.
    slots
        What may be asked, by name. Their events together are ``planned``.
    source
        Randomness; a seeded one voids the guarantee. A fresh secure one by default.

    Notes
    -----
    **Guarantee**. `close` returns ``planned`` (void where the source is seeded) only if each slot
    was asked as often as its rule says, each time at its price; a question to an unknown slot, at
    another price, or once more than was paid for raises before it reads a record.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.privacy import Gaussian, Relation
    >>> from tacit.queries import Count, Facts, GaussianNoise, NoisySum, Session, Slot
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
        view: View,
        facts: Facts,
        planned: Event,
        slots: Mapping[str, Slot],
        source: Source | None = None,
    ) -> None:
        self._view, self.facts = view, facts
        self._planned, self._slots = planned, dict(slots)
        self._source = secure_source() if source is None else source
        self._asked: Counter[str] = Counter()
        self._is_closed = False
        _check_covers(self._slots, planned)

    def ask(self, query: Query[T], slot: str, *, of: Held | None = None) -> T:
        """Return the noisy answer to a question, at the price of a slot.

        ``of`` names a total that is held; by default the question is asked of the records.
        """
        if self._is_closed:
            raise RuntimeError(f"the session is closed; {slot!r} was asked too late. {_BUG}")
        paid = self._slots.get(slot)
        if paid is None:
            raise RuntimeError(
                f"nothing was planned under the name {slot!r}; the plan has "
                f"{', '.join(map(repr, self._slots)) or 'no slots'}. {_BUG}"
            )
        price = query.event(self.facts)
        if price != paid.event or not paid.rule.allows(self._asked[slot]):
            raise RuntimeError(
                f"{slot!r} would release {price}, and what was paid for it is {paid.event}, "
                f"{paid.rule}; asked before: {self._asked[slot]} times. {_BUG}"
            )
        self._asked[slot] += 1
        released = query.answer(self._view if of is None else of, self.facts, self._source)
        if released.event != priced(price, self._source):
            raise RuntimeError(
                f"{slot!r} released {released.event} and was to cost {price}: it is withheld. "
                f"{_BUG}"
            )
        return released.value

    def hold(self, statistic: CanBeHeld) -> Held:
        """Compute what several questions are about, once; it cannot be read, only asked of."""
        return Held(statistic.held(self._view))

    def without_noise(self, function: Callable[[View], T]) -> T:
        """Return a function of the records where no privacy was promised: an infinite budget."""
        if not isinstance(self._planned, NonPrivate):
            raise RuntimeError(f"records were to be read without noise under a promise. {_BUG}")
        return function(self._view)

    def close(self) -> Event:
        """Return what the run cost, if every slot was asked as often as was planned."""
        self._is_closed = True
        for name, slot in self._slots.items():
            if not slot.rule.is_met(self._asked[name]):
                raise RuntimeError(
                    f"{name!r} was asked {self._asked[name]} times and planned {slot.rule}: the "
                    f"release is withheld. {_BUG}"
                )
        return priced(self._planned, self._source)

    def release(self, value: T) -> Release[T]:
        """Close, and return a value computed from the answers with what it cost."""
        return Release(value, self.close())


def composed(slots: Mapping[str, Slot]) -> Event:
    """Return the event of all slots together, which is what a plan charges."""
    events = [
        slot.event if slot.rule.n == 1 else Repeated(slot.event, slot.rule.n)
        for slot in slots.values()
    ]
    return events[0] if len(events) == 1 else Composed(tuple(events))


def _check_covers(slots: Mapping[str, Slot], planned: Event) -> None:
    """Refuse slots that are not, leaf by leaf, what was charged."""
    if isinstance(planned, NonPrivate):
        return  # nothing is promised
    asked: Counter[Event] = Counter()
    for slot in slots.values():
        for leaf, n in slot.event.leaves():
            asked[leaf] += n * slot.rule.n
    charged: Counter[Event] = Counter()
    for leaf, n in planned.leaves():
        charged[leaf] += n
    if asked != charged:
        raise RuntimeError(f"the slots {dict(slots)} are not what was charged, {planned}. {_BUG}")


def total_of(view: View, compute: Callable[[Any], Any]) -> Any:
    """Return a total that is held, or compute it from records: for statistics alone."""
    return view._total if isinstance(view, Held) else compute(view)
