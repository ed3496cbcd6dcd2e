"""``tacit inspect``: what a saved model is and promises."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tacit.cli import options as opt
from tacit.cli import output
from tacit.cli.files import check_new


def inspect(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A file that tacit saved.")],
    report: opt.Report = None,
    force: opt.Force = False,
    as_json: opt.AsJson = False,
) -> None:
    """Show what a saved model promises.

    Its certificate: guarantee, parameters, schema and plan. The training data are not needed. The
    file is checked byte for byte, and the guarantee is computed anew from what was released.

    \b
    Examples:
      tacit inspect model.tacit
      tacit inspect model.tacit --json | jq .guarantee.curve
      tacit inspect model.tacit --report report.html
    """  # noqa: D301
    from tacit.cli.reports import check_reports, write_model_report
    from tacit.saving import inspect as read_certificate

    check_new(report, force, model)
    check_reports(report)
    certificate = read_certificate(model)
    if report is not None:
        write_model_report(report, certificate.model)
    if as_json:
        output.document(certificate.to_dict())
        return
    output.say(str(certificate))
    if report is not None:
        output.note(f"wrote {report}")
