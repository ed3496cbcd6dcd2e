"""Private regression of counts."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tacit.erm.losses import Loss, PoissonLoss
from tacit.linear_model._inference import WithSummary
from tacit.linear_model._regressor import RESIDUAL_SHARE, Array, Regressor
from tacit.privacy import Budget
from tacit.records import Bounds


class PoissonRegressor(WithSummary, Regressor):
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
    _ratio = "rate ratio"

    def __sklearn_tags__(self) -> Any:
        """Declare that labels are counts."""
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = True
        return tags

    def _loss(self, budget: Budget, bounds: Bounds) -> Loss:
        if isinstance(self.label_range, tuple | list) and self.label_range[0] < 0:
            raise ValueError(f"counts are not negative, got label_range {self.label_range!r}.")
        half_range = bounds.label_bound
        if budget.is_infinite:
            return PoissonLoss(math.inf, half_range)
        return PoissonLoss(RESIDUAL_SHARE * half_range, half_range)

    def _numbers(self, scores: Array) -> Array:
        with np.errstate(over="ignore"):  # an endless rate is the greatest label
            return np.exp(scores)
