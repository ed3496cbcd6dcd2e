"""Additive models of raw tables: private bins and curves that people can read, from a schema."""

from tacit.additive.estimators import AdditiveClassifier, AdditiveRegressor
from tacit.additive.planning import AdditivePlan
from tacit.additive.terms import Term

__all__ = ["AdditiveClassifier", "AdditivePlan", "AdditiveRegressor", "Term"]
