"""A fit that is killed has been paid for, and leaves no file of records behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cli.helpers import SCHEMA, rows, run, write_csv

# As `tacit fit`, on a disk from the first byte on, with a pause between steps of the descent.
SCRIPT = """
import time, sys
import tacit.disk_arrays as disk
disk.memory_bytes = lambda: 1000
from tacit.queries import Gradient
real = Gradient.total
def slowly(self, records, facts):
    print("descending", flush=True)
    time.sleep(0.2)
    return real(self, records, facts)
Gradient.total = slowly
from tacit.cli import main
main()
"""


@pytest.mark.slow
def test_a_killed_driver(tmp_path: Path) -> None:
    ledger = tmp_path / "survey.ledger"
    made = run("ledger", "create", ledger, "--epsilon", 1.2, "--delta", 1e-6)
    assert made.exit_code == 0, made.output
    (tmp_path / "schema.toml").write_text(SCHEMA)
    for part in range(3):
        write_csv(tmp_path / f"part-{part}.csv", rows(600))
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    command = [sys.executable, "-c", SCRIPT, "fit", f"{tmp_path}/part-*.csv"]
    command += ["--schema", f"{tmp_path}/schema.toml", "--epsilon", "1", "--out", f"{tmp_path}/m"]
    command += ["--mechanism", "noisy_gradient", "--ledger", str(ledger)]
    where = {**os.environ, "TMPDIR": str(scratch)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=where) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"descending\n"
        held = Path(f"/proc/{child.pid}/maps").read_text()
        assert str(scratch) in held  # records are on disk
        assert list(scratch.iterdir()) == []  # under no name
        child.send_signal(signal.SIGKILL)
    time.sleep(0.1)
    assert list(scratch.iterdir()) == []
    assert not (tmp_path / "m").exists()
    again = run(*command[3:])
    assert again.exit_code == 2, again.output
    assert "would add up to epsilon 2 " in again.stderr
    assert not (tmp_path / "m").exists()
