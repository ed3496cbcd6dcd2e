"""What is public of arrays and frames of numbers that come without a schema."""

from __future__ import annotations

import math
from typing import Any

from sklearn.base import BaseEstimator
from sklearn.utils import get_tags
from sklearn.utils.validation import validate_data

from tacit.linear_model._tables import note_columns
from tacit.pipeline.steps import spends
from tacit.preprocessing.private._numbers import numbers_of
from tacit.privacy import Relation
from tacit.public_facts import (
    Assumed,
    assumptions_of,
    budget_of,
    classes_of,
    label_range_of,
    n_records_of,
    with_people,
)
from tacit.records import UnreadRecords, UnreadTable, as_labels, as_rows
from tacit.records.rows_and_labels import shape_of
from tacit.records.unread import TableOfPeople, has_people, shown_rows
from tacit.table_facts import EncodedTable, TableFacts


def facts_of_arrays(
    estimator: Any, n_columns: int, relation: Relation, *, names: Any = None
) -> TableFacts:
    """Return what the estimator's parameters declare of a table to come."""
    return _facts(estimator, _numbered(n_columns) if names is None else names, relation, None, None)


class PipelineOfArrays(BaseEstimator):
    """The names and the number of the columns that a pipeline was fitted to."""


def rows_to_ask_about(columns: PipelineOfArrays | None, first: Any, X: Any) -> Any:
    """Return rows as the first step takes them, of the columns that a fit noted, if it did."""
    if columns is not None:
        shape_of(X)
        validate_data(columns, X, reset=False, skip_check_array=True)
    if takes_gaps(first):
        return X if hasattr(X, "tocsr") else numbers_of(X)  # sparse rows it refuses itself
    return as_rows(X)[0]


def unread_arrays(
    pipeline: Any, X: Any, y: Any, unit: Any, noted: PipelineOfArrays | None = None
) -> EncodedTable:
    """Return a table of numbers, read when its plan is charged, with what is public of it.

    What its columns are is noted, for questions to come.
    """
    estimator = pipeline.steps[-1][1]
    labelled = () if y is None and not hasattr(estimator, "predict") else (y,)
    noted = PipelineOfArrays() if noted is None else noted
    table, said = note_columns(
        noted, X, *labelled, unit=unit, sparse=not takes_gaps(pipeline.steps[0][1])
    )
    if isinstance(table, EncodedTable):
        return table
    if isinstance(table, UnreadRecords):
        table.read()  # refuses, before anything is charged
    known = getattr(noted, "feature_names_in_", None)
    names = _numbered(table.n_columns) if known is None else tuple(map(str, known))
    budget = budget_of(pipeline.epsilon, pipeline.delta, pipeline.relation, pipeline.accountant)
    relation = with_people(budget, has_people(table)).relation
    facts = _facts(estimator, names, relation, table, y, said)
    named: list[Any] | None = [] if has_people(table) else None

    def read() -> tuple[Any, Any]:
        if takes_gaps(pipeline.steps[0][1]):
            rows, labels = numbers_of(X), None if y is None else as_labels(y)
        else:
            rows, labels = table.read()
        if named is not None and isinstance(table, TableOfPeople):
            named[:] = list(table.identifiers())
        return rows, labels

    return EncodedTable(facts, read, named=named)


def _facts(
    estimator: Any,
    names: tuple[str, ...],
    relation: Relation,
    table: UnreadTable | None,
    y: Any,
    *said: Assumed,
) -> TableFacts:
    """Return the facts that parameters declare, or that the labels' type or 'infer' tells."""
    own = estimator.get_params(deep=False)
    n_rows = None if table is None else shown_rows(table)
    n_records = n_records_of(own.get("n_records"), n_rows, relation)
    told: list[Assumed] = [*said, n_records]
    classes = label_range = None
    if "classes" in own:
        of_classes = classes_of(own["classes"], y)
        classes = tuple(of_classes.value.tolist())
        told.append(of_classes)
    if "label_range" in own:
        of_labels = label_range_of(own["label_range"], y)
        label_range = of_labels.value
        told.append(of_labels)
    return TableFacts(
        names,
        math.inf,
        n_records.value,
        classes,
        label_range,
        assumptions_of(*told),
        relation.by_person,
    )


def takes_gaps(step: Any) -> bool:
    """Return whether a step takes rows in which values are missing."""
    allowed: bool = hasattr(step, "__sklearn_tags__") and get_tags(step).input_tags.allow_nan
    return allowed and spends(step)


def _numbered(n_columns: int) -> tuple[str, ...]:
    return tuple(f"x{place}" for place in range(n_columns))
