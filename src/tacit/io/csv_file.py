"""Read CSV files line by line, so that no record changes how another is read.

A CSV reader treats an unclosed quotation mark as the start of a value that spans all following
lines; it treats a bare carriage return as a record break. Here an incomplete line is dropped
before the reader sees it. The rules look at one line alone:

- The first line that is not empty is the header. Every later line is one record or none.
- A line ends with a line feed, or a carriage return and a line feed. The last line may lack its
  end: it is read as if it had that of the header.
- A line is no record if it is empty, longer than `LONGEST_LINE`, or has a carriage return inside.
- A line is no record if a quotation mark that opens a field is not closed within the line, or is
  followed by more than blanks. A value therefore cannot contain a line break.
- A line is no record if it has more or fewer fields than the header.
- Each byte that is not UTF-8 becomes the control character SUBSTITUTE; the line stays a record.
"""

from __future__ import annotations

import csv
import gzip
import io
import operator
import re
from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import IO, Any, cast

from tacit.io.errors import TableError, guarded, readable

# Small blocks limit memory use; a line longer than a block is not a record.
BLOCK = 2**18
LONGEST_LINE = BLOCK
_SUBSTITUTE = "\x1a"
_NOT_UTF8 = re.compile("[\udc80-\udcff]")


def whole_lines(delimiter: str) -> re.Pattern[bytes]:
    r"""Return the pattern of a complete line, without its line break.

        line = field (delimiter field)*
        field = '"' (not a quote | '""')* '"' blanks
              | nothing, or text that does not start with a quote

    Examples
    --------
    >>> from tacit.io.csv_file import whole_lines
    >>> complete = whole_lines(",")
    >>> [bool(complete.fullmatch(line)) for line in (b'1,"a, b"', b'5" pipe,x', b'1,"a')]
    [True, True, False]
    """
    mark = re.escape(delimiter.encode("ascii"))
    blanks = b" \t".replace(delimiter.encode("ascii"), b"")
    field = (
        rb'(?:"(?:[^"\r\n]|"")*+"[' + blanks + rb"]*+"
        rb"|(?:[^\"\r\n" + mark + rb"][^\r\n" + mark + rb"]*+)?)"
    )
    return re.compile(field + rb"(?:" + mark + field + rb")*+")


class WholeLines(io.RawIOBase):
    r"""A stream of the complete lines of another stream.

    Dropped are lines with an unclosed quotation mark, lines with a carriage
    return inside, and lines longer than a block. Bytes that are not UTF-8 become the control
    character SUBSTITUTE, each on its own. The stream begins with an empty line: a reader removes a
    byte-order mark at the start, and a quotation mark after it would then begin a quoted field.

    Examples
    --------
    >>> import io
    >>> from tacit.io.csv_file import WholeLines
    >>> WholeLines(io.BytesIO(b'1,"a"\n2,"b\n3,c\n'), ",").read()
    b'\n1,"a"\n3,c\n'
    """

    def __init__(
        self, stream: IO[bytes], delimiter: str, block: int = BLOCK, end: bytes = b"\n"
    ) -> None:
        super().__init__()
        self._complete = whole_lines(delimiter)
        self._blocks = self._clean_blocks(blocks_of_lines(stream, block, end))
        self._left = memoryview(b"\n")

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        """Fill the buffer from the next block."""
        while not self._left:
            block = next(self._blocks, None)
            if block is None:
                return 0
            self._left = memoryview(block)
        n = min(len(buffer), len(self._left))
        buffer[:n] = self._left[:n]
        self._left = self._left[n:]
        return n

    def _clean_blocks(self, blocks: Iterator[bytes]) -> Iterator[bytes]:
        for block in map(_utf8, blocks):
            tidy = b'"' not in block and block.count(b"\r") == block.count(b"\r\n")
            yield block if tidy else b"".join(self._clean(block))

    def _clean(self, block: bytes) -> Iterator[bytes]:
        for line in block.split(b"\n"):
            text = line.removesuffix(b"\r")
            if text and self._complete.fullmatch(text):
                yield text + b"\n"


def _utf8(block: bytes) -> bytes:
    """Replace each byte that is not UTF-8; the length stays."""
    # The reader would raise on one bad byte, and the error would depend on one record.
    if block.isascii():
        return block
    try:
        block.decode("utf-8")
    except UnicodeDecodeError:
        # Python marks bad bytes by surrogates, which valid text never has; U+FFFD may be declared.
        text = block.decode("utf-8", errors="surrogateescape")
        return _NOT_UTF8.sub(_SUBSTITUTE, text).encode("utf-8")
    return block


def blocks_of_lines(stream: IO[bytes], size: int = BLOCK, end: bytes = b"\n") -> Iterator[bytes]:
    r"""Yield the lines of a stream in blocks of about ``size`` bytes, without longer lines.

    A last line without a line break gets ``end``, so that it is read like a line in the middle.

    Examples
    --------
    >>> import io
    >>> from tacit.io.csv_file import blocks_of_lines
    >>> list(blocks_of_lines(io.BytesIO(b"1,2\n3,4")))
    [b'1,2\n3,4\n']
    """
    while block := stream.read(size):
        if not block.endswith(b"\n"):
            start = block.rfind(b"\n") + 1
            rest = stream.readline(size)
            if len(rest) < size and not rest.endswith(b"\n"):
                rest += end
            if len(block) - start + len(rest) <= size:
                block += rest
            else:
                while rest and not rest.endswith(b"\n"):
                    rest = stream.readline(size)
                block = block[:start]
        if block:
            yield block


@dataclass(frozen=True)
class LineCounts:
    """How many lines of CSV files are records, and why others are not.

    **The counts are not private**: they are exact, for the holder of the table.

    Parameters
    ----------
    records
        Lines that are records.
    open_quotes
        Lines in which a quotation mark is not closed, as in a value with a line break.
    returns
        Lines with a carriage return inside.
    long
        Lines longer than a block.
    wrong_fields
        Complete lines of more or fewer fields than the header.
    not_utf8
        Lines with text that is not UTF-8; they are records, and that text matches nothing.

    Examples
    --------
    >>> from tacit.io import LineCounts
    >>> (LineCounts(records=7, wrong_fields=1) + LineCounts(open_quotes=2)).unread
    3
    """

    records: int = 0
    open_quotes: int = 0
    returns: int = 0
    long: int = 0
    wrong_fields: int = 0
    not_utf8: int = 0

    @property
    def unread(self) -> int:
        """The number of lines that are no records."""
        return self.open_quotes + self.returns + self.long + self.wrong_fields

    def __add__(self, other: LineCounts) -> LineCounts:
        """Add the counts of two files."""
        return LineCounts(*map(operator.add, astuple(self), astuple(other)))

    def sentences(self) -> Iterator[str]:
        """Yield an explanation of each kind of line that is no record."""
        lines = self.records + self.unread
        remedy = "tacit table import makes records of such lines"
        if self.open_quotes:
            yield (
                f"{self.open_quotes:,} of {lines:,} lines are no records, and are left out: a "
                "quotation mark is not closed in them, as where a quoted value has a line break; "
                f"{remedy}."
            )
        if self.wrong_fields:
            yield (
                f"{self.wrong_fields:,} of {lines:,} lines are no records, and are left out: they "
                "have more or fewer fields than the header, as the second line of a value with a "
                f"line break has; {remedy}."
            )
        if self.returns or self.long:
            yield (
                f"{self.returns + self.long:,} of {lines:,} lines are no records, and are left "
                "out: they have a carriage return inside, or are longer than "
                f"{LONGEST_LINE:,} bytes."
            )
        if self.not_utf8:
            yield (
                f"{self.not_utf8:,} of {lines:,} lines have text that is not UTF-8, and match no "
                "declared word; if the table was saved in another encoding, run tacit table import "
                "with --encoding cp1252 or latin-1."
            )


def count_lines(stream: IO[bytes]) -> int:
    r"""Return the number of lines; the last may lack a line break.

    Examples
    --------
    >>> import io
    >>> from tacit.io.csv_file import count_lines
    >>> count_lines(io.BytesIO(b"1,2\n3,4"))
    2
    """
    lines, last = 0, b"\n"
    while block := stream.read(BLOCK):
        lines += block.count(b"\n")
        last = block[-1:]
    return lines + (last != b"\n")


# Delimiters to suggest if the header does not contain the expected one, likeliest first.
_DELIMITERS = (";", "\t", "|", ",")


def _split(header: str, delimiter: str) -> list[str]:
    """Return the names in a header without outer blanks; none if the line is invalid."""
    try:
        names = next(csv.reader([header], delimiter=delimiter, strict=True))
    except (csv.Error, StopIteration):
        return []
    return [name.strip() for name in names]


def _n_fields(line: bytes, delimiter: str) -> int:
    """Return the number of fields of a complete line."""
    return len(next(csv.reader([line.decode("latin-1")], delimiter=delimiter)))


def likely_delimiter(header: str) -> str | None:
    """Return the delimiter that splits a header into the most names; None if none splits it.

    Examples
    --------
    >>> from tacit.io.csv_file import likely_delimiter
    >>> likely_delimiter("age;sex"), likely_delimiter("age")
    (';', None)
    """
    likely = max(_DELIMITERS, key=lambda mark: len(_split(header, mark)))
    return likely if len(_split(header, likely)) > 1 else None


@dataclass(frozen=True)
class CsvFile:
    """A CSV file with a header and one record per line."""

    path: Path
    shown: str
    delimiter: str
    zipped: bool
    assumed: bool = False  # whether the delimiter is the default
    block: int = LONGEST_LINE  # bytes per block; a longer line is not a record

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
                f"{self.shown}: the header is not text in UTF-8; save the table as UTF-8, or run "
                "tacit table import with the encoding in which it was saved, such as --encoding "
                "cp1252."
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
        likely = likely_delimiter(header)
        if likely is not None:
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

    def line_counts(self) -> LineCounts:
        """Count the lines that are records, and others by reason; **not private**."""
        found = dict.fromkeys(("records", "open_quotes", "returns", "long", "wrong_fields"), 0)
        mark, not_utf8, whole = self.delimiter.encode("ascii"), 0, whole_lines(self.delimiter)
        with readable(self.shown, "CSV"), self._open() as stream:
            n_fields = len(self._header(stream)[0])
            while line := stream.readline(self.block + 1):
                is_long = len(line) > self.block
                while is_long and line and not line.endswith(b"\n"):
                    line = stream.readline(self.block)
                text = line.removesuffix(b"\n").removesuffix(b"\r")
                if is_long:
                    found["long"] += 1
                elif b"\r" in text:
                    found["returns"] += 1
                elif b'"' in text and not whole.fullmatch(text):
                    found["open_quotes"] += 1
                elif text:
                    n = _n_fields(text, self.delimiter) if b'"' in text else text.count(mark) + 1
                    found["records" if n == n_fields else "wrong_fields"] += 1
                    not_utf8 += n == n_fields and _utf8(text) is not text
        return LineCounts(**found, not_utf8=not_utf8)

    def batches(self, names: Sequence[str]) -> Iterator[Any]:
        """Yield records with as many fields as the header."""
        with self._open() as stream:
            header, end = self._header(stream)
            lines = io.BufferedReader(WholeLines(stream, self.delimiter, self.block, end), BLOCK)
            yield from guarded(self._parsed(lines, header, names), self.shown, "CSV")

    def _parsed(self, lines: IO[bytes], header: list[str], names: Sequence[str]) -> Iterator[Any]:
        import pyarrow as pa
        from pyarrow import csv as arrow_csv

        # Columns are selected by position, because two names in the header may be equal.
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
