"""Parquet, Arrow and Feather files as tables: what pyarrow reads by itself."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tacit.preprocessing.errors import guarded, readable

# Records at a time: few enough for their rows to stay in the cache.
BATCH = 16_384


@dataclass(frozen=True)
class ParquetFile:
    """A Parquet file."""

    path: Path
    shown: str

    @contextlib.contextmanager
    def _open(self, **options: Any) -> Iterator[Any]:
        from pyarrow import parquet

        with readable(self.shown, "Parquet"):
            file = parquet.ParquetFile(self.path, **options)
        with file:
            yield file

    def names(self) -> list[str]:
        """Return the names of the columns."""
        with self._open() as file:
            return list(file.schema_arrow.names)

    def type_of(self, name: str) -> Any:
        """Return the type that the file declares of a column."""
        with self._open() as file:
            return file.schema_arrow.field(name).type

    def count(self) -> int:
        """Return the number of records in the file's own words."""
        with self._open() as file:
            return int(file.metadata.num_rows)

    def batches(self, names: Sequence[str]) -> Iterator[Any]:
        """Yield records."""
        with self._open() as file:
            schema = file.schema_arrow
        texts = [name for name in names if str(schema.field(name).type) in ("string", "binary")]
        with self._open(read_dictionary=texts) as file:
            batches = file.iter_batches(batch_size=BATCH, columns=list(names))
            for batch in guarded(batches, self.shown, "Parquet"):
                with readable(self.shown, "Parquet"):
                    check_sound(batch)
                yield batch.select(list(names))


@dataclass(frozen=True)
class ArrowFile:
    """An Arrow file, as Feather is; also an Arrow stream."""

    path: Path
    shown: str

    @contextlib.contextmanager
    def _open(self, fields: list[int] | None = None) -> Iterator[Any]:
        import pyarrow as pa

        options = pa.ipc.IpcReadOptions(included_fields=fields or [])
        with readable(self.shown, "Arrow"):
            file = pa.OSFile(str(self.path), "rb")
        with file:
            with readable(self.shown, "Arrow"):
                try:
                    reader = pa.ipc.open_file(file, options=options)
                except pa.ArrowInvalid:
                    file.seek(0)
                    reader = pa.ipc.open_stream(file, options=options)
            yield reader

    def names(self) -> list[str]:
        """Return the names of the columns."""
        with self._open() as reader:
            return list(reader.schema.names)

    def type_of(self, name: str) -> Any:
        """Return the type that the file declares of a column."""
        with self._open() as reader:
            return reader.schema.field(name).type

    def count(self) -> int:
        """Return the number of records, reading one column."""
        with self._open([0]) as reader:
            return sum(batch.num_rows for batch in guarded(_each(reader), self.shown, "Arrow"))

    def batches(self, names: Sequence[str]) -> Iterator[Any]:
        """Yield records."""
        with self._open() as reader:
            fields = sorted(reader.schema.names.index(name) for name in names)
        with self._open(fields) as reader:
            for batch in guarded(_each(reader), self.shown, "Arrow"):
                with readable(self.shown, "Arrow"):
                    check_sound(batch)
                chosen = batch.select(list(names))
                for start in range(0, chosen.num_rows, BATCH):
                    yield chosen.slice(start, BATCH)


def _each(reader: Any) -> Iterator[Any]:
    if hasattr(reader, "num_record_batches"):
        for number in range(reader.num_record_batches):
            yield reader.get_batch(number)
    else:
        yield from reader


def check_sound(batch: Any) -> None:
    """Raise pyarrow's own error if a buffer or an index of a batch points beyond its end.

    Text is looked at as bytes, and numbers not at all: a word that is not UTF-8 or a decimal of too
    many digits is a record's own affair, and no reason to refuse the table.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from tacit.preprocessing.files.arrow_files import check_sound
    >>> check_sound(pa.record_batch({"town": ["Oslo", None]}))
    """
    for column in batch.columns:
        _check(column)


def _check(array: Any) -> None:
    import pyarrow as pa

    if pa.types.is_dictionary(array.type):
        _check(array.dictionary)
        pa.DictionaryArray.from_arrays(array.indices, array.dictionary, safe=True)
    elif (kind := _as_stored(array.type)) is not None:
        array.view(kind).validate(full=True)
    else:
        array.validate()


def _as_stored(kind: Any) -> Any:
    """Return the bytes that a text is stored as, which are looked at one by one, or None."""
    import pyarrow as pa

    stored = {
        pa.string(): pa.binary(),
        pa.large_string(): pa.large_binary(),
        pa.string_view(): pa.binary_view(),
    }
    return stored.get(kind, kind if kind in stored.values() else None)
