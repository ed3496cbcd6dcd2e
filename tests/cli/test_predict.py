from __future__ import annotations

import csv
import io
import json
import shutil
import stat
import string
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tacit.cli import main
from tacit.linear_model import LogisticRegression
from tacit.pipeline import PrivatePipeline
from tacit.saving import load, save
from tacit.schema import SchemaEncoder
from tests.cli.helpers import BAD_TABLES, SECRET, bad_tables, refused, rows, run, write_csv


def test_predictions_are_those_of_the_model(model: Path, people: Path) -> None:
    result = run("predict", model, people, "--keep", "id", "--proba")
    assert result.exit_code == 0, result.output
    table = pd.read_csv(io.StringIO(result.stdout))
    frame, loaded = pd.read_csv(people), load(model)
    assert list(table.columns) == ["id", "prediction", "p(high)", "p(low)"]
    assert table["id"].tolist() == frame["id"].tolist()
    assert table["prediction"].tolist() == loaded.predict(frame).tolist()
    assert np.array_equal(table[["p(high)", "p(low)"]], loaded.predict_proba(frame))


def test_json(model: Path, people: Path) -> None:
    record = json.loads(run("predict", model, people, "--json").stdout)
    assert record["target"] == "income"
    assert len(record["records"]) == 2000
    assert set(record["records"][0]) == {"prediction"}


def test_a_saved_pipeline_is_asked_too(model: Path, people: Path, tmp_path: Path) -> None:
    known = load(model)
    steps = [("encode", SchemaEncoder(known.schema)), ("model", known.estimator_)]
    save(PrivatePipeline.of_fitted(steps), tmp_path / "steps.tacit")
    asked = [run("predict", path, people, "--proba") for path in (model, tmp_path / "steps.tacit")]
    assert asked[0].exit_code == 0
    assert asked[0].stdout == asked[1].stdout
    shown = [
        run("inspect", path, "--coefficients", "--json").stdout
        for path in (model, tmp_path / "steps.tacit")
    ]
    assert json.loads(shown[0])["coefficients"] == json.loads(shown[1])["coefficients"]


@pytest.mark.parametrize("suffix", ["csv", "parquet", "arrow", "feather"])
def test_every_format(model: Path, people: Path, suffix: str) -> None:
    out = people.parent / f"predictions.{suffix}"
    result = run("predict", model, people, "--keep", "id", "-o", out)
    assert (result.exit_code, result.stdout) == (0, f"wrote {out}\n")
    read = {"csv": pd.read_csv, "parquet": pd.read_parquet}.get(suffix, pd.read_feather)
    table = read(out)
    assert table["id"].tolist()[:2] == ["p0", "p1"]
    assert set(table["prediction"]) == {"low", "high"}


def test_numbers(people: Path, hours: Path) -> None:
    path = people.parent / "hours.tacit"
    assert run("fit", people, "--schema", hours, "-e", 2, "-o", path).exit_code == 0
    lines = list(csv.DictReader(io.StringIO(run("predict", path, people).stdout)))
    assert all(0 < float(line["prediction"]) < 80 for line in lines)
    assert "--proba" in refused("predict", path, people, "--proba")


def test_a_table_without_records(model: Path, tmp_path: Path) -> None:
    path = write_csv(tmp_path / "none.csv", [])
    assert run("predict", model, path).stdout == "prediction\n"
    out = tmp_path / "out.parquet"
    assert run("predict", model, path, "-o", out).exit_code == 0
    assert len(pd.read_parquet(out)) == 0


def test_odd_values_get_a_prediction(model: Path, tmp_path: Path) -> None:
    table = [["p1", "nan", SECRET, "", "?"], ["p2", "-1e999", "f", "many", SECRET]]
    lines = run("predict", model, write_csv(tmp_path / "odd.csv", table)).stdout.splitlines()
    assert len(lines) == 3
    assert set(lines[1:]) <= {"low", "high"}


UNREAD = (
    "column 'age': 2 of 4 values are not numbers, and count as missing;",
    "column 'sex': 1 of 4 values are none that the schema declares, and count as none of them; ",
)


@pytest.mark.parametrize("more", [(), ("--json",), ("--proba",), ("-o", "out.csv")])
def test_values_that_were_not_read_are_counted(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    table = [
        ["p1", '"39,5"', SECRET, "10", "?"],
        ["p2", SECRET, "f", "", "?"],
        ["p3", "", "m", "200", "?"],
        ["p4", "39.5", "?", "10", SECRET],
    ]
    result = run("predict", model, write_csv(tmp_path / "odd.csv", table), *more)
    assert result.exit_code == 0
    notes = result.stderr.splitlines()
    assert [note[: len(said)] for note, said in zip(notes, UNREAD, strict=True)] == list(UNREAD)
    assert SECRET not in result.output


def test_nothing_is_noted_where_everything_was_read(model: Path, people: Path) -> None:
    assert run("predict", model, people).stderr == ""


@pytest.mark.parametrize("suffix", ["csv", "parquet", "feather"])
def test_any_column_of_the_table_may_be_kept(model: Path, people: Path, suffix: str) -> None:
    frame, path = pd.read_csv(people).head(3), people.parent / f"more.{suffix}"
    frame["pid"] = ["x", "y", "z"]  # the schema does not declare it
    if suffix == "csv":
        frame.to_csv(path, index=False)
    elif suffix == "parquet":
        frame.to_parquet(path)
    else:
        frame.to_feather(path)
    result = run("predict", model, path, "--keep", "pid", "--keep", "income")
    assert [line.split(",")[0] for line in result.stdout.splitlines()] == ["pid", "x", "y", "z"]
    sentence = refused("predict", model, path, "--keep", "pud")
    assert "no column named 'pud', which --keep names; any column of the table" in sentence
    assert "which the schema declares" not in sentence


@pytest.mark.parametrize("what", BAD_TABLES)
def test_bad_tables(model: Path, tmp_path: Path, what: str) -> None:
    out = tmp_path / "out.csv"
    refused("predict", model, bad_tables(tmp_path / "bad")[what], "-o", out)
    assert not out.exists()


def test_predictions_stay_as_secret_as_they_were(model: Path, people: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    out.write_text("old")
    out.chmod(0o600)
    assert run("predict", model, people, "--out", out, "--force").exit_code == 0
    assert stat.S_IMODE(out.stat().st_mode) == 0o600
    assert out.read_text() != "old"


def test_what_is_kept_gives_a_terminal_no_orders(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    orders = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202e"
    table = write_csv(tmp_path / "new.csv", [[f"ann{orders}", "30", "f", "40", "low"]])
    asked = ["predict", str(model), str(table), "--keep", "id"]

    def printed() -> str:
        with pytest.raises(SystemExit):
            main(asked)
        return capsys.readouterr().out

    assert f"ann{orders}" in printed()  # into a pipe as it is
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    seen = printed()
    assert not set(orders) & set(seen) - set(string.printable)
    assert seen.startswith("id,prediction\nann\N{REPLACEMENT CHARACTER}]0;owned")


@pytest.mark.parametrize("what", ["missing", "folder", "huge name", "empty", "unreadable"])
def test_bad_models(people: Path, tmp_path: Path, what: str) -> None:
    refused("predict", bad_tables(tmp_path / "bad")[what], people)


def test_a_damaged_model(model: Path, people: Path) -> None:
    path = people.parent / "damaged.tacit"
    data = bytearray(model.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    assert "damaged.tacit is not a model" in refused("predict", path, people)


def test_a_model_without_a_schema(people: Path) -> None:
    X = np.random.default_rng(0).standard_normal((500, 2))
    path = people.parent / "bare.tacit"
    save(LogisticRegression(1.0, 1e-6, row_norm=2.0).fit(X, X[:, 0] > 0), path)
    assert "without a schema" in refused("predict", path, people)


def test_bad_options(model: Path, people: Path) -> None:
    refused("predict", model, people, "--keep", "town")
    refused("predict", model, people, "--keep", "id", "--keep", "id")
    assert ".csv" in refused("predict", model, people, "-o", people.parent / "out.xlsx")
    old = people.parent / "old.csv"
    shutil.copy(people, old)
    assert "--force" in refused("predict", model, people, "-o", old)
    assert run("predict", model, people, "-o", old, "--force").exit_code == 0
    assert len(old.read_text().splitlines()) == len(rows()) + 1
