"""The numbers a model released, each with its name: a table for people, CSV for programs."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import Any

from tacit.cli import output
from tacit.cli.errors import Refused

_FEATURE, _INTERCEPT = "feature", "intercept"
_HEADER = ("class", "kind", "name", "value", "noise_error")


@dataclass(frozen=True)
class Term:
    """A released number; ``kind`` tells an intercept from a feature that is called so.

    ``output`` is the class that a positive number speaks for; empty where there are no classes.
    """

    output: str
    kind: str
    name: str
    value: float
    noise_error: float | None

    def to_dict(self) -> dict[str, Any]:
        """Return a plain dictionary, the class by that word."""
        record = dict(vars(self))
        return {"class": record.pop("output") or None, **record}


@dataclass(frozen=True)
class Terms:
    """All coefficients of a model, and what is to be said about them."""

    rows: tuple[Term, ...]
    remarks: tuple[str, ...]


def terms_of(model: Any) -> Terms:
    """Return all coefficients of a fitted model, intercepts after the features of their class.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.cli.coefficients import terms_of
    >>> from tacit.linear_model import LogisticRegression
    >>> X = np.random.default_rng(0).standard_normal((2000, 2))
    >>> model = LogisticRegression(1.0, 1e-6, row_norm=2.0, classes=["no", "yes"])
    >>> terms = terms_of(model.fit(X, np.where(X[:, 0] > 0, "yes", "no")))
    >>> [(term.output, term.kind, term.name) for term in terms.rows][1:]
    [('yes', 'feature', 'feature 2'), ('yes', 'intercept', 'intercept')]
    """
    from tacit.models import spec_of
    from tacit.pipeline import taken_apart
    from tacit.report import facts_of

    found = facts_of(model).coefficients
    if found is None:
        raise Refused("the model has no coefficients; leave --coefficients out.")
    _, estimator = taken_apart(model)
    spec = spec_of(estimator)
    n_features = spec.n_terms(estimator) if spec else int(estimator.n_features_in_)
    classes = [str(label) for label in getattr(estimator, "classes_", ())]
    of_two = classes[1] if len(classes) == 2 else ""
    rows = []
    for output_name, group in groupby(found.rows, key=lambda row: row.output):
        for place, row in enumerate(group):
            kind = _FEATURE if place < n_features else _INTERCEPT
            rows.append(Term(output_name or of_two, kind, row.name, row.value, row.error))
    return Terms(tuple(rows), (found.meaning, found.about_errors))


def write_csv(terms: Terms) -> None:
    """Print a CSV in which every number reads back to the same float."""
    errors = ("" if t.noise_error is None else repr(t.noise_error) for t in terms.rows)
    lines = zip(terms.rows, errors, strict=True)
    output.written_csv(
        _HEADER, [(t.output, t.kind, t.name, repr(t.value), error) for t, error in lines]
    )


def show(terms: Terms) -> None:
    """Print a table, the largest first; what does not differ or is not known has no column."""
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
