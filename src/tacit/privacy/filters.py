"""Privacy filters and the odometer: how charges add up when later events are chosen adaptively.

The composition of the charged events is not enough then: an analyst could pick an event that is
cheap exactly if the earlier output was revealing. A privacy filter is sound: a rule fixed in
advance that adds up the same few numbers of every event (docs/proofs/events.md, section 2, and
docs/proofs/ledger.md).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, Protocol

import numpy as np

from tacit import checks
from tacit.privacy.accounting.composition import renyi_of
from tacit.privacy.accounting.dominating import LEAST, first_price, price_of
from tacit.privacy.accounting.gaussian_profile import gaussian_epsilon, gaussian_mu, mu_of_pure
from tacit.privacy.accounting.root_finding import decreasing_root
from tacit.privacy.budget import Budget
from tacit.privacy.events import Event
from tacit.privacy.guarantee import Guarantee

_ANY_EVENT = "SumOrGaussian, SumOfEpsilons and RenyiSum (a ledger's rules either, sum and renyi)"
# What float rounding may add to a budget that is spent to the last.
ROUNDING = 1e-12
# Shares of a budget's delta in `SumOrGaussian`: of sums, of Gaussian releases and of leaks. They
# add up to 1. With 3/4, planning costs 1.0 to 1.5 % more noise, and Gaussian releases keep as much
# of mu^2 as by `RenyiSum` (docs/decisions/0059-sum-or-gaussian.md).
SUM_SHARE, GAUSSIAN_SHARE, LEAK_SHARE = 0.75, 0.225, 0.025
# The share of m^2 that stays unspent where releases are priced beside a reserve.
RESERVE = 0.1
LEAK_OF_A_PRICE = 1e-6


_NOTHING_LEFT = "Hardly anything is left."


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

    #: Whether which totals are within `most` decides (`holds`); else `fits` does.
    has_limits: ClassVar[bool] = True

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

    def planning_delta(self, delta: float) -> float:
        """Return the delta with which a fit that asks for ``delta`` is planned and charged."""
        return delta

    def first_cost(self, charge: Charge) -> Totals | None:
        """Return what the very first charge adds, None where that is what any charge adds."""
        return None

    def holds(self, within: Sequence[bool]) -> bool:
        """Return whether the filter holds, from which totals are within `most`."""
        return all(within)

    def fits(self, totals: Totals, budget: Budget) -> bool:
        """Return whether the totals are within the budget."""
        most = self.most(budget)
        return self.holds([t <= m * (1 + ROUNDING) for t, m in zip(totals, most, strict=True)])

    def accepts(self, *accounts: tuple[Totals, Budget]) -> str:
        """Return a sentence on the largest release that would be accepted, rounded down.

        A release may have to fit several totals at once: those of a budget and those of a share.
        """
        largest = min(_down(self.left(totals, budget)) for totals, budget in accounts)
        if largest <= 0.0:
            return _NOTHING_LEFT
        delta = accounts[0][1].delta
        return (
            f"A Gaussian release of epsilon {largest:.10g} at delta {delta:g} would still be "
            "accepted."
        )

    def over(self, totals: Totals, budget: Budget) -> str:
        """Return by how much totals would be over a budget, as the end of a sentence."""
        return (
            f"would bring the total to epsilon {self.epsilon(totals, budget.delta):.6g} at delta "
            f"{budget.delta:g} by {type(self).__name__}, over the budget ({budget})"
        )

    def totals(self, charges: Charges) -> Totals:
        """Return the sum of the costs of at least one charge."""
        first = self.first_cost(charges[0])
        costs = [self.cost(charges[0]) if first is None else first, *map(self.cost, charges[1:])]
        return tuple(map(sum, zip(*costs, strict=True)))

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
    >>> from tacit.privacy import Accountant, Budget, PureEpsilon
    >>> from tacit.privacy import SumOfEpsilons
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

    def accepts(self, *accounts: tuple[Totals, Budget]) -> str:
        """Return the epsilon that is left."""
        largest = min(_down(self.left(totals, budget)) for totals, budget in accounts)
        return f"Epsilon {largest:.10g} is left." if largest > 0.0 else _NOTHING_LEFT

    def why_infinite(self, charges: Charges, delta: float) -> str:
        """Say that the deltas are used up, or that the event has no epsilon at its delta."""
        before, extra = sum(charge.delta for charge in charges[:-1]), charges[-1].delta
        if before + extra > delta * (1 + ROUNDING):
            return (
                f"the deltas are used up: earlier releases took {before:g} of delta {delta:g}, and "
                f"this one asks for {extra:g} more. Ask for a smaller delta, or for a pure release "
                "(delta=0), or make the accountant with a larger delta"
            )
        remedy = (
            "pass a larger delta"
            if delta
            else "budget a delta above 0 for it, or choose a pure mechanism"
        )
        return f"the event has no finite epsilon at delta {extra:g}; {remedy}"


@dataclass(frozen=True)
class GaussianSum(Additive):
    """Adds up squared mu: exact for Gaussian mechanisms, sound for events that one dominates.

    A pure release counts with the mu of `mu_of_pure`, a noisy majority with that of its margin.

    Examples
    --------
    >>> from tacit.privacy import Accountant, Budget, Gaussian
    >>> from tacit.privacy import GaussianSum
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
            f"others; {_ANY_EVENT} take any event"
        )


@dataclass(frozen=True)
class SumOrGaussian(Additive):
    """Accepts while epsilons and deltas add up to the budget, or while squared mu do.

    A release is accepted if one of two filters still holds for everything charged so far:

        sum:       sum epsilon_i <= epsilon  and  sum delta_i <= 3/4 delta
        Gaussian:  sum mu_i^2 <= m^2, m = mu(epsilon, 9/40 delta), and leaks <= delta / 40

    Their deltas add up to delta (docs/proofs/ledger.md, section 8). Every event has a mu
    (`tacit.privacy.accounting.dominating`). Fits are planned at 3/4 of the delta that they ask for,
    so that whatever adds up to the budget is accepted, in any order; many small releases go far
    beyond.

    Parameters
    ----------
    budget
        Of the accountant or ledger; it fixes the constants of the rule. Delta above 0.

    Examples
    --------
    >>> from tacit.privacy import Accountant, Budget, Gaussian, PureEpsilon
    >>> from tacit.privacy import SumOrGaussian
    >>> budget = Budget(1.0, 1e-6)
    >>> accountant = Accountant(budget, SumOrGaussian(budget))
    >>> accountant.charge(PureEpsilon(0.5)) <= 0.5
    True
    >>> accountant.charge(PureEpsilon(0.5)) <= 1.0
    True
    """

    budget: Budget

    def __post_init__(self) -> None:
        if self.budget.is_pure or self.budget.is_infinite:
            raise ValueError(
                f"SumOrGaussian needs a finite epsilon and a delta, got {self.budget}."
            )

    @property
    def _leak(self) -> float:
        # What one event that is no Gaussian mechanism may add to the leaks.
        return LEAK_OF_A_PRICE * self.budget.delta

    @property
    def _reserve(self) -> float:
        # r^2: what the second total of mu^2 leaves unspent for life.
        return RESERVE * _limit(self.budget)

    def planning_delta(self, delta: float) -> float:
        """Return 3/4 of it: the share of delta that sums have."""
        return SUM_SHARE * delta

    def cost(self, charge: Charge) -> Totals:
        """Return epsilon, delta, mu^2, mu^2 beside the reserve, and the leak."""
        return _cost(self, charge)

    def _priced(self, charge: Charge) -> Totals:
        now = price_of(charge.event, self._leak)
        later = price_of(charge.event, self._leak, math.sqrt(self._reserve))
        leak = max(now.leak, later.leak)
        alone = Guarantee(charge.event).epsilon(charge.delta)
        return alone, charge.delta, now.squared_mu, min(later.squared_mu, now.squared_mu), leak

    def first_cost(self, charge: Charge) -> Totals:
        """Return the same with the price of a release before which nothing was seen.

        A release that alone is within the budget is accepted, and may close it.
        """
        return _first_cost(self, charge)

    def _priced_first(self, charge: Charge) -> Totals:
        epsilon, delta, now, later, leak = self.cost(charge)
        budget, squared = self.budget, _limit(self.budget)
        first = first_price(
            charge.event, self._leak, squared, budget.epsilon, GAUSSIAN_SHARE * budget.delta
        )
        if first <= later:
            # Its infinite losses are inside the delta of the Gaussian filter.
            later, leak = first, 0.0
        now = min(first, now)
        cost = epsilon, delta, now, later, leak
        if not self.fits(cost, budget) and Guarantee(charge.event).within(
            budget.epsilon, budget.delta
        ):
            return budget.epsilon, SUM_SHARE * budget.delta, math.inf, math.inf, math.inf
        return cost

    def holds(self, within: Sequence[bool]) -> bool:
        """Return whether sums are within the budget, or one of the two totals of mu^2 is."""
        epsilon, delta, now, later, leak = within
        return (epsilon and delta) or (leak and (now or later))

    def fits(self, totals: Totals, budget: Budget) -> bool:
        """Return whether one of the filters holds, for the budget or for a share of its epsilon."""
        return self.epsilon(totals, budget.delta) <= budget.epsilon * (1 + ROUNDING)

    def epsilon(self, totals: Totals, delta: float) -> float:
        """Return the least epsilon of a filter that holds, infinite if none does."""
        epsilon, deltas, now, later, leak = totals
        by_sum = epsilon if deltas <= SUM_SHARE * delta * (1 + ROUNDING) else math.inf
        if leak > LEAK_SHARE * delta * (1 + ROUNDING):
            return by_sum
        squared = min(now, later + self._reserve if later else 0.0)
        if math.isinf(squared):
            return by_sum
        by_noise = gaussian_epsilon(math.sqrt(squared), GAUSSIAN_SHARE * delta) if squared else 0.0
        return min(by_sum, by_noise)

    def most(self, budget: Budget) -> Totals:
        """Return what each total may reach for its own filter to hold."""
        squared = _limit(budget)
        return (
            budget.epsilon,
            SUM_SHARE * budget.delta,
            squared,
            (1.0 - RESERVE) * squared,
            LEAK_SHARE * budget.delta,
        )

    def left(self, totals: Totals, budget: Budget) -> float:
        """Return the greater of what sums leave and of what Gaussian releases leave."""
        return max(self.left_by_sum(totals, budget), self.left_by_noise(totals, budget))

    def left_by_sum(self, totals: Totals, budget: Budget) -> float:
        """Return the epsilon that any release may have, at what is left of 3/4 delta."""
        if totals[1] >= SUM_SHARE * budget.delta * (1 - ROUNDING):
            return 0.0
        return max(budget.epsilon - totals[0], 0.0)

    def left_by_noise(self, totals: Totals, budget: Budget) -> float:
        """Return the epsilon of the largest Gaussian fit that is accepted."""
        _, _, now, later, leak = totals
        if leak > LEAK_SHARE * budget.delta:
            return 0.0
        squared = _limit(budget)
        left = max(squared - now, squared - self._reserve - later)
        return gaussian_epsilon(math.sqrt(left), SUM_SHARE * budget.delta) if left > 0.0 else 0.0

    def accepts(self, *accounts: tuple[Totals, Budget]) -> str:
        """Return what sums leave for any release, and what noise leaves for Gaussian ones."""
        by_sum = min(_down(self.left_by_sum(*account)) for account in accounts)
        by_noise = min(_down(self.left_by_noise(*account)) for account in accounts)
        used = max(totals[1] for totals, _ in accounts)
        delta = max(SUM_SHARE * self.budget.delta - used, 0.0) / SUM_SHARE
        said = []
        if by_sum > 0.0:
            said.append(f"any fit of epsilon up to {by_sum:.10g} at delta up to {delta:.3g}")
        if by_noise > by_sum:
            said.append(f"Gaussian ones up to {by_noise:.10g} at delta {self.budget.delta:g}")
        return f"Accepted would be {', and '.join(said)}." if said else _NOTHING_LEFT

    def over(self, totals: Totals, budget: Budget) -> str:
        """Return what both filters would say."""
        epsilon, deltas, now, later, _ = totals
        squared = min(now, later + self._reserve)
        noise = (
            gaussian_epsilon(math.sqrt(squared), GAUSSIAN_SHARE * budget.delta)
            if math.isfinite(squared)
            else math.inf
        )
        return (
            f"would add up to epsilon {epsilon:.6g} and delta {deltas / SUM_SHARE:.3g}, and by its "
            f"noise to epsilon {noise:.6g} at delta {budget.delta:g}: over the budget ({budget})"
        )

    def why_infinite(self, charges: Charges, delta: float) -> str:
        """Say that no filter has a price for the last charge."""
        return (
            "neither its epsilon at its delta nor a mu of it is known, or the deltas are used up; "
            "pass a smaller delta, or choose another mechanism"
        )


# The same release is charged again and again: by a search, and by the transaction that books it.
@lru_cache(maxsize=4096)
def _cost(rule: SumOrGaussian, charge: Charge) -> Totals:
    return rule._priced(charge)


@lru_cache(maxsize=4096)
def _first_cost(rule: SumOrGaussian, charge: Charge) -> Totals:
    return rule._priced_first(charge)


@lru_cache(maxsize=1024)
def _limit(budget: Budget) -> float:
    """Return m^2: what the mu^2 of Gaussian releases may add up to."""
    return gaussian_mu(budget.epsilon, GAUSSIAN_SHARE * budget.delta) ** 2


@dataclass(frozen=True)
class RenyiSum(Additive):
    """Adds up Renyi divergences at one order fixed in advance: for any events, best for many.

    Examples
    --------
    >>> from tacit.privacy import Accountant, Budget, Repeated, SampledGaussian
    >>> from tacit.privacy import RenyiSum
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
        >>> from tacit.privacy import Budget
        >>> from tacit.privacy import RenyiSum
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


def _down(left: float) -> float:
    """Return four digits of what is left, rounded down; 1 - 0.9 is 0.1 to whoever reads it."""
    return math.floor(left * 1e4 * (1 + ROUNDING)) / 1e4 if math.isfinite(left) else left


def default_rule(budget: Budget) -> Additive:
    """Return the rule of an accountant or ledger that names none.

    `SumOrGaussian`, and `SumOfEpsilons` for a pure or infinite budget, and where delta is so small
    that a Gaussian release within the budget has no mu in floats.
    """
    if budget.is_pure or budget.is_infinite:
        return SumOfEpsilons()
    squared = gaussian_mu(budget.epsilon, GAUSSIAN_SHARE * budget.delta) ** 2
    return SumOrGaussian(budget) if RESERVE * squared > 1e-300 else SumOfEpsilons()


def _squared_mu(leaf: Event) -> float:
    mu = leaf.gaussian_bound()
    mu = mu_of_pure(leaf.pure_epsilon()) if mu is None else mu
    # The square of a tiny mu may underflow: round it up.
    return max(mu * mu, LEAST)


# Integers where sampled releases need them; dense where epsilons above 5 have their best order.
ORDERS: tuple[float, ...] = (1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 12.0)
ORDERS += (16.0, 20.0, 24.0, 32.0, 48.0, 64.0, 96.0, 128.0, 192.0, 256.0, 512.0, 1024.0)
# A total above this multiple of the budget's epsilon (or of 1) is far over the budget.
_FAR = 1000.0
_HALVINGS = 50


@dataclass(frozen=True)
class Odometer(Additive):
    """Adds up Renyi divergences at many orders, none chosen in advance: any events, any budget.

    With weights w_a that sum to 1 and totals s_a, the charges are (epsilon, delta)-DP if

        sup over L of (1 - e^(epsilon - L)) / sum_a w_a e^((a - 1)(L - s_a)) <= delta

    (docs/proofs/ledger.md, section 4). This costs about a fifth of the budget for Gaussian
    releases at epsilon 1. In return nobody needs to know the later releases in advance.

    Examples
    --------
    >>> from tacit.privacy import Accountant, Budget, Gaussian
    >>> from tacit.privacy import Odometer
    >>> accountant = Accountant(Budget(1.0, 1e-6), Odometer())
    >>> accountant.charge(Gaussian(8.0)) < 1.0
    True
    """

    has_limits = False

    def cost(self, charge: Charge) -> Totals:
        """Return the divergence at each order."""
        orders, total = np.array(ORDERS), np.zeros(len(ORDERS))
        for leaf, n in charge.event.leaves():
            total += n * np.maximum(renyi_of(leaf, orders), LEAST)
        return tuple(total.tolist())

    def epsilon(self, totals: Totals, delta: float) -> float:
        """Return the least epsilon that satisfies the formula."""
        if delta <= 0.0 or math.isinf(min(totals)):
            return math.inf
        target = math.log(delta)
        if _log_delta(0.0, totals) <= target:
            return 0.0
        return decreasing_root(lambda e: _log_delta(e, totals) - target, max(min(totals), 1e-3))

    def most(self, budget: Budget) -> Totals:
        """Return a scale of the totals; `fits` decides whether they are within the budget."""
        return (0.0 if budget.is_pure else _FAR * max(budget.epsilon, 1.0),) * len(ORDERS)

    def fits(self, totals: Totals, budget: Budget) -> bool:
        """Return whether the formula holds with the budget's epsilon and delta."""
        if budget.is_pure or math.isinf(min(totals)):
            return False
        return _log_delta(budget.epsilon, totals) <= math.log(budget.delta)

    def left(self, totals: Totals, budget: Budget) -> float:
        """Return the epsilon, at the budget's delta, of the largest Gaussian release that fits."""
        if budget.is_infinite:
            return math.inf
        if not self.fits(totals, budget):
            return 0.0
        orders = np.array(ORDERS)

        def with_mu(squared: float) -> Totals:
            return tuple((np.array(totals) + orders * squared / 2).tolist())

        fits, over = 0.0, 2 * gaussian_mu(budget.epsilon, budget.delta) ** 2
        for _ in range(_HALVINGS):
            middle = (fits + over) / 2
            fits, over = (middle, over) if self.fits(with_mu(middle), budget) else (fits, middle)
        return gaussian_epsilon(math.sqrt(fits), budget.delta) if fits else 0.0

    def why_infinite(self, charges: Charges, delta: float) -> str:
        """Say that there is no delta, or that the event has no divergence at any order."""
        if not delta:
            return "Odometer has no price at delta 0; make the accountant with a delta above 0"
        return (
            "the event has no finite Renyi divergence at any order of Odometer; make the "
            "accountant with SumOfEpsilons"
        )


def _log_delta(epsilon: float, totals: Totals) -> float:
    """Return the log of the supremum, rounded up.

    With x = L - epsilon the logarithm is f(x) = log(1 - e^-x) - log sum w_a e^((a-1)(L - s_a)),
    which is concave, with f'(x) = 1 / (e^x - 1) - mean(a - 1) for some weights of the orders. At
    the peak 1 / (e^x - 1) is between the least and the greatest a - 1. On [l, u] around the peak,
    f is at most f(l) + f'(l) (u - l).
    """
    sums = np.array(totals)
    finite = np.isfinite(sums)
    slopes, sums = np.array(ORDERS)[finite] - 1, sums[finite]
    level = slopes * (epsilon - sums) - math.log(len(ORDERS))

    def at(x: float) -> tuple[float, float]:
        terms = level + slopes * x
        top = float(terms.max())
        weights = np.exp(terms - top)
        total = float(weights.sum())
        value = math.log(-math.expm1(-x)) - top - math.log(total)
        return value, 1 / math.expm1(x) - float(weights @ slopes) / total

    low, high = math.log1p(1 / slopes.max()), math.log1p(1 / slopes.min())
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if at(middle)[1] > 0 else (low, middle)
    value, slope = at(low)
    return value + max(slope, 0.0) * (high - low)
