"""Fit a private linear classifier to scattering features of images."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from tacit import checks
from tacit.erm import NoisePace, NoisyGradient, Plan, SecondMoment
from tacit.estimators.linear import ask_linear, publish_fit, refuse_sources
from tacit.estimators.parameters import DECLARED_CLASSES
from tacit.estimators.tables import note_columns
from tacit.features import (
    CosineWaves,
    GroupNormalization,
    Logarithms,
    OpponentColours,
    Scattering,
)
from tacit.features.composition import Chain, SideBySide, chained
from tacit.features.feature_map import Domain, declared_domain
from tacit.features.images import ALIKE, N_COLOURS, Shape, grid_of, image_shape_of
from tacit.features.normalization import Levels
from tacit.linear_model import LogisticRegression
from tacit.privacy import AnyAccountant, Relation
from tacit.records.lazy_table import MappedTable
from tacit.registry import ACCURACY, NAMES, Example, Link, ModelSpec, Predicts

# The norm of every output row of the map.
_NORM = 1.0
# Chosen on training images of MNIST and CIFAR-10, and used for all images (decision 0038).
RECIPE = NoisyGradient(
    n_steps=500,
    clip=0.01,
    preconditioner=SecondMoment(0.09, always=True),
    pace=NoisePace(5.0, 0.9),
)
_N_WAVES = 4
# The level, as a share of the greatest pixel, below which a scattering coefficient is faint.
_FAINT = 0.01
# Scales of lightness and of the two colour differences; both differences have equal weight.
_OPPONENTS = (1.0, math.sqrt(0.5), math.sqrt(0.5))
# The weight of the levels of a group relative to waves of norm 1.
_LEVELS = 0.1
# Number of groups of neighbouring paths; it keeps paths of mirrored images in one group.
_N_GROUPS = 27


class ScatteringClassifier(ClassifierMixin, BaseEstimator):
    """A linear classifier of scattering features, with a differential-privacy guarantee.

    Images are scattered (`Scattering`), groups of coefficients normalised (`GroupNormalization`),
    and low-frequency waves over each image kept (`CosineWaves`). For photographs (``mirrored``)
    colours are encoded as lightness and differences (`OpponentColours`), faint edges are amplified
    (`Logarithms`), and mean and spread of each group are added. All maps are public and
    learn nothing. On these rows of norm 1, logistic regression runs preconditioned noisy gradient
    descent; 9 % of the budget is for the second moment. Gradients are clipped far below their size,
    500 steps are as long as their noise allows, and the last quarter is averaged.

    Parameters
    ----------
    epsilon, delta, relation, classes, n_records, accountant, random_state
        As in `LogisticRegression`; a delta above 0 is needed.
    image_shape : (int, int) or (int, int, int), default=(28, 28)
        Height, width and channels of an image. A row is one image, with the channels of a pixel
        side by side. Three channels of a photograph are red, green and blue.
    pixel_range : (float, float), default=(0.0, 1.0)
        The least and greatest value of a pixel; others are clipped.
    mirrored : bool, default=False
        Whether an image and its mirror image, left for right, mean the same, as for photographs
        but not digits: features of both are averaged, and half as many remain. Colours and
        logarithms are then encoded as for photographs.
    verbose : int, default=0
        Print the progress of the features, the plan and the guarantee to standard error.

    Attributes
    ----------
    coef_, intercept_, classes_, n_features_in_, feature_names_in_, privacy_, plan_
        As in `LogisticRegression`, for the features, whose rows have norm 1.
    row_norm_
        The norm of the features, 1.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.images import ScatteringClassifier
    >>> rng = np.random.default_rng(0)
    >>> images = rng.uniform(0, 0.2, (1000, 8, 8))
    >>> lines = rng.uniform(size=1000) < 0.5
    >>> images[lines, ::2] += 0.7  # stripes along, or across
    >>> images[~lines, :, ::2] += 0.7
    >>> rows = images.reshape(1000, 64)
    >>> model = ScatteringClassifier(8.0, 1e-5, image_shape=(8, 8)).fit(rows, lines)
    >>> model.score(rows, lines) > 0.9
    True
    >>> bool(model.privacy_.epsilon(1e-5) <= 8.0)
    True
    """

    def __init__(
        self,
        epsilon: float | None = None,
        delta: float = 1e-6,
        *,
        image_shape: tuple[int, ...] = (28, 28),
        pixel_range: tuple[float, float] = (0.0, 1.0),
        mirrored: bool = False,
        relation: Relation | str = "add_remove",
        classes: Sequence[Any] | str | None = None,
        n_records: int | str | None = None,
        accountant: AnyAccountant | None = None,
        random_state: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.image_shape = image_shape
        self.pixel_range = pixel_range
        self.mirrored = mirrored
        self.relation = relation
        self.classes = classes
        self.n_records = n_records
        self.accountant = accountant
        self.random_state = random_state
        self.verbose = verbose

    def _linear(self) -> LogisticRegression:
        own = self.get_params(deep=False)
        shared = {name: own[name] for name in LogisticRegression().get_params() if name in own}
        return LogisticRegression(**{**shared, "row_norm": _NORM, "mechanism": RECIPE})

    def _row_map(self, n_columns: int) -> Chain:
        domain = declared_domain([""] * n_columns, None, self.pixel_range)
        shape = image_shape_of(self.image_shape)
        if checks.flag("mirrored", self.mirrored):
            return _of_photographs(shape, _FAINT * max(map(abs, self.pixel_range)), domain)
        waves = CosineWaves(grid_of(*shape[:2]), _N_WAVES)
        maps = Scattering(shape, centered=True), GroupNormalization(_N_GROUPS), waves
        return chained(maps, domain)[0]

    def plan(self, n_features: int | None = None, n_records: int | None = None) -> Plan:
        """Plan a fit, its cost and its expected risk, without data.

        Parameters
        ----------
        n_features
            The number of values of an image, if it is to be checked against its shape.
        n_records
            The number of images, if known; it changes only the predicted risk.
        """
        size = math.prod(image_shape_of(self.image_shape))
        function = self._row_map(size if n_features is None else n_features)
        return self._linear().plan(function.n_columns, n_records)

    def fit(self, X: Any, y: Any = None, unit: Any = None) -> Self:
        """Fit to images ``X`` (one per row) with labels ``y``, which are read after the charge.

        ``unit`` is as in the linear estimators.
        """
        refuse_sources(self, X, "Scattering")
        linear = self._linear()
        table, names = note_columns(self, X, y, unit=unit)
        function = self._row_map(table.n_columns)
        linear.fit(MappedTable(table, function, names, self._progress), y)
        self.row_norm_ = _NORM
        publish_fit(self, linear)
        return self

    def _progress(self, share: float) -> None:
        """Print the share of the features that is done, without the number of records."""
        if self.verbose:
            sys.stderr.write(f"\rfeatures: {100 * share:.0f} %" + ("\n" if share == 1.0 else ""))

    def _ask(self, method: str, X: Any) -> npt.NDArray[Any]:
        check_is_fitted(self)
        function = self._row_map(self.n_features_in_)
        return ask_linear(self, self._linear(), function, _NORM, method, X)

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return the predicted class of every image."""
        return self._ask("predict", X)

    def decision_function(self, X: Any) -> npt.NDArray[np.float64]:
        """Return the score of every image: one number, or one per class."""
        return self._ask("decision_function", X)

    def predict_proba(self, X: Any) -> npt.NDArray[np.float64]:
        """Return the probability of every class for every image."""
        return self._ask("predict_proba", X)

    def predict_log_proba(self, X: Any) -> npt.NDArray[np.float64]:
        """Return the logarithms of `predict_proba`."""
        return self._ask("predict_log_proba", X)


def _of_photographs(shape: Shape, faint: float, domain: Domain) -> Chain:
    """Return the features of photographs: low-frequency waves, and levels of groups."""
    grid, n_channels = grid_of(*shape[:2]), shape[2]
    coloured = n_channels == N_COLOURS
    colours = (OpponentColours(),) if coloured else ()
    maps = *colours, Scattering(shape, centered=True), Logarithms(faint)
    scatterings, domain = chained(maps, domain)
    sizes = tuple(math.prod(grid) * n for n in ALIKE) * n_channels
    of_channels = _OPPONENTS if coloured else (1.0,) * n_channels
    lengths = tuple(length for length in of_channels for _ in ALIKE)
    waves, _ = chained(
        (
            GroupNormalization(sizes, lengths=lengths),
            CosineWaves(grid, _N_WAVES, mirrored=True),
        ),
        domain,
    )
    both = SideBySide((waves, Levels(domain, sizes)), (1.0, _LEVELS))
    return Chain((scatterings, both))


def term_names(model: ScatteringClassifier) -> tuple[str, ...]:
    """Return the names of the coefficients of a fitted model."""
    n = model._row_map(model.n_features_in_).n_columns
    groups = len(ALIKE) * image_shape_of(model.image_shape)[2] if model.mirrored else 0
    waves = [f"wave_{i}" for i in range(n - 2 * groups)]
    levels = [f"{kind}_{i}" for kind in ("mean", "spread") for i in range(groups)]
    return (*waves, *levels)


_WAVE = (
    "A coefficient belongs to a wave over a scattered image, or to a level of it, and means "
    "nothing by itself; predictions do."
)
_ROWS = ("row_norm_", "n_features_in_", NAMES)
_RELEASED = ("coef_", "intercept_", "classes_", DECLARED_CLASSES, *_ROWS)


def _examples() -> tuple[Example, ...]:
    rng = np.random.default_rng(5)
    rows = rng.uniform(0, 1, (60, 64))
    rows[:30] = np.sort(rows[:30], axis=1)
    known = {"image_shape": (8, 8), "classes": [False, True]}
    return (Example("binary", known, rows, np.arange(60) < 30, (False, True)),)


# The name under which `tacit.registry` looks for models declared elsewhere.
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
