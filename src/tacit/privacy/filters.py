"""How charges add up when later events may be chosen in view of earlier outputs.

Composing what happened to be charged is not enough then: an analyst could pick the event that is
cheap exactly where the earlier output was revealing. What is sound is a rule fixed in advance that
adds up one number per event, a privacy filter (docs/proofs/events.md, section 2).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from tacit import checks
from tacit.privacy.budget import Budget
from tacit.privacy.events import Event
from tacit.privacy.gaussian_profile import gaussian_epsilon, gaussian_mu
from tacit.privacy.guarantee import Guarantee
from tacit.privacy.routes import renyi_of

_ANY_EVENT = "SumOfEpsilons and RenyiSum take any event"


@dataclass(frozen=True)
class Charge:
    """One event, and the delta at which its epsilon is counted."""

    event: Event
    delta: float


Charges = tuple[Charge, ...]


class Filter(Protocol):
    """A rule that bounds what adaptively chosen events cost together."""

    def spent(self, charges: Charges, delta: float) -> float:
        """Return a sound epsilon at ``delta`` for all charges, infinite if there is none."""

    def remaining(self, charges: Charges, budget: Budget) -> float:
        """Return the epsilon of the largest release that would still be accepted."""

    def why_infinite(self, charges: Charges, delta: float) -> str:
        """Return why the last charge has no finite total, and what to do about it."""


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

    def spent(self, charges: Charges, delta: float) -> float:
        """Return the sum, if the deltas allow it."""
        if _sum_of_deltas(charges) > delta * (1 + 1e-12):
            return math.inf
        return sum(Guarantee(charge.event).epsilon(charge.delta) for charge in charges)

    def remaining(self, charges: Charges, budget: Budget) -> float:
        """Return the difference, for a release at what is left of delta."""
        return max(budget.epsilon - self.spent(charges, budget.delta), 0.0)

    def why_infinite(self, charges: Charges, delta: float) -> str:
        """Say that the deltas are used up, or that the event has no epsilon at its delta."""
        before, asked = _sum_of_deltas(charges[:-1]), charges[-1].delta
        if before + asked > delta * (1 + 1e-12):
            return (
                f"the deltas are used up: earlier releases took {before:g} of delta {delta:g}, and "
                f"this one asks for {asked:g} more. Ask for a smaller delta, or for a pure release "
                "(delta=0), or make the accountant with a larger delta"
            )
        return f"the event has no finite epsilon at delta {asked:g}; pass a larger delta"


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

    def spent(self, charges: Charges, delta: float) -> float:
        """Return the Gaussian epsilon of the summed mu^2."""
        total = _summed_squared_mu(charges)
        return total if math.isinf(total) else gaussian_epsilon(math.sqrt(total), delta)

    def remaining(self, charges: Charges, budget: Budget) -> float:
        """Return the epsilon, at the budget's delta, of the mu that is left."""
        if budget.is_infinite:
            return math.inf
        if budget.is_pure:
            return 0.0
        most = gaussian_mu(budget.epsilon, budget.delta)
        left = most * most - _summed_squared_mu(charges)
        return gaussian_epsilon(math.sqrt(left), budget.delta) if left > 0.0 else 0.0

    def why_infinite(self, charges: Charges, delta: float) -> str:
        """Say that the event is no Gaussian mechanism, or that there is no delta."""
        if not delta:
            return "GaussianSum has no price at delta 0; make the accountant with a delta above 0"
        return (
            "the event is no Gaussian mechanism, and GaussianSum has no price for others; "
            f"{_ANY_EVENT}"
        )


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
        if not 1.0 < checks.real("order", self.order) < math.inf:
            raise ValueError(f"order must be above 1, got {self.order!r}; 8 to 32 suits epsilon 1.")

    def spent(self, charges: Charges, delta: float) -> float:
        """Return the conversion of the summed divergence at the order."""
        if delta <= 0.0:
            return math.inf
        return max(self._divergence(charges) + self._conversion(delta), 0.0)

    def remaining(self, charges: Charges, budget: Budget) -> float:
        """Return the epsilon, by the same conversion, of the divergence that is left."""
        if budget.is_infinite:
            return math.inf
        # A release of divergence D fits while (sum + D) + conversion <= epsilon.
        return 0.0 if budget.is_pure else max(budget.epsilon - self._divergence(charges), 0.0)

    def why_infinite(self, charges: Charges, delta: float) -> str:
        """Say that there is no delta, or that the event has no divergence at the order."""
        if not delta:
            return "RenyiSum has no price at delta 0; make the accountant with a delta above 0"
        return (
            f"the event has no finite Renyi divergence at order {self.order:g}; make the "
            "accountant with another order, or with SumOfEpsilons"
        )

    def _divergence(self, charges: Charges) -> float:
        orders = np.array([self.order])
        return sum(n * float(renyi_of(leaf, orders)[0]) for leaf, n in _leaves(charges))

    def _conversion(self, delta: float) -> float:
        a = self.order
        return math.log1p(-1 / a) - math.log(delta * a) / (a - 1)


def _leaves(charges: Charges) -> list[tuple[Event, int]]:
    return [leaf for charge in charges for leaf in charge.event.leaves()]


def _sum_of_deltas(charges: Charges) -> float:
    return sum(charge.delta for charge in charges)


def _summed_squared_mu(charges: Charges) -> float:
    total = 0.0
    for leaf, n in _leaves(charges):
        mu = leaf.gaussian_mu()
        if mu is None:
            return math.inf
        # Rounded up where the square of a tiny mu would vanish.
        total += n * max(mu * mu, 5e-324)
    return total
