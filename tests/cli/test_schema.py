from __future__ import annotations

import json
from pathlib import Path

import pytest

from tacit.schema import Schema
from tests.cli.helpers import BAD_TABLES, bad_tables, refused, run


def test_a_draft_must_be_confirmed(people: Path) -> None:
    out = people.parent / "draft.toml"
    result = run("schema", "draft", people, "--target", "income", "-o", out)
    assert (result.exit_code, result.stdout) == (0, f"wrote {out}\n")
    assert "MADE FROM THE DATA" in result.stderr
    assert Schema.from_file(out).unconfirmed == ("id", "age", "sex", "hours", "income")
    model = people.parent / "m.tacit"
    words = ("fit", people, "--schema", out, "-e", 1, "-o", model)
    assert "are not confirmed" in refused(*words)
    assert not model.exists()
    out.write_text(out.read_text().replace(", confirmed = false", ""))
    assert run(*words).exit_code == 0


def test_to_the_screen(people: Path) -> None:
    result = run("schema", "draft", people, "--target", "income")
    path = people.parent / "copied.toml"
    path.write_text(result.stdout)
    assert Schema.from_file(path).target is not None


def test_json(people: Path) -> None:
    record = json.loads(run("schema", "draft", people, "--json").stdout)
    assert Schema.from_dict(record).names == ("id", "age", "sex", "hours", "income")


def test_columns_that_are_ignored_say_why(tmp_path: Path) -> None:
    path = tmp_path / "visits.csv"
    path.write_text("pid,when\n" + "".join(f"{i},2020-01-01\n" for i in range(30)))
    lines = run("schema", "draft", path).stdout.splitlines()
    assert any("pid = " in line and "# ignored: looks like an ident" in line for line in lines)
    assert any("when = " in line and "looks like dates" in line for line in lines)


def test_a_confirmed_schema_is_not_overwritten(people: Path, schema: Path) -> None:
    before = schema.read_text()
    assert "--force" in refused("schema", "draft", people, "-o", schema)
    assert schema.read_text() == before


@pytest.mark.parametrize("what", [what for what in BAD_TABLES if what != "wrong column"])
def test_bad_tables(tmp_path: Path, what: str) -> None:
    out = tmp_path / "draft.toml"
    refused("schema", "draft", bad_tables(tmp_path / "bad")[what], "-o", out)
    assert not out.exists()


def test_a_target_that_is_not_there(people: Path) -> None:
    assert "town" in refused("schema", "draft", people, "--target", "town")


def test_the_group_alone_explains_itself() -> None:
    result = run("schema")
    assert result.exit_code == 0
    assert "draft" in result.stdout
