"""A model as named members, and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from sklearn import pipeline as sklearn_pipeline
from sklearn.utils.validation import check_is_fitted

from tacit import __version__
from tacit.engine import Plan as PlanOfSteps
from tacit.erm import Plan
from tacit.models import SOMETIMES, ModelSpec
from tacit.pipeline import Pipeline, PrivatePipeline, taken_apart
from tacit.pipeline.apart import with_encoder
from tacit.privacy import Guarantee, Relation
from tacit.public_facts import budget_of, with_people
from tacit.saving.errors import CannotSave, NotAModel
from tacit.saving.evaluation_file import EVALUATION
from tacit.saving.guarantee_file import (
    CERTIFICATE,
    check_promise,
    from_certificate,
    is_part_of,
    to_certificate,
)
from tacit.saving.pipeline_file import PIPELINE, pipeline_of, pipeline_record
from tacit.saving.released import (
    KINDS,
    NOT_STORED,
    STORED,
    check_released,
    kind_of,
    spec_of_kind,
)
from tacit.saving.stored_schema import model_of_tables, schema_record
from tacit.saving.student_file import KEYS as _STUDENT
from tacit.saving.student_file import STUDENT, is_student, student_of, student_record
from tacit.saving.text import from_json, to_json
from tacit.saving.values import Reader, Writer
from tacit.table_model import TableModel

DOCUMENT = "model.json"
FORMAT = "tacit-model"
VERSION = 1

_ESTIMATOR = {"kind", "parameters", "released", "plan"}
_KEYS = {"format", "version", "tacit", "schema", *_ESTIMATOR}
_STUDENT_KEYS = {"format", "version", "tacit", "schema", "kind", *_STUDENT}
_PIPELINE_KEYS = {"format", "version", "tacit", "kind", "parameters", "steps", "feature_names_met"}


@dataclass(frozen=True)
class Stored:
    """A model as it came from a file, and what the file says of it."""

    model: Any
    record: Mapping[str, Any]


def members_of(model: Any) -> dict[str, bytes]:
    """Return the members of a fitted model: what was released, and what is public."""
    writer, schema = Writer(), None
    head: dict[str, Any] = {"format": FORMAT, "version": VERSION, "tacit": __version__}
    if type(model) is TableModel and type(model.estimator) is PrivatePipeline:
        model = with_encoder(model)
    if type(model) is PrivatePipeline:
        check_is_fitted(model)
        record = {**head, "kind": PIPELINE, **pipeline_record(model, writer, _estimator_record)}
    else:
        if type(model) in (TableModel, Pipeline, sklearn_pipeline.Pipeline):
            schema, model = _apart(model)
        of_model = student_record if is_student(model) else _estimator_record
        record = {**head, **of_model(model, writer), "schema": schema}
    certificate = to_certificate(model.privacy_)
    return {DOCUMENT: to_json(record), CERTIFICATE: certificate, **writer.members}


def _estimator_record(model: Any, writer: Writer, place: str = "") -> dict[str, Any]:
    """Return what a file says of a fitted estimator, at a place in the document."""
    word = kind_of(model)
    if word is None:
        names = sorted(spec.model.__name__ for spec in STORED.values())
        raise CannotSave(
            f"a {type(model).__name__} cannot be saved; tacit saves a fitted {', '.join(names)}, "
            "or a TableModel or Pipeline of one, which encodes a table by its schema."
        )
    check_is_fitted(model, "privacy_")
    spec, at = spec_of_kind(word), f"{place}." if place else ""
    public = {k: v for k, v in model.get_params(deep=False).items() if k not in NOT_STORED}
    # A list of what may leave, not of what may not: whatever else the object carries stays behind.
    released = {name: getattr(model, name) for name in spec.released if hasattr(model, name)}
    return {
        "kind": word,
        "parameters": writer.write_map(public, f"{at}parameters"),
        "released": writer.write_map(released, f"{at}released"),
        "plan": writer.write(getattr(model, "plan_", None), f"{at}plan"),
    }


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
    record, reader = _record_of(members), Reader(members)
    promise = from_certificate(members[CERTIFICATE])
    if record["kind"] == PIPELINE:
        model: Any = pipeline_of(record, reader, promise, _estimator_of)
    elif record["kind"] == STUDENT:
        model = student_of(record, reader, promise)
    else:
        model = _estimator_of(record, reader, promise)
    if list(members) != [DOCUMENT, CERTIFICATE, *reader.used]:
        raise NotAModel("it has a member that the model does not use, or members out of order.")
    if record.get("schema") is not None:
        model = model_of_tables(record["schema"], model)
    return Stored(model, record)


def _estimator_of(
    record: Mapping[str, Any], reader: Reader, promise: Guarantee, place: str = ""
) -> Any:
    """Return the fitted estimator that stands at a place in the document."""
    if not set(record) >= _ESTIMATOR:
        raise NotAModel(f"{place or DOCUMENT} does not have the entries of an estimator.")
    spec, at = spec_of_kind(record["kind"]), f"{place}." if place else ""
    parameters = reader.read_map(record["parameters"], f"{at}parameters")
    released = reader.read_map(record["released"], f"{at}released")
    plan = reader.read(record["plan"], f"{at}plan")
    model = _unfitted(spec, parameters)
    if place:  # its share of delta is its own
        promise = replace(promise, target_delta=getattr(model, "delta", None))
    _restore(model, spec, released, promise, plan)
    return model


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
    keys = {PIPELINE: _PIPELINE_KEYS, STUDENT: _STUDENT_KEYS}
    kind = record.get("kind")
    expected = keys.get(kind, _KEYS) if isinstance(kind, str) else _KEYS
    may_have = {EVALUATION} if kind == PIPELINE else set()
    if set(record) - may_have != expected or type(record["tacit"]) is not str:
        raise NotAModel(f"{DOCUMENT} does not have the entries of version {VERSION}.")
    if not isinstance(record["kind"], str) or record["kind"] not in {*KINDS, *keys}:
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
    kinds = Plan if spec.check is None else PlanOfSteps
    if plan is not None and (not spec.has_plan or not isinstance(plan, kinds)):
        raise NotAModel("it has a plan that its kind of model does not have.")
    # A search promises more than the try that it keeps, at a delta of its own.
    own = (
        plan is None
        or promise.event == plan.event
        or bool(promise.voided_by)
        or not is_part_of(plan.event, promise.event)
    )
    if promise.relation is not budget.relation or (own and promise.target_delta != budget.delta):
        raise NotAModel("its guarantee is for another budget than its parameters.")
    if plan is None:
        return
    other = isinstance(plan, Plan) and plan.problem.n_features != spec.n_terms(model)
    planned = replace(plan.budget, delta=plan.budget.target_delta, requested_delta=None)
    if planned != budget or other:
        raise NotAModel("its plan is for another budget or table than its parameters.")
