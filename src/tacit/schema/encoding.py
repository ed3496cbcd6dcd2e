"""Encode a table by its schema: features and labels as arrays, and a scikit-learn transformer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import compress
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, TransformerMixin

from tacit.column_values import holds_days
from tacit.disk_arrays import zeros_somewhere
from tacit.io.errors import SchemaError, TableError
from tacit.io.memory_tables import (
    DIFFERENT_LENGTHS,
    Chunk,
    chunks,
    columns_of_batch,
    n_rows_of,
    names_of,
    refuse_absent,
    type_of_column,
)
from tacit.io.reading import Paths, TableFile, open_table, refuse_absent_in, shown_paths
from tacit.schema.columns import Column, ColumnCheck
from tacit.schema.date_kinds import Age, Weekday, Year
from tacit.schema.schema import Schema
from tacit.schema.targets import ClassTarget, NumberTarget, Target, refuse_times
from tacit.table_facts import EncodedTable, TableFacts

Rows = npt.NDArray[Any]

_OF_UNIT = (
    'which identifies the person of a record (--unit, or kind = "unit" in the schema); check the '
    "name there and in the table's header"
)


def write_rows(chunk: Chunk, columns: Sequence[Column], out: Rows) -> None:
    """Fill rows, initially zero, with the features of a chunk's records."""
    start = 0
    for column in columns:
        width = len(column.names())
        column.write(chunk[column.name], out[:, start : start + width])
        start += width


def encode_rows(table: Any, columns: Sequence[Column], dtype: npt.DTypeLike = np.float64) -> Rows:
    """Return the features of every record of a table in memory.

    Examples
    --------
    >>> from tacit.schema import Category, Number
    >>> from tacit.schema.encoding import encode_rows
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
        The public schema of the table, with a target.
    dtype
        The type of the features.
    identifiers
        A list to which the unit of each returned record is appended.
    places
        A list to which the position of each returned record in the table is appended.

    Returns
    -------
    rows, labels
        Records without a label, or with an undeclared one, are left out of both.

    Examples
    --------
    >>> from tacit.schema import ClassTarget, Number, Schema, encode_table
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
    r"""Return the features and the labels of a file's records, read in batches.

    Parameters
    ----------
    path
        A ``.csv`` or ``.tsv`` file (also with ``.gz``), ``.parquet``, ``.arrow`` or ``.feather``; a
        pattern such as ``part-*.parquet``, an address that fsspec knows, or a list of these.
    schema
        The public schema of the table, with a target.
    dtype
        The type of the features.
    delimiter
        The separator of the fields of a CSV; by default a comma, and a tab in ``.tsv``.
    progress
        Called from time to time with the share of the file read, 1.0 at the end.
    identifiers
        A list to which the unit of each returned record is appended.

    Returns
    -------
    rows, labels
        Records without a label, or with an undeclared one, are left out of both. If none is left,
        both are empty: an error would reveal the first record of a table with one record more.

    Raises
    ------
    TableError
        If the file cannot be read or lacks a column. Messages never quote the file.
    SchemaError
        If the schema has no target or nothing to predict it from.

    Notes
    -----
    **Guarantee**

    1. A record determines only its own row and label, and whether it counts.
    2. Memory: the array of features, the labels, and some megabytes. Features that would take more
       than a quarter of the memory are written to an unnamed file instead (`tacit.disk_arrays`).
    3. A file that changes while it is read, or is named twice, is refused.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from tacit.schema import ClassTarget, Number, Schema, encode_file
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
    if progress is not None:
        progress(1.0)
    return rows, labels


def refuse_without_columns(table: Any, schema: Schema) -> None:
    """Refuse a table in memory without the declared columns; no value is read."""
    _check_can_fit(schema)
    refuse_absent(names_of(table), _unit_of(schema), _OF_UNIT)
    refuse_absent(names_of(table), _wanted(schema, False))
    assert schema.target is not None
    for column in schema.encoded:
        refuse_type(column, type_of_column(table, column.name))
    refuse_type(schema.target, type_of_column(table, schema.target.name))
    if isinstance(table, Mapping):
        wanted = [table[name] for name in _wanted(schema, with_unit=True)]
        if len({len(column) for column in wanted if hasattr(column, "__len__")}) > 1:
            raise TableError(DIFFERENT_LENGTHS)


def refuse_file_without_columns(
    path: Paths, schema: Schema, *, delimiter: str | None = None
) -> None:
    """Refuse a file that does not exist or lacks a declared column; only its header is read."""
    _check_can_fit(schema)
    table = open_table(path, delimiter=delimiter)
    present = table.names()
    refuse_absent_in(path, present, _unit_of(schema), _OF_UNIT)
    refuse_absent_in(path, present, _wanted(schema, False))
    refuse_type_in(path, table, schema)


def refuse_type(column: Column | Target, dtype: Any) -> None:
    """Refuse a column whose type holds nothing that its declaration can read.

    Parameters
    ----------
    column
        The declared column or target.
    dtype
        The type of its values, of NumPy, pandas, polars or pyarrow; None if it leaves them open.

    Raises
    ------
    TableError
        If the type holds dates and the column is none of dates, or the type has a time zone, or no
        declared class can stand in it.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.schema import Number, Year
    >>> from tacit.schema.encoding import refuse_type
    >>> refuse_type(Year("born", 1900, 2026), np.dtype("datetime64[D]"))
    >>> refuse_type(Number("born", 1900, 2026), np.dtype("datetime64[D]"))
    Traceback (most recent call last):
    tacit.io.errors.TableError: column 'born' is of type datetime64[D], which is neither a ...
    """
    if isinstance(column, ClassTarget | NumberTarget):
        column.refuse_type(dtype)
    elif not (isinstance(column, Age | Year | Weekday) and holds_days(dtype)):
        refuse_times(column.name, dtype)


def refuse_type_in(path: Paths, table: TableFile, schema: Schema) -> None:
    """Refuse a file with a column of dates, or a target that cannot hold a declared label."""
    assert schema.target is not None
    try:
        for column in schema.encoded:
            refuse_type(column, table.type_of(column.name))
        refuse_type(schema.target, table.type_of(schema.target.name))
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
            "the schema has no target; declare the column to predict, such as "
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
    """Two preallocated arrays that are filled in order, and a list of units."""

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
        # Untouched pages of memory cost nothing, so the capacity may exceed the number of records.
        self._rows = _zeros(capacity, len(schema.feature_names), dtype)
        self._labels = np.zeros(capacity, dtype=self._target.labels.dtype)
        self._n_read = self._n_written = 0

    def add(self, n: int, chunk: Chunk) -> None:
        """Append the records with a label."""
        labels, mask = self._target.encode(chunk[self._target.name])
        start, stop = self._n_written, self._n_written + len(labels)
        if self._places is not None:
            self._places.extend((self._n_read + np.flatnonzero(mask)).tolist())
        self._n_read += n
        if self._n_read > len(self._rows):
            raise TableError("the file changed while it was read; read it when it is at rest.")
        self._labels[start:stop] = labels
        if self._identifiers is not None and self._unit is not None:
            self._identifiers.extend(compress(chunk[self._unit].raw(), mask))
        if mask.all():
            write_rows(chunk, self._columns, self._rows[start:stop])
        else:
            rows = np.zeros((n, self._rows.shape[1]), dtype=self._rows.dtype)
            write_rows(chunk, self._columns, rows)
            self._rows[start:stop] = rows[mask]
        self._n_written = stop

    @property
    def share(self) -> float:
        """The share of records read so far."""
        return self._n_read / max(len(self._rows), 1)

    def result(self) -> tuple[Rows, npt.NDArray[Any]]:
        """Return the filled parts of the arrays."""
        return self._rows[: self._n_written], self._labels[: self._n_written]


def check_schema(schema: object) -> None:
    """Refuse an object that is not a schema, such as the path of one.

    Examples
    --------
    >>> from tacit.schema.encoding import check_schema
    >>> check_schema("schema.toml")
    Traceback (most recent call last):
    TypeError: schema must be a Schema, got str; pass Schema.from_file('schema.toml').
    """
    if not isinstance(schema, Schema):
        raise TypeError(
            f"schema must be a Schema, got {type(schema).__name__}; pass "
            "Schema.from_file('schema.toml')."
        )


class SchemaEncoder(TransformerMixin, BaseEstimator):
    """Encode a table as features by its public schema.

    Numbers are clipped to their declared range and mapped to [-1/2, 1/2]. A category has a feature
    for each declared value, and an undeclared value gives zeros. Missing values are treated as
    declared.

    Parameters
    ----------
    schema : Schema
        The public schema of the table.
    dtype : data type, default=numpy.float64
        The type of the features.
    allow_unconfirmed : bool, default=False
        Whether to accept a schema with unconfirmed lines, which were guessed from the data.
        A `PrivatePipeline` then says so in its guarantee; scikit-learn's own Pipeline cannot.

    Attributes
    ----------
    row_norm_ : float
        The largest possible norm of a row, for an estimator's ``row_norm``.
    n_features_in_, feature_names_in_
        The columns that are read.

    Notes
    -----
    **Guarantee**

    1. `fit` reads no data.
    2. A row depends only on its own record and on the schema.
    3. No row is longer than ``row_norm_``, and some record attains it.

    Examples
    --------
    >>> import pandas as pd
    >>> from tacit.schema import Category, Number, Schema, SchemaEncoder
    >>> schema = Schema((Number("age", 0, 100), Category("sex", ("Female", "Male"))))
    >>> encoder = SchemaEncoder(schema).fit()
    >>> encoder.transform(pd.DataFrame({"age": [30, 130], "sex": ["Male", "?"]}))
    array([[-0.2,  0. ,  1. ],
           [ 0.5,  0. ,  0. ]])
    >>> round(encoder.row_norm_, 3)
    1.118
    """

    def __init__(
        self,
        schema: Schema,
        dtype: npt.DTypeLike = np.float64,
        *,
        allow_unconfirmed: bool = False,
    ) -> None:
        self.schema = schema
        self.dtype = dtype
        self.allow_unconfirmed = allow_unconfirmed

    def __sklearn_tags__(self) -> Any:
        """Declare that no fit is required."""
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags

    def fit(self, X: Any = None, y: Any = None) -> Self:
        """Check the schema; ``X`` and ``y`` are ignored."""
        columns = self._columns()
        self.row_norm_ = self.facts_out().row_norm
        self.n_features_in_ = len(columns)
        self.feature_names_in_ = np.array([column.name for column in columns], dtype=object)
        return self

    def _columns(self) -> tuple[Any, ...]:
        check_schema(self.schema)
        if not self.schema.encoded:
            raise SchemaError("every column of the schema is ignored; declare one that is not.")
        return self.schema.encoded

    def facts_out(self, facts: TableFacts | None = None) -> TableFacts:
        """Return the public facts of the encoded table; ``facts`` of the raw table are unused."""
        check_schema(self.schema)
        if self.schema.unconfirmed and not self.allow_unconfirmed:
            names = ", ".join(map(repr, self.schema.unconfirmed))
            raise SchemaError(
                f"the schema's lines on {names} are not confirmed: they were guessed from the "
                "data, which would leak. Check each line and remove its `confirmed = false`, or "
                "pass allow_unconfirmed=True, and the guarantee will say so."
            )
        try:
            known = np.dtype(self.dtype).kind in "iuf"
        except TypeError:
            known = False
        if not known:
            raise TypeError(
                f"dtype must be a type of numbers, got {self.dtype!r}; pass numpy.float64 or "
                "numpy.float32."
            )
        return self.schema.facts

    def transform(self, X: Any) -> npt.NDArray[Any]:
        """Return the features of every record.

        Parameters
        ----------
        X
            A pandas or polars frame, a pyarrow Table or RecordBatch, a dictionary of columns, or
            a NumPy array with named fields. Columns that the schema does not declare are not read.
        """
        return encode_rows(X, self._columns(), self.dtype)

    def unread(
        self, X: Any, y: Any = None, unit: Any = None, *, with_people: bool = True
    ) -> EncodedTable:
        """Return the features and labels of a table with their facts, encoded on reading.

        Records with an undeclared label are left out.

        Parameters
        ----------
        X
            A table as in `transform`. Its columns are checked at once.
        y
            The target, one value per record, if it is not a column of the table.
        unit
            The unit of each record, one identifier per record, if the schema declares none.
        with_people
            Whether to read the unit that the schema declares; scoring does not.
        """
        self.facts_out()  # raises for unconfirmed lines
        schema, table, columns = self.schema, X, self._columns()
        if not with_people:
            schema = replace(schema, columns=columns, unconfirmed=())
        if y is not None and schema.target is not None:
            table = with_column(self.schema, table, schema.target.name, y, "target")
        if unit is not None:
            name = unused_name(schema)
            schema = schema.with_unit(name)
            table = with_column(self.schema, table, name, unit, "identifier")
        named: list[Any] | None = None if schema.unit is None else []
        places: list[int] = []
        if schema.target is None and y is None:
            unit_name = [] if schema.unit is None else [schema.unit]
            refuse_absent(names_of(table), [*(column.name for column in columns), *unit_name])
        else:
            refuse_without_columns(table, schema)

        def read() -> tuple[npt.NDArray[Any], npt.NDArray[Any] | None]:
            if named is not None:
                named.clear()
            if schema.target is not None:
                places.clear()
                return encode_table(table, schema, self.dtype, identifiers=named, places=places)
            if named is not None and schema.unit is not None:
                for _, chunk in chunks(table, [schema.unit]):
                    named.extend(chunk[schema.unit].raw())
            return self.transform(table), None

        mask = places if schema.target is not None else None
        return EncodedTable(schema.facts, read, named=named, places=mask)

    def unread_file(
        self,
        path: Paths,
        *,
        delimiter: str | None = None,
        progress: Callable[[float], None] | None = None,
    ) -> EncodedTable:
        """Return the features and labels of a file with their facts, encoded on reading.

        The columns are checked at once; arguments are as in `encode_file`.
        """
        self.facts_out()  # raises for unconfirmed lines
        refuse_file_without_columns(path, self.schema, delimiter=delimiter)
        named: list[Any] | None = None if self.schema.unit is None else []

        def read() -> tuple[npt.NDArray[Any], npt.NDArray[Any] | None]:
            if named is not None:
                named.clear()
            return encode_file(
                path,
                self.schema,
                self.dtype,
                delimiter=delimiter,
                progress=progress,
                identifiers=named,
            )

        return EncodedTable(self.schema.facts, read, named=named, is_a_file=True)

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[Any]:
        """Return the names of the features."""
        return np.array(self.schema.feature_names, dtype=object)


def with_column(schema: Schema, table: Any, name: str, values: Any, what: str) -> Any:
    """Return a table with one more column, the target or the identifiers of people."""
    present = names_of(table)
    names = [column.name for column in schema.encoded]
    refuse_absent(present, names)
    also = [schema.unit, None if schema.target is None else schema.target.name]
    names += [other for other in also if other is not None and other in present]
    if isinstance(values, str):
        word, declare = (
            repr(values[:80]),
            "with_unit" if what == "identifier" else "with_target",
        )
        raise TableError(
            f"the {what} is a word, {word}, and not one value for each record; pass the column "
            f"itself, table[{word}], or declare it in the schema: schema.{declare}({word})."
        )
    ndim, sized = getattr(values, "ndim", 1), hasattr(values, "__len__")
    if ndim != 1 or not sized or len(values) != n_rows_of(table):
        raise TableError(
            f"the table and the {what} have different lengths, or there is more than one "
            f"{what} a record; pass one value for each record."
        )
    return {**{other: table[other] for other in names}, name: values}


def unused_name(schema: Schema) -> str:
    """Return an unused name for the column that ``unit=`` becomes."""
    name = "unit"
    while name in schema.names:
        name += "_"
    return name


# What follows counts values without noise. Nothing of it is private.


class Tally:
    """Checks of several columns, accumulated over batches of records.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.schema import Number
    >>> from tacit.schema.encoding import Tally
    >>> from tacit.io.values import ArrayValues
    >>> tally = Tally([Number("age", 0, 100)])
    >>> tally.add({"age": ArrayValues(np.array(["39", "old"]))})
    >>> tally.add({"age": ArrayValues(np.array(["130"]))})
    >>> tally.checks
    (ColumnCheck(name='age', kind='number', records=3, missing=0, unreadable=1, clipped=1),)
    """

    def __init__(self, columns: Sequence[Column | Target]) -> None:
        self._columns = tuple(columns)
        self.checks = tuple(ColumnCheck(column.name, column.kind) for column in columns)

    def add(self, chunk: Chunk) -> None:
        """Count the values of another batch of records."""
        more = (column.check(chunk[column.name]) for column in self._columns)
        self.checks = tuple(old + new for old, new in zip(self.checks, more, strict=True))


def check_file(
    path: Paths,
    schema: Schema,
    *,
    delimiter: str | None = None,
    progress: Callable[[float], None] | None = None,
) -> tuple[ColumnCheck, ...]:
    r"""Count how a schema reads the values of a file, in batches.

    A fit treats unreadable values as missing without a warning, because their number is private.
    This function is for the holder of the table: **it reads the records without any privacy**,
    and its result must not be published.

    Parameters
    ----------
    path
        A ``.csv`` or ``.tsv`` file (also with ``.gz``), ``.parquet``, ``.arrow`` or ``.feather``.
    schema
        The public schema of the table, with or without a target.
    delimiter
        The separator of the fields of a CSV; by default a comma, and a tab in ``.tsv``.
    progress
        Called from time to time with the share of the file read, 1.0 at the end.

    Returns
    -------
    checks
        One per encoded column, in the schema's order, and one for the target, last.
        Ignored columns are not read. Lines of a CSV that are not records are not counted.

    Raises
    ------
    TableError
        If the file cannot be read or lacks a column. Messages never quote the file.
    SchemaError
        If every column of the schema is ignored.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from tacit.schema import Category, Number, Schema, check_file
    >>> path = pathlib.Path(tempfile.mkdtemp(), "people.csv")
    >>> _ = path.write_text("age,sex\n39,M\n41.5,Male\nforty,\n")
    >>> for check in check_file(path, Schema((Number("age", 0, 40), Category("sex", ("F", "M"))))):
    ...     print(check.name, check.records, check.missing, check.unreadable, check.clipped)
    age 3 0 1 1
    sex 3 1 1 0
    """
    columns = [*schema.encoded, *([] if schema.target is None else [schema.target])]
    if not columns:
        raise SchemaError(
            "every column of the schema is ignored, so there is nothing to check; declare at least "
            "one that is not."
        )
    names = [column.name for column in columns]
    file = open_table(path, delimiter=delimiter)
    refuse_absent_in(path, file.names(), names)
    tally, capacity = Tally(columns), max(file.count(), 1)
    for batch in file.batches(names):
        tally.add(columns_of_batch(batch))
        if progress is not None:
            progress(min(tally.checks[0].records / capacity, 1.0))
    if progress is not None:
        progress(1.0)
    return tally.checks
