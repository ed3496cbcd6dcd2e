"""``tacit pate``: from a table and a public pool to a student in a file."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tacit import load
from tacit.ledger import Ledger
from tests.cli.helpers import HOURS, SCHEMA, SECRET, refused, rows, run, write_csv

SMALL = ("--teachers", 40, "--queries", 30, "--teacher", "bayes", "--student", "logistic")


@pytest.fixture
def pool(tmp_path: Path) -> Path:
    return write_csv(tmp_path / "pool.csv", rows(300))


def test_a_student_is_saved_and_judged_by_public_labels(
    people: Path, schema: Path, pool: Path
) -> None:
    out, report = people.parent / "student.tacit", people.parent / "report.html"
    result = run(
        *("pate", people, "--public", pool, "--schema", schema, "--epsilon", 4),
        *("--out", out, "--report", report, *SMALL),
    )
    assert result.exit_code == 0, result.output
    assert "epsilon = 4.0" in result.stdout
    assert "on other public rows" in result.stdout
    assert "majority" in result.stderr  # the plan, before the table is read
    page = report.read_text()
    assert "Votes are private" in page
    assert "Effect of other budgets" in page
    predicted = run("predict", out, pool, "--out", people.parent / "said.csv")
    assert predicted.exit_code == 0, predicted.output
    shown = run("inspect", out)
    assert shown.exit_code == 0, shown.output
    assert "n_teachers = 40" in shown.stdout
    assert load(out).privacy_.epsilon(1e-6) <= 4.0


def test_a_pool_without_labels_and_json(people: Path, schema: Path, tmp_path: Path) -> None:
    lines = (",".join(row[:4]) for row in rows(200))
    blind = tmp_path / "blind.csv"
    blind.write_text("\n".join(["id,age,sex,hours", *lines]) + "\n")
    result = run(
        *("pate", people, "--public", blind, "--schema", schema, "--epsilon", 4, "--sanitised"),
        *("--out", tmp_path / "s.tacit", "--json", *SMALL),
    )
    assert result.exit_code == 0, result.output
    record = json.loads(result.stdout)
    assert record["public_scores"] is None
    assert record["sanitised"]["failure"] == 0.05
    assert record["plan"]["n_teachers"] == 40


def test_people_by_a_column(people: Path, schema: Path, pool: Path) -> None:
    out = people.parent / "s.tacit"
    result = run(
        *("pate", people, "--public", pool, "--schema", schema, "--epsilon", 4, "--unit", "id"),
        *("--out", out, *SMALL),
    )
    assert result.exit_code == 0, result.output
    assert "one person with all their records" in result.stdout
    inspected = run("inspect", out)
    assert inspected.exit_code == 0, inspected.output
    assert "one person with all their records" in inspected.stdout
    predicted = run("predict", out, pool, "--proba")
    assert predicted.exit_code == 0, predicted.output
    assert "epsilon" in refused("evaluate", out, people, "--epsilon", 0)


def test_a_ledger_pays(people: Path, schema: Path, pool: Path, tmp_path: Path) -> None:
    assert run("ledger", "create", tmp_path / "l", "--epsilon", 5, "--delta", "1e-6").exit_code == 0
    words = ("pate", people, "--public", pool, "--schema", schema, "--epsilon", 4, *SMALL)
    first = run(*words, "--ledger", tmp_path / "l", "--out", tmp_path / "one.tacit")
    assert first.exit_code == 0, first.output
    with_more = refused(*words, "--ledger", tmp_path / "l", "--out", tmp_path / "two.tacit")
    assert "budget" in with_more
    assert not (tmp_path / "two.tacit").exists()
    assert Ledger.open(tmp_path / "l").spent() > 3.5


def test_what_is_refused(people: Path, schema: Path, pool: Path, tmp_path: Path) -> None:
    words = ("pate", people, "--public", pool, "--schema", schema, "--out", tmp_path / "s.tacit")
    assert "--teacher" in refused(*words, "-e", 1, "--teacher", "oracle")
    assert "n_queries" in refused(*words, "-e", 1, "--queries", 1000, *SMALL[:2], *SMALL[4:])
    hours = tmp_path / "hours.toml"
    hours.write_text(HOURS)
    words = ("pate", people, "--public", pool, "--schema", hours, "--out", tmp_path / "s.tacit")
    assert "classes" in refused(*words, "-e", 1)


@pytest.mark.parametrize("link", [None, Path.symlink_to, Path.hardlink_to])
def test_the_sensitive_table_is_no_public_pool(
    people: Path, schema: Path, tmp_path: Path, link: Callable[[Path, Path], None] | None
) -> None:
    pool = people
    if link is not None:
        pool = tmp_path / "pool.csv"
        link(pool, people)
    run("ledger", "create", tmp_path / "l", "--epsilon", 5)
    words = ("pate", people, "--public", pool, "--schema", schema, "-e", 4, *SMALL)
    said = refused(*words, "--ledger", tmp_path / "l", "--out", tmp_path / "s.tacit")
    assert "--public names the sensitive table itself" in said
    assert Ledger.open(tmp_path / "l").spent() == 0.0
    assert not (tmp_path / "s.tacit").exists()


def test_a_hostile_record_is_not_told_of(schema: Path, pool: Path, tmp_path: Path) -> None:
    table = rows(400)
    table[7] = [SECRET, "1e308", SECRET, "nan", "high"]
    people = write_csv(tmp_path / "odd.csv", table)
    result = run(
        *("pate", people, "--public", pool, "--schema", schema, "-e", 4, *SMALL),
        *("--out", tmp_path / "s.tacit"),
    )
    assert result.exit_code == 0, result.output
    assert SECRET not in result.output
    model = load(tmp_path / "s.tacit")
    assert np.isfinite(model.predict_proba({"age": [30], "sex": ["f"], "hours": [20]})).all()
    assert SCHEMA
