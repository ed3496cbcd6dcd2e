"""Compose charges whose events may be chosen in view of earlier outputs.

The composition of the charged events is not enough then: an analyst could pick an event that is
cheap exactly if the earlier output was revealing. A privacy filter is sound: a rule fixed in
advance that adds up the same few numbers of every event (docs/proofs/events.md, section 2, and
docs/proofs/ledger.md).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np

from tacit import checks
from tacit.privacy.budget import Budget
from tacit.privacy.events import Event
from tacit.privacy.gaussian_profile import gaussian_epsilon, gaussian_mu, mu_of_pure
from tacit.privacy.guarantee import Guarantee
from tacit.privacy.routes import renyi_of

_ANY_EVENT = "SumOfEpsilons and RenyiSum (a ledger's rules sum and renyi) take any event"
# Relative tolerance for float rounding when a budget is spent completely.
ROUNDING = 1e-12
# Least cost of a release, the least positive double: a cost that underflows is not free.
LEAST = 5e-324


@dataclass(frozen=True)
class Charge:
    """One event, and the delta at which its epsilon is counted."""

    event: Event
    delta: float


Charges = tuple[Charge, ...]
Totals = tuple[float, ...]


class Filter(Protocol):
    """A rule that bounds the total cost of adaptively chosen events."""

    def spent(self, charges: Charges, delta: float) -> float:
        """Return a sound epsilon at ``delta`` for all charges, infinite if there is none."""

    def remaining(self, charges: Charges, budget: Budget) -> float:
        """Return the epsilon of the largest release that would still be accepted."""

    def why_infinite(self, charges: Charges, delta: float) -> str:
        """Return the reason for which the last charge has no finite total, and the remedy."""


class Additive(ABC):
    """A filter that adds up a few numbers of each event and derives epsilon from the totals.

    It needs no list of charges: a ledger stores only the totals.
    """

    #: Whether `fits` only compares each total with `most`.
    is_linear: ClassVar[bool] = True

    @abstractmethod
    def cost(self, charge: Charge) -> Totals:
        """Return the cost of a charge in each total, infinite if the rule has no price for it."""

    @abstractmethod
    def epsilon(self, totals: Totals, delta: float) -> float:
        """Return a sound epsilon at ``delta`` for the totals, infinite if there is none."""

    @abstractmethod
    def most(self, budget: Budget) -> Totals:
        """Return the most that each total may be within a finite budget."""

    @abstractmethod
    def left(self, totals: Totals, budget: Budget) -> float:
        """Return the epsilon of the largest release that would still be accepted."""

    @abstractmethod
    def why_infinite(self, charges: Charges, delta: float) -> str:
        """Return the reason for which the last charge has no finite total, and the remedy."""

    def fits(self, totals: Totals, budget: Budget) -> bool:
        """Return whether the totals are within the budget."""
        most = self.most(budget)
        return all(t <= m * (1 + ROUNDING) for t, m in zip(totals, most, strict=True))

    def totals(self, charges: Charges) -> Totals:
        """Return the sum of the costs of at least one charge."""
        return tuple(map(sum, zip(*map(self.cost, charges), strict=True)))

    def spent(self, charges: Charges, delta: float) -> float:
        """Return a sound epsilon at ``delta`` for all charges, infinite if there is none."""
        return self.epsilon(self.totals(charges), delta)

    def remaining(self, charges: Charges, budget: Budget) -> float:
        """Return the epsilon of the largest release that would still be accepted."""
        if budget.is_infinite:
            return math.inf
        nothing = (0.0,) * len(self.most(budget))
        return self.left(self.totals(charges) if charges else nothing, budget)


@dataclass(frozen=True)
class SumOfEpsilons(Additive):
    """Adds up epsilons and deltas: for any events, best for a few.

    Examples
    --------
    >>> from tacit.privacy import Accountant, Budget, PureEpsilon, SumOfEpsilons
    >>> accountant = Accountant(Budget(1.0), SumOfEpsilons())
    >>> accountant.charge(PureEpsilon(0.6))
    0.6
    """

    def cost(self, charge: Charge) -> Totals:
        """Return the epsilon at the charge's delta, and that delta."""
        return Guarantee(charge.event).epsilon(charge.delta), charge.delta

    def epsilon(self, totals: Totals, delta: float) -> float:
        """Return the sum, if the deltas allow it."""
        epsilon, deltas = totals
        return math.inf if deltas > delta * (1 + ROUNDING) else epsilon

    def most(self, budget: Budget) -> Totals:
        """Return the budget itself."""
        return budget.epsilon, budget.delta

    def left(self, totals: Totals, budget: Budget) -> float:
        """Return the difference, for a release at the rest of delta."""
        return max(budget.epsilon - self.epsilon(totals, budget.delta), 0.0)

    def why_infinite(self, charges: Charges, delta: float) -> str:
        """Say that the deltas are used up, or that the event has no epsilon at its delta."""
        before, asked = sum(charge.delta for charge in charges[:-1]), charges[-1].delta
        if before + asked > delta * (1 + ROUNDING):
            return (
                f"the deltas are used up: earlier releases took {before:g} of delta {delta:g}, and "
                f"this one asks for {asked:g} more. Ask for a smaller delta, or for a pure release "
                "(delta=0), or make the accountant with a larger delta"
            )
        remedy = (
            "pass a larger delta"
            if delta
            else "budget a delta above 0 for it, or choose a pure mechanism"
        )
        return f"the event has no finite epsilon at delta {asked:g}; {remedy}"


@dataclass(frozen=True)
class GaussianSum(Additive):
    """Adds up squared mu: exact for Gaussian mechanisms, sound for events that one dominates.

    A pure release counts with the mu of `mu_of_pure`, a noisy majority with that of its margin.

    Examples
    --------
    >>> from tacit.privacy import Accountant, Budget, Gaussian, GaussianSum
    >>> accountant = Accountant(Budget(1.0, 1e-5), GaussianSum())
    >>> round(accountant.charge(Gaussian(6.0)), 4)
    0.5945
    """

    def cost(self, charge: Charge) -> Totals:
        """Return mu^2."""
        return (sum(n * _squared_mu(leaf) for leaf, n in charge.event.leaves()),)

    def epsilon(self, totals: Totals, delta: float) -> float:
        """Return the Gaussian epsilon of the summed mu^2."""
        (total,) = totals
        return total if math.isinf(total) else gaussian_epsilon(math.sqrt(total), delta)

    def most(self, budget: Budget) -> Totals:
        """Return the mu^2 of the budget."""
        return (0.0 if budget.is_pure else gaussian_mu(budget.epsilon, budget.delta) ** 2,)

    def left(self, totals: Totals, budget: Budget) -> float:
        """Return the epsilon, at the budget's delta, of the remaining mu."""
        if budget.is_infinite:
            return math.inf
        left = self.most(budget)[0] - totals[0]
        return gaussian_epsilon(math.sqrt(left), budget.delta) if left > 0.0 else 0.0

    def why_infinite(self, charges: Charges, delta: float) -> str:
        """Say that the event has no mu, or that there is no delta."""
        if not delta:
            return "GaussianSum has no price at delta 0; make the accountant with a delta above 0"
        return (
            "the event is no Gaussian mechanism and not pure, and GaussianSum has no price for "
            f"others; {_ANY_EVENT}"
        )


@dataclass(frozen=True)
class RenyiSum(Additive):
    """Adds up Renyi divergences at one order fixed in advance: for any events, best for many.

    Examples
    --------
    >>> from tacit.privacy import Accountant, Budget, RenyiSum, Repeated, SampledGaussian
    >>> accountant = Accountant(Budget(2.0, 1e-5), RenyiSum(order=12))
    >>> accountant.charge(Repeated(SampledGaussian(4.0, 0.01), 1000)) < 1.2
    True
    """

    order: float = 16.0

    def __post_init__(self) -> None:
        if not 1.0 < checks.real("order", self.order) < math.inf:
            raise ValueError(f"order must be above 1, got {self.order!r}; 8 to 32 suits epsilon 1.")

    @classmethod
    def best_for(cls, budget: Budget) -> RenyiSum:
        """Return the rule at the order that fits the most Gaussian releases into a budget.

        A release of mu costs a mu^2 / 2 at order a, so mu^2 may add up to 2 most(a) / a. From 8
        on the order is an integer, at which sampled releases are cheaper to price.

        Examples
        --------
        >>> from tacit.privacy import Budget, RenyiSum
        >>> RenyiSum.best_for(Budget(1.0, 1e-6)).order
        22.0
        """
        from scipy.optimize import minimize_scalar

        def unused(log: float) -> float:
            return -cls(1 + math.exp(log)).most(budget)[0] / (1 + math.exp(log))

        # most(a) / a has one peak: it rises from minus infinity at 1 and falls as epsilon / a.
        # Gaussians of that epsilon have their best order near 1 + 2 log(1/delta) / epsilon.
        far = math.log(1 + 4 * math.log(1 / budget.delta) / budget.epsilon)
        found = minimize_scalar(unused, bounds=(-5.0, far + 1.0), method="bounded")
        order = 1 + math.exp(float(found.x))
        return cls(float(round(order)) if order >= 8 else order)

    def cost(self, charge: Charge) -> Totals:
        """Return the divergence at the order."""
        orders = np.array([self.order])
        return (
            sum(n * max(float(renyi_of(e, orders)[0]), LEAST) for e, n in charge.event.leaves()),
        )

    def epsilon(self, totals: Totals, delta: float) -> float:
        """Return the conversion of the summed divergence at the order."""
        return max(totals[0] + self._conversion(delta), 0.0) if delta > 0.0 else math.inf

    def most(self, budget: Budget) -> Totals:
        """Return the divergence whose conversion is the budget's epsilon."""
        return (0.0 if budget.is_pure else budget.epsilon - self._conversion(budget.delta),)

    def left(self, totals: Totals, budget: Budget) -> float:
        """Return the epsilon, at the budget's delta, of the largest Gaussian release that fits."""
        if budget.is_infinite:
            return math.inf
        left = self.most(budget)[0] - totals[0]
        if left <= 0.0:
            return 0.0
        # A Gaussian release of mu costs a mu^2 / 2.
        return gaussian_epsilon(math.sqrt(2 * left / self.order), budget.delta)

    def why_infinite(self, charges: Charges, delta: float) -> str:
        """Say that there is no delta, or that the event has no divergence at the order."""
        if not delta:
            return "RenyiSum has no price at delta 0; make the accountant with a delta above 0"
        return (
            f"the event has no finite Renyi divergence at order {self.order:g}; make the "
            "accountant with another order, or with SumOfEpsilons"
        )

    def _conversion(self, delta: float) -> float:
        a = self.order
        return math.log1p(-1 / a) - math.log(delta * a) / (a - 1)


def _squared_mu(leaf: Event) -> float:
    mu = leaf.gaussian_bound()
    mu = mu_of_pure(leaf.pure_epsilon()) if mu is None else mu
    # The square of a tiny mu may underflow: round it up.
    return max(mu * mu, LEAST)
