"""scikit-learn's own conformance checks, for every estimator.

Estimators are given ``"infer"`` where a check cannot declare a public fact, a large epsilon so
that checks about fit quality are about the code and not about noise, and a seed.
"""

from __future__ import annotations

from typing import Any

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from tacit.linear_model import (
    HuberRegressor,
    LinearRegression,
    LinearSVC,
    LogisticRegression,
    PoissonRegressor,
    QuantileRegressor,
    Ridge,
)
from tacit.local import (
    LocalGeometricMedian,
    LocalLinearSVC,
    LocalLogisticRegression,
    LocalMedian,
    LocalRegressor,
)
from tacit.location import GeometricMedian, Mean, Median

LARGE: dict[str, Any] = {"epsilon": 300.0, "delta": 1e-3, "random_state": 0}
CLASSIFIER = {**LARGE, "classes": "infer", "row_norm": 20.0}
REGRESSOR = {**LARGE, "label_range": "infer", "row_norm": 20.0}
LOCAL: dict[str, Any] = {"epsilon": 300.0, "random_state": 0, "row_norm": 4.0}

# One of each family, and, slow, the others, which share its code.
FIRST = [
    LogisticRegression(**CLASSIFIER),
    LinearRegression(**REGRESSOR),
    Mean(**LARGE, row_norm=20.0),
    LocalLogisticRegression(**LOCAL, classes="infer"),
]
OTHERS = [
    LinearSVC(**CLASSIFIER),
    Ridge(**REGRESSOR),
    HuberRegressor(**REGRESSOR),
    QuantileRegressor(**REGRESSOR),
    PoissonRegressor(**REGRESSOR),
    Median(**LARGE, bounds=(-20.0, 20.0)),
    GeometricMedian(**LARGE, row_norm=20.0),
    LocalLinearSVC(**LOCAL, classes="infer"),
    LocalRegressor(**LOCAL),
    LocalMedian(**LOCAL),
    LocalGeometricMedian(**LOCAL),
]


def expected_failures(estimator: Any) -> dict[str, str]:
    return {}


@parametrize_with_checks(FIRST, expected_failed_checks=expected_failures)
def test_sklearn_compatible(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(OTHERS, expected_failed_checks=expected_failures)
def test_others_are_sklearn_compatible(estimator: Any, check: Any) -> None:
    check(estimator)
