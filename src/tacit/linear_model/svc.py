"""A private linear support-vector classifier."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from tacit.erm import FeasibleSet, Mechanism, Objective, Plan
from tacit.erm.losses import SmoothHingeLoss
from tacit.linear_model._shell import (
    class_targets,
    fit_objective,
    intercept_coordinate,
    objective_of,
    plan_of,
)
from tacit.linear_model._tables import clipped_scores, note_columns
from tacit.privacy import AnyAccountant, Relation
from tacit.public_facts import budget_of, classes_of, n_records_of
from tacit.records import Bounds

Array = npt.NDArray[np.float64]


class LinearSVC(ClassifierMixin, BaseEstimator):
    """Linear support-vector classification of two classes, with a privacy guarantee.

    Minimises the sum of Huber-smoothed hinge losses plus (regularization / 2) ||w||^2. The
    parameters and attributes are those of `LogisticRegression`, and

    Parameters
    ----------
    smoothing : float, default=0.5
        The half-width over which the hinge's corner is rounded; smaller is closer to the hinge
        and costs more noise.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.linear_model import LinearSVC
    >>> X = np.random.default_rng(0).standard_normal((5000, 3))
    >>> y = X[:, 0] > 0
    >>> LinearSVC(epsilon=1.0, delta=1e-6, row_norm=2.0).fit(X, y).score(X, y) > 0.9
    True
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        *,
        smoothing: float = 0.5,
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
        self.smoothing = smoothing
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
        """Declare sparse input and two classes."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.multi_class = False
        return tags

    def _objective(self, n_records: int | None) -> Objective:
        bounds = Bounds(
            row_norm=self.row_norm,
            n_classes=2,
            n_records=n_records,
            intercept=intercept_coordinate(self.row_norm, self.fit_intercept),
        )
        loss = SmoothHingeLoss(self.smoothing)
        return objective_of(loss, bounds, self.regularization, self.constraint)

    def plan(self, n_features: int, n_records: int | None = None) -> Plan:
        """Return what a fit would run, what it would cost and what to expect, without data."""
        return self._plan(n_features, n_records, 2)

    def _plan(self, n_features: int, expected: int | None, n_classes: int) -> Plan:
        budget = budget_of(self.epsilon, self.delta, self.relation)
        public = n_records_of(self.n_records, expected, budget.relation)
        objective = self._objective(public.value)
        return plan_of(objective, n_features, expected, budget, self.mechanism)

    def fit(self, X: Any, y: Any) -> Self:
        """Fit to records ``X`` (one a row) with labels ``y`` of two classes."""
        budget = budget_of(self.epsilon, self.delta, self.relation)
        classes = classes_of(self.classes, y)
        table, names = note_columns(self, X, y)
        n_classes = classes.value.size
        if n_classes != 2:
            raise ValueError(
                "Only binary classification is supported. LinearSVC needs exactly 2 classes, got "
                f"{n_classes} class{'es' if n_classes != 1 else ''}: for more, use "
                "LogisticRegression, which releases all of them jointly."
            )
        n_records = n_records_of(self.n_records, table.n_rows, budget.relation)
        fitted = fit_objective(
            self,
            self._objective(n_records.value),
            table,
            partial(class_targets, classes.value),
            (classes, n_records, names),
        )
        self.classes_ = classes.value
        self.row_norm_ = self.row_norm
        self.coef_ = np.atleast_2d(fitted.coef)
        self.intercept_ = fitted.intercept
        self.privacy_ = fitted.privacy
        self.plan_ = fitted.plan
        return self

    def decision_function(self, X: Any) -> Array:
        """Return the signed score of every record."""
        check_is_fitted(self)
        scores: Array = clipped_scores(self, X, self.coef_[0]) + self.intercept_[0]
        return scores

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return the class on whose side each record lies."""
        side = (self.decision_function(X) > 0).astype(int)
        labels: npt.NDArray[Any] = self.classes_[side]
        return labels
