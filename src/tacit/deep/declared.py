"""The networks, declared as `tacit.models` declares every other estimator."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from tacit.deep.networks import parameter_count
from tacit.deep.neural_classifier import NeuralClassifier
from tacit.deep.neural_regressor import NeuralRegressor
from tacit.models import ACCURACY, NAMES, R2, Example, Link, ModelSpec, Predicts
from tacit.privacy import Relation
from tacit.saving.errors import NotAModel

_WEIGHTS = "A weight of a network means nothing by itself; predictions do."
_LINK = Link(_WEIGHTS, _WEIGHTS, _WEIGHTS)
_FEW: dict[str, Any] = {"n_records": 60, "n_steps": 5, "hidden": (4,)}


def _examples_of_classes() -> tuple[Example, ...]:
    rows = np.random.default_rng(5).standard_normal((60, 3))
    known = {"classes": [False, True], **_FEW}
    return (Example("binary", known, rows, rows[:, 0] > 0, (False, True)),)


def _examples_of_numbers() -> tuple[Example, ...]:
    rows = np.random.default_rng(5).standard_normal((60, 3))
    known = {"label_range": (-3.0, 3.0), **_FEW}
    return (Example("number", known, rows, rows @ [1.0, -1.0, 0.5], (-1e8, 1e9)),)


def check_network(model: Any) -> None:
    """Refuse weights that are not those of the declared network."""
    weights = model.weights_
    if not isinstance(weights, np.ndarray) or weights.dtype != np.float32 or weights.ndim != 1:
        raise NotAModel("weights_ is not one row of single floats.")
    if not np.all(np.isfinite(weights)):
        raise NotAModel("weights_ has a value that is not finite.")
    if "label_range_" in vars(model):
        _check_range(model.label_range_)
    try:
        with torch.device("meta"):  # without the memory that a forged file may ask for
            size = parameter_count(model.unfilled())
    except (TypeError, ValueError, RuntimeError, AttributeError) as why:
        raise NotAModel(f"its parameters are not a network's: {why}") from why
    if size != weights.size:
        raise NotAModel(f"its network has {size} weights, and weights_ {weights.size}.")


def _check_range(found: Any) -> None:
    numbers = isinstance(found, tuple) and len(found) == 2
    if not numbers or not all(type(end) in (int, float) for end in found):
        raise NotAModel("label_range_ is not two numbers.")
    if not -np.inf < found[0] < found[1] < np.inf:
        raise NotAModel("label_range_ is not finite and in order.")


NETWORKS: tuple[ModelSpec, ...] = (
    ModelSpec(
        "network",
        NeuralClassifier,
        Predicts.CLASSES,
        ("weights_", "classes_", "n_features_in_", NAMES),
        _LINK,
        _examples_of_classes,
        "neural_classifier",
        ACCURACY,
        relations=(Relation.ADD_REMOVE,),
        check=check_network,
    ),
    ModelSpec(
        "network_of_numbers",
        NeuralRegressor,
        Predicts.NUMBERS,
        ("weights_", "label_range_", "n_features_in_", NAMES),
        _LINK,
        _examples_of_numbers,
        "neural_regressor",
        R2,
        relations=(Relation.ADD_REMOVE,),
        check=check_network,
    ),
)
