"""The student alone, with its guarantee: what is published, and what a file holds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator

from tacit.pate.classifier import PATEClassifier
from tacit.pate.forms import Form, form_of
from tacit.pate.regressor import PATERegressor
from tacit.privacy import Guarantee
from tacit.records import as_rows
from tacit.table_facts import TableFacts

Array = npt.NDArray[np.float64]

# What is told of how a student came about; all of it public.
_ABOUT = ("epsilon", "delta", "relation", "n_teachers", "n_queries")


class PublishedStudent(BaseEstimator):
    """A student without its teachers: arrays, classes and the guarantee. Made by `published`.

    Attributes
    ----------
    form_
        Its arrays.
    classes_
        The classes there are; None if it predicts numbers.
    met_
        Which of them the student met: one for each score.
    label_range
        The least and the greatest number it was taught, if it predicts numbers.
    about_
        How many teachers were asked how much, at which budget.
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
        """Be a classifier or a regressor to scikit-learn."""
        tags = super().__sklearn_tags__()
        numbers = getattr(self, "classes_", ()) is None
        tags.estimator_type = "regressor" if numbers else "classifier"
        return tags

    def tell(self, facts: TableFacts) -> None:
        """Take no fact of a table, such as whose its records are: a student is taught already."""

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
        """Return the probability of every class, if the student has any."""
        if self.classes_ is None or self.met_ is None:
            raise AttributeError("a student of numbers has no probabilities.")
        shares = self.form_.shares(self._scores(X))
        each = np.zeros((len(shares), len(self.classes_)))
        each[:, self.met_] = shares
        return each


def published(model: PATEClassifier | PATERegressor) -> PublishedStudent:
    """Return the student of a fitted model alone, as arrays.

    Raises
    ------
    TypeError
        If the student is of a kind that cannot be written down as arrays.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from tacit.pate import PATEClassifier, published
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
            f"a student of type {type(model.student_).__name__} cannot be written down as arrays. "
            "Use SemiSupervised, or of scikit-learn a linear model, a tree, a random forest or "
            "GradientBoosting with its own loss and init."
        )
    made = PublishedStudent()
    made.form_, made.privacy_ = form, model.privacy_
    made.n_features_in_ = model.n_features_in_
    made.about_ = {name: getattr(model, name) for name in _ABOUT}
    made.classes_ = made.met_ = made.label_range = None
    if isinstance(model, PATEClassifier):
        made.classes_ = model.classes_
        made.met_ = np.searchsorted(model.classes_, model.student_.classes_).astype(np.int64)
    else:
        low, high = model.label_range_
        made.label_range = float(low), float(high)
    if hasattr(model, "feature_names_in_"):
        made.feature_names_in_ = model.feature_names_in_
    return made
