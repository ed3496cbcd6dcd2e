"""A CSV file as a table: bytes by column, nothing inferred from the records."""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

from tacit.preprocessing.errors import TableError, guarded, readable
from tacit.preprocessing.files.csv_lines import BLOCK, LONGEST_LINE, WholeLines, count_lines

# Delimiters to suggest where the header does not split by the expected one, likeliest first.
_DELIMITERS = (";", "\t", "|", ",")


def _split(header: str, delimiter: str) -> list[str]:
    """Return the names in a header without outer blanks; none if it is no line of a CSV."""
    try:
        names = next(csv.reader([header], delimiter=delimiter, strict=True))
    except (csv.Error, StopIteration):
        return []
    return [name.strip() for name in names]


@dataclass(frozen=True)
class CsvFile:
    """A CSV file with a header, a record a line."""

    path: Path
    shown: str
    delimiter: str
    zipped: bool
    assumed: bool = False  # nobody said what the delimiter is
    block: int = LONGEST_LINE  # bytes at a time; a longer line is no record

    def __post_init__(self) -> None:
        if len(self.delimiter) != 1 or not self.delimiter.isascii() or self.delimiter in '"\r\n':
            raise TableError(
                f"delimiter must be one ASCII character other than a quotation mark and a line "
                f"break, got {self.delimiter!r}; pass ',' or ';' or '\\t'."
            )

    def _open(self) -> IO[bytes]:
        if self.zipped:
            return cast(IO[bytes], gzip.open(self.path, "rb"))
        return self.path.open("rb", buffering=BLOCK)

    def _header(self, stream: IO[bytes]) -> tuple[list[str], bytes]:
        """Read the names in the header line and its end, leaving the stream at the first record."""
        with readable(self.shown, "CSV"):
            line = b"\n"
            while line in (b"\n", b"\r\n", b"\xef\xbb\xbf\n", b"\xef\xbb\xbf\r\n"):
                line = stream.readline(LONGEST_LINE)
        try:
            text = line.decode("utf-8-sig").rstrip("\r\n")
        except UnicodeDecodeError:
            raise TableError(
                f"{self.shown}: the header is not text in UTF-8; save the table as UTF-8."
            ) from None
        if len(line) >= LONGEST_LINE or "\r" in text or "\x00" in text or not text.strip():
            raise TableError(
                f"{self.shown}: the first line is no header of a CSV; it must name the columns, "
                "and lines must end in a line feed."
            )
        names = _split(text, self.delimiter)
        if self.assumed and len(names) < 2:
            self._refuse_other_delimiter(text)
        if not names:
            raise TableError(
                f"{self.shown}: the first line is no header of a CSV; mind its quotation marks."
            )
        return names, b"\r\n" if line.endswith(b"\r\n") else b"\n"

    def _refuse_other_delimiter(self, header: str) -> None:
        """Refuse a header of one name at most that another delimiter splits into several."""
        likely = max(_DELIMITERS, key=lambda mark: len(_split(header, mark)))
        if len(_split(header, likely)) > 1:
            raise TableError(
                f"{self.shown}: the header is one name if split at {self.delimiter!r}, and several "
                f"if split at {likely!r}; pass the delimiter {likely!r}, or {self.delimiter!r} if "
                "the table has one column."
            )

    def names(self) -> list[str]:
        """Return the names in the header, without outer blanks."""
        with self._open() as stream:
            return self._header(stream)[0]

    def type_of(self, name: str) -> None:
        """Return None: a CSV declares no types."""

    def count(self) -> int:
        """Return the number of lines."""
        with readable(self.shown, "CSV"), self._open() as stream:
            return count_lines(stream)

    def batches(self, names: Sequence[str]) -> Iterator[Any]:
        """Yield records with as many fields as the header."""
        with self._open() as stream:
            header, end = self._header(stream)
            lines = io.BufferedReader(WholeLines(stream, self.delimiter, self.block, end), BLOCK)
            yield from guarded(self._parsed(lines, header, names), self.shown, "CSV")

    def _parsed(self, lines: IO[bytes], header: list[str], names: Sequence[str]) -> Iterator[Any]:
        import pyarrow as pa
        from pyarrow import csv as arrow_csv

        # Columns are asked for by position: two names in the header may be the same.
        numbers = [str(header.index(name)) for name in names]
        reader = arrow_csv.open_csv(
            lines,
            read_options=arrow_csv.ReadOptions(
                column_names=list(map(str, range(len(header)))),
                block_size=2 * self.block,
            ),
            parse_options=arrow_csv.ParseOptions(
                delimiter=self.delimiter, invalid_row_handler=lambda _: "skip"
            ),
            convert_options=arrow_csv.ConvertOptions(
                column_types=dict.fromkeys(numbers, pa.binary()),
                include_columns=numbers,
                strings_can_be_null=False,
            ),
        )
        for batch in reader:
            yield batch.rename_columns(list(names))
