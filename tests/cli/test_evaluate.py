from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from tacit.ledger import Ledger
from tacit.saving import load
from tests.cli.helpers import BAD_TABLES, bad_tables, refused, rows, run, write_csv


@pytest.fixture
def others(tmp_path: Path) -> Path:
    return write_csv(tmp_path / "others.csv", rows(4000))


def test_without_noise_it_is_the_models_own_score(model: Path, others: Path) -> None:
    result = run("evaluate", model, others, "-e", "inf", "--json")
    assert result.exit_code == 0, result.output
    record = json.loads(result.stdout)
    score = load(model).score(pd.read_csv(others))
    assert record["metrics"]["accuracy"]["value"] == pytest.approx(score)
    assert "NO PRIVACY" in result.stderr
    assert "NO privacy guarantee" in record["statement"]


def test_what_is_printed(model: Path, others: Path, tmp_path: Path) -> None:
    page = tmp_path / "eval.html"
    result = run("evaluate", model, others, "-e", 2, "--report", page)
    assert result.exit_code == 0, result.output
    assert "Guarantee: This result is differentially private with epsilon = 2.0000" in result.stdout
    lines = dict(line.split("\t", 1) for line in result.stdout.splitlines() if "\t" in line)
    assert {"accuracy", "auc", "brier", "log_loss", "records", "low", "high"} <= set(lines)
    value, low, high = map(float, lines["accuracy"].split("\t"))
    assert low < value < high
    text = page.read_text(encoding="utf-8")
    # headed by the guarantee, with a picture of each curve for wide and narrow pages
    assert text.index("differentially private") < text.index("Private evaluation")
    assert text.count("<svg") >= 8
    assert "Confusion matrix" in text
    assert "<script" not in text
    assert "exists; name another" in refused("evaluate", model, others, "-e", 2, "--report", page)


def test_a_number_of_records_is_whole(model: Path, tmp_path: Path) -> None:
    few = write_csv(tmp_path / "few.csv", rows(900))
    shown = run("evaluate", model, few, "-e", 4, "--bins", 2).stdout
    lines = dict(line.split("\t", 1) for line in shown.splitlines() if "\t" in line)
    assert all(number.isdigit() for number in lines["records"].split("\t"))


def test_people(model: Path, tmp_path: Path) -> None:
    twice = write_csv(tmp_path / "twice.csv", rows(4000) * 2)
    record = json.loads(run("evaluate", model, twice, "-e", 4, "--unit", "id", "--json").stdout)
    assert "one person with all their records" in record["statement"]
    assert 3500 < record["metrics"]["records"]["value"] < 4500
    sentence = refused("evaluate", model, twice, "-e", 1, "--unit", "id", "--relation", "replace")
    assert "leave relation out" in sentence


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("-e", -1), "epsilon"),
        (("-e", 1, "-d", 2), "delta"),
        (("-e", 1, "--bins", 1), "bins"),
        (("-e", 1, "--relation", "friends"), "relation"),
        (("-e", 1, "--relation", "add_remove_person"), "no unit"),
        (("-e", 1, "--unit", "age"), "age"),
    ],
)
def test_what_cannot_be_asked(
    words: tuple[object, ...], why: str, model: Path, others: Path
) -> None:
    assert why in refused("evaluate", model, others, *words)


def test_numbers(people: Path, others: Path, hours: Path) -> None:
    path = people.parent / "hours.tacit"
    assert run("fit", people, "--schema", hours, "-e", 2, "-o", path).exit_code == 0
    record = json.loads(run("evaluate", path, others, "-e", 2, "--json").stdout)
    assert set(record["metrics"]) == {"mse", "rmse", "mae", "r2", "records"}
    assert record["confusion"] is None


def test_noise_is_refused_and_says_how_many_would_do(model: Path, others: Path) -> None:
    ledger = others.parent / "l"
    run("ledger", "create", ledger, "--epsilon", 1)
    words = ("evaluate", model, others, "-e", 0.01, "--ledger", ledger)
    before = refused(*words, "--rows", 4000)
    assert "se about" in before
    assert "spent" not in before
    assert Ledger.open(ledger).spent() == 0.0
    after = refused(*words)
    assert "se about" in after
    assert "The budget is spent all the same" in after
    assert "--rows" in after
    assert Ledger.open(ledger).spent() > 0.0


@pytest.mark.parametrize("bad", BAD_TABLES)
def test_bad_tables(bad: str, model: Path, tmp_path: Path) -> None:
    path = bad_tables(tmp_path)[bad]
    assert refused("evaluate", model, path, "-e", 1)


def test_what_is_no_model(people: Path) -> None:
    refused("evaluate", people, people, "-e", 1)
