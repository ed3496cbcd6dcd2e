"""Represent a student without its teachers as arrays with its guarantee, for publication.

A file of arrays runs no code. Each form is a frozen dataclass of arrays with ``scores``: one
column for each class, of which the greatest wins, or one column of numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import softmax
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from tacit.estimators.parameters import DECLARED_CLASSES, epsilon_of
from tacit.pate.estimators import PATEClassifier, PATERegressor
from tacit.pate.student import SemiSupervised, kernel_scores, shares_of
from tacit.privacy import Guarantee
from tacit.records.rows_and_labels import as_rows
from tacit.table_facts import TableFacts

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]

# Public parameters stored with a student.
_ABOUT = ("epsilon", "delta", "relation", "n_teachers", "n_queries")


@dataclass(frozen=True, eq=False)
class ConstantForm:
    """Equal scores for every row."""

    values: Array

    def scores(self, rows: Array) -> Array:
        """Return the scores, repeated for each row."""
        return np.tile(self.values, (len(rows), 1))

    def shares(self, scores: Array) -> Array:
        """Return the scores unchanged."""
        return scores


@dataclass(frozen=True, eq=False)
class LinearForm:
    """Rows times coefficients plus intercepts; ``logit`` if scores are logits."""

    coef: Array
    intercept: Array
    logit: bool

    def scores(self, rows: Array) -> Array:
        """Return one score per class; with a single line, the first class scores 0."""
        each: Array = rows @ self.coef.T + self.intercept
        return each

    def shares(self, scores: Array) -> Array:
        """Return the softmax of logits."""
        if not self.logit:
            raise AttributeError("this student has no probabilities.")
        result: Array = softmax(scores, axis=1)
        return result


@dataclass(frozen=True, eq=False)
class KernelForm:
    """Gaussian kernels around centres, of `SemiSupervised`."""

    centres: Array
    weights: Array
    precision: float

    def scores(self, rows: Array) -> Array:
        """Return the weighted sums of kernels."""
        return kernel_scores(rows, self.centres, self.weights, self.precision)

    def shares(self, scores: Array) -> Array:
        """Return the scores, clipped to shares."""
        return shares_of(scores)


@dataclass(frozen=True, eq=False)
class TreesForm:
    """Trees, averaged or summed; node i goes to left[i] if row[feature[i]] <= threshold[i].

    A leaf is its own left and right child. ``roots`` are the root nodes of the trees. If
    ``boosted``, trees are summed, and sums for classes are logits.
    """

    roots: Indices
    left: Indices
    right: Indices
    feature: Indices
    threshold: Array
    value: Array
    boosted: bool

    def scores(self, rows: Array) -> Array:
        """Average or sum the values of leaves; rows are float32, as in scikit-learn."""
        x = np.asarray(rows, dtype=np.float32)
        place = np.arange(len(x))
        total = np.zeros((len(x), self.value.shape[1]))
        for root in self.roots.tolist():
            node = np.full(len(x), root)
            while True:
                goes_left = x[place, self.feature[node]] <= self.threshold[node]
                child = np.where(goes_left, self.left[node], self.right[node])
                if np.array_equal(child, node):
                    break
                node = child
            total += self.value[node]
        return total if self.boosted else total / len(self.roots)

    def shares(self, scores: Array) -> Array:
        """Return the scores, or the softmax of logits."""
        result: Array = softmax(scores, axis=1) if self.boosted else scores
        return result


Form = ConstantForm | LinearForm | KernelForm | TreesForm


def form_of(student: Any) -> Form | None:
    """Return a fitted student as arrays, or None if its type has no form."""
    check_is_fitted(student)
    name, home = type(student).__name__, type(student).__module__.partition(".")[0]
    if type(student) is SemiSupervised:
        return KernelForm(student.centres_, student.weights_, float(student.precision_))
    if home != "sklearn":
        return None
    if name == "DummyClassifier":
        return ConstantForm(np.ones(1))
    if name in ("RandomForestClassifier", "ExtraTreesClassifier", "RandomForestRegressor"):
        return _forest(student.estimators_)
    if name in ("DecisionTreeClassifier", "DecisionTreeRegressor"):
        return _forest([student])
    if name in ("GradientBoostingClassifier", "GradientBoostingRegressor"):
        return _boosted(student)
    if name in ("LinearRegression", "Ridge", "RidgeClassifier", "LinearSVC"):
        return _linear(student, logit=False)
    if name in ("LogisticRegression", "LinearDiscriminantAnalysis"):
        several_lines = getattr(student, "solver", "") == "liblinear" and len(student.classes_) > 2
        return _linear(student, logit=not several_lines)
    return None


def _linear(student: Any, *, logit: bool) -> LinearForm:
    coef = np.atleast_2d(np.asarray(student.coef_, dtype=np.float64))
    intercept = np.broadcast_to(np.atleast_1d(student.intercept_), (len(coef),)).astype(np.float64)
    if len(coef) == 1 and hasattr(student, "classes_"):  # scores 0 and that of the line
        coef, intercept = np.vstack([0.0 * coef, coef]), np.append(0.0, intercept)
    return LinearForm(coef, np.ascontiguousarray(intercept), logit)


def _forest(models: Any) -> TreesForm:
    """Return trees whose leaves hold shares, or numbers."""
    values = [model.tree_.value[:, 0, :] for model in models]
    if hasattr(models[0], "classes_"):
        values = [value / value.sum(axis=1, keepdims=True) for value in values]
    return _trees([model.tree_ for model in models], values, boosted=False)


def _boosted(student: Any) -> TreesForm | None:
    """Return boosted trees: score = constant + rate * tree + rate * tree + ..., in this order."""
    steps = student.estimators_  # one tree per step, or one per step and class
    if student.init is not None or student.loss not in ("log_loss", "squared_error"):
        return None
    width = steps.shape[1]
    values = []
    for i, model in enumerate(steps.ravel()):
        value = np.zeros((model.tree_.node_count, width))
        value[:, i % width] = student.learning_rate * model.tree_.value[:, 0, 0]
        values.append(value)
    if not hasattr(student, "classes_"):
        values[0] += student.init_.constant_.ravel()
    elif width > 1:
        values[0] += np.log(student.init_.class_prior_)
    else:
        first, second = student.init_.class_prior_
        values[0] += np.log(second / first)
        values = [np.column_stack([0.0 * value, value]) for value in values]
        values[0][:, 0] = -np.finfo(np.float64).tiny  # so that the second class wins ties at 0
    return _trees([model.tree_ for model in steps.ravel()], values, boosted=True)


def _trees(trees: Any, values: list[Array], *, boosted: bool) -> TreesForm:
    """Concatenate trees."""
    roots, parts, at = [], [], 0
    for tree, value in zip(trees, values, strict=True):
        own = np.arange(tree.node_count)
        leaf = tree.children_left < 0
        roots.append(at)
        parts.append(
            (
                np.where(leaf, own, tree.children_left) + at,
                np.where(leaf, own, tree.children_right) + at,
                np.where(leaf, 0, tree.feature),
                np.where(leaf, 0.0, tree.threshold),
                value,
            )
        )
        at += tree.node_count
    left, right, feature, threshold, value = (
        np.concatenate(each) for each in zip(*parts, strict=True)
    )
    starts, left, right, feature = (
        array.astype(np.int64) for array in (np.array(roots), left, right, feature)
    )
    floats = threshold.astype(np.float64), value.astype(np.float64)
    return TreesForm(starts, left, right, feature, *floats, boosted)


class PublishedStudent(BaseEstimator):
    """A student without its teachers: arrays, classes and the guarantee. Made by `published`.

    Attributes
    ----------
    form_
        Its arrays.
    classes_
        The classes; None if it predicts numbers.
    met_
        The classes in the student's training data: one for each score.
    label_range
        The least and the greatest label, if it predicts numbers.
    about_
        The numbers of teachers and queries, and the budget.
    n_features_in_, feature_names_in_
        The columns of the rows it takes.
    privacy_
        The guarantee.
    """

    def __init__(self) -> None:
        pass

    form_: Form
    classes_: npt.NDArray[Any] | None
    met_: npt.NDArray[np.int64] | None
    label_range: tuple[float, float] | None
    n_features_in_: int
    about_: Mapping[str, Any]
    privacy_: Guarantee

    def __sklearn_tags__(self) -> Any:
        """Declare a classifier or a regressor to scikit-learn."""
        tags = super().__sklearn_tags__()
        numbers = getattr(self, "classes_", ()) is None
        tags.estimator_type = "regressor" if numbers else "classifier"
        return tags

    def tell(self, facts: TableFacts) -> None:
        """Ignore the facts of a table, because the student is already fitted."""

    def _scores(self, X: Any) -> Array:
        rows, _ = as_rows(X)
        if rows.shape[1] != self.n_features_in_:
            raise ValueError(
                f"X has {rows.shape[1]} features, but PublishedStudent is expecting "
                f"{self.n_features_in_} features as input."
            )
        dense = rows.toarray() if hasattr(rows, "tocsr") else rows
        return self.form_.scores(np.asarray(dense, dtype=np.float64))

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return the class of the greatest score, or the number."""
        scores = self._scores(X)
        if self.classes_ is None or self.met_ is None:
            return scores[:, 0]
        said: npt.NDArray[Any] = self.classes_[self.met_[scores.argmax(axis=1)]]
        return said

    def predict_proba(self, X: Any) -> Array:
        """Return the class probabilities, if the student has any."""
        if self.classes_ is None or self.met_ is None:
            raise AttributeError("a student that predicts numbers has no probabilities.")
        shares = self.form_.shares(self._scores(X))
        each = np.zeros((len(shares), len(self.classes_)))
        each[:, self.met_] = shares
        return each


def published(model: PATEClassifier | PATERegressor) -> PublishedStudent:
    """Return the student of a fitted model as arrays.

    Raises
    ------
    TypeError
        If the type of the student has no array form.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from tacit.pate import PATEClassifier
    >>> from tacit.pate import published
    >>> rng = np.random.default_rng(0)
    >>> X, pool = rng.standard_normal((2000, 2)), rng.standard_normal((100, 2))
    >>> line = LogisticRegression()
    >>> model = PATEClassifier(line, 50, line, 20, epsilon=9.0).fit(X, X[:, 0] > 0, pool)
    >>> bool(np.all(published(model).predict(pool) == model.predict(pool)))
    True
    """
    form = form_of(model.student_)
    if form is None:
        raise TypeError(
            f"a student of type {type(model.student_).__name__} has no array form. "
            "Use SemiSupervised, or of scikit-learn a linear model, a tree, a random forest or "
            "GradientBoosting with its own loss and init."
        )
    made = PublishedStudent()
    made.form_, made.privacy_ = form, model.privacy_
    made.n_features_in_ = model.n_features_in_
    made.about_ = {name: getattr(model, name) for name in _ABOUT}
    made.about_["epsilon"] = epsilon_of(model.epsilon)
    made.classes_ = made.met_ = made.label_range = None
    if isinstance(model, PATEClassifier):
        made.classes_ = model.classes_
        if hasattr(model, DECLARED_CLASSES):
            made.declared_classes_ = model.declared_classes_
        made.met_ = np.searchsorted(model.classes_, model.student_.classes_).astype(np.int64)
    else:
        low, high = model.label_range_
        made.label_range = float(low), float(high)
    if hasattr(model, "feature_names_in_"):
        made.feature_names_in_ = model.feature_names_in_
    return made
