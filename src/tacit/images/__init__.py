"""Classifiers of images in scikit-learn's manner, each with a privacy guarantee."""

from tacit.images.scattering_classifier import ScatteringClassifier

__all__ = ["ScatteringClassifier"]
