"""Read tables in memory (pandas, polars, pyarrow, dictionaries) as columns of raw values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from tacit.column_values import as_objects, type_of
from tacit.io.arrow import ArrowValues
from tacit.io.dates import DateValues
from tacit.io.errors import TableError, wrong_type
from tacit.io.values import ArrayValues, Values

Chunk = Mapping[str, Values]

_TIMES = "mM"  # NumPy's kinds for dates and durations

DECLARED = "which the schema declares; check the name in the schema and in the table's header"


def n_rows_of(table: Any) -> int:
    """Return the number of records of a table.

    Examples
    --------
    >>> from tacit.io.memory_tables import n_rows_of
    >>> n_rows_of({"age": [30, 40]})
    2
    """
    if isinstance(table, Mapping):
        return max((len(column) for column in table.values()), default=0)
    if hasattr(table, "num_rows"):
        return int(table.num_rows)
    _refuse_nameless(table)
    return len(table)


DIFFERENT_LENGTHS = "the columns of the table have different lengths; make them the same."


def chunks(table: Any, names: Sequence[str]) -> Iterator[tuple[int, Chunk]]:
    """Yield the columns of a table in chunks, each with its number of records.

    Parameters
    ----------
    table
        A pandas or polars frame, a pyarrow Table or RecordBatch, a dictionary of columns, or a
        NumPy array with named fields.
    names
        The columns to read; others are ignored.

    Raises
    ------
    TableError
        If a column is missing, or the table has no named columns.

    Examples
    --------
    >>> from tacit.io.memory_tables import chunks
    >>> [(n, list(c)) for n, c in chunks({"age": [30, 40], "name": ["a", "b"]}, ["age"])]
    [(2, ['age'])]
    """
    refuse_absent(names_of(table), names)
    if type(table).__module__.partition(".")[0] == "pyarrow":
        table = table.select(list(names))
        batches = table.to_batches() if hasattr(table, "to_batches") else [table]
        for batch in batches:
            yield batch.num_rows, columns_of_batch(batch)
        return
    columns = {name: values_of(name, table[name]) for name in names}
    n_rows = n_rows_of(table)
    if any(len(column) != n_rows for column in columns.values()):
        raise TableError(DIFFERENT_LENGTHS)
    yield n_rows, columns


def columns_of_batch(batch: Any) -> Chunk:
    """Return the columns of a pyarrow RecordBatch."""
    return {name: ArrowValues(batch.column(name), name) for name in batch.schema.names}


def _refuse_nameless(table: Any) -> None:
    if isinstance(table, Mapping):
        return
    if hasattr(table, "collect"):  # a polars LazyFrame has not computed its rows
        raise TableError("the table is a lazy frame, without rows so far; pass X.collect().")
    if hasattr(table, "columns"):
        return
    if getattr(getattr(table, "dtype", None), "names", None):
        return
    raise TableError(
        f"a table with named columns is needed, got {type(table).__name__}; pass a pandas or "
        "polars frame, a pyarrow Table or a dictionary of columns; a TableModel reads the file at "
        "a path by fit_file."
    )


def names_of(table: Any) -> list[Any]:
    """Return the names of a table's columns, of any type."""
    _refuse_nameless(table)
    if isinstance(table, Mapping):
        return list(table)
    if hasattr(table, "schema") and hasattr(table.schema, "names"):
        names = table.schema.names
        return list(names() if callable(names) else names)
    return list(table.columns if hasattr(table, "columns") else table.dtype.names)


def type_of_column(table: Any, name: str) -> Any:
    """Return the type of a column in its library; None if it has none."""
    if type(table).__module__.partition(".")[0] == "pyarrow":
        return table.schema.field(name).type
    return type_of(table[name])


def refuse_absent(present: Sequence[Any], names: Sequence[str], why: str = DECLARED) -> None:
    """Refuse a table that lacks a named column or has it twice; ``why`` gives the reason."""
    # Only declared names are quoted: without a header, the first record is in its place.
    for name in names:
        found = sum(1 for other in present if isinstance(other, str) and other == name)
        if found != 1:
            how = "no column" if not found else "several columns"
            raise TableError(f"the table has {how} named {name!r}, {why}, letter by letter.")


def values_of(name: str, column: Any) -> Values:
    """Wrap a column; the reader is chosen by its type alone, never by its values."""
    library = type(column).__module__.partition(".")[0]
    if library == "pyarrow":
        return ArrowValues(_one_array(column), name)
    if library == "pandas":
        return _of_pandas(name, column)
    if library == "polars":
        return _of_polars(name, column)
    array = column if isinstance(column, np.ndarray) else as_objects(list(column))
    if array.dtype.kind == "m":
        raise wrong_type(name, array.dtype)
    if array.ndim != 1:
        raise TableError(f"column {name!r} has {array.ndim} dimensions; pass one value a record.")
    if array.dtype.kind == "M":
        if isinstance(array, np.ma.MaskedArray):
            array = array.filled(np.datetime64("NaT"))
        return DateValues(array, name)
    if isinstance(array, np.ma.MaskedArray):
        array = as_objects(array.tolist())
    return ArrayValues(array)


def _of_pandas(name: str, column: Any) -> Values:
    import pandas as pd

    dtype = column.dtype
    if isinstance(dtype, pd.ArrowDtype) or getattr(dtype, "storage", None) == "pyarrow":
        # Not through Python objects, because invalid UTF-8 would raise.
        return ArrowValues(_one_array(column.array.__arrow_array__()), name)
    if isinstance(dtype, np.dtype) and dtype.kind == "M":
        return DateValues(column.to_numpy(), name)
    kind = dtype.categories.dtype if isinstance(dtype, pd.CategoricalDtype) else dtype
    if kind.kind in _TIMES or isinstance(kind, pd.PeriodDtype | pd.IntervalDtype):
        raise wrong_type(name, dtype)
    if isinstance(dtype, np.dtype) and dtype.kind in "biuf":
        return ArrayValues(column.to_numpy())
    return ArrayValues(column.astype(object).to_numpy())


def _of_polars(name: str, column: Any) -> Values:
    import polars as pl

    dtype = column.dtype
    if dtype == pl.Date or (dtype == pl.Datetime and dtype.time_zone is None):
        return DateValues(column.to_numpy(), name, dtype)
    if dtype.is_temporal() or dtype.is_nested():
        raise wrong_type(name, dtype)
    if dtype.is_integer() or dtype.is_float():
        return ArrayValues(column.cast(pl.Float64).to_numpy())  # NaN for null
    return ArrayValues(as_objects(column.to_list()))


def _one_array(column: Any) -> Any:
    """Return a pyarrow Array from an Array or a chunked column."""
    return column.combine_chunks() if hasattr(column, "combine_chunks") else column
