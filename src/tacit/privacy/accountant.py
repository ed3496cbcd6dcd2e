"""A budget shared by several releases, refusing what would overspend it.

When later events may be chosen in view of earlier outputs, composing what happened to be charged
is not enough: an analyst could pick the event that is cheap exactly where the earlier output was
revealing. What is sound is a rule fixed in advance that adds up one number per event, a privacy
filter (Rogers, Roth, Ullman and Vadhan 2016; Feldman and Zrnic 2021; Smith and Thakurta 2022).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from tacit.privacy import _check
from tacit.privacy.budget import Budget
from tacit.privacy.events import Composed, Event
from tacit.privacy.gaussian_profile import gaussian_epsilon
from tacit.privacy.guarantee import Guarantee


class BudgetExceeded(RuntimeError):
    """A release was refused because it would overspend; nothing was read or released."""


@dataclass(frozen=True)
class Charge:
    """One event, and the delta at which its epsilon is counted."""

    event: Event
    delta: float


class Filter(Protocol):
    """A rule that bounds what adaptively chosen events cost together."""

    def spent(self, charges: tuple[Charge, ...], delta: float) -> float:
        """Return a sound epsilon at ``delta`` for all charges, infinite if there is none."""


@dataclass(frozen=True)
class SumOfEpsilons:
    """Epsilons add up and deltas add up: simple, for any events, best for a few.

    Examples
    --------
    >>> from tacit.privacy import Accountant, Budget, PureEpsilon, SumOfEpsilons
    >>> accountant = Accountant(Budget(1.0), SumOfEpsilons())
    >>> accountant.charge(PureEpsilon(0.6))
    0.6
    """

    def spent(self, charges: tuple[Charge, ...], delta: float) -> float:
        """Return the sum, if the deltas allow it."""
        if sum(charge.delta for charge in charges) > delta * (1 + 1e-12):
            return math.inf
        return sum(Guarantee(charge.event).epsilon(charge.delta) for charge in charges)


@dataclass(frozen=True)
class GaussianSum:
    """Squared mu add up: exact for Gaussian mechanisms, and only for events that are such.

    Examples
    --------
    >>> from tacit.privacy import Accountant, Budget, Gaussian, GaussianSum
    >>> accountant = Accountant(Budget(1.0, 1e-5), GaussianSum())
    >>> round(accountant.charge(Gaussian(6.0)), 4)
    0.5945
    """

    def spent(self, charges: tuple[Charge, ...], delta: float) -> float:
        """Return the Gaussian epsilon of the summed mu^2."""
        total = 0.0
        for leaf, n in _leaves(charges):
            mu = leaf.gaussian_mu()
            if mu is None:
                return math.inf
            total += n * mu * mu
        return gaussian_epsilon(math.sqrt(total), delta)


@dataclass(frozen=True)
class RenyiSum:
    """Renyi divergences add up at one order fixed in advance: any events, best for many.

    Examples
    --------
    >>> from tacit.privacy import Accountant, Budget, RenyiSum, Repeated, SampledGaussian
    >>> accountant = Accountant(Budget(2.0, 1e-5), RenyiSum(order=12))
    >>> accountant.charge(Repeated(SampledGaussian(4.0, 0.01), 1000)) < 1.2
    True
    """

    order: float = 16.0

    def __post_init__(self) -> None:
        if not 1.0 < _check.real("order", self.order) < math.inf:
            raise ValueError(f"order must be above 1, got {self.order!r}; 8 to 32 suits epsilon 1.")

    def spent(self, charges: tuple[Charge, ...], delta: float) -> float:
        """Return the conversion of the summed divergence at the order."""
        if delta <= 0.0:
            return math.inf
        a = self.order
        orders = np.array([a])
        total = sum(n * float(leaf.renyi(orders)[0]) for leaf, n in _leaves(charges))
        return max(total + math.log1p(-1 / a) - math.log(delta * a) / (a - 1), 0.0)


def _leaves(charges: tuple[Charge, ...]) -> list[tuple[Event, int]]:
    return [leaf for charge in charges for leaf in charge.event.leaves()]


class Accountant:
    """Keeps what was spent of one budget, in memory.

    Charge an event *before* the data are read: a crash then leaves the budget spent.

    Parameters
    ----------
    budget
        What may be spent in all.
    rule
        How charges add up; fixed for life. `SumOfEpsilons` by default.

    Examples
    --------
    >>> from tacit.privacy import Accountant, Budget, Gaussian, GaussianSum
    >>> accountant = Accountant(Budget(1.0, 1e-5), GaussianSum())
    >>> accountant.charge(Gaussian(6.0)) < 1.0
    True
    >>> accountant.charge(Gaussian(4.0))
    Traceback (most recent call last):
        ...
    tacit.privacy.accountant.BudgetExceeded: ...
    """

    def __init__(self, budget: Budget, rule: Filter | None = None) -> None:
        if not isinstance(budget, Budget):
            raise TypeError(f"budget must be a Budget, got {budget!r}.")
        self.budget = budget
        self.rule: Filter = SumOfEpsilons() if rule is None else rule
        self._charges: tuple[Charge, ...] = ()

    def __copy__(self) -> Accountant:
        return self

    def __deepcopy__(self, memo: object) -> Accountant:
        # A budget is shared, never duplicated: clones of an estimator spend the same one.
        return self

    @property
    def events(self) -> tuple[Event, ...]:
        """What was charged so far, oldest first."""
        return tuple(charge.event for charge in self._charges)

    def spent(self) -> float:
        """Return the epsilon spent so far, at the budget's delta."""
        return self.rule.spent(self._charges, self.budget.delta) if self._charges else 0.0

    def guarantee(self) -> Guarantee | None:
        """Return the guarantee of the events charged, had they been fixed in advance."""
        return Guarantee(Composed(self.events), self.budget.delta) if self._charges else None

    def charge(self, event: Event, delta: float | None = None) -> float:
        """Book ``event`` and return the epsilon spent in all, or raise and book nothing.

        Parameters
        ----------
        event
            What is about to be released.
        delta
            The part of the budget's delta at which `SumOfEpsilons` counts the event; 0 for a
            pure event, a tenth of the budget's by default.
        """
        charges, total = self._with(event, delta)
        self._charges = charges
        return total

    def check(self, event: Event, delta: float | None = None) -> None:
        """Raise if charging ``event`` would overspend; book nothing either way."""
        self._with(event, delta)

    def _with(self, event: Event, delta: float | None) -> tuple[tuple[Charge, ...], float]:
        if event.relation is not self.budget.relation:
            raise ValueError(
                f"the event is under {event.relation.name} but this accountant's budget is under "
                f"{self.budget.relation.name}; use one relation for the fit and the accountant."
            )
        if delta is None:
            pure = math.isfinite(Guarantee(event).epsilon(0.0))
            delta = 0.0 if pure else self.budget.delta / 10
        charges = (*self._charges, Charge(event, _check.delta(delta)))
        total = self.rule.spent(charges, self.budget.delta)
        if not total <= self.budget.epsilon * (1 + 1e-12):
            hint = (
                " (an infinite total: this rule has no price for the event, or the deltas are "
                "used up; SumOfEpsilons and RenyiSum take any event)"
                if math.isinf(total)
                else ""
            )
            raise BudgetExceeded(
                f"a release of epsilon {Guarantee(event).epsilon(delta):.4g} at delta {delta:g} "
                f"would bring the total to epsilon {total:.6g} at delta "
                f"{self.budget.delta:g} by {type(self.rule).__name__}, over the budget "
                f"({self.budget}){hint}. Nothing was read. Lower this release's epsilon or delta, "
                "or raise the accountant's budget."
            )
        return charges, total
