"""Interrupted commands, as programs of their own: exit code 130, and no file that was not there."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cli.helpers import SCHEMA, environment, rows, write_csv

# Says so once the command is under way, and makes that last for ever.
HOOK = """\
import sys, time
import {module} as module
def stuck(*args, **kwargs):
    sys.stderr.write("under way\\n"); sys.stderr.flush()
    while True: time.sleep(0.01)
module.{name} = stuck
from tacit.cli import main
main()
"""


def interrupted(folder: Path, module: str, name: str, *words: object) -> tuple[int, str]:
    """Interrupt a command while it is inside a function; return its exit code and what it said."""
    code = HOOK.format(module=module, name=name)
    with subprocess.Popen(
        [sys.executable, "-c", code, *map(str, words)],
        cwd=folder,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # a shell that starts pytest in the background would have it ignored
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    ) as command:
        assert command.stderr is not None
        for line in command.stderr:
            if "under way" in line:
                break
        command.send_signal(signal.SIGINT)
        said = command.stderr.read()
        return command.wait(timeout=30), said


@pytest.fixture
def folder(tmp_path: Path, model: Path) -> Path:
    write_csv(tmp_path / "people.csv", rows(300))
    (tmp_path / "schema.toml").write_text(SCHEMA)
    (tmp_path / "draft.toml").write_text(SCHEMA.replace(" }", ", confirmed = false }"))
    (tmp_path / "model.tacit").write_bytes(model.read_bytes())
    return tmp_path


FIT = "fit people.csv --schema schema.toml -e 1 -o new.tacit --report new.html"
CASES = {
    "fit, reading": ("tacit.schema.encoding", "write_rows", FIT),
    "fit, training": ("tacit.estimators.linear", "minimize_unread", FIT),
    "fit, before the disk has it": ("os", "fsync", FIT),
    "fit, before it has its name": ("os", "replace", FIT),
    "predict": (
        "tacit.schema.encoding",
        "write_rows",
        "predict model.tacit people.csv -o new.csv",
    ),
    "inspect": ("tacit.saving.model_file", "load_bytes", "inspect model.tacit --report new.html"),
    "compare": (
        "tacit.estimators.linear",
        "minimize_unread",
        "compare people.csv --schema schema.toml --public --report new.html",
    ),
    "schema draft": ("os", "replace", "schema draft people.csv -o new.toml"),
    "schema confirm": ("tacit.cli.schema", "ask", "schema confirm draft.toml"),
    "schema check": (
        "tacit.schema.encoding",
        "columns_of_batch",
        "schema check people.csv --schema schema.toml",
    ),
    "plan": ("tacit.cli.plan", "rows_for", "plan --rows 9 --columns 9 -e 1"),
    "demo": ("tacit.estimators.linear", "minimize_unread", "demo --out new.html"),
}


# Each starts a program of its own: of those that go through the same code, one is fast.
SLOW = {
    "fit, training",
    "fit, before the disk has it",
    "predict",
    "inspect",
    "compare",
    "schema check",
    "plan",
    "demo",
}


@pytest.mark.slow
@pytest.mark.parametrize(
    "case", [pytest.param(c, marks=pytest.mark.slow if c in SLOW else ()) for c in CASES]
)
def test_an_interrupted_command_leaves_nothing(folder: Path, case: str) -> None:
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    module, name, words = CASES[case]
    code, said = interrupted(folder, module, name, *words.split())
    assert code == 130, said
    assert "interrupted" in said
    assert "Traceback" not in said
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


@pytest.mark.slow
def test_an_old_file_survives(folder: Path) -> None:
    before = (folder / "model.tacit").read_bytes()
    words = FIT.replace("new.tacit", "model.tacit --force")
    assert interrupted(folder, "os", "replace", *words.split())[0] == 130
    assert (folder / "model.tacit").read_bytes() == before


def test_a_real_fit_stops(folder: Path) -> None:
    write_csv(folder / "many.csv", rows(2000) * 200)
    words = ["fit", "many.csv", "--schema", "schema.toml", "-e", "1", "-o", "new.tacit"]
    command = subprocess.Popen(
        [sys.executable, "-m", "tacit.cli", *words],
        cwd=folder,
        env=environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    with command:
        time.sleep(1.0)
        command.send_signal(signal.SIGINT)
        code = command.wait(timeout=120)  # a fit that hangs
        said = command.stderr.read() if command.stderr else ""
    # Interrupted within an import that runs code of its own, Python ends by the signal itself once
    # all is said and done; a shell shows 130 for either.
    assert code in (130, -signal.SIGINT), said
    assert sorted(path.name for path in folder.iterdir()) == [
        "draft.toml",
        "many.csv",
        "model.tacit",
        "people.csv",
        "schema.toml",
    ]
