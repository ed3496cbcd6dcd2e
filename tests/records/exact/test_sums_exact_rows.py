"""No record is longer on the lattice than its bounds say, in real numbers."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from tacit.erm import Objective
from tacit.erm.losses import HingeLoss, SoftmaxLoss, SquaredDistanceLoss
from tacit.privacy import Relation
from tacit.queries import Facts, Gradient
from tacit.records import Bounds, MemoryRecords
from tacit.records.exact.lattice import RowLattice, constant_steps, exact_totals, row_step

# None is a power of two, nor a whole number of steps of one.
NUMBERS = (0.3, 0.7, 1.1, 1 / 3, 0.999, 5.3e-7)


def squared(whole: Any, unit: float) -> Fraction:
    return sum((Fraction(int(k)) ** 2 for k in np.ravel(whole)), Fraction(0)) * Fraction(unit) ** 2


@pytest.mark.parametrize("limit", NUMBERS)
@pytest.mark.parametrize("n_outputs", [2, 3, 10])
def test_no_row_of_slopes_gets_longer_by_rounding(limit: float, n_outputs: int) -> None:
    rows = RowLattice(Bounds(), limit)
    numbers = 10 * limit * np.random.default_rng(0).standard_normal((300, n_outputs))
    whole = rows.whole(numbers)
    lengths = [squared(row, rows.step) for row in whole]
    assert max(lengths) <= Fraction(limit) ** 2
    # hardly shorter: the direction is kept to a step a coordinate
    assert min(lengths) > (Fraction(limit) * (1 - Fraction(n_outputs, 2**17))) ** 2


@pytest.mark.parametrize("limit", NUMBERS)
def test_no_slope_gets_longer_by_rounding(limit: float) -> None:
    rows = RowLattice(Bounds(), limit)
    whole = rows.whole(np.array([limit, -limit, 3 * limit, -np.inf, 0.4 * limit]))
    assert max(squared(k, rows.step) for k in whole) <= Fraction(limit) ** 2
    assert whole[0] == -whole[1] == whole[2] == -whole[3] == rows.most
    assert Fraction(rows.most + 1) * Fraction(rows.step) > Fraction(limit)
    # to the nearest step where it is not at the limit
    assert abs(Fraction(float(whole[4] * rows.step)) - Fraction(0.4 * limit)) <= rows.step / 2


@pytest.mark.parametrize("intercept", NUMBERS)
def test_the_intercept_gets_no_longer_by_rounding(intercept: float) -> None:
    bounds = Bounds(intercept=intercept)
    used = constant_steps(bounds) * Fraction(row_step(intercept))
    assert Fraction(intercept) * (1 - Fraction(1, 2**14)) < used <= Fraction(intercept)


@pytest.mark.parametrize("intercept", [0.3, 1.1])
@pytest.mark.parametrize("loss", [HingeLoss(), SoftmaxLoss(3)], ids=str)
def test_a_record_of_full_length_is_within_the_clip(loss: Any, intercept: float) -> None:
    """Beside hardly any row the intercept is nearly all of a record's length."""
    bounds = Bounds(1e-6, n_classes=2 if loss.n_outputs == 1 else 3, intercept=intercept)
    objective = Objective(loss, bounds)
    shape = objective.shape(1)
    w = np.zeros(shape)
    w[-1] = 90.0 if len(shape) == 1 else (90.0, 0.0, 0.0)  # sure of a class, and wrong
    record = MemoryRecords(np.array([[1.0]]), np.array([-1.0 if len(shape) == 1 else 2.0]), bounds)
    for clip in (0.2, 0.7 * bounds.total_norm):
        facts = Facts(bounds, 1, Relation.ADD_REMOVE)
        total = Gradient(objective, clip, 100.0, w).total(record, facts)
        length = squared(total / 2.0**-60, 2.0**-60)  # exact: whole steps
        assert Fraction(0.999 * clip) ** 2 < length <= Fraction(clip) ** 2


def test_slopes_times_rows_are_within_the_clip_in_real_numbers() -> None:
    """The limit C / R is rounded down by more than its own roundings."""
    rng = np.random.default_rng(0)
    for row_norm, intercept, clip in 10.0 ** rng.uniform(-3, 3, (300, 3)):
        bounds = Bounds(row_norm, intercept=intercept)
        exact = Gradient(Objective(HingeLoss(), bounds), clip, 9.0, np.zeros(2))
        squares = Fraction(row_norm) ** 2 + Fraction(intercept) ** 2
        assert Fraction(exact._rows.limit) ** 2 * squares <= Fraction(clip) ** 2


def test_a_long_vector_of_many_coordinates_is_within_the_clip() -> None:
    """Each coordinate is rounded towards zero: to the nearest, all could be rounded up."""
    objective = Objective(SquaredDistanceLoss(), Bounds(1.0))
    for d in range(4000, 4020):  # for some of them just above half a step
        facts = Facts(Bounds(1.0), d, Relation.ADD_REMOVE)
        record = MemoryRecords(np.ones((1, d)), None, Bounds(1.0))
        total = Gradient(objective, 1.0, 100.0, np.zeros(d)).total(record, facts)
        length = d * Fraction(float(np.max(np.abs(total)))) ** 2
        assert 1 - 1e-6 < length <= 1


@pytest.mark.parametrize("greatest", NUMBERS)
def test_no_total_gets_larger_by_rounding(greatest: float) -> None:
    records = MemoryRecords(np.zeros((3, 1)), np.full(3, 9.0), Bounds())
    total = exact_totals(records, lambda block: np.asarray(block.labels), greatest)
    assert 3 * Fraction(greatest) * (1 - Fraction(1, 2**18)) < Fraction(float(total))
    assert Fraction(float(total)) <= 3 * Fraction(greatest)
