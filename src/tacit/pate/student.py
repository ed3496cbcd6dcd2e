"""The student: learns from public rows, of which the teachers labelled a few."""

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

# Pool rows that a kernel is made of, at most: more take long to solve for, and add little.
_MOST_CENTRES = 4_000


class SemiSupervised(ClassifierMixin, BaseEstimator):
    """Few labels, many public rows: labels spread over a graph, then self-training, then a kernel.

    1. Labels spread over the graph of nearest neighbours (Zhou et al. 2004).
    2. ``n_rounds`` times: a linear discriminant learns from the share ``trusted`` of the pool of
       which the graph is surest, and its probabilities are smoothed over the graph.
    3. Ridge regression with a Gaussian kernel on what came out of it, half soft and half hard.

    It works by distances: bring the columns of the pool to comparable sizes. It knows no record,
    so whatever it does costs nothing.

    Parameters
    ----------
    n_neighbors
        Neighbours of each row in the graph.
    alpha
        How far labels spread, below 1.
    n_rounds
        Rounds of self-training.
    trusted
        The share of the pool that a round learns from.
    ridge
        Of the last step.
    bandwidth
        Of the kernel, in median distances between rows of the pool.

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
        trusted: float = 0.95,
        ridge: float = 0.03,
        bandwidth: float = 0.5,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.alpha = alpha
        self.n_rounds = n_rounds
        self.trusted = trusted
        self.ridge = ridge
        self.bandwidth = bandwidth

    def fit(self, X: Any, y: Any) -> Self:
        """Learn from rows that all have labels."""
        rows = np.asarray(X, dtype=np.float64)
        return self.learn(rows, np.arange(len(rows)), np.asarray(y))

    def learn(self, pool: Any, places: Places, labels: npt.NDArray[Any]) -> Self:
        """Learn from a pool of which the rows at ``places`` have ``labels``."""
        self._check()
        rows = np.asarray(pool.toarray() if hasattr(pool, "tocsr") else pool, dtype=np.float64)
        self.classes_, codes = np.unique(labels, return_inverse=True)
        graph = _graph(rows, min(self.n_neighbors, len(rows) - 1))
        given = np.zeros((len(rows), len(self.classes_)))
        given[places, codes] = 1.0
        belief = _spread(graph, given, self.alpha)
        for _ in range(self.n_rounds):
            belief = self._round(rows, graph, belief, given, places)
        self._solve(rows, belief)
        self.n_features_in_ = rows.shape[1]
        return self

    def _round(self, rows: Array, graph: Any, belief: Array, given: Array, places: Places) -> Array:
        """Return what a discriminant says that learned from the surest, smoothed over the graph."""
        from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

        sure = belief.max(axis=1)
        kept = np.argsort(-sure, kind="stable")[: max(round(self.trusted * len(rows)), 1)]
        kept = np.union1d(kept, places)
        hard = belief.argmax(axis=1)
        if len(np.unique(hard[kept])) < len(self.classes_):
            return belief  # a class has been lost: no further
        model = LinearDiscriminantAnalysis(solver="lsqr", shrinkage=0.2)
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            said = model.fit(rows[kept], hard[kept]).predict_proba(rows)
        return _spread(graph, 0.5 * (said + _rows_to_one(belief)), 0.5)

    def _solve(self, rows: Array, belief: Array) -> None:
        """Set the centres and weights of a kernel machine: (K + ridge n / 100) w = targets."""
        from scipy.linalg import cho_factor, cho_solve

        chosen = np.arange(len(rows))
        if len(rows) > _MOST_CENTRES:
            chosen = np.sort(np.random.default_rng(0).permutation(len(rows))[:_MOST_CENTRES])
        self.centres_ = rows[chosen]
        self.precision_ = 1.0 / (self.bandwidth * _median_distance(self.centres_)) ** 2 / 2.0
        soft = _rows_to_one(belief[chosen])
        hard = np.eye(belief.shape[1])[soft.argmax(axis=1)]
        kernel = _kernel(self.centres_, self.centres_, self.precision_)
        kernel[np.diag_indices_from(kernel)] += self.ridge
        factor = cho_factor(kernel, overwrite_a=True, check_finite=False)
        self.weights_ = cho_solve(factor, 0.5 * (soft + hard) - 1.0 / belief.shape[1])

    def _check(self) -> None:
        checks.count("n_neighbors", self.n_neighbors)
        checks.count("n_rounds", self.n_rounds, least=0)
        for name in ("alpha", "trusted", "ridge", "bandwidth"):
            most = 1.0 if name in ("alpha", "trusted") else np.inf
            checks.positive(name, getattr(self, name), most=most)

    def decision_function(self, X: Any) -> Array:
        """Return a score of each class for each row."""
        check_is_fitted(self)
        rows = np.asarray(X.toarray() if hasattr(X, "tocsr") else X, dtype=np.float64)
        return kernel_scores(rows, self.centres_, self.weights_, self.precision_)

    def predict_proba(self, X: Any) -> Array:
        """Return the scores, clipped to be shares."""
        return shares_of(self.decision_function(X))

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return the class of the greatest score."""
        said: npt.NDArray[Any] = self.classes_[self.decision_function(X).argmax(axis=1)]
        return said


def kernel_scores(rows: Array, centres: Array, weights: Array, precision: float) -> Array:
    """Return sum over centres of weight exp(-precision distance^2), some rows at a time."""
    parts = [
        _kernel(rows[i : i + 2048], centres, precision) @ weights for i in range(0, len(rows), 2048)
    ]
    return np.concatenate(parts) if parts else np.empty((0, weights.shape[1]))


def shares_of(scores: Array) -> Array:
    """Return scores around 0 as shares: moved by 1 / classes, cut at 0, and made to sum to 1."""
    return _rows_to_one(np.maximum(scores + 1.0 / scores.shape[1], 1e-9))


def learned(student: Any, pool: Any, places: Places, labels: npt.NDArray[Any]) -> Any:
    """Return a copy of a student who has learned from a pool of which some rows are labelled.

    One that has ``learn`` sees the whole pool; any other classifier the labelled rows.
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
    apart = squares[:, None] + squares - 2.0 * (few @ few.T)
    distance = np.sqrt(np.maximum(apart[np.triu_indices(len(few), 1)], 0.0))
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
