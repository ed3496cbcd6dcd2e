"""Tables in files, some records at a time: CSV, Parquet, Arrow and Feather.

No type is inferred from the records: columns of a CSV are read as bytes, and of each other
format as the type it declares. A line of a CSV with more or fewer fields than the header is no
record, and is left out.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from tacit.preprocessing.errors import TableError, check_path, shown_path
from tacit.preprocessing.files.arrow_files import ArrowFile, ParquetFile
from tacit.preprocessing.files.csv_file import CsvFile
from tacit.preprocessing.files.memory_tables import DECLARED, refuse_absent
from tacit.preprocessing.files.several import (
    LocalCopy,
    Paths,
    SeveralFiles,
    find_files,
    is_address,
    shown_paths,
)

_DELIMITERS = {".csv": ",", ".tsv": "\t"}
_PARQUET = (".parquet", ".pq")
_ARROW = (".arrow", ".feather", ".ipc")
_ASKED_FOR = "which is asked for; check the name, in the table's header too"


class TableFile(Protocol):
    """A file that holds a table."""

    def names(self) -> list[str]:
        """Return the names of the columns."""

    def type_of(self, name: str) -> Any:
        """Return the type that the file declares of a column; None where it declares none."""

    def count(self) -> int:
        """Return a number of records that is at least the true one."""

    def batches(self, names: Sequence[str]) -> Iterator[Any]:
        """Yield the named columns as pyarrow RecordBatches."""


@dataclass(frozen=True)
class HeldTable:
    """A table in a local copy, which is there as long as the table is."""

    table: TableFile
    copy: LocalCopy

    def names(self) -> list[str]:
        """Return the names of the columns."""
        return self.table.names()

    def type_of(self, name: str) -> Any:
        """Return the type that the file declares of a column."""
        return self.table.type_of(name)

    def count(self) -> int:
        """Return a number of records that is at least the true one."""
        return self.table.count()

    def batches(self, names: Sequence[str]) -> Iterator[Any]:
        """Yield the named columns as pyarrow RecordBatches."""
        yield from self.table.batches(names)


def open_table(path: Paths, *, delimiter: str | None = None) -> TableFile:
    """Return the table in a file or in several, of which nothing but the header has been read.

    Parameters
    ----------
    path
        A ``.csv`` or ``.tsv`` file (also with ``.gz``), ``.parquet``, ``.arrow`` or ``.feather``; a
        pattern such as ``part-*.parquet``, an address that fsspec knows, or a list of these.
    delimiter
        What separates the fields of a CSV; by default a comma, and a tab in ``.tsv``.

    Raises
    ------
    TableError
        If there is no such file, it is empty or unreadable or of another format. Messages never
        repeat what stands in the file.
    """
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        raise TableError(
            "reading files needs pyarrow, which is not installed; pip install pyarrow (it belongs "
            "to the extra cli)."
        ) from None
    files = find_files(path)

    def one(file: str) -> TableFile:
        return _open_one(file, delimiter)

    if len(files) == 1:
        table = one(files[0])
        if is_address(files[0]):  # a copy of its own, which nobody writes to
            return table
    return SeveralFiles(tuple(files), shown_paths(path), one)


def _open_one(path: str, delimiter: str | None) -> TableFile:
    shown = shown_path(path)
    if is_address(path):
        copy = LocalCopy(path)
        return HeldTable(_open_as(Path(path), copy.path, shown, delimiter), copy)
    check_path(path, shown)
    return _open_as(Path(path), Path(path), shown, delimiter)


def _open_as(named: Path, path: Path, shown: str, delimiter: str | None) -> TableFile:
    """Return the table in a file of the format that a name tells."""
    suffixes = [suffix.lower() for suffix in named.suffixes]
    zipped = suffixes[-1:] == [".gz"]
    suffix = (suffixes[:-1] if zipped else suffixes)[-1:] or [""]
    if suffix[0] in _DELIMITERS:
        usual = _DELIMITERS[suffix[0]]
        if delimiter is None:
            return CsvFile(path, shown, usual, zipped, assumed=True)
        return CsvFile(path, shown, delimiter, zipped)
    if delimiter is not None:
        raise TableError(f"{shown}: delimiter is for .csv and .tsv files; leave it out.")
    if suffix[0] in _PARQUET and not zipped:
        return ParquetFile(path, shown)
    if suffix[0] in _ARROW and not zipped:
        return ArrowFile(path, shown)
    raise TableError(
        f"{shown}: the name does not tell the format; tables are read from .csv, .csv.gz, .tsv, "
        ".parquet, .arrow and .feather files."
    )


def read_batches(
    path: str | os.PathLike[str], names: Sequence[str], *, delimiter: str | None = None
) -> Iterator[Any]:
    r"""Yield the named columns of a file as pyarrow RecordBatches, in order.

    Columns of a CSV are bytes, whatever stands in them.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from tacit.preprocessing import read_batches
    >>> path = pathlib.Path(tempfile.mkdtemp(), "people.csv")
    >>> _ = path.write_text("age,sex\n39,Male\n50,Female\n")
    >>> [batch.to_pydict() for batch in read_batches(path, ["age"])]
    [{'age': [b'39', b'50']}]
    """
    file = open_table(path, delimiter=delimiter)
    refuse_absent_in(path, file.names(), names, _ASKED_FOR)
    return file.batches(names)


def read_table(
    path: str | os.PathLike[str],
    names: Sequence[str] | None = None,
    *,
    delimiter: str | None = None,
) -> Any:
    r"""Return the named columns of a file, by default all, as a pyarrow Table.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from tacit.preprocessing import read_table
    >>> path = pathlib.Path(tempfile.mkdtemp(), "people.csv")
    >>> _ = path.write_text("age,sex\n39,Male\n50,Female\n")
    >>> read_table(path).num_rows
    2
    """
    file = open_table(path, delimiter=delimiter)
    present = file.names()
    wanted = present if names is None else list(names)
    refuse_absent_in(path, present, wanted, _ASKED_FOR)
    import pyarrow as pa

    batches = list(file.batches(wanted))
    if batches:
        return pa.Table.from_batches(batches)
    return pa.table({name: pa.array([], pa.binary()) for name in wanted})


def refuse_absent_in(
    path: Paths, present: Sequence[str], names: Sequence[str], why: str = DECLARED
) -> None:
    """Refuse a file that does not have each named column once, ``why`` it is to have it."""
    try:
        refuse_absent(present, names, why)
    except TableError as error:
        raise TableError(f"{shown_paths(path)}: {error}") from None
