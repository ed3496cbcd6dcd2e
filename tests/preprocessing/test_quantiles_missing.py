"""Private fills: the plain imputer without noise, and marks of what was missing."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.impute import SimpleImputer

from tacit.preprocessing import (
    PrivateMissing,
    PrivatePCA,
    PrivateQuantileBounds,
    PrivateStandardScaler,
)
from tacit.table_facts import EncodedTable, TableFacts

NAMES = ("age", "size")


def with_gaps(n: int = 400) -> Any:
    rng = np.random.default_rng(0)
    X = rng.normal([40.0, 1.7], [10.0, 0.1], (n, 2))
    X[rng.random((n, 2)) < 0.2] = np.nan
    return X


BOUNDS = [(0.0, 120.0), (0.5, 2.5)]


def test_without_noise_it_is_the_imputer() -> None:
    X = with_gaps()
    step = PrivateMissing(math.inf, bounds=BOUNDS).fit(X)
    plain = SimpleImputer(strategy="median", add_indicator=True).fit(X)
    np.testing.assert_allclose(step.fill_, plain.statistics_)
    np.testing.assert_allclose(step.transform(X), plain.transform(X))


def test_the_median_is_of_what_is_there() -> None:
    X = np.where(np.arange(3000) % 3 == 0, np.linspace(50, 60, 3000), np.nan)[:, None]
    fill = PrivateMissing(2.0, bounds=(0, 100)).fit(X).fill_[0]
    assert 54 < fill < 56


def test_values_are_clipped_and_others_pass() -> None:
    X = pd.DataFrame({"age": [40.0, None, 500.0], "size": [1.7, math.nan, 9.0]})
    step = PrivateMissing(1.0, columns=["age"], bounds={"age": (0, 120)}).fit(X)
    out = step.transform(X)
    assert out[0].tolist() == [40.0, 1.7, 0.0]
    assert out[2].tolist() == [120.0, 9.0, 0.0]
    assert math.isnan(out[1, 1])
    assert out[1].tolist()[::2] == [step.fill_[0], 1.0]
    assert step.get_feature_names_out().tolist() == ["age", "size", "age is missing"]


def test_the_row_norm_follows_from_ranges_and_rules() -> None:
    ranges = ((-3.0, 1.0), (0.0, 2.0))
    one = PrivateMissing(columns=["age"])
    facts = one.facts_out(TableFacts(NAMES, 100.0, ranges=ranges))
    assert facts.names == ("age", "size", "age is missing")
    assert facts.ranges == ((-3.0, 1.0), (0.0, 2.0), (0.0, 1.0))
    assert facts.row_norm == pytest.approx(math.sqrt(9 + 1 + 4))
    assert one.facts_out(TableFacts(NAMES, 1.5, ranges=ranges)).row_norm == pytest.approx(
        math.sqrt(9 + 1 + 1.5**2)
    )
    # bounds that 0 is not in move a value away from it
    away = PrivateMissing(columns=["age"], bounds=(5.0, 6.0)).facts_out(TableFacts(NAMES, 1.5))
    assert away.row_norm == pytest.approx(math.sqrt(36 + 1 + 1.5**2))
    assert away.ranges is None


def test_bounds_that_came_with_the_table_are_kept() -> None:
    X = with_gaps()
    table = EncodedTable(TableFacts(NAMES, 121.0, ranges=tuple(BOUNDS)), lambda: (X, None))
    step = PrivateMissing(1.0).fit(table)
    assert step.bounds_.tolist() == [list(pair) for pair in BOUNDS]
    norms = np.linalg.norm(step.transform(X), axis=1)
    assert norms.max() <= step.facts_out().row_norm == step.facts_out(table.facts).row_norm


@pytest.mark.parametrize(
    "step", [PrivateQuantileBounds(1.0), PrivateStandardScaler(1.0), PrivatePCA(2)]
)
def test_other_steps_come_after(step: Any) -> None:
    X = with_gaps()
    table = EncodedTable(TableFacts(NAMES, 121.0, ranges=tuple(BOUNDS)), lambda: (X, None))
    filled = table.through(PrivateMissing(1.0).fit(table))
    fitted = step.fit(filled)
    after = filled.through(fitted)
    rows, _ = after.read()
    assert np.all(np.isfinite(rows))
    assert rows.shape[1] == len(after.facts.names)
    assert np.linalg.norm(rows, axis=1).max() <= after.facts.row_norm * (1 + 1e-12)
