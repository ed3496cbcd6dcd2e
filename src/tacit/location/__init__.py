"""Estimators of location: mean, quantiles, geometric median."""

from tacit.location.estimators import GeometricMedian, Mean, Median

__all__ = ["GeometricMedian", "Mean", "Median"]
