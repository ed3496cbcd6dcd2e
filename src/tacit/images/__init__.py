"""Classify images with estimators in scikit-learn's style, each with a privacy guarantee."""

from tacit.images.scattering_classifier import ScatteringClassifier

__all__ = ["ScatteringClassifier"]
