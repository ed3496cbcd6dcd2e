"""The commands of docs/exports.md lead from a hospital's export to a Table 1 and a model."""

from __future__ import annotations

import csv
import datetime
import json
import math
import re
import shlex
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet
from typer.testing import CliRunner, Result

from tacit.cli.app import app
from tacit.io import read_table
from tacit.ledger import Ledger
from tacit.saving import load
from tacit.schema import Schema
from tests.cli import hospital
from tests.cli.helpers import run

PAGE = Path(__file__).parents[2] / "docs" / "exports.md"


def blocks(kind: str) -> list[str]:
    text = PAGE.read_text(encoding="utf-8")
    return re.findall(rf"^```{kind}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def commanded(line: str, answers: str) -> Result:
    program, *words = shlex.split(line)
    assert program == "tacit"
    return CliRunner().invoke(app, words, prog_name="tacit", input=answers)


def test_an_export_becomes_a_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    hospital.write_csv(Path("export.csv"))
    hospital.write_workbook(Path("export.xlsx"))
    (answers,) = blocks("answers")
    commands = [line for block in blocks("sh") for line in block.splitlines()]
    printed = {}
    for line in commands:
        result = commanded(line, answers)
        assert result.exit_code == 0, (line, result.output)
        printed[" ".join(line.split()[1:3])] = result
    # All records are there, whether the export was a CSV or a workbook.
    visits, workbook = read_table("visits.parquet"), read_table("workbook.parquet")
    assert visits.num_rows == workbook.num_rows == hospital.N_RECORDS
    first, second = visits.to_pydict(), workbook.to_pydict()
    assert list(first) == list(second)
    for name in ("Geschlecht", "Gr\u00f6\u00dfe [cm]", "Befund", "Bemerkung", "Wiederaufnahme"):
        assert first[name] == second[name]
    assert list(map(float, first["Gewicht [kg]"])) == list(map(float, second["Gewicht [kg]"]))
    # The schema is the page's, and every line of it is confirmed.
    Path("page.toml").write_text(blocks("toml")[0], encoding="utf-8")
    schema = Schema.from_file("schema.toml")
    assert schema == Schema.from_file("page.toml")
    assert schema.unconfirmed == ()
    check = printed["schema check"].stdout.splitlines()
    counts = {line.split("\t")[0]: line.split("\t")[2:] for line in check[1:]}
    assert all(count[0] == str(hospital.N_RECORDS) for count in counts.values())
    assert [count[2] for count in counts.values()] == ["0"] * len(counts)  # nothing unreadable
    assert 100 < int(counts["Gr\u00f6\u00dfe [cm]"][1]) < 300  # 9999 is missing, not 220
    assert int(counts["Gr\u00f6\u00dfe [cm]"][3]) == 0
    check_table_1(printed["describe visits.parquet"].stdout)
    # Standard errors, in the declared units.
    model = load("model.tacit")
    rows = {row["term"]: row for row in model.summary().rows()}
    age = rows["age by Geburtsdatum (per 10)"]
    assert 0 < age["standard_error"] < 0.1
    # The odds are those of "ja", declared last and first in the alphabet: they rise with age.
    assert abs(age["coefficient"] - 10 / 12) < 6 * age["standard_error"]
    assert age["odds_ratio"] == pytest.approx(math.exp(age["coefficient"]))
    shown = printed["inspect model.tacit"].stdout
    assert "age by Geburtsdatum (per 10)" in shown
    for text in (shown, str(model.summary()), Path("report.html").read_text(encoding="utf-8")):
        assert "odds of ja" in text
        assert "odds of nein" not in text
    # Both releases are booked.
    ledger = Ledger.open("visits.ledger")
    purposes = [entry["purpose"] for entry in ledger.export() if entry["kind"] == "charge"]
    assert purposes == ["Table 1", "readmission"]
    assert 3.5 < ledger.spent() <= 5


def check_table_1(printed: str) -> None:
    """Compare the noisy figures with those of the records, within what the noise can do."""
    with Path("table1.csv").open(encoding="utf-8", newline="") as lines:
        found: dict[tuple[str, ...], dict[str, str]] = {
            (row["column"], row["figure"], row["level"], row["group"]): row
            for row in csv.DictReader(lines)
        }

    def near(exact: float, *key: str) -> bool:
        # Intervals are 1.96 standard deviations to either side; 6 are never left.
        row = found[key]
        return abs(float(row["value"]) - exact) < 3.1 * (float(row["high"]) - float(row["low"])) / 2

    records = hospital.records()
    assert near(hospital.N_RECORDS, "records", "count", "", "all")
    for name, code in (
        ("Geburtsdatum", None),
        ("Geschlecht", "unbekannt"),
        ("Gr\u00f6\u00dfe [cm]", 9999),
        ("Gewicht [kg]", -1),
        ("Raucher", "k.A."),
    ):
        n_missing = sum(record[name] == code for record in records)
        assert near(n_missing, name, "missing", "", "all"), name
    heights = [h for record in records if (h := record["Gr\u00f6\u00dfe [cm]"]) != 9999]
    assert near(sum(heights) / len(heights), "Gr\u00f6\u00dfe [cm]", "mean", "", "all")
    # Dates of birth are ages, and those who come back are older.
    for group in ("ja", "nein"):
        born = [r["Geburtsdatum"] for r in records if r["Wiederaufnahme"].lower() == group]
        ages = [(datetime.date(2026, 1, 1) - day).days / 365.2425 for day in born if day]
        assert near(sum(ages) / len(ages), "Geburtsdatum", "mean", "", group)
    assert "age by Geburtsdatum" in printed
    # Merged levels and folded case: nothing is another word.
    sexes = [str(record["Geschlecht"]).lower() for record in records]
    women = sum(sex in ("w", "weiblich") for sex in sexes) / sum(s != "unbekannt" for s in sexes)
    assert near(women, "Geschlecht", "share", "weiblich", "all")
    assert float(found["Geschlecht", "share", "(other)", "all"]["value"]) < 0.05
    mondays = sum(record["Aufnahme"].weekday() == 0 for record in records)
    assert near(mondays / hospital.N_RECORDS, "Aufnahme", "share", "Monday", "all")
    page = Path("table1.html").read_text(encoding="utf-8")
    assert "age by Geburtsdatum" in page
    assert "Requested epsilon: 1, the most that may be spent." in page


def test_dates_of_a_query_keep_their_type(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    kept = ("Geburtsdatum", "Aufnahme", "Wiederaufnahme")
    rows = [{name: record[name] for name in kept} for record in hospital.records()]
    parquet.write_table(pa.Table.from_pylist(rows), "v.parquet")
    assert str(parquet.read_schema("v.parquet").field("Geburtsdatum").type) == "date32[day]"
    Path("schema.toml").write_text(
        "[columns]\n"
        'Geburtsdatum = { kind = "age", origin = "2026-01-01", lower = 0, upper = 110, per = 10 }\n'
        'Aufnahme = { kind = "weekday" }\n'
        'Wiederaufnahme = { kind = "target", classes = ["nein", "ja"], fold_case = true }\n',
        encoding="utf-8",
    )
    words = ("v.parquet", "--schema", "schema.toml", "--epsilon", 4)
    assert run("describe", *words, "--by", "Aufnahme").exit_code == 0
    assert run("fit", *words, "--inference", 0.3, "--out", "model.tacit").exit_code == 0
    terms = {row["term"]: row for row in load("model.tacit").summary().rows()}
    age = terms["age by Geburtsdatum (per 10)"]
    assert abs(age["coefficient"] - 10 / 12) < 6 * age["standard_error"]


def test_the_workbook_needs_no_format(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    hospital.write_workbook(Path("export.xlsx"))
    assert run("table", "import", "export.xlsx", "--out", "v.parquet").exit_code == 0
    run("schema", "draft", "v.parquet", "--target", "Wiederaufnahme", "--out", "draft.toml")
    answers = blocks("answers")[0].replace("format = %d.%m.%Y\n", "")
    result = commanded("tacit schema confirm draft.toml --out schema.toml", answers)
    assert result.exit_code == 0, result.output
    record = json.loads(
        run("schema", "check", "v.parquet", "--schema", "schema.toml", "--json").stdout
    )
    assert {column["unreadable"] for column in record["columns"]} == {0}
    words = ("--epsilon", 4, "--inference", 0.3, "--out", "model.tacit")
    assert run("fit", "v.parquet", "--schema", "schema.toml", *words).exit_code == 0


def test_read_directly_the_export_is_refused_or_counted(tmp_path: Path) -> None:
    path = hospital.write_csv(tmp_path / "export.csv")
    result = run("schema", "draft", path, "--delimiter", ";")
    assert result.exit_code == 2
    assert "the header is not text in UTF-8" in result.stderr
    text = path.read_bytes().decode("cp1252").replace("\r\n", "\n")
    (tmp_path / "utf8.csv").write_text(text, encoding="utf-8")
    schema = tmp_path / "schema.toml"
    schema.write_text('[columns]\nRaucher = { kind = "boolean" }\n')
    words = ("--schema", schema, "--delimiter", ";", "--json")
    record = json.loads(run("schema", "check", tmp_path / "utf8.csv", *words).stdout)
    assert record["columns"][0]["records"] == hospital.N_RECORDS - hospital.N_BROKEN
    assert record["lines"]["open_quotes"] == hospital.N_BROKEN
