"""Rows that are made of other rows, a block at a time, whenever they are looked at."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from tacit.disk_arrays import may_change
from tacit.records.sparse_rows import canonical
from tacit.records.summing import usual_rows
from tacit.records.unread import UnreadTable, has_people

Array = npt.NDArray[np.float64]


class RowMap(Protocol):
    """A public function of one row, applied to several.

    Contract: a row that it makes depends on the row it is made of and on nothing else, to the last
    bit: not on the rows around it, on how many they are or on how they lie in memory. Otherwise
    one record more would change others.
    """

    @property
    def n_columns(self) -> int:
        """How many numbers a row has that it makes."""

    def __call__(self, rows: Any, out: Array) -> None:
        """Write what it makes of finite rows, dense or a canonical CSR array, to ``out``."""


class MappedRows:
    """Rows that a `RowMap` makes, never all of them at once unless they are asked for.

    Slices, masks and places give rows that are still to be made. `MemoryRecords` takes them where
    it takes an array, and makes each block in every pass.

    Parameters
    ----------
    rows
        An array, a CSR array or other `MappedRows`.
    function
        What makes one row of another.

    Notes
    -----
    **Guarantee**. Of a row that is not finite a row of zeros is made.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.features import Interactions
    >>> rows = Interactions().fit(np.eye(3)).mapped(np.array([[0.1, 0.2, 0.0], [np.nan, 1.0, 0.0]]))
    >>> rows.shape, rows[:1].shape
    ((2, 6), (1, 6))
    >>> rows.made()
    array([[0.1 , 0.2 , 0.  , 0.02, 0.  , 0.  ],
           [0.  , 0.  , 0.  , 0.  , 0.  , 0.  ]])
    """

    def __init__(self, rows: Any, function: RowMap) -> None:
        self._rows = canonical(rows) if hasattr(rows, "tocsr") else rows
        self._function = function

    @property
    def shape(self) -> tuple[int, int]:
        """How many rows there are, and how many numbers each has."""
        return int(self._rows.shape[0]), self._function.n_columns

    @property
    def dtype(self) -> np.dtype[Any]:
        """Double precision; of what is not made of numbers, its own type."""
        own: np.dtype[Any] = self._rows.dtype
        return np.dtype(np.float64) if own.kind in "biuf" else own

    @property
    def nbytes(self) -> int:
        """How much memory all of them would take."""
        return 8 * self.shape[0] * self.shape[1]

    @property
    def may_change(self) -> bool:
        """Whether others may write to the rows that they are made of."""
        return may_change_rows(self._rows)

    def __getitem__(self, at: Any) -> MappedRows:
        some = MappedRows.__new__(MappedRows)  # what is canonical stays so
        some._rows, some._function = self._rows[at], self._function
        return some

    def made(self, out: Array | None = None) -> Array:
        """Return the rows, written to ``out`` if it is given."""
        rows = self._rows.made() if isinstance(self._rows, MappedRows) else self._rows
        if may_change_rows(rows):  # after they were found to be finite
            rows = np.array(rows)
        made = np.empty(self.shape) if out is None else out
        odd = _odd(rows)
        if odd.any():
            kept = np.flatnonzero(~odd)
            made[:] = 0.0
            some = np.empty((kept.size, made.shape[1]))
            self._function(rows[kept], some)
            made[kept] = some
        else:
            self._function(rows, made)
        return made

    def blocks(self) -> Iterator[MappedRows]:
        """Yield the rows some at a time, at least once."""
        n, step = self.shape[0], usual_rows(self.shape[1])
        for start in range(0, max(n, 1), step):
            yield self[start : start + step]

    def whole(self, progress: Callable[[float], None]) -> npt.NDArray[np.float32]:
        """Return all rows in single precision, telling after each block what share is made."""
        made, start = np.empty(self.shape, np.float32), 0
        for block in self.blocks():
            stop = start + block.shape[0]
            made[start:stop] = block.made()
            start = stop
            progress(1.0 if stop == self.shape[0] else stop / self.shape[0])
        return made

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        whole, start = np.empty(self.shape), 0
        for block in self.blocks():
            stop = start + block.shape[0]
            block.made(whole[start:stop])
            start = stop
        return whole if dtype is None else whole.astype(dtype, copy=False)


def may_change_rows(rows: Any) -> bool:
    """Return whether others may write to rows: dense, to be made, or canonical and so one's own."""
    if isinstance(rows, MappedRows):
        return rows.may_change
    return not hasattr(rows, "tocsr") and may_change(rows)


def _odd(rows: Any) -> npt.NDArray[np.bool_]:
    """Return which rows are not finite."""
    if hasattr(rows, "tocsr"):
        odd = np.zeros(rows.shape[0], dtype=bool)
        at = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
        odd[at[~np.isfinite(rows.data)]] = True
        return odd
    found: npt.NDArray[np.bool_] = ~np.isfinite(rows).all(axis=1)
    return found


class Assumed(Protocol):
    """What a table brings that a guarantee must speak of."""

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What the guarantee must say, if anything."""


@dataclass(frozen=True)
class MappedTable:
    """A table that is not read yet, and whose rows are made of another's.

    Parameters
    ----------
    table
        The other one, with its labels and people.
    function
        What makes one row of another.
    facts
        What a guarantee must say of the other one.
    progress
        Told what share of the rows is made, all at once when they are read and in single precision:
        for rows that take longer to make than to keep. Without it they are made in every pass.
    """

    table: UnreadTable
    function: RowMap
    facts: Assumed
    progress: Callable[[float], None] | None = None

    @property
    def n_columns(self) -> int:
        """How many numbers a row has."""
        return self.function.n_columns

    @property
    def n_rows(self) -> int | None:
        """How many records there are, if that shows without reading; private."""
        return self.table.n_rows

    @property
    def has_people(self) -> bool:
        """Whether it is known whose each record is."""
        return has_people(self.table)

    def identifiers(self) -> Any:
        """Return one identifier for each record, after `read`."""
        assert has_people(self.table)
        return self.table.identifiers()

    def read(self) -> tuple[Any, npt.NDArray[Any] | None]:
        """Return the rows, made or still to be made, and the labels as they came."""
        rows, labels = self.table.read()
        mapped = MappedRows(rows, self.function)
        return mapped if self.progress is None else mapped.whole(self.progress), labels
