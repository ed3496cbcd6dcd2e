"""An Arrow file as a table; Feather files are such."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tacit.preprocessing.files.file_errors import guarded, readable
from tacit.preprocessing.files.parquet_file import BATCH
from tacit.preprocessing.files.soundness import check_sound


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
