"""Fit estimators under local privacy: classifiers, a regressor and medians, in one pass."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator

from tacit import checks
from tacit.estimators.linear import split
from tacit.estimators.parameters import (
    assumptions_of,
    center_of,
    classes_of,
    codes_of,
    epsilon_of,
    publish_classes,
    row_norm_of,
    source_of,
    warn_if_weak,
    with_table_facts,
)
from tacit.estimators.predictors import (
    Probabilities,
    ScoredClasses,
    ScoredNumbers,
    check_two_classes,
)
from tacit.estimators.tables import note_columns
from tacit.local.learners import Banco, Learner
from tacit.local.sanitizers import GaussianNoise, Sanitizer, least_noise
from tacit.local.sanitizers.additive import NoNoise
from tacit.local.stream import learn, worth_compiling
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
from tacit.noise.release import priced
from tacit.privacy import Budget, Guarantee, Relation
from tacit.records.bounds import INTERCEPT_SHARE
from tacit.records.rows_and_labels import as_numbers
from tacit.row_clipping import clipped_rows

Array = npt.NDArray[np.float64]

# Numbers per block of rows: a few megabytes for any length of the table.
_BLOCK_NUMBERS = 1 << 19
_PER_PERSON = (
    "The promise is local: it is made to each person, against the server itself, which sees one "
    "sanitised answer of theirs and nothing else."
)
_ONCE = "every row is another person, who answers once and is in no other stream"


@dataclass(frozen=True)
class Stream:
    """One learner, one loss and one sanitizer, agreed before any question."""

    learner: Learner
    loss: LocalLoss
    sanitizer: Sanitizer
    intercept: float  # the coordinate that is appended to every row, or 0

    @property
    def n_features(self) -> int:
        """The length of a point, including the intercept."""
        return self.sanitizer.n_features


def begin(
    estimator: Any,
    loss: LocalLoss,
    n_columns: int,
    row_norm: float,
    unit: float,
    intercept: float = 0.0,
) -> None:
    """Set up the stream of an estimator's parameters, without answers.

    ``unit`` is the expected size of weights, and ``intercept`` the coordinate of the intercept.
    """
    budget = Budget(epsilon_of(estimator.epsilon), estimator.delta, Relation.REPLACE)
    warn_if_weak(budget)
    d = n_columns + (intercept > 0.0)
    norm = loss.norm(d, math.hypot(row_norm, intercept))
    sanitizer = _sanitizer_of(estimator.sanitizer, budget, d, norm)
    learner = _learner_of(estimator.learner, sanitizer, unit)
    estimator._stream = Stream(learner, loss, sanitizer, intercept)
    estimator._source = source_of(estimator.random_state)
    estimator.state_ = learner.init(d)


def _sanitizer_of(chosen: Any, budget: Budget, n_features: int, norm: float) -> Sanitizer:
    if budget.is_infinite:
        return NoNoise(n_features, norm)
    if isinstance(chosen, str) and chosen == "auto":
        return least_noise(budget.epsilon, budget.delta, n_features, norm)
    if not (isinstance(chosen, type) and issubclass(chosen, Sanitizer)):
        raise TypeError(
            f"sanitizer must be 'auto' or a class of tacit.local.sanitizers, got {chosen!r}; pass "
            "sanitizer=PrivUnit, for instance."
        )
    if chosen is GaussianNoise:
        return GaussianNoise(budget.epsilon, budget.delta, n_features, norm)
    made: Sanitizer = chosen(budget.epsilon, n_features, norm)  # type: ignore[call-arg]
    return made


def _learner_of(chosen: Any, sanitizer: Sanitizer, unit: float) -> Learner:
    if isinstance(chosen, str) and chosen == "banco":
        return Banco(sanitizer.tail, sanitizer.norm, unit)
    if not all(hasattr(chosen, name) for name in ("init", "update", "step", "settings")):
        raise TypeError(
            f"learner must be 'banco' or a learner, got {chosen!r}; pass "
            "learner=GradientDescent(rate=0.1), for instance."
        )
    configured: Learner = chosen
    return configured


def _ready(block: Any, limit: float, constant: float) -> Array:
    dense = block.toarray() if hasattr(block, "toarray") else block
    rows = np.empty((dense.shape[0], dense.shape[1] + (constant > 0.0)))
    rows[:, : dense.shape[1]] = clipped_rows(dense, limit) if math.isfinite(limit) else dense
    if constant > 0.0:
        rows[:, -1] = constant
    return rows


def go_on(
    estimator: Any, table: Any, labels: Array, limit: float, notes: Any, shuffle: bool
) -> Array:
    """Ask every row of a table once, and return the estimate.

    Each row is scaled to norm ``limit`` at most, and the intercept's coordinate appended. Tables
    are often sorted, which would mislead a betting learner. So rows are shuffled, in an order
    that depends only on their number, as if people were drawn at random.
    """
    stream: Stream = estimator._stream
    learner, sanitizer, state = stream.learner, stream.sanitizer, estimator.state_
    # A secure source is not stored: it cannot be copied, but models are.
    source = estimator._source or secure_source()
    n = table.shape[0]
    order = np.random.default_rng(n).permutation(n) if shuffle else np.arange(n)
    step = max(1, _BLOCK_NUMBERS // stream.n_features)
    compile_it = worth_compiling(n, stream.n_features)
    with _progress(n, estimator.verbose) as advance:
        for start in range(0, n, step):
            people = order[start : start + step]
            rows, own = _ready(table[people], limit, stream.intercept), labels[people]
            given = learner, state, rows, own, stream.loss, sanitizer, source
            state = learn(*given, compile_it=compile_it)
            advance(len(rows), state)
    estimator.state_, estimator.n_reports_ = state, state.n_reports
    estimator.sanitizer_, estimator.learner_ = sanitizer, learner
    event = priced(sanitizer.event, source)
    estimator.privacy_ = Guarantee(event, sanitizer.delta, (_ONCE, *notes), (_PER_PERSON,))
    estimate: Array = state.estimate
    return estimate


@contextmanager
def _progress(n: int, verbose: int) -> Iterator[Any]:
    """Show the number of reports and the norm of the current point; both are public."""
    if not verbose:
        yield lambda done, state: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("reports"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("size of the point {task.fields[size]:.4g}"),
    )
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("reports", total=n, size=0.0)

        def advance(done: int, state: Any) -> None:
            bar.update(task, advance=done, size=float(np.linalg.norm(state.estimate)))

        yield advance


class _LocalClassifier(ScoredClasses, BaseEstimator):
    """Shared fit and partial_fit of classifiers; a subclass sets the loss."""

    _loss: LocalLoss

    def __init__(
        self,
        epsilon: float | None = None,
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
        """Ask every row once, starting anew."""
        return self._fit(X, y, True, None, self.shuffle)

    def partial_fit(self, X: Any, y: Any, classes: Sequence[Any] | None = None) -> Self:
        """Ask more people; rows already seen must not be repeated."""
        return self._fit(X, y, not hasattr(self, "_stream"), classes, False)

    def _fit(self, X: Any, y: Any, first: bool, classes: Any, shuffle: bool) -> Self:
        unread, names = note_columns(self, X, y, first=first)
        if first:
            resolved = with_table_facts(self, X)
            row_norm = self.row_norm_ = row_norm_of(resolved.row_norm)
            found = classes_of(resolved.classes if classes is None else classes, y)
            check_two_classes(self, found.value.size, "; declare two.")
            intercept = INTERCEPT_SHARE * row_norm * bool(self.fit_intercept)
            begin(self, self._loss, unread.n_columns, row_norm, 1.0 / row_norm, intercept)
            publish_classes(self, found)
            self._notes = assumptions_of(found, names)
        table, labels = unread.read()
        codes, known = codes_of(np.asarray(labels), self.classes_)
        # A person of no declared class answers too, with the label 0 between the two.
        signs = np.where(known, np.where(codes == 1, 1.0, -1.0), 0.0)
        weights = go_on(self, table, signs, self.row_norm_, self._notes, shuffle)
        coef, self.intercept_ = split(weights, self._stream.intercept)
        self.coef_ = coef[None, :]
        return self


class LocalLogisticRegression(Probabilities, _LocalClassifier):
    """Logistic regression of two classes from one sanitised answer of each person.

    Every row is visited once. It represents one person who computes the gradient of
    the loss at the server's current point, sanitises it and sends it; the learner sees only that.
    `tacit.local.Client` and `Server` are the same protocol on two machines.

    Parameters
    ----------
    epsilon : float or None, default=None
        The cost of each person's one answer; None is 1.0.
    delta : float, default=0.0
        The probability with which the guarantee may fail.
    row_norm : float or None
        Records are scaled to this norm at most. None is 1.0, with an `UndeclaredWarning`.
    classes : sequence of 2 labels, "infer" or None
        The two classes, which are public.
    learner : "banco" or Learner
        `Banco` needs no learning rate; `GradientDescent(rate=...)` does.
    sanitizer : "auto" or a class of `tacit.local.sanitizers`
        "auto" has the least noise for this epsilon, delta and dimension.
    fit_intercept : bool, default=True
        Whether to learn an intercept.
    shuffle : bool, default=True
        Whether `fit` visits the rows in an order that depends only on their number; a sorted
        table would mislead a learner that sees each person once. `partial_fit` never shuffles.
    random_state : int or None
        For tests: seeds the noise and voids the guarantee.
    verbose : int, default=0
        Show progress on standard error.

    Attributes
    ----------
    coef_, intercept_, classes_, n_features_in_
        As in scikit-learn.
    n_reports_ : int
        The number of people who have answered.
    state_ : BancoState or the like
        The learner's state; `tacit.local.state_to_bytes` saves it.
    sanitizer_, learner_
        The sanitizer and the learner.
    privacy_ : Guarantee
        The guarantee of each person.

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


class LocalRegressor(ScoredNumbers, BaseEstimator):
    """Robust linear regression from one sanitised answer of each person.

    Labels need no bound: one label moves the weights by at most its row's norm.

    Parameters
    ----------
    loss : Absolute or Huber
        `Absolute` learns the conditional median; `Huber(width)` is nearer to least squares, its
        width in the labels' own units.
    label_scale : float, default=1.0
        The expected size of labels, which is public; a wrong one only slows learning.
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
        epsilon: float | None = None,
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
        """Declare sparse input, and that a few hundred rows are too few."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.regressor_tags.poor_score = True
        return tags

    def fit(self, X: Any, y: Any) -> Self:
        """Ask every row once, starting anew."""
        return self._fit(X, y, True, self.shuffle)

    def partial_fit(self, X: Any, y: Any) -> Self:
        """Ask more people; rows already seen must not be repeated."""
        return self._fit(X, y, not hasattr(self, "_stream"), False)

    def _fit(self, X: Any, y: Any, first: bool, shuffle: bool) -> Self:
        loss = Absolute() if self.loss is None else self.loss
        if not isinstance(loss, Absolute | Huber):
            raise TypeError(f"loss must be Absolute() or Huber(width), got {self.loss!r}.")
        scale = checks.positive("label_scale", self.label_scale)
        unread, names = note_columns(self, X, y, first=first)
        if first:
            row_norm = self.row_norm_ = row_norm_of(with_table_facts(self, X).row_norm)
            intercept = INTERCEPT_SHARE * row_norm * bool(self.fit_intercept)
            begin(self, loss, unread.n_columns, row_norm, scale / row_norm, intercept)
            self._notes = assumptions_of(names)
        table, labels = unread.read()
        weights = go_on(self, table, as_numbers(labels), self.row_norm_, self._notes, shuffle)
        self.coef_, constant = split(weights, self._stream.intercept)
        self.intercept_ = float(constant[0])
        return self


_FARTHER = "medians farther from center take longer to find"


class _LocalLocation(BaseEstimator):
    """Shared fit and partial_fit of locations; a subclass sets the loss."""

    _loss: LocalLoss

    def __init__(
        self,
        epsilon: float | None = None,
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
        """Ask every row once, starting anew."""
        return self._fit(X, True, self.shuffle)

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Ask more people; rows already seen must not be repeated."""
        return self._fit(X, not hasattr(self, "_stream"), False)

    def _fit(self, X: Any, first: bool, shuffle: bool) -> Self:
        unread, names = note_columns(self, X, first=first, sparse=False)
        if first:
            radius = row_norm_of(with_table_facts(self, X).row_norm, _FARTHER)
            self._centre = center_of(self.center, unread.n_columns)
            begin(self, self._loss, unread.n_columns, radius, radius)
            self._notes = assumptions_of(names)
        table, _ = unread.read()
        labels = np.zeros(table.shape[0])
        # A subgradient's norm does not depend on the record's size, so records are not clipped.
        with np.errstate(over="ignore"):  # a row that overflows has no direction: it answers zero
            away = table - self._centre
        self.location_ = self._centre + go_on(self, away, labels, np.inf, self._notes, shuffle)
        return self


class LocalMedian(_LocalLocation):
    """The median of every column from one sanitised answer of each person.

    Parameters
    ----------
    row_norm : float or None
        The expected distance of the medians from ``center``, which is public; records
        need no bound. None is 1.0, with an `UndeclaredWarning`.
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
