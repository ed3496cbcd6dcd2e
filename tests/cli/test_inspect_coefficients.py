from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path

import numpy as np
import pytest

from tacit.cli.inspect import terms_of
from tacit.linear_model import LogisticRegression
from tacit.location import Mean
from tacit.saving import load, save
from tacit.schema import ClassTarget, Intervals, Number, Schema
from tacit.table_model import TableModel
from tests.cli.helpers import refused, run

AGE = np.random.default_rng(0).uniform(0, 100, 3000)
TOWN = ("Oslo, Norway", "Rome", 'the "rest"')


@pytest.fixture
def three(tmp_path: Path) -> Path:
    """A model of three classes, with a column that is called as intercepts are."""
    schema = Schema(
        (Number("intercept", 0, 100), Intervals("age", (30, 60))), ClassTarget("town", TOWN)
    )
    place = np.minimum(AGE // 34, 2).astype(int)
    table = {"intercept": AGE, "age": AGE, "town": np.array(TOWN)[place]}
    save(TableModel(schema, LogisticRegression(5.0, 1e-6)).fit(table), tmp_path / "three.tacit")
    return tmp_path / "three.tacit"


def read(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_csv_has_every_number_in_full(three: Path) -> None:
    result = run("inspect", three, "--coefficients", "--csv")
    assert (result.exit_code, result.stderr) == (0, "")
    rows, fitted = read(result.stdout), load(three)
    names = list(fitted.schema.feature_names)
    for label, coef, level in zip(
        fitted.classes_, fitted.estimator_.coef_, fitted.estimator_.intercept_, strict=True
    ):
        own = [row for row in rows if row["class"] == label]
        assert [row["name"] for row in own] == [*names, "intercept"]
        assert [row["kind"] for row in own] == ["feature"] * len(names) + ["intercept"]
        assert [float(row["value"]) for row in own] == [*coef.tolist(), level]
    assert len(rows) == 3 * (len(names) + 1)


def test_two_classes_have_one_row_a_feature(model: Path) -> None:
    rows, fitted = read(run("inspect", model, "--coefficients", "--csv").stdout), load(model)
    assert [row["name"] for row in rows] == ["age", "sex=f", "sex=m", "hours", "intercept"]
    values = [*fitted.estimator_.coef_.ravel(), *fitted.estimator_.intercept_]
    # The schema declares low, then high; coef_ is of low, the second of the sorted classes.
    assert [float(row["value"]) for row in rows] == [-value for value in values]
    assert {row["class"] for row in rows} == {"high"}


def test_a_pipe_gets_a_table_by_size(three: Path) -> None:
    header, *lines = run("inspect", three, "--coefficients").stdout.splitlines()
    assert header.split("\t")[:3] == ["name", "class", "value"]
    sizes = [abs(float(line.split("\t")[2])) for line in lines]
    assert sizes == sorted(sizes, reverse=True)
    assert sum(line.startswith("(intercept)\t") for line in lines) == 3
    assert sum(line.startswith("intercept\t") for line in lines) == 3


@pytest.mark.parametrize("columns", ["80", "45"])
def test_a_terminal_gets_a_table_with_whole_numbers(
    three: Path, monkeypatch: pytest.MonkeyPatch, columns: str
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", columns)
    result = run("inspect", three, "--coefficients")
    text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", result.stdout)
    assert "Released coefficients" in text
    coef = load(three).estimator_.coef_
    assert all(f"{value:.4g}" in text for value in coef.ravel())
    assert "…" not in text
    assert "positive coefficient speaks for its class" in " ".join(result.stderr.split())


def test_json(three: Path) -> None:
    record = json.loads(run("inspect", three, "--coefficients", "--json").stdout)
    coef = load(three).estimator_.coef_
    assert record["coefficients"][0]["value"] == coef[0, 0]
    assert record["coefficients"][0]["class"] == TOWN[0]


def test_a_location_has_no_intercept() -> None:
    model = Mean(1.0, 1e-6, row_norm=4.0, n_records=1000).fit(np.ones((1000, 2)))
    assert [(t.kind, t.value) for t in terms_of(model).rows] == [
        ("feature", value) for value in model.location_
    ]


def test_without_an_intercept(tmp_path: Path) -> None:
    schema = Schema((Number("age", 0, 100),), ClassTarget("old", (False, True)))
    model = TableModel(schema, LogisticRegression(1.0, 1e-6, fit_intercept=False))
    terms = terms_of(model.fit({"age": AGE, "old": AGE > 50})).rows
    assert [(term.output, term.kind) for term in terms] == [("True", "feature")]


def test_csv_is_for_coefficients(model: Path) -> None:
    assert "--coefficients" in refused("inspect", model, "--csv")
    assert "--json" in refused("inspect", model, "--coefficients", "--csv", "--json")
