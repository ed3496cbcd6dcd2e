"""``--model additive`` on the command line: plan, fit, inspect, predict, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tacit.cli.app import app
from tests.additive.test_estimators import NUMBER, TWO, table

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
    fitted = run("fit", folder / "people.csv", "--epsilon", 4, "--out", out, *known)
    assert fitted.exit_code == 0, fitted.output
    shown = run("inspect", out, "--json")
    assert json.loads(shown.stdout)["kind"].startswith("additive_")
    assert "town" in {c["name"] for c in json.loads(shown.stdout)["schema"]["columns"]}
    proba = ["--proba"] if schema == "two" else []
    predicted = run("predict", out, folder / "people.csv", "--json", *proba)
    assert predicted.exit_code == 0, predicted.output
    assert len(json.loads(predicted.stdout)["records"]) == 1_500


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--class-weight", "balanced"], "--class-weight"),
        (["--mechanism", "noisy_gradient"], "--mechanism"),
        (["--evaluate", "0.1"], "--evaluate"),
        (["--report", "report.html"], "--report"),
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
