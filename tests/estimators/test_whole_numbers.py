"""Quantiles of whole numbers are whole numbers."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from tacit.location import Median
from tacit.privacy import Accountant, Budget, Relation
from tacit.queries import Facts, Quantile
from tacit.records import Bounds, MemoryRecords

DAYS = np.minimum(np.random.default_rng(0).poisson(4.2, (5000, 1)) + 1, 14)


@pytest.mark.parametrize("epsilon", [0.2, 1.0, math.inf])
@pytest.mark.parametrize("quantile", [0.1, 0.25, 0.5, 0.75, 0.9])
def test_integers_have_the_quantile_of_the_table(quantile: float, epsilon: float) -> None:
    """A draw between two values gave 5.73 for a median of 5."""
    model = Median(epsilon, bounds=(0, 14), quantile=quantile, random_state=0)
    true = np.quantile(DAYS, quantile, method="inverted_cdf")
    assert model.fit(DAYS).location_[0] == true


def test_the_type_of_each_column_decides_and_is_told() -> None:
    table = pd.DataFrame({"days": DAYS[:, 0], "hours": 24.0 * DAYS[:, 0] + 0.37})
    model = Median(1.0, bounds=[(0, 14), (0, 336)], random_state=0).fit(table)
    assert model.location_[0] == 5.0
    assert not float(model.location_[1]).is_integer()
    assert "the types of the columns, integer or not" in str(model.privacy_.assumptions)


def test_one_record_does_not_change_what_the_guarantee_says() -> None:
    """One of 3.5 days makes floats of integers, and the answer no whole number."""
    table = pd.DataFrame({"days": DAYS[:, 0]})
    with_half = pd.concat([table, pd.DataFrame({"days": [3.5]})])
    said = [
        Median(1.0, bounds=(0, 14)).fit(each).privacy_.assumptions for each in (table, with_half)
    ]
    assert said[0] == said[1]
    # A declaration, or rows without a type, says nothing about the records.
    for model, rows in ((Median(whole=False), with_half), (Median(), DAYS.tolist())):
        fitted = model.set_params(bounds=(0, 14)).fit(rows)
        assert "the types of the columns" not in str(fitted.privacy_.assumptions)


@pytest.mark.parametrize(
    ("bounds", "whole"),
    [((0, 2.0**53), True), ((2.0**60, 2.0**60 + 4096), False), ((1e300, 2e300), False)],
)
def test_bounds_that_no_grid_fits_are_refused_before_the_charge(
    bounds: tuple[float, float], whole: bool
) -> None:
    purse = Accountant(Budget(9.0, 1e-6))
    with pytest.raises(ValueError, match=r"n_points|finite float"):
        Median(1.0, bounds=bounds, whole=whole, accountant=purse).fit(DAYS)
    assert purse.events == ()


def test_whole_is_declared_or_denied() -> None:
    found = Median(1.0, bounds=(0, 14), whole=True, random_state=0).fit(DAYS.astype(float))
    assert found.location_[0] == 5.0
    assert "types of the columns" not in str(found.privacy_.assumptions)
    between = Median(1.0, bounds=(0, 14), whole=False, random_state=0).fit(DAYS)
    assert not float(between.location_[0]).is_integer()


def test_bounds_without_two_whole_numbers_are_refused_before_the_charge() -> None:
    with pytest.raises(ValueError, match=r"no two whole numbers between 0\.2 and 1\.9"):
        Median(1.0, bounds=(0.2, 1.9), whole=True).fit(DAYS)


@pytest.mark.parametrize("level", [0.3, 0.5])
def test_the_utility_is_the_distance_to_the_ranks_of_a_number(level: float) -> None:
    query = Quantile(level, 0.0, 4.0, whole=True)
    values = np.array([0.0, 2.0, 2.0, 2.2, 9.0, math.nan])  # clipped, rounded, missing is 0
    facts = Facts(Bounds(), 1, Relation.ADD_REMOVE)
    found = query.total(MemoryRecords(values[:, None], None, Bounds()), facts)
    q = query.fraction.denominator
    ranks = [(0, 2), (2, 2), (2, 5), (5, 5), (5, 6), (6, 6), (6, 6)]  # of 0 to 6
    expected = [-q * max(0.0, level * 6 - high, low - level * 6) for low, high in ranks]
    assert np.allclose(found, expected, atol=1e-9 * q)
