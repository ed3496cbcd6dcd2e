"""What classifiers share: classes, scores, and what follows from scores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import expit, log_expit, log_softmax, softmax
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from tacit.linear_model._linear_model import LinearModel
from tacit.linear_model._tables import clipped_scores
from tacit.privacy import Budget
from tacit.public_facts import Fact, classes_of, codes_of, is_inferred

Array = npt.NDArray[np.float64]


class ScoredClasses(ClassifierMixin):
    """Predictions from ``coef_``, ``intercept_`` and ``classes_``: the greatest score wins."""

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
    """Probabilities too, where scores are logits."""

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
    """Labels that are one of a public list; a record of another label does not count."""

    fact: Fact[npt.NDArray[Any]]

    @property
    def bounds(self) -> Mapping[str, int]:
        """How many classes there are."""
        return {"n_classes": self.fact.value.size}

    def counting(self, labels: Any) -> npt.NDArray[np.bool_]:
        """Return which records are of a declared class."""
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
    """A linear model of classes."""

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
        self.classes_ = labels.fact.value
        self.coef_ = np.atleast_2d(coef.T)
        self.intercept_ = intercept


def check_two_classes(estimator: Any, n_classes: int, remedy: str) -> None:
    """Refuse any number of classes but two, in scikit-learn's words."""
    if n_classes != 2:
        raise ValueError(
            f"Only binary classification is supported. {type(estimator).__name__} needs exactly "
            f"2 classes, got {n_classes} class{'es' if n_classes != 1 else ''}{remedy}"
        )
