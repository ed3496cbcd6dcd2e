from __future__ import annotations

import math

import numpy as np
import pytest

from tacit.privacy import (
    Accountant,
    Budget,
    BudgetExceeded,
    Composed,
    Gaussian,
    Guarantee,
    LogisticObjective,
    PureEpsilon,
    Relation,
    Repeated,
    SampledGaussian,
    ZeroConcentrated,
    replace_from_add_remove,
)


@pytest.mark.parametrize(
    ("event", "route"),
    [
        (Repeated(Gaussian(5.0), 8), "exact Gaussian composition"),
        (Composed((Gaussian(5.0), LogisticObjective(1.0, 100.0, 4.0))), "exact Gaussian"),
        (LogisticObjective(1.0, 1.0, 4.0), "closed form"),
        (Repeated(SampledGaussian(1.0, 0.1), 9), "privacy-loss distribution"),
        (Composed((Gaussian(5.0), PureEpsilon(0.1))), "privacy-loss distribution"),
        (Composed((PureEpsilon(0.1), ZeroConcentrated(0.1))), "Renyi"),
        (Repeated(PureEpsilon(0.5), 2), "pure composition"),
    ],
)
def test_route(event, route: str) -> None:  # type: ignore[no-untyped-def]
    delta = 1e-20 if route == "pure composition" else 1e-6
    assert Guarantee(event).route(delta).startswith(route)


def test_loss_distribution_agrees_with_the_exact_gaussian() -> None:
    from tacit.privacy.routes import LossDistributionRoute, good_interval

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
    accountant = Accountant(Budget(1.0, 1e-5))
    assert accountant.spent() is None
    accountant.charge(Gaussian(6.0))
    with pytest.raises(BudgetExceeded, match="Nothing was read"):
        accountant.charge(Gaussian(4.0))
    assert len(accountant.events) == 1
    accountant.charge(Gaussian(6.0))
    spent = accountant.spent()
    assert spent is not None
    assert spent.epsilon(1e-5) <= 1.0
    with pytest.raises(ValueError, match="one relation"):
        accountant.charge(Gaussian(60.0, Relation.REPLACE))
    with pytest.raises(TypeError, match="Budget"):
        Accountant(1.0)  # type: ignore[arg-type]
