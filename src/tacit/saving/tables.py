"""The schema of a `TableModel` in a file, and what must hold between it and the estimator."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier

from tacit.preprocessing import ClassTarget, NumberTarget, Schema
from tacit.saving.errors import CannotSave, NotAModel
from tacit.table_model import TableModel

_DTYPES = {"<f8": np.float64, "<f4": np.float32}
_KEYS = {"facts", "dtype", "allow_unconfirmed"}


def schema_record(model: TableModel) -> dict[str, Any]:
    """Return what a file says of a model's tables, ready for JSON."""
    dtype = np.dtype(model.dtype).newbyteorder("<").str
    if dtype not in _DTYPES:
        raise CannotSave(f"features of type {model.dtype!r} cannot be saved; use float64.")
    return {
        "facts": model.schema.to_dict(),
        "dtype": dtype,
        "allow_unconfirmed": bool(model.allow_unconfirmed),
    }


def table_model_of(record: Any, estimator: Any) -> TableModel:
    """Return the model of raw tables that a fitted estimator and a stored schema make."""
    if not isinstance(record, dict) or set(record) != _KEYS:
        raise NotAModel("its schema does not have the entries it should have.")
    dtype, allowed = record["dtype"], record["allow_unconfirmed"]
    if not isinstance(dtype, str) or dtype not in _DTYPES or type(allowed) is not bool:
        raise NotAModel("its schema has features of a type that models do not have.")
    schema = _schema(record["facts"])
    _check_same_facts(schema, estimator)
    if schema.unconfirmed and not allowed:
        raise NotAModel("its schema has lines that nobody confirmed, which a fit refuses.")
    model = TableModel(schema, clone(estimator), dtype=_DTYPES[dtype], allow_unconfirmed=allowed)
    model.estimator_ = estimator
    return model


def _schema(facts: Any) -> Schema:
    try:
        schema = Schema.from_dict(facts)
        whole = schema.to_dict() == facts
    except (TypeError, ValueError, KeyError, AttributeError, ArithmeticError) as why:
        raise NotAModel(f"its schema is not possible: {why}") from why
    if not whole:
        raise NotAModel("its schema is not written as tacit writes it.")
    return schema


def _is_range(declared: Any, expected: tuple[float, float]) -> bool:
    numbers = isinstance(declared, tuple) and all(type(end) in (int, float) for end in declared)
    return numbers and declared == expected


def _check_same_facts(schema: Schema, estimator: Any) -> None:
    """Refuse an estimator that was not fitted on rows of this schema."""
    target = schema.target
    if not isinstance(target, ClassTarget if is_classifier(estimator) else NumberTarget):
        raise NotAModel("its schema's target is not what its estimator predicts.")
    if len(schema.feature_names) != estimator.n_features_in_:
        raise NotAModel("its schema has another number of features than its estimator.")
    if getattr(estimator, "row_norm_", None) != schema.row_norm:
        raise NotAModel("its schema has another row norm than its estimator.")
    if isinstance(target, ClassTarget):
        # as a fit leaves them: sorted
        labels = np.unique(target.labels)
        if labels.dtype.kind != estimator.classes_.dtype.kind or not np.array_equal(
            labels, estimator.classes_
        ):
            raise NotAModel("its schema has other classes than its estimator.")
    elif target is not None and not _is_range(estimator.label_range, (target.lower, target.upper)):
        raise NotAModel("its schema has another range of labels than its estimator.")
    if not set(schema.assumptions) <= set(estimator.privacy_.assumptions):
        raise NotAModel("its guarantee does not say which lines of its schema were guessed.")
