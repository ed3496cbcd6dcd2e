"""Events made of events: composed, parallel, one of several, or harmless but for a small chance."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from tacit import checks
from tacit.privacy.accounting.gaussian_profile import gaussian_delta
from tacit.privacy.budget import Relation, checked_relation
from tacit.privacy.events.base import Array, Event

if TYPE_CHECKING:
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution


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
class _Several(Event):
    """Several events under one relation."""

    events: tuple[Event, ...]
    relation: Relation = field(init=False)

    def __init__(self, events: tuple[Event, ...], relation: Relation | None = None) -> None:
        events, name = tuple(events), type(self).__name__
        if not events:
            raise ValueError(f"{name} needs at least one event; an empty release has no record.")
        for event in events:
            if not isinstance(event, Event):
                raise TypeError(f"{name} takes events, got {event!r}.")
        shared = common_relation(events)
        if relation is not None and relation is not shared:
            raise ValueError(f"relation {relation} contradicts the events' own {shared}.")
        object.__setattr__(self, "events", events)
        object.__setattr__(self, "relation", shared)


@dataclass(frozen=True, init=False)
class Composed(_Several):
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


@dataclass(frozen=True)
class RareLeak(Event):
    """With ``probability`` anything may be revealed, and otherwise nothing.

    Contract: on each of two neighbours the output has the law (1 - p) B + p A with the same B and
    any A, and p is at most ``probability``. Beside another event, B is the output that the other
    event accounts for, given all that this event adds. Example: a value that one record alone has,
    and the noise on the common values (`tacit.preprocessing.PrivateVocabulary`).

    Guarantee (docs/proofs/events.md, section 13), with p the probability:

        delta(e) = p + (1 - p) (1 - exp(e))_+

    Together with events of profile d(e), delta(e) = p + (1 - p) d(e).

    Examples
    --------
    >>> from tacit.privacy import Composed, Gaussian, Guarantee, RareLeak
    >>> noisy = Gaussian(4.0)
    >>> both = Guarantee(Composed((noisy, RareLeak(1e-7))))
    >>> round(both.delta(1.0) - Guarantee(noisy).delta(1.0), 10)
    1e-07
    """

    kind = "rare_leak"

    probability: float
    relation: Relation = Relation.ADD_REMOVE

    def __post_init__(self) -> None:
        self._check(probability="leave the event out where nothing can leak.")
        if not self.probability < 1.0:
            raise ValueError(
                f"probability must be below 1, got {self.probability!r}; what always leaks is "
                "NonPrivate(reason=...)."
            )

    def leak(self) -> float:
        """Return the probability."""
        return self.probability

    def profile(self, epsilon: Array) -> Array:
        """Return p + (1 - p) (1 - exp(e))_+."""
        p = self.probability
        return p - (1.0 - p) * np.expm1(np.minimum(epsilon, 0.0))

    def renyi(self, orders: Array) -> Array:
        """Return infinity: the loss is infinite with positive probability."""
        return np.full_like(orders, np.inf)

    def loss_distribution(self, interval: float) -> PrivacyLossDistribution:
        """Return the distribution of a loss that is 0 or infinite."""
        from dp_accounting.pld import pld_pmf, privacy_loss_distribution

        p = self.probability
        pmf = pld_pmf.create_pmf({0: 1.0 - p}, interval, infinity_mass=p, pessimistic_estimate=True)
        return privacy_loss_distribution.PrivacyLossDistribution(pmf)


@dataclass(frozen=True, init=False)
class _GreatestOf(_Several):
    """Events of which the most expensive is the cost, in each way of stating one."""

    @abstractmethod
    def parts(self) -> tuple[Event, ...]:
        """Return the events; the worst is the cost."""

    def gaussian_mu(self) -> float | None:
        """Return the greatest mu, if each part's releases are Gaussian."""
        each = [_gaussian_mu(part) for part in self.events]
        known = [mu for mu in each if mu is not None]
        return max(known) if len(known) == len(each) else None

    def profile(self, epsilon: Array) -> Array | None:
        """Return the greatest delta at each epsilon, if each part has a closed form."""
        each = [_profile(part, epsilon) for part in self.events]
        known = [deltas for deltas in each if deltas is not None]
        return np.max(known, axis=0) if len(known) == len(each) else None

    def renyi(self, orders: Array) -> Array:
        """Return the greatest divergence at each order."""
        greatest: Array = np.max([part.renyi(orders) for part in self.events], axis=0)
        return greatest

    def pure_epsilon(self) -> float:
        """Return the greatest loss of any part."""
        return max(
            math.fsum(n * leaf.pure_epsilon() for leaf, n in part.leaves()) for part in self.events
        )

    def loss_distribution(self, interval: float) -> PrivacyLossDistribution | None:
        """Return the distribution whose profile is the greatest of the parts', rounded up."""
        from tacit.privacy.accounting.loss_distribution import from_greatest_profile

        if self.profile(np.zeros(1)) is not None:
            return super().loss_distribution(interval)
        return from_greatest_profile([tuple(part.leaves()) for part in self.events], interval)

    def reasons_void(self) -> tuple[str, ...]:
        """Return the reasons that make any part's guarantee void."""
        return tuple(
            why for part in self.events for leaf, _ in part.leaves() for why in leaf.reasons_void()
        )


@dataclass(frozen=True)
class OneOf(_GreatestOf):
    """One of ``events``, chosen by a public law independent of the records; the choice is public.

    Contract: the choice, and all that it is made from, is independent of the records.

    Guarantee (docs/proofs/best_of.md, section 3): the greatest of the costs, in each way of
    stating one, as for `Parallel`. Given the choice c, the privacy loss is that of event c, so
    every divergence of the whole is a mean of theirs.

    Examples
    --------
    >>> from tacit.privacy import Gaussian, OneOf
    >>> OneOf((Gaussian(2.0), Gaussian(4.0))).gaussian_mu()
    0.5
    """

    kind = "one_of"

    def __init__(self, events: tuple[Event, ...], relation: Relation | None = None) -> None:
        # Equal events are one case; their order is kept, so the event is a function of its cases.
        super().__init__(tuple(dict.fromkeys(events)), relation)

    def parts(self) -> tuple[Event, ...]:
        """Return the event of each choice."""
        return self.events


@dataclass(frozen=True, init=False)
class Parallel(_GreatestOf):
    """One event for each part of the records; neighbours differ in one part only.

    Contract: a record's part does not depend on other records or on any release
    (`tacit.records.splits`). Under ADD_REMOVE it follows from the record itself and a key, under
    ADD_REMOVE_PERSON from its person, under REPLACE from its position. Event j is the cost of all
    releases from part j. A release may depend on all outputs before it, of any part (a model
    learned from one part may be tried on another); the events may not.

    Guarantee (docs/proofs/events.md, section 12): the greatest of the parts' costs, in each way of
    stating one: mu, delta at every epsilon, Renyi divergence at every order, pure loss.

    Examples
    --------
    >>> from tacit.privacy import Gaussian, Guarantee, Parallel, PureEpsilon
    >>> Guarantee(Parallel((Gaussian(3.0), Gaussian(4.0)))).epsilon(1e-6) == Guarantee(
    ...     Gaussian(3.0)
    ... ).epsilon(1e-6)
    True
    """

    kind = "parallel"

    def parts(self) -> tuple[Event, ...]:
        """Return the event of each part."""
        return self.events


def _gaussian_mu(part: Event) -> float | None:
    """Return the total mu of Gaussian releases, or None."""
    squares = 0.0
    for leaf, n in part.leaves():
        mu = leaf.gaussian_mu()
        if mu is None:
            return None
        squares += n * mu * mu
    return math.sqrt(squares)


def _profile(part: Event, epsilon: Array) -> Array | None:
    """Return the profile of Gaussian releases, or of one release, or None."""
    mu = _gaussian_mu(part)
    if mu is not None:
        return gaussian_delta(mu, epsilon)
    leaves = tuple(part.leaves())
    return leaves[0][0].profile(epsilon) if len(leaves) == 1 and leaves[0][1] == 1 else None
