"""``tacit describe``: what it prints, writes, charges and refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tacit.ledger import Ledger
from tests.cli.helpers import BAD_TABLES, SCHEMA, bad_tables, refused, rows, run, write_csv


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return write_csv(tmp_path / "people.csv", rows(3000))


@pytest.fixture
def schema(tmp_path: Path) -> Path:
    path = tmp_path / "schema.toml"
    path.write_text(SCHEMA, encoding="utf-8")
    return path


def test_what_is_printed_and_written(table: Path, schema: Path, tmp_path: Path) -> None:
    out = [tmp_path / name for name in ("t.csv", "t.tex", "t.html")]
    result = run(
        *("describe", table, "--schema", schema, "-e", 2, "--by", "sex", "--whole", "age"),
        *("--csv", out[0], "--latex", out[1], "--report", out[2]),
    )
    assert result.exit_code == 0, result.output
    assert "Guarantee: This result is differentially private with epsilon = 2.0000" in result.stdout
    assert "sex: m" in result.stdout
    assert "about the population" in result.stdout
    assert all(path.stat().st_size > 500 for path in out)
    again = ("describe", table, "--schema", schema, "-e", 2, "--csv", out[0])
    assert "exists; name another" in refused(*again)
    assert run(*again, "--force").exit_code == 0


def test_json(table: Path, schema: Path) -> None:
    result = run("describe", table, "--schema", schema, "-e", 2, "--column", "age", "--json")
    record = json.loads(result.stdout)
    assert {figure["column"] for figure in record["figures"]} == {"records", "age"}
    assert "differentially private" in record["statement"]
    assert record["confidence"] == 0.95
    words = ("describe", "--plan", "--schema", schema, "-e", 2, "-n", 3000, "--json")
    wide, narrow = (
        json.loads(run(*words, "--confidence", level).stdout)["widths"][0]["half_width"]
        for level in (0.99, 0.9)
    )
    assert wide / narrow == pytest.approx(2.576 / 1.645, rel=1e-3)


def test_a_plan_reads_no_table(schema: Path) -> None:
    result = run(
        "describe", "--plan", "--schema", schema, "-e", 0.5, "--rows", 20000, "--by", "sex"
    )
    assert result.exit_code == 0, result.output
    lines = [line.split("\t") for line in result.stdout.splitlines() if "\t" in line]
    assert ["age", "mean", "all"] in [line[:3] for line in lines]
    assert ["income", "share", "each group"] in [line[:3] for line in lines]
    record = json.loads(
        run("describe", "--plan", "--schema", schema, "-e", 1, "-n", 5000, "--json").stdout
    )
    assert {width["figure"] for width in record["widths"]} == {"count", "mean", "median", "share"}


def test_a_ledger_is_charged_once(table: Path, schema: Path, tmp_path: Path) -> None:
    path = tmp_path / "a.ledger"
    assert run("ledger", "create", path, "-e", 1, "-d", 1e-5).exit_code == 0
    words = ("describe", table, "--schema", schema, "--ledger", path)
    assert run(*words, "-e", 0.8).exit_code == 0
    spent = Ledger.open(path).spent()
    assert 0.5 < spent <= 0.81
    refused(*words, "-e", 0.8)
    assert Ledger.open(path).spent() == spent


def test_people(table: Path, schema: Path, tmp_path: Path) -> None:
    twice = write_csv(tmp_path / "twice.csv", rows(2000) * 2)
    result = run("describe", twice, "--schema", schema, "-e", 4, "--unit", "id", "--json")
    record = json.loads(result.stdout)
    assert "one person with all their records" in record["statement"]
    assert 1900 < record["figures"][0]["value"] < 2100


def test_without_noise(table: Path, schema: Path) -> None:
    result = run("describe", table, "--schema", schema, "-e", "inf", "--json")
    assert "NO PRIVACY" in result.stderr
    assert json.loads(result.stdout)["figures"][0]["value"] == 3000


def test_refusals(table: Path, schema: Path, tmp_path: Path) -> None:
    base = ("describe", table, "--schema", schema)
    assert "epsilon" in refused(*base, "-e", 0)
    assert "confidence" in refused(*base, "-e", 1, "--confidence", 95)
    assert "'nose'" in refused(*base, "-e", 1, "--by", "nose")
    assert "has no levels" in refused(*base, "-e", 1, "--by", "age")
    assert "n_records" in refused(*base, "-e", 1, "--relation", "replace")
    assert "leave --relation out" in refused(
        *base, "-e", 1, "--relation", "replace", "--unit", "id", "-n", 3000
    )
    assert "DATA is missing" in refused("describe", "--schema", schema, "-e", 1)
    assert "reads no table" in refused(*base, "-e", 1, "--plan", "-n", 10)
    assert "n_records" in refused("describe", "--plan", "--schema", schema, "-e", 1)
    assert "HTML" in refused(*base, "-e", 1, "--report", tmp_path / "a.txt")
    both = tmp_path / "both.csv"
    assert "also a file" in refused(*base, "-e", 1, "--csv", both, "--latex", both)
    assert "also a file" in refused(*base, "-e", 1, "--csv", table, "--force")
    schema.write_text('[columns]\nage = { kind = "ignored" }\n', encoding="utf-8")
    assert "nothing to describe" in refused(*base, "-e", 1)


@pytest.mark.parametrize("kind", BAD_TABLES)
def test_tables_that_cannot_be_read(kind: str, schema: Path, tmp_path: Path) -> None:
    path = bad_tables(tmp_path)[kind]
    result = run("describe", path, "--schema", schema, "-e", 1)
    assert result.exit_code in (0, 2), result.output
    assert "Traceback" not in result.output


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
def test_a_scheduler(table: Path, schema: Path) -> None:
    distributed = pytest.importorskip("distributed")
    options = {"processes": False, "threads_per_worker": 1, "dashboard_address": ":0"}
    with distributed.LocalCluster(
        n_workers=1, host="127.0.0.1", protocol="tcp://", **options
    ) as cluster:
        words = ("describe", table, "--schema", schema, "-e", 2, "--unit", "id")
        where = ("--scheduler", cluster.scheduler_address)
        result = run(*words, *where, "--json")
        assert result.exit_code == 0, result.output
        assert 2900 < json.loads(result.stdout)["figures"][0]["value"] < 3100
        assert "leave --delimiter out" in refused(*words, *where, "--delimiter", ";")
