"""With many records, the bias of every estimator is small beside its standard error."""

from __future__ import annotations

import csv
import gzip
import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tacit.datasets.base import find_file
from tacit.linear_model import PoissonRegressor, Ridge
from tacit.registry import MODELS, ModelSpec, Predicts
from tests.datasets.helpers import needs

Array = npt.NDArray[np.float64]
N_RECORDS = 70_000
# Waves are nearly collinear, and the ridge that privacy requires at epsilon 8 shrinks the weak
# directions by more than their standard error. The ridge falls with epsilon.
EPSILON = {"kernel_logistic": 100.0, "kernel_svc": 100.0, "kernel_ridge": 100.0}
# Local models add noise to every report: they have no fit without noise to tend to.
CENTRAL = [spec for spec in MODELS if not spec.word.startswith("local")]


def _counts(scores: Array, rng: np.random.Generator, n: int) -> Array:
    rates = np.exp(1.2 + 0.5 * scores) * rng.gamma(3.0, 1 / 3, n)
    return np.clip(rng.poisson(rates), 0, 14).astype(np.float64)


def _table(spec: ModelSpec, n: int = N_RECORDS) -> tuple[Array, Any]:
    """Return correlated columns, one of them binary, and labels with outliers."""
    rng = np.random.default_rng(1)
    rows = rng.uniform(-1, 1, (n, 4))
    rows[:, 2] = rows[:, 2] > 0.3
    rows[:, 3] = 0.6 * rows[:, 0] + 0.8 * rows[:, 3]
    scores = rows @ [0.8, -0.5, 0.4, 0.2]
    if spec.predicts is Predicts.LOCATION:
        return rows[:, [0, 1, 3]] + [0.2, 0.0, 0.0], None
    if spec.word == "poisson":
        return rows, _counts(scores, rng, n)
    if spec.predicts is Predicts.NUMBERS:
        return rows, scores + 0.5 * rng.standard_t(5, n)
    return rows, rng.random(n) < 1 / (1 + np.exp(-scores - 0.5))


def _parameters(spec: ModelSpec) -> dict[str, Any]:
    known = dict(spec.examples()[0].parameters)
    if spec.word == "median":
        return {"bounds": (-2.0, 2.0)}
    if spec.predicts is Predicts.NUMBERS:
        known["label_range"] = (0, 14) if spec.word == "poisson" else (-4.0, 4.0)
    return {**known, "row_norm": 2.0}


def _released(spec: ModelSpec, epsilon: float, seed: int, rows: Array, labels: Any) -> Array:
    """Return the location or coefficients; for a kernel, whose waves mean nothing, scores."""
    delta = 0.0 if math.isinf(epsilon) else 1e-6
    model = spec.model(epsilon, delta, random_state=seed, **_parameters(spec))
    if labels is None:
        return np.ravel(model.fit(rows).location_)
    model.fit(rows, labels)
    if spec.terms is not None:
        grid = np.random.default_rng(2).uniform(-1, 1, (20, 4))
        says = getattr(model, "decision_function", model.predict)
        return np.ravel(says(grid))
    return np.append(np.ravel(model.coef_), model.intercept_)


@pytest.mark.slow
@pytest.mark.parametrize("spec", CENTRAL, ids=lambda spec: spec.word)
def test_bias_is_below_a_quarter_of_the_standard_error(spec: ModelSpec) -> None:
    slow = spec.word == "geometric_median"  # 3 s for all records
    n_records, n_fits = (10_000, 20) if slow else (N_RECORDS, 100)
    rows, labels = _table(spec, n_records)
    rng = np.random.default_rng(3)
    drawn = [rng.integers(0, n_records, n_records) for _ in range(12)]
    bootstrap = [
        _released(spec, math.inf, 0, rows[i], None if labels is None else labels[i]) for i in drawn
    ]
    errors = np.std(bootstrap, axis=0)
    epsilon = EPSILON.get(spec.word, 8.0)
    fits = [_released(spec, epsilon, seed, rows, labels) for seed in range(n_fits)]
    exact = _released(spec, math.inf, 0, rows, labels)
    # Three standard errors of the mean of the fits may be noise.
    noise = 3 * np.std(fits, axis=0) / math.sqrt(n_fits)
    assert np.all(np.abs(np.mean(fits, axis=0) - exact) <= errors / 4 + noise)


@pytest.mark.parametrize("regularization", [None, 5.0])
def test_a_poisson_model_is_not_biased_by_the_right_range(regularization: float | None) -> None:
    """A quarter of the range as bound on residuals lowered the mean prediction by 8 %."""
    rng = np.random.default_rng(0)
    rows = rng.uniform(-1, 1, (30_000, 3))
    counts = _counts(rows @ [0.8, -0.5, 0.4], rng, 30_000)
    known: Any = {"row_norm": 2.0, "label_range": (0, 14), "regularization": regularization}
    means = [
        PoissonRegressor(8.0, 1e-6, random_state=seed, **known).fit(rows, counts).predict(rows)
        for seed in range(5)
    ]
    assert np.mean(means) == pytest.approx(np.mean(counts), rel=0.003)


def test_a_declared_ridge_does_not_stop_the_loss_from_widening() -> None:
    """Residuals of one in five labels are beyond a quarter of half the range."""
    rng = np.random.default_rng(0)
    rows = rng.uniform(-1, 1, (50_000, 2))
    labels = np.clip(rows @ [1.0, -0.5] + rng.exponential(1.0, 50_000), -4, 8)
    known: Any = {"alpha": 20.0, "row_norm": 2.0, "label_range": (-4.0, 8.0)}
    exact = Ridge(math.inf, 0.0, **known).fit(rows, labels)
    fits = [Ridge(8.0, 1e-6, random_state=s, **known).fit(rows, labels) for s in range(5)]
    # log cosh of residuals up to a quarter of the range is 0.05 below
    assert np.mean([fit.intercept_ for fit in fits]) == pytest.approx(exact.intercept_, abs=0.01)
    for fit in fits:
        assert fit.plan_.settings["regularization"] == 20.0


DAYS = "diabetes130/diabetic_data.csv.gz"


def _diabetes() -> tuple[Array, Array]:
    with gzip.open(find_file(DAYS), "rt", newline="") as lines:
        records = list(csv.DictReader(lines))[:N_RECORDS]
    columns = {"num_medications": 81.0, "num_lab_procedures": 132.0, "num_procedures": 6.0}
    rows = np.array([[float(r[c]) / top for c, top in columns.items()] for r in records])
    return rows, np.array([float(r["time_in_hospital"]) for r in records])


@needs(DAYS)
@pytest.mark.slow
def test_days_in_hospital() -> None:
    rows, days = _diabetes()
    known: Any = {"row_norm": 1.5, "label_range": (0, 14)}
    exact = PoissonRegressor(math.inf, 0.0, **known).fit(rows, days)
    fits = [
        PoissonRegressor(8.0, 1e-6, inference=0.2, random_state=seed, **known).fit(rows, days)
        for seed in range(100)
    ]
    errors = fits[0].standard_errors_
    found = np.mean([np.append(fit.coef_, fit.intercept_) for fit in fits], axis=0)
    assert np.all(np.abs(found - np.append(exact.coef_, exact.intercept_)) < errors / 4)
