"""``--model additive`` on the command line: plan, fit, inspect, predict, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from typer.testing import CliRunner

from tacit.additive.terms import Term
from tacit.cli.app import app
from tacit.ledger import Ledger
from tacit.metrics import evaluate
from tacit.privacy import Budget
from tacit.saving import save
from tacit.schema import ClassTarget, Schema
from tests.additive.test_estimators import COLUMNS, NUMBER, TWO, made, table

pd = pytest.importorskip("pandas")


def run(*words: object) -> Any:
    """Return the result of a command."""
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with a table and two schemas."""
    pd.DataFrame(table(1_500)).to_csv(tmp_path / "people.csv", index=False)
    (tmp_path / "two.toml").write_text(TWO.to_toml(), encoding="utf-8")
    (tmp_path / "number.toml").write_text(NUMBER.to_toml(), encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize("schema", ["two", "number"])
def test_fit_inspect_and_predict(folder: Path, schema: str) -> None:
    known = ["--schema", folder / f"{schema}.toml", "--model", "additive"]
    planned = run("plan", "--rows", 1500, "--epsilon", 4, *known)
    assert planned.exit_code == 0, planned.output
    assert "shares of mu^2" in planned.output
    out = folder / "model.tacit"
    report = folder / "report.html"
    wanted = ["--epsilon", 4, "--out", out, "--report", report]
    fitted = run("fit", folder / "people.csv", *wanted, *known)
    assert fitted.exit_code == 0, fitted.output
    assert "Terms of the columns" in report.read_text(encoding="utf-8")
    again = run("inspect", out, "--report", folder / "again.html")
    assert again.exit_code == 0, again.output
    assert (folder / "again.html").read_text(encoding="utf-8") == report.read_text(encoding="utf-8")
    shown = run("inspect", out, "--json")
    assert json.loads(shown.stdout)["kind"].startswith("additive_")
    assert "town" in {c["name"] for c in json.loads(shown.stdout)["schema"]["columns"]}
    proba = ["--proba"] if schema == "two" else []
    predicted = run("predict", out, folder / "people.csv", "--json", *proba)
    assert predicted.exit_code == 0, predicted.output
    assert len(json.loads(predicted.stdout)["records"]) == 1_500


@pytest.mark.parametrize("case", ["two", "three", "number"])
def test_evaluate_without_noise_gives_the_models_own_score(tmp_path: Path, case: str) -> None:
    out, others = tmp_path / "model.tacit", table(3_000, 1)
    model = made(case, epsilon=4.0).fit(table())
    save(model, out)
    label = model.schema.target.name
    others[label] = others[label].astype(object)
    others[label][:100] = None  # records without a label do not count
    pd.DataFrame(others).to_csv(tmp_path / "others.csv", index=False)
    found = run("evaluate", out, tmp_path / "others.csv", "-e", "inf", "--json")
    assert found.exit_code == 0, found.output
    metrics = json.loads(found.stdout)["metrics"]
    rest = {name: values[100:] for name, values in others.items()}
    if case == "number":
        error = np.mean((model.predict(rest) - rest[label].astype(float)) ** 2)
        assert metrics["mse"]["value"] == pytest.approx(error, rel=1e-3)  # sums are rounded
    else:
        right = np.mean(model.predict(rest) == rest[label])
        assert metrics["accuracy"]["value"] == pytest.approx(right)
    assert metrics["records"]["value"] == 2_900


def test_evaluate_charges_before_it_reads_and_counts_people(tmp_path: Path) -> None:
    out, path, ledger = tmp_path / "model.tacit", tmp_path / "visits.csv", tmp_path / "a.ledger"
    save(made("two", epsilon=4.0).fit(table()), out)
    frame = pd.DataFrame(table(3_000, 1))
    frame["patient"] = np.arange(3_000)
    pd.concat([frame, frame]).to_csv(path, index=False)
    known = ["evaluate", out, path, "--json"]
    found = run(*known, "-e", 4, "--unit", "patient")
    assert found.exit_code == 0, found.output
    assert "one person with all their records" in json.loads(found.stdout)["statement"]
    assert 2_700 < json.loads(found.stdout)["metrics"]["records"]["value"] < 3_300
    assert "predicts from" in " ".join(run(*known, "-e", 1, "--unit", "age").output.split())
    Ledger.create(ledger, Budget(1.0, 1e-6))
    with mock.patch.object(Term, "scores", side_effect=AssertionError("read before the charge")):
        refused = run(*known, "-e", 4, "--ledger", ledger)
    assert refused.exit_code != 0
    assert "read before" not in refused.output


def test_evaluate_in_python_takes_a_table_with_its_target() -> None:
    model, others = made("two", epsilon=4.0).fit(table()), table(3_000, 1)
    found = evaluate(model, others, epsilon=4.0, random_state=0)
    right = np.mean(model.predict(others) == others["ill"])
    assert found["accuracy"].low <= right <= found["accuracy"].high
    labels = others.pop("ill")
    beside = evaluate(model, others, labels, epsilon=4.0, random_state=0)
    assert beside["accuracy"].value == found["accuracy"].value


def test_evaluate_tells_curves_for_the_last_declared_class() -> None:
    schema = Schema(COLUMNS, ClassTarget("ill", ("yes", "no")))
    model = made("two", epsilon=4.0, schema=schema).fit(table())
    others = table(3_000, 1)
    found = evaluate(model, others, epsilon=np.inf)
    right = np.mean(model.predict(others) == others["ill"])
    assert found["accuracy"].value == pytest.approx(right)
    assert found["auc"].value > 0.6


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--class-weight", "balanced"], "--class-weight"),
        (["--mechanism", "noisy_gradient"], "--mechanism"),
        (["--evaluate", "0.1"], "--evaluate"),
        (["--delta", "0"], "delta is 0"),
    ],
)
def test_options_of_other_models_are_refused(
    folder: Path, words: list[str], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    known = ["--schema", "two.toml", "--model", "additive", "--epsilon", 1, "--out", "m.tacit"]
    refused = run("fit", "people.csv", *known, *words)
    assert refused.exit_code != 0
    assert message in " ".join(refused.output.split())
    assert not (folder / "m.tacit").exists()
