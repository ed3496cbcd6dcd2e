"""Define the common part of classifiers and regressors: labels, scores and predictions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import expit, log_expit, log_softmax, softmax
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from tacit.erm import FeasibleSet, Mechanism
from tacit.erm.minimization import MechanismName
from tacit.estimators.linear import LinearModel
from tacit.estimators.parameters import (
    INFER,
    ClassesFact,
    Fact,
    Provenance,
    classes_of,
    codes_of,
    is_inferred,
    label_range_of,
    publish_classes,
)
from tacit.estimators.tables import clipped_scores
from tacit.privacy import AnyAccountant, Budget, Relation
from tacit.records.rows_and_labels import as_numbers

Array = npt.NDArray[np.float64]


class ScoredClasses(ClassifierMixin):
    """Predict from ``coef_``, ``intercept_`` and ``classes_``: the class of the greatest score."""

    def decision_function(self, X: Any) -> Array:
        """Return the score of every record: one number, or one per class."""
        check_is_fitted(self)
        scores: Array = clipped_scores(self, X, self.coef_.T) + self.intercept_
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return the most likely class of every record."""
        scores = self.decision_function(X)
        best = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        labels: npt.NDArray[Any] = self.classes_[best]
        return labels


class Probabilities(ScoredClasses):
    """Predict probabilities too, from scores that are logits."""

    def predict_proba(self, X: Any) -> Array:
        """Return the probability of every class for every record."""
        scores = self.decision_function(X)
        if scores.ndim == 1:
            p: Array = expit(scores)
            return np.column_stack([1.0 - p, p])
        result: Array = softmax(scores, axis=1)
        return result

    def predict_log_proba(self, X: Any) -> Array:
        """Return the logarithms of `predict_proba`."""
        scores = self.decision_function(X)
        if scores.ndim == 1:
            return np.column_stack([log_expit(-scores), log_expit(scores)])
        result: Array = log_softmax(scores, axis=1)
        return result


@dataclass(frozen=True)
class Classes:
    """Labels from a public list of classes; records with other labels do not count."""

    fact: ClassesFact

    @property
    def bounds(self) -> Mapping[str, int]:
        """The number of classes, for `Bounds`."""
        return {"n_classes": self.fact.value.size}

    def counting(self, labels: Any) -> npt.NDArray[np.bool_]:
        """Return a mask of the records of a declared class."""
        return codes_of(labels, self.fact.value)[1]

    def records(
        self, rows: Any, labels: Any, weights: Array | None
    ) -> tuple[Any, Array, Array | None]:
        """Return the records of a declared class: -1 and 1 for two classes, codes for more."""
        codes, known = codes_of(labels, self.fact.value)
        if not known.all():
            rows, codes = rows[known], codes[known]
            weights = None if weights is None else weights[known]
        if self.fact.value.size == 2:
            return rows, np.where(codes == 1, 1.0, -1.0), weights
        return rows, codes.astype(np.float64), weights


class Classifier(ScoredClasses, LinearModel):
    """Base class of linear classifiers."""

    def _expected_labels(self) -> Classes:
        if self.classes is None or is_inferred(self.classes):
            raise ValueError("a plan needs the classes: declare them, classes=[...].")
        return Classes(classes_of(self.classes, None))

    def _labels(self, budget: Budget, y: Any) -> Classes:
        classes = classes_of(self.classes, y)
        self._check_classes(classes.value.size)
        return Classes(classes)

    def _check_classes(self, n_classes: int) -> None:
        if n_classes < 2:
            raise ValueError(f"{type(self).__name__} needs at least 2 classes, got one class.")

    def _publish(self, coef: Array, intercept: Array, labels: Classes) -> None:
        publish_classes(self, labels.fact)
        self.coef_ = np.atleast_2d(coef.T)
        self.intercept_ = intercept


def check_two_classes(estimator: Any, n_classes: int, remedy: str) -> None:
    """Refuse any number of classes except two, in scikit-learn's words."""
    if n_classes != 2:
        raise ValueError(
            f"Only binary classification is supported. {type(estimator).__name__} needs exactly "
            f"2 classes, got {n_classes} class{'es' if n_classes != 1 else ''}{remedy}"
        )


# Residuals are clipped to this share of half the label range.
RESIDUAL_SHARE = 0.25


class ScoredNumbers(RegressorMixin):
    """Predict from ``coef_`` and ``intercept_``: the score itself."""

    def predict(self, X: Any) -> Array:
        """Return the predicted number of every record."""
        check_is_fitted(self)
        scores: Array = clipped_scores(self, X, self.coef_) + self.intercept_
        return scores


@dataclass(frozen=True)
class Interval:
    """Labels that are clipped to a public interval and measured from ``middle``."""

    fact: Fact[tuple[float, float]]
    middle: float

    @property
    def bounds(self) -> Mapping[str, tuple[float, float]]:
        """The interval, measured from the middle."""
        low, high = self.fact.value
        return {"label_range": (low - self.middle, high - self.middle)}

    def counting(self, labels: Any) -> slice:
        """Return a slice of all records."""
        return slice(None)

    def records(
        self, rows: Any, labels: Any, weights: Array | None
    ) -> tuple[Any, Array, Array | None]:
        """Return all records, with labels measured from the middle."""
        return rows, as_numbers(labels) - self.middle, weights


class Regressor(ScoredNumbers, LinearModel):
    """Base class of linear regressors, with the parameters that most of them share.

    Predictions are clipped to a declared label range. No label in the range is closer to a value
    beyond its end than to the end itself, so that clipping never increases an error.
    """

    _centred = True  # whether labels are measured from the middle of their range

    def __init__(
        self,
        epsilon: float | None = None,
        delta: float = 1e-6,
        *,
        label_range: tuple[float, float] | str | None = None,
        relation: Relation | str = "add_remove",
        row_norm: float | None = None,
        n_records: int | str | None = None,
        mechanism: MechanismName | Mechanism = "auto",
        fit_intercept: bool = True,
        regularization: float | None = None,
        constraint: FeasibleSet | None = None,
        max_weight: float | None = None,
        inference: float = 0.0,
        accountant: AnyAccountant | None = None,
        random_state: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.label_range = label_range
        self.relation = relation
        self.row_norm = row_norm
        self.n_records = n_records
        self.mechanism = mechanism
        self.fit_intercept = fit_intercept
        self.regularization = regularization
        self.constraint = constraint
        self.max_weight = max_weight
        self.inference = inference
        self.accountant = accountant
        self.random_state = random_state
        self.verbose = verbose

    def predict(self, X: Any) -> Array:
        """Return the predicted number of every record, within the declared range of labels."""
        numbers = self._numbers(super().predict(X))
        declared = getattr(self, "label_range_", self.label_range)
        if declared is None or is_inferred(declared):
            return numbers
        low, high = label_range_of(declared).value
        within: Array = np.clip(numbers, low, high)
        return within

    def _numbers(self, scores: Array) -> Array:
        return scores

    def _interval(self, fact: Fact[tuple[float, float]]) -> Interval:
        low, high = fact.value
        return Interval(fact, (low + high) / 2 if self.fit_intercept and self._centred else 0.0)

    def _expected_labels(self) -> Interval:
        if is_inferred(self.label_range):
            raise ValueError("a plan needs the range of the labels: declare label_range.")
        return self._interval(label_range_of(self.label_range))

    def _labels(self, budget: Budget, y: Any) -> Interval:
        # Without noise no sensitivity depends on a range.
        unbounded = self.label_range is None and budget.is_infinite
        return self._interval(label_range_of(INFER if unbounded else self.label_range, y))

    def _publish(self, coef: Array, intercept: Array, labels: Interval) -> None:
        self.coef_ = coef
        self.intercept_ = float(intercept[0]) + labels.middle
        # set if declared by the estimator, or by a table's schema
        self.__dict__.pop("label_range_", None)
        if labels.fact.provenance is Provenance.DECLARED:
            self.label_range_ = labels.fact.value
