"""Run ``tacit demo``: fit private models to a real health survey and show the cost of privacy."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import typer

from tacit.cli import options as opt
from tacit.cli import output
from tacit.cli.files import check_report, write_model_report

_EPSILONS = (0.1, 0.5, 1.0, 4.0)
_DELTA = 1e-6
_MECHANISMS = ("objective_perturbation", "noisy_gradient", "output_perturbation")
_REPEATS = 3
_TEST_SHARE = 0.25
_SHOWN_EPSILON = 1.0
_INTRODUCTION = (
    "The RAND Health Insurance Experiment followed families for years: their illnesses, their "
    "insurance, their visits to doctors. From public facts about the columns alone, "
    "private models predict who sees a doctor at least twice a year (logistic, svc) and how often "
    "(poisson). There are {n:,} yearly records; the guarantee protects one record, and a person "
    "has several.\n"
)
_ABOUT_SCORES = (
    f"Scores on test records, mean±sd of {_REPEATS} fits, delta {_DELTA:g}. D2 "
    "is the share of the deviance of the best constant that the model removes.\n"
)
_NOTICE = (
    "These records are published, so scores on them may be shown. On a sensitive table a "
    "score would also spend budget: use tacit plan, then tacit fit."
)


def demo(
    out: Annotated[Path, typer.Option("--out", "-o", help="Where to write the report.")] = Path(
        "tacit-report.html"
    ),
    as_json: opt.AsJson = False,
) -> None:
    """Train private models on a real survey.

    Compares several models, mechanisms and budgets on the RAND Health Insurance Experiment, which
    comes with the package statsmodels. Also shows a model without privacy and the best constant
    answer. Writes tacit-report.html. Takes less than a minute and needs no network.

    \b
    Examples:
      tacit demo
      tacit demo --json | jq '.curves[0].points'
    """  # noqa: D301
    from tacit.cli.curves import Settings, picture_of, show
    from tacit.cli.demo_data import OFTEN_SCHEMA, WHY_PUBLIC, load_records
    from tacit.linear_model import LogisticRegression
    from tacit.table_model import TableModel

    start = time.monotonic()
    check_report(out, True)
    records = load_records()
    if not as_json and output.is_watched():
        output.say(_INTRODUCTION.format(n=records.num_rows))
    curves = _curves(records, Settings(_EPSILONS, _DELTA, _MECHANISMS, _REPEATS))
    model = TableModel(OFTEN_SCHEMA, LogisticRegression(_SHOWN_EPSILON, _DELTA)).fit(records)
    write_model_report(out, model, picture_of(curves[0], WHY_PUBLIC))
    seconds = time.monotonic() - start
    if as_json:
        output.document(
            {
                "records": records.num_rows,
                "delta": _DELTA,
                "repeats": _REPEATS,
                "curves": [curve.to_dict() for curve in curves],
                "statement": model.privacy_.statement(),
                "report": str(out),
                "seconds": round(seconds, 1),
            }
        )
        return
    if output.is_watched():
        output.say(_ABOUT_SCORES)
    show(curves)
    output.boxed(
        f"Guarantee of the logistic model at epsilon {_SHOWN_EPSILON:g}", str(model.privacy_)
    )
    output.note(_NOTICE)
    output.say(f"wrote {out} in {seconds:.0f} s: open it in a browser.", style="bold")


def _curves(records: Any, settings: Any) -> list[Any]:
    from tacit.cli.curves import measured
    from tacit.cli.demo_data import OFTEN_SCHEMA, VISITS_SCHEMA
    from tacit.cli.models import model_kind

    requested = [
        (model_kind("logistic"), OFTEN_SCHEMA),
        (model_kind("svc"), OFTEN_SCHEMA),
        (model_kind("poisson"), VISITS_SCHEMA),
    ]
    with output.counted("training private models", len(requested) * settings.n_fits) as step:
        return [
            measured(kind, schema, records, settings, _TEST_SHARE, step)
            for kind, schema in requested
        ]
