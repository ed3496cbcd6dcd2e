"""Every command of docs/command_line.md runs, in order."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tacit.cli import demo as demo_module
from tests.cli.helpers import rows, run, write_csv

PAGE = Path(__file__).parents[2] / "docs" / "command_line.md"


def blocks(kind: str) -> list[str]:
    text = PAGE.read_text(encoding="utf-8")
    return re.findall(rf"^```{kind}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def test_commands_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("statsmodels", reason="the demo's records come with statsmodels")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(demo_module, "_EPSILONS", (1.0,))
    monkeypatch.setattr(demo_module, "_REPEATS", 1)
    write_csv(Path("people.csv"), rows())
    Path("schema.toml").write_text(blocks("toml")[0])
    commands = [line for block in blocks("sh") for line in block.splitlines()]
    assert len(commands) >= 10
    for line in commands:
        program, *words = shlex.split(line)
        assert program == "tacit"
        result = run(*words)
        assert result.exit_code == 0, (line, result.output)
    for name in ("tacit-report.html", "model.tacit", "report.html", "predictions.csv"):
        assert Path(name).stat().st_size > 0
