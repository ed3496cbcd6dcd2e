"""One door for records: what each estimator makes of a record source."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

import tacit.local
from tacit.erm import NoisyGradient
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
from tacit.privacy import Accountant, Budget, BudgetExceeded, PureEpsilon
from tacit.records import Bounds, ChunkedRecords, MemoryRecords
from tacit.records.memory import open_records
from tacit.testing import replay

N = 400


def table() -> tuple[Any, Any]:
    rng = np.random.default_rng(1)
    X = rng.standard_normal((N, 3))
    return X, X @ [0.5, -0.5, 0.2] + 0.1 * rng.standard_normal(N)


def chunked(X: Any, y: Any, bounds: Bounds) -> ChunkedRecords:
    def read() -> Any:
        for at in range(0, len(X), 70):
            yield X[at : at + 70], None if y is None else y[at : at + 70]

    return ChunkedRecords(read, X.shape[1], bounds)


def total(records: Any) -> Any:
    return records.sum(lambda b: (b.points().sum(axis=0), b.labels.sum()))


@pytest.mark.parametrize(
    "kind", [np.asarray, pd.DataFrame, scipy.sparse.csr_array, np.ndarray.tolist]
)
def test_everything_else_is_read(kind: Any) -> None:
    X, y = table()
    bounds = Bounds(row_norm=1.0, label_range=(-0.5, 0.5))
    found = total(open_records(kind(X), list(y), bounds))
    for a, b in zip(found, total(MemoryRecords(X, y, bounds)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)


def test_a_source_passes_through() -> None:
    X, y = table()
    for make in (MemoryRecords, chunked):
        records = make(X, y, Bounds(row_norm=2.0))
        assert open_records(records, None, Bounds(row_norm=2.0)) is records
        with pytest.raises(ValueError, match=r"clipped to .*2\.0.*derived from .*3\.0"):
            open_records(records, None, Bounds(row_norm=3.0))
        with pytest.raises(ValueError, match="its own labels"):
            open_records(records, y, Bounds(row_norm=2.0))


@pytest.mark.parametrize("rows", [[["7777777"]], [[7777777.0, np.nan]], [[1.0], [7777777.0, 2.0]]])
def test_no_value_is_quoted(rows: Any) -> None:
    with pytest.raises(ValueError, match=r"X|column") as caught:
        open_records(rows, None, Bounds())
    assert "7777777" not in str(caught.value)


@pytest.mark.parametrize(
    ("rows", "labels", "why"),
    [
        (np.array([["7777777", "a"]]), None, "rows are of type"),
        (scipy.sparse.csr_array(np.array([[7777777 + 1j]])), None, "rows are of type"),
        (np.ones((1, 2)), np.array(["7777777"]), "labels are of type"),
        (np.ones((41, 2)), np.full(40, 7777777.0), "different lengths"),
        (np.ones((41, 2)), np.full((41, 2), 7777777.0), "different lengths"),
    ],
)
def test_nor_by_records_in_memory(rows: Any, labels: Any, why: str) -> None:
    with pytest.raises((TypeError, ValueError), match=why) as caught:
        MemoryRecords(rows, labels, Bounds())
    assert "7777777" not in str(caught.value)
    assert "41" not in str(caught.value)


# --- estimators ---------------------------------------------------------------------------------

COMMON: dict[str, Any] = {"row_norm": 1.5, "random_state": 2}
RANGE: dict[str, Any] = {**COMMON, "label_range": (-1.0, 3.0)}
MODELS: dict[str, Any] = {
    "logistic": LogisticRegression(**COMMON, classes=[0, 1]),
    "plain": LogisticRegression(**COMMON, classes=[0, 1], fit_intercept=False),
    "svc": LinearSVC(**COMMON, classes=[0, 1]),
    "linear": LinearRegression(**RANGE),
    "moments": LinearRegression(**RANGE, mechanism="sufficient_statistics"),
    "ridge": Ridge(**RANGE, alpha=10.0),
    "huber": HuberRegressor(**RANGE),
    "quantile": QuantileRegressor(**RANGE, smoothing=0.0, mechanism=NoisyGradient(10)),
    "poisson": PoissonRegressor(**COMMON, label_range=(0.0, 9.0)),
}


def as_told(name: str, model: Any) -> tuple[Any, Any, Any]:
    """Return rows, labels for a table and targets for a source."""
    X, y = table()
    if hasattr(model, "classes"):
        return X, (y > 0).astype(int), np.where(y > 0, 1.0, -1.0)
    if name == "poisson":
        counts = np.floor(np.exp(np.clip(y, -3, 3)))
        return X, counts, counts
    return X, y, y - 1.0  # measured from the middle of the range


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("make", [MemoryRecords, chunked])
def test_a_model_is_the_same_whichever_way_records_come(name: str, make: Any) -> None:
    model = MODELS[name]
    X, y, targets = as_told(name, model)
    bounds = model.plan(3).problem.objective.bounds
    model.fit(X, y)
    expected, promise, event = np.ravel(model.coef_).copy(), model.privacy_, model.plan_.event
    model.fit(make(X, targets, bounds), None)
    np.testing.assert_allclose(np.ravel(model.coef_), expected, atol=1e-9)
    assert model.privacy_ == promise
    assert model.plan_.event == event
    assert np.all(np.isfinite(np.asarray(model.predict(X), float)))


@pytest.mark.parametrize("relation", ["add_remove", "replace"])
@pytest.mark.parametrize(
    ("estimator", "delta"), [(Mean, 1e-6), (Mean, 0.0), (GeometricMedian, 1e-6)]
)
def test_so_is_a_location(estimator: Any, delta: float, relation: str) -> None:
    X, _ = table()
    n = N if relation == "replace" else None
    model = estimator(1.0, delta, relation=relation, n_records=n, **COMMON)
    if estimator is GeometricMedian:
        model.set_params(mechanism=NoisyGradient(10))
    expected = model.fit(X).location_
    found = model.fit(chunked(X, None, Bounds(row_norm=1.5, n_records=n))).location_
    np.testing.assert_allclose(found, expected, atol=1e-9)


def test_a_mean_without_noise() -> None:
    X, _ = table()
    model = Mean(np.inf, row_norm=1.5)
    expected = model.fit(X).location_
    found = model.fit(chunked(X, None, Bounds(row_norm=1.5))).location_
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_a_mean_of_a_source_keeps_its_sensitivity() -> None:
    X, _ = table()
    far = np.vstack([X, [[1e12, 1e12, -1e12]]])

    def fit(rows: Any) -> Any:
        return Mean(1.0, row_norm=1.5).fit(chunked(rows, None, Bounds(row_norm=1.5)))

    assert replay(fit, X, far) == 2  # a count and a sum


ALL: dict[str, Any] = {
    **MODELS,
    "mean": Mean(**COMMON),
    "geometric median": GeometricMedian(**COMMON),
}


class Unreadable:
    """A source that explodes when it is read."""

    def __init__(self, bounds: Bounds) -> None:
        self.bounds, self.n_features = bounds, 3

    def _explode(self, *args: Any, **kwargs: Any) -> Any:
        raise ZeroDivisionError

    sum = sum_error = count = every = poisson_sample = _explode


@pytest.mark.parametrize("name", ALL)
def test_nothing_is_read_before_it_is_paid_for(name: str) -> None:
    from sklearn.base import clone

    model = clone(ALL[name]).set_params(random_state=None)
    plan: Any = model.plan(3)
    bounds = plan.problem.objective.bounds if hasattr(plan, "problem") else Bounds(1.5)
    for spent, error in ((1.0, BudgetExceeded), (0.0, ZeroDivisionError)):
        accountant = Accountant(Budget(1.0, 1e-5))
        if spent:
            accountant.charge(PureEpsilon(spent))
        with pytest.raises(error):
            model.set_params(accountant=accountant).fit(Unreadable(bounds), None)
        assert len(accountant.events) == 1


@pytest.mark.parametrize("name", ALL)
def test_other_bounds_are_refused_and_cost_nothing(name: str) -> None:
    from sklearn.base import clone

    accountant = Accountant(Budget(2.0, 1e-5))
    model = clone(ALL[name]).set_params(random_state=None, accountant=accountant)
    with pytest.raises(ValueError, match="give both the same Bounds"):
        model.fit(Unreadable(Bounds(row_norm=1.25)), None)
    assert accountant.events == ()


def test_a_quantile_refuses_a_source_and_costs_nothing() -> None:
    accountant = Accountant(Budget(2.0, 1e-5))
    with pytest.raises(TypeError, match=r"sums over blocks.*pass the rows themselves"):
        Median(bounds=(0, 1), accountant=accountant).fit(Unreadable(Bounds()))
    assert accountant.events == ()


@pytest.mark.parametrize("estimator", [tacit.local.LocalRegressor, tacit.local.LocalMedian])
def test_people_who_answer_for_themselves_are_no_source(estimator: Any) -> None:
    with pytest.raises(TypeError, match="pass the rows themselves"):
        estimator().fit(Unreadable(Bounds()), None)


def test_what_a_source_cannot_be_told() -> None:
    source = Unreadable(Bounds(row_norm=1.5))
    with pytest.raises(ValueError, match="subtract center from the rows in the source"):
        Mean(row_norm=1.5, center=1.0).fit(source)
    with pytest.raises(ValueError, match="its own labels"):
        LogisticRegression(classes=[0, 1]).fit(source, np.zeros(5))
    with pytest.raises(ValueError, match="classes is not declared"):
        LogisticRegression().fit(source, None)
