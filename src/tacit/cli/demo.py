"""Run ``tacit demo``: fit private models to a real health survey and show the cost of privacy."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.cli import options as opt
from tacit.cli import output
from tacit.cli.files import check_report, write_model_report
from tacit.cli.running import Refused

if TYPE_CHECKING:
    from tacit.schema import Schema

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


_WHY_PUBLIC = (
    "The RAND Health Insurance Experiment is published; its records are in the public domain."
)
_OFTEN = "frequent"  # two or more visits to a doctor a year
_VISITS = "visits"


def public_schemas() -> tuple[Schema, Schema]:
    """Return the schemas of who sees a doctor often, and of how often.

    All bounds follow from the design of the experiment (coinsurance of 0 to 100 %, payments and
    deductibles of a few thousand dollars at most) or from convention, not from the records.
    """
    from tacit.schema import Boolean, ClassTarget, Number, NumberTarget, Schema

    columns = (
        Number("lncoins", lower=0, upper=4.62),  # log(1 + coinsurance in %)
        Boolean("idp"),  # an individual deductible plan
        Number("lpi", lower=0, upper=8),  # log of the yearly participation payment
        Number("fmde", lower=0, upper=9),  # log of the largest deductible
        Number("physlm", lower=0, upper=1),  # a physical limitation
        Number("disea", lower=0, upper=60, log=True),  # an index of chronic diseases
        Boolean("hlthg"),  # own rating of health: good,
        Boolean("hlthf"),  # fair,
        Boolean("hlthp"),  # poor; otherwise excellent
    )
    often = Schema(columns, ClassTarget(_OFTEN, ("no", "yes")))
    return often, Schema(columns, NumberTarget(_VISITS, lower=0, upper=20))


def load_records() -> Any:
    """Return the 20,190 yearly records as a pyarrow Table, with a column of frequent visits."""
    try:
        from statsmodels.datasets import randhie
    except ImportError:
        raise Refused(
            "the demo's records come with statsmodels, which is not installed; "
            "pip install statsmodels (it belongs to the extra demo)."
        ) from None
    import pyarrow as pa

    frame = randhie.load_pandas().data.rename(columns={"mdvis": _VISITS})
    often = ["yes" if often else "no" for often in (frame[_VISITS] >= 2).tolist()]
    return pa.Table.from_pandas(frame.assign(**{_OFTEN: often}), preserve_index=False)


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
    from tacit.cli.curves import Settings, measured, picture_of, show
    from tacit.cli.models import model_kind
    from tacit.linear_model import LogisticRegression
    from tacit.table_model import TableModel

    start = time.monotonic()
    check_report(out, True)
    records = load_records()
    if not as_json and output.is_watched():
        output.say(_INTRODUCTION.format(n=records.num_rows))
    often, visits = public_schemas()
    requested = {"logistic": often, "svc": often, "poisson": visits}
    settings = Settings(_EPSILONS, _DELTA, _MECHANISMS, _REPEATS)
    with output.counted("training private models", len(requested) * settings.n_fits) as step:
        curves = [
            measured(model_kind(word), schema, records, settings, _TEST_SHARE, step)
            for word, schema in requested.items()
        ]
    model = TableModel(often, LogisticRegression(_SHOWN_EPSILON, _DELTA)).fit(records)
    write_model_report(out, model, picture_of(curves[0], _WHY_PUBLIC))
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
