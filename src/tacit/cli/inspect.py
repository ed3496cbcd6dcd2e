"""Run ``tacit inspect``: show the certificate or the coefficients of a saved model."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from tacit.cli import options as opt
from tacit.cli import output
from tacit.cli.files import check_report, write_model_report
from tacit.cli.running import Refused

_FEATURE, _INTERCEPT = "feature", "intercept"
_HEADER = ("class", "kind", "name", "value", "noise_error")


@dataclass(frozen=True)
class Term:
    """A released number; ``kind`` distinguishes an intercept from a feature named intercept.

    ``output`` is the class that positive numbers favour; empty without classes.
    """

    output: str
    kind: str
    name: str
    value: float
    noise_error: float | None

    def to_dict(self) -> dict[str, Any]:
        """Return a plain dictionary with the class under the key ``class``."""
        record = dict(vars(self))
        return {"class": record.pop("output") or None, **record}


@dataclass(frozen=True)
class Terms:
    """All coefficients of a model, with remarks on them."""

    rows: tuple[Term, ...]
    remarks: tuple[str, ...]


def terms_of(model: Any) -> Terms:
    """Return all coefficients of a fitted model; each class ends with its intercept.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.cli.inspect import terms_of
    >>> from tacit.linear_model import LogisticRegression
    >>> X = np.random.default_rng(0).standard_normal((2000, 2))
    >>> model = LogisticRegression(1.0, 1e-6, row_norm=2.0, classes=["no", "yes"])
    >>> terms = terms_of(model.fit(X, np.where(X[:, 0] > 0, "yes", "no")))
    >>> [(term.output, term.kind, term.name) for term in terms.rows][1:]
    [('yes', 'feature', 'feature 2'), ('yes', 'intercept', 'intercept')]
    """
    from tacit.estimators.parameters import positive_class
    from tacit.report import facts_of

    found = facts_of(model).coefficients
    if found is None:
        raise Refused("the model has no coefficients; leave --coefficients out.")
    estimator = getattr(model, "estimator_", model)
    of_two = str(positive_class(estimator)) if len(getattr(estimator, "classes_", ())) == 2 else ""
    rows = tuple(
        Term(
            row.output or of_two,
            _INTERCEPT if row.is_intercept else _FEATURE,
            row.name,
            row.value,
            row.error,
        )
        for row in found.rows
    )
    said = (found.meaning, found.about_errors, found.on_bias)
    return Terms(rows, tuple(filter(None, said)))


def write_csv(terms: Terms) -> None:
    """Print CSV in which every number reads back to the same float."""
    errors = ("" if t.noise_error is None else repr(t.noise_error) for t in terms.rows)
    lines = zip(terms.rows, errors, strict=True)
    output.written_csv(
        _HEADER, [(t.output, t.kind, t.name, repr(t.value), error) for t, error in lines]
    )


def show(terms: Terms) -> None:
    """Print a table, the largest first; constant and unknown columns are left out."""
    form = "{:.4g}".format if output.is_watched() else repr
    has_class = len({term.output for term in terms.rows}) > 1
    has_error = any(term.noise_error is not None for term in terms.rows)
    header = ["name", *(["class"] if has_class else []), "value", *(["noise"] if has_error else [])]
    lines = []
    for term in sorted(terms.rows, key=lambda term: -abs(term.value)):
        name = f"({term.name})" if term.kind == _INTERCEPT else term.name
        error = "" if term.noise_error is None else form(term.noise_error)
        line = [name, *([term.output] if has_class else []), form(term.value)]
        lines.append([*line, *([error] if has_error else [])])
    title = "Released coefficients, by size"
    output.table(title, header, lines, texts=1 + has_class, long_names=True)
    for remark in terms.remarks:
        output.note(remark)


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
    """Show the guarantee of a saved model.

    Shows its certificate: guarantee, parameters, schema and plan. The training data are not
    needed. The checksums of the file are verified, and the guarantee is recomputed from its event.

    With --coefficients, shows the released coefficients instead: each by the name of its
    feature, intercepts included, with the standard deviation of its noise or a bound on it, if
    known.

    \b
    Examples:
      tacit inspect model.tacit
      tacit inspect model.tacit --json | jq .guarantee.curve
      tacit inspect model.tacit --report report.html
      tacit inspect model.tacit --coefficients --csv > coefficients.csv
    """  # noqa: D301
    from tacit.saving import inspect as read_certificate

    if as_csv and (as_json or not coefficients):
        raise Refused("--csv needs --coefficients and excludes --json; pass --coefficients --csv.")
    check_report(report, force, model)
    certificate = read_certificate(model)
    if report is not None:
        write_model_report(report, certificate.model)
    if coefficients:
        terms = terms_of(certificate.model)
        if as_json:
            output.document({"coefficients": [term.to_dict() for term in terms.rows]})
        elif as_csv:
            write_csv(terms)
        else:
            show(terms)
    elif as_json:
        output.document(certificate.to_dict())
    else:
        output.say(str(certificate))
    if report is not None and not as_json:
        output.note(f"wrote {report}")
