"""Base class of linear estimators: from parameters and a table to released weights."""

from __future__ import annotations

import math
import sys
from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, Protocol, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from tacit import checks
from tacit.erm import Objective, Plan, Problem, WholeSpace
from tacit.erm.losses import Loss
from tacit.erm.minimization import Opened, make_plan, minimize_unread
from tacit.erm.plan import Counted
from tacit.estimators.parameters import (
    DECLARED_CLASSES,
    Fact,
    NobodyCountedWarning,
    assumptions_of,
    budget_of,
    check_shape,
    classes_of,
    is_inferred,
    n_records_of,
    row_norm_of,
    source_of,
    warn,
    warn_if_weak,
    with_people,
    with_table_facts,
)
from tacit.estimators.summary import RESIDUAL_BOUND, publish_errors
from tacit.estimators.tables import (
    Weights,
    checked_weights,
    note_columns,
    rows_for_prediction,
    weights_of,
)
from tacit.privacy import Budget
from tacit.records import Bounds, MemoryRecords, RecordSource, RowMap
from tacit.records.bounds import INTERCEPT_SHARE
from tacit.records.grouped import PeopleInMemory, PeopleInSource
from tacit.records.lazy_table import (
    MappedRows,
    UnreadRecords,
    UnreadTable,
    has_people,
    read_people,
    shown_rows,
)
from tacit.records.memory import open_records

Array = npt.NDArray[np.float64]
Targets = Callable[[Any, Any, Array | None], tuple[Any, Array | None, Array | None]]

# Without noise there is no criterion for a ridge; this one keeps weights finite for separable
# classes.
_LEAST_RIDGE = 1e-6


class Labels(Protocol):
    """The public facts about labels: classes, or an interval."""

    @property
    def fact(self) -> Fact[Any]:
        """The fact, and its provenance."""

    @property
    def bounds(self) -> Mapping[str, Any]:
        """The keyword arguments of `Bounds` for this fact."""

    def counting(self, labels: Any) -> Any:
        """Return a mask or slice of the records that count."""

    def records(
        self, rows: Any, labels: Any, weights: Array | None
    ) -> tuple[Any, Array, Array | None]:
        """Return the records that count, with labels as the loss expects them, and weights."""


class LinearModel(BaseEstimator):
    """The protocol of plan and fit; a family defines the labels, a member the loss.

    Parameters are those of the members, since scikit-learn reads them off ``__init__`` signatures.
    """

    def __sklearn_tags__(self) -> Any:
        """Declare sparse input."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    @abstractmethod
    def _loss(self, budget: Budget, bounds: Bounds) -> Loss: ...

    @abstractmethod
    def _expected_labels(self) -> Labels:
        """Return the declared fact about the labels, or refuse to plan without it."""

    @abstractmethod
    def _labels(self, budget: Budget, y: Any) -> Labels:
        """Return the public fact about the given labels."""

    @abstractmethod
    def _publish(self, coef: Array, intercept: Array, labels: Any) -> None:
        """Set the released attributes."""

    def _inference_share(self) -> float:
        share: float = getattr(self, "inference", 0.0)
        return share

    def _ridge(self) -> float | None:
        ridge: float | None = self.regularization
        return ridge

    def _objective(
        self,
        budget: Budget,
        row_norm: float,
        n_records: int | None,
        labels: Labels,
        weights: Weights,
    ) -> Objective:
        bounds = Bounds(
            row_norm=row_norm,
            n_records=n_records,
            intercept=INTERCEPT_SHARE * row_norm
            if checks.flag("fit_intercept", self.fit_intercept)
            else 0.0,
            **labels.bounds,
        )
        feasible = WholeSpace() if self.constraint is None else self.constraint
        ridge = weights.ridge(self._ridge(), bounds.n_classes)
        return Objective(self._loss(budget, bounds), weights.bounds(bounds), ridge, feasible)

    def _weights(self, own: bool) -> Weights:
        """Return the declared weights; ``own`` says whether records have weights of their own."""
        of_classes = getattr(self, "class_weight", None)
        if self._inference_share() and (own or of_classes is not None):
            raise ValueError(
                "standard errors are derived for unweighted records; leave the weights out, "
                "or set inference=0."
            )
        return weights_of(self.max_weight, of_classes, own=own)

    def plan(self, n_features: int, n_records: int | None = None) -> Plan:
        """Return the plan of a fit, with its cost and predicted risk, without data.

        Parameters
        ----------
        n_features
            The number of columns of the table.
        n_records
            The number of rows, if known; it sharpens the predicted risk and changes nothing else.
        """
        check_shape(n_features, n_records)
        labels = self._expected_labels()
        budget = budget_of(self.epsilon, self.delta, self.relation, self.accountant)
        row_norm = row_norm_of(self.row_norm)
        public = n_records_of(self.n_records, n_records, budget.relation)
        weights = self._weights(self.max_weight is not None)
        declared = getattr(self, "classes", None)
        if declared is not None and not is_inferred(declared):
            weights.of_records(budget, classes_of(declared, None).value)  # refuses other classes
        objective = self._objective(budget, row_norm, public.value, labels, weights)
        if budget.is_infinite:
            raise ValueError("epsilon is infinite: there is no noise to plan; pass a finite one.")
        warn_if_weak(budget, public.value or n_records)
        problem = Problem(objective, n_features, n_records)
        mechanism = weights.mechanism(self.mechanism)
        return make_plan(problem, budget, mechanism, self._inference_share())

    def fit(self, X: Any, y: Any, sample_weight: Any = None, unit: Any = None) -> Self:
        """Fit to records ``X`` (one per row) with labels ``y``, read after the plan is charged.

        ``sample_weight``, one number per record, is private like the rest of the record. A value
        that is not a number or below 0 counts as 0, and one above ``max_weight`` as ``max_weight``.
        ``unit``, one identifier per row, names the person of each record; a person with all their
        records is then protected (docs/people.md).
        """
        resolved = with_table_facts(self, X)
        budget = budget_of(self.epsilon, self.delta, self.relation, self.accountant)
        row_norm = row_norm_of(resolved.row_norm)
        labels = resolved._labels(budget, y)
        table, names = note_columns(self, X, y, unit=unit)
        budget = with_people(budget, has_people(table))
        n_records = n_records_of(resolved.n_records, shown_rows(table), budget.relation)
        own_weights = checked_weights(sample_weight, table)
        of_source = isinstance(table, UnreadRecords) and self.max_weight is not None
        weights = self._weights(own_weights is not None or of_source)
        objective = resolved._objective(budget, row_norm, n_records.value, labels, weights)
        warn_if_weak(budget, n_records.value)
        if budget.is_infinite and objective.regularization is None:
            ridge = 0.0 if math.isfinite(objective.bounds.label_bound) else _LEAST_RIDGE
            objective = objective.with_regularization(ridge * objective.row_norm**2)
        opened = when_paid_for(
            table, labels.records, objective.bounds, own_weights, labels.counting
        )
        result = minimize_unread(
            opened,
            Problem(objective, table.n_columns, one_each=gives_one_each(table)),
            budget,
            weights.mechanism(self.mechanism),
            accountant=self.accountant,
            source=source_of(self.random_state),
            assumptions=assumptions_of(labels.fact, n_records, names),
            inference=self._inference_share(),
            weigh=weights.of_records(budget, labels.fact.value),
        )
        if self.verbose:
            sys.stderr.write(f"{result.plan or 'no noise: the budget is infinite'}\n")
            sys.stderr.write(result.privacy.statement() + "\n")
        self.row_norm_, self.privacy_, self.plan_ = row_norm, result.privacy, result.plan
        self._publish(*split(result.weights, objective.bounds.intercept), labels)
        publish_errors(self, result.errors, objective.bounds.intercept, labels)
        self.__dict__.pop(RESIDUAL_BOUND, None)  # left from an earlier fit
        if result.residual_bound is not None:
            setattr(self, RESIDUAL_BOUND, result.residual_bound)
        warn_if_nobody_counted(result.count, objective.bounds.n_classes, labels.fact.value)
        return self


def warn_if_nobody_counted(count: Counted | None, n_classes: int | None, declared: Any) -> None:
    """Warn if the released number of records cannot be told from 0; say nothing without one.

    Only what was released decides, so the warning reveals nothing more.
    """
    if count is None or not count.may_be_none:
        return
    number = "there is none"
    if count.std:
        number = f"their noisy number is {count.answer:.0f}, give or take {2 * count.std:.0f}"
    what, question = "a number as their label", "are they numbers"
    if n_classes is not None:
        what, question = "a declared class", f"is classes={declared.tolist()!r} right"
    warn(
        f"about 0 of your records had {what} ({number}); {question}? The model cannot be told from "
        "one of no records, and the budget is spent.",
        NobodyCountedWarning,
    )


def split(weights: Array, constant: float) -> tuple[Array, Array]:
    """Split weights into coefficients and intercepts; the last coordinate was ``constant``."""
    if not constant:
        return weights, np.zeros(weights.shape[1:] or 1)
    return weights[:-1], np.atleast_1d(constant * weights[-1])


def gives_one_each(table: UnreadTable) -> bool:
    """Return whether the table provides at most one record per person."""
    return isinstance(table, UnreadRecords) and table.has_people


def when_paid_for(
    table: UnreadTable,
    targets: Targets,
    bounds: Bounds,
    weigh: Callable[[], Array] | None = None,
    counting: Callable[[Any], Any] = lambda _: slice(None),
) -> Callable[[], Opened]:
    """Return a function that opens a table's records; it is called after the charge.

    ``targets`` makes records from rows, labels and weights as they are read, for the rows that
    ``counting`` selects. A record source brings its own records; their bounds must be these, which
    is checked now.
    """
    if isinstance(table, UnreadRecords):
        records = open_records(table.records, None, bounds)  # reads nothing
        unit = table.identifiers()
        return lambda: records if unit is None else PeopleInSource(records, unit)

    def opened() -> Opened:
        rows, labels = table.read()
        people = read_people(table).where(counting(labels)) if has_people(table) else None
        weights = None if weigh is None else weigh()
        rows, labels, weights = targets(rows, labels, weights)
        if people is None:
            return MemoryRecords(rows, labels, bounds, weights)
        return PeopleInMemory(rows, labels, bounds, people, weights)

    return opened


_RELEASED = ("coef_", "intercept_", "classes_", DECLARED_CLASSES, RESIDUAL_BOUND)


def refuse_sources(model: Any, X: Any, maps: str) -> None:
    """Refuse a record source: features are made of single rows."""
    if isinstance(X, RecordSource):
        raise TypeError(
            f"{type(model).__name__} makes features of single rows, and a record source gives "
            "sums over blocks of them; pass the rows, or make a source of the features that "
            f"{maps} makes of each block, for a linear estimator."
        )


def publish_fit(model: Any, linear: Any) -> None:
    """Set the released attributes of a linear estimator on the model that contains it."""
    model.privacy_, model.plan_ = linear.privacy_, linear.plan_
    _hand_over(linear, model)


def ask_linear(
    model: Any, linear: Any, function: RowMap, row_norm: float, method: str, X: Any
) -> npt.NDArray[Any]:
    """Return the linear estimator's output for the features of rows, computed in blocks."""
    check_is_fitted(model)
    rows = rows_for_prediction(model, X)
    linear.n_features_in_, linear.row_norm_ = function.n_columns, row_norm
    _hand_over(model, linear)
    blocks = MappedRows(rows, function).blocks()
    return np.concatenate([getattr(linear, method)(block.made()) for block in blocks])


def _hand_over(giver: Any, taker: Any) -> None:
    """Copy the released attributes of one estimator to another."""
    for name in _RELEASED:
        vars(taker).pop(name, None)  # left from an earlier fit
        if hasattr(giver, name):
            setattr(taker, name, getattr(giver, name))
