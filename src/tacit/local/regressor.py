"""A number, learned in one pass over people who each answer once, sanitised at home."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator

from tacit import checks
from tacit.linear_model._linear_model import split
from tacit.linear_model._regressor import ScoredNumbers
from tacit.linear_model._tables import note_columns
from tacit.local._shell import begin, go_on
from tacit.local.subgradients import (
    Absolute,
    Huber,
    LocalLoss,
)
from tacit.public_facts import assumptions_of, informed, row_norm_of
from tacit.records import INTERCEPT_SHARE, as_numbers

Array = npt.NDArray[np.float64]


class LocalRegressor(ScoredNumbers, BaseEstimator):
    """Robust linear regression from one sanitised answer of each person.

    Labels need no bound: one label pulls the weights by at most its row's norm.

    Parameters
    ----------
    loss : Absolute or Huber
        `Absolute` learns the conditional median; `Huber(width)` is nearer to least squares, its
        width in the labels' own units.
    label_scale : float, default=1.0
        The size of labels that would be no surprise, which is public; a wrong one costs time.
    epsilon, delta, row_norm, learner, sanitizer, fit_intercept, shuffle, random_state, verbose
        As for `LocalLogisticRegression`, and so are the attributes.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.local import LocalRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (40_000, 1))
    >>> y = 2 * X[:, 0] + rng.laplace(0, 0.1, 40_000)
    >>> LocalRegressor(epsilon=4.0, row_norm=1.0).fit(X, y).coef_.round()
    array([2.])
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 0.0,
        *,
        loss: LocalLoss | None = None,
        label_scale: float = 1.0,
        row_norm: float | None = None,
        learner: Any = "banco",
        sanitizer: Any = "auto",
        fit_intercept: bool = True,
        shuffle: bool = True,
        random_state: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.loss = loss
        self.label_scale = label_scale
        self.row_norm = row_norm
        self.learner = learner
        self.sanitizer = sanitizer
        self.fit_intercept = fit_intercept
        self.shuffle = shuffle
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        """Declare sparse input, and that one pass over a few hundred rows is not enough."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.regressor_tags.poor_score = True
        return tags

    def fit(self, X: Any, y: Any) -> Self:
        """Ask every row once, beginning anew."""
        return self._fit(X, y, True, self.shuffle)

    def partial_fit(self, X: Any, y: Any) -> Self:
        """Ask more people; rows already seen must not come again."""
        return self._fit(X, y, not hasattr(self, "_stream"), False)

    def _fit(self, X: Any, y: Any, first: bool, shuffle: bool) -> Self:
        loss = Absolute() if self.loss is None else self.loss
        if not isinstance(loss, Absolute | Huber):
            raise TypeError(f"loss must be Absolute() or Huber(width), got {self.loss!r}.")
        scale = checks.positive("label_scale", self.label_scale)
        unread, names = note_columns(self, X, y, first=first)
        if first:
            row_norm = self.row_norm_ = row_norm_of(informed(self, X).row_norm)
            self._intercept_coordinate = INTERCEPT_SHARE * row_norm * bool(self.fit_intercept)
            begin(self, loss, unread.n_columns, row_norm, scale / row_norm)
            self._notes = assumptions_of(names)
        table, labels = unread.read()
        weights = go_on(self, table, as_numbers(labels), self.row_norm_, self._notes, shuffle)
        self.coef_, intercept = split(weights, self._stream.intercept)
        self.intercept_ = float(intercept[0])
        return self
