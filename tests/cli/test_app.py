from __future__ import annotations

import re
import subprocess
import sys

import pytest

import tacit
from commands import PAGE, written
from tacit.cli.app import COMMANDS, GROUPS, all_commands
from tests.cli.helpers import environment, process, refused, run

WORDS = (*(command.__name__ for command in COMMANDS), *GROUPS)


def test_help_is_a_short_manual() -> None:
    text = run("--help").stdout
    for command in WORDS:
        assert re.search(rf"^  {command} +[A-Z].*\.$", text, re.MULTILINE), command
    assert "tacit fit people.csv --schema schema.toml" in text
    assert "Exit codes" in text
    assert len(text.splitlines()) < 60
    assert max(map(len, text.splitlines())) <= 80
    assert run().stdout == text


@pytest.mark.parametrize("command", all_commands())
def test_each_command_has_examples(command: str) -> None:
    result = run(*command.split(), "--help")
    assert result.exit_code == 0
    assert f"\n    tacit {command}" in result.stdout
    assert "--json" in result.stdout


def test_version() -> None:
    assert run("--version").stdout == f"tacit {tacit.__version__}\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["fti"], "Did you mean 'fit'?"),
        (["fit"], "Missing argument 'DATA'"),
        (["fit", "x.csv", "--bogus"], "--bogus"),
        (["plan", "--columns", "many"], "'--columns'"),
        (["schema", "drift"], "drift"),
    ],
)
def test_wrong_words_are_one_sentence(words: list[str], said: str) -> None:
    sentence = refused(*words)
    assert said in sentence
    assert "--help'." in sentence


def test_the_manual_loads_nothing_heavy() -> None:
    code = (
        "import sys, tacit.cli.app\n"
        "heavy = ['numpy', 'sklearn', 'scipy', 'pandas', 'pyarrow', 'statsmodels']\n"
        "print([m for m in heavy if m in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_import_tacit_does_not_load_the_command_line() -> None:
    code = (
        "import sys, tacit, tacit.privacy\n"
        "print([m for m in ('typer', 'rich') if m in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_as_a_program() -> None:
    assert process("--version").stdout == f"tacit {tacit.__version__}\n"
    wrong = process("inspect", "no-such-file")
    assert wrong.returncode == 2
    assert wrong.stdout == ""
    assert wrong.stderr.count("\n") == 1


def test_without_typer_it_says_what_to_install() -> None:
    code = "import sys; sys.modules['typer'] = None; from tacit.cli import main; main(['demo'])"
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, env=environment()
    )
    assert run.returncode == 2
    assert "pip install typer (it belongs to the extra cli)" in run.stderr
    assert "Traceback" not in run.stderr


def test_the_page_of_commands_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == written(), "run `make commands`"


def test_every_option_is_explained() -> None:
    for words, command in all_commands().items():
        for parameter in command.params:
            assert parameter.help, (words, parameter.name)
