"""The rules hold for events that are chosen in view of earlier outputs, by exact computation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import ndtr

from tacit.privacy import (
    Accountant,
    Budget,
    BudgetExceeded,
    Event,
    Gaussian,
    GaussianSum,
    Guarantee,
    NoisyMajority,
    Odometer,
    PureEpsilon,
    RenyiSum,
    Repeated,
    SampledGaussian,
    SumOfEpsilons,
    ZeroConcentrated,
)
from tacit.privacy import filters as odometer
from tacit.privacy.accounting.gaussian_profile import (
    gaussian_delta,
    gaussian_mu,
    log_gaussian_delta,
    mu_of_pure,
)
from tacit.privacy.filters import Additive, Charge


def rules(budget: Budget) -> list[Additive]:
    return [SumOfEpsilons(), GaussianSum(), RenyiSum.best_for(budget), Odometer()]


NAMES = ["sum", "gaussian", "renyi", "odometer"]
# Randomised response of 0.3, and then one of two events that each bring delta at epsilon 1 to 0.01.
FIRST, SECOND = PureEpsilon(0.3), (Gaussian(1 / 0.4551), PureEpsilon(0.7262))
COUNTEREXAMPLE = Budget(1.0, 0.01)


def test_a_filter_on_composed_losses_would_be_overspent() -> None:
    # Each path is within the budget when it is fixed beforehand ...
    for event in SECOND:
        assert Guarantee(Repeated(FIRST, 1)).epsilon(0.0) == 0.3
        assert _delta_of_path(event) == pytest.approx(0.01, rel=2e-3)
    # ... and choosing the worse one after each output is not: E over the loss of the first.
    p = 1 / (1 + math.exp(-0.3))
    chosen = sum(
        mass * max(_delta_after(event, loss) for event in SECOND)
        for loss, mass in ((0.3, p), (-0.3, 1 - p))
    )
    assert chosen == pytest.approx(0.01023, rel=2e-3)


def _delta_after(event: Event, loss: float) -> float:
    at = event.profile(np.array([1.0 - loss]))
    mu = event.gaussian_mu()
    return float(at[0]) if at is not None else float(gaussian_delta(mu or 0.0, [1.0 - loss])[0])


def _delta_of_path(event: Event) -> float:
    p = 1 / (1 + math.exp(-0.3))
    return p * _delta_after(event, 0.3) + (1 - p) * _delta_after(event, -0.3)


@pytest.mark.parametrize("place", range(4), ids=NAMES)
@pytest.mark.parametrize("event", SECOND, ids=["gaussian", "pure"])
def test_every_rule_refuses_the_counterexample(place: int, event: Event) -> None:
    accountant = Accountant(COUNTEREXAMPLE, rules(COUNTEREXAMPLE)[place])
    accountant.charge(FIRST, 0.0)
    with pytest.raises(BudgetExceeded):
        accountant.charge(event, 0.0 if isinstance(event, PureEpsilon) else 0.01)


class Path:
    """Adaptive choices played out exactly: the law of the loss, on every path that is accepted.

    Randomised responses have two outcomes, so a tree of them has finitely many leaves, each with
    its loss and its probability; whoever chooses sees which branch was taken.
    """

    def __init__(self, rule: Additive, budget: Budget, rng: np.random.Generator) -> None:
        self.rule, self.budget, self.rng = rule, budget, rng
        self.leaves: list[tuple[float, float]] = []

    def play(self, totals: tuple[float, ...], loss: float, mass: float, depth: int) -> None:
        # Greedy after one output, timid or not at all after another: an adversary's habit.
        for share in self.rng.permutation([1.0, 0.7, 0.4, 0.15, 0.0])[:3] * bool(depth):
            epsilon = float(share) * self.budget.epsilon
            cost = self.rule.cost(Charge(PureEpsilon(epsilon), 0.0)) if share else totals
            after = tuple(map(sum, zip(totals, cost, strict=True)))
            if share and self.rule.fits(after, self.budget):
                p = 1 / (1 + math.exp(-epsilon))
                self.play(after, loss + epsilon, mass * p, depth - 1)
                self.play(after, loss - epsilon, mass * (1 - p), depth - 1)
                return
        self.leaves.append((loss, mass))

    def delta(self) -> float:
        e = self.budget.epsilon
        return sum(mass * max(-math.expm1(e - loss), 0.0) for loss, mass in self.leaves)


def played(seeds: range) -> float:
    """Return the greatest share of a budget's delta that random adaptive choices reached."""
    worst = 0.0
    for seed in seeds:
        rng = np.random.default_rng(seed)
        budget = Budget(float(rng.uniform(0.2, 3.0)), float(10 ** rng.uniform(-3, -0.5)))
        rule = rules(budget)[seed % 4]
        path = Path(rule, budget, rng)
        path.play((0.0,) * len(rule.most(budget)), 0.0, 1.0, 5)
        assert path.delta() <= budget.delta * (1 + 1e-9), (rule, budget)
        worst = max(worst, path.delta() / budget.delta)
    return worst


def test_random_adaptive_choices_stay_within_the_budget() -> None:
    played(range(100))


@pytest.mark.slow
def test_a_thousand_random_adaptive_choices_stay_within_the_budget() -> None:
    assert played(range(1000)) > 0.3  # it comes near what it forbids


def test_the_play_would_notice_a_rule_that_undercharges() -> None:
    class Half(GaussianSum):
        def cost(self, charge: Charge) -> tuple[float, ...]:
            return (super().cost(charge)[0] / 4,)

    budget = Budget(1.0, 0.2)
    found = []
    for seed in range(50):
        path = Path(Half(), budget, np.random.default_rng(seed))
        path.play((0.0,), 0.0, 1.0, 5)
        found.append(path.delta())
    assert max(found) > budget.delta


# --- pure events as Gaussians, the order of a budget, the odometer --------------------------------


@pytest.mark.parametrize("epsilon", [1e-6, 1e-3, 0.1, 0.5, 1.0, 3.0, 8.0, 20.0])
def test_a_pure_event_is_dominated_by_its_gaussian(epsilon: float) -> None:
    mu = mu_of_pure(epsilon)
    at = np.linspace(-1.5 * epsilon, 1.5 * epsilon, 301)
    pure = PureEpsilon(epsilon).profile(at)
    assert np.all(gaussian_delta(mu, at) >= pure - 1e-15)
    # and by no smaller one: they touch at e = 0
    assert np.any(gaussian_delta(mu * 0.999, at) < pure)


@pytest.mark.parametrize("noise_std", [0.5, 2.0, 40.0])
def test_a_noisy_majority_is_dominated_by_its_margin(noise_std: float) -> None:
    event, at = NoisyMajority(noise_std), np.linspace(0.01, 3.0, 60) / noise_std
    mu = event.gaussian_bound()
    # Exactly: the winner is Bernoulli(Phi(t)) on one neighbour, Bernoulli(Phi(t + h)) on the other.
    h = math.sqrt(2.0) / noise_std
    margins = np.linspace(-9.0 - h, 9.0, 4001)[:, None]
    deltas = np.zeros_like(at)
    for one, other in ((margins, margins + h), (margins + h, margins)):
        won = ndtr(one) - np.exp(at) * ndtr(other)
        lost = ndtr(-one) - np.exp(at) * ndtr(-other)
        deltas = np.maximum(deltas, np.max(np.maximum(won, lost), axis=0))
    assert np.all(gaussian_delta(mu, at) >= deltas - 1e-15)
    # and by no smaller one: each epsilon has a margin that is as bad
    assert np.all(gaussian_delta(mu * 0.999, at) < deltas)
    assert GaussianSum().cost(Charge(Repeated(event, 3), 0.0)) == pytest.approx((3 * mu**2,))
    # Elsewhere its own, smaller divergence counts.
    assert RenyiSum(8.0).cost(Charge(event, 0.0))[0] < 8.0 * mu**2 / 2
    assert event.gaussian_mu() is None


def test_no_event_has_more_than_the_mu_of_small_ones() -> None:
    for epsilon in np.geomspace(1e-9, 50, 60):
        assert mu_of_pure(float(epsilon)) <= math.sqrt(math.pi / 2) * epsilon
    assert mu_of_pure(math.inf) == math.inf


@pytest.mark.parametrize(
    ("epsilon", "delta", "order"),
    [(1.0, 1e-5, 17.8), (1.0, 1e-6, 22.0), (0.1, 1e-6, 166), (3.0, 1e-6, 8.9), (8.0, 1e-6, 4.4)],
)
def test_the_order_follows_the_budget(epsilon: float, delta: float, order: float) -> None:
    budget = Budget(epsilon, delta)
    rule = RenyiSum.best_for(budget)
    assert rule.order == pytest.approx(order, rel=0.02)

    def share(of: RenyiSum) -> float:
        return math.sqrt(2 * of.most(budget)[0] / of.order) / gaussian_mu(epsilon, delta)

    assert 0.915 <= share(rule) <= 0.95
    for other in (rule.order * 0.8, rule.order * 1.25):
        assert share(RenyiSum(other)) < share(rule)


@pytest.mark.parametrize("budget", [Budget(1.0, 1e-6), Budget(8.0, 1e-6), Budget(0.1, 1e-6)])
def test_what_the_odometer_costs(budget: Budget) -> None:
    rule, mu = Odometer(), gaussian_mu(budget.epsilon, budget.delta)

    def fits(share: float) -> bool:
        return rule.fits(rule.cost(Charge(Gaussian(1 / (share * mu)), 0.0)), budget)

    assert fits(0.8)
    assert not fits(0.95)


@pytest.mark.parametrize("event", [Gaussian(8.0), ZeroConcentrated(0.01), PureEpsilon(0.2)])
def test_the_odometer_says_what_its_formula_says(event: Event) -> None:
    from tacit.privacy.filters import ORDERS

    rule, delta = Odometer(), 1e-6
    totals = rule.totals((Charge(event, 0.0),) * 3)
    epsilon = rule.epsilon(totals, delta)
    losses = epsilon + np.geomspace(1e-6, 50, 200_001)
    below = sum(
        np.exp(np.minimum((a - 1) * (losses - s), 600)) / len(ORDERS)
        for a, s in zip(ORDERS, totals, strict=True)
    )
    greatest = float(np.max(-np.expm1(epsilon - losses) / below))
    assert greatest == pytest.approx(delta, rel=1e-6)
    assert epsilon >= Guarantee(Repeated(event, 3)).epsilon(delta)
    budget = Budget(epsilon, delta)
    assert rule.fits(totals, budget)
    assert not rule.fits(tuple(t * 1.001 for t in totals), budget)


@pytest.mark.parametrize("place", range(4), ids=NAMES)
def test_what_is_left_can_be_spent_and_no_more(place: int) -> None:
    budget = Budget(2.0, 1e-5)
    rule = rules(budget)[place]
    totals = rule.cost(Charge(Gaussian(8.0), 1e-6))
    left = rule.left(totals, budget)
    assert 0.0 < left < 2.0
    for share, fits in ((0.999, True), (1.001, False)):
        mu = gaussian_mu(share * left, 1e-5)
        sum_of = PureEpsilon(share * left) if isinstance(rule, SumOfEpsilons) else Gaussian(1 / mu)
        after = tuple(map(sum, zip(totals, rule.cost(Charge(sum_of, 0.0)), strict=True)))
        assert rule.fits(after, budget) == fits
    sampled = Repeated(SampledGaussian(4.0, 0.01), 10)
    assert all(c >= 0.0 for c in rule.cost(Charge(sampled, 1e-6)))
    most = rule.most(budget)
    assert rule.epsilon(most, 1e-5) == pytest.approx(2.0) or isinstance(rule, Odometer)


@pytest.mark.parametrize("rule", [GaussianSum(), RenyiSum(), SumOfEpsilons()], ids=repr)
def test_of_a_spent_budget_nothing_is_left(rule: Additive) -> None:
    budget = Budget(1.0, 1e-6)
    most = rule.most(budget)
    assert rule.left(most, budget) == 0.0
    assert rule.left(tuple(1.5 * total for total in most), budget) == 0.0
    half = rule.left(tuple(0.5 * total for total in most), budget)
    assert 0.1 < half < 0.9
    assert rule.fits(most, budget)
    assert not rule.fits(tuple(total * (1 + 3e-12) for total in most), budget)


@pytest.mark.parametrize("rule", [GaussianSum(), RenyiSum()], ids=repr)
def test_a_release_that_floats_lose_is_not_free(rule: Additive) -> None:
    assert rule.cost(Charge(Gaussian(1e200), 1e-6))[0] > 0.0


def test_an_odometer_takes_nothing_without_a_bound() -> None:
    rule, budget = Odometer(), Budget(2.0, 1e-6)
    spent = rule.cost(Charge(Gaussian(20.0), 0.0))
    assert rule.fits(spent, budget)
    assert not rule.fits(spent, Budget(2.0, 0.0))
    unknown = (math.inf,) * len(spent)
    assert not rule.fits(unknown, budget)
    assert rule.epsilon(unknown, 1e-6) == math.inf
    assert rule.epsilon(spent, 0.0) == math.inf
    assert rule.left(unknown, budget) == 0.0
    nothing = (0.0,) * len(spent)
    assert rule.epsilon(nothing, 0.999) == 0.0


def test_a_total_exceeds_its_budget_by_rounding_alone() -> None:
    """The one tolerance, a factor of 1 + 1e-12 (docs/proofs/ledger.md, section 1)."""
    budget = Budget(1.0, 1e-6)
    for rule in (SumOfEpsilons(), GaussianSum(), RenyiSum(16.0)):
        most = rule.most(budget)
        assert rule.fits(tuple(m * (1 + 0.95e-12) for m in most), budget)
        for i, m in enumerate(most):
            over = (*most[:i], m * (1 + 1.05e-12), *most[i + 1 :])
            assert not rule.fits(over, budget)
    assert SumOfEpsilons().epsilon((0.5, 1e-6 * (1 + 1.05e-12)), 1e-6) == math.inf


def test_a_rule_has_limits_if_they_decide_alone() -> None:
    """Whether a ledger may compare totals with limits, or has to ask `fits`."""
    budget = Budget(1.0, 1e-6)
    for rule in rules(budget):
        assert rule.has_limits == rule.fits(rule.most(budget), budget)


def test_totals_of_another_rule_are_refused() -> None:
    budget = Budget(1.0, 1e-6)
    for totals in ((), (0.1,), (0.1, 0.0, 0.0)):
        with pytest.raises(ValueError, match="zip"):
            SumOfEpsilons().fits(totals, budget)

    class Uneven(GaussianSum):
        def cost(self, charge: Charge) -> tuple[float, ...]:
            return (0.1, 0.1) if charge.delta else (0.1,)

    with pytest.raises(ValueError, match="zip"):
        Uneven().totals((Charge(Gaussian(1.0), 0.0), Charge(Gaussian(1.0), 1e-7)))


@pytest.mark.parametrize("rule", [GaussianSum(), RenyiSum()])
def test_of_a_pure_budget_nothing_is_left_for_rules_that_need_a_delta(rule: Additive) -> None:
    assert Accountant(Budget(1.0), rule).remaining() == 0.0


def test_the_odometer_rounds_its_supremum_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """However early the search for the peak ends, the tangent there is above it."""
    totals = Odometer().cost(Charge(Gaussian(4.0), 0.0))
    slopes = np.array(odometer.ORDERS) - 1
    x = np.geomspace(1e-4, 5.0, 20_000)[:, None]
    terms = slopes * (1.0 + x - np.array(totals)) - math.log(slopes.size)
    peak = float(np.max(np.log(-np.expm1(-x[:, 0])) - np.logaddexp.reduce(terms, axis=1)))
    for halvings in (1, 2, 4, 8):
        monkeypatch.setattr(odometer, "_HALVINGS", halvings)
        assert odometer._log_delta(1.0, totals) >= peak


def test_no_charge_gives_a_budget_back() -> None:
    """Whatever delta an analyst asks for, for instance one that is just short of epsilon 0."""
    event = Gaussian(901.48)
    for n in (1, 2, 3, 4, 8, 16):
        delta = math.exp(log_gaussian_delta(1 / 901.48, 0.0)) * (1 - n * 2.0**-53)
        accountant = Accountant(Budget(1.0, 1e-3))
        assert accountant.charge(event, delta) >= 0.0
        with pytest.raises(BudgetExceeded):
            accountant.charge(PureEpsilon(5.0))


def test_the_odometer_says_zero_only_of_zero() -> None:
    totals = Odometer().cost(Charge(Gaussian(1e5), 0.0))
    assert Odometer().epsilon(totals, math.exp(odometer._log_delta(0.0, totals)) * 1.000001) == 0.0
    for epsilon in (1e-13, 1e-12):
        delta = math.exp(odometer._log_delta(epsilon, totals))
        assert Odometer().epsilon(totals, delta) == pytest.approx(epsilon, rel=0.01, abs=0.0)
