"""Private regression of a quantile."""

from __future__ import annotations

from tacit.erm import FeasibleSet, Mechanism
from tacit.erm.losses import Loss, QuantileLoss
from tacit.linear_model._regressor import Regressor
from tacit.privacy import AnyAccountant, Budget, Relation
from tacit.records import Bounds

# The pinball loss is rounded over this share of half the label range.
ROUNDED_SHARE = 0.05


class QuantileRegressor(Regressor):
    """Linear regression of a quantile, with a privacy guarantee.

    Minimises the pinball loss, its corner rounded over ``smoothing``. It has no standard errors;
    `tacit.location.Median` has intervals for quantiles of columns.

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
        row_norm: float | None = None,
        n_records: int | str | None = None,
        mechanism: str | Mechanism = "auto",
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
