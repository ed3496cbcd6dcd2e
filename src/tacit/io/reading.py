"""Read tables from one or several files, in batches.

No type is inferred from the records: columns of a CSV are read as bytes, and columns of other
formats with their declared type. A line of a CSV with more or fewer fields than the header is not
a record, and is dropped.
"""

from __future__ import annotations

import glob
import hashlib
import os
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Protocol

from tacit.io.arrow import ArrowFile, ParquetFile
from tacit.io.csv_file import CsvFile, LineCounts
from tacit.io.errors import TableError, check_path, shown_path
from tacit.io.file_formats import UTF16, format_of
from tacit.io.memory_tables import DECLARED, refuse_absent

Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]


class TableFile(Protocol):
    """A file that holds a table."""

    def names(self) -> list[str]:
        """Return the names of the columns."""

    def type_of(self, name: str) -> Any:
        """Return the type that the file declares for a column; None if it declares none."""

    def count(self) -> int:
        """Return an upper bound on the number of records."""

    def batches(self, names: Sequence[str]) -> Iterator[Any]:
        """Yield the named columns as pyarrow RecordBatches."""


def shown_paths(paths: Paths) -> str:
    """Return paths as quoted in errors."""
    if isinstance(paths, str | os.PathLike):
        return shown_path(paths)
    more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
    return (shown_path(paths[0]) if paths else "no file") + more


def is_address(path: str | os.PathLike[str]) -> bool:
    """Return whether a path is an fsspec address, such as s3://bucket/part.parquet."""
    return "://" in os.fspath(path)


def find_files(paths: Paths) -> list[str]:
    r"""Return the files of names, patterns and addresses, each once.

    Raises
    ------
    TableError
        If a pattern matches nothing, or a file is named twice: its records would count twice.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from tacit.io.reading import find_files
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> for name in ("b.csv", "a.csv"):
    ...     _ = (folder / name).write_text("x\n1\n")
    >>> [pathlib.Path(name).name for name in find_files(f"{folder}/*.csv")]
    ['a.csv', 'b.csv']
    """
    named = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    found = [file for path in named for file in _matching(os.fspath(path))]
    if not found:
        raise TableError("no file is named; pass at least one.")
    if len(found) > 1 and len(set(map(_itself, found))) < len(found):
        raise TableError(
            f"{shown_paths(paths)}: a file is named twice, so that each of its records would count "
            "twice; name it once."
        )
    return found


def _itself(file: str) -> object:
    """Return the identity of a file, independent of its name."""
    local = file.removeprefix("file://")
    if is_address(local):
        return file
    try:
        found = os.stat(local)
    except (OSError, ValueError):  # reported when the file is opened
        return file
    return found.st_dev, found.st_ino


def _matching(path: str) -> list[str]:
    if is_address(path):
        files, _, places = _fsspec().get_fs_token_paths(path)
        found = [files.unstrip_protocol(place) for place in sorted(places)]
    elif glob.has_magic(path) and not os.path.lexists(path):
        found = sorted(file for file in glob.glob(path) if os.path.isfile(file))
    else:
        return [path]
    if not found:
        raise TableError(f"{shown_path(path)} matches no file; check the pattern.")
    return found


def _fsspec() -> Any:
    try:
        import fsspec.core
    except ImportError:
        raise TableError(
            "addresses such as s3://... need fsspec, which is not installed; pip install fsspec "
            "(it belongs to the extra dask)."
        ) from None
    return fsspec.core


def _local_copy(address: str) -> IO[bytes]:
    """Return a local copy of a remote file, in an unnamed temporary file."""
    file = tempfile.TemporaryFile(prefix="tacit-")  # noqa: SIM115
    try:
        with _fsspec().open(address, "rb") as remote:
            shutil.copyfileobj(remote, file, 1 << 20)
    except Exception as error:
        file.close()
        raise TableError(
            f"{shown_path(address)} cannot be read ({type(error).__name__}); check the address."
        ) from None
    file.flush()
    return file


def fingerprint(files: Sequence[str]) -> str:
    """Hash the names, sizes and modification times of files."""
    digest = hashlib.sha256()
    for file in files:
        if is_address(file):
            files_of, _, places = _fsspec().get_fs_token_paths(file)
            what = str(files_of.ukey(places[0]))
        else:
            found = os.stat(file)
            what = repr((found.st_size, found.st_mtime_ns, found.st_ino, found.st_dev))
        digest.update(repr((file, what)).encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


@dataclass(frozen=True)
class SeveralFiles:
    """Tables with equal columns, read one after the other.

    Guarantee: if a file is added, removed or modified between the first record and the last,
    an error is raised after the last and no result is released.
    """

    paths: tuple[str, ...]
    shown: str
    open_one: Callable[[str], TableFile]

    def names(self) -> list[str]:
        """Return the columns of all files, each as often as the file that repeats it most."""
        headers = [self.open_one(path).names() for path in self.paths]
        common = [name for name in dict.fromkeys(headers[0]) if all(name in h for h in headers)]
        return [name for name in common for _ in range(max(h.count(name) for h in headers))]

    def type_of(self, name: str) -> Any:
        """Return the type that all files declare for a column; None if they differ."""
        first, *others = (self.open_one(path).type_of(name) for path in self.paths)
        return first if all(other == first for other in others) else None

    def count(self) -> int:
        """Return an upper bound on the number of records."""
        return sum(self.open_one(path).count() for path in self.paths)

    def batches(self, names: Sequence[str]) -> Iterator[Any]:
        """Yield the named columns, file after file."""
        before = fingerprint(self.paths)
        for path in self.paths:
            yield from self.open_one(path).batches(names)
        if fingerprint(self.paths) != before:
            raise TableError(f"{self.shown}: a file changed while it was read; read at rest.")


_DELIMITERS = {".csv": ",", ".tsv": "\t"}
_PARQUET = (".parquet", ".pq")
_ARROW = (".arrow", ".feather", ".ipc")
_REQUESTED = "which is requested; check the name, in the table's header too"


def open_table(path: Paths, *, delimiter: str | None = None) -> TableFile:
    """Open the table in one or several files; only the header is read.

    Parameters
    ----------
    path
        A ``.csv`` or ``.tsv`` file (also with ``.gz``), ``.parquet``, ``.arrow`` or ``.feather``; a
        pattern such as ``part-*.parquet``, an address that fsspec knows, or a list of these.
    delimiter
        The separator of the fields of a CSV; by default a comma, and a tab in ``.tsv``.

    Raises
    ------
    TableError
        If the file does not exist, is empty or unreadable, or has another format. Messages never
        quote the file's content.
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
        if is_address(files[0]):  # a private copy cannot change while it is read
            return table
    return SeveralFiles(tuple(files), shown_paths(path), one)


def _open_one(path: str, delimiter: str | None) -> TableFile:
    shown = shown_path(path)
    if is_address(path):
        copy = _local_copy(path)
        table = _open_as(Path(path), Path(f"/proc/self/fd/{copy.fileno()}"), shown, delimiter)
        weakref.finalize(table, copy.close)  # the copy lives as long as the table
        return table
    check_path(path, shown)
    return _open_as(Path(path), Path(path), shown, delimiter)


def _open_as(named: Path, path: Path, shown: str, delimiter: str | None) -> TableFile:
    """Open a file by the format that its name indicates."""
    suffixes = [suffix.lower() for suffix in named.suffixes]
    zipped = suffixes[-1:] == [".gz"]
    suffix = (suffixes[:-1] if zipped else suffixes)[-1:] or [""]
    if suffix[0] in _DELIMITERS:
        is_what = None if zipped else format_of(path)
        if is_what is not None:
            encoding = " and --encoding utf-16" if is_what == UTF16 else ""
            raise TableError(
                f"{shown} is {is_what} and not text in UTF-8, whatever its name says; read it by "
                f"tacit table import, with --out table.parquet{encoding}."
            )
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
        f"{shown}: the file name has no known ending; tables are read from .csv, .csv.gz, .tsv, "
        ".parquet, .arrow and .feather files."
    )


def line_counts(path: Paths, *, delimiter: str | None = None) -> LineCounts:
    r"""Count the lines of CSV files that are records, and others by reason.

    A fit leaves out lines that are no records without a word, because their number is private. This
    function is for the holder of the table: **it counts without any privacy**. Files of other
    formats have no lines, and give zeros.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from tacit.io import line_counts
    >>> path = pathlib.Path(tempfile.mkdtemp(), "people.csv")
    >>> _ = path.write_text('age,note\n39,"two\nlines"\n50,one\n')
    >>> line_counts(path)
    LineCounts(records=1, open_quotes=1, returns=0, long=0, wrong_fields=1, not_utf8=0)
    """
    counts = LineCounts()
    for file in find_files(path):
        table = _open_one(file, delimiter)
        if isinstance(table, CsvFile):
            counts += table.line_counts()
    return counts


def read_batches(
    path: str | os.PathLike[str], names: Sequence[str], *, delimiter: str | None = None
) -> Iterator[Any]:
    r"""Yield the named columns of a file as pyarrow RecordBatches, in order.

    Columns of a CSV are bytes, whatever their content.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from tacit.io import read_batches
    >>> path = pathlib.Path(tempfile.mkdtemp(), "people.csv")
    >>> _ = path.write_text("age,sex\n39,Male\n50,Female\n")
    >>> [batch.to_pydict() for batch in read_batches(path, ["age"])]
    [{'age': [b'39', b'50']}]
    """
    file = open_table(path, delimiter=delimiter)
    refuse_absent_in(path, file.names(), names, _REQUESTED)
    return file.batches(names)


def read_table(
    path: str | os.PathLike[str],
    names: Sequence[str] | None = None,
    *,
    delimiter: str | None = None,
) -> Any:
    r"""Read the named columns of a file, by default all, as a pyarrow Table.

    Lines of a CSV that are no records are left out; `line_counts` counts them.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from tacit.io import read_table
    >>> path = pathlib.Path(tempfile.mkdtemp(), "people.csv")
    >>> _ = path.write_text("age,sex\n39,Male\n50,Female\n")
    >>> read_table(path).num_rows
    2
    """
    file = open_table(path, delimiter=delimiter)
    present = file.names()
    wanted = present if names is None else list(names)
    refuse_absent_in(path, present, wanted, _REQUESTED)
    import pyarrow as pa

    batches = list(file.batches(wanted))
    if batches:
        return pa.Table.from_batches(batches)
    return pa.table({name: pa.array([], pa.binary()) for name in wanted})


def refuse_absent_in(
    path: Paths, present: Sequence[str], names: Sequence[str], why: str = DECLARED
) -> None:
    """Refuse a file that lacks a named column or has it twice; ``why`` gives the reason."""
    try:
        refuse_absent(present, names, why)
    except TableError as error:
        raise TableError(f"{shown_paths(path)}: {error}") from None
