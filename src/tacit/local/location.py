"""Medians, learned in one pass over people who each answer once, sanitised at home."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator

from tacit.linear_model._tables import note_columns
from tacit.local._shell import begin, go_on
from tacit.local.subgradients import (
    Distance,
    LocalLoss,
    SumOfDistances,
)
from tacit.public_facts import assumptions_of, center_of, informed, row_norm_of

Array = npt.NDArray[np.float64]
_FARTHER = "medians farther from center take longer to find"


class _LocalLocation(BaseEstimator):
    """The protocol of fit and partial_fit; a member says which loss it means."""

    _loss: LocalLoss

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 0.0,
        *,
        row_norm: float | None = None,
        center: Any = None,
        learner: Any = "banco",
        sanitizer: Any = "auto",
        shuffle: bool = True,
        random_state: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.row_norm = row_norm
        self.center = center
        self.learner = learner
        self.sanitizer = sanitizer
        self.shuffle = shuffle
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None) -> Self:
        """Ask every row once, beginning anew."""
        return self._fit(X, True, self.shuffle)

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Ask more people; rows already seen must not come again."""
        return self._fit(X, not hasattr(self, "_stream"), False)

    def _fit(self, X: Any, first: bool, shuffle: bool) -> Self:
        unread, names = note_columns(self, X, first=first, sparse=False)
        if first:
            radius = row_norm_of(informed(self, X).row_norm, _FARTHER)
            centre = center_of(self.center, unread.n_columns)
            begin(self, self._loss, unread.n_columns, radius, radius)
            self._notes = assumptions_of(names)
            self._centre = centre
        table, _ = unread.read()
        labels = np.zeros(table.shape[0])
        # A subgradient's norm does not depend on the record's size, so records are not clipped.
        with np.errstate(over="ignore"):  # what overflows has no direction, and answers with a zero
            away = table - self._centre
        moved = go_on(self, away, labels, np.inf, self._notes, shuffle)
        self.location_ = self._centre + moved
        return self


class LocalMedian(_LocalLocation):
    """The median of every column from one sanitised answer of each person.

    Parameters
    ----------
    row_norm : float or None
        How far from ``center`` the medians might well be, which is public; records themselves need
        no bound. None is 1.0, with an `UndeclaredWarning`.
    center : array or None
        A public guess; 0 by default.
    epsilon, delta, learner, sanitizer, shuffle, random_state, verbose
        As for `LocalLogisticRegression`, and so are the attributes; ``location_`` is the answer.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.local import LocalMedian
    >>> ages = np.random.default_rng(0).normal(40.0, 10.0, (30_000, 1))
    >>> LocalMedian(epsilon=2.0, center=50.0, row_norm=20.0).fit(ages).location_.round(-1)
    array([40.])
    """

    _loss = SumOfDistances()


class LocalGeometricMedian(_LocalLocation):
    """The geometric median from one sanitised answer of each person.

    Parameters and attributes as for `LocalMedian`.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.local import LocalGeometricMedian
    >>> X = np.random.default_rng(0).normal([1.0, -1.0], 0.5, (30_000, 2))
    >>> LocalGeometricMedian(epsilon=2.0, row_norm=1.0).fit(X).location_.round()
    array([ 1., -1.])
    """

    _loss = Distance()
