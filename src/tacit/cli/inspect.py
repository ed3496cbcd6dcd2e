"""``tacit inspect``: what a saved model is and promises."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from tacit.cli import options as opt
from tacit.cli import output
from tacit.cli.errors import Refused
from tacit.cli.files import check_report, write_model_report


def inspect(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A file that tacit saved.")],
    coefficients: Annotated[
        bool, typer.Option("--coefficients", help="Show all coefficients, the largest first.")
    ] = False,
    as_csv: Annotated[
        bool, typer.Option("--csv", help="With --coefficients: print them as CSV, in full.")
    ] = False,
    report: opt.Report = None,
    force: opt.Force = False,
    as_json: opt.AsJson = False,
) -> None:
    """Show what a saved model promises.

    Its certificate: guarantee, parameters, schema and plan. The training data are not needed. The
    file is checked byte for byte, and the guarantee is computed anew from what was released.

    With --coefficients it shows what was released instead: each coefficient by the name of its
    feature, intercepts included, and the standard deviation of its noise or a bound on that, where
    one is known.

    \b
    Examples:
      tacit inspect model.tacit
      tacit inspect model.tacit --json | jq .guarantee.curve
      tacit inspect model.tacit --report report.html
      tacit inspect model.tacit --coefficients --csv > coefficients.csv
    """  # noqa: D301
    from tacit.saving import inspect as read_certificate

    if as_csv and (as_json or not coefficients):
        raise Refused("--csv is for --coefficients, and not beside --json; pass those two alone.")
    check_report(report, force, model)
    certificate = read_certificate(model)
    if report is not None:
        write_model_report(report, certificate.model)
    if coefficients:
        _show_coefficients(certificate.model, as_csv, as_json)
    elif as_json:
        output.document(certificate.to_dict())
    else:
        output.say(str(certificate))
    if report is not None and not as_json:
        output.note(f"wrote {report}")


def _show_coefficients(model: Any, as_csv: bool, as_json: bool) -> None:
    from tacit.cli.coefficients import show, terms_of, write_csv

    terms = terms_of(model)
    if as_json:
        output.document({"coefficients": [term.to_dict() for term in terms.rows]})
    elif as_csv:
        write_csv(terms)
    else:
        show(terms)
