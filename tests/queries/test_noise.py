"""Parts of a budget cost no more together than the budget."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.privacy import Budget, Composed, Event, Gaussian, Guarantee, PureEpsilon, Relation
from tacit.privacy.accounting.calibration import gaussian_multiplier
from tacit.queries import Facts, GaussianNoise, SphereNoise, split_budget
from tacit.queries import noise as module
from tacit.queries.noise import gaussian_rest, least_rest, split_epsilon, split_gaussian
from tacit.records import Bounds

SHARES = st.lists(st.floats(1e-6, 1.0), min_size=1, max_size=5)
BUDGETS = st.tuples(st.floats(0.01, 20.0), st.sampled_from([1e-9, 1e-6, 1e-3]))
HARD = [[0.1] * 10, [1 / 3] * 3, [1 / 7] * 7, [0.7, 0.2, 0.1], [1.0, 1e-30], [0.9, 0.05, 0.05]]


def with_rest(raw: list[float]) -> dict[str, float | None]:
    """Shares of which the last is the rest."""
    size = sum(raw) + 0.001
    return {**{f"part {i}": share / size for i, share in enumerate(raw)}, "rest": None}


def all_given(raw: list[float]) -> dict[str, float | None]:
    """Shares that add up to 1 but for roundings."""
    size = sum(raw)
    return {f"part {i}": share / size for i, share in enumerate(raw)}


def gaussian_share(budget: Budget, shares: dict[str, float | None]) -> Fraction:
    """Return what part of mu^2 the parts have in all, in exact arithmetic."""
    parts = split_gaussian(budget, shares)
    assert list(parts) == list(shares)
    whole = Fraction(gaussian_multiplier(budget))
    return sum(((whole / Fraction(one.multiplier)) ** 2 for one in parts.values()), Fraction(0))


def pure_share(epsilon: float, shares: dict[str, float | None]) -> Fraction:
    """Return the same of epsilon."""
    parts = split_epsilon(epsilon, shares)
    assert list(parts) == list(shares)
    return sum(map(Fraction, parts.values()), Fraction(0)) / Fraction(epsilon)


@pytest.mark.parametrize("named", [with_rest, all_given])
@given(raw=SHARES, told=BUDGETS)
def test_parts_use_the_budget_and_no_more(
    named: Any, raw: list[float], told: tuple[float, float]
) -> None:
    shares = named(raw)
    for spent in (gaussian_share(Budget(*told), shares), pure_share(told[0], shares)):
        assert spent <= 1
        assert float(spent) > 1 - 1e-14


@pytest.mark.parametrize("raw", HARD, ids=str)
@pytest.mark.parametrize("epsilon", [0.7, 1.0, 3.0])
def test_shares_whose_doubles_are_more_than_the_whole(raw: list[float], epsilon: float) -> None:
    shares: dict[str, float | None] = {f"part {i}": share for i, share in enumerate(raw)}
    assert gaussian_share(Budget(epsilon, 1e-6), shares) <= 1
    assert pure_share(epsilon, shares) <= 1


@given(SHARES, st.floats(0.001, 1.0))
def test_a_part_has_its_share(raw: list[float], last: float) -> None:
    shares = all_given([*raw, last])
    z = gaussian_multiplier(Budget(1.0, 1e-6))
    for name, one in split_gaussian(Budget(1.0, 1e-6), shares).items():
        assert (z / one.multiplier) ** 2 == pytest.approx(shares[name], rel=1e-14, abs=0.0)
    for name, epsilon in split_epsilon(3.0, shares).items():
        assert epsilon / 3.0 == pytest.approx(shares[name], rel=1e-14, abs=0.0)


def nearest(value: Fraction) -> float:
    return math.sqrt(value)


def down(value: Fraction) -> float:
    return math.nextafter(math.sqrt(value), 0.0)


@pytest.mark.parametrize("rounded", [nearest, down])
def test_multipliers_that_are_not_rounded_up_are_caught(
    rounded: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A test of the tests above: some shares cost more than the whole then."""
    monkeypatch.setattr(module, "_root_above", rounded)
    budget = Budget(1.0, 1e-6)
    assert any(gaussian_share(budget, all_given(raw)) > 1 for raw in HARD)
    assert any(gaussian_share(budget, with_rest(raw)) > 1 for raw in HARD)


@pytest.mark.parametrize("rounded", [float, lambda value: math.nextafter(float(value), math.inf)])
def test_epsilons_that_are_not_rounded_down_are_caught(
    rounded: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_below", rounded)
    assert any(pure_share(e, all_given(raw)) > 1 for raw in HARD for e in (0.7, 1.0, 3.0))
    assert any(pure_share(e, with_rest(raw)) > 1 for raw in HARD for e in (0.7, 1.0, 3.0))


def test_shares_that_are_not_lowered_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten doubles of 0.1 are more than 1."""

    def as_they_are(shares: dict[str, float]) -> dict[str, Fraction]:
        return {name: Fraction(share) for name, share in shares.items()}

    monkeypatch.setattr(module, "_fractions", as_they_are)
    assert pure_share(1.0, {f"part {i}": 0.1 for i in range(10)}) > 1


@given(st.floats(1e-3, 1e6))
def test_a_root_is_the_least_double_above(value: float) -> None:
    root = module._root_above(Fraction(value))
    assert Fraction(math.nextafter(root, 0.0)) ** 2 < Fraction(value) <= Fraction(root) ** 2
    assert module._root_above(Fraction(value) ** 2) == value


@given(st.floats(0.01, 100.0), st.lists(st.floats(1.5, 1e4), max_size=4), st.integers(1, 5000))
def test_what_others_leave(whole: float, factors: list[float], times: int) -> None:
    answered = [
        GaussianNoise(whole * factor * math.sqrt(max(len(factors), 1))) for factor in factors
    ]
    rest = gaussian_rest(GaussianNoise(whole), answered, times=times)
    spent = sum((1 / Fraction(one.multiplier) ** 2 for one in answered), Fraction(0))
    spent += times / Fraction(rest.multiplier) ** 2
    assert spent <= 1 / Fraction(whole) ** 2
    assert float(spent * Fraction(whole) ** 2) > 1 - 1e-14


def test_all_is_left_for_one() -> None:
    assert gaussian_rest(GaussianNoise(3.0)) == GaussianNoise(3.0)


def test_nothing_is_left() -> None:
    with pytest.raises(ValueError, match="nothing is left"):
        gaussian_rest(GaussianNoise(2.0), [GaussianNoise(2.0)])


@pytest.mark.parametrize("budget", [Budget(1.0, 1e-6), Budget(1.0)], ids=str)
def test_the_rest_of_another_kind_is_calibrated_beside_the_parts(budget: Budget) -> None:
    parts = [noise.event(FACTS) for noise in split_budget(budget, {"a": 0.01, "b": 0.05}).values()]

    def family(noise: float) -> Event:
        return PureEpsilon(1 / noise)

    noise = least_rest(family, budget, parts, guess=1.0)
    assert 0.999 < Guarantee(Composed((family(noise), *parts))).epsilon(budget.delta) <= 1.0
    # without the parts there would be less of it
    assert least_rest(family, budget, [], guess=1.0) < noise * 0.99


FACTS = Facts(Bounds(), 1, Relation.ADD_REMOVE)


def test_one_part_is_the_whole() -> None:
    budget = Budget(0.7, 1e-6, Relation.REPLACE)
    (only,) = split_budget(budget, {"sum": None}).values()
    assert only == GaussianNoise(gaussian_multiplier(budget))
    assert split_budget(Budget(0.7), {"a": 0.0, "sum": None}) == {"sum": SphereNoise(0.7)}
    assert split_budget(Budget(0.7), {"a": 0.0, "sum": 1.0}) == {"sum": SphereNoise(0.7)}


@pytest.mark.parametrize("epsilon", [0.1, 0.7, 2.0])
def test_parts_whose_sum_is_exact_use_all_of_epsilon(epsilon: float) -> None:
    parts = split_epsilon(epsilon, {"a": 0.25, "b": 0.25, "c": None})
    assert sum(map(Fraction, parts.values())) == Fraction(epsilon)


def test_a_whole_costs_the_budget() -> None:
    budget = Budget(2.0, 1e-6)
    parts = split_budget(budget, {"a": 0.25, "b": 0.25, "c": None})
    events = [noise.event(FACTS) for noise in parts.values()]
    assert all(isinstance(event, Gaussian) for event in events)
    assert 1.999 < Guarantee(Composed(tuple(events))).epsilon(1e-6) <= 2.0


@pytest.mark.parametrize(
    "shares",
    [
        {"a": 0.7, "b": 0.5},
        {"a": 0.5, "b": 0.5 + 1e-8},
        {"a": 1.0, "b": None},
        {"a": 0.7, "b": 0.2, "c": 0.1, "d": None},  # their sum is 1 but for a rounding
        {"a": -0.1, "b": None},
        {"a": None, "b": None},
    ],
)
@pytest.mark.parametrize("budget", [Budget(1.0), Budget(1.0, 1e-6)], ids=str)
def test_shares_that_are_none(shares: dict[str, Any], budget: Budget) -> None:
    with pytest.raises(ValueError, match="shares"):
        split_budget(budget, shares)


@pytest.mark.parametrize("budget", [Budget(math.inf), Budget(math.inf, 1e-6)], ids=str)
def test_an_infinite_budget_has_no_noise(budget: Budget) -> None:
    with pytest.raises(ValueError, match="infinite"):
        split_budget(budget, {"a": None})
