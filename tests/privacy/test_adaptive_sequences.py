"""Adversaries who choose each release by the outcomes before it, and exactly what they reach.

A sequence is a tree. In each node the adversary charges an event, sees in which of a few cells its
privacy loss lies, and goes on by that cell: with another event, or with all that one of the two
filters leaves, after which the rule refuses everything. Cells are a post-processing of the worst
pair of laws that the event allows, so that their probabilities are known exactly under both laws:
b = P(loss > t) and s = Q(loss > t) are the tangent b - s alpha of the event's profile at alpha =
exp(t). Then delta of the whole sequence is a finite sum, and must not exceed the budget's.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy.special import ndtr

from tacit.privacy import (
    Accountant,
    Budget,
    BudgetExceeded,
    Event,
    ExponentialMechanism,
    Gaussian,
    LinearModelObjective,
    LogisticObjective,
    PureEpsilon,
    RareLeak,
    SumOrGaussian,
)
from tacit.privacy import filters as filters_module
from tacit.privacy.accounting.dominating import first_price
from tacit.privacy.accounting.gaussian_profile import gaussian_delta, gaussian_mu
from tacit.privacy.events import LogCoshObjective
from tacit.privacy.filters import GAUSSIAN_SHARE, LEAK_SHARE, SUM_SHARE, Charge, Totals, _limit

Array = npt.NDArray[np.float64]

BUDGETS = (Budget(1.0, 1e-6), Budget(1.0, 1e-2), Budget(2.0, 1e-3))
OTHERS = 9  # releases of a menu that are no Gaussians, its first
MOST_CELLS = {1: 12, 2: 8, 3: 5}  # by the number of releases to come
# The cells and sums below are exact to this.
DIGITS = 1e-6


def menu(budget: Budget) -> list[Charge]:
    """Return releases of several kinds and sizes, in parts of a budget."""
    e, d = budget.epsilon, 0.05 * budget.delta
    mu = gaussian_mu(e, budget.delta)
    pure = [PureEpsilon(e * part) for part in (0.02, 0.1, 0.3, 0.5)]
    others: list[Event] = [
        ExponentialMechanism(0.3 * e),
        LogisticObjective(1.0, 4.0, 3.0 / mu),
        LogCoshObjective(1.0, 1.0, 8.0, 6.0 / mu),
        LinearModelObjective(1.0, 0.25, 8.0, 4.0 / mu),
    ]
    rng = np.random.default_rng(0)
    leak = RareLeak(0.3 * LEAK_SHARE * budget.delta)
    gaussians = [
        Charge(Gaussian(1 / (mu * float(part))), float(share) * budget.delta)
        for part in np.geomspace(0.01, 0.9, 24)
        for share in rng.choice([1e-3, 0.01, 0.05, 0.2], 2, replace=False)
    ]
    found = [Charge(p, 0.0) for p in pure] + [Charge(event, d) for event in others]
    return [*found, Charge(leak, leak.probability), *gaussians]


def profile_of(event: Event, t: Array) -> Array:
    """Return H at exp(t) of the pair that an event allows, t of either sign."""
    both = event.profiles_by_order(np.abs(t))
    assert both is not None
    reflected = -np.expm1(t) + np.exp(t) * both[1]
    return np.where(t >= 0.0, both[0], reflected)


def halves_of(event: Event, t: Array) -> tuple[Array, Array]:
    """Return P(loss > t) and Q(loss > t), which never grow, for the worst pair of an event."""
    mu = event.gaussian_mu()
    if mu is not None:
        return ndtr(mu / 2 - t / mu), ndtr(-mu / 2 - t / mu)
    if isinstance(event, PureEpsilon):
        p = 1 / (1 + math.exp(-event.epsilon))
        inside, below = np.abs(t) < event.epsilon, t <= -event.epsilon
        return np.where(below, 1.0, p * inside), np.where(below, 1.0, (1 - p) * inside)
    step = 1e-4
    low, here, high = (profile_of(event, t + shift) for shift in (-step, 0.0, step))
    s = np.clip((low - high) / (np.exp(t) * (math.exp(step) - math.exp(-step))), 0.0, 1.0)
    b = np.clip(here + np.exp(t) * s, 0.0, 1.0)
    # Only tangents that are nowhere above the profile are tests that the event allows.
    grid = np.linspace(-4.0, 4.0, 161)
    allowed = profile_of(event, grid)
    lines = b[:, None] - s[:, None] * np.exp(grid)
    good = np.all(lines <= allowed * (1 + DIGITS) + 1e-12, axis=1)
    b, s = np.where(good, b, np.nan), np.where(good, s, np.nan)
    return b, s


@dataclass
class Filter:
    """A rule with its prices, each computed once."""

    rule: SumOrGaussian
    charges: list[Charge]
    which: str = "either"  # or "sum", or "noise": one of the two alone
    later: dict[int, Totals] = field(default_factory=dict)
    first: dict[int, Totals] = field(default_factory=dict)
    halves: dict[int, tuple[Array, Array, Array]] = field(default_factory=dict)

    @property
    def budget(self) -> Budget:
        return self.rule.budget

    @property
    def promised(self) -> float:
        """The delta that the filter must keep to."""
        shares = {"either": 1.0, "sum": SUM_SHARE, "noise": GAUSSIAN_SHARE + LEAK_SHARE}
        return shares[self.which] * self.budget.delta

    def _holds(self, totals: Totals) -> bool:
        epsilon, deltas, now, later, leak = totals
        if self.which == "sum":
            totals = (epsilon, deltas, math.inf, math.inf, math.inf)
        elif self.which == "noise":
            totals = (math.inf, math.inf, now, later, leak)
        return self.rule.fits(totals, self.budget)

    def after(self, totals: Totals | None, i: int) -> Totals | None:
        """Return the totals after a charge; None if it is refused."""
        costs = self.first if totals is None else self.later
        if i not in costs:
            price = self.rule.first_cost if totals is None else self.rule.cost
            costs[i] = price(self.charges[i])
        zero = (0.0,) * 5
        found = tuple(a + b for a, b in zip(totals or zero, costs[i], strict=True))
        return found if self._holds(found) else None

    def cells(self, i: int, rng: np.random.Generator, most: int) -> tuple[Array, Array]:
        """Return the probabilities of a few cells of an event's loss, under both laws."""
        event = self.charges[i].event
        if isinstance(event, RareLeak):  # it happens under the first law alone
            return np.array([event.probability, 1 - event.probability]), np.array([0.0, 1.0])
        if i not in self.halves:
            e = self.budget.epsilon
            t = np.sort(np.concatenate([np.linspace(-e, 1.5 * e, 61), e * np.array([-0.01, 0.01])]))
            b, s = halves_of(event, t)
            known = np.isfinite(b) & np.isfinite(s)
            self.halves[i] = t[known], b[known], s[known]
        t, b, s = self.halves[i]
        chosen = np.sort(rng.choice(len(t), min(len(t), int(rng.integers(1, most))), replace=False))
        first = -np.diff(np.concatenate([[1.0], b[chosen], [0.0]]))
        second = -np.diff(np.concatenate([[1.0], s[chosen], [0.0]]))
        assert min(first.min(), second.min()) > -1e-9
        return np.maximum(first, 0.0), np.maximum(second, 0.0)

    def rest(self, totals: Totals | None, x: float) -> float:
        """Return the greatest delta at x of what one of the filters leaves: all of it, at once."""
        epsilon, deltas, now, later, leak = totals or (0.0,) * 5
        most = self.rule.most(self.budget)
        found = max(-math.expm1(x), 0.0) if x < 0.0 else 0.0
        e, p = most[0] - epsilon, most[1] - deltas
        if self.which != "noise" and e >= 0.0 and p >= 0.0:
            self._accepted(epsilon + e, deltas + p, math.inf, math.inf, math.inf)
            found = max(found, p + (1 - p) * response(e, x))
        squared = max(most[2] - now, most[3] - later)
        p = most[4] - leak
        if self.which != "sum" and squared >= 0.0 and p >= 0.0:
            self._accepted(math.inf, math.inf, now + squared, later + squared, leak + p)
            noise = float(gaussian_delta(math.sqrt(squared), np.array(x))) if squared else found
            found = max(found, p + (1 - p) * noise)
        return found

    def _accepted(self, *totals: float) -> None:
        assert self.rule.fits(tuple(total * (1 - 1e-9) for total in totals), self.budget)


def response(epsilon: float, x: float) -> float:
    """Return delta at x of a randomised response."""
    one = (math.exp(epsilon) - math.exp(x)) / (1 + math.exp(epsilon)) if x < 50 else 0.0
    return max(one, -math.expm1(x) if x < 0.0 else 0.0, 0.0)


def reached(
    rule: Filter, rng: np.random.Generator, depth: int, order: int, totals: Totals | None, x: float
) -> float:
    """Return delta at x of the best that one adversary does from here on."""
    best = rule.rest(totals, x)
    if depth == 0:
        return best
    # Half of the releases are Gaussians, which are most of the menu.
    i = int(rng.integers(len(rule.charges) if rng.integers(2) else OTHERS))
    after = rule.after(totals, i)
    if after is None:
        return best
    first, second = rule.cells(i, rng, MOST_CELLS[depth])
    if order:
        first, second = second, first
    total = 0.0
    for p, q in zip(first.tolist(), second.tolist(), strict=True):
        if p <= 0.0:
            continue
        if q <= 0.0:
            total += p  # an infinite loss
            continue
        # Each outcome has its own coins: what is charged next depends on it.
        total += p * reached(rule, rng, depth - 1, order, after, x - math.log(p / q))
    return max(best, total)


def worst(rules: list[Filter], n: int, seed: int = 3) -> float:
    """Return the greatest delta that n random adversaries reach, in parts of the budget's."""
    rng = np.random.default_rng(seed)
    found = 0.0
    for _ in range(n):
        rule = rules[int(rng.integers(len(rules)))]
        depth, order = int(rng.integers(1, 4)), int(rng.integers(2))
        delta = reached(rule, rng, depth, order, None, rule.budget.epsilon)
        found = max(found, delta / rule.promised)
    return found


def filters(which: str, make: Callable[[Budget], SumOrGaussian] = SumOrGaussian) -> list[Filter]:
    return [Filter(make(budget), menu(budget), which) for budget in BUDGETS]


# Sequences, a thousand in all. Each filter alone is held to its own share of delta, where a wrong
# price shows: within the whole delta the other filter's share would hide it.
@pytest.mark.parametrize(
    ("which", "n", "least"), [("either", 300, 0.75), ("sum", 300, 0.99), ("noise", 400, 0.99)]
)
def test_a_thousand_adaptive_sequences_stay_within_the_budget(
    which: str, n: int, least: float
) -> None:
    found = worst(filters(which), n)
    assert found <= 1.0 + DIGITS
    assert found > least, "an adversary that does nothing tests nothing"


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("which", ["either", "sum", "noise"])
def test_thousands_more(which: str, seed: int) -> None:
    assert worst(filters(which), 1000, seed) <= 1.0 + DIGITS


def test_an_accountant_accepts_what_the_sequences_are_charged_with() -> None:
    for rule in filters("either"):
        rng = np.random.default_rng(1)
        accountant, totals = Accountant(rule.budget, rule.rule), None
        for _ in range(20):
            i = int(rng.integers(len(rule.charges)))
            charge, after = rule.charges[i], rule.after(totals, i)
            if after is None:
                with pytest.raises(BudgetExceeded):
                    accountant.charge(charge.event, charge.delta)
            else:
                accountant.charge(charge.event, charge.delta)
                totals = after


# --- rules that are wrong, which the same adversaries break ---------------------------------------


class FirstPriceForAll(SumOrGaussian):
    def cost(self, charge: Charge) -> Totals:
        epsilon, delta, now, later, leak = super().cost(charge)
        e, d = self.budget.epsilon, GAUSSIAN_SHARE * self.budget.delta
        first = first_price(charge.event, self._leak, _limit(self.budget), e, d)
        return epsilon, delta, min(now, first), min(later, first), leak


class LeaksForgotten(SumOrGaussian):
    def cost(self, charge: Charge) -> Totals:
        return (*super().cost(charge)[:4], 0.0)


class DeltasForgotten(SumOrGaussian):
    def cost(self, charge: Charge) -> Totals:
        epsilon, _, *others = super().cost(charge)
        return (epsilon, 0.0, *others)


class HalfThePrice(SumOrGaussian):
    def cost(self, charge: Charge) -> Totals:
        epsilon, delta, now, later, leak = super().cost(charge)
        return epsilon, delta, now / 2, later / 2, leak


def naive(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give each filter the whole delta."""
    for name in ("SUM_SHARE", "GAUSSIAN_SHARE"):
        monkeypatch.setattr(filters_module, name, 1.0)


WRONG: dict[str, tuple[str, type[SumOrGaussian], Any, int]] = {
    "each filter has the whole delta": ("either", SumOrGaussian, naive, 100),
    "the first price for all": ("noise", FirstPriceForAll, None, 800),
    "leaks are not added up": ("noise", LeaksForgotten, None, 100),
    "deltas are not added up": ("sum", DeltasForgotten, None, 100),
    "half the price": ("noise", HalfThePrice, None, 100),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_rule_is_broken(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    which, rule, change, n = WRONG[name]
    if change is not None:
        change(monkeypatch)
    assert worst(filters(which, rule), n) > 1.005
