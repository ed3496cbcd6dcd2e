"""Describe a table before it is read: only its shape and its column names are known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, TypeGuard, runtime_checkable

import numpy.typing as npt

from tacit.records.people import People, n_identifiers, people_of
from tacit.records.rows_and_labels import as_labels, as_rows, refuse_types, shape_of
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
    >>> from tacit.records import TableInMemory
    >>> TableInMemory([[1.0, 2.0], [3.0, 4.0]]).n_columns
    2
    """

    def __init__(self, X: Any, y: Any = None, unit: Any = None) -> None:
        self._rows, self._labels, self._unit = X, y, unit
        self._shape = shape_of(X)
        refuse_types(X)
        if y is not None and _length(y) not in (None, self._shape[0]):
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
    >>> from tacit.records.unread import UnreadRecords
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


def _length(y: Any) -> int | None:
    shape = getattr(y, "shape", None)
    if shape:
        return int(shape[0])
    return len(y) if hasattr(y, "__len__") else None
