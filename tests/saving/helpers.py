"""Fitted models of every kind, small, and what it means that two are the same."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pandas as pd

from tacit.erm import Box, L1Ball, L2Ball, NoisyGradient, NoisySGD
from tacit.estimators.parameters import epsilon_of
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
from tacit.pipeline import PrivatePipeline
from tacit.privacy import Accountant, Budget, Relation
from tacit.saving.container import pack
from tacit.saving.model_file import members_of
from tacit.saving.validation import NOT_STORED, STORED, kind_of
from tacit.schema import (
    Boolean,
    Category,
    ClassTarget,
    Number,
    NumberTarget,
    Schema,
    SchemaEncoder,
)
from tacit.table_model import TableModel
from tests.declared import PROBLEMS, fit, made

RNG = np.random.default_rng(5)
X = RNG.uniform(-1.0, 1.0, (400, 3))
SCORES = X @ [1.0, -2.0, 0.5]
FRAME = pd.DataFrame(X, columns=["age", "hours", "größe"])
WORDS = np.array(["blue", "green", "red"])[np.digitize(SCORES, [-0.5, 0.5])]
RANGE: dict[str, Any] = {"row_norm": 2.0, "label_range": (-4, 4.0)}

PEOPLE = pd.DataFrame(
    {
        "age": RNG.uniform(0, 120, 400),
        "sex": RNG.choice(["f", "m", "?"], 400),
        "smoker": RNG.choice(["yes", "no"], 400),
        "ill": RNG.choice(["yes", "no", "unknown"], 400),
        "visits": RNG.poisson(3, 400),
    }
)
COLUMNS = (Number("age", 0, 100), Category("sex", ("f", "m")), Boolean("smoker"))
ILLNESS = Schema(COLUMNS, ClassTarget("ill", ("yes", "no")))
VISITS = Schema(COLUMNS, NumberTarget("visits", 0, 20), n_records=400, unconfirmed=("age",))


def _with_objects(model: Any) -> Any:
    """Return a model whose classes are objects, as pandas has them."""
    model.classes_ = model.classes_.astype(object)
    return model


FITS: dict[str, Callable[[], Any]] = {
    "logistic": lambda: LogisticRegression(1.0, row_norm=2.0).fit(X, SCORES > 0),
    "softmax_words": lambda: LogisticRegression(
        1, 1e-5, row_norm=np.float64(2.0), classes=["red", "green", "blue"]
    ).fit(FRAME, WORDS),
    "softmax_objects": lambda: _with_objects(
        LogisticRegression(
            3.0, classes="infer", relation=Relation.REPLACE, n_records="infer", fit_intercept=False
        ).fit(X, WORDS.astype(object))
    ),
    "logistic_no_budget": lambda: LogisticRegression(np.inf, classes=range(2)).fit(X, SCORES > 0),
    "logistic_seeded": lambda: LogisticRegression(
        2.0, classes=np.array([0, 1]), random_state=3, n_records=400, mechanism=NoisySGD(0.5, 4)
    ).fit(X, (SCORES > 0).astype(int)),
    "logistic_float32": lambda: LogisticRegression(1.0, row_norm=2.0).fit(
        X.astype(np.float32), SCORES > 0
    ),
    "logistic_accountant": lambda: LogisticRegression(
        1.0, accountant=Accountant(Budget(5.0, 1e-5))
    ).fit(X, SCORES > 0),
    "logistic_weighted": lambda: LogisticRegression(
        1.0, row_norm=2.0, class_weight={False: 1, True: 8}, max_weight=2.0
    ).fit(X, SCORES > 0, np.ones(400)),
    "softmax_balanced": lambda: LogisticRegression(
        1.0, classes=["red", "green", "blue"], class_weight="balanced", row_norm=2.0
    ).fit(FRAME, WORDS),
    "logistic_errors": lambda: LogisticRegression(3.0, row_norm=2.0, inference=0.1).fit(
        X, SCORES > 0
    ),
    "table_errors": lambda: TableModel(
        ILLNESS.with_references(), LogisticRegression(3.0, inference=0.2)
    ).fit(PEOPLE),
    "svc": lambda: LinearSVC(2.0, mechanism=NoisyGradient(n_steps=20), constraint=L2Ball(5.0)).fit(
        X, SCORES > 0
    ),
    "linear": lambda: LinearRegression(1.0, **RANGE, constraint=Box(-9.0, 9)).fit(FRAME, SCORES),
    "linear_moments": lambda: LinearRegression(1.0, **RANGE, mechanism="sufficient_statistics").fit(
        X, SCORES
    ),
    "ridge": lambda: Ridge(1.0, 0.0, **RANGE, alpha=50).fit(X, SCORES),
    "huber": lambda: HuberRegressor(1.0, **RANGE, constraint=L1Ball(4.0)).fit(X, SCORES),
    "quantile": lambda: QuantileRegressor(1.0, **RANGE, quantile=0.9).fit(X, SCORES),
    "poisson": lambda: PoissonRegressor(1.0, row_norm=2.0, label_range=[0, 9]).fit(
        X, RNG.poisson(np.exp(SCORES / 2))
    ),
    "mean": lambda: Mean(1.0, center=[0.1, 0.0, 0.0]).fit(X),
    "mean_no_budget": lambda: Mean(np.inf, center=np.zeros(3)).fit(X),
    "median": lambda: Median(1.0, bounds=[(-1, 1), (-2, 2.0), (-1, 1)]).fit(FRAME),
    "table": lambda: TableModel(ILLNESS, LogisticRegression(1.0)).fit(PEOPLE),
    "table_float32": lambda: TableModel(
        VISITS, PoissonRegressor(1.0), dtype="float32", allow_unconfirmed=True
    ).fit(PEOPLE),
    "pipeline": lambda: PrivatePipeline(
        [("encode", SchemaEncoder(ILLNESS)), ("model", LogisticRegression(1.0))], epsilon=None
    ).fit(PEOPLE),
    "geometric_median": lambda: GeometricMedian(1.0, row_norm=2.0).fit(X),
}
# and every declared model that can be saved
FITS |= {
    name: lambda spec=spec, example=example: fit(made(spec, example), example.rows, example.labels)
    for name, (spec, example) in PROBLEMS.items()
    if spec.kind is not None
}

# Those that say where the middle is predict nothing.
PREDICTING = [name for name in FITS if "mean" not in name and "median" not in name]
TABLES = [name for name in FITS if "table" in name or name == "pipeline"]


@cache
def fitted(name: str) -> Any:
    """Return the fitted model of a name, the same object every time: do not change it."""
    return FITS[name]()


@cache
def saved(name: str) -> bytes:
    """Return the file of a model."""
    return pack(members_of(fitted(name)))


def unpacked(name: str) -> dict[str, bytes]:
    """Return the members of a model, for a test to change and pack again."""
    return dict(members_of(fitted(name)))


def edited(name: str, edit: Callable[[dict[str, Any]], None], member: str = "model.json") -> bytes:
    """Return a file whose JSON was edited and whose checksums were made to fit: a forgery."""
    members = unpacked(name)
    record = json.loads(members[member])
    edit(record)
    members[member] = json.dumps(record).encode()
    return pack(members)


def fingerprint(model: Any) -> str:
    """Return a text that two models share only if nobody could tell them apart by using them."""
    encoder = getattr(model, "encoder_", None)
    if encoder is not None:
        inner, names = fingerprint(model.released_estimator()), [name for name, _ in model.steps]
        kind = f"{type(model)} {names} {np.dtype(encoder.dtype)} {encoder.allow_unconfirmed}"
        return f"{kind} {encoder.schema!r} {inner}"
    spec = STORED[str(kind_of(model))]
    parameters = {k: v for k, v in model.get_params().items() if k not in NOT_STORED}
    parameters["epsilon"] = epsilon_of(parameters["epsilon"])  # a file says what None was
    parts = [type(model).__name__, _bits(parameters)]
    parts += [f"{name}={_bits(getattr(model, name, None))}" for name in spec.released]
    # A plan made from a NumPy number is the plan made from the number.
    plan = re.sub(r"np\.float64\(([^()]*)\)", r"\1", repr(getattr(model, "plan_", "no plan")))
    return "\n".join([*parts, plan, repr(model.privacy_)])


def _bits(value: Any) -> str:
    if isinstance(value, np.ndarray):
        body = repr(value.tolist()) if value.dtype == object else value.tobytes("A").hex()
        digest = hashlib.sha256(body.encode()).hexdigest()
        return f"{value.dtype} {value.shape} {value.flags.f_contiguous} {digest}"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k}: {_bits(v)}" for k, v in sorted(value.items())) + "}"
    if isinstance(value, np.generic):
        return repr(value.item())
    return repr(list(value)) if isinstance(value, range) else repr(value)
