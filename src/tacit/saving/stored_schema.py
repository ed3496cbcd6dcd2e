"""The schema of a model of tables in a file, and what must hold between it and the estimator."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier

from tacit.pipeline import Pipeline
from tacit.preprocessing import ClassTarget, NumberTarget, Schema, SchemaEncoder
from tacit.saving.errors import CannotSave, NotAModel
from tacit.table_model import TableModel

_DTYPES = {"<f8": np.float64, "<f4": np.float32}
_KEYS = {"facts", "dtype", "allow_unconfirmed"}
_STEPS = "steps"  # of a Pipeline alone: what its two steps are called


def schema_record(encoder: SchemaEncoder, model: Any) -> dict[str, Any]:
    """Return what a file says of a model's tables, ready for JSON."""
    dtype = np.dtype(encoder.dtype).newbyteorder("<").str
    if dtype not in _DTYPES:
        raise CannotSave(f"features of type {encoder.dtype!r} cannot be saved; use float64.")
    record = {
        "facts": encoder.schema.to_dict(),
        "dtype": dtype,
        "allow_unconfirmed": bool(encoder.allow_unconfirmed),
    }
    steps = getattr(model, _STEPS, None)
    return record if steps is None else {**record, _STEPS: [name for name, _ in steps]}


def model_of_tables(record: Any, estimator: Any) -> TableModel | Pipeline:
    """Return the model of raw tables that a fitted estimator and a stored schema make."""
    if not isinstance(record, dict):
        raise NotAModel("its schema does not have the entries it should have.")
    encoder = encoder_of({key: value for key, value in record.items() if key != _STEPS})
    _check_same_facts(encoder.schema, estimator, needs_target=_STEPS not in record)
    if _STEPS in record:
        names = _step_names(record[_STEPS])
        return Pipeline(list(zip(names, (encoder.fit(), estimator), strict=True)))
    allowed = encoder.allow_unconfirmed
    model = TableModel(
        encoder.schema, clone(estimator), dtype=encoder.dtype, allow_unconfirmed=allowed
    )
    model.estimator_ = estimator
    return model


def encoder_of(record: Any) -> SchemaEncoder:
    """Return the encoder that a stored schema describes."""
    if not isinstance(record, dict) or set(record) != _KEYS:
        raise NotAModel("its schema does not have the entries it should have.")
    dtype, allowed = record["dtype"], record["allow_unconfirmed"]
    if not isinstance(dtype, str) or dtype not in _DTYPES or type(allowed) is not bool:
        raise NotAModel("its schema has features of a type that models do not have.")
    schema = _schema(record["facts"])
    if schema.unconfirmed and not allowed:
        raise NotAModel("its schema has lines that nobody confirmed, which a fit refuses.")
    return SchemaEncoder(schema, _DTYPES[dtype], allow_unconfirmed=allowed)


def _step_names(names: Any) -> list[str]:
    words = isinstance(names, list) and all(isinstance(name, str) and name for name in names)
    if not words or len(set(names)) != 2 or len(names) != 2:
        raise NotAModel("its two steps do not have a name each.")
    return list(names)


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


def _check_same_facts(schema: Schema, estimator: Any, *, needs_target: bool) -> None:
    """Refuse an estimator that was not fitted on rows of this schema."""
    target = schema.target if hasattr(estimator, "predict") else None
    wanted = ClassTarget if is_classifier(estimator) else NumberTarget
    if not isinstance(target, wanted) and (needs_target or target is not None):
        raise NotAModel("its schema's target is not what its estimator predicts.")
    if len(schema.feature_names) != estimator.n_features_in_:
        raise NotAModel("its schema has another number of features than its estimator.")
    # A location has no norm of its own to scale rows by when it is asked.
    if getattr(estimator, "row_norm_", schema.row_norm) != schema.row_norm:
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
