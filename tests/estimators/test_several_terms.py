"""Wald tests, contrasts and joint intervals: those of statsmodels without noise; tables as text."""

from __future__ import annotations

import csv
import io
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import statsmodels.api

from tacit.linear_model import LinearRegression, LogisticRegression, Summary
from tacit.location import Mean
from tacit.pipeline import PrivatePipeline
from tacit.saving import load, save
from tacit.schema import Category, ClassTarget, Number, Schema, SchemaEncoder

RNG = np.random.default_rng(11)
ROWS = RNG.uniform(-1, 1, (4000, 3)) + 0.3
LABELS = RNG.random(4000) < 1 / (1 + np.exp(-(ROWS @ [1.0, -0.5, 0.0] + 0.3)))
NAMES = ["age", "dose", "ward=B"]


@pytest.fixture(scope="module")
def ours() -> Summary:
    model = LogisticRegression(math.inf, row_norm=10.0, inference=0.1)
    return model.fit(pd.DataFrame(ROWS, columns=NAMES), LABELS).summary()


@pytest.fixture(scope="module")
def theirs() -> Any:
    design = np.column_stack([ROWS, np.ones(4000)])
    return statsmodels.api.GLM(
        LABELS.astype(float), design, statsmodels.api.families.Binomial()
    ).fit()


def test_the_covariance_without_noise_is_that_of_statsmodels(ours: Summary, theirs: Any) -> None:
    np.testing.assert_allclose(ours.covariance, theirs.cov_params(), rtol=1e-3, atol=1e-7)


def test_a_wald_test_without_noise_is_that_of_statsmodels(ours: Summary, theirs: Any) -> None:
    found = ours.wald_test(["age", "ward"])
    wanted = theirs.wald_test(np.eye(4)[[0, 2]], use_f=False, scalar=True)
    assert found.statistic == pytest.approx(wanted.statistic, rel=1e-3)
    assert found.degrees_of_freedom == 2
    assert found.p == pytest.approx(wanted.pvalue, rel=0.05)
    assert ours.wald_test("ward").p == pytest.approx(ours.rows()[2]["p"])
    with pytest.raises(ValueError, match="'height' is not a term; choose from age"):
        ours.wald_test(["height"])


def test_a_contrast_without_noise_is_that_of_statsmodels(ours: Summary, theirs: Any) -> None:
    found = ours.contrast({"age": 1, "dose": -1})
    wanted = theirs.t_test([1, -1, 0, 0])
    assert found.names == ("+1 age -1 dose",)
    assert found.coefficients[0] == pytest.approx(float(wanted.effect[0]), rel=1e-3)
    assert found.standard_errors[0] == pytest.approx(float(wanted.sd[0, 0]), rel=1e-3)
    assert found.rows()[0]["odds_ratio"] == pytest.approx(math.exp(found.coefficients[0]))
    for bad in ({}, {"age": math.nan}, {"height": 1.0}):
        with pytest.raises(ValueError, match=r"empty|finite|not a term"):
            ours.contrast(bad)


def test_joint_intervals_hold_all_terms_together(ours: Summary) -> None:
    assert ours.covariance is not None
    rng = np.random.default_rng(0)
    moved = rng.multivariate_normal(ours.coefficients, ours.covariance, 4000)
    ends = np.array([[row["low"], row["high"]] for row in ours.joint_intervals()])
    together = np.all((moved >= ends[:, 0]) & (moved <= ends[:, 1]), axis=1).mean()
    assert 0.93 < together < 0.97
    alone = np.array([[row["low"], row["high"]] for row in ours.rows()])
    assert np.all(np.diff(ends) > np.diff(alone))
    (age,) = ours.joint_intervals("age")
    assert age["low"] == pytest.approx(ours.rows()[0]["low"])


def test_a_private_covariance_is_kept_in_a_file_and_old_files_load(tmp_path: Path) -> None:
    model = LinearRegression(2.0, row_norm=3.0, label_range=(-5, 5), inference=0.2)
    model.fit(ROWS, ROWS @ [1.0, 0.0, -1.0] + 1.0)
    assert np.linalg.eigvalsh(model.covariance_).min() > 0.0
    np.testing.assert_allclose(np.diagonal(model.covariance_), model.standard_errors_**2)
    save(model, tmp_path / "model.tacit")
    np.testing.assert_array_equal(load(tmp_path / "model.tacit").covariance_, model.covariance_)

    kept = model.covariance_
    for wrong, why in ((kept + np.triu(kept, 1), "symmetric"), (2 * kept, "diagonal")):
        model.covariance_ = wrong
        with pytest.raises(ValueError, match=why):
            save(model, tmp_path / "wrong.tacit")
    del model.covariance_  # as files of earlier versions have it
    save(model, tmp_path / "old.tacit")
    old = load(tmp_path / "old.tacit").summary()
    assert old == model.summary()
    with pytest.raises(ValueError, match="saved before"):
        old.wald_test(old.names[0])


def test_columns_of_a_location_have_no_covariance() -> None:
    found = Mean(1.0, 1e-6, row_norm=2.0, inference=0.1).fit(ROWS).summary()
    with pytest.raises(ValueError, match="location"):
        found.joint_intervals()


def test_a_pipeline_names_the_levels_of_a_category() -> None:
    ward = RNG.choice(["A", "B", "C"], 4000)
    frame = pd.DataFrame({"age": ROWS[:, 0], "ward": ward, "ill": np.where(LABELS, "yes", "no")})
    columns = (Number("age", -1, 2), Category("ward", ("A", "B", "C"), reference="A"))
    schema = Schema(columns, ClassTarget("ill", ("no", "yes")))
    steps = [("schema", SchemaEncoder(schema)), ("model", LogisticRegression(inference=0.1))]
    found = PrivatePipeline(steps, 8.0).fit(frame).summary()
    assert found.wald_test("ward").degrees_of_freedom == 2


def test_text_for_other_programs(tmp_path: Path) -> None:
    table = Summary("m", ("a_1 & b", "(intercept)"), (2.0, 1 / 3), (1.0, 0.1), "odds ratio")
    rows = list(csv.DictReader(io.StringIO(table.to_csv(tmp_path / "table.csv"))))
    assert [float(row["coefficient"]) for row in rows] == [2.0, 1 / 3]
    assert (tmp_path / "table.csv").read_text() == table.to_csv()
    latex = table.to_latex(tmp_path / "table.tex")
    assert r"a\_1 \& b & 2.0000 & 1.0000 & 2.00 & 0.046 & 0.0400 to 3.9600 & 7.389" in latex
    assert (tmp_path / "table.tex").read_text() == latex
