"""Tables in memory, whatever library they come from, as columns of raw values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.preprocessing.arrow_values import ArrowValues
from tacit.preprocessing.errors import TableError
from tacit.preprocessing.values import ArrayValues, Values

Chunk = Mapping[str, Values]

DECLARED = "which the schema declares; check the name in the schema and in the table's header"


def n_rows_of(table: Any) -> int:
    """Return how many records a table has.

    Examples
    --------
    >>> from tacit.preprocessing.tables import n_rows_of
    >>> n_rows_of({"age": [30, 40]})
    2
    """
    if isinstance(table, Mapping):
        return max((len(column) for column in table.values()), default=0)
    if hasattr(table, "num_rows"):
        return int(table.num_rows)
    _refuse_nameless(table)
    return len(table)


def chunks(table: Any, names: Sequence[str]) -> Iterator[tuple[int, Chunk]]:
    """Yield the columns of a table by name, some records at a time, with their number.

    Parameters
    ----------
    table
        A pandas or polars frame, a pyarrow Table or RecordBatch, a dictionary of columns, or a
        NumPy array with named fields.
    names
        The columns wanted; others are not looked at.

    Raises
    ------
    TableError
        If a column is missing, or the table has no named columns.

    Examples
    --------
    >>> from tacit.preprocessing.tables import chunks
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
    columns = {name: ArrayValues(_array(name, table[name])) for name in names}
    n_rows = n_rows_of(table)
    if any(len(column) != n_rows for column in columns.values()):
        raise TableError("the columns of the table have different lengths; make them the same.")
    yield n_rows, columns


def columns_of_batch(batch: Any) -> Chunk:
    """Return the columns of a pyarrow RecordBatch."""
    return {name: ArrowValues(batch.column(name), name) for name in batch.schema.names}


def _refuse_nameless(table: Any) -> None:
    if isinstance(table, Mapping):
        return
    if hasattr(table, "collect"):  # a polars LazyFrame has no rows yet
        raise TableError("the table is a lazy frame, which has no rows yet; pass X.collect().")
    if hasattr(table, "columns"):
        return
    if getattr(getattr(table, "dtype", None), "names", None):
        return
    raise TableError(
        f"a table with named columns is needed, got {type(table).__name__}; pass a pandas or "
        "polars frame, a pyarrow Table or a dictionary of columns."
    )


def names_of(table: Any) -> list[Any]:
    """Return the names of a table's columns, whatever they are."""
    _refuse_nameless(table)
    if isinstance(table, Mapping):
        return list(table)
    if hasattr(table, "schema") and hasattr(table.schema, "names"):
        names = table.schema.names
        return list(names() if callable(names) else names)
    return list(table.columns if hasattr(table, "columns") else table.dtype.names)


def refuse_absent(present: Sequence[Any], names: Sequence[str], why: str = DECLARED) -> None:
    """Refuse a table that does not have each named column once, ``why`` it is to have it."""
    # Only declared names are quoted: what stands in the header's place might be a record.
    for name in names:
        found = sum(1 for other in present if isinstance(other, str) and other == name)
        if found != 1:
            how = "no column" if not found else "several columns"
            raise TableError(f"the table has {how} named {name!r}, {why}, letter by letter.")


def _array(name: str, column: Any) -> npt.NDArray[Any]:
    """Return a column as a one-dimensional array of numbers, text or objects."""
    library = type(column).__module__.partition(".")[0]
    if library == "pyarrow":
        array = np.array(column.to_pylist(), dtype=object)
    elif library == "pandas":
        numeric = isinstance(column.dtype, np.dtype) and column.dtype.kind in "biuf"
        array = column.to_numpy() if numeric else column.astype(object).to_numpy()
    elif library == "polars":
        array = _objects(column.to_list()) if column.null_count() else column.to_numpy()
    elif isinstance(column, np.ndarray):
        array = column
    else:
        array = _objects(list(column))
    if isinstance(array, np.ma.MaskedArray):
        array = _objects(array.tolist())
    if array.ndim != 1:
        raise TableError(f"column {name!r} has {array.ndim} dimensions; pass one value a record.")
    return array


def _objects(values: list[Any]) -> npt.NDArray[Any]:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array
