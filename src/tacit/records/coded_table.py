"""Open a table as cells: of each record the cell that it is in, in every column of a schema.

A column has public cells: the levels of a category, or bins of a number's declared range, and a
last cell for missing values. A record is in one cell of each column, which depends on this record
alone. Nothing else of a record is read.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeGuard

import numpy as np
import numpy.typing as npt

from tacit.io.errors import SchemaError, TableError
from tacit.io.memory_tables import (
    Chunk,
    chunks,
    columns_of_batch,
    n_rows_of,
    names_of,
    refuse_absent,
    type_of_column,
)
from tacit.io.reading import (
    Paths,
    TableFile,
    find_files,
    fingerprint,
    is_address,
    open_table,
    refuse_absent_in,
    shown_paths,
)
from tacit.io.values import Values
from tacit.records.privacy_unit import n_identifiers, people_of
from tacit.schema import (
    Age,
    Boolean,
    Category,
    ClassTarget,
    Indicator,
    Intervals,
    Number,
    NumberTarget,
    OpenCategory,
    Weekday,
    Year,
)
from tacit.schema.column_kinds import ClippedNumber
from tacit.schema.columns import Column
from tacit.schema.encoding import refuse_type
from tacit.schema.targets import Target

Array = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

_PIECE = 1 << 16  # records that are read as cells at once
OTHER = "(other)"  # the level of values that a category does not declare


@dataclass(frozen=True)
class CodedBlock:
    """Some records as cells.

    Parameters
    ----------
    codes
        The cell of each record in each column, shape (n, k).
    units
        Numbers scaled to [-1, 1] of their declared range, shape (n, k); NaN where missing, and in
        columns without numbers.
    """

    codes: Codes
    units: Array

    def where(self, mask: Mask) -> CodedBlock:
        """Return some of the records."""
        return CodedBlock(self.codes[mask], self.units[mask])


class Cells(Protocol):
    """The public cells of a column."""

    @property
    def name(self) -> str:
        """The column's name in the table."""

    @property
    def label(self) -> str:
        """What the cells are about, as it is printed."""

    @property
    def n_cells(self) -> int:
        """The number of cells; the last is that of missing values."""

    def refuse_type(self, dtype: Any) -> None:
        """Refuse a type of values that the column cannot read."""

    def read(self, values: Values) -> tuple[Codes, Array]:
        """Return the cell of each value and, for numbers, the value scaled to [-1, 1]."""


@dataclass(frozen=True)
class LevelCells:
    """The cells of a column of levels: one a level, one for other words, one for missing values.

    Parameters
    ----------
    column
        The column.
    tells_other
        Whether the other words of a category have a cell; otherwise they count as missing.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.io.values import ArrayValues
    >>> from tacit.records.coded_table import LevelCells
    >>> from tacit.schema import Category
    >>> cells = LevelCells(Category("sex", ("Female", "Male")))
    >>> cells.levels, cells.read(ArrayValues(np.array(["Male", "x", ""])))[0]
    (('Female', 'Male', '(other)'), array([1, 2, 3]))
    """

    column: Category | Boolean | Intervals | Weekday | ClassTarget
    tells_other: bool = True

    @property
    def name(self) -> str:
        """The column's name in the table."""
        return self.column.name

    @property
    def label(self) -> str:
        """The column's name."""
        return self.column.name

    @property
    def levels(self) -> tuple[str, ...]:
        """The names of the cells, without that of missing values."""
        column = self.column
        if isinstance(column, ClassTarget):
            return tuple(str(label) for label in column.classes)
        if isinstance(column, Boolean):
            return column.false[0], column.true[0]
        if isinstance(column, Intervals | Weekday):
            return column.levels
        return (*column.levels, OTHER) if self.tells_other else column.levels

    @property
    def n_declared(self) -> int:
        """The number of declared levels."""
        return len(self.levels) - (isinstance(self.column, Category) and self.tells_other)

    @property
    def n_cells(self) -> int:
        """The number of cells; the last is that of missing values."""
        return len(self.levels) + 1

    def refuse_type(self, dtype: Any) -> None:
        """Refuse a type of values that the column cannot read."""
        refuse_type(self.column, dtype)

    def read(self, values: Values) -> tuple[Codes, Array]:
        """Return the cell of each value; there are no numbers."""
        return self._codes(values), np.full(len(values), np.nan)

    def _codes(self, values: Values) -> Codes:
        column, missing = self.column, self.n_cells - 1
        if isinstance(column, ClassTarget):
            labels, mask = column.encode(values)
            order = np.argsort(column.labels, kind="stable")
            codes = np.full(len(values), missing, dtype=np.int64)
            codes[mask] = order[np.searchsorted(column.labels[order], labels)]
            return codes
        # A column that marks missing values reads its values as in a fit.
        features = _features(column, values)
        if isinstance(column, Boolean):
            codes = (features[:, 0] > 0).astype(np.int64)
            codes[features[:, 1] > 0] = missing
            return codes
        # One feature a level, then that of missing values; none is set for another word.
        n_levels = len(column.levels)
        codes = np.asarray(np.argmax(features[:, :n_levels], axis=1), dtype=np.int64)
        codes[~features[:, :n_levels].any(axis=1)] = n_levels
        codes[features[:, n_levels] > 0] = missing
        return codes


@dataclass(frozen=True)
class NumberCells:
    """The cells of a number: bins of equal width on its scale, and one for missing values.

    Parameters
    ----------
    column
        The number, or the years of a date, with its declared range and scale.
    n_bins
        The number of bins.
    whole
        Whether values are whole numbers: a bin then holds ``step`` of them.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.io.values import ArrayValues
    >>> from tacit.records.coded_table import NumberCells
    >>> from tacit.schema import Number
    >>> NumberCells(Number("age", 0, 100), 4).read(ArrayValues(np.array([10.0, 200.0, np.nan])))
    (array([0, 3, 4]), array([-0.8,  1. ,  nan]))
    """

    column: ClippedNumber
    n_bins: int
    whole: bool = False

    @property
    def name(self) -> str:
        """The column's name in the table."""
        return self.column.name

    @property
    def label(self) -> str:
        """The column's name; of a date also what is made of it, such as "age by born"."""
        return self.column.names()[0] if isinstance(self.column, Age | Year) else self.name

    @property
    def n_cells(self) -> int:
        """The number of cells; the last is that of missing values."""
        return self.n_bins + 1

    @property
    def by_integers(self) -> bool:
        """Whether bins hold whole numbers; on a logarithmic scale they do not."""
        return self.whole and not self.column.log

    @property
    def step(self) -> int:
        """The number of whole numbers in a bin."""
        return whole_step(self.column, self.n_bins)

    def edges(self) -> Array:
        """Return the n_bins + 1 edges; of whole numbers the first of each bin."""
        if self.by_integers:
            return math.ceil(self.column.lower) + self.step * np.arange(self.n_bins + 1.0)
        return self.values_at(np.linspace(-1.0, 1.0, self.n_bins + 1))

    def values_at(self, units: Array) -> Array:
        """Return the numbers that `read` scales to ``units``."""
        column, share = self.column, (np.asarray(units) + 1.0) / 2
        if not column.log:
            return np.asarray(column.lower + share * (column.upper - column.lower))
        if column.lower == 0.0:
            return np.asarray(np.expm1(share * math.log1p(column.upper)))
        low, high = math.log(column.lower), math.log(column.upper)
        return np.asarray(np.exp(low + share * (high - low)))

    def refuse_type(self, dtype: Any) -> None:
        """Refuse a type of values that the column cannot read."""
        column: Any = self.column  # all clipped numbers are columns
        refuse_type(column, dtype)

    def read(self, values: Values) -> tuple[Codes, Array]:
        """Return the bin of each value, and the value scaled to [-1, 1] of its range."""
        features = _features(self.column, values)
        missing = (features[:, 1] > 0) | np.isnan(features[:, 0])
        share = np.where(missing, 0.0, features[:, 0] + 0.5)
        if self.by_integers:
            column = self.column
            nearest = np.rint(column.lower + share * (column.upper - column.lower))
            place = (nearest - math.ceil(column.lower)) // self.step
        else:
            place = np.floor(share * self.n_bins)
        codes = np.clip(place, 0, self.n_bins - 1).astype(np.int64)
        return (
            np.where(missing, self.n_bins, codes),
            np.where(missing, np.nan, np.clip(2 * share - 1, -1.0, 1.0)),
        )


def whole_step(column: ClippedNumber, most_bins: int) -> int:
    """Return how many whole numbers a bin holds, so that there are at most so many bins."""
    n_values = math.floor(column.upper) - math.ceil(column.lower) + 1
    return max(-(-n_values // most_bins), 1)


def _features(
    column: Category | Boolean | Intervals | Weekday | ClippedNumber, values: Values
) -> npt.NDArray[Any]:
    """Return a column's features, all levels and the mark of missing values included."""
    declared: Any = column  # all columns are dataclasses
    marked: Any = replace(declared, missing=Indicator())
    if getattr(marked, "reference", None) is not None:
        marked = replace(marked, reference=None)
    # Marks of levels are 0 or 1, and there may be many.
    dtype = np.int8 if isinstance(column, Category | Intervals | Weekday) else np.float64
    out = np.zeros((len(values), len(marked.names())), dtype=dtype)
    marked.write(values, out)
    return out


def level_cells(column: Column | Target) -> LevelCells | None:
    """Return the cells of a column of levels; None for a number.

    Raises
    ------
    SchemaError
        If the words of the column are not declared.
    """
    if isinstance(column, OpenCategory):
        raise SchemaError(
            f"column {column.name!r}: its words are not declared, so that it has no public "
            "levels; declare them, kind = 'category' with values = [...], or describe other "
            "columns."
        )
    if isinstance(column, Category | Boolean | Intervals | Weekday | ClassTarget):
        return LevelCells(column)
    return None


def number_of_target(target: NumberTarget) -> Number:
    """Return a target as a column of numbers."""
    return Number(target.name, target.lower, target.upper, missing_codes=target.missing_codes)


def code_chunk(chunk: Chunk, n: int, cells: Sequence[Cells]) -> CodedBlock:
    """Return the cells of a chunk's records."""
    codes = np.zeros((n, len(cells)), dtype=np.int64)
    units = np.full((n, len(cells)), np.nan)
    for place, cell in enumerate(cells):
        codes[:, place], units[:, place] = cell.read(chunk[cell.name])
    return CodedBlock(codes, units)


def pieces(n: int, chunk: Chunk) -> Iterator[tuple[int, Chunk]]:
    """Yield a chunk in pieces, so that marks of many levels need little memory."""
    if n <= _PIECE:
        yield n, chunk
        return
    for start in range(0, n, _PIECE):
        mask = np.zeros(n, dtype=bool)
        mask[start : start + _PIECE] = True
        size = min(_PIECE, n - start)
        yield size, {name: values.where(mask) for name, values in chunk.items()}


class CodedRecords(Protocol):
    """Records as cells, of which sums over blocks are available."""

    def sum(self, function: Callable[[CodedBlock], Array]) -> Array:
        """Add up an array of whole numbers over blocks. Private."""


class CodedTable:
    """A table in memory or in files, read in blocks: one pass, and one before it for people.

    Parameters
    ----------
    table
        A frame, an Arrow table, a dictionary of columns, or the path of a file or several.
    cells
        The cells of the columns to read.
    unit
        The name of the column that identifies people, or an identifier for each record; one record
        of each person counts, chosen by the identifier alone. None counts every record.
    delimiter
        The separator of the fields of a CSV.

    Notes
    -----
    **Guarantee**. A record's cells depend on this record alone. Columns are checked at once, and
    no record is read before `sum`. A column of a type that its declaration cannot read is refused
    by the type alone. A file that changes between the passes is refused.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.records.coded_table import CodedTable, LevelCells
    >>> from tacit.schema import Category
    >>> cells = (LevelCells(Category("sex", ("f", "m"))),)
    >>> table = CodedTable({"sex": ["m", "f", "m"]}, cells)
    >>> table.sum(lambda block: np.bincount(block.codes[:, 0], minlength=4).astype(float))
    array([1., 2., 0., 0.])
    """

    def __init__(
        self,
        table: Any,
        cells: Sequence[Cells],
        *,
        unit: Any = None,
        delimiter: str | None = None,
        progress: Callable[[float], None] | None = None,
    ) -> None:
        self._cells, self._progress = tuple(cells), progress
        self._column = unit if isinstance(unit, str) else None
        self._identifiers = None if unit is None or isinstance(unit, str) else unit
        self._table = table
        self._file: TableFile | None = None
        self._paths: Paths | None = None
        names = [cell.name for cell in self._cells] + ([self._column] if self._column else [])
        if is_paths(table):
            self._paths, self._file = table, open_table(table, delimiter=delimiter)
            refuse_absent_in(table, self._file.names(), names)
            try:
                for cell in self._cells:
                    cell.refuse_type(self._file.type_of(cell.name))
            except TableError as error:
                raise TableError(f"{shown_paths(table)}: {error}") from None
            if self._identifiers is not None:
                raise TableError(
                    "unit is one identifier for each record, and a file has its own order of "
                    "records; name a column of the file, or read it into memory first."
                )
            return
        if delimiter is not None:
            raise TableError("delimiter is for .csv and .tsv files; leave it out.")
        refuse_absent(names_of(table), names)
        for cell in self._cells:
            cell.refuse_type(type_of_column(table, cell.name))
        if self._identifiers is not None and n_identifiers(self._identifiers) != n_rows_of(table):
            raise TableError(
                "the table and unit have different lengths; pass one identifier for each record."
            )

    @property
    def has_people(self) -> bool:
        """Whether records are grouped by person."""
        return self._column is not None or self._identifiers is not None

    def sum(self, function: Callable[[CodedBlock], Array]) -> Array:
        """Add up an array of whole numbers over blocks of records. Private."""
        before = self._fingerprint()
        chosen = self._one_each() if self.has_people else None
        names = list(dict.fromkeys(cell.name for cell in self._cells))
        total: Array | None = None
        start = 0
        for n, chunk in self._pieces(names):
            block = code_chunk(chunk, n, self._cells)
            if chosen is not None:
                block = block.where(chosen[start : start + n])
            start += n
            part = function(block)
            total = part if total is None else total + part
        if self._fingerprint() != before or (chosen is not None and start != len(chosen)):
            raise TableError("the table changed while it was read; read it when it is at rest.")
        if total is None:
            total = function(_no_records(len(self._cells)))
        return total

    def _one_each(self) -> Mask:
        """Mark one record of each person."""
        identifiers = self._identifiers
        if self._column is not None:
            identifiers = [
                who
                for _, chunk in self._chunks([self._column])
                for who in chunk[self._column].raw()
            ]
        people = people_of(identifiers)
        mask = np.zeros(len(people), dtype=bool)
        mask[people.one_each()] = True
        return mask

    def _pieces(self, names: Sequence[str]) -> Iterator[tuple[int, Chunk]]:
        for n, chunk in self._chunks(names):
            yield from pieces(n, chunk)

    def _chunks(self, names: Sequence[str]) -> Iterator[tuple[int, Chunk]]:
        if self._file is None:
            yield from chunks(self._table, names)
            return
        n_read, capacity = 0, max(self._file.count(), 1)
        for batch in self._file.batches(names):
            yield batch.num_rows, columns_of_batch(batch)
            n_read += batch.num_rows
            if self._progress is not None:
                self._progress(min(n_read / capacity, 1.0))

    def _fingerprint(self) -> str:
        """Hash names, sizes and times of local files; copies of remote ones do not change."""
        if self._paths is None:
            return ""
        return fingerprint([file for file in find_files(self._paths) if not is_address(file)])


def _no_records(n_columns: int) -> CodedBlock:
    return CodedBlock(np.zeros((0, n_columns), dtype=np.int64), np.zeros((0, n_columns)))


def is_paths(table: Any) -> TypeGuard[Paths]:
    """Return whether a table is named by a path, or by several.

    Examples
    --------
    >>> from tacit.records.coded_table import is_paths
    >>> is_paths("people.csv"), is_paths(["a.csv", "b.csv"]), is_paths({"age": [1]})
    (True, True, False)
    """
    if isinstance(table, str | os.PathLike):
        return True
    return (
        isinstance(table, list | tuple)
        and bool(table)
        and all(isinstance(path, str | os.PathLike) for path in table)
    )
