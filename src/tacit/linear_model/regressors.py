"""Private linear regression: least squares, Huber, quantile and Poisson."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tacit.erm import FeasibleSet, Mechanism
from tacit.erm.losses import (
    HuberLoss,
    LogCoshLoss,
    Loss,
    PoissonLoss,
    PoissonOffsetLoss,
    QuantileLoss,
    SquaredLoss,
)
from tacit.erm.minimization import MECHANISMS, MechanismName
from tacit.estimators.predictors import (
    RESIDUAL_SHARE,
    Array,
    Interval,
    Offset,
    Regressor,
    offset_range_of,
)
from tacit.estimators.summary import WithSummary
from tacit.privacy import AnyAccountant, Budget, Relation
from tacit.records import Bounds


class _LeastSquares(WithSummary, Regressor):
    """Base of least squares: squared loss without noise or from moments, else a Lipschitz one."""

    def _loss(self, budget: Budget, bounds: Bounds) -> Loss:
        named = (
            MECHANISMS.get(self.mechanism) if isinstance(self.mechanism, str) else self.mechanism
        )
        if budget.is_infinite or (named is not None and named.uses_moments):
            return SquaredLoss()
        return LogCoshLoss(RESIDUAL_SHARE * bounds.label_bound, widens=True)


class LinearRegression(_LeastSquares):
    """Least squares with a differential-privacy guarantee.

    Large residuals count less, which bounds the effect of one record. The loss is the log cosh of a
    residual, with its knot at a quarter of half the label range, or wider if records and budget
    allow. With ``mechanism="sufficient_statistics"`` the squared loss itself is solved from noisy
    moments (AdaSSP). With an infinite budget it is ordinary least squares.

    Parameters
    ----------
    label_range : (float, float), "infer" or None
        Labels are clipped to this interval, a public fact.
    offset_range : (float, float) or None
        The range of the offsets that `fit` takes: known parts of each score, with coefficient 1.
    epsilon, delta, relation, row_norm, n_records, mechanism, fit_intercept, regularization, \
constraint, max_weight, inference, accountant, random_state, verbose
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


class Ridge(_LeastSquares):
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
        epsilon: float | None = None,
        delta: float = 1e-6,
        *,
        alpha: float | None = None,
        label_range: tuple[float, float] | str | None = None,
        relation: Relation | str = "add_remove",
        row_norm: float | None = None,
        n_records: int | str | None = None,
        mechanism: MechanismName | Mechanism = "auto",
        fit_intercept: bool = True,
        constraint: FeasibleSet | None = None,
        max_weight: float | None = None,
        inference: float | str = 0.0,
        offset_range: tuple[float, float] | None = None,
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
        self.max_weight = max_weight
        self.inference = inference
        self.offset_range = offset_range
        self.accountant = accountant
        self.random_state = random_state
        self.verbose = verbose

    def _ridge(self) -> float | None:
        return self.alpha


class HuberRegressor(WithSummary, Regressor):
    """Linear regression robust to outlying labels, with a privacy guarantee.

    Parameters
    ----------
    knot : float or None
        The residual from which the loss is linear, in the unit of the labels; by default a quarter
        of half the label range. Other parameters as in `LinearRegression`.

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
        epsilon: float | None = None,
        delta: float = 1e-6,
        *,
        knot: float | None = None,
        label_range: tuple[float, float] | str | None = None,
        relation: Relation | str = "add_remove",
        row_norm: float | None = None,
        n_records: int | str | None = None,
        mechanism: MechanismName | Mechanism = "auto",
        fit_intercept: bool = True,
        regularization: float | None = None,
        constraint: FeasibleSet | None = None,
        max_weight: float | None = None,
        inference: float | str = 0.0,
        offset_range: tuple[float, float] | None = None,
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
        self.max_weight = max_weight
        self.inference = inference
        self.offset_range = offset_range
        self.accountant = accountant
        self.random_state = random_state
        self.verbose = verbose

    def _loss(self, budget: Budget, bounds: Bounds) -> Loss:
        return HuberLoss(RESIDUAL_SHARE * bounds.label_bound if self.knot is None else self.knot)


# The pinball loss is smoothed over this share of half the label range.
ROUNDED_SHARE = 0.05


class QuantileRegressor(Regressor):
    """Linear regression of a quantile, with a privacy guarantee.

    Minimises the pinball loss, its corner smoothed over ``smoothing``. It has no standard errors;
    `tacit.location.Median` has intervals for quantiles of columns.

    Parameters
    ----------
    quantile : float, default=0.5
        The level, between 0 and 1.
    smoothing : float or None
        Half-width of the smoothed corner in the unit of the labels; by default a twentieth of half
        the label range. With 0 the loss is not smooth, and only "noisy_gradient" accepts it. Other
        parameters as in `LinearRegression`.

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
        epsilon: float | None = None,
        delta: float = 1e-6,
        *,
        quantile: float = 0.5,
        smoothing: float | None = None,
        label_range: tuple[float, float] | str | None = None,
        relation: Relation | str = "add_remove",
        row_norm: float | None = None,
        n_records: int | str | None = None,
        mechanism: MechanismName | Mechanism = "auto",
        fit_intercept: bool = True,
        regularization: float | None = None,
        constraint: FeasibleSet | None = None,
        max_weight: float | None = None,
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
        self.max_weight = max_weight
        self.accountant = accountant
        self.random_state = random_state
        self.verbose = verbose

    def _loss(self, budget: Budget, bounds: Bounds) -> Loss:
        smoothing = ROUNDED_SHARE * bounds.label_bound if self.smoothing is None else self.smoothing
        return QuantileLoss(self.quantile, smoothing)


class PoissonRegressor(WithSummary, Regressor):
    """Regression of counts with a log link, with a privacy guarantee.

    Minimises the Poisson deviance, its derivative clipped to a quarter of the greatest label, or to
    more if records and budget allow. With an infinite budget it is not clipped. Labels must not be
    negative.

    Parameters
    ----------
    label_range, epsilon, delta, ...
        As in `LinearRegression`; the range must start at 0 or above. Exposures from a to b have
        offsets, their logarithms, in ``offset_range=(math.log(a), math.log(b))``.

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
    _ratio = "rate ratio"

    def __sklearn_tags__(self) -> Any:
        """Declare that labels are counts."""
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = True
        return tags

    def _loss(self, budget: Budget, bounds: Bounds) -> Loss:
        if isinstance(self.label_range, tuple | list) and self.label_range[0] < 0:
            raise ValueError(
                f"counts are not negative, got label_range {self.label_range!r}; start it at 0."
            )
        half_range = bounds.label_bound
        slope_bound, widens = RESIDUAL_SHARE * half_range, True
        if budget.is_infinite:
            slope_bound, widens = math.inf, False
        elif self.regularization is not None:
            # Widening needs more ridge, and this one is declared: start with the widest loss.
            slope_bound, widens = half_range, False
        declared = offset_range_of(self.offset_range)
        if declared is None or bounds.label_range is None:
            return PoissonLoss(slope_bound, half_range, widens)
        start, step = _offset_scale(declared, bounds.label_range)
        return PoissonOffsetLoss(slope_bound, half_range, widens, start, step)

    def _offset_of(self, offset: Any, exposure: Any) -> Offset | None:
        if exposure is None:
            return super()._offset_of(offset, None)
        if offset is not None:
            raise ValueError("exposure is exp(offset); pass one of them.")
        return Offset(exposure, is_exposure=True)

    def _with_offsets(
        self, labels: Interval, numbers: Array, offsets: Array, declared: tuple[float, float]
    ) -> Array:
        """Return counts, and offsets scaled to the range of counts as a second column.

        In this range bounds clip them as labels are clipped.
        """
        start, step = _offset_scale(declared, labels.bounds["label_range"])
        return np.column_stack([numbers, (offsets - start) / step])

    def _numbers(self, scores: Array) -> Array:
        with np.errstate(over="ignore"):  # an infinite rate is clipped to the greatest label
            return np.exp(scores)


def _offset_scale(
    offsets: tuple[float, float], label_range: tuple[float, float]
) -> tuple[float, float]:
    """Return start and step with offset = start + step l for l in the range of the labels."""
    step = (offsets[1] - offsets[0]) / (label_range[1] - label_range[0])
    return offsets[0] - step * label_range[0], step
