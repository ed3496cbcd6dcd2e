"""Private regression that outlying labels move little."""

from __future__ import annotations

from tacit.erm import FeasibleSet, Mechanism
from tacit.erm.losses import HuberLoss, Loss
from tacit.linear_model._inference import WithSummary
from tacit.linear_model._regressor import RESIDUAL_SHARE, Regressor
from tacit.privacy import AnyAccountant, Budget, Relation
from tacit.records import Bounds


class HuberRegressor(WithSummary, Regressor):
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
        self.accountant = accountant
        self.random_state = random_state
        self.verbose = verbose

    def _loss(self, budget: Budget, bounds: Bounds) -> Loss:
        return HuberLoss(RESIDUAL_SHARE * bounds.label_bound if self.knot is None else self.knot)
