"""Sum over a table of rows in lattice steps with all threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.disk_arrays import is_on_disk, may_change
from tacit.records.block import bounded_labels, shares_of
from tacit.records.bounds import Bounds
from tacit.records.lattice_block import MOST_ROWS, LatticeBlock
from tacit.records.lattice_kernels import TILE_ROWS
from tacit.records.lattice_rows import row_step
from tacit.records.lattice_tiles import Tiles
from tacit.records.summing import added_up
from tacit.records.threads import Buffers, Workers

Array = npt.NDArray[np.float64]

# Numbers in a block: enough to amortise the calls. For several outputs by BLAS, what the cache
# holds as doubles from scores to sums. Compiled loops manage their cache themselves.
_NUMBERS, _NUMBERS_IN_TILES = 1 << 20, 1 << 21
_NUMBERS_OF_SEVERAL = 1 << 18
# At least so many rows in wide tables, as each block splits the weights into limbs again.
_LEAST_ROWS = 2048
# Smaller tables are not worth sharing among threads.
_SHARED_NUMBERS = 1 << 21


class LatticeTable:
    """Rows in the steps of `in_steps`, with labels and weights as given.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.records import Bounds
    >>> from tacit.records.lattice_table import LatticeTable
    >>> table = LatticeTable(np.array([[3, 4], [1, 0]], dtype=np.int16), None, Bounds())
    >>> table.sum(lambda block: (block.whole_sum(np.array([1.0, 10.0])),))
    (array([13.,  4.]),)
    """

    def __init__(
        self, rows: Any, labels: Any | None, bounds: Bounds, weights: Any | None = None
    ) -> None:
        self.rows, self.bounds = rows, bounds
        # Labels in memory are clipped once; labels on disk block by block.
        self._labels = labels if is_on_disk(labels) else bounded_labels(labels, bounds)
        self._are_usable = not is_on_disk(labels) or (
            not may_change(labels) and _are_within(labels, bounds)
        )
        self._weights = weights
        self._buffers = Buffers()
        self._workers: Workers | None = None

    def some(self, at: Any) -> LatticeTable:
        """Return the rows at some places."""
        labels = None if self._labels is None else self._labels[at]
        weights = None if self._weights is None else self._weights[at]
        rows = self.rows
        if isinstance(rows, Tiles):
            places = np.arange(rows.shape[0])[at]
            return LatticeTable(rows.at(places), labels, self.bounds, weights)
        return LatticeTable(rows[at], labels, self.bounds, weights)

    def sum(
        self, function: Callable[[LatticeBlock], tuple[Array, ...]], *, n_outputs: int = 1
    ) -> tuple[Array, ...]:
        """Add up ``function`` over blocks, with several threads if the table is large."""
        n, d = self.rows.shape
        is_tiled = isinstance(self.rows, Tiles)
        of_rows = _NUMBERS if n_outputs == 1 else _NUMBERS_OF_SEVERAL
        numbers = _NUMBERS_IN_TILES if is_tiled else of_rows
        step = min(max(1, numbers // max(d, 1)), MOST_ROWS)
        if is_tiled:  # cut between tiles only
            step = max(step, _LEAST_ROWS) // TILE_ROWS * TILE_ROWS
        starts = range(0, max(n, 1), step)

        def total(share: Sequence[int]) -> tuple[Array, ...]:
            blocks = (self._block(slice(at, at + step)) for at in share)
            return added_up(map(function, blocks), fine=False)

        if self._workers is None:
            self._workers = Workers()
        is_large = n * d * n_outputs >= _SHARED_NUMBERS
        n_shares = min(self._workers.n_threads, len(starts)) if is_large else 1
        edges = [len(starts) * i // n_shares for i in range(n_shares + 1)]
        shares = [starts[a:b] for a, b in pairwise(edges)]
        return added_up(iter(self._workers.map(total, shares)), fine=False)

    def _some_labels(self, at: slice) -> Array | None:
        if self._labels is None:
            return None
        labels = self._labels[at]
        if self._are_usable:
            return np.asarray(labels, dtype=np.float64)
        return bounded_labels(labels, self.bounds)

    def _block(self, at: slice) -> LatticeBlock:
        rows, buffer = self.rows[at], None
        if not (hasattr(rows, "tocsr") or isinstance(rows, Tiles)):
            buffer = self._buffers.room(*rows.shape)
            np.copyto(buffer, rows)
        return LatticeBlock(
            rows,
            row_step(self.bounds.row_norm),
            self._some_labels(at),
            self.bounds.intercept,
            shares_of(None if self._weights is None else self._weights[at], self.bounds),
            buffer,
        )


def _are_within(labels: Any, bounds: Bounds) -> bool:
    """Return whether labels are integers within their range."""
    if labels.dtype.kind not in "iu" or not len(labels):
        return False
    lower, upper = bounds.label_range or (-np.inf, np.inf)
    return bool(lower <= labels.min() and labels.max() <= upper)
