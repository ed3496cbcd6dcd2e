"""Rows in whole steps for compiled loops: many rows' numbers of one column side by side."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.disk_arrays import empty_like_rows
from tacit.records.lattice_kernels import compiled

Array = npt.NDArray[np.float64]
Whole = npt.NDArray[np.int16]

# Numbers in a tile: what stays in a core's cache from the scores to the sums.
_NUMBERS = 1 << 18
# Long tiles cost fewer calls; where so many columns fit no long ones, the shortest are as fast, and
# twice as fast as those in between.
_LONG, _SHORT = (4096, 2048, 1024), 128


class Tiles:
    """Rows in tiles of shape (columns, rows of a tile); those beyond the last row are never read.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.records.lattice_tiles import Tiles
    >>> tiles = Tiles.room_for(np.empty((3, 2)))
    >>> tiles.put(0, np.array([[1, 2], [3, 4], [5, 6]], dtype=np.int16))
    >>> tiles.at(np.array([2, 0]))
    array([[5, 6],
           [1, 2]], dtype=int16)
    """

    def __init__(self, tiles: Whole, n_rows: int) -> None:
        self.tiles, self.shape = tiles, (n_rows, tiles.shape[1])
        self._loops: Any = compiled()

    @classmethod
    def room_for(cls, rows: Any) -> Tiles:
        """Return room for the steps of ``rows``: on disk if they are."""
        n, d = rows.shape
        size = next((size for size in _LONG if size * d <= _NUMBERS), _SHORT)
        return cls(empty_like_rows(rows, (-(-n // size), d, size), np.int16), n)

    @property
    def size(self) -> int:
        """How many rows a tile has."""
        return int(self.tiles.shape[2])

    def put(self, start: int, rows: Whole) -> None:
        """Write rows from the place ``start`` on."""
        done, size = 0, self.size
        while done < len(rows):
            tile, first = divmod(start + done, size)
            some = rows[done : done + size - first]
            self.tiles[tile, :, first : first + len(some)] = some.T
            done += len(some)

    def __getitem__(self, at: slice) -> Tiles:
        """Return the rows from one tile's first to before another's."""
        start, stop, _ = at.indices(self.shape[0])
        first, last = start // self.size, -(-stop // self.size)
        return Tiles(self.tiles[first:last], stop - start)

    def along(self, weights: Array) -> Array:
        """Return the sum of every row times the weights."""
        sums = np.empty(self.shape[0])
        self._loops.along(self.tiles, weights, sums)
        return sums

    def down(self, numbers: Array) -> Array:
        """Return the sum of all rows, each times its number."""
        total = np.zeros(self.shape[1])
        self._loops.down(self.tiles, numbers, total)
        return total

    def logistic_sum(
        self,
        labels: Array,
        weights: Array,
        step: float,
        constant: float,
        scale: float,
        most: int,
    ) -> tuple[Array, Array]:
        """Return the sum of all rows, each times its slope, and that of the slopes.

        score = step (row . weights) + constant
        slope = rint((sigmoid(score) - (label > 0)) scale), held to +-most
        """
        total = np.zeros(self.shape[1])
        of_slopes = self._loops.logistic_sum(
            self.tiles, labels, weights, step, float(constant), scale, float(most), total
        )
        return total, np.array([of_slopes])

    def at(self, places: npt.NDArray[np.int64]) -> Whole:
        """Return rows at some places, each row in one stretch."""
        found: Whole = self.tiles[places // self.size, :, places % self.size]
        return found

    def rows(self) -> Whole:
        """Return all rows, each in one stretch."""
        rows: Whole = self.tiles.transpose(0, 2, 1).reshape(-1, self.shape[1])[: self.shape[0]]
        return rows
