"""Wrap the input of a pipeline: public facts at once, values after the charge."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from sklearn.base import BaseEstimator
from sklearn.utils import get_tags
from sklearn.utils.validation import validate_data

from tacit.estimators.parameters import (
    Assumed,
    assumptions_of,
    budget_of,
    classes_of,
    label_range_of,
    n_records_of,
    with_people,
)
from tacit.estimators.tables import note_columns
from tacit.io.memory_tables import chunks, columns_of_batch
from tacit.io.reading import open_table
from tacit.noise import Source
from tacit.pipeline.steps import spends
from tacit.preprocessing._base import numbers_of
from tacit.privacy import Relation
from tacit.queries import Facts, Private
from tacit.records.lazy_table import (
    TableOfPeople,
    UnreadRecords,
    UnreadTable,
    has_people,
    shown_rows,
)
from tacit.records.rows_and_labels import as_labels, as_rows, shape_of
from tacit.schema import SchemaEncoder
from tacit.table_facts import EncodedTable, HandsOn, TableFacts


def facts_of_arrays(
    estimator: Any, n_columns: int, relation: Relation, *, names: Any = None
) -> TableFacts:
    """Return the facts of a future table that the estimator's parameters declare."""
    return _facts(estimator, _numbered(n_columns) if names is None else names, relation, None, None)


class PipelineOfArrays(BaseEstimator):
    """The names and the number of the columns that a pipeline was fitted to."""


def rows_to_ask_about(columns: PipelineOfArrays | None, first: Any, X: Any) -> Any:
    """Return rows for the first step, with their columns checked against the fit."""
    if columns is not None:
        shape_of(X)
        validate_data(columns, X, reset=False, skip_check_array=True)
    if takes_gaps(first):
        return X if hasattr(X, "tocsr") else numbers_of(X)  # the step refuses sparse rows itself
    return as_rows(X)[0]


def unread_arrays(
    pipeline: Any, X: Any, y: Any, unit: Any, noted: PipelineOfArrays | None = None
) -> EncodedTable:
    """Return a table of numbers with its public facts; it is read after the charge.

    Its columns are recorded for later predictions.
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
        table.read()  # raises before anything is charged
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
    """Return the facts from parameters, from the type of the labels, or inferred if requested."""
    own = estimator.get_params(deep=False)
    n_rows = None if table is None else shown_rows(table)
    n_records = n_records_of(own.get("n_records"), n_rows, relation)
    assumptions: list[Assumed] = [*said, n_records]
    classes = label_range = None
    if "classes" in own:
        of_classes = classes_of(own["classes"], y)
        classes = tuple(of_classes.value.tolist())
        assumptions.append(of_classes)
    if "label_range" in own:
        of_labels = label_range_of(own["label_range"], y)
        label_range = of_labels.value
        assumptions.append(of_labels)
    return TableFacts(
        names,
        math.inf,
        n_records.value,
        classes,
        label_range,
        assumptions_of(*assumptions),
        relation.by_person,
    )


def takes_gaps(step: Any) -> bool:
    """Return whether a step accepts rows with missing values."""
    allowed: bool = hasattr(step, "__sklearn_tags__") and get_tags(step).input_tags.allow_nan
    return allowed and spends(step)


def _numbered(n_columns: int) -> tuple[str, ...]:
    return tuple(f"x{place}" for place in range(n_columns))


Words = dict[str, list[Any]]


class Raw(Protocol):
    """An unread table."""

    def columns(self, names: Sequence[str]) -> Words:
        """Read some columns unchanged."""

    def unit(self) -> list[Any] | None:
        """Read the unit of each record, if there is one."""

    def encoded(self, encoder: SchemaEncoder | None) -> EncodedTable:
        """Return the encoded rows, to be read later."""


@dataclass(frozen=True)
class Encoded:
    """A view of the rows that an encoder makes of a table. Rows of numbers are unchanged."""

    encoder: SchemaEncoder | None

    def apply(self, records: Private, facts: Facts, source: Source) -> tuple[Private, Facts]:
        """Return the rows."""
        return records.encoded(self.encoder).held(), facts


@dataclass(frozen=True)
class Through:
    """A view of the rows that a fitted step makes of an `EncodedTable`."""

    step: HandsOn
    facts: TableFacts  # of the output

    def apply(self, records: Private, facts: Facts, source: Source) -> tuple[Private, Facts]:
        """Return the rows."""
        return records.through(self.step, self.facts).held(), facts


@dataclass(frozen=True)
class RawTable:
    """A table in memory with its schema."""

    encoder: SchemaEncoder
    table: Any
    y: Any = None
    identifiers: Any = None

    def columns(self, names: Sequence[str]) -> Words:
        """Read some columns unchanged."""
        read: Words = {name: [] for name in names}
        for _, chunk in chunks(self.table, list(names)):
            for name in names:
                read[name] += chunk[name].raw()
        return read

    def unit(self) -> list[Any] | None:
        """Read the unit of each record, if there is one."""
        if self.identifiers is not None:
            return list(self.identifiers)
        named = self.encoder.schema.unit
        return None if named is None else self.columns([named])[named]

    def encoded(self, encoder: SchemaEncoder | None) -> EncodedTable:
        """Return the encoded rows, to be read later."""
        return (encoder or self.encoder).unread(self.table, self.y, self.identifiers)


@dataclass(frozen=True)
class RawFile:
    """A file with its schema."""

    encoder: SchemaEncoder
    path: str | os.PathLike[str]
    delimiter: str | None = None
    progress: Callable[[float], None] | None = None

    def columns(self, names: Sequence[str]) -> Words:
        """Read some columns unchanged."""
        read: Words = {name: [] for name in names}
        for batch in open_table(self.path, delimiter=self.delimiter).batches(list(names)):
            values = columns_of_batch(batch)
            for name in names:
                read[name] += values[name].raw()
        return read

    def unit(self) -> list[Any] | None:
        """Read the unit of each record, if there is one."""
        named = self.encoder.schema.unit
        return None if named is None else self.columns([named])[named]

    def encoded(self, encoder: SchemaEncoder | None) -> EncodedTable:
        """Return the encoded rows, to be read later."""
        return (encoder or self.encoder).unread_file(
            self.path, delimiter=self.delimiter, progress=self.progress
        )


@dataclass(frozen=True)
class RawNumbers:
    """A table of numbers, which needs no encoder."""

    table: EncodedTable

    def columns(self, names: Sequence[str]) -> Words:
        """Refuse: a table of numbers has no words."""
        raise TypeError(f"columns {', '.join(names)} are to be read from a table with a schema.")

    def unit(self) -> list[Any] | None:
        """Return None: only vocabularies read the unit here."""
        return None

    def encoded(self, encoder: SchemaEncoder | None) -> EncodedTable:
        """Return the rows unchanged."""
        del encoder
        return self.table
