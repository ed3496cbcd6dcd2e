"""A summary names the columns that make intervals wide, and what would help."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tacit.linear_model import LinearRegression, LogisticRegression, Summary
from tacit.report import facts_of, render
from tacit.saving import load, save
from tacit.schema import Category, ClassTarget, Number, Schema
from tacit.table_model import TableModel

RNG = np.random.default_rng(5)
N = 20_000
ROWS = RNG.uniform(-0.5, 0.5, (N, 4))
LABELS = RNG.random(N) < 1 / (1 + np.exp(-ROWS @ [1.0, -1.0, 0.5, 0.0]))


def fitted(rows: Any, epsilon: float = 1.0) -> LogisticRegression:
    model = LogisticRegression(
        epsilon, row_norm=1.5, classes=[False, True], inference=0.2, random_state=0
    )
    return model.fit(rows, LABELS[: len(rows)])


def test_nobody_is_blamed_where_the_hessian_is_known() -> None:
    model = fitted(ROWS)
    assert not model.unidentified_.any()
    assert model.summary().advice == ()
    assert "What would help" not in str(model.summary())


def test_a_rare_level_is_blamed_wherever_the_summary_is_shown(tmp_path: Path) -> None:
    ward = np.where(RNG.random(N) < 0.002, "C", RNG.choice(["A", "B"], N))
    table = pd.DataFrame({"age": ROWS[:, 0], "ward": ward, "ill": np.where(LABELS, "yes", "no")})
    columns = Number("age", -0.5, 0.5), Category("ward", ("A", "B", "C"), reference="A")
    schema = Schema(columns, ClassTarget("ill", ("no", "yes")))
    estimator = LogisticRegression(1.0, inference=0.2, random_state=0)
    model = TableModel(schema, estimator).fit(table)
    found = model.summary()
    assert "to blame hardly vary, or repeat others: 'ward=C'." in str(found)
    assert "What would help: merge rare levels" in str(found)
    assert "What would help: merge rare levels" in render(facts_of(model))
    save(model, tmp_path / "model.tacit")
    assert load(tmp_path / "model.tacit").summary().advice == found.advice


def test_columns_that_repeat_each_other_are_both_blamed() -> None:
    rows = np.column_stack([ROWS, ROWS[:, 2] + 0.01 * RNG.standard_normal(N)])
    found = fitted(rows).summary()
    assert sum(found.unidentified) == pytest.approx(1.0)
    assert (
        "'feature 3', 'feature 5'" in found.advice[0]
        or "'feature 5', 'feature 3'" in (found.advice[0])
    )
    assert "merge" not in found.advice[1]


def test_too_few_records_are_blamed_as_such() -> None:
    (said,) = fitted(ROWS[:300], 0.3).summary().advice
    assert "too few records for this budget" in said


def test_moments_and_fits_without_noise_say_it_too() -> None:
    rows = np.column_stack([ROWS, np.zeros(N)])
    numbers = rows @ [1.0, -1.0, 0.5, 0.0, 0.0]
    model = LinearRegression(
        1.0,
        row_norm=1.5,
        label_range=(-2, 2),
        inference=0.2,
        mechanism="sufficient_statistics",
        random_state=0,
    )
    assert "'feature 5'" in model.fit(rows, numbers).summary().advice[0]
    exact = LinearRegression(np.inf, row_norm=1.5, label_range=(-2, 2), inference=0.2)
    assert exact.fit(ROWS, numbers).summary().advice == ()


def test_no_column_of_many_is_blamed_alone() -> None:
    shares = (0.1,) * 10 + (0.0,) * 2
    names = tuple(f"x{i}" for i in range(12))
    table = Summary("m", names, (0.0,) * 12, (1.0,) * 12, unidentified=shares)
    assert "no single column is to blame" in table.advice[0]
