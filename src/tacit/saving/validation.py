"""List the models that a file may hold, and validate their released attributes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from tacit.estimators.parameters import DECLARED_CLASSES, budget_of, with_people
from tacit.estimators.summary import RESIDUAL_BOUND
from tacit.privacy import Budget, Guarantee, Relation
from tacit.registry import (
    ELSEWHERE,
    ERRORS,
    MODELS,
    NAMES,
    RANGE,
    ModelSpec,
    Predicts,
    spec_elsewhere,
    spec_of,
)
from tacit.saving.container import NotAModel

# Never stored: an accountant belongs to a process, and a seed would reveal the noise.
NOT_STORED = ("accountant", "random_state")

STORED: Mapping[str, ModelSpec] = {spec.kind: spec for spec in MODELS if spec.kind is not None}


# The words of all model classes; optional ones are imported on demand.
KINDS = frozenset((*STORED, *ELSEWHERE))


def spec_of_kind(kind: str) -> ModelSpec:
    """Return the specification of one of `KINDS`."""
    spec = STORED.get(kind) or spec_elsewhere(kind)
    assert spec is not None, "one of KINDS"
    return spec


def kind_of(model: Any) -> str | None:
    """Return the word of a model's class, or None if it cannot be saved."""
    spec = spec_of(model)
    return spec.kind if spec is not None and spec.model is type(model) else None


def check_budget(
    promise: Guarantee, epsilon: Any, delta: Any, relation: Any, *, own: bool = True
) -> Budget:
    """Return the budget of a model's parameters; refuse a guarantee for another one.

    ``own`` is whether the guarantee is that of this fit. A search has a larger guarantee than its
    best trial, at its own delta.
    """
    try:
        budget = budget_of(epsilon, delta, relation)
    except (TypeError, ValueError) as why:
        raise NotAModel(f"its parameters are not a budget: {why}") from why
    if promise.relation.by_person and budget.relation is Relation.ADD_REMOVE:
        budget = with_people(budget, has_people=True)  # the fit had a unit
    if promise.relation is not budget.relation or (own and promise.target_delta != budget.delta):
        raise NotAModel("its guarantee is for another budget than its parameters.")
    return budget


def check_released(model: Any, spec: ModelSpec) -> None:
    """Refuse released attributes that no fit of such a model produces."""
    check_features(model)
    if spec.check is not None:
        if spec.predicts is Predicts.CLASSES:
            check_classes(model)
        spec.check(model)
        return
    if spec.predicts is Predicts.LOCATION:
        _check_numbers(model, "location_", (model.n_features_in_,))
        _check_errors(model)
        return
    if spec.predicts is Predicts.CLASSES:
        _check_classifier(model, spec)
    else:
        _check_numbers(model, "coef_", (_n_terms(model, spec),))
        _check_number(model, "intercept_", -math.inf)
        _check_range(model)
        if hasattr(model, RESIDUAL_BOUND):
            _check_number(model, RESIDUAL_BOUND, 0.0)
    _check_number(model, "row_norm_", 0.0)
    if "seed_" in spec.released:
        _check_number(model, "bandwidth_", 0.0)
        _check_number(model, "seed_", -1)
        if type(model.seed_) is not int:
            raise NotAModel("seed_ is not a whole number.")
    _check_errors(model)


def _check_classifier(model: Any, spec: ModelSpec) -> None:
    n = check_classes(model)
    if spec.two_classes and n != 2:
        raise NotAModel("classes_ are not two, which is what this kind of model has.")
    rows = 1 if n == 2 else n
    _check_numbers(model, "coef_", (rows, _n_terms(model, spec)))
    _check_numbers(model, "intercept_", (rows,))


def _n_terms(model: Any, spec: ModelSpec) -> int:
    try:
        return spec.n_terms(model)
    except (TypeError, ValueError) as why:
        raise NotAModel(f"its parameters do not say what its coefficients are of: {why}") from why


def _check_numbers(model: Any, name: str, shape: tuple[int, ...]) -> None:
    """Refuse an attribute that is not an array of finite doubles of a shape."""
    array = getattr(model, name)
    if not isinstance(array, np.ndarray) or array.dtype != np.float64 or array.shape != shape:
        raise NotAModel(f"{name} is not an array of doubles of shape {shape}.")
    if not np.all(np.isfinite(array)):
        raise NotAModel(f"{name} has a value that is not finite.")


def _check_errors(model: Any) -> None:
    """Refuse standard errors without estimates, or of other terms than the coefficients."""
    terms = (model.n_features_in_ + bool(getattr(model, "fit_intercept", False)),)
    present = [name for name in ERRORS if hasattr(model, name)]
    for name in present:
        _check_numbers(model, name, terms)
    if present and present != list(ERRORS):
        raise NotAModel(f"it has {present[0]} without its counterpart.")
    if present and not np.all(model.standard_errors_ >= 0.0):
        raise NotAModel("standard_errors_ has a negative value.")


def _check_range(model: Any) -> None:
    """Refuse a label range that is not two increasing numbers, or not the declared one."""
    ends = getattr(model, RANGE, None)
    if ends is None:
        return
    if type(ends) is not tuple or len(ends) != 2 or any(type(end) is not float for end in ends):
        raise NotAModel(f"{RANGE} is not two numbers.")
    if not -math.inf < ends[0] < ends[1] < math.inf:
        raise NotAModel(f"{RANGE} does not rise from one number to another.")


def _check_number(model: Any, name: str, least: float) -> None:
    """Refuse an attribute that is not a finite number above ``least``."""
    value = getattr(model, name)
    if type(value) not in (int, float) or not least < value < math.inf:
        raise NotAModel(f"{name} is not a finite number above {least:g}.")


def check_features(model: Any) -> None:
    """Refuse a number of features and names that do not fit together."""
    n, names = model.n_features_in_, getattr(model, NAMES, None)
    if type(n) is not int or n < 1:
        raise NotAModel("n_features_in_ is not a whole number of at least 1.")
    if names is None:
        return
    whole = isinstance(names, np.ndarray) and names.dtype == object and names.shape == (n,)
    if not whole or not all(isinstance(name, str) for name in names):
        raise NotAModel(f"feature_names_in_ is not a list of {n} words.")


def check_classes(model: Any) -> int:
    """Return the number of classes; refuse an invalid list."""
    classes = model.classes_
    if not isinstance(classes, np.ndarray) or classes.ndim != 1 or classes.size < 2:
        raise NotAModel("classes_ is not a list of at least 2 classes.")
    if len({type(item) for item in classes.tolist()}) > 1:
        raise NotAModel("classes_ has classes of several types.")
    # A fit leaves classes sorted and distinct; NaN fails both.
    if not np.all(classes[:-1] < classes[1:]):
        raise NotAModel("classes_ are not in order or not distinct.")
    _check_declared(model)
    return int(classes.size)


def _check_declared(model: Any) -> None:
    """Refuse a declared order of other classes, or one that a fit does not set."""
    declared, classes = getattr(model, DECLARED_CLASSES, None), model.classes_
    if declared is None:
        if DECLARED_CLASSES in vars(model):
            raise NotAModel(f"{DECLARED_CLASSES} is not a list of classes.")
        return
    same = isinstance(declared, np.ndarray) and declared.dtype == classes.dtype
    if not same or not np.array_equal(np.sort(declared), classes):
        raise NotAModel(f"{DECLARED_CLASSES} are other classes than classes_.")
    if np.array_equal(declared, classes):
        raise NotAModel(f"{DECLARED_CLASSES} is the order of classes_, which is not stored.")
