"""A model as named members, and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sklearn import pipeline as sklearn_pipeline
from sklearn.utils.validation import check_is_fitted

from tacit import __version__
from tacit.erm import Plan
from tacit.models import SOMETIMES, ModelSpec
from tacit.pipeline import Pipeline, taken_apart
from tacit.privacy import Guarantee, Relation
from tacit.public_facts import budget_of, with_people
from tacit.saving.errors import CannotSave, NotAModel
from tacit.saving.guarantee_file import (
    CERTIFICATE,
    check_promise,
    from_certificate,
    to_certificate,
)
from tacit.saving.released import NOT_STORED, STORED, check_released, kind_of
from tacit.saving.stored_schema import model_of_tables, schema_record
from tacit.saving.text import from_json, to_json
from tacit.saving.values import Reader, Writer
from tacit.table_model import TableModel

DOCUMENT = "model.json"
FORMAT = "tacit-model"
VERSION = 1

_KEYS = {"format", "version", "tacit", "kind", "parameters", "released", "plan", "schema"}


@dataclass(frozen=True)
class Stored:
    """A model as it came from a file, and what the file says of it."""

    model: Any
    record: Mapping[str, Any]


def members_of(model: Any) -> dict[str, bytes]:
    """Return the members of a fitted model: what was released, and what is public."""
    schema = None
    if type(model) in (TableModel, Pipeline, sklearn_pipeline.Pipeline):
        schema, model = _apart(model)
    word = kind_of(model)
    if word is None:
        names = sorted(spec.model.__name__ for spec in STORED.values())
        raise CannotSave(
            f"a {type(model).__name__} cannot be saved; tacit saves a fitted {', '.join(names)}, "
            "or a TableModel or Pipeline of one, which encodes a table by its schema."
        )
    check_is_fitted(model, "privacy_")
    spec, writer = STORED[word], Writer()
    public = {k: v for k, v in model.get_params(deep=False).items() if k not in NOT_STORED}
    # A list of what may leave, not of what may not: whatever else the object carries stays behind.
    released = {name: getattr(model, name) for name in spec.released if hasattr(model, name)}
    record = {
        "format": FORMAT,
        "version": VERSION,
        "tacit": __version__,
        "kind": word,
        "parameters": writer.write_map(public, "parameters"),
        "released": writer.write_map(released, "released"),
        "plan": writer.write(getattr(model, "plan_", None), "plan"),
        "schema": schema,
    }
    certificate = to_certificate(model.privacy_)
    return {DOCUMENT: to_json(record), CERTIFICATE: certificate, **writer.members}


def _apart(model: Any) -> tuple[dict[str, Any], Any]:
    """Return what a file says of a model's tables, and the estimator with what it was told."""
    try:
        encoder, estimator = taken_apart(model)
    except TypeError as why:
        raise CannotSave(f"the model cannot be saved: {why}") from None
    assert encoder is not None
    return schema_record(encoder, model), estimator


def stored_in(members: Mapping[str, bytes]) -> Stored:
    """Return the model of a file's members."""
    record = _record_of(members)
    spec = STORED[record["kind"]]
    reader = Reader(members)
    parameters = reader.read_map(record["parameters"], "parameters")
    released = reader.read_map(record["released"], "released")
    plan = reader.read(record["plan"], "plan")
    if list(members) != [DOCUMENT, CERTIFICATE, *reader.used]:
        raise NotAModel("it has a member that the model does not use, or members out of order.")
    model = _unfitted(spec, parameters)
    _restore(model, spec, released, from_certificate(members[CERTIFICATE]), plan)
    if record["schema"] is not None:
        model = model_of_tables(record["schema"], model)
    return Stored(model, record)


def _record_of(members: Mapping[str, bytes]) -> dict[str, Any]:
    """Return the document of a file, of a version and kind that this tacit knows."""
    if DOCUMENT not in members or CERTIFICATE not in members:
        raise NotAModel(f"it has no {DOCUMENT} and {CERTIFICATE}; it was not saved by tacit.")
    record = from_json(members[DOCUMENT], DOCUMENT)
    if record.get("format") != FORMAT:
        raise NotAModel(f"{DOCUMENT} does not say that it is a {FORMAT}.")
    if record.get("version") != VERSION or type(record["version"]) is not int:
        raise NotAModel(
            f"it is of version {record.get('version')!r}, written by tacit "
            f"{record.get('tacit')!r}; this is tacit {__version__}, which reads version {VERSION}."
            " Install a tacit that reads it."
        )
    if set(record) != _KEYS or not isinstance(record["tacit"], str):
        raise NotAModel(f"{DOCUMENT} does not have the entries of version {VERSION}.")
    if not isinstance(record["kind"], str) or record["kind"] not in STORED:
        raise NotAModel(
            f"it is a model of kind {record['kind']!r}, which this tacit ({__version__}) does not "
            f"know; it was written by tacit {record['tacit']!r}. Install that one."
        )
    return record


def _unfitted(spec: ModelSpec, parameters: dict[str, Any]) -> Any:
    known = set(spec.model().get_params(deep=False)) - set(NOT_STORED)
    if not set(parameters) <= known:
        unknown = sorted(set(parameters) - known)[0]
        raise NotAModel(f"{spec.model.__name__} has no parameter {unknown[:60]!r}.")
    return spec.model(**parameters)


def _restore(
    model: Any, spec: ModelSpec, released: dict[str, Any], promise: Guarantee, plan: Any
) -> None:
    """Give a model what its fit had released, if it all fits together."""
    if set(spec.released) - SOMETIMES - set(released) or set(released) - set(spec.released):
        raise NotAModel(f"it does not hold what a {spec.model.__name__} releases.")
    for name, value in released.items():
        setattr(model, name, value)
    model.privacy_ = promise
    if spec.has_plan:
        model.plan_ = plan
    check_released(model, spec)
    _check_budget(model, plan, spec)
    check_promise(model)


def _check_budget(model: Any, plan: Any, spec: ModelSpec) -> None:
    try:
        budget = budget_of(model.epsilon, model.delta, model.relation)
    except (TypeError, ValueError) as why:
        raise NotAModel(f"its parameters are not a budget: {why}") from why
    promise = model.privacy_
    if promise.relation.by_person and budget.relation is Relation.ADD_REMOVE:
        budget = with_people(budget, has_people=True)  # the fit was told whose each record is
    if promise.relation is not budget.relation or promise.target_delta != budget.delta:
        raise NotAModel("its guarantee is for another budget than its parameters.")
    if plan is None:
        return
    if not spec.has_plan or not isinstance(plan, Plan):
        raise NotAModel("it has a plan that its kind of model does not have.")
    if plan.budget != budget or plan.problem.n_features != model.n_features_in_:
        raise NotAModel("its plan is for another budget or table than its parameters.")
