"""The commands of the README run as they stand, on a table of the kind they speak of."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import numpy as np
import pytest

from tacit.cli.app import all_commands
from tests.cli.helpers import run

README = Path(__file__).parents[2] / "README.md"


def commands() -> list[list[str]]:
    text = README.read_text(encoding="utf-8").replace("\\\n", " ")
    blocks = re.findall(r"^```console\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    lines = [line[2:] for block in blocks for line in block.splitlines() if line.startswith("$ ")]
    return [shlex.split(line, comments=True) for line in lines]


def write_visits(path: Path, n: int = 1500) -> None:
    rng = np.random.default_rng(0)
    age, sex = rng.integers(0, 95, n), rng.choice(["f", "m"], n)
    often = np.where(age + 20 * rng.standard_normal(n) > 55, "yes", "no")
    rows = (f"{a},{s},{o}" for a, s, o in zip(age, sex, often, strict=True))
    path.write_text("\n".join(["age,sex,often", *rows]) + "\n", encoding="utf-8")


def test_commands_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_visits(Path("visits.csv"))
    tacit = [words for program, *words in commands() if program == "tacit"]
    assert [words[0] for words in tacit] == ["schema", "fit", "inspect"]
    for words in tacit:
        result = run(*words)
        assert result.exit_code == 0, (words, result.output)
        schema = Path("schema.toml")  # confirmed line by line, as the README says
        schema.write_text(re.sub(r",?\s*confirmed = false", "", schema.read_text()))
    assert "differentially private with epsilon = 1.0" in result.output
    assert Path("report.html").stat().st_size > 0


def test_the_readme_names_every_command() -> None:
    text = README.read_text(encoding="utf-8")
    words = {"ledger" if name.startswith("ledger ") else name for name in all_commands()}
    assert [name for name in sorted(words) if f"tacit {name}" not in text] == []


def test_the_other_commands_are_targets_of_the_makefile() -> None:
    targets = {words[1] for words in commands() if words[0] == "make"}
    makefile = (README.parent / "Makefile").read_text(encoding="utf-8")
    assert targets == {"demo", "test"}
    assert all(re.search(rf"^{target}:", makefile, re.MULTILINE) for target in targets)
