"""A filter that accepts while sums hold or squared mu do: prices, counts, and adversaries."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy.special import ndtri

from tacit.privacy import (
    Accountant,
    Budget,
    BudgetExceeded,
    Composed,
    Event,
    ExponentialMechanism,
    Gaussian,
    Guarantee,
    LinearModelObjective,
    LogCoshObjective,
    LogisticObjective,
    MonotoneObjective,
    NoisyMajority,
    Parallel,
    PureEpsilon,
    RareLeak,
    Repeated,
    SampledGaussian,
    SoftmaxObjective,
    SumOrGaussian,
)
from tacit.privacy.accounting.dominating import (
    _between_dots,
    _inflated,
    dominating,
    first_price,
    hull_of,
    price_of,
)
from tacit.privacy.accounting.gaussian_profile import (
    gaussian_delta,
    gaussian_epsilon,
    gaussian_mu,
    mu_of_pure,
)
from tacit.privacy.filters import (
    GAUSSIAN_SHARE,
    LEAK_SHARE,
    RESERVE,
    SUM_SHARE,
    Charge,
    default_rule,
)

Array = npt.NDArray[np.float64]

BUDGET = Budget(1.0, 1e-6)
RULE = SumOrGaussian(BUDGET)
SQUARED = gaussian_mu(1.0, GAUSSIAN_SHARE * 1e-6) ** 2
RESERVED = math.sqrt(RESERVE * SQUARED)

# mu at a leak of 1e-12, in the limit of fine grids.
MU: list[tuple[Event, float]] = [
    (LogisticObjective(1.0, 10.0, 3.730632), 0.268566),
    (LogisticObjective(1.0, 2.0, 4.5), 0.250567),
    (LogisticObjective(0.65, 55.0, 170.0), 0.004268),
    (LogCoshObjective(1.0, 1.0, 2.0, 3.88415), 0.51982),
    (LogCoshObjective(1.0, 1.0, 64.0, 250.0), 0.011497),
    (MonotoneObjective(1.0, 0.25, 10.0, 3.81656), 0.283296),
    (LinearModelObjective(1.0, 0.25, 10.0, 4.0), 0.413258),
    (SoftmaxObjective(1.0, 10, 71.0, 5.944), 0.602290),
    (PureEpsilon(0.5), 0.623893),
    (ExponentialMechanism(0.5), 0.312980),
]


def ids(value: Any) -> str | None:
    return type(value).__name__ if isinstance(value, Event) else None


def test_shares_of_delta_add_up_to_one() -> None:
    assert SUM_SHARE + GAUSSIAN_SHARE + LEAK_SHARE == 1.0
    assert pytest.approx(0.048885830, rel=1e-8) == SQUARED
    assert pytest.approx(0.0699184, rel=1e-6) == RESERVED


@pytest.mark.parametrize(("event", "mu"), MU, ids=ids)
def test_every_event_has_a_mu(event: Event, mu: float) -> None:
    found = dominating(event, 1e-12).mu
    assert mu * (1 - 2e-6) <= found <= mu * (1 + 4e-4)


@pytest.mark.parametrize(("event", "mu"), MU, ids=ids)
def test_the_gaussian_of_a_price_is_above_both_profiles(event: Event, mu: float) -> None:
    """H <= p + (1 - p) dG(mu) for the pair of the hull, at either sign of epsilon."""
    hull = dominating(event, 1e-12)
    epsilon = np.concatenate([hull.losses, np.linspace(-3.0, 3.0, 601)])
    bound = hull.leak + (1 - hull.leak) * gaussian_delta(hull.mu, epsilon)
    exact = np.array([hull.first @ -np.expm1(np.minimum(e - hull.losses, 0.0)) for e in epsilon])
    assert np.all(exact <= bound * (1 + 1e-9) + 1e-15)


@pytest.mark.parametrize(("event", "mu"), MU, ids=ids)
def test_a_smaller_mu_is_below_some_profile(event: Event, mu: float) -> None:
    """The price is tight: with 0.5 % less mu the Gaussian is below the hull somewhere."""
    hull = dominating(event, 1e-12)
    for sign, masses in ((1.0, hull.first), (-1.0, hull.second)):
        epsilon = np.concatenate([hull.losses, -hull.losses, np.linspace(-2, 2, 801)])
        losses = sign * hull.losses
        exact = np.array([masses @ -np.expm1(np.minimum(e - losses, 0.0)) for e in epsilon])
        if np.any(exact + hull.leak > hull.leak + gaussian_delta(0.995 * hull.mu, epsilon)):
            return
    raise AssertionError(f"{event} could have a smaller mu than {hull.mu}")


def test_masses_of_a_hull_are_probabilities() -> None:
    for event, _ in MU:
        hull = dominating(event, 1e-12)
        assert hull.first.sum() + hull.leak >= 1 - 1e-12
        assert hull.first.sum() <= 1 + 1e-12
        assert 1 - 3e-12 <= hull.second.sum() <= 1 + 1e-12
        # exp(-loss) turns one mass into the other
        np.testing.assert_allclose(hull.first * np.exp(-hull.losses), hull.second, atol=1e-9)


@pytest.mark.parametrize(
    ("event", "ratio"),
    [
        (PureEpsilon(1 / 64), 0.6419),
        (LogCoshObjective(1.0, 1.0, 64.0, 250.0), 0.640),
        (LogisticObjective(0.65, 55.0, 170.0), 0.863),
        (LogisticObjective(1.0, 2.0, 4.5), 0.944),
        (Gaussian(30.0), 1.0),
    ],
    ids=ids,
)
def test_beside_a_reserve_small_releases_cost_less(event: Event, ratio: float) -> None:
    now = price_of(event, 1e-12).squared_mu
    later = price_of(event, 1e-12, RESERVED).squared_mu
    assert 0.98 * ratio <= later / now <= min(1.0, 1.01 * ratio)


@pytest.mark.parametrize(
    ("event", "share"),
    [
        (PureEpsilon(0.5), 0.71566),
        (PureEpsilon(1 / 64), 0.004915),
        (ExponentialMechanism(0.5), 0.61632),
        (LogisticObjective(0.65, 55.0, 170.0), 0.000318),
    ],
    ids=ids,
)
def test_the_first_release_is_priced_exactly(event: Event, share: float) -> None:
    found = first_price(event, 1e-12, SQUARED, 1.0, GAUSSIAN_SHARE * 1e-6) / SQUARED
    assert found == pytest.approx(share, rel=2e-3)


def test_gaussians_cost_their_mu() -> None:
    for z in (2.0, 30.0, 1e6):
        price = price_of(Gaussian(z), 1e-12, RESERVED)
        assert price.squared_mu == pytest.approx(z**-2, rel=1e-12)
        assert price.leak == 0.0
        assert first_price(Gaussian(z), 1e-12, SQUARED, 1.0, 1e-7) == pytest.approx(z**-2)


def test_parts_choices_runs_and_leaks() -> None:
    two = Parallel((Gaussian(3.0), PureEpsilon(0.1)))
    assert price_of(two, 1e-12).squared_mu == pytest.approx(1 / 9)
    run = Repeated(SampledGaussian(4.0, 0.01), 1000)
    # one sampled step has no useful mu; the run has
    assert price_of(run, 1e-12).squared_mu < 0.01
    leak = price_of(RareLeak(1e-9), 1e-12)
    assert (leak.squared_mu, leak.leak) == (0.0, 1e-9)
    winners = Repeated(NoisyMajority(60.0), 10)
    assert price_of(winners, 1e-12).squared_mu <= 10 * 2 / 60**2 * (1 + 1e-6)
    both = Composed((Gaussian(20.0), LogisticObjective(1.0, 2.0, 4.5)))
    apart = sum(price_of(e, 1e-12).squared_mu for e in both.events)
    assert price_of(both, 1e-12).squared_mu == pytest.approx(apart)


# --- what a budget takes --------------------------------------------------------------------------


def planned(model: str, k: int, budget: Budget = BUDGET) -> Charge:
    """Return a fit of the k-th part of a budget, as a ledger of this rule is charged for it."""
    from tacit.linear_model import HuberRegressor, LinearRegression, LinearSVC, LogisticRegression

    epsilon, delta = budget.epsilon / k, RULE.planning_delta(budget.delta / k)
    facts: dict[str, Any] = {"row_norm": 1.0, "n_records": 20_000}
    if model == "gaussian":
        return Charge(Gaussian(1 / gaussian_mu(epsilon, delta)), delta)
    if model == "pure":
        return Charge(PureEpsilon(epsilon), 0.0)
    two, numbers = {"classes": [0, 1], **facts}, {"label_range": (-1.0, 1.0), **facts}
    made = {
        "logistic": lambda: LogisticRegression(epsilon, delta, **two),
        "svc": lambda: LinearSVC(epsilon, delta, **two),
        "linear": lambda: LinearRegression(epsilon, delta, **numbers),
        "huber": lambda: HuberRegressor(
            epsilon, delta, mechanism="objective_perturbation", **numbers
        ),
    }
    return Charge(made[model]().plan(20).event, delta)


def taken(charge: Charge, budget: Budget = BUDGET) -> int:
    """Return how many such charges a budget takes."""
    rule = SumOrGaussian(budget)
    first, cost = rule.first_cost(charge), rule.cost(charge)
    low, high = 0, 20_000
    while high - low > 1:
        n = (low + high) // 2
        fits = rule.fits(tuple(a + (n - 1) * b for a, b in zip(first, cost, strict=True)), budget)
        low, high = (n, high) if fits else (low, n)
    return low


COUNTS = {
    "logistic": (1, 3, 11, 46, 184, 2937),
    "linear": (1, 2, 4, 15, 61, 1000),
    "svc": (1, 2, 7, 32, 129, 2585),
    "huber": (1, 2, 5, 21, 83, 1520),
    "gaussian": (1, 3, 13, 55, 219, 3505),
    "pure": (1, 2, 4, 8, 16, 178),
}


@pytest.mark.parametrize("model", COUNTS)
def test_a_budget_takes_what_adds_up_and_more_when_they_are_many(model: str) -> None:
    for k, expected in zip((1, 2, 4, 8, 16, 64), COUNTS[model], strict=True):
        found = taken(planned(model, k))
        assert found >= k
        assert expected <= found <= max(expected * 1.02, expected + 1)


@pytest.mark.parametrize("model", ["logistic", "linear", "gaussian", "pure"])
@pytest.mark.parametrize("shares", [(0.3, 0.7), (0.7, 0.3), (1 / 64, 1 - 1 / 64)])
def test_whatever_adds_up_is_accepted_in_any_order(model: str, shares: tuple[float, ...]) -> None:
    accountant = Accountant(BUDGET)
    assert isinstance(accountant.rule, SumOrGaussian)
    for share in shares:
        charge = planned(model, 1, Budget(share, share * 1e-6))
        accountant.charge(charge.event, charge.delta)
    assert accountant.spent() <= 1.0 + 1e-9
    with pytest.raises(BudgetExceeded):
        accountant.charge(planned(model, 1).event, planned(model, 1).delta)


def test_a_release_planned_elsewhere_closes_the_budget() -> None:
    """Alone within the budget at its whole delta: accepted first, and nothing after it."""
    from tacit.linear_model import LogisticRegression

    whole = LogisticRegression(1.0, 1e-6, classes=[0, 1], n_records=20_000, row_norm=1.0)
    accountant = Accountant(BUDGET)
    accountant.charge(whole.plan(20).event, 1e-6)
    assert accountant.spent() == 1.0
    with pytest.raises(BudgetExceeded):
        accountant.charge(Gaussian(1e4), 1e-12)


def test_an_event_without_a_price_breaks_one_filter_for_ever() -> None:
    class NoProfile(PureEpsilon):
        kind = "no_profile_of_a_test"

        def profile(self, epsilon: Array) -> Array:
            return np.full_like(epsilon, np.nan)

        def pure_epsilon(self) -> float:
            return math.inf

        def renyi(self, orders: Array) -> Array:
            return np.full_like(orders, 0.01)

    assert math.isinf(price_of(NoProfile(0.1), 1e-12).squared_mu)
    assert math.isinf(price_of(NoProfile(0.1), 1e-12, RESERVED).squared_mu)
    assert not RULE.fits((2.0, 0.0, math.inf, math.inf, 0.0), BUDGET)
    assert RULE.fits((1.0, 0.0, math.inf, math.inf, math.inf), BUDGET)


def test_default_rules() -> None:
    assert isinstance(default_rule(BUDGET), SumOrGaussian)
    assert type(default_rule(Budget(1.0))).__name__ == "SumOfEpsilons"
    assert type(default_rule(Budget(math.inf, 1e-6))).__name__ == "SumOfEpsilons"
    for pure in (Budget(1.0), Budget(math.inf, 1e-6)):
        with pytest.raises(ValueError, match="delta"):
            SumOrGaussian(pure)


# --- adversaries ----------------------------------------------------------------------------------

Z = np.linspace(-9.0, 9.0, 20_001)
MASS = np.exp(-(Z**2) / 2) / math.sqrt(2 * math.pi) * (Z[1] - Z[0])


def reached(budget: Budget, sums: float, gauss: float, first: float, part: float) -> float:
    """Return what two releases reach, in parts of delta: the second follows the first's loss.

    The first is a Gaussian of ``first`` parts of the Gaussian filter's mu. The second is what the
    Gaussian filter leaves, or what the sum leaves: a pure release and a leak, whichever is worse.
    """
    m = gaussian_mu(budget.epsilon, gauss * budget.delta)
    mu, delta = first * m, part * sums * budget.delta
    left, leak = budget.epsilon - gaussian_epsilon(mu, delta), sums * budget.delta - delta
    x = budget.epsilon - (mu * mu / 2 + mu * Z)
    by_noise = gaussian_delta(math.sqrt(m * m - mu * mu), x)
    by_sum = np.zeros_like(x)
    if left >= 0.0:
        response = np.maximum((math.exp(left) - np.exp(x)) / (1 + math.exp(left)), -np.expm1(x))
        by_sum = leak + (1 - leak) * np.maximum(response, 0.0)
    return float(MASS @ np.maximum(by_noise, by_sum)) / budget.delta


@pytest.mark.parametrize(("budget", "naive"), [(BUDGET, 1.9), (Budget(1.0, 1e-2), 1.5)])
def test_the_split_of_delta_is_needed_and_enough(budget: Budget, naive: float) -> None:
    first, part = np.linspace(0.05, 0.99, 25), (1e-3, 1e-2, 0.05, 0.2)
    cases = [(float(f), p) for f in first for p in part]
    assert max(reached(budget, 1.0, 1.0, *case) for case in cases) > naive
    assert max(reached(budget, SUM_SHARE, GAUSSIAN_SHARE, *case) for case in cases) <= 1.0


def after_a_gaussian(first: float, epsilon: float, price: float) -> float:
    """Return what a Gaussian and then a pure release or a Gaussian reach, in parts of its delta."""
    left = SQUARED - first**2
    x = BUDGET.epsilon - (first * first / 2 + first * Z)
    by_noise = gaussian_delta(math.sqrt(left), x)
    response = (math.exp(epsilon) - np.exp(x)) / (1 + math.exp(epsilon))
    rest = left - price
    if rest < 0.0:
        return 0.0
    # the response, and what its price leaves, as a Gaussian after it
    p = 1 / (1 + math.exp(-epsilon))
    mu = math.sqrt(rest)
    by_response = p * gaussian_delta(mu, x - epsilon) + (1 - p) * gaussian_delta(mu, x + epsilon)
    best = np.maximum(by_noise, np.maximum(by_response, np.maximum(response, 0.0)))
    return float(MASS @ best) / (GAUSSIAN_SHARE * BUDGET.delta)


def test_the_first_price_is_for_the_first_release_alone() -> None:
    delta = GAUSSIAN_SHARE * BUDGET.delta
    unsound, sound = 0.0, 0.0
    for epsilon in (0.1, 0.2, 0.3, 0.4, 0.5):
        event = PureEpsilon(epsilon)
        cheap = first_price(event, 1e-12, SQUARED, BUDGET.epsilon, delta)
        dear = price_of(event, 1e-12).squared_mu
        for share in np.linspace(0.05, 0.95, 37):
            first = math.sqrt(float(share) * SQUARED)
            if first**2 + cheap <= SQUARED:
                unsound = max(unsound, after_a_gaussian(first, epsilon, cheap))
            if first**2 + dear <= SQUARED:
                sound = max(sound, after_a_gaussian(first, epsilon, dear))
    assert unsound > 1.02
    assert sound <= 1.0 + 1e-9


def test_random_sequences_stay_within_the_budget() -> None:
    """Any accepted list of releases, composed exactly, is within (epsilon, delta)."""
    rng = np.random.default_rng(5)
    menu = [
        lambda e: PureEpsilon(e),
        lambda e: Gaussian(1 / gaussian_mu(e, 1e-7)),
        lambda e: LogisticObjective(1.0, 4.0 / e, 5.0 / e),
        lambda e: LogCoshObjective(1.0, 1.0, 4.0 / e, 6.0 / e),
        lambda e: ExponentialMechanism(e),
    ]
    for _ in range(5):
        budget = Budget(float(rng.uniform(0.5, 2.0)), float(10 ** rng.uniform(-7, -3)))
        accountant = Accountant(budget, SumOrGaussian(budget))
        charged: list[Event] = []
        for _ in range(15):
            event = menu[rng.integers(len(menu))](float(rng.uniform(0.02, 0.4)))
            try:
                accountant.charge(event, 0.0 if math.isfinite(event.pure_epsilon()) else 1e-9)
            except BudgetExceeded:
                continue
            charged.append(event)
        assert len(charged) > 2
        assert Guarantee(Composed(tuple(charged))).delta(budget.epsilon) <= budget.delta


def test_edges_are_tests_of_a_gaussian() -> None:
    """Phi^-1(b) - Phi^-1(s) of randomised response is `mu_of_pure`."""
    epsilon = 0.7
    b = 1 / (1 + math.exp(-epsilon))
    assert float(ndtri(b) - ndtri(1 - b)) == pytest.approx(mu_of_pure(epsilon))
    assert dominating(PureEpsilon(epsilon), 1e-12).mu == pytest.approx(mu_of_pure(epsilon), 1e-6)


# --- the rule, total by total ---------------------------------------------------------------------

NOTHING = (0.0, 0.0, 0.0, 0.0, 0.0)


@pytest.mark.parametrize("within", list(itertools.product([False, True], repeat=5)), ids=str)
def test_one_of_the_filters_must_hold(within: tuple[bool, ...]) -> None:
    epsilon, delta, now, later, leak = within
    by_sum, by_noise = epsilon and delta, leak and (now or later)
    assert RULE.holds(within) is (by_sum or by_noise)


def test_what_each_total_may_reach() -> None:
    budget = Budget(0.5, 1e-4)
    squared = gaussian_mu(0.5, 0.225e-4) ** 2
    expected = 0.5, 0.75e-4, squared, 0.9 * squared, 0.025e-4
    assert RULE.most(budget) == pytest.approx(expected, rel=1e-12)


def test_leaks_have_a_share_of_delta_and_no_more() -> None:
    full = LEAK_SHARE * 1e-6
    for leak, epsilon in ((full, 0.0), (1.01 * full, math.inf), (2.0 * full, math.inf)):
        totals = math.inf, 1.0, 0.0, 0.0, leak
        assert RULE.epsilon(totals, 1e-6) == epsilon
        left = RULE.left_by_noise((0.0, 0.0, 0.0, 0.0, leak), BUDGET)
        assert (left > 0.0) is (epsilon == 0.0)


def test_what_is_left() -> None:
    used_up = SUM_SHARE * 1e-6
    assert RULE.left_by_sum((0.25, 0.5 * used_up, *NOTHING[2:]), BUDGET) == 0.75
    for deltas in (used_up, 1.5 * used_up, 3.0 * used_up):
        assert RULE.left_by_sum((0.0, deltas, *NOTHING[2:]), BUDGET) == 0.0
    # of the two totals of mu^2, the one that leaves more
    for now, later, left in ((0.5, 0.45, 0.5), (0.5, 0.1, 0.8), (0.2, 0.2, 0.8)):
        totals = 9.0, 1.0, now * SQUARED, later * SQUARED, 0.0
        mu = math.sqrt(left * SQUARED)
        found = RULE.left_by_noise(totals, BUDGET)
        assert found == pytest.approx(gaussian_epsilon(mu, used_up), rel=1e-9)
    assert RULE.left_by_noise((0.0, 0.0, 2 * SQUARED, 2 * SQUARED, 0.0), BUDGET) == 0.0


def test_the_greater_leak_of_two_prices_is_charged() -> None:
    event = LogisticObjective(1.0, 2.0, 4.5)
    now, later = price_of(event, 1e-12), price_of(event, 1e-12, RESERVED)
    assert 0.0 < now.leak < later.leak
    cost = RULE.cost(Charge(event, 1e-7))
    assert cost[2:] == (now.squared_mu, later.squared_mu, later.leak)


def test_a_first_release_keeps_its_leak_unless_it_is_inside_its_price() -> None:
    event = LogisticObjective(0.65, 55.0, 170.0)
    first = first_price(event, 1e-12, SQUARED, 1.0, GAUSSIAN_SHARE * 1e-6)
    cost = RULE.first_cost(Charge(event, 1e-7))
    assert cost[2:] == (first, first, 0.0)
    assert first < RULE.cost(Charge(event, 1e-7))[3]
    # a leak has no such price
    assert RULE.first_cost(Charge(RareLeak(1e-9), 1e-9))[2:] == (0.0, 0.0, 1e-9)


# --- hulls of pairs that are known exactly --------------------------------------------------------

FINITE = np.array([0.5, 0.3, 0.15, 0.05]), np.array([0.3, 0.4, 0.1, 0.2])
STEEP = np.array([0.9, 0.09, 0.01]), np.array([0.05, 0.15, 0.8])
LEAKING = np.array([0.6, 0.38, 0.02, 0.0]), np.array([0.4, 0.59, 0.0, 0.01])
LIKELY = np.array([0.9, 0.1]), np.array([0.6, 0.4])
PAIRS = {"finite": FINITE, "steep": STEEP, "leaking": LEAKING, "likely": LIKELY}


def profiles_of(p: Array, q: Array) -> Any:
    def profiles(epsilon: Array) -> tuple[Array, Array]:
        alpha = np.exp(np.minimum(epsilon, 700.0))[:, None]
        return np.maximum(p - alpha * q, 0.0).sum(1), np.maximum(q - alpha * p, 0.0).sum(1)

    return profiles


def best_mu(p: Array, q: Array, leak: float) -> float:
    """Return the greatest Phi^-1(b) - Phi^-1(s) over tests by likelihood ratio, in both orders."""
    found = 0.0
    for one, other in ((p, q), (q, p)):
        order = np.argsort(-one / np.maximum(other, 1e-300))
        for b, s in zip(np.cumsum(one[order]), np.cumsum(other[order]), strict=True):
            right, wrong = (b - leak) / (1 - leak), s / (1 - leak)
            if 0.0 < right < 1.0 and 0.0 < wrong < 1.0:
                found = max(found, float(ndtri(right) - ndtri(wrong)))
    return found


@pytest.mark.parametrize("name", PAIRS)
def test_a_hull_is_above_the_pair_and_close_to_it(name: str) -> None:
    p, q = PAIRS[name]
    lost = max(p[q == 0].sum(), q[p == 0].sum())
    hull, epsilon = hull_of(profiles_of(p, q), lost + 1e-9), np.linspace(-4.0, 4.0, 801)
    assert lost <= hull.leak <= lost + 2e-9
    for sign, masses, exact in (
        (1.0, hull.first, profiles_of(p, q)(epsilon)[0]),
        (-1.0, hull.second, profiles_of(p, q)(epsilon)[1]),
    ):
        losses = sign * hull.losses
        found = np.array([masses @ -np.expm1(np.minimum(e - losses, 0.0)) for e in epsilon])
        assert np.all(found + hull.leak >= exact - 1e-15)
        assert np.all(found <= exact + 0.02)
    mu = best_mu(p, q, hull.leak)
    assert mu * (1 - 1e-9) <= hull.mu <= mu * (1 + 1e-2)


@pytest.mark.parametrize("shift", [1e-10, 2e-9])
def test_a_pair_that_hardly_differs(shift: float) -> None:
    """What is below the leak is all leak; what is above it is not."""
    p, q = np.array([0.5 + shift, 0.5 - shift]), np.array([0.5, 0.5])
    hull = hull_of(profiles_of(p, q), 1e-9)
    assert hull.leak <= 1e-9 * (1 + 1e-6)
    assert hull.first.sum() == pytest.approx(1.0, abs=1e-8)
    assert hull.second.sum() == pytest.approx(1.0, abs=1e-8)
    if shift < 1e-9:
        assert hull.losses.tolist() == [0.0]
        assert hull.mu == 0.0
        assert hull.leak == pytest.approx(shift, rel=1e-5)


def test_a_pair_that_nothing_dominates_but_a_leak() -> None:
    p = np.array([1 - 1e-9, 1e-9])
    assert hull_of(profiles_of(p, p[::-1]), 1e-12).mu == math.inf


@pytest.mark.parametrize(("epsilon", "mu"), [(0.5, 0.3), (3.0, 2.0), (3.0, 0.1)])
def test_a_hull_beside_a_gaussian(epsilon: float, mu: float) -> None:
    """Randomised response beside a Gaussian mechanism: a mixture of two shifted profiles."""
    hull, x = dominating(PureEpsilon(epsilon), 1e-12), np.linspace(-1.0, epsilon + 3 * mu, 50)
    p = 1 / (1 + math.exp(-epsilon))
    exact = p * gaussian_delta(mu, x - epsilon) + (1 - p) * gaussian_delta(mu, x + epsilon)
    assert exact[0] > 0.5 or epsilon < 1.0
    for found in hull.beside(mu)(x):
        np.testing.assert_allclose(found, exact, rtol=0.02, atol=1e-9)
        assert np.all(found >= exact * (1 - 1e-12))
    for e in (0.1, epsilon):
        worse = max(float(each[0]) for each in hull.beside(mu)(np.array([e])))
        assert worse < hull.delta_beside(mu, e) < worse * (1 + 2e-8)


def test_profiles_are_rounded_up_and_fall() -> None:
    given = np.array([0.5, 0.25, 0.3, 1e-9])
    found = _inflated(given.copy())
    assert np.all(found >= given * (1 + 0.9e-8))
    np.testing.assert_allclose(found, [0.5, 0.3, 0.3, 1e-9], rtol=2e-8)
    assert _inflated(np.array([1.0, 0.0])).tolist() == [1.0, 0.0]


@pytest.mark.parametrize("event", [PureEpsilon(0.5), LogisticObjective(1.0, 2.0, 4.5)], ids=ids)
def test_a_price_is_rounded_up(event: Event) -> None:
    price, hull = price_of(event, 1e-12), dominating(event, 1e-12)
    mu = min(hull.mu, mu_of_pure(event.pure_epsilon()))
    assert mu**2 * (1 + 0.9e-9) < price.squared_mu < mu**2 * (1 + 1.1e-9)
    assert price.leak == (hull.leak if mu == hull.mu else 0.0)


def test_between_dots_profiles_are_linear_in_alpha() -> None:
    dots = np.array([-0.1, 0.0, 0.1, 0.2])
    first, second = np.array([0.6, 0.5, 0.3, 0.1]), np.array([0.55, 0.5, 0.2, 0.05])
    between = np.log((np.exp(dots[1:]) + np.exp(dots[:-1])) / 2)
    for charge in (0.001, 0.6):
        profiles = _between_dots(dots, first, second, 0.1, charge)
        for i, deltas in enumerate((first, second)):
            half = np.minimum((deltas[1:] + deltas[:-1]) / 2 + charge, 1.0)
            np.testing.assert_allclose(profiles(between)[i], half, rtol=1e-12)
            known = np.minimum(np.append(deltas, deltas[-1]) + charge, 1.0)
            there = np.append(dots, 0.5)
            np.testing.assert_allclose(profiles(there)[i], known, rtol=1e-12)
            assert profiles(np.array([-0.2]))[i].tolist() == [1.0]


class Fixed(PureEpsilon):
    """An event of a pair that is known exactly, one profile for each order."""

    kind = "fixed_pair_of_a_test"

    def profile(self, epsilon: Array) -> Array:
        return np.maximum(*profiles_of(*LEAKING)(epsilon))

    def profiles_by_order(self, epsilon: Array) -> tuple[Array, Array]:
        one, other = profiles_of(*LEAKING)(epsilon)
        return one, other

    def pure_epsilon(self) -> float:
        return math.inf


def test_a_leak_of_an_event_is_counted_as_often_as_it_is() -> None:
    one, three = price_of(Fixed(1.0), 0.0201), price_of(Composed((Fixed(1.0),) * 3), 0.0201)
    assert 0.02 <= one.leak <= 0.0201
    assert three.leak == pytest.approx(3 * one.leak, rel=1e-12)
    assert three.squared_mu == pytest.approx(3 * one.squared_mu, rel=1e-12)
    parts = Parallel((Fixed(1.0), Gaussian(0.5)))
    found = price_of(Repeated(parts, 2), 0.0201)
    assert (found.squared_mu, found.leak) == pytest.approx((8.0, 2 * one.leak), rel=1e-12)


def test_a_bound_without_a_leak_is_charged_without_one() -> None:
    price = price_of(NoisyMajority(60.0), 1e-12)
    assert price.leak == 0.0
    assert price.squared_mu == pytest.approx(2 / 60**2, rel=1e-8)


def test_leaks_of_a_run_add_up() -> None:
    price = price_of(Repeated(RareLeak(1e-9), 5), 1e-12)
    assert price.squared_mu == 0.0
    assert price.leak == pytest.approx(5e-9, rel=1e-12)


def test_a_release_is_priced_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run of DP-SGD is convolved once for its epsilon and its two prices; then it is known."""
    from tacit.privacy.accounting import loss_distribution

    made: list[Event] = []
    plain = SampledGaussian.loss_distribution

    def counted(self: SampledGaussian, interval: float) -> Any:
        made.append(self)
        return plain(self, interval)

    monkeypatch.setattr(SampledGaussian, "loss_distribution", counted)
    loss_distribution._one.cache_clear()
    rule = SumOrGaussian(Budget(1.0, 1e-6))
    charge = Charge(Repeated(SampledGaussian(7.25, 0.01), 300), 7.5e-7)
    first, later = rule.first_cost(charge), rule.cost(charge)
    assert len(made) == 1
    loss_distribution._one.cache_clear()
    assert rule.first_cost(charge) == first
    assert SumOrGaussian(Budget(1.0, 1e-6)).cost(charge) == later
    assert len(made) == 1
