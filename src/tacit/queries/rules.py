"""How often, and at what price, a question of a plan may be asked: a closed list of rules.

A plan is named slots. A `Slot` is an event that was charged under a name, and a rule that says what
may be asked for it. Each rule has a proof that whatever it allows costs no more than the event. A
session asks the rule before a record is read, and once more when it closes.
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

# Sums of mu^2 this near to what was charged are compared as fractions.
_NEAR = 1e-12


@dataclass(frozen=True)
class Exactly:
    """A question that is asked ``n`` times, each time at the price of the slot.

    Proof: the events of all slots, each as often as it says, are the leaves of the event that was
    charged; composition allows each to depend on the answers before it.
    """

    n: int = 1

    def allows(self, planned: Event, price: Event, answered: Counter[Event]) -> bool:
        """Return whether one more may be asked at a price."""
        return price == planned and answered.total() < self.n

    def is_met(self, answered: Counter[Event]) -> bool:
        """Return whether the run may end."""
        return answered.total() == self.n

    def __str__(self) -> str:
        return f"exactly {self.n} times"


@dataclass(frozen=True)
class AtMost:
    """A question that is asked ``n`` times or fewer; what is not asked stays paid for.

    Proof: an event that is charged and not released costs nothing, so that leaving some out can
    only lower what was spent.
    """

    n: int = 1

    def allows(self, planned: Event, price: Event, answered: Counter[Event]) -> bool:
        """Return whether one more may be asked at a price."""
        return price == planned and answered.total() < self.n

    def is_met(self, answered: Counter[Event]) -> bool:
        """Return that any number may have been asked."""
        return True

    def __str__(self) -> str:
        return f"at most {self.n} times"


@dataclass(frozen=True)
class GaussianSum:
    """Gaussian questions, however many and of whatever noise, within one Gaussian event.

    Their 1 / multiplier^2 add up to no more than that of the slot. Which are asked, and with how
    much noise, may follow from earlier answers.

    Proof: adaptive Gaussian releases of mu_1, mu_2, ... are dominated by one of
    sqrt(mu_1^2 + mu_2^2 + ...) as long as that sum is bounded whatever was answered
    (docs/proofs/events.md, section 3).
    """

    n: int = 1  # of the event that is charged

    def allows(self, planned: Event, price: Event, answered: Counter[Event]) -> bool:
        """Return whether one more may be asked at a price."""
        return _fits_gaussian(planned, price, answered)

    def is_met(self, answered: Counter[Event]) -> bool:
        """Return that any number may have been asked."""
        return True

    def __str__(self) -> str:
        return "as often as mu^2 allows"


@dataclass(frozen=True)
class CoveredBy:
    """One question whose event costs no more than the slot's: noise that was adapted to a count.

    Proof: `Event.covers` compares the parameters with which the bound on the privacy loss grows
    (docs/proofs/objective_perturbation.md, section 13); the profile of what is asked is bounded by
    that of the slot whatever was answered before.
    """

    n: int = 1

    def allows(self, planned: Event, price: Event, answered: Counter[Event]) -> bool:
        """Return whether it may be asked at a price."""
        return answered.total() < self.n and planned.covers(price)

    def is_met(self, answered: Counter[Event]) -> bool:
        """Return whether the run may end."""
        return answered.total() == self.n

    def __str__(self) -> str:
        return "once, or what costs less"


@dataclass(frozen=True)
class ExchangedFor:
    """Gaussian questions in the place of other slots, which are then not asked.

    The slot's event is the Gaussian that the events of ``slots`` dominate (`exchanged`); it is
    charged with them, not beside them.

    Proof: docs/proofs/objective_perturbation.md, section 15.
    """

    slots: tuple[str, ...]
    n: int = 0  # nothing of its own is charged

    def allows(self, planned: Event, price: Event, answered: Counter[Event]) -> bool:
        """Return whether one more may be asked at a price."""
        return _fits_gaussian(planned, price, answered)

    def is_met(self, answered: Counter[Event]) -> bool:
        """Return that any number may have been asked."""
        return True

    def __str__(self) -> str:
        return f"in the place of {' and '.join(self.slots)}, as often as mu^2 allows"


@dataclass(frozen=True)
class Sequence:
    """Steps of one run whose noise is correlated: the event is that of all steps together.

    Each step names the event of the run as its price, and the noise of the run, drawn from one
    strategy, as its noise; ``most`` steps at most.

    Proof: docs/proofs/networks.md, on trainings with correlated noise; fewer steps are a
    function of what all steps release.
    """

    most: int
    n: int = 1

    def allows(self, planned: Event, price: Event, answered: Counter[Event]) -> bool:
        """Return whether one more step may be taken."""
        return price == planned and answered.total() < self.most

    def is_met(self, answered: Counter[Event]) -> bool:
        """Return that fewer steps may have been taken."""
        return True

    def __str__(self) -> str:
        return f"in up to {self.most} steps"


@dataclass(frozen=True)
class BestOfTries:
    """Runs of which the best alone is released, each at the price of one of several events.

    The slot's event is `BestOf` of a `OneOf`. ``n_tries``, the number K of runs, is drawn from the
    law of that event without regard to the records. It is secret: a plan that is kept leaves it
    out, and the session that makes the runs is told.

    Proof: docs/proofs/selection.md, sections 1 to 3, whatever the runs release and whatever order
    says which is the best; which candidate a run tries is drawn before, without the records. That
    the others stay secret is up to who asks.
    """

    n_tries: int | None = None
    n: int = 1  # of the event that is charged

    def allows(self, planned: Event, price: Event, answered: Counter[Event]) -> bool:
        """Return whether one more run may be made at a price."""
        if self.n_tries is None or answered.total() >= self.n_tries:
            return False
        if planned.reasons_void():  # nothing is promised
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
    """What a plan has paid for under one name: an event, and what may be asked for it."""

    event: Event
    rule: Rule = Exactly()


def composed(slots: Mapping[str, Slot]) -> Event:
    """Return the event of all slots together, which is what a plan charges."""
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
    """Return how often each elementary event is in an event."""
    counts: Counter[Event] = Counter()
    for leaf, n in event.leaves():
        counts[leaf] += n * times
    return counts


def exchanged(slots: Mapping[str, Slot], names: tuple[str, ...]) -> Slot:
    """Return the slot of Gaussian questions that may be asked in the place of others.

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
