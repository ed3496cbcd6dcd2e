"""A private pipeline as a list of steps, each with its parameters and what it released."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tacit.models import SOMETIMES
from tacit.pipeline import PrivatePipeline
from tacit.pipeline.declared import STEPS, StepSpec
from tacit.pipeline.plan import whole_event
from tacit.pipeline.stateless import Stateless, learns_nothing
from tacit.preprocessing import SchemaEncoder, SchemaError
from tacit.privacy import Composed, Event, Guarantee, NonPrivate, Parallel, Relation
from tacit.public_facts import budget_of, with_people
from tacit.saving.errors import CannotSave, NotAModel
from tacit.saving.evaluation_file import evaluation_in, evaluation_record
from tacit.saving.guarantee_file import is_part_of
from tacit.saving.released import KINDS, NOT_STORED
from tacit.saving.stored_schema import encoder_of, schema_record
from tacit.saving.values import Reader, Writer, event_of

PIPELINE = "private_pipeline"
_ENCODER = "schema_encoder"
# What a step has from the pipeline, which says it once.
_SHARED = ("epsilon", "delta", "relation", "shares", "evaluate")
_NAMES = "feature_names_met"

Restore = Callable[[dict[str, Any], Reader, Guarantee, str], Any]
Record = Callable[[Any, Writer, str], dict[str, Any]]


def pipeline_record(model: PrivatePipeline, writer: Writer, of_estimator: Record) -> dict[str, Any]:
    """Return what a file says of a fitted pipeline, ready for JSON."""
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
            f"a step of type {type(inner).__name__} cannot be saved, since no file of JSON and "
            "arrays can hold what it does; save the pipeline's estimator_ alone."
        )
    public = {k: v for k, v in inner.get_params(deep=False).items() if k not in NOT_STORED}
    if spec.is_of_scikit_learn:
        public.pop("dtype", None)  # the pipeline's rows are doubles
    released = {name: getattr(inner, name) for name in spec.released if hasattr(inner, name)}
    return {
        "kind": spec.kind,
        "parameters": writer.write_map(public, f"{place}.parameters"),
        "released": writer.write_map(released, f"{place}.released"),
    }


def pipeline_of(
    record: dict[str, Any], reader: Reader, promise: Guarantee, of_estimator: Restore
) -> PrivatePipeline:
    """Return the fitted pipeline that a file describes, if all of it fits together."""
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
        model = PrivatePipeline(list(fitted.items()), **shared)
        model.steps_, model.estimator_ = fitted, made
        model.privacy_, model.plan_, model.evaluation_ = promise, None, None
        model.feature_names_met = _words(record[_NAMES], made.n_features_in_)
        held_out = _check(model, promise)
        model.evaluation_ = evaluation_in(record, reader, model, held_out)
    except (TypeError, ValueError, ArithmeticError) as why:
        raise NotAModel(f"its steps do not fit together: {why}") from why
    model.steps = [(name, _plain(step)) for name, step in fitted.items()]
    return model


def _words(names: Any, count: int) -> tuple[str, ...]:
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise NotAModel("the names of its features are not words.")
    if len(names) != count:
        raise NotAModel("it has another number of names than of features.")
    return tuple(names)


def _plain(step: Any) -> Any:
    return step.transformer if isinstance(step, Stateless) else step


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
    parameters = reader.read_map(step["parameters"], f"{place}.parameters")
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
    """Refuse steps whose rows are not those that the estimator met, or that cost something else.

    Returns what was released of the records held out, if some were.
    """
    encoder = model._encoder()
    estimator = model.estimator_
    if encoder is not None:
        facts = model._planner().facts_met(encoder.facts_out())[model.steps[-1][0]]
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
    budget = budget_of(model.epsilon, model.delta, model.relation)
    if promise.relation.by_person and budget.relation is Relation.ADD_REMOVE:
        budget = with_people(budget, has_people=True)  # the fit was told whose each record is
    # A search promises more than the try that it keeps, at a delta of its own.
    own = released == whole
    if promise.relation is not budget.relation or (own and promise.target_delta != budget.delta):
        raise NotAModel("its guarantee is for another budget than its parameters.")
    return held_out


def _unseeded(event: Event) -> Event:
    """Return what a release from a seeded generator would have cost."""
    return event.would_be if isinstance(event, NonPrivate) and event.would_be else event


def _held_out(whole: Event) -> Event:
    """Return the event of the evaluation, the second of the two parts of the records."""
    last = whole.events[-1] if isinstance(whole, Composed) else whole
    if not isinstance(last, Parallel) or len(last.events) != 2:
        raise NotAModel("its guarantee says nothing of the records that were held out.")
    return last.events[1]
