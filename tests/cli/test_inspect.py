from __future__ import annotations

import json
from pathlib import Path

import pytest

from tacit.saving import inspect
from tests.cli.helpers import SECRET, bad_tables, refused, run


def test_the_certificate(model: Path) -> None:
    result = run("inspect", model)
    assert result.exit_code == 0
    assert result.stdout == f"{inspect(model)}\n"
    assert "epsilon = 2.0000" in result.stdout


def test_json(model: Path) -> None:
    record = json.loads(run("inspect", model, "--json").stdout)
    assert record == inspect(model).to_dict()


def test_report(model: Path, tmp_path: Path) -> None:
    report = tmp_path / "report.html"
    result = run("inspect", model, "--report", report)
    assert result.exit_code == 0, result.output
    assert "income" in report.read_text()
    assert "--force" in refused("inspect", model, "--report", report)


@pytest.mark.parametrize("what", ["missing", "folder", "huge name", "empty", "unreadable"])
def test_bad_files(tmp_path: Path, what: str) -> None:
    refused("inspect", bad_tables(tmp_path / "bad")[what])


def test_a_table_is_not_a_model(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text(f"name\n{SECRET}\n")
    assert "not a model" in refused("inspect", path)
