"""Private least squares, with a ridge or without."""

from __future__ import annotations

from tacit.erm import FeasibleSet, Mechanism
from tacit.erm.losses import LogCoshLoss, Loss, SquaredLoss
from tacit.erm.planner import MECHANISMS
from tacit.linear_model._inference import WithSummary
from tacit.linear_model._regressor import RESIDUAL_SHARE, Regressor
from tacit.privacy import AnyAccountant, Budget, Relation
from tacit.records import Bounds


class _LeastSquares(WithSummary, Regressor):
    """The squared loss where nothing bounds it or noisy moments do, and else a Lipschitz one."""

    def _loss(self, budget: Budget, bounds: Bounds) -> Loss:
        named = (
            MECHANISMS.get(self.mechanism) if isinstance(self.mechanism, str) else self.mechanism
        )
        if budget.is_infinite or (named is not None and named.uses_moments):
            return SquaredLoss()
        return LogCoshLoss(RESIDUAL_SHARE * bounds.label_bound, widens=True)


class LinearRegression(_LeastSquares):
    """Least squares with a differential-privacy guarantee.

    Large residuals count less, which bounds what one record can do: the loss is the log cosh of a
    residual, with its knot at a quarter of half the label range, further out where records and
    budget allow. With ``mechanism="sufficient_statistics"`` the squared loss itself is solved from
    noisy moments (AdaSSP). With an infinite budget it is ordinary least squares.

    Parameters
    ----------
    label_range : (float, float), "infer" or None
        Labels are clipped to this interval, a public fact.
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
        epsilon: float = 1.0,
        delta: float = 1e-6,
        *,
        alpha: float | None = None,
        label_range: tuple[float, float] | str | None = None,
        relation: Relation | str = "add_remove",
        row_norm: float | None = None,
        n_records: int | str | None = None,
        mechanism: str | Mechanism = "auto",
        fit_intercept: bool = True,
        constraint: FeasibleSet | None = None,
        max_weight: float | None = None,
        inference: float = 0.0,
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
        self.accountant = accountant
        self.random_state = random_state
        self.verbose = verbose

    def _ridge(self) -> float | None:
        return self.alpha
