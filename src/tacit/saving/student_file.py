"""Read and write PATE students: arrays, classes and columns; no teacher, no vote."""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Mapping
from typing import Any

import numpy as np

from tacit.estimators.parameters import DECLARED_CLASSES
from tacit.pate import PATEClassifier, PATERegressor, PublishedStudent, published
from tacit.pate.published_student import ConstantForm, Form, KernelForm, LinearForm, TreesForm
from tacit.privacy import Guarantee
from tacit.registry import NAMES
from tacit.saving.codec import Reader, Writer
from tacit.saving.container import CannotSave, NotAModel
from tacit.saving.validation import check_budget, check_classes, check_features

_RELEASED = {"classes_", "met_", "label_range", "n_features_in_"}
_SOMETIMES = (DECLARED_CLASSES, NAMES)
_ABOUT = {"epsilon", "delta", "relation", "n_teachers", "n_queries"}

_FORMS: Mapping[str, type[Any]] = {
    "constant": ConstantForm,
    "linear": LinearForm,
    "kernel": KernelForm,
    "trees": TreesForm,
}


def is_student(model: Any) -> bool:
    """Return whether a model is a PATE estimator; only its student is saved."""
    return type(model) in (PATEClassifier, PATERegressor, PublishedStudent)


def student_record(model: Any, writer: Writer) -> dict[str, Any]:
    """Return the entry of a student."""
    try:
        student = model if type(model) is PublishedStudent else published(model)
    except TypeError as why:
        raise CannotSave(f"the student cannot be saved: {why}") from None
    word = next(word for word, form in _FORMS.items() if form is type(student.form_))
    fields = {f.name: getattr(student.form_, f.name) for f in dataclasses.fields(student.form_)}
    released = {name: getattr(student, name) for name in sorted(_RELEASED)}
    released |= {name: getattr(student, name) for name in _SOMETIMES if hasattr(student, name)}
    return {
        "kind": "pate_student",
        "form": word,
        "parameters": writer.write_map(student.about_, "parameters"),
        "arrays": writer.write_map(fields, "arrays"),
        "released": writer.write_map(released, "released"),
    }


def student_of(record: Mapping[str, Any], reader: Reader, promise: Guarantee) -> PublishedStudent:
    """Restore a student, and check that its parts are consistent."""
    if not isinstance(record["form"], str) or record["form"] not in _FORMS:
        raise NotAModel("it is a student of a form that this tacit does not know.")
    fields = reader.read_map(record["arrays"], "arrays")
    released = reader.read_map(record["released"], "released")
    about = reader.read_map(record["parameters"], "parameters")
    if set(released) - set(_SOMETIMES) != _RELEASED or set(about) != _ABOUT:
        raise NotAModel("it does not hold what a student releases.")
    student = PublishedStudent()
    for name, value in released.items():
        setattr(student, name, value)
    student.privacy_, student.about_ = promise, about
    check_budget(promise, about["epsilon"], about["delta"], about["relation"])
    check_features(student)
    n_outputs = _n_outputs(student)
    student.form_ = _form(_FORMS[record["form"]], fields)
    _check_form(student.form_, student.n_features_in_, n_outputs)
    return student


def _n_outputs(student: PublishedStudent) -> int:
    """Return the number of scores per row; refuse inconsistent classes and ranges."""
    classes, met, ends = student.classes_, student.met_, student.label_range
    if classes is None:
        numbers = isinstance(ends, tuple) and [type(end) for end in ends] == [float, float]
        if met is not None or not numbers or not ends or not ends[0] < ends[1]:
            raise NotAModel("a student of numbers has a range and no classes.")
        return 1
    n = check_classes(student)
    whole = isinstance(met, np.ndarray) and met.dtype == np.int64 and met.ndim == 1
    if ends is not None or met is None or not whole or not met.size:
        raise NotAModel("it does not list the classes in the student's training data.")
    if not (np.all(np.diff(met) > 0) and met[0] >= 0 and met[-1] < n):
        raise NotAModel("its student was trained on classes that it does not declare.")
    return int(met.size)


def _form(kind: type[Any], fields: dict[str, Any]) -> Form:
    """Make a form whose fields have their declared types and are finite."""
    hints = typing.get_type_hints(kind)
    if set(fields) != set(hints):
        raise NotAModel("its arrays are not those of its form.")
    for name, value in fields.items():
        if hints[name] in (bool, float):
            if type(value) is not hints[name]:
                raise NotAModel(f"{name} is not of its type.")
            continue
        whole = name in ("roots", "left", "right", "feature")
        wanted = np.int64 if whole else np.float64
        if not isinstance(value, np.ndarray) or value.dtype != wanted:
            raise NotAModel(f"{name} is not an array of its type.")
        if not np.all(np.isfinite(value)):
            raise NotAModel(f"{name} has a value that is not finite.")
    made: Form = kind(**fields)
    return made


def _check_form(form: Form, n_features: int, n_outputs: int) -> None:
    """Refuse arrays of wrong shapes, and trees with cycles."""
    if isinstance(form, TreesForm):
        _check_trees(form, n_features, n_outputs)
        return
    if isinstance(form, ConstantForm):
        shapes: list[tuple[Any, tuple[int, ...]]] = [(form.values, (n_outputs,))]
    elif isinstance(form, LinearForm):
        shapes = [(form.coef, (n_outputs, n_features)), (form.intercept, (n_outputs,))]
    else:
        n = len(form.centres)
        shapes = [(form.centres, (n, n_features)), (form.weights, (n, n_outputs))]
    if any(array.shape != shape for array, shape in shapes):
        raise NotAModel("an array of the student has another shape than its columns and classes.")


def _check_trees(form: TreesForm, n_features: int, n_outputs: int) -> None:
    n = form.left.size
    flat = (form.left, form.right, form.feature, form.threshold)
    whole = all(array.shape == (n,) for array in flat) and form.value.shape == (n, n_outputs)
    if not whole or form.roots.ndim != 1 or not form.roots.size:
        raise NotAModel("its trees are not trees.")
    own = np.arange(n)
    inner = (form.left != own) | (form.right != own)
    sound = (
        bool(np.all((form.roots >= 0) & (form.roots < n)))
        and bool(np.all((form.feature >= 0) & (form.feature < n_features)))
        # Children come after their parent, so every walk ends.
        and bool(np.all((form.left < n) & (form.right < n)))
        and bool(np.all((form.left > own)[inner] & (form.right > own)[inner]))
    )
    if not sound:
        raise NotAModel("its trees are not trees.")
