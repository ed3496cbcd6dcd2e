from __future__ import annotations

import json
import math

import numpy as np
import pytest

from tacit.privacy import (
    Accountant,
    Budget,
    BudgetExceeded,
    Composed,
    Event,
    ExponentialMechanism,
    Gaussian,
    GaussianSum,
    Guarantee,
    LogisticObjective,
    PureEpsilon,
    Relation,
    RenyiSum,
    Repeated,
    SampledGaussian,
    SumOfEpsilons,
    ZeroConcentrated,
    calibrate,
    replace_from_add_remove,
)
from tacit.privacy.accounting.composition import RenyiRoute


@pytest.mark.parametrize(
    ("event", "route"),
    [
        (Repeated(Gaussian(5.0), 8), "exact Gaussian composition"),
        (Composed((Gaussian(5.0), LogisticObjective(1.0, 100.0, 4.0))), "exact Gaussian"),
        (LogisticObjective(1.0, 1.0, 4.0), "closed form"),
        (Repeated(SampledGaussian(1.0, 0.1), 9), "privacy-loss distribution"),
        (Composed((Gaussian(5.0), PureEpsilon(0.1))), "closed form and Gaussians"),
        (Composed((Gaussian(5.0), Repeated(PureEpsilon(0.1), 2))), "privacy-loss distribution"),
        (Composed((PureEpsilon(0.1), ZeroConcentrated(0.1))), "Renyi"),
        (Repeated(PureEpsilon(0.5), 2), "pure composition"),
    ],
)
def test_route(event, route: str) -> None:  # type: ignore[no-untyped-def]
    delta = 1e-20 if route == "pure composition" else 1e-6
    assert Guarantee(event).route(delta).startswith(route)


@pytest.mark.parametrize(
    "event", [Repeated(PureEpsilon(1e7), 2), Composed((PureEpsilon(1e300), PureEpsilon(0.1)))]
)
def test_losses_that_fit_on_no_grid_are_not_convolved(event: Event) -> None:
    assert [route.name for route in Guarantee(event)._routes] == ["Renyi", "pure composition"]
    total = sum(n * leaf.pure_epsilon() for leaf, n in event.leaves())
    assert Guarantee(event).epsilon(1e-6) == pytest.approx(total)
    assert Guarantee(event).delta(total) == 0.0


def test_loss_distribution_agrees_with_the_exact_gaussian() -> None:
    from tacit.privacy.accounting.composition import LossDistributionRoute
    from tacit.privacy.accounting.loss_distribution import good_interval

    for multiplier, count in [(1.0, 1), (5.0, 100), (40.0, 3), (300.0, 1000)]:
        leaves = ((Gaussian(multiplier), count),)
        route = LossDistributionRoute(leaves, good_interval(leaves))
        exact = Guarantee(Repeated(Gaussian(multiplier), count))
        for delta in (1e-10, 1e-5, 1e-3):
            got, true = route.epsilon(delta), exact.epsilon(delta)
            assert true * (1 - 1e-6) <= got <= true * 1.002 + 1e-6


def test_loss_distribution_of_randomised_response_is_exact() -> None:
    # k-fold composition of randomised response in closed form (Kairouz et al. 2015)
    from scipy.stats import binom

    e0, k = 0.3, 12
    p = 1 / (1 + math.exp(-e0))
    heads = np.arange(k + 1)
    losses = (2 * heads - k) * e0
    mass = binom.pmf(heads, k, p)
    promise = Guarantee(Repeated(PureEpsilon(e0), k))
    for epsilon in (0.5, 1.0, 2.0):
        exact = float(np.sum(mass * np.maximum(1 - np.exp(epsilon - losses), 0)))
        assert exact * (1 - 1e-9) <= promise.delta(epsilon) <= exact * 1.01


def test_our_counts_where_dp_accounting_drops_them() -> None:
    # eight Gaussians of multiplier 5 under REPLACE are one of multiplier 5 / sqrt(8)
    eight = Guarantee(Repeated(Gaussian(5.0, Relation.REPLACE), 8)).epsilon(1e-5)
    one = Guarantee(Gaussian(5.0 / math.sqrt(8), Relation.REPLACE)).epsilon(1e-5)
    assert eight == pytest.approx(one, rel=1e-9)


def test_statement_and_certificate() -> None:
    promise = Guarantee(Gaussian(3.730632), 1e-5, ("rows were clipped to norm 1",))
    text = promise.statement()
    for words in ("epsilon = 1.0000", "1e-05", "adding or removing", "2.719", "rows were clipped"):
        assert words in text, text
    assert Guarantee.from_json(promise.to_json()) == promise
    assert "exp" not in text
    assert str(promise) == text
    pure = Guarantee(PureEpsilon(0.5)).statement()
    assert "delta = 0," in pure
    assert "except" not in pure
    assert "no guarantee at delta = 0" in Guarantee(Gaussian(1.0)).statement(0.0)


def test_printed_epsilon_is_never_too_small() -> None:
    for multiplier in np.linspace(1, 9, 40):
        promise = Guarantee(Gaussian(float(multiplier)), 1e-5)
        printed = float(promise.statement().split("epsilon = ")[1].split()[0])
        assert printed >= promise.epsilon(1e-5) - 1e-9


def test_curve_is_decreasing() -> None:
    curve = Guarantee(Repeated(SampledGaussian(2.0, 0.1), 50)).curve()
    assert np.all(np.diff(curve.epsilon) < 0)
    assert curve.delta.shape == curve.epsilon.shape


def test_conversion_to_replacement() -> None:
    for z in (0.7, 3.0, 20.0):
        converted = replace_from_add_remove(Guarantee(Gaussian(z)), 1e-5)
        twice = Guarantee(Gaussian(z / 2, Relation.REPLACE)).epsilon(1e-5)
        assert converted.epsilon == pytest.approx(twice, rel=1e-9)
        assert converted.relation is Relation.REPLACE
    assert replace_from_add_remove(Guarantee(PureEpsilon(0.4)), 0.0).epsilon == 0.8
    sampled = Guarantee(Repeated(SampledGaussian(2.0, 0.1), 50))
    budget = replace_from_add_remove(sampled, 1e-5)
    half = budget.epsilon / 2
    assert sampled.delta(half) * (1 + math.exp(half)) <= 1e-5 * (1 + 1e-6)
    with pytest.raises(ValueError, match="already under"):
        replace_from_add_remove(Guarantee(Gaussian(1.0, Relation.REPLACE)), 1e-5)


def test_accountant_refuses_before_overspending() -> None:
    accountant = Accountant(Budget(1.0, 1e-5), GaussianSum())
    assert accountant.spent() == 0.0
    assert accountant.guarantee() is None
    accountant.charge(Gaussian(6.0))
    with pytest.raises(BudgetExceeded, match="Nothing was released"):
        accountant.charge(Gaussian(4.0))
    assert len(accountant.events) == 1
    assert accountant.charge(Gaussian(6.0)) <= 1.0
    with pytest.raises(ValueError, match="under the relation replace, but"):
        accountant.charge(Gaussian(60.0, Relation.REPLACE))
    with pytest.raises(TypeError, match="Budget"):
        Accountant(1.0)  # type: ignore[arg-type]


def test_sum_of_epsilons_counts_deltas_too() -> None:
    accountant = Accountant(Budget(1.0, 1e-5), SumOfEpsilons())
    half = Gaussian(calibrated_multiplier(0.5, 5e-6))
    assert accountant.charge(half, 5e-6) == pytest.approx(0.5)
    with pytest.raises(BudgetExceeded):
        accountant.charge(half, 6e-6)  # deltas would exceed
    assert accountant.charge(half, 5e-6) == pytest.approx(1.0)
    with pytest.raises(BudgetExceeded):
        accountant.charge(PureEpsilon(0.01))


def test_filters_refuse_the_adaptive_choice_that_composing_would_accept() -> None:
    # After a first release, pick a Gaussian where the loss was low and a pure event where it was
    # high: each pair composes within (3, 6.416e-8), the adaptive strategy costs delta 1.216e-7.
    budget = Budget(3.0, 6.416e-8)
    first = Gaussian(1 / 0.3)
    for second in (Gaussian(2.0), PureEpsilon(1.54618)):
        assert Guarantee(Composed((first, second))).delta(3.0) <= budget.delta
    for rule in (GaussianSum(), SumOfEpsilons(), RenyiSum(12.0)):
        accepted = []
        for second in (Gaussian(2.0), PureEpsilon(1.54618)):
            accountant = Accountant(budget, rule)
            try:
                accountant.charge(first, budget.delta / 2)
                accountant.charge(second, budget.delta / 2)
                accepted.append(second)
            except BudgetExceeded:
                pass
        assert len(accepted) < 2, rule


def calibrated_multiplier(epsilon: float, delta: float) -> float:
    event = calibrate(Gaussian, Budget(epsilon, delta))
    assert isinstance(event, Gaussian)
    return event.noise_multiplier


def test_float_convolution_is_charged() -> None:
    # the composed part must not look cheaper than its Gaussian part alone
    parts = Repeated(Gaussian(100.0), 10_000)
    alone = Guarantee(parts)
    both = Guarantee(Composed((parts, PureEpsilon(1e-4))))
    for delta in (1e-12, 1e-10, 1e-6):
        assert both.epsilon(delta) >= alone.epsilon(delta)


def test_renyi_of_tiny_choices_keeps_its_digits() -> None:
    for eta in (1e-9, 1e-6, 1e-4, 1e-2, 1.0, 800.0):
        for event in (ExponentialMechanism(eta), PureEpsilon(eta)):
            r = event.renyi(np.array([1.001, 2.0, 30.0]))
            assert np.all(r > 0)
            assert np.all(np.isfinite(r))
    # the central limit: 1e11 choices of 1e-6 have variance eta^2/4 each
    many = RenyiRoute(((ExponentialMechanism(1e-6), 10**11),)).epsilon(1e-5)
    assert many > 0.5


def test_weak_ridges_do_not_overflow() -> None:
    promise = Guarantee(LogisticObjective(1.0, 1e-4, 4.0))
    assert 1.0 < promise.epsilon(1e-5) < 20.0
    assert Guarantee(Repeated(LogisticObjective(1.0, 1e-4, 4.0), 2)).epsilon(1e-5) > 1.0
    assert replace_from_add_remove(Guarantee(Gaussian(1e4)), 1e-2).epsilon < 1e-300


def test_a_large_factor_is_not_understated() -> None:
    words = Guarantee(PureEpsilon(800.0)).statement()
    assert "at most a factor of exp(800.0000)" in words
    assert "at most a factor of 2.719" in Guarantee(PureEpsilon(1.0)).statement()


def test_notes_are_sentences_of_the_statement_and_of_the_certificate() -> None:
    promise = Guarantee(PureEpsilon(1.0), notes=("The promise is local.",))
    assert ". The promise is local. In plain words" in promise.statement()
    assert Guarantee.from_json(promise.to_json()) == promise
    old = json.loads(promise.to_json())
    del old["notes"]
    assert Guarantee.from_json(json.dumps(old)).notes == ()
