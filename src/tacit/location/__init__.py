"""Estimators of location: mean, quantiles, geometric median."""

from tacit.location.geometric_median import GeometricMedian
from tacit.location.mean import Mean
from tacit.location.median import Median

__all__ = ["GeometricMedian", "Mean", "Median"]
