"""Run ``tacit compare``: measure accuracy by epsilon on public data."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Annotated

import typer

from tacit.cli import options as opt
from tacit.cli import output
from tacit.cli.files import check_report, write_comparison
from tacit.cli.options import check_relation
from tacit.cli.running import Refused, before_records

_NOT_PRIVATE = (
    "NOT PRIVATE: the scores below are computed from the records without noise. This spends no "
    "budget because nothing is protected. Use this only for public data, as --public states."
)


def compare(
    data: opt.Data,
    schema: opt.SchemaFile,
    public: Annotated[
        bool,
        typer.Option("--public", help="You vouch that these records are public. Required."),
    ] = False,
    target: opt.TargetColumn = None,
    unit: opt.UnitColumn = None,
    model: opt.Model = None,
    epsilon: Annotated[
        list[float] | None,
        typer.Option(
            "--epsilon", "-e", help="A budget to try; may be repeated.  [default: 0.1 0.3 1 3 10]"
        ),
    ] = None,
    delta: opt.Delta = 1e-6,
    mechanism: Annotated[
        list[str] | None,
        typer.Option("--mechanism", help="May be repeated. By default all that apply."),
    ] = None,
    repeats: Annotated[int, typer.Option("--repeats", help="Fits at each point.")] = 3,
    test: Annotated[float, typer.Option("--test", help="The share of records for testing.")] = 0.25,
    relation: opt.RelationName = "add_remove",
    quantile: opt.Quantile = None,
    report: opt.Report = None,
    delimiter: opt.Delimiter = None,
    force: opt.Force = False,
    as_json: opt.AsJson = False,
) -> None:
    """Measure accuracy by epsilon, on public data.

    Tries several budgets and mechanisms: trains on some records and scores the others. Also shows
    a model without privacy and the best constant answer. Classification is scored by accuracy.
    If the most frequent class is at least twice as frequent as the rarest, AUC (two classes) or
    balanced accuracy is used, and the output says so. Scores are computed from the records
    without protection, so this needs --public. For a sensitive table use tacit plan, which needs
    no data.

    \b
    Examples:
      tacit compare survey.csv --schema schema.toml --public
      tacit compare survey.csv --schema schema.toml --public -e 0.5 -e 1 -e 2 \\
          --mechanism objective_perturbation --mechanism noisy_gradient --report curves.html
    """  # noqa: D301
    from tacit.cli.curves import Settings, measured, picture_of, show, which_apply
    from tacit.cli.fit import read_schema
    from tacit.cli.models import kind_for
    from tacit.io import read_table

    if not public:
        raise Refused(
            "compare scores models on the records without noise, which is not private; pass "
            "--public if they are public, or use tacit plan, which needs no data."
        )
    if repeats < 1 or not 0.0 < test < 1.0:
        raise Refused("--repeats must be at least 1 and --test between 0 and 1; leave them out.")
    epsilons = tuple(sorted(set(epsilon or (0.1, 0.3, 1.0, 3.0, 10.0))))
    if math.isinf(epsilons[-1]):
        raise Refused("--epsilon inf: the model without privacy is always shown; leave it out.")
    settings = Settings(epsilons, delta, tuple(mechanism or ()), repeats, relation, quantile)
    with before_records():
        check_report(report, force, data, schema)
        declared = read_schema(schema, target, unit)
        check_relation(relation, declared, schema)
        if declared.unit is not None:
            relation = "add_remove_person"
            settings = replace(settings, relation=relation)
        kind = kind_for(declared, model)
        settings, left_out = which_apply(kind, declared, settings)
    output.note(_NOT_PRIVATE)
    assert declared.target is not None
    unit_name = [] if declared.unit is None else [declared.unit]
    names = [*(column.name for column in declared.encoded), *unit_name, declared.target.name]
    table = read_table(data, names, delimiter=delimiter)
    with output.counted("comparing", settings.n_fits) as step:
        curves = measured(kind, declared, table, settings, test, step)
    if report is not None:
        why = "The person who ran tacit compare vouched that these records are public."
        budget = f"Each fit had its own epsilon, delta {delta:g} and the relation {relation}."
        write_comparison(report, curves, picture_of(curves, why), budget)
    if as_json:
        output.document(
            {
                "private": False,
                "delta": delta,
                "repeats": repeats,
                **curves.to_dict(),
                "refused": left_out,
            }
        )
        return
    show([curves])
    if curves.rule:
        output.note(curves.rule)
    for name, why in left_out.items():
        output.note(f"{name} does not apply: {why}")
    if report is not None:
        output.note(f"wrote {report}")
