"""One of several releases, chosen independently of the records."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from tacit.privacy.events.base import Array, Event
from tacit.privacy.events.parallel import Parallel
from tacit.privacy.relation import Relation

if TYPE_CHECKING:
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution


@dataclass(frozen=True)
class OneOf(Event):
    """One of ``events``, chosen by a public law independent of the records; the choice is public.

    Contract: the choice, and all that it is made from, is independent of the records.

    Guarantee (docs/proofs/selection.md, section 3): the greatest of the costs, in each way of
    stating one, as for `Parallel`. Given the choice c, the privacy loss is that of event c, so
    every divergence of the whole is a mean of theirs.

    Examples
    --------
    >>> from tacit.privacy import Gaussian, OneOf
    >>> OneOf((Gaussian(2.0), Gaussian(4.0))).gaussian_mu()
    0.5
    """

    kind = "one_of"

    events: tuple[Event, ...]
    relation: Relation = field(init=False)

    def __init__(self, events: tuple[Event, ...], relation: Relation | None = None) -> None:
        # Equal events are one case; their order is kept, so the event is a function of its cases.
        greatest = Parallel(tuple(dict.fromkeys(events)), relation)
        object.__setattr__(self, "events", greatest.events)
        object.__setattr__(self, "relation", greatest.relation)

    @cached_property
    def _greatest(self) -> Parallel:
        return Parallel(self.events)

    def parts(self) -> tuple[Event, ...]:
        """Return the events; the worst is the cost."""
        return self.events

    def gaussian_mu(self) -> float | None:
        """Return the greatest mu, if all are Gaussian."""
        return self._greatest.gaussian_mu()

    def profile(self, epsilon: Array) -> Array | None:
        """Return the greatest delta at each epsilon, if each event has a closed form."""
        return self._greatest.profile(epsilon)

    def renyi(self, orders: Array) -> Array:
        """Return the greatest divergence at each order."""
        return self._greatest.renyi(orders)

    def pure_epsilon(self) -> float:
        """Return the greatest pure epsilon."""
        return self._greatest.pure_epsilon()

    def loss_distribution(self, interval: float) -> PrivacyLossDistribution | None:
        """Return the distribution whose profile is the greatest, rounded up."""
        return self._greatest.loss_distribution(interval)

    def reasons_void(self) -> tuple[str, ...]:
        """Return the reasons that make any of the guarantees void."""
        return self._greatest.reasons_void()
