from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tacit.cli import demo as demo_module
from tacit.cli.demo import load_records, public_schemas
from tacit.schema import encode_table
from tests.cli.helpers import refused, run

pytest.importorskip("statsmodels", reason="the demo's records come with statsmodels")


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo_module, "_EPSILONS", (1.0,))
    monkeypatch.setattr(demo_module, "_MECHANISMS", ("objective_perturbation",))
    monkeypatch.setattr(demo_module, "_REPEATS", 1)


@pytest.mark.usefixtures("quick")
def test_it_trains_and_writes_a_report(tmp_path: Path) -> None:
    report = tmp_path / "tacit-report.html"
    for _ in range(2):  # the second time it replaces its own report
        result = run("demo", "--out", report, "--json")
        assert result.exit_code == 0, result.output
    record = json.loads(result.stdout)
    assert record["records"] == 20_190
    assert [curve["model"] for curve in record["curves"]] == ["logistic", "svc", "poisson"]
    for curve in record["curves"]:
        assert curve["floor"] < curve["points"][0]["mean"] < curve["ceiling"] + 0.02
    assert "epsilon = 1.0000" in record["statement"]
    page = report.read_text()
    assert "public domain" in page
    assert page.index("Not private: ") < page.index("<h1>") < page.index(record["statement"][:20])


@pytest.mark.usefixtures("quick")
def test_in_words(tmp_path: Path) -> None:
    result = run("demo", "--out", tmp_path / "r.html")
    assert result.stdout.startswith("model\ttarget\tscore\tmechanism\tepsilon")
    assert "published" in result.stderr


def test_bad_places_for_the_report(tmp_path: Path) -> None:
    refused("demo", "--out", tmp_path / "no-such-folder" / "r.html")
    refused("demo", "--out", tmp_path / ("x" * 5000 + ".html"))
    refused("demo", "--out", tmp_path)
    refused("demo", "--out", tmp_path / "r.pdf")


def test_without_statsmodels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "statsmodels.datasets", None)
    assert "pip install statsmodels (it belongs to the extra demo)" in refused(
        "demo", "--out", tmp_path / "r.html"
    )


def test_the_public_schema_describes_the_records() -> None:
    records = load_records()
    for schema in public_schemas():
        rows, labels = encode_table(records, schema)
        assert rows.shape == (20_190, 9)
        assert len(labels) == 20_190
        # no column is a constant, and no declared range leaves all but a corner empty
        assert ((rows.max(axis=0) - rows.min(axis=0)) > 0.5).all()
