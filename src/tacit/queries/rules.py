"""Define the rules of slots: how often, and at what price, a planned query may be asked.

A plan consists of named slots. A `Slot` is an event that was charged under a name, and a rule for
the queries that may use it. Each rule has a proof that the queries it allows cost no more than the
event. A session applies the rule before a record is read, and again when it closes.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction

from tacit.privacy import BestOf, Composed, Event, Gaussian, OneOf
from tacit.privacy.accounting.number_of_trials import TriesLaw
from tacit.privacy.events import Repeated

# Sums of mu^2 within this relative distance of the charge are compared as exact fractions.
_NEAR = 1e-12


@dataclass(frozen=True)
class Exactly:
    """A query that is asked exactly ``n`` times, each time at the price of the slot.

    Proof: the events of all slots, with their multiplicities, are the leaves of the charged event.
    Composition allows each query to depend on earlier answers.
    """

    n: int = 1

    def allows(self, planned: Event, price: Event, answered: Counter[Event]) -> bool:
        """Return whether one more query may be asked at this price."""
        return price == planned and answered.total() < self.n

    def is_met(self, answered: Counter[Event]) -> bool:
        """Return whether the run may end."""
        return answered.total() == self.n

    def __str__(self) -> str:
        return f"exactly {self.n} times"


@dataclass(frozen=True)
class AtMost:
    """A query that is asked at most ``n`` times; unused queries stay charged.

    Proof: a charged event that is not released costs nothing, so that omitting releases can only
    lower the cost.
    """

    n: int = 1

    def allows(self, planned: Event, price: Event, answered: Counter[Event]) -> bool:
        """Return whether one more query may be asked at this price."""
        return price == planned and answered.total() < self.n

    def is_met(self, answered: Counter[Event]) -> bool:
        """Return True: any number is allowed."""
        return True

    def __str__(self) -> str:
        return f"at most {self.n} times"


@dataclass(frozen=True)
class GaussianSum:
    """Any number of Gaussian queries, with any noise, within one Gaussian event.

    The sum of their 1 / multiplier^2 is at most that of the slot. Earlier answers may decide which
    queries are asked, and with how much noise.

    Proof: adaptive Gaussian releases of mu_1, mu_2, ... are dominated by one of
    sqrt(mu_1^2 + mu_2^2 + ...), if a bound on this sum holds for all answers
    (docs/proofs/events.md, section 3).
    """

    n: int = 1  # multiplicity of the charged event

    def allows(self, planned: Event, price: Event, answered: Counter[Event]) -> bool:
        """Return whether one more query may be asked at this price."""
        return _fits_gaussian(planned, price, answered)

    def is_met(self, answered: Counter[Event]) -> bool:
        """Return True: any number is allowed."""
        return True

    def __str__(self) -> str:
        return "as often as mu^2 allows"


@dataclass(frozen=True)
class CoveredBy:
    """One query whose event costs no more than the slot's: noise adapted to a count.

    Proof: `Event.covers` compares the parameters in which the bound on the privacy loss is monotone
    (docs/proofs/objective_perturbation.md, section 13). The slot's profile bounds the query's
    profile for all earlier answers.
    """

    n: int = 1

    def allows(self, planned: Event, price: Event, answered: Counter[Event]) -> bool:
        """Return whether the query may be asked at this price."""
        return answered.total() < self.n and planned.covers(price)

    def is_met(self, answered: Counter[Event]) -> bool:
        """Return whether the run may end."""
        return answered.total() == self.n

    def __str__(self) -> str:
        return "once, or what costs less"


@dataclass(frozen=True)
class ExchangedFor:
    """Gaussian queries in place of other slots, which are then not used.

    The slot's event is the Gaussian that the events of ``slots`` dominate (`exchanged`). It is
    charged with these slots, not in addition.

    Proof: docs/proofs/objective_perturbation.md, section 15.
    """

    slots: tuple[str, ...]
    n: int = 0  # it charges nothing of its own

    def allows(self, planned: Event, price: Event, answered: Counter[Event]) -> bool:
        """Return whether one more query may be asked at this price."""
        return _fits_gaussian(planned, price, answered)

    def is_met(self, answered: Counter[Event]) -> bool:
        """Return True: any number is allowed."""
        return True

    def __str__(self) -> str:
        return f"in the place of {' and '.join(self.slots)}, as often as mu^2 allows"


@dataclass(frozen=True)
class Sequence:
    """Steps of one run with correlated noise; the event is that of all steps together.

    The price of each step is the event of the run, and its noise is part of the run's noise, drawn
    by one strategy. There are at most ``most`` steps.

    Proof: docs/proofs/networks.md, on trainings with correlated noise; fewer steps are a
    function of the release of all steps.
    """

    most: int
    n: int = 1

    def allows(self, planned: Event, price: Event, answered: Counter[Event]) -> bool:
        """Return whether one more step may be taken."""
        return price == planned and answered.total() < self.most

    def is_met(self, answered: Counter[Event]) -> bool:
        """Return True: fewer steps are allowed."""
        return True

    def __str__(self) -> str:
        return f"in up to {self.most} steps"


@dataclass(frozen=True)
class BestOfTries:
    """Runs of which only the best is released, each at the price of one of several events.

    The slot's event is `BestOf` of a `OneOf`. ``n_tries``, the number K of runs, is drawn from the
    distribution in that event, independently of the records. K is secret: a stored plan omits it,
    and only the session that makes the runs receives it.

    Proof: docs/proofs/selection.md, sections 1 to 3, for any release of the runs and any order that
    selects the best. The candidate of a run is drawn before, without the records. The caller must
    keep the other runs secret.
    """

    n_tries: int | None = None
    n: int = 1  # multiplicity of the charged event

    def allows(self, planned: Event, price: Event, answered: Counter[Event]) -> bool:
        """Return whether one more run may be made at a price."""
        if self.n_tries is None or answered.total() >= self.n_tries:
            return False
        if planned.reasons_void():  # the guarantee is void
            return bool(price.reasons_void())
        cases = planned.base if isinstance(planned, BestOf) else None
        return isinstance(cases, OneOf) and price in cases.events

    def is_met(self, answered: Counter[Event]) -> bool:
        """Return whether all runs were made."""
        return answered.total() == self.n_tries

    def __str__(self) -> str:
        return "for the best of a secret number of tries"


Rule = Exactly | AtMost | GaussianSum | CoveredBy | ExchangedFor | Sequence | BestOfTries


@dataclass(frozen=True)
class Slot:
    """An event that a plan charged under a name, and the rule for its queries."""

    event: Event
    rule: Rule = Exactly()


def composed(slots: Mapping[str, Slot]) -> Event:
    """Return the composition of all slots, which is the event that a plan charges."""
    events = [
        slot.event if slot.rule.n == 1 else Repeated(slot.event, slot.rule.n)
        for slot in slots.values()
        if slot.rule.n
    ]
    return events[0] if len(events) == 1 else Composed(tuple(events))


def best_of(events: Iterable[Event], law: TriesLaw) -> Slot:
    """Return the slot of the best of K runs, each at the price of one of several events.

    Examples
    --------
    >>> from tacit.privacy import Gaussian
    >>> from tacit.privacy.accounting.number_of_trials import FixedTries
    >>> from tacit.queries.rules import best_of
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
            parts += [mu] * n * slots[name].rule.n
    mu = math.sqrt(math.fsum(part**2 for part in parts)) * (1 - 2.0**-40)
    relation = slots[names[0]].event.relation
    return Slot(Gaussian(1 / mu, relation), ExchangedFor(names))


def _fits_gaussian(planned: Event, price: Event, answered: Counter[Event]) -> bool:
    if not (isinstance(planned, Gaussian) and isinstance(price, Gaussian)):
        return False
    if price.relation is not planned.relation:
        return False
    multipliers = Counter({price.noise_multiplier: 1})
    for event, n in answered.items():
        assert isinstance(event, Gaussian), "nothing else was allowed"
        multipliers[event.noise_multiplier] += n
    share = math.fsum(n * (planned.noise_multiplier / z) ** 2 for z, n in multipliers.items())
    if abs(share - 1.0) > _NEAR:
        return share < 1.0
    exact = sum(n / Fraction(z) ** 2 for z, n in multipliers.items())
    return exact <= 1 / Fraction(planned.noise_multiplier) ** 2
