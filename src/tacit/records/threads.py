"""Sharing a pass over blocks among threads, each with its own single-threaded BLAS.

A block then stays in one core's cache from the scores to the sum, and the element-wise work in
between is shared too. The order of additions is fixed by the blocks, not by which thread is fast,
so a sum is the same every time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any, TypeVar

T = TypeVar("T")


@lru_cache(maxsize=1)
def _controller() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def available_threads() -> int:
    """Return how many threads the user lets BLAS have."""
    counts = [library["num_threads"] for library in _controller().select(user_api="blas").info()]
    return max(counts, default=1)


class Workers:
    """As many threads as BLAS may have, for work that is mostly NumPy."""

    def __init__(self) -> None:
        self.n_threads = available_threads()
        self._pool = ThreadPoolExecutor(self.n_threads) if self.n_threads > 1 else None

    def map(self, function: Callable[[int, Any], T], shares: Sequence[Any]) -> list[T]:
        """Return function(i, share) for every share, in order."""
        if self._pool is None or len(shares) < 2:
            return [function(i, share) for i, share in enumerate(shares)]
        with _controller().limit(limits=1, user_api="blas"):
            return list(self._pool.map(function, range(len(shares)), shares))
