"""Private linear models of a number."""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from tacit.erm import FeasibleSet, Mechanism, Objective, Plan
from tacit.erm.losses import HuberLoss, Loss, PoissonLoss, QuantileLoss, SquaredLoss
from tacit.erm.planner import MECHANISMS
from tacit.linear_model._shell import (
    fit_objective,
    intercept_coordinate,
    objective_of,
    plan_of,
)
from tacit.linear_model._tables import clipped_scores, note_columns
from tacit.privacy import AnyAccountant, Budget, Relation
from tacit.public_facts import INFER, budget_of, is_inferred, label_range_of, n_records_of
from tacit.records import Bounds, as_numbers

Array = npt.NDArray[np.float64]

# Residuals beyond this share of half the label range count as if they were that large.
RESIDUAL_SHARE = 0.25
# The pinball loss is rounded over this share of half the label range.
ROUNDED_SHARE = 0.05


class _Regressor(RegressorMixin, BaseEstimator):
    """The protocol of fit, plan and predict; a subclass only says which loss it means.

    This is the one class of tacit with concrete descendants: scikit-learn reads parameters off
    ``__init__`` signatures, and five copies of the same thirty lines would be worse.
    """

    _centred = True  # whether labels are measured from the middle of their range

    def __sklearn_tags__(self) -> Any:
        """Declare sparse input."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _loss(self, budget: Budget, half_range: float) -> Loss:
        raise AssertionError("a regressor says which loss it means")

    def _ridge(self) -> float | None:
        ridge: float | None = self.regularization
        return ridge

    def _objective(
        self, budget: Budget, label_range: tuple[float, float], n_records: int | None
    ) -> tuple[Objective, float]:
        """Return the objective and the number subtracted from labels."""
        low, high = label_range
        middle = (low + high) / 2 if self.fit_intercept and self._centred else 0.0
        bounds = Bounds(
            row_norm=self.row_norm,
            label_range=(low - middle, high - middle),
            n_records=n_records,
            intercept=intercept_coordinate(self.row_norm, self.fit_intercept),
        )
        loss = self._loss(budget, bounds.label_bound)
        return objective_of(loss, bounds, self._ridge(), self.constraint), middle

    def plan(self, n_features: int, n_records: int | None = None) -> Plan:
        """Return what a fit would run, what it would cost and what to expect, without data."""
        if is_inferred(self.label_range):
            raise ValueError("a plan needs the range of the labels: declare label_range.")
        return self._plan(n_features, n_records, 1)

    def _plan(self, n_features: int, expected: int | None, n_classes: int) -> Plan:
        budget = budget_of(self.epsilon, self.delta, self.relation)
        label_range = label_range_of(self.label_range)
        public = n_records_of(self.n_records, expected, budget.relation)
        objective, _ = self._objective(budget, label_range.value, public.value)
        return plan_of(objective, n_features, expected, budget, self.mechanism)

    def fit(self, X: Any, y: Any) -> Self:
        """Fit to records ``X`` (one a row) with numbers ``y``."""
        budget = budget_of(self.epsilon, self.delta, self.relation)
        # Without noise there is nothing that a range would bound.
        unbounded = self.label_range is None and budget.is_infinite
        label_range = label_range_of(INFER if unbounded else self.label_range, y)
        table, names = note_columns(self, X, y)
        n_records = n_records_of(self.n_records, table.n_rows, budget.relation)
        objective, middle = self._objective(budget, label_range.value, n_records.value)
        fitted = fit_objective(
            self,
            objective,
            table,
            lambda rows, labels: (rows, as_numbers(labels) - middle),
            (label_range, n_records, names),
        )
        self.row_norm_ = self.row_norm
        self.coef_ = fitted.coef
        self.intercept_ = float(fitted.intercept[0]) + middle
        self.privacy_ = fitted.privacy
        self.plan_ = fitted.plan
        return self

    def _scores(self, X: Any) -> Array:
        check_is_fitted(self)
        scores: Array = clipped_scores(self, X, self.coef_) + self.intercept_
        return scores

    def predict(self, X: Any) -> Array:
        """Return the predicted number of every record."""
        return self._scores(X)


def _uses_moments(mechanism: str | Mechanism) -> bool:
    named = MECHANISMS.get(mechanism) if isinstance(mechanism, str) else mechanism
    return named is not None and named.uses_moments


class LinearRegression(_Regressor):
    """Least squares with a differential-privacy guarantee.

    Residuals beyond a quarter of half the label range are clipped (a Huber loss), which bounds
    what one record can do; with ``mechanism="sufficient_statistics"`` the squared loss itself is
    solved from noisy moments (AdaSSP). With an infinite budget it is ordinary least squares.

    Parameters
    ----------
    label_range : (float, float), "infer" or None
        Labels are clipped to this interval, a public fact.
    epsilon, delta, relation, row_norm, n_records, mechanism, fit_intercept, regularization, \
constraint, accountant, random_state, verbose
        As in `LogisticRegression`.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.linear_model import LinearRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (20_000, 4))
    >>> y = X @ [1.0, -2.0, 0.5, 0.0] + 3.0 + 0.1 * rng.standard_normal(20_000)
    >>> model = LinearRegression(1.0, 1e-6, row_norm=2.0, label_range=(-2.0, 8.0)).fit(X, y)
    >>> model.score(X, y) > 0.95
    True
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        *,
        label_range: tuple[float, float] | str | None = None,
        relation: Relation | str = "add_remove",
        row_norm: float = 1.0,
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
        self.label_range = label_range
        self.relation = relation
        self.row_norm = row_norm
        self.n_records = n_records
        self.mechanism = mechanism
        self.fit_intercept = fit_intercept
        self.regularization = regularization
        self.constraint = constraint
        self.accountant = accountant
        self.random_state = random_state
        self.verbose = verbose

    def _loss(self, budget: Budget, half_range: float) -> Loss:
        if budget.is_infinite or _uses_moments(self.mechanism):
            return SquaredLoss()
        return HuberLoss(RESIDUAL_SHARE * half_range)


class Ridge(_Regressor):
    """Least squares with L2 regularisation ``alpha`` in SUM form, intercept included.

    The parameters are those of `LinearRegression`, with ``alpha`` for ``regularization``; the
    objective is sum (y - <w, x>)^2 / 2 + (alpha / 2) ||w||^2.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.linear_model import Ridge
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (20_000, 4))
    >>> y = X @ [1.0, -2.0, 0.5, 0.0]
    >>> Ridge(1.0, 1e-6, alpha=50.0, row_norm=2.0, label_range=(-4, 4)).fit(X, y).score(X, y) > 0.9
    True
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        *,
        alpha: float | None = None,
        label_range: tuple[float, float] | str | None = None,
        relation: Relation | str = "add_remove",
        row_norm: float = 1.0,
        n_records: int | str | None = None,
        mechanism: str | Mechanism = "auto",
        fit_intercept: bool = True,
        constraint: FeasibleSet | None = None,
        accountant: AnyAccountant | None = None,
        random_state: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.alpha = alpha
        self.label_range = label_range
        self.relation = relation
        self.row_norm = row_norm
        self.n_records = n_records
        self.mechanism = mechanism
        self.fit_intercept = fit_intercept
        self.constraint = constraint
        self.accountant = accountant
        self.random_state = random_state
        self.verbose = verbose

    def _ridge(self) -> float | None:
        return self.alpha

    def _loss(self, budget: Budget, half_range: float) -> Loss:
        if budget.is_infinite or _uses_moments(self.mechanism):
            return SquaredLoss()
        return HuberLoss(RESIDUAL_SHARE * half_range)


class HuberRegressor(_Regressor):
    """Linear regression robust to outlying labels, with a privacy guarantee.

    Parameters
    ----------
    knot : float or None
        The residual from which the loss is linear, in the labels' unit; by default a quarter of
        half the label range. Other parameters as in `LinearRegression`.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.linear_model import HuberRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (20_000, 4))
    >>> y = X @ [1.0, -2.0, 0.5, 0.0]
    >>> HuberRegressor(1.0, 1e-6, row_norm=2.0, label_range=(-4, 4)).fit(X, y).score(X, y) > 0.9
    True
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        *,
        knot: float | None = None,
        label_range: tuple[float, float] | str | None = None,
        relation: Relation | str = "add_remove",
        row_norm: float = 1.0,
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
        self.knot = knot
        self.label_range = label_range
        self.relation = relation
        self.row_norm = row_norm
        self.n_records = n_records
        self.mechanism = mechanism
        self.fit_intercept = fit_intercept
        self.regularization = regularization
        self.constraint = constraint
        self.accountant = accountant
        self.random_state = random_state
        self.verbose = verbose

    def _loss(self, budget: Budget, half_range: float) -> Loss:
        return HuberLoss(RESIDUAL_SHARE * half_range if self.knot is None else self.knot)


class QuantileRegressor(_Regressor):
    """Linear regression of a quantile, with a privacy guarantee.

    Minimises the pinball loss, its corner rounded over ``smoothing``.

    Parameters
    ----------
    quantile : float, default=0.5
        The level, between 0 and 1.
    smoothing : float or None
        Half-width of the rounded corner in the labels' unit; by default a twentieth of half the
        label range. 0 keeps the corner, which only "noisy_gradient" takes. Other parameters as in
        `LinearRegression`.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.linear_model import QuantileRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (20_000, 2))
    >>> y = X @ [1.0, -2.0] + rng.uniform(-1, 1, 20_000)
    >>> model = QuantileRegressor(1.0, 1e-6, quantile=0.9, row_norm=1.5, label_range=(-4, 4))
    >>> bool(abs((model.fit(X, y).predict(X) > y).mean() - 0.9) < 0.05)
    True
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        *,
        quantile: float = 0.5,
        smoothing: float | None = None,
        label_range: tuple[float, float] | str | None = None,
        relation: Relation | str = "add_remove",
        row_norm: float = 1.0,
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
        self.quantile = quantile
        self.smoothing = smoothing
        self.label_range = label_range
        self.relation = relation
        self.row_norm = row_norm
        self.n_records = n_records
        self.mechanism = mechanism
        self.fit_intercept = fit_intercept
        self.regularization = regularization
        self.constraint = constraint
        self.accountant = accountant
        self.random_state = random_state
        self.verbose = verbose

    def _loss(self, budget: Budget, half_range: float) -> Loss:
        smoothing = ROUNDED_SHARE * half_range if self.smoothing is None else self.smoothing
        return QuantileLoss(self.quantile, smoothing)


class PoissonRegressor(_Regressor):
    """Regression of counts with a log link, with a privacy guarantee.

    Minimises the Poisson deviance, its slope bounded by a quarter of the greatest label; an
    infinite budget leaves the slope unbounded. Labels must not be negative.

    Parameters
    ----------
    label_range, epsilon, delta, ...
        As in `LinearRegression`; the range must start at 0 or above.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.linear_model import PoissonRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (20_000, 2))
    >>> y = rng.poisson(np.exp(1.0 + X @ [0.5, -0.5]))
    >>> model = PoissonRegressor(1.0, 1e-6, row_norm=1.5, label_range=(0, 20)).fit(X, y)
    >>> bool(abs(model.predict(X).mean() - y.mean()) < 0.3)
    True
    """

    _centred = False

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        *,
        label_range: tuple[float, float] | str | None = None,
        relation: Relation | str = "add_remove",
        row_norm: float = 1.0,
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
        self.label_range = label_range
        self.relation = relation
        self.row_norm = row_norm
        self.n_records = n_records
        self.mechanism = mechanism
        self.fit_intercept = fit_intercept
        self.regularization = regularization
        self.constraint = constraint
        self.accountant = accountant
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        """Declare that labels are counts."""
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = True
        return tags

    def _loss(self, budget: Budget, half_range: float) -> Loss:
        if isinstance(self.label_range, tuple | list) and self.label_range[0] < 0:
            raise ValueError(f"counts are not negative, got label_range {self.label_range!r}.")
        if budget.is_infinite:
            return PoissonLoss(math.inf, half_range)
        return PoissonLoss(RESIDUAL_SHARE * half_range, half_range)

    def predict(self, X: Any) -> Array:
        """Return the predicted rate of every record."""
        return np.exp(self._scores(X))
