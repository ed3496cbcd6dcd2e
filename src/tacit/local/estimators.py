"""Estimators that learn in one pass over people who each answer once, sanitised at home."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy.special import expit, log_expit
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from tacit.linear_model._tables import FLOATS, clipped_scores
from tacit.local import _check
from tacit.local._shell import Stream, privacy_of, run, stream_of
from tacit.local.subgradients import (
    Absolute,
    Distance,
    Hinge,
    Huber,
    LocalLoss,
    Logistic,
    SumOfDistances,
)
from tacit.noise import secure_source
from tacit.public_facts import classes_of, codes_of, source_of
from tacit.records import INTERCEPT_SHARE

Array = npt.NDArray[np.float64]


def _begin(estimator: Any, loss: LocalLoss, n_columns: int, unit: float) -> Stream:
    """Set up a new stream: nobody has been asked yet."""
    stream = stream_of(estimator, loss, n_columns, unit)
    estimator._stream = stream
    estimator._source = source_of(estimator.random_state)
    estimator.state_ = stream.learner.init(stream.n_features)
    return stream


def _continue(
    estimator: Any, table: Any, labels: Array, limit: float, notes: Any, shuffle: bool
) -> Array:
    """Ask every row once, and return the estimate."""
    stream: Stream = estimator._stream
    # A secure source is not kept: it cannot be copied, and models are.
    source = estimator._source or secure_source()
    estimator.state_ = run(
        stream,
        estimator.state_,
        table,
        labels,
        limit,
        shuffle=shuffle,
        source=source,
        verbose=estimator.verbose,
    )
    estimator.n_reports_ = estimator.state_.n_reports
    estimator.sanitizer_, estimator.learner_ = stream.sanitizer, stream.learner
    estimator.privacy_ = privacy_of(stream, source, notes)
    estimate: Array = estimator.state_.estimate
    return estimate


def _fit_classifier(
    estimator: Any, loss: LocalLoss, X: Any, y: Any, first: bool, declared: Any, shuffle: bool
) -> None:
    _check.positive("row_norm", estimator.row_norm)
    table, labels = validate_data(estimator, X, y, accept_sparse="csr", dtype=FLOATS, reset=first)
    check_classification_targets(labels)
    if first:
        classes, notes = classes_of(declared, y)
        if classes.size != 2:
            raise ValueError(
                "Only binary classification is supported. "
                f"{type(estimator).__name__} needs exactly 2 classes, got {classes.size} "
                f"class{'es' if classes.size != 1 else ''}; declare two."
            )
        estimator._intercept_coordinate = (
            INTERCEPT_SHARE * estimator.row_norm * bool(estimator.fit_intercept)
        )
        stream = _begin(estimator, loss, table.shape[1], 1.0 / estimator.row_norm)
        estimator.classes_, estimator._notes = classes, notes
        estimator.row_norm_ = estimator.row_norm
    stream = estimator._stream
    codes, known = codes_of(np.asarray(labels), estimator.classes_)
    # Somebody of no declared class answers too, like a person half of either.
    signs = np.where(known, np.where(codes == 1, 1.0, -1.0), 0.0)
    weights = _continue(estimator, table, signs, estimator.row_norm_, estimator._notes, shuffle)
    estimator.coef_, estimator.intercept_ = _split(weights, stream.intercept)
    estimator.coef_ = estimator.coef_[None, :]


def _split(weights: Array, constant: float) -> tuple[Array, Array]:
    if constant:
        return weights[:-1], constant * weights[-1:]
    return weights, np.zeros(1)


class LocalLogisticRegression(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
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
    row_norm : float, default=1.0
        Records are scaled to this norm at most.
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

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 0.0,
        *,
        row_norm: float = 1.0,
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
        _fit_classifier(self, Logistic(), X, y, True, self.classes, self.shuffle)
        return self

    def partial_fit(self, X: Any, y: Any, classes: Sequence[Any] | None = None) -> Self:
        """Ask more people; rows already seen must not come again."""
        first = not hasattr(self, "_stream")
        declared = self.classes if classes is None else classes
        _fit_classifier(self, Logistic(), X, y, first, declared, False)
        return self

    def decision_function(self, X: Any) -> Array:
        """Return the signed score of every record."""
        check_is_fitted(self)
        scores: Array = clipped_scores(self, X, self.coef_[0]) + self.intercept_[0]
        return scores

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return the more likely class of every record."""
        side = (self.decision_function(X) > 0).astype(int)
        labels: npt.NDArray[Any] = self.classes_[side]
        return labels

    def predict_proba(self, X: Any) -> Array:
        """Return the probability of both classes for every record."""
        p = expit(self.decision_function(X))
        return np.column_stack([1.0 - p, p])

    def predict_log_proba(self, X: Any) -> Array:
        """Return the logarithms of `predict_proba`."""
        scores = self.decision_function(X)
        return np.column_stack([log_expit(-scores), log_expit(scores)])


class LocalLinearSVC(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
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

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 0.0,
        *,
        row_norm: float = 1.0,
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
        _fit_classifier(self, Hinge(), X, y, True, self.classes, self.shuffle)
        return self

    def partial_fit(self, X: Any, y: Any, classes: Sequence[Any] | None = None) -> Self:
        """Ask more people; rows already seen must not come again."""
        first = not hasattr(self, "_stream")
        declared = self.classes if classes is None else classes
        _fit_classifier(self, Hinge(), X, y, first, declared, False)
        return self

    def decision_function(self, X: Any) -> Array:
        """Return the signed score of every record."""
        check_is_fitted(self)
        scores: Array = clipped_scores(self, X, self.coef_[0]) + self.intercept_[0]
        return scores

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return the class on whose side each record lies."""
        side = (self.decision_function(X) > 0).astype(int)
        labels: npt.NDArray[Any] = self.classes_[side]
        return labels


class LocalRegressor(RegressorMixin, BaseEstimator):  # type: ignore[misc]
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
    >>> LocalRegressor(epsilon=4.0).fit(X, y).coef_.round()
    array([2.])
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 0.0,
        *,
        loss: LocalLoss | None = None,
        label_scale: float = 1.0,
        row_norm: float = 1.0,
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
        row_norm = _check.positive("row_norm", self.row_norm)
        scale = _check.positive("label_scale", self.label_scale)
        table, labels = validate_data(
            self, X, y, accept_sparse="csr", dtype=FLOATS, y_numeric=True, reset=first
        )
        if first:
            self._intercept_coordinate = INTERCEPT_SHARE * row_norm * bool(self.fit_intercept)
            _begin(self, loss, table.shape[1], scale / row_norm)
            self.row_norm_ = row_norm
        weights = _continue(
            self, table, np.asarray(labels, dtype=np.float64), self.row_norm_, (), shuffle
        )
        self.coef_, intercept = _split(weights, self._stream.intercept)
        self.intercept_ = float(intercept[0])
        return self

    def predict(self, X: Any) -> Array:
        """Return the predicted label of every record."""
        check_is_fitted(self)
        scores: Array = clipped_scores(self, X, self.coef_) + self.intercept_
        return scores


def _fit_location(estimator: Any, loss: LocalLoss, X: Any, first: bool, shuffle: bool) -> None:
    radius = _check.positive("row_norm", estimator.row_norm)
    table = validate_data(estimator, X, dtype=FLOATS, reset=first)
    if first:
        centre = 0.0 if estimator.center is None else estimator.center
        centre = np.broadcast_to(np.asarray(centre, dtype=np.float64), (table.shape[1],))
        if not np.all(np.isfinite(centre)):
            raise ValueError(f"center must be finite, got {estimator.center!r}.")
        _begin(estimator, loss, table.shape[1], radius)
        estimator._centre = centre
    labels = np.zeros(table.shape[0])
    # A subgradient's norm does not depend on the record's size, so records are not clipped.
    with np.errstate(over="ignore"):  # what overflows has no direction, and answers with a zero
        away = table - estimator._centre
    moved = _continue(estimator, away, labels, np.inf, (), shuffle)
    estimator.location_ = estimator._centre + moved


class LocalMedian(BaseEstimator):  # type: ignore[misc]
    """The median of every column from one sanitised answer of each person.

    Parameters
    ----------
    row_norm : float, default=1.0
        How far from ``center`` the medians might well be, which is public; records themselves need
        no bound.
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

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 0.0,
        *,
        row_norm: float = 1.0,
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
        _fit_location(self, SumOfDistances(), X, True, self.shuffle)
        return self

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Ask more people; rows already seen must not come again."""
        _fit_location(self, SumOfDistances(), X, not hasattr(self, "_stream"), False)
        return self


class LocalGeometricMedian(BaseEstimator):  # type: ignore[misc]
    """The geometric median from one sanitised answer of each person.

    Parameters and attributes as for `LocalMedian`.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.local import LocalGeometricMedian
    >>> X = np.random.default_rng(0).normal([1.0, -1.0], 0.5, (30_000, 2))
    >>> LocalGeometricMedian(epsilon=2.0).fit(X).location_.round()
    array([ 1., -1.])
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 0.0,
        *,
        row_norm: float = 1.0,
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
        _fit_location(self, Distance(), X, True, self.shuffle)
        return self

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Ask more people; rows already seen must not come again."""
        _fit_location(self, Distance(), X, not hasattr(self, "_stream"), False)
        return self
