"""Records held in memory: dense or sparse, from arrays, frames or Arrow tables."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from tacit.records.block import Block
from tacit.records.bounds import Bounds
from tacit.records.sparse_rows import canonical, sparse_norms
from tacit.records.threads import Workers
from tacit.row_clipping import clip_factors, row_norms

Array = npt.NDArray[np.float64]
T = TypeVar("T")

_UNIT = 2.0**-53
_BLOCK_BYTES = 4 << 20
_SHARED_BYTES = 64 << 20
_FEWEST_ROWS = 256
# Small blocks are as large as keeps the bound on float error, (rows) u n, near 2^-24: a quarter
# of what the most demanding certificate allows (tests/erm/test_objective_perturbation.py).
_FINE_PRODUCT = 2**29
_FINE_ROWS = (64, 4096)


class MemoryRecords:
    """Rows and labels in memory, clipped to their bounds as they are summed.

    Parameters
    ----------
    rows
        A float32 or float64 array, or a SciPy sparse array, of shape (n, n_features). Entries of
        a sparse array at the same place are added up first.
    labels
        One number per row, or None.
    bounds
        What is declared about every record.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.records import Bounds, MemoryRecords
    >>> records = MemoryRecords(np.array([[3.0, 4.0], [0.3, 0.4]]), None, Bounds(row_norm=1.0))
    >>> total, = records.sum(lambda block: (block.weighted_sum(np.ones(block.n_rows)),))
    >>> total.round(6)
    array([0.9, 1.2])
    """

    def __init__(self, rows: Any, labels: Any | None, bounds: Bounds) -> None:
        self.rows = canonical(rows) if hasattr(rows, "tocsr") else np.asarray(rows)
        self.bounds = bounds
        self._labels = labels
        self._factors: Array | None = None
        self._buffers: dict[int, Array] = {}
        self._workers: Workers | None = None

    @property
    def n_features(self) -> int:
        """How many columns a row has."""
        return int(self.rows.shape[1])

    def count(self) -> int:
        """Return the number of records. Private."""
        return int(self.rows.shape[0])

    def sum(
        self, function: Callable[[Block], tuple[Array, ...]], *, fine: bool = False
    ) -> tuple[Array, ...]:
        """Add up ``function`` over blocks of rows in one pass."""
        self.clip_factors()  # shares work too, and a thread must not wait for its own pool
        step = self._block_rows(fine)
        starts = range(0, max(self.count(), 1), step)
        add = _paired if fine else _in_turn

        def total(worker: int, share: Sequence[int]) -> tuple[Array, ...]:
            return add(function(self._block(at, at + step, worker)) for at in share)

        return add(iter(self._shared(total, starts)))

    def _shared(
        self, function: Callable[[int, Sequence[int]], T], starts: Sequence[int]
    ) -> list[T]:
        """Return what each thread makes of its share of the blocks, in order."""
        # Contiguous shares, so that each thread reads one stretch of memory; none for a table that
        # is in the cache anyway, where handing over the interpreter costs more than it saves.
        if self._workers is None:
            self._workers = Workers()
        is_large = self.count() * self.n_features * 8 > _SHARED_BYTES
        n_shares = min(self._workers.n_threads, len(starts)) if is_large else 1
        edges = [len(starts) * i // n_shares for i in range(n_shares + 1)]
        shares = [starts[a:b] for a, b in pairwise(edges)]
        return self._workers.map(function, shares)

    def sum_error(self, *, fine: bool = False) -> float:
        """Return e such that a sum of n terms of size at most 1 is off by at most e.

        Within a block of m rows float summation in any order errs by at most (m - 1) u times the
        sum of sizes; adding b block sums errs by b u, or (log2(b) + 1) u when paired (Higham 2002,
        section 4.2); forming each term costs a few u more.
        """
        n = max(self.count(), 1)
        rows = min(self._block_rows(fine), n)
        blocks = math.ceil(n / rows)
        return (rows + (math.log2(blocks) + 1 if fine else blocks) + 8) * _UNIT * n

    def every(self, step: int) -> MemoryRecords:
        """Return every ``step``-th record: the same ones each time, so it amplifies no privacy.

        For a start near the answer; rows in memory are not copied.
        """
        labels = None if self._labels is None else self._labels[::step]
        thinned = MemoryRecords(self.rows[::step], labels, self.bounds)
        thinned._factors = self.clip_factors()[::step]
        return thinned

    def poisson_sample(
        self, rate: float, words: Callable[[int], npt.NDArray[np.uint64]]
    ) -> MemoryRecords:
        """Return each record independently with probability ``rate``.

        A record is in when its 64 random bits, as a fraction, are below the rate: exact to 2^-64,
        rounded down.
        """
        if not 0.0 <= rate <= 1.0:
            raise ValueError(f"rate must be in [0, 1], got {rate!r}; it is a probability.")
        threshold = np.uint64(min(int(rate * 2.0**64), 2**64 - 1))
        chosen = np.flatnonzero(words(self.count()) < threshold)
        labels = None if self._labels is None else np.asarray(self._labels)[chosen]
        sample = MemoryRecords(self.rows[chosen], labels, self.bounds)
        sample._factors = self.clip_factors()[chosen]
        return sample

    def _block_rows(self, fine: bool = False) -> int:
        # Beyond 128 kB a temporary costs page faults; within, a block's stay in the cache.
        usual = max(_BLOCK_BYTES // max(self.n_features * 8, 1), _FEWEST_ROWS)
        if not fine:
            return usual
        least, most = _FINE_ROWS
        return min(max(_FINE_PRODUCT // max(self.count(), 1), least), most, usual)

    def clip_factors(self) -> Array:
        """Return the factor, at most 1, by which each row is scaled to its norm.

        `tacit.row_clipping` states the rule and proves it.
        """
        if self._factors is None:
            # sizes in double precision whatever the rows are; one pass, kept for the fit
            factors = np.empty(self.count())
            step = self._block_rows()
            norms_of = sparse_norms if hasattr(self.rows, "tocsr") else row_norms

            def fill(_: int, starts: Sequence[int]) -> None:
                for start in starts:
                    norms = norms_of(self.rows[start : start + step])
                    factors[start : start + step] = clip_factors(
                        norms, self.bounds.row_norm, self.n_features
                    )

            self._shared(fill, range(0, self.count(), step))
            self._factors = factors
        return self._factors

    def _in_double_precision(self, rows: Any, worker: int) -> Any:
        if hasattr(rows, "tocsr"):
            return rows.astype(np.float64)
        # One buffer a thread for all blocks: a fresh one each time costs more in page faults than
        # the arithmetic does. Nobody keeps a block's rows beyond its function call.
        if worker not in self._buffers or len(self._buffers[worker]) < len(rows):
            self._buffers[worker] = np.empty(rows.shape)
        converted = self._buffers[worker][: len(rows)]
        np.copyto(converted, rows)
        return converted

    def _block(self, start: int, stop: int, worker: int = 0) -> Block:
        rows = self.rows[start:stop]
        if rows.dtype != np.float64:
            # Sums in single precision would move further than the sensitivity allows.
            rows = self._in_double_precision(rows, worker)
        labels = None if self._labels is None else np.asarray(self._labels[start:stop], dtype=float)
        if labels is not None and self.bounds.label_range is not None:
            labels = np.clip(labels, *self.bounds.label_range)
        factors = self.clip_factors()[start:stop]
        if not factors.all():
            rows = _without(rows, factors == 0.0)
        return Block(rows, factors, labels, self.bounds.intercept)


def _without(rows: Any, absurd: npt.NDArray[np.bool_]) -> Any:
    """Return a copy of a block's rows with some set to zero."""
    rows = rows.copy()
    if hasattr(rows, "tocsr"):
        rows.data[np.repeat(absurd, np.diff(rows.indptr))] = 0.0
    else:
        rows[absurd] = 0.0
    return rows


def _in_turn(parts: Iterator[tuple[Array, ...]]) -> tuple[Array, ...]:
    """Add each part to the running totals."""
    totals = tuple(np.array(value, dtype=np.float64) for value in next(parts))
    for part in parts:
        for total, value in zip(totals, part, strict=True):
            total += value
    return totals


def _paired(parts: Iterator[tuple[Array, ...]]) -> tuple[Array, ...]:
    """Add parts in pairs, pairs in pairs, and so on; of b parts only log2(b) are kept at a time."""
    kept: list[tuple[int, tuple[Array, ...]]] = []
    for part in parts:
        level, total = 0, tuple(np.array(value, dtype=np.float64) for value in part)
        while kept and kept[-1][0] == level:
            total, level = _added(kept.pop()[1], total), level + 1
        kept.append((level, total))
    _, total = kept.pop()
    while kept:
        total = _added(kept.pop()[1], total)
    return total


def _added(first: tuple[Array, ...], second: tuple[Array, ...]) -> tuple[Array, ...]:
    return tuple(np.asarray(a + b) for a, b in zip(first, second, strict=True))
