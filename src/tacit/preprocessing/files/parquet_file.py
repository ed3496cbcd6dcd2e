"""A Parquet file as a table."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tacit.preprocessing.files.file_errors import guarded, readable
from tacit.preprocessing.files.soundness import check_sound

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
