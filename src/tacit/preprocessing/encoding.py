"""From a table and its schema to an array of features and one of labels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import compress
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.disk_arrays import zeros_somewhere
from tacit.preprocessing.errors import SchemaError, TableError
from tacit.preprocessing.files.memory_tables import (
    Chunk,
    chunks,
    columns_of_batch,
    n_rows_of,
    names_of,
    refuse_absent,
    type_of_column,
)
from tacit.preprocessing.files.reading import TableFile, open_table, refuse_absent_in
from tacit.preprocessing.files.several import Paths, shown_paths
from tacit.preprocessing.schema.columns import Column
from tacit.preprocessing.schema.schema import Schema

Rows = npt.NDArray[Any]

_OF_UNIT = (
    'which is to say whose a record is (--unit, or kind = "unit" in the schema); check the name '
    "there and in the table's header"
)


def write_rows(chunk: Chunk, columns: Sequence[Column], out: Rows) -> None:
    """Fill rows that are zero so far with the features of a chunk's records."""
    start = 0
    for column in columns:
        width = len(column.names())
        column.write(chunk[column.name], out[:, start : start + width])
        start += width


def encode_rows(table: Any, columns: Sequence[Column], dtype: npt.DTypeLike = np.float64) -> Rows:
    """Return the features of every record of a table in memory.

    Examples
    --------
    >>> from tacit.preprocessing import Category, Number
    >>> from tacit.preprocessing.encoding import encode_rows
    >>> columns = (Number("age", 0, 100), Category("sex", ("Female", "Male")))
    >>> encode_rows({"age": [30], "sex": ["Male"]}, columns)
    array([[-0.2,  0. ,  1. ]])
    """
    names = list(dict.fromkeys(column.name for column in columns))
    rows = _zeros(n_rows_of(table), sum(len(column.names()) for column in columns), dtype)
    start = 0
    for n, chunk in chunks(table, names):
        write_rows(chunk, columns, rows[start : start + n])
        start += n
    return rows


def encode_table(
    table: Any,
    schema: Schema,
    dtype: npt.DTypeLike = np.float64,
    *,
    identifiers: list[Any] | None = None,
    places: list[int] | None = None,
) -> tuple[Rows, npt.NDArray[Any]]:
    """Return the features and the labels of the records that have a label.

    Parameters
    ----------
    table
        A pandas or polars frame, a pyarrow Table, a dictionary of columns, or a NumPy array with
        named fields.
    schema
        What is public about the table, with a target.
    dtype
        The type of the features.
    identifiers
        A list to which what the schema's unit says is appended, for each record in both.
    places
        A list to which the place of each of these records in the table is appended.

    Returns
    -------
    rows, labels
        Records whose label the schema does not declare, or that have none, are left out of both.

    Examples
    --------
    >>> from tacit.preprocessing import ClassTarget, Number, Schema, encode_table
    >>> schema = Schema((Number("age", 0, 100),), ClassTarget("ill", ("no", "yes")))
    >>> encode_table({"age": [30, 40, 50], "ill": ["yes", "?", "no"]}, schema)
    (array([[-0.2],
           [ 0. ]]), array(['yes', 'no'], dtype='<U3'))
    """
    _check_can_fit(schema)
    filler = _Filler(schema, n_rows_of(table), dtype, identifiers, places)
    for n, chunk in chunks(table, _wanted(schema, identifiers is not None)):
        filler.add(n, chunk)
    return filler.result()


def encode_file(
    path: Paths,
    schema: Schema,
    dtype: npt.DTypeLike = np.float64,
    *,
    delimiter: str | None = None,
    progress: Callable[[float], None] | None = None,
    identifiers: list[Any] | None = None,
) -> tuple[Rows, npt.NDArray[Any]]:
    r"""Return the features and the labels of a file's records, reading some at a time.

    Parameters
    ----------
    path
        A ``.csv`` or ``.tsv`` file (also with ``.gz``), ``.parquet``, ``.arrow`` or ``.feather``; a
        pattern such as ``part-*.parquet``, an address that fsspec knows, or a list of these.
    schema
        What is public about the table, with a target.
    dtype
        The type of the features.
    delimiter
        What separates the fields of a CSV; by default a comma, and a tab in ``.tsv``.
    progress
        Called now and then with the share of the file that has been read, 1.0 at the end.
    identifiers
        A list to which what the schema's unit says is appended, for each record in both.

    Returns
    -------
    rows, labels
        Records whose label the schema does not declare, or that have none, are left out of both.

    Raises
    ------
    TableError
        If the file cannot be read, lacks a column or has no record that counts. Messages never
        repeat what stands in the file.
    SchemaError
        If the schema has no target or nothing to predict it from.

    Notes
    -----
    **Guarantee**

    1. A record decides its own row and label, and whether it counts, and nothing else.
    2. Memory: the array of features, the labels, and some megabytes. Features that would take more
       than a quarter of the memory are written to a nameless file instead (`tacit.disk_arrays`).
    3. A file that changes while it is read, and one that is named twice, is refused.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from tacit.preprocessing import ClassTarget, Number, Schema, encode_file
    >>> path = pathlib.Path(tempfile.mkdtemp(), "people.csv")
    >>> _ = path.write_text("age,ill\n30,yes\n40,?\n50,no\n")
    >>> schema = Schema((Number("age", 0, 100),), ClassTarget("ill", ("no", "yes")))
    >>> encode_file(path, schema)
    (array([[-0.2],
           [ 0. ]]), array(['yes', 'no'], dtype='<U3'))
    """
    _check_can_fit(schema)
    names = _wanted(schema, identifiers is not None)
    file = open_table(path, delimiter=delimiter)
    refuse_absent_in(path, file.names(), names)
    filler = _Filler(schema, file.count(), dtype, identifiers)
    for batch in file.batches(names):
        filler.add(batch.num_rows, columns_of_batch(batch))
        if progress is not None:
            progress(filler.share)
    rows, labels = filler.result()
    if not len(rows):
        raise TableError(
            f"{shown_paths(path)} has no record that counts: none has both as many fields as the "
            "header and a target that the schema declares; check the target's classes and the "
            "delimiter."
        )
    if progress is not None:
        progress(1.0)
    return rows, labels


def refuse_without_columns(table: Any, schema: Schema) -> None:
    """Refuse a table in memory without the declared columns; no value is read."""
    _check_can_fit(schema)
    refuse_absent(names_of(table), _unit_of(schema), _OF_UNIT)
    refuse_absent(names_of(table), _wanted(schema, False))
    assert schema.target is not None
    schema.target.refuse_type(type_of_column(table, schema.target.name))


def refuse_file_without_columns(
    path: Paths, schema: Schema, *, delimiter: str | None = None
) -> None:
    """Refuse a file that is absent or lacks a declared column; only its header is read."""
    _check_can_fit(schema)
    table = open_table(path, delimiter=delimiter)
    present = table.names()
    refuse_absent_in(path, present, _unit_of(schema), _OF_UNIT)
    refuse_absent_in(path, present, _wanted(schema, False))
    refuse_type_in(path, table, schema)


def refuse_type_in(path: Paths, table: TableFile, schema: Schema) -> None:
    """Refuse a file whose target is of a type that no declared label can be of."""
    assert schema.target is not None
    try:
        schema.target.refuse_type(table.type_of(schema.target.name))
    except TableError as error:
        raise TableError(f"{shown_paths(path)}: {error}") from None


def _wanted(schema: Schema, with_unit: bool) -> list[str]:
    assert schema.target is not None
    unit = _unit_of(schema) if with_unit else []
    return [*(column.name for column in schema.encoded), *unit, schema.target.name]


def _unit_of(schema: Schema) -> list[str]:
    return [] if schema.unit is None else [schema.unit]


def _check_can_fit(schema: Schema) -> None:
    if schema.target is None:
        raise SchemaError(
            "the schema has no target; declare what is predicted, such as "
            'income = { kind = "target", classes = ["<=50K", ">50K"] }.'
        )
    if not schema.encoded:
        raise SchemaError(
            "every column of the schema is ignored, so there is nothing to learn from; declare at "
            "least one number, category or boolean."
        )


def _zeros(n: int, width: int, dtype: npt.DTypeLike) -> Rows:
    try:
        return zeros_somewhere((n, width), dtype)
    except (MemoryError, ValueError):
        raise TableError(
            f"the encoded table of {width} features a record does not fit into memory; declare "
            "fewer values, or encode as float32."
        ) from None


class _Filler:
    """Two arrays that are filled from the front, and a list of whose their records are."""

    def __init__(
        self,
        schema: Schema,
        capacity: int,
        dtype: npt.DTypeLike,
        identifiers: list[Any] | None,
        places: list[int] | None = None,
    ) -> None:
        assert schema.target is not None
        self._unit, self._identifiers, self._places = schema.unit, identifiers, places
        self._columns, self._target = schema.encoded, schema.target
        # Memory that is never written to costs nothing, so the capacity may be generous.
        self._rows = _zeros(capacity, len(schema.feature_names), dtype)
        self._labels = np.zeros(capacity, dtype=self._target.labels.dtype)
        self._n_read = self._n_kept = 0

    def add(self, n: int, chunk: Chunk) -> None:
        """Append the records that have a label."""
        labels, kept = self._target.encode(chunk[self._target.name])
        start, stop = self._n_kept, self._n_kept + len(labels)
        if self._places is not None:
            self._places.extend((self._n_read + np.flatnonzero(kept)).tolist())
        self._n_read += n
        if self._n_read > len(self._rows):
            raise TableError("the file changed while it was read; read it when it is at rest.")
        self._labels[start:stop] = labels
        if self._identifiers is not None and self._unit is not None:
            self._identifiers.extend(compress(chunk[self._unit].raw(), kept))
        if kept.all():
            write_rows(chunk, self._columns, self._rows[start:stop])
        else:
            rows = np.zeros((n, self._rows.shape[1]), dtype=self._rows.dtype)
            write_rows(chunk, self._columns, rows)
            self._rows[start:stop] = rows[kept]
        self._n_kept = stop

    @property
    def share(self) -> float:
        """The share of records read so far."""
        return self._n_read / max(len(self._rows), 1)

    def result(self) -> tuple[Rows, npt.NDArray[Any]]:
        """Return what has been filled."""
        return self._rows[: self._n_kept], self._labels[: self._n_kept]
