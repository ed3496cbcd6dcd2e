"""Read records from any number of files: encode them once into an unnamed file, and map that."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.arrays import Array
from tacit.disk_arrays import disk_array
from tacit.io.errors import TableError
from tacit.io.memory_tables import columns_of_batch
from tacit.io.reading import Paths, find_files, fingerprint, open_table, refuse_absent_in
from tacit.records import Block, Bounds, MemoryRecords, Sample
from tacit.records.exact.lattice import LatticeBlock
from tacit.records.splits import DrawsWords as Words
from tacit.schema import ClassTarget, Schema, SchemaError
from tacit.schema.encoding import refuse_type_in, write_rows


class ParquetRecords:
    r"""Parquet, Feather, Arrow or CSV files as records, for tables larger than memory.

    Parameters
    ----------
    files
        A name, a pattern such as ``part-*.parquet``, an address that fsspec knows, or a list.
    schema
        The public facts of the table, with a target and without a unit.
    bounds
        The bounds of the objective: ``estimator.plan(n_features).problem.objective.bounds``.
    dtype
        Type of the encoded features: float32, or float64.
    origin
        Number that is subtracted from numeric labels: the middle of their range for a model with
        an intercept. By default it follows from the bounds (`origin_of`).
    delimiter, progress
        As in `tacit.schema.encode_file`.

    Notes
    -----
    **Guarantee**

    1. Nothing is read before the first sum. Then every file is decoded and encoded once, into a
    file without a name, mode 0600; later passes map that file. The system frees it with this
    object or with the process, even if the process is killed.
    2. A record decides its own row, and whether it counts: without a declared label it does not.
    A value that is no number is treated as the schema declares. Sums are those of
    `MemoryRecords` of the same rows, bit for bit.
    3. Memory: some megabytes for each thread, and the page cache, which the system can reclaim.
    4. Files that change during the first pass are refused, and so is a file that is named twice.

    Labels are -1 and 1 for two classes in their sorted order, 0, 1, 2, ... for more.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> from tacit.records.files import ParquetRecords
    >>> from tacit.linear_model import LogisticRegression
    >>> from tacit.schema import ClassTarget, Number, Schema
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> for part in range(3):
    ...     lines = "".join(f"{age},{'yes' if age > 50 else 'no'}\n" for age in range(5, 95))
    ...     _ = (folder / f"part-{part}.csv").write_text("age,ill\n" + 20 * lines)
    >>> schema = Schema((Number("age", 0, 100),), ClassTarget("ill", ("no", "yes")))
    >>> model = LogisticRegression(epsilon=2.0, delta=1e-6, row_norm=1.0, classes=["no", "yes"])
    >>> bounds = model.plan(n_features=1).problem.objective.bounds
    >>> records = ParquetRecords(f"{folder}/part-*.csv", schema, bounds)
    >>> _ = model.fit(records, None)
    >>> model.predict([[0.9]])
    array(['yes'], dtype='<U3')
    """

    def __init__(
        self,
        files: Paths,
        schema: Schema,
        bounds: Bounds,
        *,
        dtype: npt.DTypeLike = np.float32,
        origin: float | None = None,
        delimiter: str | None = None,
        progress: Callable[[float], None] | None = None,
    ) -> None:
        check_schema(schema)
        check_classes(schema, bounds)
        self._table = open_table(files, delimiter=delimiter)
        refuse_absent_in(files, self._table.names(), wanted_columns(schema))
        refuse_type_in(files, self._table, schema)
        self._files, self._schema, self.bounds = find_files(files), schema, bounds
        self._dtype, self._progress = np.dtype(dtype), progress
        self._origin = origin_of(schema, bounds) if origin is None else origin
        self._records: MemoryRecords | None = None

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return len(self._schema.feature_names)

    def count(self) -> int:
        """Return the number of records; read them if necessary. Private."""
        return self._read().count()

    def sum(
        self, function: Callable[[Block], tuple[Array, ...]], *, fine: bool = False
    ) -> tuple[Array, ...]:
        """Add up ``function`` over blocks of rows in one pass."""
        return self._read().sum(function, fine=fine)

    def sum_in_steps(
        self,
        function: Callable[[LatticeBlock], tuple[Array, ...]],
        *,
        n_outputs: int = 1,
        keep: bool = True,
    ) -> tuple[Array, ...]:
        """Add up ``function`` over lattice blocks, which are stored in another unnamed file."""
        return self._read().sum_in_steps(function, n_outputs=n_outputs, keep=keep)

    def measured(self, lengths: Callable[[Block], Array]) -> MemoryRecords:
        """Return the records with a norm of each record in their blocks, computed in one pass."""
        return self._read().measured(lengths)

    def sum_error(self, *, fine: bool = False) -> float:
        """Return e such that a sum of n terms of size at most 1 is off by at most e."""
        return self._read().sum_error(fine=fine)

    def every(self, step: int) -> MemoryRecords:
        """Return every ``step``-th record. The choice is fixed, so it amplifies no privacy."""
        return self._read().every(step)

    def poisson_sample(self, rate: float, words: Words) -> Sample:
        """Return each record independently with probability ``rate``, by its own random word."""
        return self._read().poisson_sample(rate, words)

    def _read(self) -> MemoryRecords:
        if self._records is None:
            before = fingerprint(self._files)
            capacity = self._table.count()
            rows = disk_array((capacity, self.n_features), self._dtype)
            labels = disk_array((capacity,), label_type(self._schema))
            n = self._fill(rows, labels)
            if fingerprint(self._files) != before:
                raise TableError("a file changed while it was read; read files that do not change.")
            self._records = MemoryRecords(rows[:n], labels[:n], self.bounds)
        return self._records

    def _fill(self, rows: npt.NDArray[Any], labels: npt.NDArray[Any]) -> int:
        """Encode all files, and return the number of records that count."""
        start = n_read = 0
        for batch in self._table.batches(wanted_columns(self._schema)):
            n_read += batch.num_rows
            if n_read > len(rows):
                raise TableError("a file changed while it was read; read files that do not change.")
            some, names = encode_batch(batch, self._schema, self._dtype, self._origin)
            rows[start : start + len(some)], labels[start : start + len(some)] = some, names
            start += len(some)
            if self._progress is not None:
                self._progress(n_read / max(len(rows), 1))
        if self._progress is not None:
            self._progress(1.0)
        return start


def check_schema(schema: Schema) -> None:
    """Raise for a schema without a target, or with people: their rows may be in several blocks."""
    if schema.target is None or not schema.encoded:
        raise SchemaError("the schema has no target, or nothing to learn from; declare both.")
    if schema.unit is not None:
        raise SchemaError(
            f"the schema declares column {schema.unit!r} as the person of each record, and a "
            "person's records may be in several blocks; fit with TableModel.fit_file, which "
            "groups them, or keep one record of each person and ignore the column."
        )


def check_classes(schema: Schema, bounds: Bounds) -> None:
    """Raise unless the schema's target has the classes that the bounds declare, or is a number."""
    target = schema.target
    declared = len(target.classes) if isinstance(target, ClassTarget) else None
    if bounds.n_classes is not None and bounds.n_classes != declared:
        said = "is a number" if declared is None else f"has {declared} classes"
        raise SchemaError(
            f"the target of the schema {said}, and the bounds declare n_classes="
            f"{bounds.n_classes}; take the bounds of an estimator that has the schema's "
            "classes, as TableModel.fit_records does."
        )


def origin_of(schema: Schema, bounds: Bounds) -> float:
    """Return the number that was subtracted from labels, from the shift of their declared range.

    Examples
    --------
    >>> from tacit.records.files import origin_of
    >>> from tacit.schema import Number, NumberTarget, Schema
    >>> from tacit.records import Bounds
    >>> schema = Schema((Number("age", 0, 100),), NumberTarget("hours", 0, 80))
    >>> origin_of(schema, Bounds(label_range=(-40.0, 40.0)))
    40.0
    """
    if isinstance(schema.target, ClassTarget) or bounds.label_range is None:
        return 0.0
    assert schema.target is not None
    return float(schema.target.lower - bounds.label_range[0])


def wanted_columns(schema: Schema) -> list[str]:
    """Return the columns that are read."""
    assert schema.target is not None
    return [*(column.name for column in schema.encoded), schema.target.name]


def label_type(schema: Schema) -> npt.DTypeLike:
    """Return the type of coded labels: integers for classes."""
    if not isinstance(schema.target, ClassTarget):
        return np.float64
    return np.int8 if len(schema.target.labels) <= 100 else np.int32


def encode_batch(
    batch: Any, schema: Schema, dtype: npt.DTypeLike, origin: float = 0.0
) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Return the rows and coded labels of the records of a batch that have a label."""
    assert schema.target is not None
    chunk = columns_of_batch(batch)
    labels, mask = schema.target.encode(chunk[schema.target.name])
    rows = np.zeros((batch.num_rows, len(schema.feature_names)), dtype=dtype)
    write_rows(chunk, schema.encoded, rows)
    return (rows if mask.all() else rows[mask]), coded(labels, schema, origin)


def coded(labels: npt.NDArray[Any], schema: Schema, origin: float) -> npt.NDArray[Any]:
    """Return labels as numbers: classes by their sorted order, others minus the origin."""
    if not isinstance(schema.target, ClassTarget):
        return labels.astype(np.float64) - origin
    classes = np.sort(schema.target.labels)
    codes = np.searchsorted(classes, labels)
    return 2 * codes - 1 if len(classes) == 2 else codes
