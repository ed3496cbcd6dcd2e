"""Which public rows the teachers are asked about: at random, by design, or those given."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from tacit import checks
from tacit.records import as_rows

Array = npt.NDArray[np.float64]
Places = npt.NDArray[np.int64]


class Queries(Protocol):
    """A way to choose rows of a public pool."""

    def places(self, pool: Any, n_queries: int) -> Places:
        """Return the places of the rows to ask about, each once."""


@dataclass(frozen=True)
class AllQueries:
    """The whole pool.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.pate.query_points import AllQueries
    >>> AllQueries().places(np.ones((3, 2)), 3)
    array([0, 1, 2])
    """

    def places(self, pool: Any, n_queries: int) -> Places:
        """Return every place; ``n_queries`` must be the size of the pool."""
        if pool.shape[0] != n_queries:
            raise ValueError(
                f"queries='all' asks about all {pool.shape[0]} public rows, but n_queries is "
                f"{n_queries}; pass n_queries={pool.shape[0]}, or queries='random'."
            )
        return np.arange(n_queries)


@dataclass(frozen=True)
class RandomQueries:
    """Rows of the pool at random.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.pate.query_points import RandomQueries
    >>> len(set(RandomQueries().places(np.ones((30, 2)), 9).tolist()))
    9
    """

    seed: int = 0

    def places(self, pool: Any, n_queries: int) -> Places:
        """Return distinct places."""
        chosen = np.random.default_rng(self.seed).permutation(pool.shape[0])[:n_queries]
        return np.sort(chosen)


@dataclass(frozen=True)
class KMeansQueries:
    """The rows nearest to the centres of as many clusters of the pool: each stands for many.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.pate.query_points import KMeansQueries
    >>> pool = np.repeat([[0.0], [5.0], [9.0]], 20, axis=0)
    >>> sorted(pool[KMeansQueries().places(pool, 3), 0].tolist())
    [0.0, 5.0, 9.0]
    """

    seed: int = 0

    def places(self, pool: Any, n_queries: int) -> Places:
        """Return the places of distinct rows."""
        from sklearn.cluster import MiniBatchKMeans
        from sklearn.metrics import pairwise_distances_argmin

        if n_queries >= pool.shape[0]:
            return np.arange(pool.shape[0])
        means = MiniBatchKMeans(n_queries, random_state=self.seed, n_init=3, batch_size=2048)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of clusters fewer than asked for: filled up below
            centres = means.fit(pool).cluster_centers_
        chosen = dict.fromkeys(pairwise_distances_argmin(centres, pool).tolist())
        others = np.random.default_rng(self.seed).permutation(pool.shape[0]).tolist()
        return np.sort(np.array(list(dict.fromkeys([*chosen, *others]))[:n_queries]))


@dataclass(frozen=True)
class ChosenQueries:
    """Rows that somebody chose by their places, all of them: to aim at a rare group, say.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.pate.query_points import ChosenQueries
    >>> ChosenQueries((4, 2)).places(np.ones((9, 1)), 2)
    array([4, 2])
    """

    chosen: tuple[int, ...]

    def places(self, pool: Any, n_queries: int) -> Places:
        """Return the chosen places, of which there must be ``n_queries``."""
        places = np.asarray(self.chosen, dtype=np.int64)
        if len(set(self.chosen)) != n_queries or not np.all(
            (places >= 0) & (places < pool.shape[0])
        ):
            raise ValueError(
                f"n_queries is {n_queries}, so as many distinct places in the public pool must be "
                f"chosen; got {len(set(self.chosen))} places."
            )
        return places


@dataclass(frozen=True)
class DesignedQueries:
    """The rows whose answers tell a linear student the most, each given those before it.

    Answers are noisy, and a row far from the middle, in a direction that was not asked about yet,
    moves a line more than a common one. For a linear student and teachers who barely agree; a
    student that goes by neighbours wants `KMeansQueries`.

    Parameters
    ----------
    ridge
        What is believed beforehand, in answers: 1 says that the score of a row of mean length is
        as uncertain as one answer is noisy, so that the first answer along a direction and what was
        believed count alike. Less asks about every direction, however short rows are along it;
        more, about the longest rows, whatever was asked before.

    Notes
    -----
    With x the rows less their mean (an intercept is learned besides), m their mean squared length
    and A = (ridge m I + sum of x x' over the rows asked so far)^-1, the next row has the greatest
    x' A x. That is the greedy maximum of log det of the information on the weights (Chaloner and
    Verdinelli 1995, section 2.2), at least 1 - 1/e of what any choice gains, since the gain
    is submodular. Exact; (rows + queries) x columns for each query; ties go to the first row.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.pate.query_points import DesignedQueries
    >>> pool = np.array([[3.0, 0.0], [-3.1, 0.0], [0.0, 2.5], [0.0, -2.4]])
    >>> DesignedQueries().places(pool, 2)  # the longest, then another direction
    array([1, 2])
    """

    ridge: float = 1.0

    def __post_init__(self) -> None:
        checks.positive("ridge", self.ridge)

    def places(self, pool: Any, n_queries: int) -> Places:
        """Return distinct places, those that tell the most first."""
        rows = _scaled(pool)
        if n_queries > rows.shape[0]:
            raise ValueError(
                f"n_queries is {n_queries}, and the pool has {rows.shape[0]} rows; pass fewer "
                "queries or more public rows."
            )
        mean = np.asarray(rows.mean(axis=0)).ravel()
        squares = _squared_lengths(rows, mean)
        # Rows that are all alike have length 0, and any of them will do.
        believed = self.ridge * float(squares.mean()) or 1.0
        left = squares / believed  # x' A x, or -inf of a row that was asked about
        steps = np.zeros((n_queries, rows.shape[1]))  # A = I / believed - steps' steps
        chosen = np.empty(n_queries, dtype=np.int64)
        for i in range(n_queries):
            chosen[i] = at = int(np.argmax(left))
            row = _dense(rows[[at]]) - mean
            # Sherman and Morrison: A - A x x' A / (1 + x' A x) = A - step step'
            step = row / believed - (steps[:i] @ row) @ steps[:i]
            steps[i] = step / np.sqrt(1.0 + max(float(row @ step), 0.0))
            left -= (rows @ steps[i] - mean @ steps[i]) ** 2
            left[at] = -np.inf
        return chosen


def _scaled(pool: Any) -> Any:
    """Return finite rows, divided by their greatest value: the design has no unit."""
    rows, _ = as_rows(pool)
    largest = float(abs(rows).max())
    return rows.astype(np.float64) / (largest or 1.0)


def _dense(row: Any) -> Array:
    return np.asarray(row.toarray() if hasattr(row, "tocsr") else row).ravel()


def _squared_lengths(rows: Any, mean: Array) -> Array:
    """Return |x - mean|^2 = |x|^2 - 2 x' mean + |mean|^2 of each row, without filling zeros in."""
    if hasattr(rows, "tocsr"):
        own = np.asarray(rows.multiply(rows).sum(axis=1)).ravel()
        lengths: Array = np.maximum(own - 2.0 * (rows @ mean) + mean @ mean, 0.0)
    else:
        lengths = np.sum((rows - mean) ** 2, axis=1)
    return lengths


_WORDS: dict[str, Queries] = {
    "all": AllQueries(),
    "designed": DesignedQueries(),
    "kmeans": KMeansQueries(),
    "random": RandomQueries(),
}


def queries_of(value: Any) -> Queries:
    """Return the way that a word names, or that was given.

    Examples
    --------
    >>> from tacit.pate.query_points import queries_of
    >>> queries_of("random")
    RandomQueries(seed=0)
    """
    if isinstance(value, str):
        if value not in _WORDS:
            raise ValueError(f"queries must be one of {sorted(_WORDS)}, got {value!r}.")
        return _WORDS[value]
    if hasattr(value, "places"):
        return value  # type: ignore[no-any-return]
    if isinstance(value, Sequence | np.ndarray):
        return ChosenQueries(tuple(int(place) for place in value))
    raise TypeError(f"queries must be a word, places in the pool or a Queries, got {value!r}.")


def check_pool(pool: Any, n_queries: int, n_columns: int) -> None:
    """Refuse a public pool that is too small, or of other columns than the records."""
    checks.count("n_queries", n_queries)
    if pool.shape[1] != n_columns:
        raise ValueError(
            f"X_public has {pool.shape[1]} columns and X has {n_columns}: a teacher is asked about "
            "rows like those it learned from; encode both in the same way."
        )
    if pool.shape[0] < n_queries:
        raise ValueError(
            f"n_queries is {n_queries}, and X_public has {pool.shape[0]} rows; pass fewer queries "
            "or more public rows."
        )
