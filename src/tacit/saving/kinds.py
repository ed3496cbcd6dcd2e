"""Which models a file may hold: one line each, with what a fit of it releases.

Adding an estimator is one entry in `KINDS`. Its word never changes its meaning.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tacit.linear_model import (
    HuberRegressor,
    LinearRegression,
    LinearSVC,
    LogisticRegression,
    PoissonRegressor,
    QuantileRegressor,
    Ridge,
)
from tacit.location import GeometricMedian, Mean, Median
from tacit.saving.errors import NotAModel

# Never stored: a shared budget belongs to a process, and a seed would undo the noise.
NOT_STORED = ("accountant", "random_state")
# Stored where the fit was given a table with column names.
OPTIONAL = "feature_names_in_"
PLAN = "plan_"

_CLASSIFIER = ("coef_", "intercept_", "classes_", "row_norm_", "n_features_in_", OPTIONAL)
_REGRESSOR = ("coef_", "intercept_", "row_norm_", "n_features_in_", OPTIONAL)
_LOCATION = ("location_", "n_features_in_", OPTIONAL)


@dataclass(frozen=True)
class Kind:
    """A class of models: what a fit releases, whether it has a plan, what must hold of it."""

    model: type[Any]
    released: tuple[str, ...]
    has_plan: bool
    check: Callable[[Any], None]


def check_numbers(model: Any, name: str, shape: tuple[int, ...]) -> None:
    """Refuse an attribute that is not an array of finite doubles of a shape."""
    array = getattr(model, name)
    if not isinstance(array, np.ndarray) or array.dtype != np.float64 or array.shape != shape:
        raise NotAModel(f"{name} is not an array of doubles of shape {shape}.")
    if not np.all(np.isfinite(array)):
        raise NotAModel(f"{name} has a value that is not finite.")


def check_number(model: Any, name: str, least: float) -> None:
    """Refuse an attribute that is not a finite number above ``least``."""
    value = getattr(model, name)
    if type(value) not in (int, float) or not least < value < math.inf:
        raise NotAModel(f"{name} is not a finite number above {least:g}.")


def check_features(model: Any) -> None:
    """Refuse a number of features and names that do not fit together."""
    n, names = model.n_features_in_, getattr(model, OPTIONAL, None)
    if type(n) is not int or n < 1:
        raise NotAModel("n_features_in_ is not a whole number of at least 1.")
    if names is None:
        return
    whole = isinstance(names, np.ndarray) and names.dtype == object and names.shape == (n,)
    if not whole or not all(isinstance(name, str) for name in names):
        raise NotAModel(f"feature_names_in_ is not a list of {n} words.")


def _check_classes(model: Any) -> int:
    classes = model.classes_
    if not isinstance(classes, np.ndarray) or classes.ndim != 1 or classes.size < 2:
        raise NotAModel("classes_ is not a list of at least 2 classes.")
    if len({type(item) for item in classes.tolist()}) > 1:
        raise NotAModel("classes_ has classes of several types.")
    # As a fit leaves them: in order, each once. NaN is neither.
    if not np.all(classes[:-1] < classes[1:]):
        raise NotAModel("classes_ are not in order or not distinct.")
    return int(classes.size)


def _check_classifier(model: Any) -> None:
    n = _check_classes(model)
    rows = 1 if n == 2 else n
    check_numbers(model, "coef_", (rows, model.n_features_in_))
    check_numbers(model, "intercept_", (rows,))
    check_number(model, "row_norm_", 0.0)


def _check_binary_classifier(model: Any) -> None:
    if _check_classes(model) != 2:
        raise NotAModel("classes_ are not two, but the model knows two.")
    _check_classifier(model)


def _check_regressor(model: Any) -> None:
    check_numbers(model, "coef_", (model.n_features_in_,))
    check_number(model, "intercept_", -math.inf)
    check_number(model, "row_norm_", 0.0)


def _check_location(model: Any) -> None:
    check_numbers(model, "location_", (model.n_features_in_,))


KINDS: Mapping[str, Kind] = {
    "logistic_regression": Kind(LogisticRegression, _CLASSIFIER, True, _check_classifier),
    "linear_svc": Kind(LinearSVC, _CLASSIFIER, True, _check_binary_classifier),
    "linear_regression": Kind(LinearRegression, _REGRESSOR, True, _check_regressor),
    "ridge": Kind(Ridge, _REGRESSOR, True, _check_regressor),
    "huber_regressor": Kind(HuberRegressor, _REGRESSOR, True, _check_regressor),
    "quantile_regressor": Kind(QuantileRegressor, _REGRESSOR, True, _check_regressor),
    "poisson_regressor": Kind(PoissonRegressor, _REGRESSOR, True, _check_regressor),
    "mean": Kind(Mean, _LOCATION, False, _check_location),
    "median": Kind(Median, _LOCATION, False, _check_location),
    "geometric_median": Kind(GeometricMedian, _LOCATION, True, _check_location),
}


def word_of_model(model: Any) -> str | None:
    """Return the word of a model's class, or None if such models are not saved."""
    return next((word for word, kind in KINDS.items() if kind.model is type(model)), None)
