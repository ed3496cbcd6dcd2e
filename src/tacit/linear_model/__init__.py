"""Linear models in scikit-learn's manner, each with a privacy guarantee."""

from tacit.linear_model.huber import HuberRegressor
from tacit.linear_model.least_squares import LinearRegression, Ridge
from tacit.linear_model.logistic import LogisticRegression
from tacit.linear_model.poisson import PoissonRegressor
from tacit.linear_model.quantile import QuantileRegressor
from tacit.linear_model.summary import Summary
from tacit.linear_model.svc import LinearSVC

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
