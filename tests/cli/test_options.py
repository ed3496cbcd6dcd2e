from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.helpers import SCHEMA, refused, run

LOUD = "WEAK PROMISE"


def test_plan_warns_and_keeps_its_output(schema: Path) -> None:
    words = ("plan", "--rows", 2000, "--schema", schema, "--json")
    assert run(*words, "-e", 1).stderr == ""
    result = run(*words, "-e", 20, "-d", 0.01)
    assert result.stderr.startswith(LOUD)
    assert len(result.stderr.splitlines()) == 1
    assert json.loads(result.stdout)["epsilon"] == 20


def test_fit_warns(people: Path, schema: Path) -> None:
    words = ("fit", people, "--schema", schema, "-o", people.parent / "m.tacit", "--force")
    result = run(*words, "-e", 11)
    assert result.exit_code == 0
    assert "epsilon 11" in result.stderr
    assert LOUD not in run(*words, "-e", 1, "-d", 0.001).stderr  # nobody says how many records
    assert "delta 0.5 is above 1 in 1,000" in run(*words, "-e", 1, "-d", 0.5).stderr
    schema.write_text("n_records = 2000\n" + SCHEMA)
    assert "1 in the 2,000 records" in run(*words, "-e", 1, "-d", 0.001).stderr


@pytest.mark.parametrize("command", ["fit", "compare"])
def test_replace_names_the_line_to_add(people: Path, schema: Path, command: str) -> None:
    more = ("--public",) if command == "compare" else ("-o", people.parent / "m.tacit")
    words = (command, people, "--schema", schema, "-e", 1, "--relation", "replace", *more)
    sentence = refused(*words)
    assert "schema.toml" in sentence
    assert "n_records = ... with the number above [columns]" in sentence
    schema.write_text("n_records = 2000\n" + SCHEMA)
    if command == "fit":
        assert run(*words).exit_code == 0
