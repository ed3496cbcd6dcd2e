"""Linear models in scikit-learn's manner, each with a privacy guarantee."""

from tacit.linear_model.logistic import LogisticRegression
from tacit.linear_model.regression import (
    HuberRegressor,
    LinearRegression,
    PoissonRegressor,
    QuantileRegressor,
    Ridge,
)
from tacit.linear_model.svc import LinearSVC

__all__ = [
    "HuberRegressor",
    "LinearRegression",
    "LinearSVC",
    "LogisticRegression",
    "PoissonRegressor",
    "QuantileRegressor",
    "Ridge",
]
