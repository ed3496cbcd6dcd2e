"""Register the commands and the manual that ``tacit --help`` prints."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from tacit import __version__
from tacit.cli.audit import audit
from tacit.cli.compare import compare
from tacit.cli.demo import demo
from tacit.cli.describe import describe
from tacit.cli.evaluate import evaluate
from tacit.cli.fit import fit
from tacit.cli.inspect import inspect
from tacit.cli.ledger import ledger
from tacit.cli.options import with_option_blocks
from tacit.cli.pate import pate
from tacit.cli.plan import plan
from tacit.cli.predict import predict
from tacit.cli.running import CommandGroup, OnceCommand
from tacit.cli.schema import schema
from tacit.cli.table import table

MANUAL = """\
Train models on sensitive tables, with a differential-privacy guarantee.

You declare what is public about the table (columns, ranges, values) in a schema, and the
privacy budget (epsilon, delta). You get a model in one file, its guarantee in plain words,
and, if you like, a report as an HTML page.

\b
See it work, on a real health survey, in under a minute:
  tacit demo

\b
From a table to a private model (of an Excel export: tacit table import):
  tacit schema draft people.csv --target income --out schema.toml
  tacit schema confirm schema.toml
  tacit schema check people.csv --schema schema.toml
  tacit describe people.csv --schema schema.toml --epsilon 0.5 --by sex
  tacit plan --rows 30000 --schema schema.toml --epsilon 1
  tacit fit people.csv --schema schema.toml --epsilon 1 --delta 1e-6 \\
      --model logistic --out model.tacit --report report.html
  tacit inspect model.tacit
  tacit evaluate model.tacit other_people.csv --epsilon 0.1 --report eval.html
  tacit predict model.tacit new_people.csv --out predictions.csv

\b
One budget for all releases from the table:
  tacit ledger create survey.ledger --epsilon 3 --delta 1e-6
  tacit fit people.csv --schema s.toml -e 1 --ledger survey.ledger -o m.tacit
  tacit ledger show survey.ledger

\b
Test the claimed epsilon by fitting many times:
  tacit audit --model logistic --epsilon 1

\b
Tables are read from .csv, .csv.gz, .tsv, .parquet, .arrow and .feather files.
Results go to standard output, notices and progress to standard error. In a
pipe, text is plain and tables are separated by tabs; --json prints JSON.
Exit codes: 0 done, 2 refused (a sentence says why and what to do),
130 interrupted (no half-written file is left), 1 a bug in tacit, or an
audit that contradicts the claim.
"""

app = typer.Typer(
    cls=CommandGroup,
    name="tacit",
    help=MANUAL,
    epilog="'tacit COMMAND --help' explains a command, with examples.",
    invoke_without_command=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


def _show_version(requested: bool) -> None:
    if requested:
        typer.echo(f"tacit {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    context: typer.Context,
    version: Annotated[  # noqa: ARG001
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version."),
    ] = False,
    debug: Annotated[  # noqa: ARG001
        bool,
        typer.Option("--debug", help="Show the traceback of an error. It may contain records."),
    ] = False,
) -> None:
    """Accept the options of every command; `CommandGroup` handles --debug at any position."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


# Every command is said here, in the order of the help. The help, docs/commands.md and the tests
# that walk all commands follow from it.
COMMANDS = (demo, describe, plan, fit, pate, evaluate, predict, inspect, compare, audit)
GROUPS = {"table": table, "schema": schema, "ledger": ledger}

for _command in COMMANDS:
    app.command(cls=OnceCommand)(with_option_blocks(_command))
for _name, _group in GROUPS.items():
    app.add_typer(_group, name=_name)


def all_commands() -> dict[str, Any]:
    """Return every command by its words, such as ``schema draft``, with its parameters.

    Examples
    --------
    >>> from tacit.cli.app import all_commands
    >>> [words for words in all_commands() if words.startswith("schema")]
    ['schema draft', 'schema confirm', 'schema check']
    """
    found: dict[str, Any] = {}
    for name, command in typer.main.get_command(app).commands.items():  # type: ignore[attr-defined]
        inner = getattr(command, "commands", None)
        if inner is None:
            found[name] = command
        else:
            found.update({f"{name} {word}": within for word, within in inner.items()})
    return found
