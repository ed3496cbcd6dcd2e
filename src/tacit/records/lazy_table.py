"""Tables that are read later: only shape and names are known, or rows a map makes on demand."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol, TypeGuard, runtime_checkable

import numpy as np
import numpy.typing as npt

from tacit.arrays import Array, Mask
from tacit.disk_arrays import may_change
from tacit.records.block import canonical, usual_rows
from tacit.records.privacy_unit import People, n_identifiers, people_of
from tacit.records.rows_and_labels import (
    as_labels,
    as_rows,
    refuse_label_types,
    refuse_types,
    shape_of,
)
from tacit.records.source import RecordSource, assumptions_of_source


@runtime_checkable
class UnreadTable(Protocol):
    """Rows and labels that are read after a plan has been charged, and not before."""

    @property
    def n_columns(self) -> int:
        """Number of columns."""

    @property
    def n_rows(self) -> int | None:
        """Number of records, if it is known without reading; private."""

    def read(self) -> tuple[Any, npt.NDArray[Any] | None]:
        """Return the rows, ready for `MemoryRecords`, and the labels as given."""


@runtime_checkable
class TableOfPeople(UnreadTable, Protocol):
    """An unread table with an identifier for each record, if ``has_people``."""

    @property
    def has_people(self) -> bool:
        """Whether the person of each record is known."""

    def identifiers(self) -> Any:
        """Return one identifier for each record, after `read`."""


def has_people(table: UnreadTable) -> TypeGuard[TableOfPeople]:
    """Return whether the person of each record of a table is known."""
    return isinstance(table, TableOfPeople) and table.has_people


def read_people(table: TableOfPeople) -> People:
    """Return the person of each record of a table, after `read`."""
    return people_of(table.identifiers())


def shown_rows(table: UnreadTable) -> int | None:
    """Return the number of records, if it is known without reading and no people are; private."""
    return None if has_people(table) else table.n_rows


class TableInMemory:
    """An array, a sparse array, a frame or an Arrow table, with labels and people or without.

    Examples
    --------
    >>> from tacit.records.lazy_table import TableInMemory
    >>> TableInMemory([[1.0, 2.0], [3.0, 4.0]]).n_columns
    2
    """

    def __init__(self, X: Any, y: Any = None, unit: Any = None) -> None:
        self._rows, self._labels, self._unit = X, y, unit
        self._shape = shape_of(X)
        refuse_types(X)
        if y is not None:
            refuse_label_types(y)
        if y is not None and known_length(y) not in (None, self._shape[0]):
            raise ValueError("X and y are of different lengths; pass one label for each row.")
        if unit is not None and n_identifiers(unit) != self._shape[0]:
            raise ValueError("X and unit are of different lengths; pass one identifier a row.")

    @property
    def has_people(self) -> bool:
        """Whether the person of each record is known."""
        return self._unit is not None

    def identifiers(self) -> Any:
        """Return one identifier for each record."""
        return self._unit

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return self._shape[1]

    @property
    def n_rows(self) -> int:
        """Number of records; private."""
        return self._shape[0]

    def read(self) -> tuple[Any, npt.NDArray[Any] | None]:
        """Return the checked rows, and the labels as given."""
        rows, _ = as_rows(self._rows)
        if self._labels is None:
            return rows, None
        labels = as_labels(self._labels)
        if len(labels) != rows.shape[0]:
            raise ValueError("X and y are of different lengths; pass one label for each row.")
        return rows, labels


@dataclass(frozen=True)
class UnreadRecords:
    """A record source in place of a table: it has columns, but its rows cannot be read.

    ``unit``, if people are known, has an identifier for each record in their order.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.records import Bounds, MemoryRecords
    >>> from tacit.records.lazy_table import UnreadRecords
    >>> UnreadRecords(MemoryRecords(np.ones((5, 2)), None, Bounds())).n_columns
    2
    """

    records: RecordSource
    n_rows: None = None  # counting would read the records
    unit: Any = None

    @property
    def assumptions(self) -> tuple[str, ...]:
        """Assumptions about the source that a guarantee must state."""
        return assumptions_of_source(self.records)

    @property
    def has_people(self) -> bool:
        """Whether the person of each record is known."""
        return self.unit is not None

    def identifiers(self) -> Any:
        """Return one identifier for each record."""
        return self.unit

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return self.records.n_features

    def read(self) -> tuple[Any, npt.NDArray[Any] | None]:
        """Raise: a source gives only sums over records."""
        raise TypeError(
            "this estimator looks at single rows, and a record source gives sums over blocks of "
            "them and nothing else; pass the rows themselves, as an array or a frame."
        )


def known_length(y: Any) -> int | None:
    """Return the number of labels, if it is known without reading them."""
    shape = getattr(y, "shape", None)
    if shape:
        return int(shape[0])
    return len(y) if hasattr(y, "__len__") else None


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
            places = np.flatnonzero(~odd)
            made[:] = 0.0
            some = np.empty((places.size, made.shape[1]))
            self._function(rows[places], some)
            made[places] = some
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


def _odd(rows: Any) -> Mask:
    """Return which rows are not finite."""
    if hasattr(rows, "tocsr"):
        odd = np.zeros(rows.shape[0], dtype=bool)
        at = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
        odd[at[~np.isfinite(rows.data)]] = True
        return odd
    found: Mask = ~np.isfinite(rows).all(axis=1)
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
