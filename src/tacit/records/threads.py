"""Share a pass over blocks among threads, each with its own single-threaded BLAS.

A block then stays in one core's cache from the scores to the sum, and the element-wise work in
between is shared too. The blocks determine the order of additions, not the speed of a thread, so a
sum is reproducible.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from tacit.privacy.processes import generation

T = TypeVar("T")


@lru_cache(maxsize=1)
def _controller() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def available_threads() -> int:
    """Return the number of threads that the user allows BLAS."""
    counts = [library["num_threads"] for library in _controller().select(user_api="blas").info()]
    return max(counts, default=1)


class Workers:
    """As many threads as BLAS may have, for work that is mostly NumPy."""

    def __init__(self) -> None:
        self.n_threads = available_threads()
        self._begin()

    def _begin(self) -> None:
        self._generation = generation()
        self._pool = ThreadPoolExecutor(self.n_threads) if self.n_threads > 1 else None

    def map(self, function: Callable[[Any], T], shares: Sequence[Any]) -> list[T]:
        """Return function(share) for every share, in order."""
        if self._generation != generation():  # threads do not survive a fork; a pool would hang
            self._begin()
        if self._pool is None or len(shares) < 2:
            return [function(share) for share in shares]
        with _controller().limit(limits=1, user_api="blas"):
            return list(self._pool.map(function, shares))


class Buffers:
    """One buffer per thread for a block's rows in double precision.

    A new array for every block costs more in page faults than the arithmetic. Buffers belong to
    threads, not to shares: two simultaneous fits on the same records would otherwise overwrite
    each other's blocks, and a record could enter a sum more than once.
    """

    def __init__(self) -> None:
        self._own = threading.local()

    def __reduce__(self) -> tuple[Any, ...]:
        return Buffers, ()  # a copy, or another process, has its own

    def room(self, n: int, d: int) -> npt.NDArray[np.float64]:
        """Return room for n rows of d numbers, the same for every block of a thread."""
        kept = getattr(self._own, "rows", None)
        if kept is None or len(kept) < n:
            kept = self._own.rows = np.empty((n, d))
        room: npt.NDArray[np.float64] = kept[:n]
        return room
