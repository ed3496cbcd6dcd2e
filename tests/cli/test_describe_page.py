"""Every command of docs/describe.md runs, in order."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tests.cli.helpers import rows, run, write_csv

PAGE = Path(__file__).parents[2] / "docs" / "describe.md"


def blocks(kind: str) -> list[str]:
    text = PAGE.read_text(encoding="utf-8")
    return re.findall(rf"^```{kind}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def test_commands_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_csv(Path("people.csv"), rows())
    Path("schema.toml").write_text(blocks("toml")[0], encoding="utf-8")
    commands = [line for block in blocks("sh") for line in block.splitlines()]
    assert len(commands) >= 7
    for line in commands:
        program, *words = shlex.split(line)
        assert program == "tacit"
        result = run(*words)
        assert result.exit_code == 0, (line, result.output)
    for name in ("table1.csv", "table1.tex", "table1.html"):
        assert Path(name).stat().st_size > 0
