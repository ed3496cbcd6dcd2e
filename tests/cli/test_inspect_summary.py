"""tacit inspect --summary: text, CSV that reads back, LaTeX, JSON, and tests of several terms."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from tacit.saving import load
from tests.cli.helpers import refused, run


@pytest.fixture
def with_errors(people: Path, schema: Path, tmp_path: Path) -> Path:
    out = tmp_path / "errors.tacit"
    result = run(
        "fit", people, "--schema", schema, "--epsilon", 8, "--inference", 0.2, "--out", out
    )
    assert result.exit_code == 0, result.output
    return out


def test_every_form_has_the_same_numbers(with_errors: Path) -> None:
    found = load(with_errors).summary()
    assert run("inspect", with_errors, "--summary").stdout.strip() == str(found)
    text = run("inspect", with_errors, "--summary", "--csv").stdout
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [row["term"] for row in rows] == list(found.names)
    assert [float(row["standard_error"]) for row in rows] == list(found.standard_errors)
    record = json.loads(run("inspect", with_errors, "--summary", "--json").stdout)
    assert record["summary"] == found.rows()
    assert record["covariance"] == found.covariance.tolist()
    assert run("inspect", with_errors, "--summary", "--latex").stdout == found.to_latex()


def test_terms_are_tested_together(with_errors: Path) -> None:
    found = load(with_errors).summary()
    result = run("inspect", with_errors, "--summary", "--test", "age", "--test", "sex")
    assert result.stdout.strip() == str(found.wald_test(["age", "sex"]))
    assert "choose from age" in refused("inspect", with_errors, "--summary", "--test", "height")


def test_what_does_not_go_together_is_refused(with_errors: Path, model: Path) -> None:
    assert "--inference 0.1" in refused("inspect", model, "--summary")
    assert "two tables" in refused("inspect", model, "--summary", "--coefficients")
    assert "--latex needs --summary" in refused("inspect", with_errors, "--latex")
    assert "--test needs --summary" in refused("inspect", with_errors, "--test", "age")
