from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.cli.helpers import (
    BAD_SCHEMAS,
    BAD_TABLES,
    SCHEMA,
    SECRET,
    bad_tables,
    refused,
    rows,
    run,
    write_csv,
)

TABLE = """\
column\tkind\trecords\tmissing\tunreadable\tclipped
age\tnumber\t1200\t0\t400\t0
sex\tcategory\t1200\t400\t400\t0
hours\tnumber\t1200\t0\t0\t200
income\ttarget\t1200\t100\t300\t0
"""


@pytest.fixture
def odd(tmp_path: Path) -> Path:
    """A table with values that its schema cannot read."""
    table = rows(1200)
    for row in table[::3]:
        row[1], row[2] = '"39,5"', SECRET
    for row in table[1::3]:
        row[2] = ""
    for row in table[::6]:
        row[3] = "81"
    for row in table[::4]:
        row[4] = SECRET
    for row in table[1::12]:
        row[4] = "NA"
    return write_csv(tmp_path / "odd.csv", table)


def test_counts_are_shown_and_no_value_is(odd: Path, schema: Path) -> None:
    result = run("schema", "check", odd, "--schema", schema)
    assert (result.exit_code, result.stdout) == (0, TABLE)
    notice, *notes = result.stderr.splitlines()
    assert notice.startswith("NOT PRIVATE: ")
    assert "spends no budget" in notice
    assert "only to people who may see the table" in notice
    assert [note.split(",")[0].split(";")[0] for note in notes] == [
        "column 'age': 400 of 1",
        "column 'sex': 400 of 1",
        "column 'income': 400 of 1",
    ]
    assert "400 of 1,200 labels are missing or cannot be read" in notes[-1]
    assert SECRET not in result.output
    assert "39,5" not in result.output


def test_a_fit_says_nothing_of_it(odd: Path, schema: Path) -> None:
    plain = write_csv(odd.parent / "plain.csv", rows(1200))
    said = []
    for number, path in enumerate((odd, plain)):
        out = odd.parent / f"m{number}.tacit"
        result = run("fit", path, "--schema", schema, "-e", 1, "-o", out)
        assert result.exit_code == 0
        said.append(result.stderr)
    # The same sentence, whether or not there is something that it could tell of.
    assert said[0] == said[1]
    assert len(said[0].splitlines()) == 1


def test_json(odd: Path, schema: Path) -> None:
    result = run("schema", "check", odd, "--schema", schema, "--json")
    record = json.loads(result.stdout)
    assert record["private"] is False
    assert [column["name"] for column in record["columns"]] == ["age", "sex", "hours", "income"]
    assert record["columns"][1] == {
        "name": "sex",
        "kind": "category",
        "records": 1200,
        "missing": 400,
        "unreadable": 400,
        "clipped": 0,
    }
    assert "NOT PRIVATE" in result.stderr


def test_a_terminal_gets_a_table(odd: Path, schema: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "90")
    result = run("schema", "check", odd, "--schema", schema)
    text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", result.stdout)
    assert "How the table is read" in text
    assert re.search(r"income +target +1,200 +100 +300 +0", text)


def test_a_table_that_is_read_whole(people: Path, schema: Path) -> None:
    result = run("schema", "check", people, "--schema", schema)
    assert result.exit_code == 0
    assert len(result.stderr.splitlines()) == 1
    assert all(line.endswith("\t2000\t0\t0\t0") for line in result.stdout.splitlines()[1:])


def test_most_records_left_out_is_said(people: Path, schema: Path) -> None:
    words = ("schema", "check", people, "--schema", schema)
    loud = "MOST RECORDS WOULD BE LEFT OUT"
    assert loud not in run(*words).stderr
    schema.write_text(SCHEMA.replace('["low", "high"]', '["Low", "High"]'))
    assert loud in run(*words).stderr
    merged = '{ rich = ["high", "very high"], others = ["low"] }'
    schema.write_text(SCHEMA.replace('["low", "high"]', merged))
    result = run(*words)
    assert loud not in result.stderr
    assert "income\ttarget\t2000\t0\t0\t0\n" in result.stdout


def test_half_of_the_records_are_not_most(schema: Path, tmp_path: Path) -> None:
    table = [["a", "1", "f", "1", label] for label in ("low", SECRET, "high", SECRET)]
    half = write_csv(tmp_path / "half.csv", table)
    assert "LEFT OUT" not in run("schema", "check", half, "--schema", schema).stderr
    more = write_csv(tmp_path / "more.csv", [*table, table[1]])
    assert "LEFT OUT" in run("schema", "check", more, "--schema", schema).stderr


def test_target_and_delimiter(people: Path, schema: Path) -> None:
    schema.write_text(BAD_SCHEMAS["no target"].replace("upper = 80", "upper = 80, confirmed=false"))
    assert "income\tcategory" in run("schema", "check", people, "--schema", schema).stdout
    words = ("schema", "check", people, "--schema", schema)
    assert "income\ttarget" in run(*words, "--target", "income").stdout
    assert "no column 'incom'" in refused(*words, "--target", "incom")
    people.write_text(people.read_text().replace(",", ";"))
    assert "delimiter ';'" in refused(*words)
    assert run(*words, "--delimiter", ";").exit_code == 0


@pytest.mark.parametrize("what", BAD_TABLES)
def test_bad_tables(tmp_path: Path, schema: Path, what: str) -> None:
    refused("schema", "check", bad_tables(tmp_path / "bad")[what], "--schema", schema)


@pytest.mark.parametrize("what", [what for what in BAD_SCHEMAS if what != "no target"])
def test_bad_schemas(people: Path, schema: Path, what: str) -> None:
    schema.write_text(BAD_SCHEMAS[what])
    refused("schema", "check", people, "--schema", schema)


def test_every_column_ignored(people: Path, schema: Path) -> None:
    schema.write_text("[columns]\n" + SCHEMA.splitlines()[1] + "\n")
    assert "nothing to check" in refused("schema", "check", people, "--schema", schema)


def test_lines_that_are_no_records_are_counted_and_explained(tmp_path: Path, schema: Path) -> None:
    table = rows(1200)
    lines = ["id,age,sex,hours,income", *(",".join(row) for row in table)]
    for place in range(1, 400):
        id_, age, *rest = table[place - 1]
        lines[place] = ",".join([id_, age, f'"{SECRET}\n{SECRET}"', *rest[1:]])
    path = tmp_path / "broken.csv"
    path.write_text("\n".join(lines) + "\n")
    result = run("schema", "check", path, "--schema", schema)
    assert "399 of 1,599 lines are no records, and are left out: a quotation" in result.stderr
    assert "399 of 1,599 lines are no records, and are left out: they have more" in result.stderr
    assert "tacit table import makes records of such lines" in result.stderr
    assert SECRET not in result.output
    draft = run("schema", "draft", path, "--target", "income")
    assert "399 of 1,599 lines are no records" in draft.stderr
    record = json.loads(run("schema", "check", path, "--schema", schema, "--json").stdout)
    assert record["lines"]["open_quotes"] == record["lines"]["wrong_fields"] == 399
    assert record["lines"]["records"] == 801


def test_text_in_another_encoding_is_named_as_such(tmp_path: Path) -> None:
    path = tmp_path / "latin.csv"
    lines = ["sex,age", *["m\u00e4nnlich,30", "weiblich,40"] * 30]
    path.write_bytes("\n".join(lines).encode("latin-1"))
    result = run("schema", "draft", path)
    assert "30 of 60 lines have text that is not UTF-8" in result.stderr
    assert "--encoding cp1252 or latin-1" in result.stderr
    assert "nnlich" not in result.output
    assert 'values = ["weiblich"]' in result.stdout
    assert "some are not text in UTF-8, and left out here" in result.stdout
    path.write_bytes("\n".join(["m\u00e4nnlich,age", "1,2"]).encode("latin-1"))
    assert "--encoding cp1252" in refused("schema", "draft", path)


def test_a_workbook_is_called_one_whatever_its_name(tmp_path: Path, schema: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_bytes(b"PK\x03\x04" + bytes(60))
    sentence = refused("schema", "check", path, "--schema", schema)
    assert "is an Excel workbook (.xlsx)" in sentence
    assert "tacit table import" in sentence
