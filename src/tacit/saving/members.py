"""Read and write the members of a model file: certificate, schema, pipeline, evaluation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier

from tacit.estimators.parameters import (
    DECLARED_CLASSES,
    budget_of,
    positive_class,
    with_people,
)
from tacit.metrics import Evaluation
from tacit.metrics.evaluate import evaluation_of
from tacit.metrics.planning import plan_of_sums
from tacit.pipeline import PrivatePipeline
from tacit.pipeline.planning import whole_event
from tacit.pipeline.sklearn_adapters import Stateless, learns_nothing
from tacit.pipeline.steps import STEPS, StepSpec, spends
from tacit.privacy import Composed, Event, Guarantee, NonPrivate, Parallel, Relation
from tacit.registry import SOMETIMES
from tacit.saving.codec import Reader, Writer, event_of
from tacit.saving.container import CannotSave, NotAModel, from_json
from tacit.saving.validation import KINDS, NOT_STORED
from tacit.schema import ClassTarget, NumberTarget, Schema, SchemaEncoder, SchemaError

CERTIFICATE = "guarantee.json"
# Evaluating the cost of more releases than this would take unreasonably long.
MOST_RELEASES = 10**6

_SENTENCES = ("assumptions", "notes")
_CERTIFICATE_KEYS = {"format", "version", "event", "relation", "target_delta", "curve", *_SENTENCES}


def to_certificate(promise: Guarantee) -> bytes:
    """Return the certificate of a guarantee, as `Guarantee.to_json` writes it."""
    return promise.to_json().encode("ascii")


def from_certificate(body: bytes) -> Guarantee:
    """Return the guarantee of a certificate; the stored curve is ignored."""
    record = from_json(body, CERTIFICATE)
    if set(record) - {"booking"} != _CERTIFICATE_KEYS:
        raise NotAModel(f"{CERTIFICATE} is not a certificate as tacit writes it.")
    for name in _SENTENCES:
        lines = record[name]
        if not isinstance(lines, list) or not all(isinstance(line, str) for line in lines):
            raise NotAModel(f"{CERTIFICATE} has {name} that are not sentences.")
    event = event_of(record["event"], CERTIFICATE)
    if _releases(event) > MOST_RELEASES:
        raise NotAModel(f"{CERTIFICATE} states more than {MOST_RELEASES} releases.")
    if record["relation"] != event.relation.value:
        raise NotAModel(f"{CERTIFICATE} states another relation than its event.")
    try:
        return Guarantee.from_json(body.decode("utf-8"))
    except (TypeError, ValueError) as why:
        raise NotAModel(f"{CERTIFICATE} is not possible: {why}") from why


def _releases(event: Event) -> int:
    """Count the releases of an event, including those of all partitions."""
    return sum(n * (sum(map(_releases, leaf.parts())) or 1) for leaf, n in event.leaves())


def check_promise(model: Any) -> None:
    """Refuse a guarantee that does not match the model's budget and plan."""
    event = model.privacy_.event
    paid = event.would_be if isinstance(event, NonPrivate) else event
    plan = getattr(model, "plan_", None)
    if plan is not None and not (paid is not None and is_part_of(plan.event, paid)):
        raise NotAModel("its guarantee is not about the release that its plan describes.")


def is_part_of(event: Event, whole: Event) -> bool:
    """Return whether an event equals another or is one of its components.

    The guarantee of a search or a pipeline covers more than the released fit, and costs no less.
    """
    return _holds(whole.to_dict(), event.to_dict())


def _holds(record: Any, wanted: dict[str, Any]) -> bool:
    if isinstance(record, dict):
        return record == wanted or any(_holds(value, wanted) for value in record.values())
    return isinstance(record, list) and any(_holds(value, wanted) for value in record)


_DTYPES = {"<f8": np.float64, "<f4": np.float32}
_KEYS = {"facts", "dtype", "allow_unconfirmed"}
_STEPS = "steps"  # names of the two steps, unless they are those of `tacit.TableModel`
_NAMES_OF_TABLE_MODEL = ["schema", "estimator"]


def schema_record(encoder: SchemaEncoder, model: Any) -> dict[str, Any]:
    """Return the schema entry of a file, ready for JSON."""
    dtype = np.dtype(encoder.dtype).newbyteorder("<").str
    if dtype not in _DTYPES:
        raise CannotSave(f"features of type {encoder.dtype!r} cannot be saved; use float64.")
    record = {
        "facts": encoder.schema.to_dict(),
        "dtype": dtype,
        "allow_unconfirmed": bool(encoder.allow_unconfirmed),
    }
    names = [name for name, _ in getattr(model, _STEPS, ())]
    return record if names in ([], _NAMES_OF_TABLE_MODEL) else {**record, _STEPS: names}


def model_of_tables(record: Any, estimator: Any) -> PrivatePipeline:
    """Build the model of raw tables from a fitted estimator and a stored schema."""
    if not isinstance(record, dict):
        raise NotAModel("its schema does not have the entries it should have.")
    encoder = encoder_of({key: value for key, value in record.items() if key != _STEPS})
    _check_same_facts(encoder.schema, estimator, needs_target=_STEPS not in record)
    names = _step_names(record.get(_STEPS, _NAMES_OF_TABLE_MODEL))
    return PrivatePipeline.of_fitted(list(zip(names, (encoder.fit(), estimator), strict=True)))


def encoder_of(record: Any) -> SchemaEncoder:
    """Build the encoder of a stored schema."""
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
    # A location estimator has no row norm for prediction, so only estimators with one are checked.
    if getattr(estimator, "row_norm_", schema.row_norm) != schema.row_norm:
        raise NotAModel("its schema has another row norm than its estimator.")
    if isinstance(target, ClassTarget):
        # A fit sorts its classes.
        labels = np.unique(target.labels)
        if labels.dtype.kind != estimator.classes_.dtype.kind or not np.array_equal(
            labels, estimator.classes_
        ):
            raise NotAModel("its schema has other classes than its estimator.")
        # Files of tacit 0.1 have no declared order: they are told for the sorted one.
        declared = getattr(estimator, DECLARED_CLASSES, target.labels)
        if not np.array_equal(declared, target.labels):
            raise NotAModel("its schema has its classes in another order than its estimator.")
    elif target is not None and not _is_range(estimator.label_range, (target.lower, target.upper)):
        raise NotAModel("its schema has another range of labels than its estimator.")
    if not set(schema.assumptions) <= set(estimator.privacy_.assumptions):
        raise NotAModel("its guarantee does not say which lines of its schema were guessed.")


EVALUATION = "evaluation"


def evaluation_record(model: PrivatePipeline, writer: Writer) -> dict[str, Any]:
    """Return the evaluation entry of a file, if the fit released one."""
    found = model.evaluation_
    if found is None or found.sums is None:
        return {}
    return {EVALUATION: writer.write(found.sums, EVALUATION)}


def evaluation_in(
    record: dict[str, Any], reader: Reader, model: PrivatePipeline, held_out: Event | None
) -> Evaluation | None:
    """Restore the evaluation of a fitted pipeline from the event on its held-out records."""
    if EVALUATION not in record:
        return None
    sums = reader.read(record[EVALUATION], EVALUATION)
    plain = isinstance(sums, np.ndarray) and sums.ndim == 1 and sums.dtype == np.float64
    if held_out is None or not plain or not np.all(np.isfinite(sums)):
        raise NotAModel("it has an evaluation that its fit cannot have released.")
    estimator = model.released_estimator()
    plan = plan_of_sums(
        budget_of(model.epsilon, model.delta, held_out.relation),
        held_out,
        len(sums),
        classes=getattr(estimator, "classes_", None),
        label_range=getattr(estimator, "label_range", None),
        probabilities=hasattr(estimator, "predict_proba"),
    )
    with np.errstate(all="ignore"):  # forged sums may overflow
        return evaluation_of(plan, sums, model.privacy_, positive_class(estimator))


PIPELINE = "private_pipeline"
_ENCODER = "schema_encoder"
# Parameters that the pipeline stores once for all steps.
_SHARED = ("epsilon", "delta", "relation", "shares", "evaluate")
_NAMES = "feature_names_met"

Restore = Callable[[dict[str, Any], Reader, Guarantee, str], Any]
Record = Callable[[Any, Writer, str], dict[str, Any]]


def pipeline_record(model: PrivatePipeline, writer: Writer, of_estimator: Record) -> dict[str, Any]:
    """Return the entry of a fitted pipeline, ready for JSON."""
    shared = {name: getattr(model, name) for name in _SHARED}
    steps = []
    for place, (name, step) in enumerate(model.steps_.items()):
        where, last = f"steps.{place}", step is model.estimator_
        record = of_estimator(step, writer, where) if last else _record(step, writer, where)
        event = step.privacy_.event.to_dict() if hasattr(step, "privacy_") else None
        steps.append({"name": name, "event": event, **record})
    parameters = writer.write_map(shared, "parameters")
    record = {"parameters": parameters, "steps": steps, _NAMES: list(model.feature_names_met)}
    return {**record, **evaluation_record(model, writer)}


def _record(step: Any, writer: Writer, place: str) -> dict[str, Any]:
    if isinstance(step, SchemaEncoder):
        return {"kind": _ENCODER, "schema": schema_record(step, None)}
    inner = step.transformer if isinstance(step, Stateless) else step
    spec = next((spec for spec in STEPS if spec.step is type(inner)), None)
    if spec is None:
        raise CannotSave(
            f"a step of type {type(inner).__name__} cannot be saved, since a file of JSON and "
            "arrays cannot hold its code; save the pipeline's estimator_ alone."
        )
    public = {k: v for k, v in inner.get_params(deep=False).items() if k not in NOT_STORED}
    if spec.is_of_scikit_learn:
        public.pop("dtype", None)  # rows inside a pipeline are always float64
    released = {name: getattr(inner, name) for name in spec.released if hasattr(inner, name)}
    return {
        "kind": spec.kind,
        "parameters": writer.write_map(public, f"{place}.parameters"),
        "released": writer.write_map(released, f"{place}.released"),
    }


def pipeline_of(
    record: dict[str, Any], reader: Reader, promise: Guarantee, of_estimator: Restore
) -> PrivatePipeline:
    """Restore a fitted pipeline and check that its parts are consistent."""
    shared = reader.read_map(record["parameters"], "parameters")
    if set(shared) != set(_SHARED):
        raise NotAModel("it does not have the parameters of a pipeline.")
    stored = record["steps"]
    if not isinstance(stored, list) or not stored:
        raise NotAModel("it is a pipeline without steps.")
    fitted: dict[str, Any] = {}
    for place, step in enumerate(stored):
        if not isinstance(step, dict) or not isinstance(step.get("name"), str):
            raise NotAModel(f"step {place} has no name.")
        last = place == len(stored) - 1
        made = _step(step, reader, promise, f"steps.{place}", of_estimator if last else None)
        if step["name"] in fitted:
            raise NotAModel("two of its steps have the same name.")
        fitted[step["name"]] = made
    try:
        model = PrivatePipeline([(name, _plain(step)) for name, step in fitted.items()], **shared)
        names = {step["name"]: _words(record[_NAMES], made.n_features_in_)}
        own_plan = None if model.epsilon is not None else getattr(made, "plan_", None)
        model._publish(fitted, names, promise, own_plan)
        held_out = _check(model, promise)
        model.evaluation_ = evaluation_in(record, reader, model, held_out)
    except (TypeError, ValueError, ArithmeticError) as why:
        raise NotAModel(f"its steps do not fit together: {why}") from why
    return model


def _words(names: Any, count: int) -> tuple[str, ...]:
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise NotAModel("the names of its features are not words.")
    if len(names) != count:
        raise NotAModel("it has another number of names than of features.")
    return tuple(names)


def _plain(step: Any) -> Any:
    """Return a step as it may be fitted again: without the share of the budget that it had."""
    plain = clone(step.transformer if isinstance(step, Stateless) else step)
    return plain.set_params(epsilon=None) if spends(plain) else plain


def _step(
    step: dict[str, Any],
    reader: Reader,
    promise: Guarantee,
    place: str,
    of_estimator: Restore | None,
) -> Any:
    event, kind = step.get("event"), step.get("kind")
    step = {key: value for key, value in step.items() if key not in ("name", "event")}
    whole = None if event is None else _own(event, promise, place)
    if of_estimator is not None:
        if whole is None or not isinstance(kind, str) or kind not in KINDS:
            raise NotAModel("its last step is not an estimator of tacit with its event.")
        return of_estimator(step, reader, whole, place)
    if kind == _ENCODER and set(step) == {"kind", "schema"}:
        try:
            encoder = encoder_of(step["schema"]).fit()
        except SchemaError as why:
            raise NotAModel(f"its schema is not possible: {why}") from why
        if (whole is not None) != bool(encoder.schema.open_words):
            raise NotAModel("words of its schema were learned without a release, or the other way.")
        if whole is not None:
            encoder.privacy_ = whole
        return encoder
    spec = next((spec for spec in STEPS if spec.kind == kind), None)
    if spec is None or set(step) != {"kind", "parameters", "released"}:
        raise NotAModel(f"{place} is of kind {str(kind)[:60]!r}, which this tacit does not know.")
    return _transformer(spec, step, reader, whole, place)


def _own(event: Any, promise: Guarantee, place: str) -> Guarantee:
    return Guarantee(event_of(event, place), promise.target_delta, promise.assumptions)


def _transformer(
    spec: StepSpec, step: dict[str, Any], reader: Reader, promise: Guarantee | None, place: str
) -> Any:
    parameters = {**spec.before, **reader.read_map(step["parameters"], f"{place}.parameters")}
    released = reader.read_map(step["released"], f"{place}.released")
    whole = set(released) | SOMETIMES == set(spec.released) | SOMETIMES
    if not whole or (promise is not None) != spec.spends:
        raise NotAModel(f"{place} does not hold what a {spec.step.__name__} releases.")
    try:
        made = spec.step(**parameters)
    except (TypeError, ValueError) as why:
        raise NotAModel(f"{place} is not possible: {why}") from why
    if spec.is_of_scikit_learn:
        if not learns_nothing(made):
            raise NotAModel(f"{place} would learn from records without privacy.")
        return Stateless(made)
    for name, value in released.items():
        setattr(made, name, value)
    if promise is not None:
        made.privacy_ = promise
    return made


def _check(model: PrivatePipeline, promise: Guarantee) -> Event | None:
    """Refuse steps whose output does not match the estimator, or whose cost differs.

    Returns the event of the evaluation on held-out records, if any.
    """
    encoder = model._encoder()
    estimator = model.estimator_
    if encoder is not None:
        facts = model.facts_for_estimator(encoder.facts_out())
        if len(facts.names) != estimator.n_features_in_:
            raise NotAModel("its steps give another number of features than its estimator took.")
        if getattr(estimator, "row_norm_", facts.row_norm) != facts.row_norm:
            raise NotAModel("its steps give another row norm than its estimator took.")
    events = {name: s.privacy_.event for name, s in model.steps_.items() if hasattr(s, "privacy_")}
    before = [name for name, s in model.steps_.items() if isinstance(s, SchemaEncoder)]
    whole = promise.event
    if isinstance(whole, NonPrivate) and whole.would_be is not None:
        events, whole = {name: _unseeded(event) for name, event in events.items()}, whole.would_be
    first = [name for name in before if name in events]
    held_out = _held_out(whole) if model.evaluate else None
    released = whole_event(events, first, held_out)
    if not is_part_of(released, whole):
        raise NotAModel("its guarantee is not about what its steps released.")
    budget = model._budget()
    if promise.relation.by_person and budget.relation is Relation.ADD_REMOVE:
        budget = with_people(budget, has_people=True)  # the fit had a unit
    # A search has a larger guarantee than its best trial, at its own delta.
    own = released == whole
    if promise.relation is not budget.relation or (own and promise.target_delta != budget.delta):
        raise NotAModel("its guarantee is for another budget than its parameters.")
    return held_out


def _unseeded(event: Event) -> Event:
    """Return the event without the mark of a seeded generator."""
    return event.would_be if isinstance(event, NonPrivate) and event.would_be else event


def _held_out(whole: Event) -> Event:
    """Return the event of the evaluation, the second of the two partitions."""
    last = whole.events[-1] if isinstance(whole, Composed) else whole
    if not isinstance(last, Parallel) or len(last.events) != 2:
        raise NotAModel("its guarantee says nothing of the records that were held out.")
    return last.events[1]
