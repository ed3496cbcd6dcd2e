"""Choose the public rows on which teachers vote: at random, by design, or as given."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from tacit import checks
from tacit.records.rows_and_labels import as_rows

Array = npt.NDArray[np.float64]
Places = npt.NDArray[np.int64]


class Queries(Protocol):
    """A rule to choose rows of a public pool."""

    def places(self, pool: Any, n_queries: int) -> Places:
        """Return the positions of the chosen rows, each once."""


@dataclass(frozen=True)
class AllQueries:
    """The whole pool.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.pate import AllQueries
    >>> AllQueries().places(np.ones((3, 2)), 3)
    array([0, 1, 2])
    """

    def places(self, pool: Any, n_queries: int) -> Places:
        """Return every position; ``n_queries`` must be the size of the pool."""
        if pool.shape[0] != n_queries:
            raise ValueError(
                f"queries='all' uses all {pool.shape[0]} public rows, but n_queries is "
                f"{n_queries}; pass n_queries={pool.shape[0]}, or queries='random'."
            )
        return np.arange(n_queries)


@dataclass(frozen=True)
class RandomQueries:
    """Random rows of the pool.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.pate import RandomQueries
    >>> len(set(RandomQueries().places(np.ones((30, 2)), 9).tolist()))
    9
    """

    seed: int = 0

    def places(self, pool: Any, n_queries: int) -> Places:
        """Return distinct positions."""
        chosen = np.random.default_rng(self.seed).permutation(pool.shape[0])[:n_queries]
        return np.sort(chosen)


@dataclass(frozen=True)
class KMeansQueries:
    """The rows nearest to the centres of k-means clusters, k = n_queries.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.pate import KMeansQueries
    >>> pool = np.repeat([[0.0], [5.0], [9.0]], 20, axis=0)
    >>> sorted(pool[KMeansQueries().places(pool, 3), 0].tolist())
    [0.0, 5.0, 9.0]
    """

    seed: int = 0

    def places(self, pool: Any, n_queries: int) -> Places:
        """Return the positions of distinct rows."""
        from sklearn.cluster import MiniBatchKMeans
        from sklearn.metrics import pairwise_distances_argmin

        if n_queries >= pool.shape[0]:
            return np.arange(pool.shape[0])
        means = MiniBatchKMeans(n_queries, random_state=self.seed, n_init=3, batch_size=2048)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about fewer clusters than requested; filled up below
            centres = means.fit(pool).cluster_centers_
        chosen = dict.fromkeys(pairwise_distances_argmin(centres, pool).tolist())
        others = np.random.default_rng(self.seed).permutation(pool.shape[0]).tolist()
        return np.sort(np.array(list(dict.fromkeys([*chosen, *others]))[:n_queries]))


@dataclass(frozen=True)
class ChosenQueries:
    """Rows given by their positions, all of them: to target a rare group, for instance.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.pate import ChosenQueries
    >>> ChosenQueries((4, 2)).places(np.ones((9, 1)), 2)
    array([4, 2])
    """

    chosen: tuple[int, ...]

    def places(self, pool: Any, n_queries: int) -> Places:
        """Return the chosen positions, of which there must be ``n_queries``."""
        places = np.asarray(self.chosen, dtype=np.int64)
        if len(set(self.chosen)) != n_queries or not np.all(
            (places >= 0) & (places < pool.shape[0])
        ):
            raise ValueError(
                f"n_queries is {n_queries}, so as many distinct positions in the public pool must "
                f"be chosen; got {len(set(self.chosen))} positions."
            )
        return places


@dataclass(frozen=True)
class DesignedQueries:
    """The rows whose answers are most informative for a linear student, chosen greedily.

    Answers are noisy, and a row far from the mean, in a direction not yet queried,
    moves a line more than a common one. Use it for a linear student and teachers who barely agree;
    for a student based on neighbours use `KMeansQueries`.

    Parameters
    ----------
    ridge
        The prior precision, in answers. At 1 the score of a row of mean length is
        as uncertain as one noisy answer, so that the first answer along a direction and the
        prior have equal weight. Less queries every direction, however short rows are along it;
        more queries the longest rows, whatever was queried before.

    Notes
    -----
    With x the rows minus their mean (an intercept is learned besides), m their mean squared length
    and A = (ridge m I + sum of x x' over the chosen rows)^-1, the next row has the greatest
    x' A x. That is the greedy maximum of log det of the information on the weights (Chaloner and
    Verdinelli 1995, section 2.2), at least 1 - 1/e of the best gain, since the gain
    is submodular. Exact; (rows + queries) x columns for each query; ties go to the first row.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.pate import DesignedQueries
    >>> pool = np.array([[3.0, 0.0], [-3.1, 0.0], [0.0, 2.5], [0.0, -2.4]])
    >>> DesignedQueries().places(pool, 2)  # the longest, then another direction
    array([1, 2])
    """

    ridge: float = 1.0

    def __post_init__(self) -> None:
        checks.positive("ridge", self.ridge)

    def places(self, pool: Any, n_queries: int) -> Places:
        """Return distinct positions, the most informative first."""
        rows = _scaled(pool)
        if n_queries > rows.shape[0]:
            raise ValueError(
                f"n_queries is {n_queries}, and the pool has {rows.shape[0]} rows; pass fewer "
                "queries or more public rows."
            )
        mean = np.asarray(rows.mean(axis=0)).ravel()
        squares = _squared_lengths(rows, mean)
        # If all rows are equal their lengths are 0, and any choice is as good.
        believed = self.ridge * float(squares.mean()) or 1.0
        left = squares / believed  # x' A x, or -inf for a chosen row
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
    """Return finite rows divided by their greatest value, because the design is scale-free."""
    rows, _ = as_rows(pool)
    largest = float(abs(rows).max())
    return rows.astype(np.float64) / (largest or 1.0)


def _dense(row: Any) -> Array:
    return np.asarray(row.toarray() if hasattr(row, "tocsr") else row).ravel()


def _squared_lengths(rows: Any, mean: Array) -> Array:
    """Return |x - mean|^2 = |x|^2 - 2 x' mean + |mean|^2 of each row; sparse rows stay sparse."""
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
    """Return the rule for a word, or the given one.

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
    raise TypeError(f"queries must be a word, positions or a Queries, got {value!r}.")


def check_pool(pool: Any, n_queries: int, n_columns: int) -> None:
    """Refuse a public pool that is too small, or whose columns differ from the records'."""
    checks.count("n_queries", n_queries)
    if pool.shape[1] != n_columns:
        raise ValueError(
            f"X_public has {pool.shape[1]} columns and X has {n_columns}: teachers predict "
            "rows like their training rows; encode both in the same way."
        )
    if pool.shape[0] < n_queries:
        raise ValueError(
            f"n_queries is {n_queries}, and X_public has {pool.shape[0]} rows; pass fewer queries "
            "or more public rows."
        )
