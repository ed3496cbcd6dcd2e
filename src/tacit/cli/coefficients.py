"""The numbers a model released, each with its name: a table for people, CSV for programs."""

from __future__ import annotations

import csv
import sys
from dataclasses import dataclass
from typing import Any

from tacit.cli import output
from tacit.cli.errors import Refused

_FEATURE, _INTERCEPT = "feature", "intercept"
_HEADER = ("class", "kind", "name", "value", "noise_error")


@dataclass(frozen=True)
class Term:
    """A released number; ``kind`` tells an intercept from a feature that is called so."""

    output: str
    kind: str
    name: str
    value: float
    noise_error: float | None

    def to_dict(self) -> dict[str, Any]:
        """Return a plain dictionary, the class by that word."""
        record = dict(vars(self))
        return {"class": record.pop("output") or None, **record}


def terms_of(model: Any) -> tuple[Term, ...]:
    """Return all coefficients of a fitted model, intercepts after the features of their class.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.cli.coefficients import terms_of
    >>> from tacit.linear_model import LogisticRegression
    >>> X = np.random.default_rng(0).standard_normal((2000, 2))
    >>> model = LogisticRegression(1.0, 1e-6, row_norm=2.0, classes=[False, True])
    >>> [(term.kind, term.name) for term in terms_of(model.fit(X, X[:, 0] > 0))]
    [('feature', 'feature 1'), ('feature', 'feature 2'), ('intercept', 'intercept')]
    """
    from tacit.report import facts_of

    found = facts_of(model).coefficients
    if found is None:
        raise Refused("the model has no coefficients; leave --coefficients out.")
    n_features = int(getattr(model, "estimator_", model).n_features_in_)
    terms, place = [], 0
    for before, row in zip((None, *found.rows), found.rows, strict=False):
        place = place + 1 if before is not None and before.output == row.output else 0
        kind = _FEATURE if place < n_features else _INTERCEPT
        terms.append(Term(row.output, kind, row.name, row.value, row.error))
    return tuple(terms)


def write_csv(terms: tuple[Term, ...]) -> None:
    """Print a CSV in which every number reads back to the same float."""
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(_HEADER)
    for term in terms:
        error = "" if term.noise_error is None else repr(term.noise_error)
        writer.writerow((term.output, term.kind, term.name, repr(term.value), error))


def show(terms: tuple[Term, ...]) -> None:
    """Print a table, the largest first; what the model has none of has no column."""
    ordered = sorted(terms, key=lambda term: -abs(term.value))
    watched = output.is_watched()
    form = "{:.4g}".format if watched else repr
    has_class = any(term.output for term in terms)
    has_error = any(term.noise_error is not None for term in terms)
    header = ["name", *(["class"] if has_class else []), "value", *(["noise"] if has_error else [])]
    rows = []
    for term in ordered:
        name = f"({term.name})" if term.kind == _INTERCEPT else term.name
        error = "" if term.noise_error is None else f"±{form(term.noise_error)}"
        row = [name, *([term.output] if has_class else []), form(term.value)]
        rows.append([*row, *([error] if has_error else [])])
    output.table("Released coefficients, by size", header, rows, texts=1 + has_class)
