from __future__ import annotations

import subprocess
import sys
import warnings
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from tacit.cli import main
from tacit.cli.running import CommandGroup, Refused
from tacit.estimators.parameters import UndeclaredWarning
from tacit.ledger import Ledger
from tacit.privacy import Budget
from tacit.schema import TableError
from tests.cli.helpers import environment


def outcome(error: BaseException, *words: str) -> Result:
    """Run a command that raises an error."""
    app = typer.Typer(cls=CommandGroup, rich_markup_mode=None)

    @app.command()
    def go() -> None:
        raise error

    @app.command()
    def other() -> None:
        pass

    return CliRunner().invoke(app, ["go", *words], prog_name="tacit")


@pytest.mark.parametrize("error", [Refused("No; do this."), TableError("No; do this.")])
def test_a_refusal(error: Exception) -> None:
    result = outcome(error)
    assert (result.exit_code, result.stderr, result.stdout) == (2, "tacit: No; do this.\n", "")


def test_debug_shows_the_traceback_too() -> None:
    result = outcome(Refused("No; do this."), "--debug")
    assert result.exit_code == 2
    assert "Traceback" in result.stderr
    assert result.stderr.endswith("tacit: No; do this.\n")


def test_interrupted() -> None:
    result = outcome(KeyboardInterrupt())
    assert result.exit_code == 130
    assert "interrupted" in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(
    "error", [ValueError("Zebulon, 39"), KeyError("Zebulon"), AssertionError()]
)
def test_a_bug_does_not_repeat_values(error: Exception) -> None:
    result = outcome(error)
    assert result.exit_code == 1
    assert "Zebulon" not in result.output
    assert "--debug" in result.stderr
    assert "Traceback" not in result.stderr


def test_an_error_of_the_system(tmp_path: Path) -> None:
    result = outcome(PermissionError(13, "Permission denied", str(tmp_path)))
    assert result.exit_code == 2
    assert result.stderr.startswith(f"tacit: '{tmp_path}': permission denied; ")


def test_exit_codes_of_commands_pass() -> None:
    assert outcome(typer.Exit(3)).exit_code == 3
    assert outcome(SystemExit(4)).exit_code == 4


def test_a_closed_pipe_is_silent() -> None:
    command = f"{sys.executable} -m tacit.cli --help | true"
    run = subprocess.run(
        ["bash", "-c", f"set -o pipefail; for i in 1 2 3; do {command}; done; {command}"],
        capture_output=True,
        text=True,
        check=False,
        env=environment(),
    )
    assert run.stderr == ""
    assert run.returncode in (0, 141)


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize(("kind", "bare"), [(UndeclaredWarning, True), (UserWarning, False)])
def test_own_warnings_are_sentences(kind: type[Warning], bare: bool) -> None:
    app = typer.Typer(cls=CommandGroup, rich_markup_mode=None)
    shown = warnings.showwarning

    @app.command()
    def go() -> None:
        warnings.warn("Do this.", kind, stacklevel=1)

    @app.command()
    def other() -> None:
        pass

    with warnings.catch_warnings(record=True) as caught:
        result = CliRunner().invoke(app, ["go"], prog_name="tacit")
    assert (result.stderr == "Do this.\n") == bare
    assert [w.category for w in caught] == ([] if bare else [kind])
    assert warnings.showwarning is shown


@pytest.mark.parametrize("closing", [">&-", "1</dev/null", ">&- 2>&-", ">&- <&-"])
def test_a_closed_output_is_refused_before_the_charge(
    people: Path, schema: Path, tmp_path: Path, closing: str
) -> None:
    book, out = tmp_path / "a.ledger", tmp_path / "model.tacit"
    Ledger.create(book, Budget(1.0))
    fit = f"fit {people} --schema {schema} -e 1 --delta 0 --ledger {book} -o {out}"
    found = shell(f"{fit} {closing}")
    assert found.returncode == 2
    assert found.stderr.startswith("" if "2>" in closing else "tacit: standard output is closed")
    assert len(found.stderr.splitlines()) <= 1
    assert not out.exists()
    assert Ledger.open(book).spent() == 0.0


def test_closed_notices_and_input_stop_nothing() -> None:
    found = shell("--version 2>&- <&-")
    assert (found.returncode, found.stderr) == (0, "")
    assert found.stdout


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # it stays open, as a stream does
def test_a_closed_input_reads_as_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(SystemExit):
        main(["--version"])
    assert sys.stdin is not None
    assert sys.stdin.readline() == ""


@pytest.mark.slow
def test_a_closed_input_is_no_answer(tmp_path: Path) -> None:
    draft = tmp_path / "draft.toml"
    draft.write_text('[columns]\na = { kind = "ignored", confirmed = false }\n')
    found = shell(f"schema confirm {draft} <&-")
    assert found.returncode == 2
    assert "the input ended before the questions" in found.stderr
    assert "Traceback" not in found.stderr


def shell(words: str) -> subprocess.CompletedProcess[str]:
    """Run a command by a shell, which can close its streams."""
    return subprocess.run(
        ["bash", "-c", f"exec {sys.executable} -m tacit.cli {words}"],
        capture_output=True,
        text=True,
        check=False,
        env=environment(),
    )
