"""Run ``tacit table``: import an export of another program as well-defined records."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tacit.cli import options as opt
from tacit.cli import output
from tacit.cli.files import check_new
from tacit.cli.running import OnceCommand, Refused

_NOT_PRIVATE = (
    "NOT PRIVATE: an import is a step of the holder of the table, before anything is private. The "
    "counts below are exact, and the written file is as sensitive as the export."
)

table = typer.Typer(invoke_without_command=True, rich_markup_mode=None)


@table.callback()
def _group(context: typer.Context) -> None:
    """Make well-defined records of an export."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@table.command("import", cls=OnceCommand)
def import_(
    out: Annotated[Path, typer.Option("--out", "-o", help="The .parquet file to write.")],
    source: Annotated[
        Path | None,
        typer.Argument(
            metavar="[EXPORT]",
            help="The export: .csv, .txt, .tsv (also with .gz), .xlsx, .xls, .xlsb, .ods, "
            ".sav, .zsav, .por, .sas7bdat, .xpt or .dta.",
        ),
    ] = None,
    encoding: Annotated[
        str, typer.Option("--encoding", help="The encoding of text, such as latin-1 or cp1252.")
    ] = "utf-8",
    delimiter: opt.Delimiter = None,
    decimal: Annotated[
        str, typer.Option("--decimal", help="The decimal mark of numbers in text: . or ,")
    ] = ".",
    thousands: Annotated[
        str | None,
        typer.Option("--thousands", help="The mark that groups digits in text, such as . or '"),
    ] = None,
    sheet: Annotated[
        str | None, typer.Option("--sheet", help="The worksheet; by default the first.")
    ] = None,
    header_row: Annotated[
        int, typer.Option("--header-row", help="The row with the names of the columns, from 1.")
    ] = 1,
    units_row: Annotated[
        bool,
        typer.Option("--units-row", help="The row after the header has units: add them to names."),
    ] = False,
    labels: Annotated[
        bool,
        typer.Option("--labels", help="Write labels instead of codes (SPSS, SAS, Stata)."),
    ] = False,
    sql: Annotated[
        str | None, typer.Option("--sql", help="A query, instead of an export; it runs once.")
    ] = None,
    database: Annotated[
        str | None,
        typer.Option("--database", help="The database: duckdb://FILE or postgresql://..."),
    ] = None,
    force: opt.Force = False,
    as_json: opt.AsJson = False,
) -> None:
    """Write the records of an export to a Parquet file, which every command reads.

    A step of the holder of the table, before anything is private. It reads what a private reader
    cannot: quoted values with line breaks, other encodings and decimal marks, worksheets, files of
    statistical packages, queries. It prints how many records were read, and which lines were not.

    \b
    Examples:
      tacit table import export.xlsx --out visits.parquet
      tacit table import export.csv --encoding cp1252 --delimiter ';' --decimal , \\
          --out visits.parquet
      tacit table import survey.sav --labels --out survey.parquet
      tacit table import --sql "select age, sex from visits" \\
          --database duckdb://clinic.duckdb --out visits.parquet
    """  # noqa: D301
    from tacit.io import import_query, import_table

    check_new(out, force, source)
    if (source is None) == (sql is None):
        raise Refused("name an export, or pass --sql with --database; one of the two.")
    if (sql is None) != (database is None):
        raise Refused("--sql and --database belong together; pass both.")
    output.note(_NOT_PRIVATE)
    if sql is not None and database is not None:
        read = import_query(sql, database, out)
    else:
        assert source is not None
        read = import_table(
            source,
            out,
            encoding=encoding,
            delimiter=delimiter,
            decimal=decimal,
            thousands=thousands,
            sheet=sheet,
            header_row=header_row,
            units_row=units_row,
            labels=labels,
        )
    if as_json:
        output.document({"private": False, "out": str(out), **vars(read)})
        return
    for sentence in read.notes:
        output.note(sentence)
    output.say(
        f"wrote {out}: {read.records:,} records of {len(read.columns):,} columns; "
        f"{read.unread:,} lines could not be read"
    )
