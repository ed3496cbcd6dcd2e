"""Count the values of a table that its schema cannot read. Nothing here is private."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from tacit.io.errors import SchemaError
from tacit.io.memory_tables import Chunk, columns_of_batch
from tacit.io.reading import open_table, refuse_absent_in
from tacit.schema.columns import Column, ColumnCheck
from tacit.schema.schema import Schema
from tacit.schema.targets import Target


class Tally:
    """Checks of several columns, accumulated over batches of records.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.schema import Number
    >>> from tacit.schema.check import Tally
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
    path: str | os.PathLike[str],
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
