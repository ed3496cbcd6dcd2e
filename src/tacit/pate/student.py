"""Train the student on public rows, some of which the teachers labelled."""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.dummy import DummyClassifier
from sklearn.utils.validation import check_is_fitted

from tacit import checks

Array = npt.NDArray[np.float64]
Places = npt.NDArray[np.int64]

# The largest numbers of kernel centres and of training rows: more are slow to
# solve for, and add little.
_MOST_CENTRES, _MOST_ROWS = 2_000, 10_000
# Added to the kernel's diagonal of ones, so that the matrix is regular for equal rows.
_JITTER = 1e-6


class SemiSupervised(ClassifierMixin, BaseEstimator):
    """Learn from few labels and many public rows: label spreading, self-training, then a kernel.

    1. Labels spread over the graph of nearest neighbours (Zhou et al. 2004).
    2. ``n_rounds`` times: a linear discriminant learns from the current labels of the pool, and its
       probabilities are smoothed over the graph. It is too rigid to fit a wrong answer.
    3. ``n_rounds`` times: ridge regression with a Gaussian kernel predicts each row from all
       *others*, and the prediction becomes its label. The final model is fitted to the labels
       of the last round.

    Answers are used in the first step only: noise made some of them wrong, and none is kept
    against all its neighbours. The method uses distances: scale the columns of the pool to
    comparable sizes. It reads no record, so it is post-processing.

    Parameters
    ----------
    n_neighbors
        Neighbours of each row in the graph.
    alpha
        The weight of neighbours in label spreading, below 1.
    n_rounds
        The number of self-training rounds, of either kind.
    ridge
        The ridge of the regression, relative to a kernel diagonal of 1.
    bandwidth
        The bandwidth of the kernel, in median distances between rows of the pool.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.pate import SemiSupervised
    >>> rng = np.random.default_rng(0)
    >>> pool = np.concatenate([rng.normal(-3, 1, (100, 2)), rng.normal(3, 1, (100, 2))])
    >>> student = SemiSupervised().learn(pool, np.array([0, 150]), np.array(["no", "yes"]))
    >>> student.predict([[-3.0, -3.0], [3.0, 3.0]]).tolist()
    ['no', 'yes']
    """

    def __init__(
        self,
        n_neighbors: int = 8,
        alpha: float = 0.99,
        n_rounds: int = 4,
        ridge: float = 0.1,
        bandwidth: float = 1.0,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.alpha = alpha
        self.n_rounds = n_rounds
        self.ridge = ridge
        self.bandwidth = bandwidth

    def fit(self, X: Any, y: Any) -> Self:
        """Learn from rows that all have labels."""
        rows = np.asarray(X, dtype=np.float64)
        return self.learn(rows, np.arange(len(rows)), np.asarray(y))

    def learn(self, pool: Any, places: Places, labels: npt.NDArray[Any]) -> Self:
        """Learn from a pool in which the rows at ``places`` have ``labels``."""
        self._check()
        rows = np.asarray(pool.toarray() if hasattr(pool, "tocsr") else pool, dtype=np.float64)
        self.classes_, codes = np.unique(labels, return_inverse=True)
        graph = _graph(rows, min(self.n_neighbors, len(rows) - 1))
        given = np.zeros((len(rows), len(self.classes_)))
        given[places, codes] = 1.0
        belief = _spread(graph, given, self.alpha)
        for _ in range(self.n_rounds):
            belief = _discriminated(rows, graph, belief)
        self._solve(rows, belief)
        self.n_features_in_ = rows.shape[1]
        return self

    def _solve(self, rows: Array, belief: Array) -> None:
        """Set centres and weights by kernel ridge regression on the current labels."""
        chosen = np.random.default_rng(0).permutation(len(rows))[:_MOST_ROWS]
        self.centres_ = rows[chosen[:_MOST_CENTRES]]
        self.precision_ = 1.0 / (self.bandwidth * _median_distance(self.centres_)) ** 2 / 2.0
        machine = _Ridge(rows[chosen], self.centres_, self.precision_, self.ridge)
        held = _held(_rows_to_one(belief[chosen]))
        for _ in range(self.n_rounds):
            said = _held(machine.of_the_others(held))
            if np.any(said.sum(axis=0) == 0.0):
                break  # a class has disappeared, so stop
            held = said
        self.weights_ = machine.weights(held - 1.0 / held.shape[1])

    def _check(self) -> None:
        checks.count("n_neighbors", self.n_neighbors)
        checks.count("n_rounds", self.n_rounds, least=0)
        for name, most in (("alpha", 1.0), ("ridge", np.inf), ("bandwidth", np.inf)):
            checks.positive(name, getattr(self, name), most=most)

    def decision_function(self, X: Any) -> Array:
        """Return a score of each class for each row."""
        check_is_fitted(self)
        rows = np.asarray(X.toarray() if hasattr(X, "tocsr") else X, dtype=np.float64)
        return kernel_scores(rows, self.centres_, self.weights_, self.precision_)

    def predict_proba(self, X: Any) -> Array:
        """Return the scores, clipped to shares."""
        return shares_of(self.decision_function(X))

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return the class of the greatest score."""
        said: npt.NDArray[Any] = self.classes_[self.decision_function(X).argmax(axis=1)]
        return said


class _Ridge:
    """Ridge regression on kernels around m centres, factorised once for many targets.

    With K_nm the kernel of rows and centres, K_mm = L L' that of centres, and Z = K_nm L'^-1:

        coefficients  c = (Z'Z + ridge)^-1 Z' targets,   weights  w = L'^-1 c,   fitted  Z c

    If the centres are all rows, that is kernel ridge regression.
    """

    def __init__(self, rows: Array, centres: Array, precision: float, ridge: float) -> None:
        from scipy.linalg import cholesky, solve_triangular

        inner = _kernel(centres, centres, precision)
        inner[np.diag_indices_from(inner)] += _JITTER
        self._root = cholesky(inner, lower=True)
        self._design = solve_triangular(self._root, _kernel(rows, centres, precision).T, lower=True)
        square = self._design @ self._design.T
        square[np.diag_indices_from(square)] += ridge
        self._factor = cholesky(square, lower=True)
        # z' (Z'Z + ridge)^-1 z for each row z of Z
        self._leverage = np.sum(
            solve_triangular(self._factor, self._design, lower=True) ** 2, axis=0
        )[:, None]

    def _coefficients(self, targets: Array) -> Array:
        from scipy.linalg import cho_solve

        found: Array = cho_solve((self._factor, True), self._design @ targets)
        return found

    def weights(self, targets: Array) -> Array:
        """Return one weight for each centre and column of targets."""
        from scipy.linalg import solve_triangular

        found: Array = solve_triangular(
            self._root, self._coefficients(targets), lower=True, trans=1
        )
        return found

    def of_the_others(self, targets: Array) -> Array:
        """Return the leave-one-out predictions: (fitted - h target) / (1 - h)."""
        fitted = self._design.T @ self._coefficients(targets)
        left_out: Array = (fitted - self._leverage * targets) / (1.0 - self._leverage)
        return left_out


def _discriminated(rows: Array, graph: Any, belief: Array) -> Array:
    """Fit a linear discriminant to soft labels, and smooth its predictions over the graph.

    Rows without a label are ignored; if a class has disappeared, the labels are unchanged.
    """
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

    reached = belief.sum(axis=1) > 0.0
    hard = belief.argmax(axis=1)
    if len(np.unique(hard[reached])) < belief.shape[1]:
        return belief
    model = LinearDiscriminantAnalysis(solver="lsqr", shrinkage=0.2)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        said = model.fit(rows[reached], hard[reached]).predict_proba(rows)
    return _spread(graph, 0.5 * (said + _rows_to_one(belief)), 0.5)


def _held(shares: Array) -> Array:
    """Return 1 for the greatest share of each row, and 0 for others; ties are kept."""
    level = shares.max(axis=1) == shares.min(axis=1)
    held: Array = np.where(level[:, None], shares, np.eye(shares.shape[1])[shares.argmax(axis=1)])
    return held


def kernel_scores(rows: Array, centres: Array, weights: Array, precision: float) -> Array:
    """Return sum over centres of weight exp(-precision distance^2), in blocks of rows."""
    parts = [
        _kernel(rows[i : i + 2048], centres, precision) @ weights for i in range(0, len(rows), 2048)
    ]
    return np.concatenate(parts) if parts else np.empty((0, weights.shape[1]))


def shares_of(scores: Array) -> Array:
    """Convert scores around 0 to shares: add 1 / classes, clip at 0, and normalise to sum 1."""
    return _rows_to_one(np.maximum(scores + 1.0 / scores.shape[1], 1e-9))


def learned(student: Any, pool: Any, places: Places, labels: npt.NDArray[Any]) -> Any:
    """Return a copy of a student, trained on a partly labelled pool.

    A student with ``learn`` sees the whole pool; any other classifier only the labelled rows.
    """
    if len(np.unique(labels)) == 1:
        constant = DummyClassifier(strategy="constant", constant=labels[0])
        return constant.fit(np.zeros((len(labels), pool.shape[1])), labels)
    copy = clone(student)
    if hasattr(copy, "learn"):
        return copy.learn(pool, places, labels)
    return copy.fit(pool[places], labels)


def _kernel(rows: Array, centres: Array, precision: float) -> Array:
    squares = (
        np.sum(rows**2, axis=1)[:, None] + np.sum(centres**2, axis=1) - 2.0 * (rows @ centres.T)
    )
    result: Array = np.exp(-precision * np.maximum(squares, 0.0))
    return result


def _median_distance(rows: Array) -> float:
    few = rows[np.random.default_rng(0).permutation(len(rows))[:500]]
    squares = np.sum(few**2, axis=1)
    squared_distances = squares[:, None] + squares - 2.0 * (few @ few.T)
    distance = np.sqrt(np.maximum(squared_distances[np.triu_indices(len(few), 1)], 0.0))
    middle = float(np.median(distance)) if distance.size else 0.0
    return middle if middle > 0.0 else 1.0


def _graph(rows: Array, n_neighbors: int) -> Any:
    """Return the symmetric graph of nearest neighbours, scaled by the roots of its degrees."""
    from scipy.sparse import diags
    from sklearn.neighbors import kneighbors_graph

    near = kneighbors_graph(rows, max(n_neighbors, 1), include_self=False)
    both = near.maximum(near.T)
    degree = np.asarray(both.sum(axis=1)).ravel()
    root = diags(1.0 / np.sqrt(np.maximum(degree, 1e-12)))
    return root @ both @ root


def _spread(graph: Any, given: Array, alpha: float, n_steps: int = 60) -> Array:
    """Return F after n_steps of F <- alpha W F + (1 - alpha) given."""
    belief = given
    for _ in range(n_steps):
        belief = alpha * (graph @ belief) + (1.0 - alpha) * given
    return belief


def _rows_to_one(values: Array) -> Array:
    total = values.sum(axis=1, keepdims=True)
    result: Array = np.where(total > 0.0, values / np.maximum(total, 1e-300), 1.0 / values.shape[1])
    return result
