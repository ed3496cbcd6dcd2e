"""Private logistic regression, binary and multinomial."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy.special import expit, log_expit, log_softmax, softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from tacit.erm import FeasibleSet, Mechanism, Objective, Plan
from tacit.erm.losses import LogisticLoss, Loss, SoftmaxLoss
from tacit.linear_model._shell import (
    Fitted,
    class_targets,
    fit_objective,
    intercept_coordinate,
    objective_of,
    plan_of,
)
from tacit.linear_model._tables import clipped_scores, note_columns
from tacit.privacy import AnyAccountant, Relation
from tacit.public_facts import budget_of, classes_of, is_inferred, n_records_of
from tacit.records import Bounds

Array = npt.NDArray[np.float64]


class LogisticRegression(ClassifierMixin, BaseEstimator):
    """Logistic regression with a differential-privacy guarantee.

    Minimises the sum of logistic losses (cross-entropy for three or more classes, in one joint
    release) plus (regularization / 2) ||w||^2, with noise where the planner finds it costs least.

    Parameters
    ----------
    epsilon : float, default=1.0
        The privacy budget; ``math.inf`` for none.
    delta : float, default=1e-6
        The probability with which the promise may fail; 0 for a pure guarantee.
    relation : Relation or str, default="add_remove"
        Which data sets are neighbours.
    row_norm : float, default=1.0
        Rows longer than this are scaled down to it, in `fit` and in `predict`.
    classes : sequence, "infer" or None
        The possible labels, a public fact. None takes them from labels of type bool, pandas
        Categorical or polars Enum. Records with other labels do not count.
    n_records : int, "infer" or None
        The number of records where that is public; required under REPLACE.
    mechanism : str or Mechanism, default="auto"
        "auto", "objective_perturbation", "noisy_gradient", "output_perturbation", "noisy_sgd",
        or a configured mechanism.
    fit_intercept : bool, default=True
        Whether to append a constant coordinate of a quarter of the row norm.
    regularization : float or None
        In SUM form, intercept included; by default from theory.
    constraint : FeasibleSet or None
        Where the weights may be.
    accountant : Accountant or None
        A budget shared with other fits; refuses before anything is read.
    random_state : int or None
        For tests: seeds the noise and voids the guarantee.
    verbose : int, default=0
        Print the plan and the guarantee to standard error.

    Attributes
    ----------
    coef_, intercept_, classes_, n_features_in_, feature_names_in_
        As in scikit-learn.
    privacy_ : Guarantee
        What the fit promises.
    plan_ : Plan or None
        What was run and why; None without noise.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.linear_model import LogisticRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((5000, 3))
    >>> y = X[:, 0] + X[:, 1] > 0
    >>> model = LogisticRegression(epsilon=1.0, delta=1e-6, row_norm=2.0).fit(X, y)
    >>> model.score(X, y) > 0.9
    True
    >>> bool(model.privacy_.epsilon(1e-6) <= 1.0)
    True
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        *,
        relation: Relation | str = "add_remove",
        row_norm: float = 1.0,
        classes: Sequence[Any] | str | None = None,
        n_records: int | str | None = None,
        mechanism: str | Mechanism = "auto",
        fit_intercept: bool = True,
        regularization: float | None = None,
        constraint: FeasibleSet | None = None,
        accountant: AnyAccountant | None = None,
        random_state: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.relation = relation
        self.row_norm = row_norm
        self.classes = classes
        self.n_records = n_records
        self.mechanism = mechanism
        self.fit_intercept = fit_intercept
        self.regularization = regularization
        self.constraint = constraint
        self.accountant = accountant
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        """Declare sparse input."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _loss(self, n_classes: int) -> Loss:
        return LogisticLoss() if n_classes == 2 else SoftmaxLoss(n_classes)

    def _objective(self, n_classes: int, n_records: int | None) -> Objective:
        bounds = Bounds(
            row_norm=self.row_norm,
            n_classes=n_classes,
            n_records=n_records,
            intercept=intercept_coordinate(self.row_norm, self.fit_intercept),
        )
        return objective_of(self._loss(n_classes), bounds, self.regularization, self.constraint)

    def plan(self, n_features: int, n_records: int | None = None) -> Plan:
        """Return what a fit would run, what it would cost and what to expect, without data.

        Parameters
        ----------
        n_features
            Columns of the table to come.
        n_records
            Rows of it, if known; sharpens the predicted risk and changes nothing else.
        """
        if self.classes is None or is_inferred(self.classes):
            raise ValueError("a plan needs the classes: declare them, classes=[...].")
        return self._plan(n_features, n_records, len(self.classes))

    def _plan(self, n_features: int, expected: int | None, n_classes: int) -> Plan:
        budget = budget_of(self.epsilon, self.delta, self.relation)
        public = n_records_of(self.n_records, expected, budget.relation)
        objective = self._objective(n_classes, public.value)
        return plan_of(objective, n_features, expected, budget, self.mechanism)

    def fit(self, X: Any, y: Any) -> Self:
        """Fit to records ``X`` (one a row) with labels ``y``."""
        budget = budget_of(self.epsilon, self.delta, self.relation)
        classes = classes_of(self.classes, y)
        table, names = note_columns(self, X, y)
        if classes.value.size < 2:
            raise ValueError(f"{type(self).__name__} needs at least 2 classes, got one class.")
        n_records = n_records_of(self.n_records, table.n_rows, budget.relation)
        fitted = fit_objective(
            self,
            self._objective(classes.value.size, n_records.value),
            table,
            partial(class_targets, classes.value),
            (classes, n_records, names),
        )
        self._publish(fitted, classes.value)
        return self

    def _publish(self, fitted: Fitted, classes: npt.NDArray[Any]) -> None:
        self.classes_ = classes
        self.row_norm_ = self.row_norm
        self.coef_ = np.atleast_2d(fitted.coef.T)
        self.intercept_ = fitted.intercept
        self.privacy_ = fitted.privacy
        self.plan_ = fitted.plan

    def decision_function(self, X: Any) -> Array:
        """Return the score of every record: one number, or one per class."""
        check_is_fitted(self)
        scores = clipped_scores(self, X, self.coef_.T) + self.intercept_
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return the most likely class of every record."""
        scores = self.decision_function(X)
        best = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        labels: npt.NDArray[Any] = self.classes_[best]
        return labels

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
