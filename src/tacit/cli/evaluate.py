"""Run ``tacit evaluate``: evaluate a saved model privately on a sensitive table."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tacit.cli import options as opt
from tacit.cli import output
from tacit.cli.files import check_report, room_for, write_evaluation
from tacit.cli.options import warn_if_weak
from tacit.cli.running import Refused, before_records

if TYPE_CHECKING:
    from tacit.metrics import Evaluation
    from tacit.schema import SchemaEncoder

_NO_PRIVACY = "NO PRIVACY: epsilon is infinite, so the output is not protected."


def evaluate(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A file that tacit fit saved.")],
    data: opt.Data,
    epsilon: opt.Epsilon,
    delta: opt.DeltaOfRelease = None,
    unit: opt.UnitColumn = None,
    relation: opt.RelationName = "add_remove",
    bins: Annotated[
        int | None,
        typer.Option("--bins", help="Number of bins of scores; by default chosen from the noise."),
    ] = None,
    rows: Annotated[
        int | None,
        typer.Option(
            "--rows",
            help="Approximate number of records, if it is public; an evaluation of too few is then "
            "refused before budget is spent.",
        ),
    ] = None,
    report: opt.Report = None,
    *,
    charge: opt.Charge,
    delimiter: opt.Delimiter = None,
    force: opt.Force = False,
    as_json: opt.AsJson = False,
) -> None:
    """Evaluate a model privately on a sensitive table.

    One noisy histogram of scores by class gives accuracy, confusion matrix, AUC, Brier score,
    log loss and the curves of the report; for numbers there are MSE, MAE and R2. Each has an
    interval that covers the value without noise on the same records in 95 % of all cases. Use
    a table other than the training table: a model scores too well on its own training data, and
    the costs of both releases add up. Metrics that would be mostly noise are refused, with the
    number of records that would be enough.

    \b
    Examples:
      tacit evaluate model.tacit other_people.csv --epsilon 0.1
      tacit evaluate model.tacit visits.csv --epsilon 1 --unit patient --report eval.html
    """  # noqa: D301
    from tacit.cli.ledger import Protected, delta_of_release
    from tacit.cli.models import reads_tables, saved_predictor
    from tacit.estimators.parameters import budget_of, with_people
    from tacit.metrics import evaluate as evaluated
    from tacit.metrics.planning import bin_edges

    with before_records():
        check_report(report, force, model, data, *charge.files)
        encoder, estimator = saved_predictor(model)
        columns = tuple(column.name for column in encoder.schema.columns)
        if unit is not None:
            encoder = _with_unit(encoder, unit, model)
        requested = budget_of(epsilon, delta_of_release(delta, epsilon, None), relation)
        with_people(requested, encoder.schema.unit is not None)
        bin_edges(2 if bins is None else bins)
        accountant = charge.accountant(
            epsilon,
            release=f"evaluation of {model.name}"[:200],
            table=data.name,
            protected=Protected(encoder.schema.unit, columns),
        )
        delta = delta_of_release(delta, epsilon, accountant)
    warn_if_weak(epsilon, delta, rows)
    if math.isinf(epsilon):
        output.note(_NO_PRIVACY)
    with room_for(report), output.progress("reading the table", "asking the model") as step:
        if reads_tables(estimator):
            # Its scores are computed from raw columns while the table is read, after the charge.
            table, estimator = estimator.encoded_file(
                data, unit=unit, delimiter=delimiter, progress=step
            )
        else:
            table = encoder.unread_file(data, delimiter=delimiter, progress=step)
        found = evaluated(
            estimator,
            table,
            epsilon=epsilon,
            delta=delta,
            relation=relation,
            bins=bins,
            n_records=rows,
            accountant=accountant,
        )
    if report is not None:
        write_evaluation(report, f"Evaluation of {model.name}", found)
    if as_json:
        output.document({"report": None if report is None else str(report), **found.to_dict()})
    else:
        _show(found, report)


def _with_unit(encoder: SchemaEncoder, unit: str, path: Path) -> SchemaEncoder:
    """Return the encoder of a saved model with a column that identifies people."""
    from tacit.schema import SchemaEncoder

    schema = encoder.schema.with_unit(unit)
    if schema.feature_names != encoder.schema.feature_names:
        raise Refused(
            f"--unit {unit!r} is a column that {path.name} predicts from; name the column that "
            "identifies the person of a record."
        )
    return SchemaEncoder(schema, encoder.dtype, allow_unconfirmed=encoder.allow_unconfirmed)


def _show(found: Evaluation, report: Path | None) -> None:
    promise = found.privacy_
    output.boxed("Guarantee", promise.statement(), "red" if promise.voided_by else "green")
    show_metrics(found)
    if report is not None:
        output.note(f"wrote {report}")


def show_metrics(found: Evaluation) -> None:
    """Print the metrics of an evaluation and the refused ones."""
    ends = {name: (e.value, e.low, e.high) for name, e in found.metrics.items()}
    n = found.n_records
    rows = [[name, *(f"{number:.4g}" for number in of)] for name, of in ends.items()]
    rows.append(["records", *(f"{number:.0f}" for number in (n.value, n.low, n.high))])
    output.table("Evaluation", ("metric", "value", "low", "high"), rows)
    if found.confusion is not None:
        header = ("records of", *(f"predicted {name}" for name in found.confusion.classes))
        lines = [
            [str(label), *(f"{cell.value:.0f}" for cell in row)]
            for label, row in zip(found.confusion.classes, found.confusion.cells, strict=True)
        ]
        output.table("Confusion matrix", header, lines)
    if found.about_positive:
        output.note(found.about_positive)
    for name, why in found.refused.items():
        output.note(f"{name} is refused: {why}")
