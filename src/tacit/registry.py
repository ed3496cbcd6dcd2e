"""Declare every estimator once: its word, its released attributes, its predictions, an example.

Saving, the command line, the report and the audit tests read this table. A new estimator needs
its class, a line in `MODELS` and its page in the docs.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.erm.objective import n_changed
from tacit.erm.plan import NoiseError, unknown
from tacit.estimators.parameters import DECLARED_CLASSES, UNDECLARED_ROW_NORM
from tacit.estimators.summary import RESIDUAL_BOUND
from tacit.features import GaussianKernel
from tacit.kernel import KernelLogisticRegression, KernelRidge, KernelSVC
from tacit.kernel.kernel_models import term_names
from tacit.linear_model import (
    HuberRegressor,
    LinearRegression,
    LinearSVC,
    LogisticRegression,
    PoissonRegressor,
    QuantileRegressor,
    Ridge,
)
from tacit.local import (
    LocalGeometricMedian,
    LocalLinearSVC,
    LocalLogisticRegression,
    LocalMedian,
    LocalRegressor,
)
from tacit.location import GeometricMedian, Mean, Median
from tacit.privacy import Composed, Gaussian, NonPrivate, PureEpsilon, Relation


@dataclass(frozen=True)
class Example:
    """A problem of sixty records that a model solves quickly.

    Parameters
    ----------
    name
        A word.
    parameters
        The parameters that the model needs for these records.
    rows, labels
        The records; a location has no labels.
    odd
        The labels of two records that differ as much as any two can.
    """

    name: str
    parameters: Mapping[str, Any]
    rows: npt.NDArray[np.float64]
    labels: npt.NDArray[Any] | None = None
    odd: tuple[Any, Any] = (None, None)


Examples = Callable[[], tuple[Example, ...]]
_N_RECORDS = 60


def _rows() -> tuple[np.random.Generator, npt.NDArray[np.float64]]:
    rng = np.random.default_rng(5)
    return rng, rng.standard_normal((_N_RECORDS, 3))


def with_two_classes() -> tuple[Example, ...]:
    """Return an example with two classes."""
    _, rows = _rows()
    known = {"row_norm": 1.5, "classes": [False, True]}
    return (Example("binary", known, rows, rows[:, 0] > 0, (False, True)),)


def with_classes() -> tuple[Example, ...]:
    """Return an example with two classes and one with three."""
    rng, rows = _rows()
    known = {"row_norm": 1.5, "classes": [0, 1, 2]}
    labels = rng.integers(0, 3, _N_RECORDS)
    return (*with_two_classes(), Example("three", known, rows, labels, (2, 0)))


def with_numbers(**known: Any) -> Examples:
    """Return a maker of an example with numeric labels and further parameters."""

    def examples() -> tuple[Example, ...]:
        _, rows = _rows()
        labels = rows @ [1.0, -1.0, 0.5]
        return (Example("number", {"row_norm": 1.5, **known}, rows, labels, (-1e8, 1e9)),)

    return examples


def with_counts() -> tuple[Example, ...]:
    """Return an example whose labels are counts."""
    rng, rows = _rows()
    known = {"row_norm": 1.5, "label_range": (0, 9)}
    labels = rng.poisson(3.0 * np.exp(0.5 * rows[:, 0])).astype(np.float64)
    return (Example("count", known, rows, labels, (1e8, 0.0)),)


def with_points(**named: Mapping[str, Any]) -> Examples:
    """Return a maker of examples without labels, one per set of parameters."""
    return lambda: tuple(Example(name, known, _rows()[1]) for name, known in named.items())


AnyArray = npt.NDArray[Any]


class Predicts(Enum):
    """The kind of a model's predictions."""

    CLASSES = "classes"
    NUMBERS = "numbers"
    LOCATION = "location"


@dataclass(frozen=True)
class Link:
    """The meaning of a coefficient, in a sentence: how predictions follow from scores.

    Examples
    --------
    >>> from tacit.registry import LOG
    >>> LOG.meaning(None)
    'When a feature grows by one, the predicted rate is multiplied by exp(coefficient).'
    """

    number: str = "A positive coefficient raises the prediction."
    two_classes: str = "A positive coefficient speaks for the class {positive!r}."
    classes: str = "A positive coefficient speaks for its class and against the others."

    def meaning(self, classes: Sequence[Any] | None, positive: Any = None) -> str:
        """Return the sentence for a model of these classes, or of numbers.

        ``positive`` is the one of two classes that coefficients are told for, else the second.
        """
        if classes is None:
            return self.number
        if len(classes) == 2:
            return self.two_classes.format(
                positive=str(classes[1] if positive is None else positive)
            )
        return self.classes


MARGIN = Link()
IDENTITY = Link("What the prediction changes by when a feature grows by one.")
LOG = Link("When a feature grows by one, the predicted rate is multiplied by exp(coefficient).")
# Two classes: log(p / (1 - p)) = score. Several classes: log(p_j / p_k) = score_j - score_k.
LOGIT = Link(
    two_classes="A positive coefficient speaks for the class {positive!r}: when a feature grows by "
    "one, the odds of that class are multiplied by exp(coefficient).",
    classes="A positive coefficient speaks for its class and against the others: when a feature "
    "grows by one, the odds of one class against another are multiplied by exp(the difference of "
    "their coefficients).",
)
VALUE = Link("The released value of each column.")
_WAVE = (
    "A coefficient belongs to a wave, the cosine or sine of a random mixture of all features, and "
    "means nothing by itself; predictions do."
)
WAVES = Link(_WAVE, _WAVE, _WAVE)


@dataclass(frozen=True)
class Score:
    """A score of predictions, greater is better, and the name of its baseline."""

    name: str
    floor: str
    of: Callable[[Any, AnyArray, AnyArray], float]  # arguments: fitted model, rows, labels


def _judged(metric: str, labels: AnyArray, answer: AnyArray, **settings: float) -> float:
    from sklearn import metrics  # slow to import

    return float(getattr(metrics, metric)(labels, answer, **settings))


def _balanced(model: Any, rows: AnyArray, labels: AnyArray) -> float:
    """Return the recall, averaged over the classes that occur."""
    right = model.predict(rows) == labels
    return float(np.mean([np.mean(right[labels == word]) for word in np.unique(labels)]))


def _area(model: Any, rows: AnyArray, labels: AnyArray) -> float:
    second = labels == model.classes_[1]
    return _judged("roc_auc_score", second, model.decision_function(rows))


ACCURACY = Score(
    "accuracy", "majority class", lambda model, x, y: float(np.mean(model.predict(x) == y))
)
AUC = Score("AUC", "guessing", _area)
BALANCED_ACCURACY = Score("balanced accuracy", "guessing", _balanced)
# 1 - loss / (loss of the best constant)
R2 = Score("R2", "best constant", lambda model, x, y: _judged("r2_score", y, model.predict(x)))
D2_PINBALL = Score(
    "D2",
    "best constant",
    lambda model, x, y: _judged("d2_pinball_score", y, model.predict(x), alpha=model.quantile),
)
D2_POISSON = Score(
    "D2",
    "best constant",
    lambda model, x, y: _judged("d2_tweedie_score", y, model.predict(x), power=1),
)


def _mean_error(model: Mean) -> NoiseError:
    """Return the standard deviation of each coordinate: the noise on the sum over the count."""
    if not isinstance(model.n_records, int):
        return unknown("the number of records is private, and the noise was divided by it.")
    event = model.privacy_.event
    paid = event.would_be if isinstance(event, NonPrivate) else event
    change = n_changed(event.relation) * (model.row_norm or UNDECLARED_ROW_NORM) / model.n_records
    sentence = "Error bars are one standard deviation of the noise, known exactly."
    if model.inference and isinstance(paid, Composed):
        paid = paid.events[-1]
    if isinstance(paid, Gaussian):
        return NoiseError(change * paid.noise_multiplier, sentence)
    if isinstance(paid, PureEpsilon):
        return NoiseError(change / paid.epsilon * math.sqrt(len(model.location_) + 1), sentence)
    return unknown("there is no noise in these numbers.")


@dataclass(frozen=True)
class ModelSpec:
    """The declaration of an estimator for the rest of tacit.

    Parameters
    ----------
    word
        The value of ``--model``. Words and kinds never change their meaning.
    model
        The class.
    predicts
        The kind of its predictions.
    released
        The attributes that a fit sets, besides ``privacy_`` and ``plan_``; some of `SOMETIMES`.
    link
        The meaning of a coefficient.
    examples
        Returns example problems for the tests.
    kind
        The stored word of the class in a file; None if such models are not saved.
    score
        The score of its predictions, if it predicts.
    has_plan
        Whether a fit has a ``plan_``.
    two_classes
        Whether it supports two classes only.
    relations
        The supported relations.
    noise_error
        Returns the error that noise alone gives the released numbers of a fitted model, if the
        mechanism of its plan does not state it.
    terms
        Returns the names of the terms of a fitted model's coefficients, if they are not features.
    check
        Refuses values that no fit releases, for a model without coefficients.
        Refuses what no fit releases, for a model that has no coefficients.

    Examples
    --------
    >>> from tacit.registry import MODELS
    >>> [spec.word for spec in MODELS if spec.link.number.endswith("exp(coefficient).")]
    ['poisson']
    """

    word: str
    model: type[Any]
    predicts: Predicts
    released: tuple[str, ...]
    link: Link
    examples: Examples
    kind: str | None = None
    score: Score | None = None
    has_plan: bool = True
    two_classes: bool = False
    relations: tuple[Relation, ...] = tuple(Relation)
    noise_error: Callable[[Any], NoiseError] | None = None
    terms: Callable[[Any], tuple[str, ...]] | None = None
    check: Callable[[Any], None] | None = None

    def n_terms(self, model: Any) -> int:
        """Return the number of coefficients of a fitted model, per output."""
        return int(model.n_features_in_) if self.terms is None else len(self.terms(model))

    @property
    def is_offered(self) -> bool:
        """Whether the command line can plan, fit and score it."""
        return self.has_plan and self.score is not None


# Set if the fit got a table with column names.
NAMES = "feature_names_in_"
# Set if the fit was asked for standard errors.
ERRORS = ("estimates_", "standard_errors_")
# Set if the range of the labels was declared, by the estimator or by a table's schema.
RANGE = "label_range_"
# Attributes that only some fits set.
SOMETIMES = frozenset((NAMES, RANGE, DECLARED_CLASSES, RESIDUAL_BOUND, *ERRORS))
_ROWS = ("n_features_in_", NAMES)
_CLASSIFIER = ("coef_", "intercept_", "classes_", DECLARED_CLASSES, "row_norm_", *_ROWS)
_REGRESSOR = ("coef_", "intercept_", "row_norm_", RANGE, RESIDUAL_BOUND, *_ROWS)
_LOCATION = ("location_", *_ROWS)
# State of a local stream, from which it can continue. The server may see all of it.
_STREAM = ("state_", "n_reports_", "sanitizer_", "learner_", "_stream", "_source", "_notes")


def _with_errors(model: type[Any], released: tuple[str, ...]) -> tuple[str, ...]:
    return (*released, *ERRORS) if hasattr(model, "summary") else released


def _classifier(
    word: str, model: type[Any], kind: str, link: Link, examples: Examples, **more: Any
) -> ModelSpec:
    what, released = Predicts.CLASSES, _with_errors(model, _CLASSIFIER)
    return ModelSpec(word, model, what, released, link, examples, kind, ACCURACY, **more)


def _regressor(
    word: str, model: type[Any], kind: str, link: Link, score: Score, examples: Examples
) -> ModelSpec:
    released = _with_errors(model, _REGRESSOR)
    return ModelSpec(word, model, Predicts.NUMBERS, released, link, examples, kind, score)


def _location(word: str, model: type[Any], examples: Examples, **more: Any) -> ModelSpec:
    where, released = Predicts.LOCATION, _with_errors(model, _LOCATION)
    return ModelSpec(word, model, where, released, VALUE, examples, word, **more)


_RANGED = with_numbers(label_range=(-3.0, 3.0))
_BALL = with_points(ball={"row_norm": 2.0})
_LINES = with_points(
    middle={"bounds": (-3.0, 3.0)}, ninth_tenth={"bounds": (-3.0, 3.0), "quantile": 0.9}
)
# Eight features, so that tests over all models are fast.
_EIGHT = {"kernel": GaussianKernel(1.5), "n_frequencies": 4, "seed": 5}


def _in_waves(examples: Examples) -> Examples:
    return lambda: tuple(replace(e, parameters={**e.parameters, **_EIGHT}) for e in examples())


def _kernel(spec: ModelSpec) -> ModelSpec:
    released = (*spec.released, "seed_", "bandwidth_")
    return replace(spec, released=released, examples=_in_waves(spec.examples), terms=term_names)


_LOCAL: dict[Predicts, tuple[tuple[str, ...], Examples, Score | None]] = {
    Predicts.CLASSES: (_CLASSIFIER, with_two_classes, ACCURACY),
    Predicts.NUMBERS: (_REGRESSOR, with_numbers(), R2),
    Predicts.LOCATION: ((*_LOCATION, "_centre"), _BALL, None),
}


def _local(word: str, model: type[Any], predicts: Predicts, link: Link) -> ModelSpec:
    released, examples, score = _LOCAL[predicts]
    return ModelSpec(
        word,
        model,
        predicts,
        (*released, *_STREAM),
        link,
        examples,
        score=score,
        has_plan=False,
        two_classes=predicts is Predicts.CLASSES,
        relations=(Relation.REPLACE,),
    )


MODELS: tuple[ModelSpec, ...] = (
    _classifier("logistic", LogisticRegression, "logistic_regression", LOGIT, with_classes),
    _classifier("svc", LinearSVC, "linear_svc", MARGIN, with_two_classes, two_classes=True),
    _regressor("linear", LinearRegression, "linear_regression", IDENTITY, R2, _RANGED),
    _regressor(
        "ridge", Ridge, "ridge", IDENTITY, R2, with_numbers(label_range=(-3, 3), alpha=30.0)
    ),
    _regressor("huber", HuberRegressor, "huber_regressor", IDENTITY, R2, _RANGED),
    _regressor("quantile", QuantileRegressor, "quantile_regressor", IDENTITY, D2_PINBALL, _RANGED),
    _regressor("poisson", PoissonRegressor, "poisson_regressor", LOG, D2_POISSON, with_counts),
    _kernel(
        _classifier(
            "kernel_logistic",
            KernelLogisticRegression,
            "kernel_logistic_regression",
            WAVES,
            with_classes,
        )
    ),
    _kernel(
        _classifier(
            "kernel_svc", KernelSVC, "kernel_svc", WAVES, with_two_classes, two_classes=True
        )
    ),
    _kernel(
        _regressor(
            "kernel_ridge",
            KernelRidge,
            "kernel_ridge",
            WAVES,
            R2,
            with_numbers(label_range=(-3, 3), alpha=3.0),
        )
    ),
    _location("mean", Mean, _BALL, has_plan=False, noise_error=_mean_error),
    _location("median", Median, _LINES, has_plan=False),
    _location("geometric_median", GeometricMedian, _BALL),
    _local("local_logistic", LocalLogisticRegression, Predicts.CLASSES, LOGIT),
    _local("local_svc", LocalLinearSVC, Predicts.CLASSES, MARGIN),
    _local("local_regressor", LocalRegressor, Predicts.NUMBERS, IDENTITY),
    _local("local_median", LocalMedian, Predicts.LOCATION, VALUE),
    _local("local_geometric_median", LocalGeometricMedian, Predicts.LOCATION, VALUE),
)


# Estimators of images, and those with optional dependencies, by their kind in files. The module
# that declares a kind is imported only when a file or model of this kind occurs.
ELSEWHERE: Mapping[str, str] = {
    "neural_classifier": "tacit.deep.neural_network",
    "neural_regressor": "tacit.deep.neural_network",
    "scattering_classifier": "tacit.images.scattering_classifier",
}


def spec_elsewhere(kind: str) -> ModelSpec | None:
    """Return the declaration of a kind of `ELSEWHERE`, importing its module."""
    if kind not in ELSEWHERE:
        return None
    networks: tuple[ModelSpec, ...] = importlib.import_module(ELSEWHERE[kind]).NETWORKS
    return next(spec for spec in networks if spec.kind == kind)


def _of_elsewhere(model: Any) -> tuple[ModelSpec, ...]:
    """Return the declarations in the package of a model, if it is in `ELSEWHERE`."""
    homes = {cls.__module__.rpartition(".")[0] for cls in type(model).__mro__}
    kinds = [kind for kind, place in ELSEWHERE.items() if place.rpartition(".")[0] in homes]
    return tuple(spec for spec in map(spec_elsewhere, kinds) if spec is not None)


def spec_of(model: Any) -> ModelSpec | None:
    """Return the declaration of a model's class, or of its nearest declared base class.

    Examples
    --------
    >>> from tacit.location import Mean
    >>> from tacit.registry import spec_of
    >>> spec_of(Mean()).word, spec_of(3)
    ('mean', None)
    """
    declared = {spec.model: spec for spec in (*MODELS, *_of_elsewhere(model))}
    return next((declared[cls] for cls in type(model).__mro__ if cls in declared), None)
