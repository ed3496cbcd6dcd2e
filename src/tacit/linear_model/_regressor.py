"""What regressors share: labels within an interval, and scores that are predictions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from tacit.erm import FeasibleSet, Mechanism
from tacit.linear_model._linear_model import LinearModel
from tacit.linear_model._tables import clipped_scores
from tacit.privacy import AnyAccountant, Budget, Relation
from tacit.public_facts import INFER, Fact, Provenance, is_inferred, label_range_of
from tacit.records import as_numbers

Array = npt.NDArray[np.float64]

# Residuals beyond this share of half the label range count as if they were that large.
RESIDUAL_SHARE = 0.25


class ScoredNumbers(RegressorMixin):
    """Predictions from ``coef_`` and ``intercept_``: the score itself."""

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
        """Return all records' places."""
        return slice(None)

    def records(
        self, rows: Any, labels: Any, weights: Array | None
    ) -> tuple[Any, Array, Array | None]:
        """Return all records, labels measured from the middle."""
        return rows, as_numbers(labels) - self.middle, weights


class Regressor(ScoredNumbers, LinearModel):
    """A linear model of a number, with the parameters that most of them have.

    Predictions keep to a declared range of the labels: for every label within it, what lies beyond
    is farther away than the end of the range is, so that no error grows.
    """

    _centred = True  # whether labels are measured from the middle of their range

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        *,
        label_range: tuple[float, float] | str | None = None,
        relation: Relation | str = "add_remove",
        row_norm: float | None = None,
        n_records: int | str | None = None,
        mechanism: str | Mechanism = "auto",
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
        # Without noise there is nothing that a range would bound.
        unbounded = self.label_range is None and budget.is_infinite
        return self._interval(label_range_of(INFER if unbounded else self.label_range, y))

    def _publish(self, coef: Array, intercept: Array, labels: Interval) -> None:
        self.coef_ = coef
        self.intercept_ = float(intercept[0]) + labels.middle
        # declared here, or by a table's schema
        self.__dict__.pop("label_range_", None)
        if labels.fact.provenance is Provenance.DECLARED:
            self.label_range_ = labels.fact.value
