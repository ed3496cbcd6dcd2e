"""Read and write additive models: the schema, the terms and the intercept.

Of the plan the budget is stored, which an accountant may have changed. The rest follows from the
parameters and the schema, and is made anew.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from tacit.additive import AdditiveClassifier, AdditiveRegressor, Term
from tacit.additive.grid import GridColumn
from tacit.io.errors import SchemaError
from tacit.privacy import Budget, Guarantee
from tacit.saving.codec import Reader, Writer
from tacit.saving.container import NotAModel
from tacit.saving.validation import NOT_STORED, check_budget
from tacit.schema import Schema

# Words of files, which never change their meaning.
KINDS: Mapping[str, type[Any]] = {
    "additive_classifier": AdditiveClassifier,
    "additive_regressor": AdditiveRegressor,
}
_RELEASED = {"intercept_", "n_records_", "is_small_"}
_ARRAYS = (
    "curve",
    "slope",
    "counts",
    "count_std",
    "label_mean",
    "label_mean_interval",
)
_NUMBERS = ("low", "high", "centre", "gain")
_TERM = {*_ARRAYS, *_NUMBERS, "levels", "edges", "bin_of_level", "kept"}


def is_additive(model: Any) -> bool:
    """Return whether a model is an additive one."""
    return type(model) in KINDS.values()


def additive_record(model: Any, writer: Writer) -> dict[str, Any]:
    """Return the entry of a fitted additive model."""
    word = next(word for word, kind in KINDS.items() if kind is type(model))
    hidden = {*NOT_STORED, "schema"}
    public = {k: v for k, v in model.get_params(deep=False).items() if k not in hidden}
    terms = [
        {name: getattr(term, name) for name in sorted(_TERM)} for term in model.terms_.values()
    ]
    released = {name: getattr(model, name) for name in sorted(_RELEASED)}
    return {
        "kind": word,
        "parameters": writer.write_map(public, "parameters"),
        "facts": model.schema.to_dict(),
        "budget": writer.write(model.plan_.budget, "budget"),
        "terms": writer.write(terms, "terms"),
        "released": writer.write_map(released, "released"),
    }


def additive_of(record: Mapping[str, Any], reader: Reader, promise: Guarantee) -> Any:
    """Restore an additive model, and check that its parts are consistent."""
    kind = KINDS[record["kind"]]
    parameters = reader.read_map(record["parameters"], "parameters")
    known = {"schema", *NOT_STORED}
    schema = _schema(record["facts"])
    if set(parameters) != set(kind(schema).get_params(deep=False)) - known:
        raise NotAModel(f"it does not have the parameters of a {kind.__name__}.")
    model = kind(schema, **parameters)
    budget = reader.read(record["budget"], "budget")
    stored = reader.read(record["terms"], "terms")
    released = reader.read_map(record["released"], "released")
    declared = check_budget(promise, model.epsilon, model.delta, model.relation)
    if not isinstance(budget, Budget) or declared != replace(
        budget, delta=budget.target_delta, requested_delta=None
    ):
        raise NotAModel("its plan is for another budget than its parameters.")
    try:
        n_outputs, columns = model._kind().n_outputs, model._grid()
        plan = model._plan(budget)
    except (TypeError, ValueError, ArithmeticError) as why:
        raise NotAModel(f"its parameters or its schema are not possible: {why}") from why
    event = promise.event
    if plan.event not in (event, getattr(event, "would_be", None)):
        raise NotAModel("its guarantee is not about the release that its plan describes.")
    if not isinstance(stored, list) or len(stored) != len(columns):
        raise NotAModel("it does not have one term for each column of its schema.")
    if set(released) != _RELEASED:
        raise NotAModel(f"it does not hold what a {kind.__name__} releases.")
    terms = [_term(c, one, n_outputs) for c, one in zip(columns, stored, strict=True)]
    _check_released(released, n_outputs)
    model.plan_, model.privacy_ = plan, promise
    model._set_released(terms, **released)
    return model


def _schema(facts: Any) -> Schema:
    try:
        schema = Schema.from_dict(facts)
        whole = schema.to_dict() == facts
    except (TypeError, ValueError, KeyError, AttributeError, ArithmeticError, SchemaError) as why:
        raise NotAModel(f"its schema is not possible: {why}") from why
    if not whole:
        raise NotAModel("its schema is not written as tacit writes it.")
    return schema


def _term(column: GridColumn, stored: Any, n_outputs: int) -> Term:
    """Return the term of a column; refuse arrays that no fit releases."""
    if not isinstance(stored, dict) or set(stored) != _TERM:
        raise NotAModel(f"the term of {column.name!r} does not have the entries of a term.")
    levels = stored["levels"]
    if not isinstance(levels, tuple) or not all(isinstance(level, str) for level in levels):
        raise NotAModel(f"the term of {column.name!r} has bins without names.")
    k = len(levels)
    shapes = {"curve": (k, n_outputs), "slope": (n_outputs,), "counts": (k,), "count_std": (k,)}
    shapes |= {"label_mean": (k, n_outputs), "label_mean_interval": (k, n_outputs, 2)}
    for name, shape in shapes.items():
        array = stored[name]
        if not isinstance(array, np.ndarray) or array.dtype != np.float64 or array.shape != shape:
            raise NotAModel(f"{name} of {column.name!r} is not an array of doubles of {shape}.")
        if not name.startswith("label_mean") and not np.all(np.isfinite(array)):
            raise NotAModel(f"{name} of {column.name!r} has a value that is not finite.")
    numbers = [stored[name] for name in _NUMBERS]
    if not all(type(n) is float and np.isfinite(n) for n in numbers) or numbers[0] >= numbers[1]:
        raise NotAModel(f"the line of {column.name!r} is not possible.")
    if type(stored["kept"]) is not bool or not _has_bins(column, stored, k):
        raise NotAModel(f"the bins of {column.name!r} are not those of its column.")
    return Term(column=column.column, **stored)


def _has_bins(column: GridColumn, stored: Mapping[str, Any], k: int) -> bool:
    edges, places = stored["edges"], stored["bin_of_level"]
    if column.is_number:
        whole = isinstance(edges, np.ndarray) and edges.dtype == np.float64
        return bool(
            whole
            and edges.shape == (k - 2,)
            and np.all(np.isfinite(edges))
            and np.all(np.diff(edges) >= 0)
            and places is None
        )
    whole = isinstance(places, np.ndarray) and places.dtype == np.int64
    return bool(
        whole
        and places.shape == (column.n_cells,)
        and np.all((places >= 0) & (places < k))
        and edges is None
    )


def _check_released(released: Mapping[str, Any], n_outputs: int) -> None:
    intercept = released["intercept_"]
    if n_outputs == 1:
        sound = type(intercept) is float and np.isfinite(intercept)
    else:
        sound = isinstance(intercept, np.ndarray) and intercept.dtype == np.float64
        sound = sound and intercept.shape == (n_outputs,) and bool(np.isfinite(intercept).all())
    n = released["n_records_"]
    if not sound or type(n) is not float or not n > 0 or type(released["is_small_"]) is not bool:
        raise NotAModel("its intercept or its number of records is not possible.")
