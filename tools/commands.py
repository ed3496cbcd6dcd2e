"""Write docs/commands.md: every command of the command line with its arguments and options.

    python tools/commands.py           # writes the page; `make commands`

`tests/cli/test_app.py` fails if the page is not what would be written.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tacit.cli.app import all_commands

PAGE = Path(__file__).parents[1] / "docs" / "commands.md"
_PAGE = """\
# Commands

Every command of the [command line](command_line.md), with its arguments and options. Written by
`make commands` from the commands themselves; a test fails if it is out of date.

{table}

{commands}
"""


def written() -> str:
    """Return the page."""
    commands = all_commands()
    lines = ["| command | what it does |", "|---|---|"]
    lines += [
        f"| [`tacit {words}`](#tacit-{words.replace(' ', '-')}) | {_summary(command)} |"
        for words, command in commands.items()
    ]
    sections = [_section(words, command) for words, command in commands.items()]
    return _PAGE.format(table="\n".join(lines), commands="\n\n".join(sections))


def _summary(command: Any) -> str:
    return str(command.help).split("\n\n")[0].replace("\n", " ")


def _section(words: str, command: Any) -> str:
    _, *rest = str(command.help).split("\n\n")
    said = [text.replace("\n", " ") for text in rest if not text.startswith("\b")]
    examples = [text.removeprefix("\b\nExamples:\n") for text in rest if text.startswith("\b")]
    blocks = [f"```text\n{_dedented(text)}\n```" for text in examples]
    lines = [f"- {_parameter(parameter)}" for parameter in command.params]
    return "\n\n".join([f"## tacit {words}", _summary(command), *said, *blocks, "\n".join(lines)])


def _dedented(text: str) -> str:
    return "\n".join(line.removeprefix("  ") for line in text.rstrip().split("\n"))


def _parameter(parameter: Any) -> str:
    names = ", ".join(f"`{name}`" for name in (*parameter.opts, *parameter.secondary_opts))
    if parameter.param_type_name == "argument":
        names = f"`{parameter.metavar or parameter.name.upper()}`"
    default = parameter.default
    plain = isinstance(default, int | float | str | Path) and not isinstance(default, bool)
    shown = f" Default: `{default}`." if plain and default != "" else ""
    required = " Required." if parameter.required and not plain else ""
    return f"{names}: {parameter.help}{required}{shown}"


if __name__ == "__main__":
    PAGE.write_text(written(), encoding="utf-8")
