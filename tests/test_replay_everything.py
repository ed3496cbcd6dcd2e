"""Every estimator and mechanism, replayed on neighbouring data under its relation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tacit.erm.noisy_gradient as noisy_gradient_module
import tacit.erm.objective_perturbation as objective_perturbation_module
import tacit.erm.output_perturbation as output_perturbation_module
import tacit.erm.sufficient_statistics as sufficient_statistics_module
from tacit.erm import L1Ball, L2Ball, NoisyGradient, NoisySGD, PublicCandidates
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
from tacit.noise import SensitivityViolation
from tacit.testing import replay

N = 60
SCORES: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-5, "row_norm": 1.5}
REPLACED: dict[str, Any] = {"relation": "replace", "n_records": N + 1}


def table(kind: str, *, extreme: float) -> tuple[Any, Any, Any, Any]:
    """Return data, and data with one more record: as far out as one can be."""
    rng = np.random.default_rng(5)
    X = rng.standard_normal((N, 3))
    if kind == "binary":
        y: Any = X[:, 0] > 0
        odd = False
    elif kind == "classes":
        y = rng.integers(0, 3, N)
        odd = 2
    elif kind == "count":
        y = rng.poisson(3.0, N).astype(float)
        odd = extreme * 100
    else:
        y = X @ [1.0, -1.0, 0.5]
        odd = -extreme * 100
    more = np.vstack([X, [[extreme, 0.3 * extreme, -extreme]]])
    return X, y, more, np.append(y, odd)


RANGE = {"label_range": (-3.0, 3.0)}
CASES: dict[str, tuple[Any, str]] = {}
for mechanism in ("auto", "objective_perturbation", "noisy_gradient", "output_perturbation"):
    for intercept in (True, False):
        options = {**SCORES, "mechanism": mechanism, "fit_intercept": intercept}
        tag = f"{mechanism}-{'intercept' if intercept else 'plain'}"
        CASES[f"logistic-{tag}"] = (LogisticRegression(**options), "binary")
        CASES[f"svc-{tag}"] = (LinearSVC(**options), "binary")
        CASES[f"linear-{tag}"] = (LinearRegression(**options, **RANGE), "number")
        CASES[f"quantile-{tag}"] = (QuantileRegressor(**options, **RANGE), "number")
        CASES[f"poisson-{tag}"] = (PoissonRegressor(**options, label_range=(0, 9)), "count")
CASES |= {
    "softmax": (LogisticRegression(**SCORES, classes=[0, 1, 2]), "classes"),
    "softmax-objective": (
        LogisticRegression(**SCORES, classes=[0, 1, 2], mechanism="objective_perturbation"),
        "classes",
    ),
    "pure-softmax": (
        LogisticRegression(1.0, 0.0, row_norm=1.5, classes=[0, 1, 2]),
        "classes",
    ),
    "pure-logistic": (LogisticRegression(1.0, 0.0, row_norm=1.5), "binary"),
    "pure-output": (
        LogisticRegression(1.0, 0.0, row_norm=1.5, mechanism="output_perturbation"),
        "binary",
    ),
    "pure-huber": (HuberRegressor(1.0, 0.0, row_norm=1.5, **RANGE), "number"),
    "ridge": (Ridge(**SCORES, **RANGE, alpha=30.0), "number"),
    "moments": (LinearRegression(**SCORES, **RANGE, mechanism="sufficient_statistics"), "number"),
    "ball": (LogisticRegression(**SCORES, constraint=L2Ball(2.0)), "binary"),
    "l1-ball": (LogisticRegression(**SCORES, constraint=L1Ball(2.0)), "binary"),
    "sgd": (
        LogisticRegression(**SCORES, n_records=N, mechanism=NoisySGD(sampling_rate=1.0, n_steps=5)),
        "binary",
    ),
    "candidates": (
        LogisticRegression(
            1.0,
            0.0,
            row_norm=1.5,
            fit_intercept=False,
            mechanism=PublicCandidates(np.vstack([np.eye(3), -np.eye(3)])),
        ),
        "binary",
    ),
    "mean": (Mean(1.0, 1e-5, row_norm=2.0), "rows"),
    "mean-pure": (Mean(1.0, 0.0, row_norm=2.0), "rows"),
    "median": (Median(1.0, bounds=(-3, 3)), "rows"),
    "quantile-columns": (Median(1.0, 1e-5, bounds=(-3, 3), quantile=0.9), "rows"),
    "geometric-median": (GeometricMedian(1.0, 1e-5, row_norm=2.0), "rows"),
}
# what theory does not allow under REPLACE
ADD_REMOVE_ONLY = {"sgd", "softmax-objective"} | {
    name
    for name in CASES
    if name.startswith(("linear-objective", "quantile-objective", "poisson-objective"))
}


def fit(estimator: Any, data: tuple[Any, Any], kind: str) -> Any:
    from sklearn.base import clone

    X, y = data
    return clone(estimator).fit(X) if kind == "rows" else clone(estimator).fit(X, y)


@pytest.mark.parametrize("name", CASES)
# A record that is clipped, and, slow, one that is not.
@pytest.mark.parametrize("extreme", [1e6, pytest.param(0.2, marks=pytest.mark.slow)])
def test_add_remove(name: str, extreme: float) -> None:
    estimator, kind = CASES[name]
    X, y, more_X, more_y = table(kind, extreme=extreme)
    fewer, more = (X, y), (more_X, more_y)
    assert replay(lambda data: fit(estimator, data, kind), fewer, more) >= 1
    assert replay(lambda data: fit(estimator, data, kind), more, fewer) >= 1


@pytest.mark.parametrize("name", [name for name in CASES if name not in ADD_REMOVE_ONLY])
def test_replace(name: str) -> None:
    from sklearn.base import clone

    estimator, kind = CASES[name]
    known = {k: v for k, v in REPLACED.items() if k in estimator.get_params()}
    estimator = clone(estimator).set_params(**known)
    _, _, X, y = table(kind, extreme=1e6)
    other_X = X.copy()
    other_X[-1] = [-1e6, 1e6, 1e-3]
    other_y = np.array(y)
    other_y[-1] = {"binary": True, "classes": 0, "count": 0.0}.get(kind, 1e9)
    assert replay(lambda data: fit(estimator, data, kind), (X, y), (other_X, other_y)) >= 1


MUTANTS = {
    "noisy_gradient": (noisy_gradient_module, "logistic-noisy_gradient-intercept"),
    "objective_perturbation": (
        objective_perturbation_module,
        "logistic-objective_perturbation-intercept",
    ),
    "output_perturbation": (output_perturbation_module, "logistic-output_perturbation-intercept"),
    "sufficient_statistics": (sufficient_statistics_module, "moments"),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_halved_sensitivity_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module, case = MUTANTS[name]
    monkeypatch.setattr(module, "moved", lambda relation: 0.5)
    estimator, kind = CASES[case]
    if name in {"objective_perturbation", "output_perturbation"}:
        # the noise may carry the logistic loss to where the record's slope is below a half; with
        # a stiff ridge every margin is below 1, where the hinge has its full slope, whatever
        # the noise
        estimator = LinearSVC(**SCORES, mechanism=name, regularization=1e4, fit_intercept=False)
    X, y, more_X, more_y = table(kind, extreme=1e6)
    with pytest.raises(SensitivityViolation):
        replay(lambda data: fit(estimator, data, kind), (X, y), (more_X, more_y))


def test_rows_used_unclipped_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    from tacit.records import MemoryRecords

    monkeypatch.setattr(MemoryRecords, "clip_factors", lambda self: np.ones(self.rows.shape[0]))
    estimator = LogisticRegression(**SCORES, mechanism=NoisyGradient(n_steps=3))
    X, y, more_X, more_y = table("binary", extreme=1e6)
    with pytest.raises(SensitivityViolation):
        replay(lambda data: fit(estimator, data, "binary"), (X, y), (more_X, more_y))
