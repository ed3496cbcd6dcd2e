"""Linear models in scikit-learn's manner, each with a privacy guarantee."""

from tacit.estimators.summary import Summary
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
]
