"""Run ``tacit audit``: bound the epsilon of fits from below."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.cli import options as opt
from tacit.cli import output
from tacit.cli.files import check_report
from tacit.cli.running import Refused, before_records

if TYPE_CHECKING:
    from tacit.audit import Audit

_MODELS = ("logistic", "svc")


def audit(
    epsilon: opt.Epsilon,
    delta: opt.Delta = 1e-6,
    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            "--loss",
            "-m",
            help="logistic or svc, by default logistic; with --schema any model that fits it.",
        ),
    ] = None,
    schema: Annotated[
        Path | None,
        typer.Option(
            "--schema",
            help="Audit the path from a file of this schema to the model, with one hostile line "
            "added.",
        ),
    ] = None,
    fits: Annotated[
        int, typer.Option("--fits", help="Number of fits, half of them with one more record.")
    ] = 4000,
    level: Annotated[
        float, typer.Option("--level", help="Probability with which a bound may be too high.")
    ] = 0.05,
    html: Annotated[
        Path | None, typer.Option("--html", help="Also write a page with a picture, one file.")
    ] = None,
    force: opt.Force = False,
    as_json: opt.AsJson = False,
) -> None:
    """Fit a model thousands of times and bound its epsilon from below.

    No personal records are read: the audit makes two data sets that differ in one worst-case
    record. A lower bound near the claim shows that the audit is sensitive. A bound above the claim
    contradicts it, and the exit code is 1. A bound below the claim does not prove the claim.

    \b
    Examples:
      tacit audit --model logistic --epsilon 1
      tacit audit --epsilon 8 --fits 2000 --html audit.html
      tacit audit --schema schema.toml --epsilon 1
    """  # noqa: D301
    if schema is not None:
        _audit_files(schema, model, epsilon, delta, html, as_json)
        return
    from tacit.audit import audit as audited

    with before_records():
        check_report(html, force)
        found = audited(_estimator(model or "logistic", epsilon, delta), fits=fits, level=level)
    if html is not None:
        from tacit.report import write_audit

        write_audit(html, found)
    if as_json:
        output.document(found.to_dict())
    else:
        _show(found)
    if html is not None and not as_json:
        output.note(f"wrote {html}")
    if found.above_claim:
        raise typer.Exit(1)


def _show(found: Audit) -> None:
    claim = found.claim
    output.facts(
        {
            "audited": f"{found.subject}, {found.without.size + found.with_it.size:,} fits",
            "claimed": f"epsilon {claim.epsilon:g} at delta {claim.delta:g}",
        }
    )
    rows = [(f.method, f.assumes, f"{f.epsilon:.3f}") for f in found.findings]
    output.table("Epsilon is at least", ("found", "assuming", "epsilon"), rows, texts=2)
    for line in (*found.notes, found.conclusion):
        output.say(line)


def _audit_files(
    path: Path,
    model: str | None,
    epsilon: float,
    delta: float,
    html: Path | None,
    as_json: bool,
) -> None:
    from tacit.audit import audit_files
    from tacit.cli.fit import read_schema
    from tacit.cli.models import kind_for, make_estimator
    from tacit.table_model import TableModel

    with before_records():
        if html is not None:
            raise Refused("--html draws scores of fits, and --schema has no scores; leave one out.")
        declared = read_schema(path, None)
        estimator = make_estimator(kind_for(declared, model), epsilon, delta)
        found = audit_files(TableModel(declared, estimator, allow_unconfirmed=True))
    if as_json:
        output.document({**vars(found), "conclusion": found.conclusion})
    else:
        for line in (*found.contradictions, found.conclusion):
            output.say(output.shown(line))
    if found.contradictions:
        raise typer.Exit(1)


def _estimator(model: str, epsilon: float, delta: float) -> Any:
    from tacit.linear_model import LinearSVC, LogisticRegression

    if model not in _MODELS:
        raise Refused(
            f"--model {model!r} cannot be audited by this command; choose from "
            f"{', '.join(_MODELS)}, or audit any code with tacit.audit.audit_fits."
        )
    # With a ridge of one squared row norm, the audit can recover the noise from the result.
    given: dict[str, Any] = {"row_norm": 1.0, "classes": [0, 1], "fit_intercept": False}
    family = LogisticRegression if model == "logistic" else LinearSVC
    return family(epsilon, delta, regularization=1.0, **given)
