"""Combine several releases into one event, and mark values without any guarantee."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from tacit import checks
from tacit.privacy.events.base import Array, Event
from tacit.privacy.relation import Relation, checked_relation


def common_relation(events: tuple[Event, ...]) -> Relation:
    """Return the relation that all events share; raise if they differ."""
    relations = {event.relation for event in events}
    if len(relations) > 1:
        raise ValueError(
            "events under different relations cannot be combined: "
            f"{sorted(r.name for r in relations)}. Their epsilons measure different things; "
            "state every event under one relation, or convert a guarantee explicitly with "
            "replace_from_add_remove."
        )
    return relations.pop()


def _not_a_leaf(self: Event, orders: Array) -> Array:
    total = np.zeros_like(orders)
    for leaf, n in self.leaves():
        total += n * leaf.renyi(orders)
    return total


@dataclass(frozen=True)
class Composed(Event):
    """Events that happened one after another.

    Each release may depend on the outputs before it; the list of events may not. For events chosen
    in view of earlier outputs use an `Accountant`, whose rule is sound for them.

    Examples
    --------
    >>> from tacit.privacy import Composed, Gaussian, Guarantee
    >>> Guarantee(Composed((Gaussian(3.0), Gaussian(4.0)))).route(1e-6)
    'exact Gaussian composition'
    """

    kind = "composed"

    events: tuple[Event, ...]
    relation: Relation = field(init=False)

    def __init__(self, events: tuple[Event, ...], relation: Relation | None = None) -> None:
        events = tuple(events)
        if not events:
            raise ValueError("Composed needs at least one event; an empty release has no record.")
        for event in events:
            if not isinstance(event, Event):
                raise TypeError(f"Composed takes events, got {event!r}.")
        shared = common_relation(events)
        if relation is not None and relation is not shared:
            raise ValueError(f"relation {relation} contradicts the events' own {shared}.")
        object.__setattr__(self, "events", events)
        object.__setattr__(self, "relation", shared)

    renyi = _not_a_leaf

    def covers(self, other: Event) -> bool:
        """Return whether every event covers its counterpart."""
        if not isinstance(other, Composed) or len(self.events) != len(other.events):
            return False
        return all(mine.covers(its) for mine, its in zip(self.events, other.events, strict=True))

    def leaves(self) -> Iterator[tuple[Event, int]]:
        """Yield the leaves of every event."""
        for event in self.events:
            yield from event.leaves()


# Floats represent counts exactly up to here, and costs are counts times floats.
_MOST_TIMES = 2**53


@dataclass(frozen=True)
class Repeated(Event):
    """An event that happened ``count`` times.

    Examples
    --------
    >>> from tacit.privacy import Gaussian, Guarantee, Repeated
    >>> round(Guarantee(Repeated(Gaussian(10.0), 100)).epsilon(1e-5), 4)
    4.3772
    """

    kind = "repeated"

    event: Event
    count: int
    relation: Relation = field(init=False)

    def __init__(self, event: Event, count: int, relation: Relation | None = None) -> None:
        if not isinstance(event, Event):
            raise TypeError(f"Repeated takes an event, got {event!r}.")
        if relation is not None and relation is not event.relation:
            raise ValueError(f"relation {relation} contradicts the event's own {event.relation}.")
        object.__setattr__(self, "event", event)
        times = checks.count("count", count) * max(n for _, n in event.leaves())
        if times > _MOST_TIMES:
            raise ValueError(
                f"count must make at most {_MOST_TIMES} releases of one kind, got {times}; split "
                "the event into several."
            )
        object.__setattr__(self, "count", int(count))
        object.__setattr__(self, "relation", event.relation)

    renyi = _not_a_leaf

    def leaves(self) -> Iterator[tuple[Event, int]]:
        """Yield the leaves of the event with multiplied counts; counts are multiplied only here."""
        for leaf, n in self.event.leaves():
            yield leaf, n * self.count


@dataclass(frozen=True)
class NonPrivate(Event):
    """A value that was released without protection, at infinite cost.

    ``would_be`` is the event that the release would have had, for instance without a seeded
    generator.

    Examples
    --------
    >>> from tacit.privacy import Guarantee, NonPrivate
    >>> Guarantee(NonPrivate("read off the data")).epsilon(1e-5)
    inf
    """

    kind = "non_private"

    reason: str
    would_be: Event | None = None
    relation: Relation = Relation.ADD_REMOVE

    def __post_init__(self) -> None:
        if not isinstance(self.reason, str) or not self.reason.strip():
            raise ValueError("NonPrivate needs a reason, so that a report can say why.")
        checked_relation(self.relation)

    def profile(self, epsilon: Array) -> Array:
        """Return 1: there is no guarantee."""
        return np.ones_like(epsilon)

    def renyi(self, orders: Array) -> Array:
        """Return infinity."""
        return np.full_like(orders, math.inf)

    def reasons_void(self) -> tuple[str, ...]:
        """Return the reason."""
        return (self.reason,)
