"""An infinite budget is scikit-learn, or the stated objective minimised."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from sklearn import linear_model as sk

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
from tests.estimators.helpers import (
    CLASSES,
    CONSTANT,
    COUNTS,
    LABELS,
    NORM,
    RANGE,
    X,
    Y,
    augmented,
)


@pytest.mark.parametrize("intercept", [True, False])
def test_infinite_budget_is_logistic_regression(intercept: bool) -> None:
    ours = LogisticRegression(
        math.inf, row_norm=NORM, regularization=2.0, fit_intercept=intercept
    ).fit(X, LABELS)
    rows = augmented(X) if intercept else X
    theirs = sk.LogisticRegression(C=0.5, fit_intercept=False, tol=1e-12, max_iter=10_000)
    theirs.fit(rows, LABELS)
    coef = theirs.coef_[0]
    np.testing.assert_allclose(ours.coef_[0], coef[:4], atol=1e-5)
    if intercept:
        np.testing.assert_allclose(ours.intercept_[0], CONSTANT * coef[4], atol=1e-5)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(rows), atol=1e-5)
    assert ours.privacy_.epsilon(1e-6) == math.inf
    assert ours.plan_ is None


def test_infinite_budget_is_multinomial_regression() -> None:
    ours = LogisticRegression(
        math.inf, row_norm=NORM, regularization=2.0, fit_intercept=False, classes=[0, 1, 2]
    ).fit(X, CLASSES)
    theirs = sk.LogisticRegression(C=0.5, fit_intercept=False, tol=1e-12, max_iter=10_000)
    np.testing.assert_allclose(ours.coef_, theirs.fit(X, CLASSES).coef_, atol=1e-5)


def test_infinite_budget_is_least_squares() -> None:
    ours = LinearRegression(math.inf, row_norm=NORM).fit(X, Y)
    theirs = sk.LinearRegression().fit(X, Y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-5)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-5)


def test_infinite_budget_is_ridge() -> None:
    ours = Ridge(math.inf, alpha=3.0, row_norm=NORM, fit_intercept=False, label_range=RANGE)
    theirs = sk.Ridge(alpha=3.0, fit_intercept=False).fit(X, Y)
    np.testing.assert_allclose(ours.fit(X, Y).coef_, theirs.coef_, atol=1e-5)


def test_infinite_budget_is_poisson_regression() -> None:
    ours = PoissonRegressor(
        math.inf, row_norm=NORM, regularization=4.0, fit_intercept=False, label_range=(0, 100)
    ).fit(X, COUNTS)
    # scikit-learn: mean deviance / 2 + (alpha / 2) ||w||^2
    theirs = sk.PoissonRegressor(alpha=4.0 / len(X), fit_intercept=False, tol=1e-10, max_iter=9999)
    np.testing.assert_allclose(ours.coef_, theirs.fit(X, COUNTS).coef_, atol=1e-5)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), rtol=1e-5)


def test_infinite_budget_is_quantile_regression() -> None:
    # the minimiser of a piecewise linear loss need not be unique: compare what it minimises
    ours = QuantileRegressor(
        math.inf, quantile=0.7, smoothing=0.0, row_norm=NORM, label_range=RANGE
    ).fit(X, Y)
    theirs = sk.QuantileRegressor(quantile=0.7, alpha=0.0).fit(X, Y)

    def pinball(model: Any) -> float:
        r = Y - model.predict(X)
        return float(np.maximum(0.7 * r, -0.3 * r).mean())

    assert pinball(ours) <= pinball(theirs) * (1 + 1e-5)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=0.05)


@pytest.mark.parametrize("kind", ["svc", "huber"])
def test_infinite_budget_minimises_the_stated_objective(kind: str) -> None:
    # no same objective in scikit-learn: compare with SciPy on the formula itself
    from scipy.optimize import minimize

    if kind == "svc":
        model: Any = LinearSVC(math.inf, row_norm=NORM, regularization=2.0, fit_intercept=False)
        signs = np.where(LABELS, 1.0, -1.0)

        def risk(w: Any) -> float:
            gap, h = 1 - signs * (X @ w), 0.5
            return float(np.where(gap > h, gap, np.clip(gap + h, 0, None) ** 2 / (4 * h)).sum())

        found = model.fit(X, LABELS).coef_[0]
    else:
        model = HuberRegressor(
            math.inf,
            knot=0.4,
            row_norm=NORM,
            regularization=2.0,
            fit_intercept=False,
            label_range=RANGE,
        )

        def risk(w: Any) -> float:
            r = np.abs(X @ w - Y)
            return float(np.where(r <= 0.4, r**2 / 2, 0.4 * (r - 0.2)).sum())

        found = model.fit(X, Y).coef_
    best = minimize(lambda w: risk(w) + w @ w, np.zeros(4), tol=1e-14, method="BFGS")
    np.testing.assert_allclose(found, best.x, atol=1e-4)


def test_infinite_budget_of_location() -> None:
    assert np.allclose(Mean(math.inf, row_norm=NORM).fit(X).location_, X.mean(axis=0))
    assert np.allclose(Median(math.inf, bounds=(-9, 9)).fit(X).location_, np.median(X, axis=0))
    middle = GeometricMedian(math.inf, row_norm=NORM).fit(X).location_
    away = middle - X
    pull = (away / np.linalg.norm(away, axis=1, keepdims=True)).sum(axis=0)
    assert np.linalg.norm(pull) < 1e-2
