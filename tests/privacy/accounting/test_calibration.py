from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tacit.privacy import (
    Budget,
    BudgetUnreachable,
    Event,
    Gaussian,
    Guarantee,
    LogisticObjective,
    NonPrivate,
    PureEpsilon,
    Relation,
    Repeated,
    SampledGaussian,
    ZeroConcentrated,
    calibrate,
)
from tacit.privacy.accounting.calibration import least_noise
from tests.privacy.families import FAMILIES, HEAVY, PURE

# how many epsilons and deltas: 20 budgets a family, and 220
GRIDS = [(5, 4), pytest.param((20, 11), marks=pytest.mark.slow)]
# A Jacobian of this size must stay far below the least epsilon of the grid.
WEAK = ("logistic_weak_ridge",)


def spent_share(family, budget: Budget) -> float:  # type: ignore[no-untyped-def]
    event = calibrate(family, budget)
    return Guarantee(event).epsilon(budget.delta) / budget.epsilon


def relation_of(family) -> Relation:  # type: ignore[no-untyped-def]
    event: Event = family(1.0)
    return event.relation


def _of_families(left_out: tuple[str, ...] = ()) -> list[Any]:
    return [
        pytest.param(name, marks=[pytest.mark.slow] if name in HEAVY else [])
        for name in FAMILIES
        if name not in left_out
    ]


@pytest.mark.parametrize("grid", GRIDS, ids=str)
@pytest.mark.parametrize("name", _of_families(WEAK))
def test_the_budget_is_spent_and_not_exceeded(name: str, grid: tuple[int, int]) -> None:
    family = FAMILIES[name]
    relation = relation_of(family)
    if name in HEAVY:
        grid = (3, 2)
    for epsilon in np.geomspace(0.01, 50, grid[0]):
        for delta in np.geomspace(1e-12, 1e-2, grid[1]):
            share = spent_share(family, Budget(float(epsilon), float(delta), relation))
            assert 0.999 <= share <= 1.0, (epsilon, delta, share)


@pytest.mark.parametrize("name", [name for name in PURE if name not in HEAVY])
def test_pure_budgets(name: str) -> None:
    family = FAMILIES[name]
    for epsilon in np.geomspace(0.01, 50, 200):
        share = spent_share(family, Budget(float(epsilon), 0.0, relation_of(family)))
        assert 0.999 <= share <= 1.0


def test_round_trip_to_nine_digits() -> None:
    for epsilon in (1e-3, 0.3, 4.0, 50.0):
        for delta in (1e-12, 1e-7, 1e-2):
            event = calibrate(Gaussian, Budget(epsilon, delta))
            assert Guarantee(event).epsilon(delta) == pytest.approx(epsilon, rel=1e-9)
            assert Guarantee(event).epsilon(delta) <= epsilon * (1 + 1e-12)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("epsilon", "delta"),
    [(2.0, 1e-6), *(pytest.param(*b, marks=pytest.mark.slow) for b in ((0.1, 1e-9), (20.0, 1e-5)))],
)
def test_many_steps_of_noisy_sgd(epsilon: float, delta: float) -> None:
    share = spent_share(lambda z: Repeated(SampledGaussian(z, 0.005), 2000), Budget(epsilon, delta))
    assert 0.999 <= share <= 1.0


def test_replacement_needs_twice_the_noise() -> None:
    # where the sensitivity doubles; logistic regression at a stiff ridge is such a case
    for make in (LogisticObjective,):
        once: Any = calibrate(lambda s, m=make: m(1.0, 1e6, s), Budget(1, 1e-5))
        twice: Any = calibrate(
            lambda s, m=make: m(1.0, 1e6, s, Relation.REPLACE), Budget(1, 1e-5, Relation.REPLACE)
        )
        assert twice.noise_std / once.noise_std == pytest.approx(2.0, rel=1e-4)


def test_unreachable_budgets_say_so() -> None:
    with pytest.raises(BudgetUnreachable, match="pure"):
        calibrate(Gaussian, Budget(1.0, 0.0))
    with pytest.raises(BudgetUnreachable, match="regularization"):
        calibrate(lambda s: LogisticObjective(1.0, 0.01, s), Budget(0.1, 1e-6))
    with pytest.raises(BudgetUnreachable):
        calibrate(lambda z: ZeroConcentrated(1 / z), Budget(1.0, 0.0))


def test_infinite_budget_and_mixed_relations() -> None:
    assert isinstance(calibrate(Gaussian, Budget(math.inf, 1e-5)), NonPrivate)
    with pytest.raises(ValueError, match="one relation"):
        calibrate(PureEpsilon, Budget(1.0, 0.0, Relation.REPLACE))
    with pytest.raises(TypeError, match="Budget"):
        calibrate(PureEpsilon, 1.0)  # type: ignore[arg-type]


def test_an_infinite_budget_asks_for_no_noise() -> None:
    assert least_noise(Gaussian, Budget(math.inf)) == 0.0
