"""The commands of docs/exports.md lead from a hospital's export to a model with standard errors."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from tacit.cli.app import app
from tacit.io import read_table
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
    # Standard errors, in the declared units.
    rows = {row["term"]: row for row in load("model.tacit").summary().rows()}
    age = rows["age by Geburtsdatum (per 10)"]
    assert 0 < age["standard_error"] < 0.4
    # The sign says which class is modelled, which is no matter of exports.
    assert abs(abs(age["coefficient"]) - 10 / 12) < 6 * age["standard_error"]
    assert "age by Geburtsdatum (per 10)" in printed["inspect model.tacit"].stdout
    assert Path("report.html").stat().st_size > 0


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
