"""Store rows in lattice steps as tiles for compiled loops: one column of many rows contiguously."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.arrays import Array, Integers
from tacit.disk_arrays import empty_like_rows
from tacit.records.exact.kernels import TILE_ROWS, compiled

Whole = npt.NDArray[np.int16]


class Tiles:
    """Rows in tiles of shape (columns, rows of a tile); positions beyond the last row are ignored.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.records.exact.tiles import Tiles
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
        """Return room for the steps of ``rows``, on disk if the rows are."""
        n, d = rows.shape
        return cls(empty_like_rows(rows, (-(-n // TILE_ROWS), d, TILE_ROWS), np.int16), n)

    def put(self, start: int, rows: Whole) -> None:
        """Write rows from position ``start`` on."""
        self._loops.put(self.tiles, start, rows)

    def __getitem__(self, at: slice) -> Tiles:
        """Return the rows of a slice that starts and ends between tiles."""
        start, stop, _ = at.indices(self.shape[0])
        first, last = start // TILE_ROWS, -(-stop // TILE_ROWS)
        return Tiles(self.tiles[first:last], stop - start)

    def along(self, weights: Array) -> Array:
        """Return the product of every row with integer weights, of one output or several."""
        sums = np.empty((self.shape[0], *weights.shape[1:]))
        self._loops.along(self.tiles, self._limbs(weights), _columns(sums))
        return sums

    def _limbs(self, weights: Array) -> Any:
        doubles = _columns(np.asarray(weights, dtype=np.float64))
        return _limbs_of(doubles.tobytes(), doubles.shape)

    def down(self, numbers: Array) -> Array:
        """Return the sum of all rows times their integers of 18 bits, for one output or several."""
        total = np.zeros((self.shape[1], *numbers.shape[1:]))
        self._loops.down(self.tiles, _columns(numbers), _columns(total))
        return total

    def logistic_sum(
        self,
        labels: Array,
        weights: Array,
        unit: float,
        constant: float,
        scale: float,
        most: int,
    ) -> tuple[Array, Array]:
        """Return the sum of all rows, each times its slope, and the sum of the slopes.

        score = unit (row . weights) + constant
        slope = rint((sigmoid(score) - (label > 0)) scale), clipped to +-most
        """
        total = np.zeros(self.shape[1])
        of_slopes = self._loops.logistic_sum(
            self.tiles,
            labels,
            self._limbs(weights),
            unit,
            float(constant),
            scale,
            float(most),
            total,
        )
        return total, np.array([of_slopes])

    def at(self, places: Integers) -> Whole:
        """Return the rows at some places, each contiguous."""
        found: Whole = self.tiles[places // TILE_ROWS, :, places % TILE_ROWS]
        return found

    def rows(self) -> Whole:
        """Return all rows, each contiguous."""
        rows: Whole = self.tiles.transpose(0, 2, 1).reshape(-1, self.shape[1])[: self.shape[0]]
        return rows


@lru_cache(maxsize=8)
def _limbs_of(weights: bytes, shape: tuple[int, int]) -> Any:
    """Split weights into limbs, once for all blocks of a pass."""
    loops: Any = compiled()
    return loops.weight_limbs(np.frombuffer(weights).reshape(shape))


def _columns(values: Array) -> Array:
    return values.reshape(len(values), -1)
