"""Parts of a budget cost no more together than the budget."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.privacy import Budget, Composed, Gaussian, Guarantee, Relation
from tacit.privacy.calibration import gaussian_multiplier
from tacit.queries import Facts, GaussianNoise, SphereNoise, split_budget
from tacit.records import Bounds

SHARES = st.lists(st.floats(0.001, 1.0), min_size=1, max_size=4)


@given(SHARES, st.floats(0.01, 20.0))
def test_pure_parts_add_up(raw: list[float], epsilon: float) -> None:
    shares = named(raw)
    parts = split_budget(Budget(epsilon), shares)
    assert list(parts) == list(shares)
    total = sum(Fraction(one.epsilon) for one in parts.values() if isinstance(one, SphereNoise))
    assert total <= Fraction(epsilon)
    assert float(total) == pytest.approx(epsilon, rel=1e-12)


@given(SHARES)
def test_gaussian_parts_add_up(raw: list[float]) -> None:
    budget = Budget(1.0, 1e-6)
    parts = split_budget(budget, named(raw)).values()
    spent = sum(
        1 / Fraction(one.multiplier) ** 2 for one in parts if isinstance(one, GaussianNoise)
    )
    allowed = 1 / Fraction(gaussian_multiplier(budget)) ** 2
    assert spent <= allowed
    assert float(spent / allowed) == pytest.approx(1.0, rel=1e-12)


def test_multipliers_are_rounded_up_by_more_than_they_are_rounded() -> None:
    # A root, a quotient and a product, each by 2^-53, and half of that for what is left of 1.
    z = gaussian_multiplier(Budget(1.0, 1e-6))
    found = split_budget(Budget(1.0, 1e-6), {"a": 0.25, "b": None})
    assert found["a"] == GaussianNoise(2 * z * (1 + 2.0**-50))
    assert found["b"] == GaussianNoise(z / math.sqrt(0.75) * (1 + 2.0**-50))


def named(raw: list[float]) -> dict[str, float | None]:
    """Shares of which the last is the rest."""
    size = sum(raw) + 0.001
    return {**{f"part {i}": share / size for i, share in enumerate(raw)}, "rest": None}


def test_one_part_is_the_whole() -> None:
    budget = Budget(0.7, 1e-6, Relation.REPLACE)
    (only,) = split_budget(budget, {"sum": None}).values()
    assert only == GaussianNoise(gaussian_multiplier(budget))
    assert split_budget(Budget(0.7), {"a": 0.0, "sum": None}) == {"sum": SphereNoise(0.7)}


def test_a_whole_costs_the_budget() -> None:
    budget = Budget(2.0, 1e-6)
    parts = split_budget(budget, {"a": 0.25, "b": 0.25, "c": None})
    events = [noise.event(Facts(Bounds(), 1, budget.relation)) for noise in parts.values()]
    assert all(isinstance(event, Gaussian) for event in events)
    assert 1.999 < Guarantee(Composed(tuple(events))).epsilon(1e-6) <= 2.0


@pytest.mark.parametrize(
    "shares",
    [{"a": 0.7, "b": 0.5}, {"a": 1.0, "b": None}, {"a": -0.1, "b": None}, {"a": None, "b": None}],
)
def test_shares_that_are_none(shares: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="shares"):
        split_budget(Budget(1.0), shares)


def test_an_infinite_budget_has_no_noise() -> None:
    with pytest.raises(ValueError, match="infinite"):
        split_budget(Budget(math.inf), {"a": None})
