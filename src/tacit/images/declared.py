"""The classifiers of images, declared as `tacit.models` declares every other estimator."""

from __future__ import annotations

import numpy as np

from tacit.images.scattering_classifier import ScatteringClassifier, term_names
from tacit.models import ACCURACY, NAMES, Example, Link, ModelSpec, Predicts

_WAVE = (
    "A coefficient belongs to a wave over a scattered image, or to a level of it, and means "
    "nothing by itself; predictions do."
)
_RELEASED = ("coef_", "intercept_", "classes_", "row_norm_", "n_features_in_", NAMES)


def _examples() -> tuple[Example, ...]:
    rng = np.random.default_rng(5)
    rows = rng.uniform(0, 1, (60, 64))
    rows[:30] = np.sort(rows[:30], axis=1)
    known = {"image_shape": (8, 8), "classes": [False, True]}
    return (Example("binary", known, rows, np.arange(60) < 30, (False, True)),)


# The name by which `tacit.models` looks for what is declared elsewhere.
NETWORKS: tuple[ModelSpec, ...] = (
    ModelSpec(
        "scattering",
        ScatteringClassifier,
        Predicts.CLASSES,
        _RELEASED,
        Link(_WAVE, _WAVE, _WAVE),
        _examples,
        "scattering_classifier",
        ACCURACY,
        terms=term_names,
    ),
)
