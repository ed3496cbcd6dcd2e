from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.helpers import (
    BAD_SCHEMAS,
    BAD_TABLES,
    SECRET,
    bad_tables,
    refused,
    rows,
    run,
    write_csv,
)

QUICK = ("-e", 1, "--repeats", 1, "--mechanism", "objective_perturbation")


def test_it_needs_public_data(people: Path, schema: Path) -> None:
    sentence = refused("compare", people, "--schema", schema, *QUICK)
    assert "--public" in sentence
    assert "tacit plan" in sentence


def test_curves_with_a_loud_notice(people: Path, schema: Path) -> None:
    report = people.parent / "curves.html"
    result = run(
        "compare", people, "--schema", schema, "--public", "-e", 1, "-e", 0.2, "--report", report
    )
    assert result.exit_code == 0, result.output
    assert result.stderr.startswith("NOT PRIVATE")
    assert "spends no budget" in result.stderr
    header, *lines = (line.split("\t") for line in result.stdout.splitlines())
    found = [dict(zip(header, line, strict=True)) for line in lines]
    assert [line["epsilon"] for line in found[:2]] == ["0.2", "1"]
    assert {line["mechanism"] for line in found} >= {"objective_perturbation", "noisy_gradient"}
    assert all(float(line["floor"]) <= float(line["ceiling"]) for line in found)
    assert "sufficient_statistics does not apply" in result.stderr
    page = report.read_text()
    assert "vouched" in page
    assert "Score: accuracy. The commonest class is less" in result.stderr
    # that it is not private stands first, and no promise stands anywhere
    assert page.index("Not private:") < page.index("<h1>")
    assert "<title>NOT PRIVATE: " in page
    assert "delta 1e-06 and the relation add_remove." in page
    assert 'id="guarantee"' not in page
    assert "privacy report" not in page.lower()
    assert "released results" not in page


def test_uneven_classes_are_not_judged_by_accuracy(tmp_path: Path, schema: Path) -> None:
    high = [row for row in rows(2000) if row[-1] == "high"]
    low = [row for row in rows(2000) if row[-1] == "low"]
    path = write_csv(tmp_path / "people.csv", [*high[:600], *low[:150]])
    report = tmp_path / "curves.html"
    result = run("compare", path, "--schema", schema, "--public", *QUICK, "--report", report)
    assert result.exit_code == 0, result.output
    assert "\tAUC\t" in result.stdout
    assert "Score: AUC" in result.stderr
    assert "Score: AUC" in report.read_text()
    record = json.loads(
        run("compare", path, "--schema", schema, "--public", *QUICK, "--json").stdout
    )
    assert (record["score"], record["floor"]) == ("AUC", 0.5)
    assert "at least twice as frequent" in record["rule"]


def test_json(people: Path, hours: Path) -> None:
    result = run("compare", people, "--schema", hours, "--public", *QUICK, "--json", "-m", "huber")
    record = json.loads(result.stdout)
    assert record["private"] is False
    assert record["score"] == "R2"
    assert record["points"][0]["mechanism"] == "objective_perturbation"


@pytest.mark.parametrize("what", BAD_TABLES)
def test_bad_tables(tmp_path: Path, schema: Path, what: str) -> None:
    path = bad_tables(tmp_path / "bad")[what]
    refused("compare", path, "--schema", schema, "--public", *QUICK)


@pytest.mark.parametrize("what", BAD_SCHEMAS)
def test_bad_schemas(people: Path, schema: Path, what: str) -> None:
    schema.write_text(BAD_SCHEMAS[what])
    refused("compare", people, "--schema", schema, "--public", *QUICK)


def test_odd_records(tmp_path: Path, schema: Path) -> None:
    table = rows(600)
    for row in table[::3]:
        row[1], row[-1] = "nan", SECRET
    path = write_csv(tmp_path / "people.csv", table)
    assert run("compare", path, "--schema", schema, "--public", *QUICK).exit_code == 0
    none = write_csv(tmp_path / "none.csv", [[*row[:-1], SECRET] for row in table])
    assert "classes" in refused("compare", none, "--schema", schema, "--public", *QUICK)
    nobody = write_csv(tmp_path / "nobody.csv", [])
    refused("compare", nobody, "--schema", schema, "--public", *QUICK)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("-e", "inf"), "inf"),
        (("-e", -1), "epsilon"),
        (("--repeats", 0), "--repeats"),
        (("--test", 1), "--test"),
        (("--mechanism", "magic"), "magic"),
        (("-m", "linear"), "logistic"),
        (("--report", "x.txt"), "HTML"),
    ],
)
def test_bad_options(people: Path, schema: Path, words: tuple[object, ...], said: str) -> None:
    assert said in refused("compare", people, "--schema", schema, "--public", *words)
