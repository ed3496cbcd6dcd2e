"""An option with one value is refused if it is given twice, in every command."""

from __future__ import annotations

from typing import Any

import pytest

from tacit.cli.app import all_commands
from tacit.cli.running import is_option
from tests.cli.helpers import refused, run

COMMANDS: dict[str, Any] = all_commands()
SINGLE = [
    (words, max(option.opts, key=len), option.nargs)
    for words, command in COMMANDS.items()
    for option in command.params
    if is_option(option) and not (option.multiple or option.is_flag)
]


def test_two_budgets_are_refused() -> None:
    words = ("plan", "--rows", 1000, "--columns", 5, "--epsilon", 0.1, "--epsilon", 2)
    assert "--epsilon is given twice" in refused(*words)
    assert "--epsilon is given twice" in refused(*words[:-2], "-e", 2)
    assert "--epsilon is given twice" in refused("fit", "x.csv", "-e", 1, "--epsilon", 1)


@pytest.mark.parametrize(("words", "option", "nargs"), SINGLE)
def test_every_option_of_every_command(words: str, option: str, nargs: int) -> None:
    said = refused(*words.split(), *2 * [option, *nargs * ["1"]])
    assert f"{option} is given twice" in said


def test_options_that_take_several_values_take_them() -> None:
    words = ("plan", "--rows", 1000, "--columns", 5, "-e", 1)
    result = run(*words, "--class-weight", "0=1", "--class-weight", "1=2", "--json", "--json")
    assert result.exit_code == 0, result.output
