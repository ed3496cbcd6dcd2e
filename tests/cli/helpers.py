"""A small table, its schema, and ways to run commands on them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
from typer.testing import CliRunner, Result

from tacit.cli.app import app

SCHEMA = """\
[columns]
id = { kind = "ignored" }
age = { kind = "number", lower = 0, upper = 100 }
sex = { kind = "category", values = ["f", "m"] }
hours = { kind = "number", lower = 0, upper = 80 }
income = { kind = "target", classes = ["low", "high"] }
"""
HOURS = SCHEMA.replace('{ kind = "target", classes = ["low", "high"] }', '{ kind = "ignored" }')
HOURS = HOURS.replace('hours = { kind = "number"', 'hours = { kind = "target"')
N = 2000
SECRET = "Zebulon"  # stands in the data, and must not stand in any message


def rows(n: int = N) -> list[list[str]]:
    rng = np.random.default_rng(0)
    table = []
    for place in range(n):
        age, sex = int(rng.integers(17, 90)), str(rng.choice(["f", "m"]))
        high = age + 20 * (sex == "m") + 10 * rng.standard_normal() > 60
        hours = min(max(round(age / 2 + 5 * rng.standard_normal()), 0), 80)
        table.append([f"p{place}", str(age), sex, str(hours), "high" if high else "low"])
    return table


def write_csv(path: Path, table: list[list[str]]) -> Path:
    lines = ["id,age,sex,hours,income", *(",".join(row) for row in table)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def run(*words: object) -> Result:
    """Run a command in this process."""
    return CliRunner().invoke(app, [str(word) for word in words], prog_name="tacit")


def refused(*words: object) -> str:
    """Run a command that must be refused, and return its one sentence."""
    result = run(*words)
    assert result.exit_code == 2, (result.exit_code, result.output)
    *_notices, sentence = result.stderr.splitlines()
    assert sentence.startswith("tacit: ")
    assert "Traceback" not in result.output
    assert SECRET not in result.output
    assert len(sentence) < 700
    assert sentence.endswith((".", "'", "?"))
    return sentence


def process(*words: object, **kwargs: Any) -> subprocess.CompletedProcess[str]:
    """Run a command as a program of its own."""
    command = [sys.executable, "-m", "tacit.cli", *map(str, words)]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, env=environment(), **kwargs
    )


def environment(**more: str) -> dict[str, str]:
    forced = ("FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE", "COLUMNS")
    kept = {name: value for name, value in os.environ.items() if name not in forced}
    return {**kept, "OMP_NUM_THREADS": "1", **more}


def bad_tables(folder: Path) -> dict[str, Path]:
    """Return files that no command can read as the table of `SCHEMA`."""
    folder.mkdir(exist_ok=True)
    (folder / "empty.csv").write_bytes(b"")
    (folder / "folder.csv").mkdir(exist_ok=True)
    unreadable = folder / "unreadable.csv"
    if not unreadable.is_symlink():
        unreadable.symlink_to("/proc/self/mem")  # even root cannot read its first byte
    write_csv(folder / "data.txt", rows(3))
    (folder / "damaged.parquet").write_bytes(b"PAR1" + SECRET.encode() + b"PAR1")
    (folder / "wrong.csv").write_text(f"a,b\n{SECRET},2\n")
    return {
        "missing": folder / "no-such.csv",
        "empty": folder / "empty.csv",
        "folder": folder / "folder.csv",
        "unreadable": unreadable,
        "huge name": folder / ("x" * 5000 + ".csv"),
        "unknown format": folder / "data.txt",
        "damaged": folder / "damaged.parquet",
        "wrong column": folder / "wrong.csv",
    }


BAD_TABLES = (
    "missing",
    "empty",
    "folder",
    "unreadable",
    "huge name",
    "unknown format",
    "damaged",
    "wrong column",
)
BAD_SCHEMAS = {
    "no bounds": SCHEMA.replace("lower = 0, upper = 100", "lower = 0"),
    "bounds in the wrong order": SCHEMA.replace("upper = 100", "upper = -100"),
    "unknown key": SCHEMA.replace("lower = 0, upper = 100", "low = 0, upper = 100"),
    "unknown kind": SCHEMA.replace('"category"', '"word"'),
    "not TOML": "age = {",
    "empty": "",
    "no target": SCHEMA.replace('kind = "target", classes =', 'kind = "category", values ='),
    "one class": SCHEMA.replace('["low", "high"]', '["low"]'),
}
