"""Compute rows from other rows, a block at a time, in every pass."""

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

    Contract: a mapped row depends on its original row only, to the last bit: not on the rows around
    it, on their number or on their memory layout. Otherwise one record more would change others.
    """

    @property
    def n_columns(self) -> int:
        """Number of columns of a mapped row."""

    def __call__(self, rows: Any, out: Array) -> None:
        """Write the images of finite rows, dense or a canonical CSR array, to ``out``."""


class MappedRows:
    """Rows that a `RowMap` computes, block by block unless all are requested.

    Slices, masks and indices give rows that are still lazy. `MemoryRecords` accepts them in place
    of an array, and computes each block in every pass.

    Parameters
    ----------
    rows
        An array, a CSR array or other `MappedRows`.
    function
        The map of one row.

    Notes
    -----
    **Guarantee**. A row that is not finite is mapped to a row of zeros.

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
        """Numbers of rows and of columns."""
        return int(self._rows.shape[0]), self._function.n_columns

    @property
    def dtype(self) -> np.dtype[Any]:
        """Double precision; the original dtype if that is not numeric."""
        own: np.dtype[Any] = self._rows.dtype
        return np.dtype(np.float64) if own.kind in "biuf" else own

    @property
    def nbytes(self) -> int:
        """Memory that all rows would take, in bytes."""
        return 8 * self.shape[0] * self.shape[1]

    @property
    def may_change(self) -> bool:
        """Whether others may write to the original rows."""
        return may_change_rows(self._rows)

    def __getitem__(self, at: Any) -> MappedRows:
        some = MappedRows.__new__(MappedRows)  # skip __init__: the rows are canonical already
        some._rows, some._function = self._rows[at], self._function
        return some

    def made(self, out: Array | None = None) -> Array:
        """Compute the rows, into ``out`` if it is given."""
        rows = self._rows.made() if isinstance(self._rows, MappedRows) else self._rows
        if may_change_rows(rows):  # others could change them after the check for finite values
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
        """Yield the rows in blocks, at least one."""
        n, step = self.shape[0], usual_rows(self.shape[1])
        for start in range(0, max(n, 1), step):
            yield self[start : start + step]

    def whole(self, progress: Callable[[float], None]) -> npt.NDArray[np.float32]:
        """Return all rows in single precision; report the finished share after each block."""
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
    """Return whether others may write to rows; canonical sparse rows are private copies."""
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
    """A table with assumptions that a guarantee must state."""

    @property
    def assumptions(self) -> tuple[str, ...]:
        """Assumptions that the guarantee must state, if any."""


@dataclass(frozen=True)
class MappedTable:
    """A table that is not read yet, and whose rows are computed from another table's.

    Parameters
    ----------
    table
        The original table, with its labels and people.
    function
        The map of one row.
    facts
        Assumptions of the original table.
    progress
        If given, all rows are computed once, when they are read, in single precision, and the
        finished share is reported to it. Use it for rows that take longer to compute than to
        store. Without it they are computed in every pass.
    """

    table: UnreadTable
    function: RowMap
    facts: Assumed
    progress: Callable[[float], None] | None = None

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return self.function.n_columns

    @property
    def n_rows(self) -> int | None:
        """Number of records, if it is known without reading; private."""
        return self.table.n_rows

    @property
    def has_people(self) -> bool:
        """Whether the person of each record is known."""
        return has_people(self.table)

    def identifiers(self) -> Any:
        """Return one identifier for each record, after `read`."""
        assert has_people(self.table)
        return self.table.identifiers()

    def read(self) -> tuple[Any, npt.NDArray[Any] | None]:
        """Return the rows, computed or lazy, and the labels as given."""
        rows, labels = self.table.read()
        mapped = MappedRows(rows, self.function)
        return mapped if self.progress is None else mapped.whole(self.progress), labels
