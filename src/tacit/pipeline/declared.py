"""Every step that a saved pipeline may hold, declared once: its word, and what its fit released."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sklearn import preprocessing

from tacit.features import (
    Interactions,
    PolynomialFeatures,
    RandomFourierFeatures,
    SplineFeatures,
)
from tacit.pipeline.stateless import KNOWN
from tacit.preprocessing.private import (
    PrivateMissing,
    PrivatePCA,
    PrivateQuantileBounds,
    PrivateStandardScaler,
    PrivateVocabulary,
)


@dataclass(frozen=True)
class StepSpec:
    """A kind of step: a word that never changes its meaning, and the attributes that are released.

    A step that learns nothing is its parameters.
    """

    kind: str
    step: type[Any]
    released: tuple[str, ...] = ()

    @property
    def spends(self) -> bool:
        """Whether what it has learned cost something."""
        return hasattr(self.step, "plan")

    @property
    def is_of_scikit_learn(self) -> bool:
        """Whether the pipeline has it inside a `Stateless`."""
        return self.step in KNOWN


# Public facts, which a map remembers of the rows that it takes.
_MAP = ("domain_", "n_features_in_")

# Called by their words in files, which must not change when a class is renamed.
STEPS: tuple[StepSpec, ...] = (
    StepSpec("interactions", Interactions, _MAP),
    StepSpec("polynomial_map", PolynomialFeatures, _MAP),
    StepSpec("random_fourier_features", RandomFourierFeatures, (*_MAP, "seed_", "bandwidth_")),
    StepSpec("spline_features", SplineFeatures, _MAP),
    StepSpec("private_missing", PrivateMissing, PrivateMissing._released),
    StepSpec("private_pca", PrivatePCA, PrivatePCA._released),
    StepSpec("private_quantile_bounds", PrivateQuantileBounds, PrivateQuantileBounds._released),
    StepSpec("private_standard_scaler", PrivateStandardScaler, PrivateStandardScaler._released),
    StepSpec("private_vocabulary", PrivateVocabulary, PrivateVocabulary._released),
    StepSpec("binarizer", preprocessing.Binarizer),
    StepSpec("normalizer", preprocessing.Normalizer),
    StepSpec("one_hot_encoder", preprocessing.OneHotEncoder),
    StepSpec("polynomial_features", preprocessing.PolynomialFeatures),
)
