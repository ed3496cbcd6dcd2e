"""Releases from disjoint parts of the records: the worst part is the cost of all."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from tacit.privacy.events.base import Array, Event
from tacit.privacy.events.composed import common_relation
from tacit.privacy.gaussian_profile import gaussian_delta
from tacit.privacy.relation import Relation

if TYPE_CHECKING:
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution


@dataclass(frozen=True)
class Parallel(Event):
    """One event for each part of the records; neighbours differ in one part only.

    Contract: a record's part does not depend on other records or on any release
    (`tacit.records.parts`). Under ADD_REMOVE it follows from the record itself and a key, under
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

    events: tuple[Event, ...]
    relation: Relation = field(init=False)

    def __init__(self, events: tuple[Event, ...], relation: Relation | None = None) -> None:
        events = tuple(events)
        if not events:
            raise ValueError("Parallel needs at least one part; an empty release has no record.")
        for event in events:
            if not isinstance(event, Event):
                raise TypeError(f"Parallel takes events, one for each part, got {event!r}.")
        shared = common_relation(events)
        if relation is not None and relation is not shared:
            raise ValueError(f"relation {relation} contradicts the events' own {shared}.")
        object.__setattr__(self, "events", events)
        object.__setattr__(self, "relation", shared)

    def parts(self) -> tuple[Event, ...]:
        """Return the event of each part."""
        return self.events

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
        from tacit.privacy.loss_distribution import from_greatest_profile

        if self.profile(np.zeros(1)) is not None:
            return super().loss_distribution(interval)
        return from_greatest_profile([tuple(part.leaves()) for part in self.events], interval)

    def reasons_void(self) -> tuple[str, ...]:
        """Return the reasons that make any part's guarantee void."""
        return tuple(
            why for part in self.events for leaf, _ in part.leaves() for why in leaf.reasons_void()
        )


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
