"""Save and load a model in one file; loading accepts only byte-identical files."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

from sklearn.utils.validation import check_is_fitted

from tacit import __version__
from tacit.engine import Plan as PlanOfSteps
from tacit.erm import Plan
from tacit.estimators.parameters import epsilon_of
from tacit.pipeline import PrivatePipeline
from tacit.pipeline.private import as_pipeline
from tacit.privacy import Guarantee
from tacit.registry import SOMETIMES, ModelSpec
from tacit.saving.codec import Reader, Writer
from tacit.saving.container import (
    MOST_BYTES,
    CannotSave,
    NotAModel,
    from_json,
    pack,
    read_bounded,
    to_json,
    unpack,
    write_whole,
)
from tacit.saving.members import (
    CERTIFICATE,
    EVALUATION,
    PIPELINE,
    check_promise,
    from_certificate,
    is_part_of,
    model_of_tables,
    pipeline_of,
    pipeline_record,
    schema_record,
    to_certificate,
)
from tacit.saving.validation import (
    KINDS,
    NOT_STORED,
    STORED,
    check_budget,
    check_released,
    kind_of,
    spec_of_kind,
)

DOCUMENT = "model.json"
FORMAT = "tacit-model"
VERSION = 1
STUDENT = "pate_student"
# Additive models, which are imported for their own files only.
ADDITIVE = ("additive_classifier", "additive_regressor")

_ESTIMATOR = {"kind", "parameters", "released", "plan"}
_ANY = {"format", "version", "tacit", "kind", "parameters"}
_KEYS = _ANY | _ESTIMATOR | {"schema"}
_STUDENT_KEYS = _ANY | {"schema", "form", "arrays", "released"}
_PIPELINE_KEYS = _ANY | {"steps", "feature_names_met"}
_ADDITIVE_KEYS = _ANY | {"facts", "budget", "terms", "released"}


class LoadedModel(Protocol):
    """A fitted estimator of the class that was saved: for type checkers."""

    @property
    def privacy_(self) -> Guarantee:
        """What its fit promised."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return its parameters, which are public."""

    # Which class it is, and so what else it has, only the file says: a mean predicts nothing.
    def __getattr__(self, name: str) -> Any: ...


@dataclass(frozen=True)
class Stored:
    """A loaded model and its document."""

    model: LoadedModel
    record: Mapping[str, Any]


def members_of(model: Any) -> dict[str, bytes]:
    """Return the members of a fitted model: released attributes and public parameters."""
    writer, schema = Writer(), None
    head: dict[str, Any] = {"format": FORMAT, "version": VERSION, "tacit": __version__}
    try:
        model = as_pipeline(model)
    except TypeError as why:
        raise CannotSave(f"the model cannot be saved: {why}") from None
    if type(model) is PrivatePipeline and not _is_of_one_estimator(model):
        record = {**head, "kind": PIPELINE, **pipeline_record(model, writer, _estimator_record)}
    else:
        if type(model) is PrivatePipeline:
            assert model.encoder_ is not None
            schema = schema_record(model.encoder_, model)
            model = model.released_estimator()
        record = {**head, **_record_alone(model, writer)}
        if record["kind"] not in ADDITIVE:  # these hold their schema as a parameter
            record["schema"] = schema
    certificate = to_certificate(model.privacy_)
    return {DOCUMENT: to_json(record), CERTIFICATE: certificate, **writer.members}


def _record_alone(model: Any, writer: Writer) -> dict[str, Any]:
    """Return the entry of a fitted estimator that is no pipeline."""
    # PATE is imported for its own models only.
    if type(model).__module__.startswith("tacit.pate."):
        from tacit.saving.student_file import is_student, student_record

        if is_student(model):
            return student_record(model, writer)
    if type(model).__module__.startswith("tacit.additive."):
        from tacit.saving.additive_file import additive_record, is_additive

        if is_additive(model):
            check_is_fitted(model, "privacy_")
            return additive_record(model, writer)
    return _estimator_record(model, writer)


def _estimator_record(model: Any, writer: Writer, place: str = "") -> dict[str, Any]:
    """Return the entry of a fitted estimator at a place in the document."""
    word = kind_of(model)
    if word is None:
        names = sorted(spec.model.__name__ for spec in STORED.values())
        raise CannotSave(
            f"a {type(model).__name__} cannot be saved; tacit saves a fitted {', '.join(names)}, "
            "or a TableModel or PrivatePipeline of one."
        )
    check_is_fitted(model, "privacy_")
    spec, at = spec_of_kind(word), f"{place}." if place else ""
    public = {k: v for k, v in model.get_params(deep=False).items() if k not in NOT_STORED}
    public["epsilon"] = epsilon_of(public.get("epsilon"))
    # An allowlist of released attributes: everything else in the object is not written.
    released = {name: getattr(model, name) for name in spec.released if hasattr(model, name)}
    return {
        "kind": word,
        "parameters": writer.write_map(public, f"{at}parameters"),
        "released": writer.write_map(released, f"{at}released"),
        "plan": writer.write(getattr(model, "plan_", None), f"{at}plan"),
    }


def _is_of_one_estimator(model: PrivatePipeline) -> bool:
    """Return whether it is an encoder and an estimator with its own budget: an estimator's file."""
    check_is_fitted(model)
    return model.epsilon is None and model.encoder_ is not None and len(model.steps) == 2


def stored_in(members: Mapping[str, bytes]) -> Stored:
    """Restore the model of a file's members."""
    record, reader = _record_of(members), Reader(members)
    promise = from_certificate(members[CERTIFICATE])
    if record["kind"] == PIPELINE:
        model: Any = pipeline_of(record, reader, promise, _estimator_of)
    elif record["kind"] == STUDENT:
        from tacit.saving.student_file import student_of

        model = student_of(record, reader, promise)
    elif record["kind"] in ADDITIVE:
        from tacit.saving.additive_file import additive_of

        model = additive_of(record, reader, promise)
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
    """Restore the fitted estimator at a place in the document."""
    if not set(record) >= _ESTIMATOR:
        raise NotAModel(f"{place or DOCUMENT} does not have the entries of an estimator.")
    spec, at = spec_of_kind(record["kind"]), f"{place}." if place else ""
    parameters = reader.read_map(record["parameters"], f"{at}parameters")
    released = reader.read_map(record["released"], f"{at}released")
    plan = reader.read(record["plan"], f"{at}plan")
    model = _unfitted(spec, parameters)
    if place:  # an estimator in a pipeline has its own share of delta
        promise = replace(promise, target_delta=getattr(model, "delta", None))
    _restore(model, spec, released, promise, plan)
    return model


def _record_of(members: Mapping[str, bytes]) -> dict[str, Any]:
    """Return the document of a file, if this tacit knows its version and kind."""
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
    keys |= dict.fromkeys(ADDITIVE, _ADDITIVE_KEYS)
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
    """Set the released attributes of a model, and check that they are consistent."""
    if set(spec.released) - SOMETIMES - set(released) or set(released) - set(spec.released):
        raise NotAModel(f"it does not hold what a {spec.model.__name__} releases.")
    for name, value in released.items():
        setattr(model, name, value)
    model.privacy_ = promise
    if spec.has_plan:
        model.plan_ = plan
    check_released(model, spec)
    _check_plan(model, plan, spec)
    check_promise(model)


def _check_plan(model: Any, plan: Any, spec: ModelSpec) -> None:
    promise = model.privacy_
    kinds = Plan if spec.check is None else PlanOfSteps
    if plan is not None and (not spec.has_plan or not isinstance(plan, kinds)):
        raise NotAModel("it has a plan that its kind of model does not have.")
    own = (
        plan is None
        or promise.event == plan.event
        or bool(promise.voided_by)
        or not is_part_of(plan.event, promise.event)
    )
    budget = check_budget(promise, model.epsilon, model.delta, model.relation, own=own)
    if plan is None:
        return
    other = isinstance(plan, Plan) and plan.problem.n_features != spec.n_terms(model)
    planned = replace(plan.budget, delta=plan.budget.target_delta, requested_delta=None)
    if planned != budget or other:
        raise NotAModel("its plan is for another budget or table than its parameters.")


_MOST_REASON = 400


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted model to a file that `load` reads.

    The file is a zip of JSON and arrays, without pickle. It holds the model's class, parameters
    and plan, which are public, the attributes its fit released, and the certificate of its
    guarantee. It does not hold the accountant, the seed, or anything else the object carries.
    The file is written atomically: an interrupted call leaves the old file, or none.

    Parameters
    ----------
    model
        A fitted estimator of tacit, or a `PrivatePipeline`; one of scikit-learn's own, of a
        `SchemaEncoder` and an estimator, is loaded as a `PrivatePipeline`.
    path
        The path to write; an existing file is replaced.

    Raises
    ------
    CannotSave
        If the type of the model, or of one of its parameters, cannot be stored.
    sklearn.exceptions.NotFittedError
        If the model is not fitted.
    OSError
        If the file cannot be written.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> import numpy as np
    >>> from tacit.linear_model import LogisticRegression
    >>> from tacit.saving import load, save
    >>> X = np.random.default_rng(0).standard_normal((5000, 3))
    >>> model = LogisticRegression(epsilon=1.0, delta=1e-6, row_norm=2.0).fit(X, X[:, 0] > 0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(model, pathlib.Path(folder) / "model.tacit")
    ...     again = load(pathlib.Path(folder) / "model.tacit")
    >>> bool(np.all(again.predict_proba(X) == model.predict_proba(X)))
    True
    """
    data = pack(members_of(model))
    if len(data) > MOST_BYTES:
        raise CannotSave(f"the model has {len(data)} bytes; at most {MOST_BYTES} can be saved.")
    try:
        load_bytes(data)
    except NotAModel as why:
        raise CannotSave(f"the model could not be read back: {why}") from why
    write_whole(path, data)


def load(path: str | os.PathLike[str]) -> LoadedModel:
    """Return the model that `save` wrote, predicting bit for bit the same.

    No code in the file is run. The guarantee is recomputed from the certificate's event.
    Checksums detect damage and careless edits; they are no signature, and an attacker can
    forge a file. Load only files from people you trust.

    Parameters
    ----------
    path
        The file.

    Raises
    ------
    NotAModel
        If the file is not, byte for byte, a model saved by tacit; the message says why.
    OSError
        If the file does not exist or cannot be read.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from tacit.saving import load
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "notes.txt"
    ...     _ = path.write_text("milk, bread")
    ...     load(path)
    Traceback (most recent call last):
    ...
    tacit.saving.container.NotAModel: notes.txt is not a model that tacit can load: it is not a
    zip...
    """
    return read_stored(path)[0].model


def read_stored(path: str | os.PathLike[str]) -> tuple[Stored, bytes]:
    """Return the content of a file, and its bytes."""
    try:
        data = read_bounded(path)
        return load_bytes(data), data
    except NotAModel as why:
        name = _printable(os.path.basename(os.fsdecode(path)))
        raise NotAModel(f"{name} is not a model that tacit can load: {why}") from why


def load_bytes(data: bytes) -> Stored:
    """Return the content of a file with these bytes."""
    try:
        return stored_in(unpack(data))
    except NotAModel as why:
        raise NotAModel(_printable(str(why))) from why
    except RecursionError:
        raise NotAModel("its values are nested too deeply; a model's never are.") from None


def _printable(text: str) -> str:
    """Remove terminal control characters from a text and cut it to a readable length."""
    shown = "".join(c if c.isprintable() else "?" for c in text[:_MOST_REASON])
    return shown if len(text) <= _MOST_REASON else shown + "..."
