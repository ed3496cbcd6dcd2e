from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path

import pytest

from tacit.cli.app import all_commands
from tacit.cli.options import Charge
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


@pytest.mark.parametrize("command", ["fit", "evaluate", "pate"])
def test_commands_that_charge_a_ledger_share_their_options(command: str) -> None:
    names = [parameter.name for parameter in all_commands()[command].params]
    block = [field.name for field in fields(Charge)]
    start = names.index(block[0])
    assert names[start : start + len(block)] == block


def test_a_block_of_options_is_checked_before_the_table_is_read(people: Path, schema: Path) -> None:
    words = ("fit", people, "--schema", schema, "-e", 1, "-o", people.parent / "m.tacit")
    assert "--partition needs a ledger" in refused(*words, "--partition", "north")
