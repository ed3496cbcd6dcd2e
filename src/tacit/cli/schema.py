"""``tacit schema``: draft a schema, confirm it line by line, and check a table by it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tacit.cli import options as opt
from tacit.cli import output
from tacit.cli.files import check_new
from tacit.cli.schema_check import check
from tacit.cli.schema_confirm import confirm

schema = typer.Typer(invoke_without_command=True, rich_markup_mode=None)

_LOOKED = (
    "THIS DRAFT LOOKED AT THE DATA, without any privacy. Until every line is checked it is as "
    'secret as they are. Check each line, by tacit schema confirm or by deleting its "confirmed = '
    'false" yourself.'
)


@schema.callback()
def _group(context: typer.Context) -> None:
    """Write down what is public about a table."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@schema.command()
def draft(
    data: opt.Data,
    target: Annotated[
        str | None, typer.Option("--target", help="The column that is to be predicted.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Where to write; by default to the screen.")
    ] = None,
    delimiter: opt.Delimiter = None,
    force: opt.Force = False,
    as_json: opt.AsJson = False,
) -> None:
    """Draft a schema by looking at a table. Every line is a guess, and marked as one.

    A fit refuses a schema with such lines: they may tell of single people, the oldest or the one in
    a rare category. Replace each guess by what you know without the data, then delete its mark;
    tacit schema confirm goes through them with you.

    \b
    Examples:
      tacit schema draft people.csv --target income --out schema.toml
      tacit schema draft people.parquet --json
    """  # noqa: D301
    from tacit.preprocessing import draft_schema
    from tacit.preprocessing.schema.toml_text import read_toml
    from tacit.saving.files import write_whole

    check_new(out, force, data)
    text = draft_schema(data, target, delimiter=delimiter)
    output.note(_LOOKED)
    if out is not None:
        write_whole(out, text.encode("utf-8"))
    if as_json:
        output.document(read_toml(text))
    elif out is None:
        output.written(text.rstrip("\n"))
    else:
        output.say(f"wrote {out}")


schema.command()(confirm)
schema.command()(check)
