"""Add up the sums of blocks, on several threads, with a bound on the float error.

A block then stays in one core's cache from the scores to the sum, and the element-wise work in
between is shared too. The blocks determine the order of additions, not the speed of a thread, so a
sum is reproducible.

A source chooses the rows per block (`usual_rows`, `fine_rows`), adds up the results of a function
on each (`added_up`) and states the bound (`float_error`). The three belong together.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from tacit.privacy.fork import generation

if TYPE_CHECKING:
    from tacit.records.source import RecordSource


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
        buffer = getattr(self._own, "rows", None)
        if buffer is None or len(buffer) < n:
            buffer = self._own.rows = np.empty((n, d))
        room: npt.NDArray[np.float64] = buffer[:n]
        return room


Array = npt.NDArray[np.float64]

_UNIT = 2.0**-53  # unit roundoff of a double
_BLOCK_BYTES = 4 << 20
_FEWEST_ROWS = 256
# Small blocks are as large as the bound on float error allows: (rows) u n stays near 2^-24, a
# quarter of what the most demanding certificate allows
# (tests/erm/mechanisms/objective_perturbation/test_mechanism.py).
_FINE_PRODUCT = 2**29
_FINE_ROWS = (64, 4096)


def usual_rows(n_features: int) -> int:
    """Return the number of rows per block if no tight bound on float error is needed."""
    # A temporary of one number per row costs page faults above 128 kB; with blocks of 4 MB it is
    # smaller from 32 columns on, and stays in the cache.
    return max(_BLOCK_BYTES // max(n_features * 8, 1), _FEWEST_ROWS)


def fine_rows(n_features: int, n_records: int) -> int:
    """Return the number of rows per small block."""
    least, most = _FINE_ROWS
    return min(max(_FINE_PRODUCT // max(n_records, 1), least), most, usual_rows(n_features))


def float_error(n_records: int, block_rows: int, *, fine: bool) -> float:
    """Return e such that a sum of n terms of size at most 1, added in blocks, is off by at most e.

    Within a block of m rows float summation in any order errs by at most (m - 1) u times the
    sum of sizes. Adding b block sums errs by b u, or (log2(b) + 1) u in pairs. Forming each term
    costs a few u more (docs/proofs/noisy_gradient.md, section 3).

    Examples
    --------
    >>> from tacit.records.block_sums import float_error
    >>> float_error(1000, 256, fine=False) == (256 + 4 + 8) * 2.0**-53 * 1000
    True
    """
    n = max(n_records, 1)
    rows = min(block_rows, n)
    blocks = math.ceil(n / rows)
    return (rows + (math.log2(blocks) + 1 if fine else blocks) + 8) * _UNIT * n


def added_up(parts: Iterator[tuple[Array, ...]], *, fine: bool) -> tuple[Array, ...]:
    """Return the sum of at least one part; added in pairs if ``fine``."""
    return _paired(parts) if fine else _in_turn(parts)


def _in_turn(parts: Iterator[tuple[Array, ...]]) -> tuple[Array, ...]:
    """Add each part to the running totals."""
    totals = tuple(np.array(value, dtype=np.float64) for value in next(parts))
    for part in parts:
        for total, value in zip(totals, part, strict=True):
            total += value
    return totals


def _paired(parts: Iterator[tuple[Array, ...]]) -> tuple[Array, ...]:
    """Add parts in pairs, pairs in pairs, and so on; only log2(b) of b parts are held at a time."""
    partial_sums: list[tuple[int, tuple[Array, ...]]] = []
    for part in parts:
        level, total = 0, tuple(np.array(value, dtype=np.float64) for value in part)
        while partial_sums and partial_sums[-1][0] == level:
            total, level = _added(partial_sums.pop()[1], total), level + 1
        partial_sums.append((level, total))
    _, total = partial_sums.pop()
    while partial_sums:
        total = _added(partial_sums.pop()[1], total)
    return total


def _added(first: tuple[Array, ...], second: tuple[Array, ...]) -> tuple[Array, ...]:
    return tuple(np.asarray(a + b) for a, b in zip(first, second, strict=True))


def needs_fine_sums(records: RecordSource, slack: float) -> bool:
    """Return whether sums need small blocks to keep their float error within ``slack`` / 2.

    A sum may be off by its error on either of two neighbours, so twice the error is charged.
    """
    if 2 * records.sum_error() <= slack:
        return False
    if 2 * records.sum_error(fine=True) > slack:
        raise ValueError(
            "there are too many records for a sum in double precision to keep its sensitivity; "
            "split them, or fit on a sample."
        )
    return True
