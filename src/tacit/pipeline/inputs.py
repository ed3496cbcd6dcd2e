"""Wrap the input of a pipeline: public facts at once, values after the charge."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn import get_config
from sklearn.base import BaseEstimator, is_classifier, is_regressor
from sklearn.utils import get_tags
from sklearn.utils.metadata_routing import process_routing
from sklearn.utils.validation import has_fit_parameter, validate_data

from tacit import checks
from tacit.estimators.parameters import (
    Assumed,
    assumptions_of,
    classes_of,
    label_range_of,
    n_records_of,
    with_people,
)
from tacit.estimators.tables import checked_weights, note_columns
from tacit.io.memory_tables import chunks, columns_of_batch, n_rows_of
from tacit.io.reading import Paths, open_table
from tacit.noise import Source
from tacit.pipeline.steps import spends
from tacit.preprocessing._base import numbers_of
from tacit.privacy import Relation
from tacit.queries import Facts, Private
from tacit.records.lazy_table import TableOfPeople, UnreadRecords, has_people, shown_rows
from tacit.records.rows_and_labels import (
    as_labels,
    as_rows,
    as_weights,
    check_one_weight_each,
    shape_of,
)
from tacit.schema import ClassTarget, NumberTarget, Schema, SchemaEncoder, SchemaError
from tacit.table_facts import EncodedTable, HandsOn, TableFacts


def facts_of_arrays(
    estimator: Any, n_columns: int, relation: Relation, n_rows: int | None = None
) -> TableFacts:
    """Return the facts of a future table that the estimator's parameters declare."""
    n_columns = checks.count("n_features", n_columns)
    return _facts(estimator, _numbered(n_columns), relation, n_rows, None)


class FittedColumns(BaseEstimator):
    """The names and the number of the columns that a pipeline was fitted to."""


def rows_for_prediction(columns: FittedColumns | None, first: Any, X: Any) -> Any:
    """Return rows for the first step, with their columns checked against the fit."""
    if columns is not None:
        shape_of(X)
        validate_data(columns, X, reset=False, skip_check_array=True)
    if takes_gaps(first):
        return X if hasattr(X, "tocsr") else numbers_of(X)  # the step refuses sparse rows itself
    return as_rows(X)[0]


def table_read_later(
    pipeline: Any,
    X: Any,
    y: Any,
    unit: Any,
    noted: FittedColumns | None = None,
    weights: Any = None,
) -> EncodedTable:
    """Return a table of numbers with its public facts; it is read after the charge.

    Its columns are recorded for later predictions.
    """
    estimator = pipeline.steps[-1][1]
    labelled = () if y is None and not hasattr(estimator, "predict") else (y,)
    noted = FittedColumns() if noted is None else noted
    table, assumptions = note_columns(
        noted, X, *labelled, unit=unit, sparse=not takes_gaps(pipeline.steps[0][1])
    )
    if isinstance(table, EncodedTable):
        checked_weights(weights, table)  # refuses weights that would be dropped
        return table
    if isinstance(table, UnreadRecords):
        table.read()  # a RecordSource is not accepted here: read() only raises
    known = getattr(noted, "feature_names_in_", None)
    names = _numbered(table.n_columns) if known is None else tuple(map(str, known))
    relation = with_people(pipeline._budget(), has_people(table)).relation
    facts = _facts(estimator, names, relation, shown_rows(table), y, assumptions)
    identifiers: list[Any] | None = [] if has_people(table) else None

    def read() -> tuple[Any, Any]:
        if takes_gaps(pipeline.steps[0][1]):
            rows, labels = numbers_of(X), None if y is None else as_labels(y)
        else:
            rows, labels = table.read()
        if identifiers is not None and isinstance(table, TableOfPeople):
            identifiers[:] = list(table.identifiers())
        return rows, labels

    return _weighted(EncodedTable(facts, read, named=identifiers), weights, table.n_rows)


def weights_for_estimator(pipeline: Any, sample_weight: Any, params: Mapping[str, Any]) -> Any:
    """Return the weights for the estimator, by scikit-learn's routing if it is enabled.

    ``params`` are further keywords of the fit; ``<estimator>__sample_weight`` is the only one.
    """
    last, estimator = pipeline.steps[-1]
    given = {} if sample_weight is None else {"sample_weight": sample_weight}
    if get_config()["enable_metadata_routing"]:
        given = dict(process_routing(pipeline, "fit", **given, **params)[last]["fit"])
    else:
        own = f"{last}__sample_weight"
        for name in params.keys() - {own}:
            raise TypeError(f"fit has no parameter {name!r}; it takes unit, and {own}.")
        if given and own in params:
            raise TypeError(f"fit takes one of sample_weight and {own}, got both; leave one out.")
        given = {"sample_weight": params.get(own), **given}
    weights = given.get("sample_weight")
    if weights is not None and not has_fit_parameter(estimator, "sample_weight"):
        raise TypeError(
            f"step {last!r} ({type(estimator).__name__}) takes no sample_weight; leave it out."
        )
    if weights is not None and pipeline.epsilon is not None and estimator.max_weight is None:
        raise ValueError(
            f"max_weight of step {last!r} is not declared, and all steps are planned before "
            "weights are read; pass the greatest weight that is possible, max_weight=..."
        )
    return weights


def _weighted(table: EncodedTable, weights: Any, n_rows: int | None) -> EncodedTable:
    """Return the table with a weight for each record, if there are weights."""
    if weights is None:
        return table
    check_one_weight_each(weights, n_rows)

    def weigh() -> npt.NDArray[np.float64]:
        numbers = as_weights(weights, len(weights))
        return numbers if table.places is None else numbers[np.array(table.places, dtype=np.int64)]

    return replace(table, weigh=weigh)


def _facts(
    estimator: Any,
    names: tuple[str, ...],
    relation: Relation,
    n_rows: int | None,
    y: Any,
    *assumptions: Assumed,
) -> TableFacts:
    """Return the facts from parameters, from the type of the labels, or inferred if requested."""
    own = estimator.get_params(deep=False)
    n_records = n_records_of(own.get("n_records"), n_rows, relation)
    all_assumptions: list[Assumed] = [*assumptions, n_records]
    classes = label_range = None
    if "classes" in own:
        of_classes = classes_of(own["classes"], y)
        classes = tuple(of_classes.declared.tolist())
        all_assumptions.append(of_classes)
    if "label_range" in own:
        of_labels = label_range_of(own["label_range"], y)
        label_range = of_labels.value
        all_assumptions.append(of_labels)
    return TableFacts(
        names,
        math.inf,
        n_records.value,
        classes,
        label_range,
        assumptions_of(*all_assumptions),
        relation.by_person,
    )


def takes_gaps(step: Any) -> bool:
    """Return whether a step accepts rows with missing values."""
    allowed: bool = hasattr(step, "__sklearn_tags__") and get_tags(step).input_tags.allow_nan
    return allowed and spends(step)


def _numbered(n_columns: int) -> tuple[str, ...]:
    return tuple(f"x{place}" for place in range(n_columns))


def labels_as_needed(encoder: SchemaEncoder, estimator: Any) -> SchemaEncoder:
    """Return the encoder without a target if the estimator, a location, uses none."""
    if hasattr(estimator, "predict") or encoder.schema.target is None:
        return encoder
    return _with_schema(encoder, replace(encoder.schema, target=None))


def with_words(encoder: SchemaEncoder, learned: Mapping[str, Sequence[str]]) -> SchemaEncoder:
    """Return the encoder with the words of its open categories."""
    return _with_schema(encoder, encoder.schema.with_words(learned))


def _with_schema(encoder: SchemaEncoder, schema: Schema) -> SchemaEncoder:
    return SchemaEncoder(schema, encoder.dtype, allow_unconfirmed=encoder.allow_unconfirmed)


def check_target(schema: Schema, estimator: Any) -> None:
    """Refuse a schema without the target that a classifier or a regressor predicts."""
    wanted = ClassTarget if is_classifier(estimator) else NumberTarget
    predicts = is_classifier(estimator) or is_regressor(estimator)
    if predicts and not isinstance(schema.target, wanted):
        raise SchemaError(
            f"{type(estimator).__name__} needs a schema whose target has "
            f"{'classes' if wanted is ClassTarget else 'lower and upper'}; declare one, or "
            "choose another estimator."
        )


@dataclass(frozen=True)
class Raw:
    """A table as given, not read yet, and how to encode it.

    Parameters
    ----------
    facts
        The public facts of the encoded rows.
    encoded
        Takes an encoder, or None for its own; returns the encoded table, still unread.
    batches
        Reads some columns unchanged, in batches.
    identifiers
        The unit of each record, or the name of its column, if there is one.
    """

    facts: TableFacts
    encoded: Callable[[SchemaEncoder | None], EncodedTable]
    batches: Callable[[list[str]], Iterable[Mapping[str, Any]]] = lambda _: ()
    identifiers: Any = None

    def columns(self, names: Sequence[str]) -> dict[str, list[Any]]:
        """Read some columns unchanged."""
        read: dict[str, list[Any]] = {name: [] for name in names}
        for batch in self.batches(list(names)):
            for name in names:
                read[name] += batch[name].raw()
        return read

    def unit(self) -> list[Any] | None:
        """Read the unit of each record, if there is one."""
        identifiers = self.identifiers
        if identifiers is None:
            return None
        if isinstance(identifiers, str):
            return self.columns([identifiers])[identifiers]
        return list(identifiers)


def raw_table(encoder: SchemaEncoder, X: Any, y: Any, unit: Any, weights: Any) -> Raw:
    """Return a table in memory with its schema."""
    facts = encoder.facts_out()
    n_rows = None if weights is None else n_rows_of(X)
    return Raw(
        replace(facts, of_people=facts.of_people or unit is not None),
        lambda other: _weighted((other or encoder).unread(X, y, unit), weights, n_rows),
        lambda names: (chunk for _, chunk in chunks(X, names)),
        encoder.schema.unit if unit is None else unit,
    )


def raw_file(
    encoder: SchemaEncoder,
    path: Paths,
    delimiter: str | None,
    progress: Callable[[float], None] | None,
) -> Raw:
    """Return a file with its schema."""
    return Raw(
        encoder.facts_out(),
        lambda other: (other or encoder).unread_file(path, delimiter=delimiter, progress=progress),
        lambda names: map(columns_of_batch, open_table(path, delimiter=delimiter).batches(names)),
        encoder.schema.unit,
    )


def raw_numbers(table: EncodedTable) -> Raw:
    """Return a table of numbers, which needs no encoder and has no words."""
    return Raw(table.facts, lambda _: table)


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
