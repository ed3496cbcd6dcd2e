"""Linear models with scikit-learn's interface and a privacy guarantee."""

from tacit.estimators.summary import Summary, WaldTest
from tacit.linear_model.classifiers import LinearSVC, LogisticRegression
from tacit.linear_model.regressors import (
    HuberRegressor,
    LinearRegression,
    PoissonRegressor,
    QuantileRegressor,
    Ridge,
)

__all__ = [
    "HuberRegressor",
    "LinearRegression",
    "LinearSVC",
    "LogisticRegression",
    "PoissonRegressor",
    "QuantileRegressor",
    "Ridge",
    "Summary",
    "WaldTest",
]
