"""Run ``tacit describe``: a private Table 1 of a sensitive table."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.cli import options as opt
from tacit.cli import output
from tacit.cli.files import check_new, check_report, room_for, today
from tacit.cli.options import warn_if_weak
from tacit.cli.running import Refused, before_records

if TYPE_CHECKING:
    from tacit.descriptive import Description, DescriptionPlan
    from tacit.schema import Schema

_NO_PRIVACY = "NO PRIVACY: epsilon is infinite, so the output is not protected."


def describe(
    schema: opt.SchemaFile,
    epsilon: opt.Epsilon,
    data: Annotated[
        str | None,
        typer.Argument(
            metavar="[DATA]",
            help="The table: .csv, .tsv, .parquet, .arrow, .feather; several files as a pattern in "
            "quotes, 'part-*.parquet', or an address that fsspec knows. Not needed with --plan.",
        ),
    ] = None,
    *,
    delta: opt.DeltaOfRelease = None,
    by: Annotated[
        str | None,
        typer.Option("--by", help="The category, boolean or target whose levels are compared."),
    ] = None,
    columns: Annotated[
        list[str] | None,
        typer.Option("--column", help="A column to describe, once for each; by default all."),
    ] = None,
    whole: Annotated[
        list[str] | None,
        typer.Option(
            "--whole", help="A column of whole numbers, once for each: its quartiles are whole."
        ),
    ] = None,
    bins: Annotated[
        int | None,
        typer.Option("--bins", help="Number of bins of numbers; by default chosen from the noise."),
    ] = None,
    rows: Annotated[
        int | None,
        typer.Option(
            "--rows",
            "-n",
            help="Approximate number of records, with a unit of people, if it is public; by "
            "default that of the schema.",
        ),
    ] = None,
    confidence: Annotated[
        float,
        typer.Option("--confidence", help="How often an interval contains its figure."),
    ] = 0.95,
    plan: Annotated[
        bool,
        typer.Option(
            "--plan", help="Show how wide intervals will be; no table is read, nothing is charged."
        ),
    ] = False,
    unit: opt.UnitColumn = None,
    relation: opt.RelationName = "add_remove",
    csv: Annotated[
        Path | None, typer.Option("--csv", help="Also write all figures as CSV.")
    ] = None,
    latex: Annotated[
        Path | None, typer.Option("--latex", help="Also write the table as LaTeX (booktabs).")
    ] = None,
    report: opt.Report = None,
    charge: opt.Charge,
    delimiter: opt.Delimiter = None,
    scheduler: opt.Scheduler = None,
    tls_ca: opt.TlsCa = None,
    tls_cert: opt.TlsCert = None,
    tls_key: opt.TlsKey = None,
    allow_unconfirmed: Annotated[
        bool,
        typer.Option(
            "--allow-unconfirmed",
            help="Describe although lines of the schema were guessed from the data and nobody has "
            "confirmed them. The guarantee then says so.",
        ),
    ] = False,
    force: opt.Force = False,
    as_json: opt.AsJson = False,
) -> None:
    """Describe a sensitive table privately: a Table 1.

    One noisy release gives, for all columns of the schema, counts, missing values, shares, means,
    standard deviations, quartiles and histograms, for all records and by the levels of --by. Each
    figure has an interval: for shares, means and quartiles about the population (noise and
    sampling), for counts about this table (noise).

    \b
    Examples:
      tacit describe --plan --schema schema.toml --rows 20000 --epsilon 0.5
      tacit describe people.csv --schema schema.toml --epsilon 0.5 --by sex
      tacit describe visits.csv --schema schema.toml --epsilon 1 --unit patient \\
          --ledger survey.ledger --csv table1.csv --latex table1.tex --report table1.html
    """  # noqa: D301
    from tacit.cli.fit import check_tls, column_names, connected
    from tacit.cli.ledger import Protected, delta_of_release
    from tacit.descriptive import plan_description
    from tacit.schema import Schema

    with before_records():
        declared = Schema.from_file(schema)
        if unit is not None:
            declared = declared.with_unit(unit)
        opt.check_relation(relation, _counted(declared, rows), schema)
        by_person = declared.unit is not None
        chosen: dict[str, Any] = {
            "by": by,
            "columns": columns or None,
            "whole": whole or (),
            "bins": bins,
            "n_records": rows,
            "confidence": confidence,
        }
        accountant = None
        if not plan:
            accountant = charge.accountant(
                epsilon,
                release="description",
                table=None if data is None else Path(data).name,
                protected=Protected(declared.unit, column_names(schema)),
            )
        delta = delta_of_release(delta, epsilon, accountant)
        planned = plan_description(
            declared,
            epsilon,
            delta,
            relation="add_remove_person" if by_person else relation,
            **chosen,
        )
        if plan:
            if data is not None:
                raise Refused("--plan reads no table; leave DATA out, or leave --plan out.")
            _show_plan(planned, rows, as_json)
            return
        if data is None:
            raise Refused("DATA is missing; name the table, or pass --plan, which needs none.")
        files = [path for path in (csv, latex, report) if path is not None]
        for place, path in enumerate(files):
            check_new(path, force, Path(data), schema, *files[:place], *charge.files)
        check_report(report, force, Path(data), schema, *charge.files)
        check_tls(scheduler, tls_ca, tls_cert, tls_key)
        if scheduler is not None and delimiter is not None:
            raise Refused("--scheduler reads CSV files with commas; leave --delimiter out.")
    warn_if_weak(epsilon, delta, planned.n_records)
    if math.isinf(epsilon):
        output.note(_NO_PRIVACY)
    chosen |= {
        "relation": relation,
        "accountant": accountant,
        "allow_unconfirmed": allow_unconfirmed,
    }
    with room_for(csv, latex, report), output.progress("reading the table") as step:
        if scheduler is None:
            found = _described(
                data, declared, epsilon, delta, delimiter=delimiter, progress=step, **chosen
            )
        else:
            from tacit.cluster import DaskTable

            with connected(scheduler, tls_ca, tls_cert, tls_key) as client:
                table = DaskTable.from_files(data, client)
                found = _described(table, declared, epsilon, delta, **chosen)
    _write(found, csv, latex, report, f"Description of {Path(data).name}")
    if as_json:
        written = {"csv": csv, "latex": latex, "report": report}
        paths = {name: None if path is None else str(path) for name, path in written.items()}
        output.document({**paths, **found.to_dict()})
    else:
        _show(found, files)


def _counted(schema: Schema, rows: int | None) -> Schema:
    """Return the schema with the declared number of records, if one was passed."""
    from dataclasses import replace

    return schema if rows is None else replace(schema, n_records=rows)


def _described(
    table: Any, schema: Schema, epsilon: float, delta: float, **more: Any
) -> Description:
    from tacit.descriptive import describe as described

    return described(table, schema, epsilon, delta, **more)


def _write(
    found: Description, csv: Path | None, latex: Path | None, report: Path | None, title: str
) -> None:
    from tacit.report import write_description
    from tacit.saving.container import write_whole

    if csv is not None:
        write_whole(csv, (found.to_csv() or "").encode("utf-8"))
    if latex is not None:
        write_whole(latex, (found.to_latex() or "").encode("utf-8"))
    if report is not None:
        write_description(report, found, title=title, made_on=today())


def _show(found: Description, files: list[Path]) -> None:
    promise = found.privacy_
    output.boxed("Guarantee", promise.statement(), "red" if promise.voided_by else "green")
    by = found.plan_.by
    groups = [g if g == "all" or by is None else f"{by}: {g}" for g in found.groups]
    rows = [
        [line.label if line.is_column else f"  {line.label}", *line.cells] for line in found.lines()
    ]
    output.table("Table 1", ("", *groups), rows)
    output.say(found.note)
    for path in files:
        output.note(f"wrote {path}")


def _show_plan(planned: DescriptionPlan, rows: int | None, as_json: bool) -> None:
    widths = planned.widths(rows)
    if as_json:
        output.document(
            {
                "settings": dict(planned.settings),
                "confidence": planned.confidence,
                "widths": [vars(width) for width in widths],
            }
        )
        return
    output.say(str(planned))
    table = [
        [
            width.column,
            width.figure,
            width.group,
            *(
                f"{100 * half / width.scale:.2g} %" if width.scale == 1.0 else f"{half:.3g}"
                for half in (width.half_width, width.noise)
            ),
            "" if width.scale == 1.0 else f"{width.half_width / width.scale:.2%}",
        ]
        for width in widths
    ]
    percent = f"{100 * planned.confidence:.4g} %"
    output.table(
        f"Expected half widths of {percent} intervals",
        ("column", "figure", "group", "half width", "of which noise", "of the range"),
        table,
        texts=3,
    )
    output.say(
        "A share of one half, and numbers spread evenly over their declared range: intervals of "
        "rarer levels and of concentrated numbers are narrower. Groups of equal size."
    )
