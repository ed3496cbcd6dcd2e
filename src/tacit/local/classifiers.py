"""Two classes, learned in one pass over people who each answer once, sanitised at home."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator

from tacit.linear_model._classifier import Probabilities, ScoredClasses, check_two_classes
from tacit.linear_model._linear_model import split
from tacit.linear_model._tables import note_columns
from tacit.local._shell import begin, go_on
from tacit.local.subgradients import (
    Hinge,
    LocalLoss,
    Logistic,
)
from tacit.public_facts import assumptions_of, classes_of, codes_of, informed, row_norm_of
from tacit.records import INTERCEPT_SHARE

Array = npt.NDArray[np.float64]


class _LocalClassifier(ScoredClasses, BaseEstimator):
    """The protocol of fit and partial_fit; a member says which loss it means."""

    _loss: LocalLoss

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 0.0,
        *,
        row_norm: float | None = None,
        classes: Sequence[Any] | str | None = None,
        learner: Any = "banco",
        sanitizer: Any = "auto",
        fit_intercept: bool = True,
        shuffle: bool = True,
        random_state: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.row_norm = row_norm
        self.classes = classes
        self.learner = learner
        self.sanitizer = sanitizer
        self.fit_intercept = fit_intercept
        self.shuffle = shuffle
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        """Declare sparse input and two classes."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.multi_class = False
        return tags

    def fit(self, X: Any, y: Any) -> Self:
        """Ask every row once, beginning anew."""
        return self._fit(X, y, True, None, self.shuffle)

    def partial_fit(self, X: Any, y: Any, classes: Sequence[Any] | None = None) -> Self:
        """Ask more people; rows already seen must not come again."""
        return self._fit(X, y, not hasattr(self, "_stream"), classes, False)

    def _fit(self, X: Any, y: Any, first: bool, classes: Any, shuffle: bool) -> Self:
        unread, names = note_columns(self, X, y, first=first)
        if first:
            told = informed(self, X)
            row_norm = self.row_norm_ = row_norm_of(told.row_norm)
            found = classes_of(told.classes if classes is None else classes, y)
            check_two_classes(self, found.value.size, "; declare two.")
            self._intercept_coordinate = INTERCEPT_SHARE * row_norm * bool(self.fit_intercept)
            begin(self, self._loss, unread.n_columns, row_norm, 1.0 / row_norm)
            self.classes_, self._notes = found.value, assumptions_of(found, names)
        stream = self._stream
        table, labels = unread.read()
        codes, known = codes_of(np.asarray(labels), self.classes_)
        # Somebody of no declared class answers too: with a label of 0, between the two.
        signs = np.where(known, np.where(codes == 1, 1.0, -1.0), 0.0)
        weights = go_on(self, table, signs, self.row_norm_, self._notes, shuffle)
        self.coef_, self.intercept_ = split(weights, stream.intercept)
        self.coef_ = self.coef_[None, :]
        return self


class LocalLogisticRegression(Probabilities, _LocalClassifier):
    """Logistic regression of two classes from one sanitised answer of each person.

    Every row is visited once. It stands for one person who computes the gradient of
    the loss at the server's current point, sanitises it and sends it; the learner sees only that.
    `tacit.local.Client` and `Server` are the same two halves on two machines.

    Parameters
    ----------
    epsilon : float, default=1.0
        What each person's one answer may cost.
    delta : float, default=0.0
        The probability with which the promise may fail.
    row_norm : float or None
        Records are scaled to this norm at most. None is 1.0, with an `UndeclaredWarning`.
    classes : sequence of 2 labels, "infer" or None
        The two classes, which are public.
    learner : "banco" or Learner
        `Banco` needs no learning rate; `GradientDescent(rate=...)` does.
    sanitizer : "auto" or a class of `tacit.local.sanitizers`
        "auto" is the one with the least noise for this epsilon, delta and dimension.
    fit_intercept : bool, default=True
        Whether to learn an intercept.
    shuffle : bool, default=True
        Whether `fit` visits the rows in an order that depends on their number alone; a sorted
        table would mislead any learner that sees each person once. `partial_fit` never shuffles.
    random_state : int or None
        For tests: seeds the noise and voids the guarantee.
    verbose : int, default=0
        Show progress on standard error.

    Attributes
    ----------
    coef_, intercept_, classes_, n_features_in_
        As in scikit-learn.
    n_reports_ : int
        How many people have answered.
    state_ : BancoState or the like
        The learner's state; `tacit.local.state_to_bytes` saves it.
    sanitizer_, learner_
        What was used.
    privacy_ : Guarantee
        What each person is promised.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.local import LocalLogisticRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((20_000, 2))
    >>> y = X[:, 0] > 0
    >>> model = LocalLogisticRegression(epsilon=4.0, row_norm=2.0).fit(X, y)
    >>> model.score(X, y) > 0.8
    True
    >>> model.privacy_.epsilon(0.0)
    4.0
    """

    _loss = Logistic()


class LocalLinearSVC(_LocalClassifier):
    """Linear support-vector classification from one sanitised answer of each person.

    Parameters and attributes as for `LocalLogisticRegression`; the loss is the hinge.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.local import LocalLinearSVC
    >>> X = np.random.default_rng(0).standard_normal((20_000, 2))
    >>> y = X[:, 0] > 0
    >>> LocalLinearSVC(epsilon=4.0, row_norm=2.0).fit(X, y).score(X, y) > 0.8
    True
    """

    _loss = Hinge()
