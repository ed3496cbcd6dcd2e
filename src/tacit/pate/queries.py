"""Which rows of the public pool the teachers are asked about; nothing here sees a record."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from tacit import checks
from tacit.pate.designed import DesignedQueries

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
    >>> from tacit.pate import AllQueries
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
    >>> from tacit.pate import RandomQueries
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
    >>> from tacit.pate import KMeansQueries
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
    >>> from tacit.pate import ChosenQueries
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
    >>> from tacit.pate.queries import queries_of
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
