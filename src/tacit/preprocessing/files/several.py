"""One file or several as one table: lists, patterns, and addresses that fsspec knows."""

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
from typing import Any, Protocol

from tacit.preprocessing.errors import TableError, shown_path

Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]


class _Table(Protocol):
    def names(self) -> list[str]: ...

    def type_of(self, name: str) -> Any: ...

    def count(self) -> int: ...

    def batches(self, names: Sequence[str]) -> Iterator[Any]: ...


def shown_paths(paths: Paths) -> str:
    """Return paths as they are quoted in errors."""
    if isinstance(paths, str | os.PathLike):
        return shown_path(paths)
    more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
    return (shown_path(paths[0]) if paths else "no file") + more


def is_address(path: str | os.PathLike[str]) -> bool:
    """Return whether a path is one of fsspec's, such as s3://bucket/part.parquet."""
    return "://" in os.fspath(path)


def find_files(paths: Paths) -> list[str]:
    r"""Return the files that names, patterns and addresses stand for, each once.

    Raises
    ------
    TableError
        If a pattern matches nothing, or a file is named twice: its records would count twice.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from tacit.preprocessing.files.several import find_files
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
    """Return what tells a file from others, by whatever name it goes."""
    local = file.removeprefix("file://")
    if is_address(local):
        return file
    try:
        found = os.stat(local)
    except (OSError, ValueError):  # refused when it is opened
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
        raise TableError(f"{shown_path(path)}: no file has such a name; check the pattern.")
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


class LocalCopy:
    """A file from elsewhere, in a nameless file of this machine while it is held."""

    def __init__(self, address: str) -> None:
        self._file = tempfile.TemporaryFile(prefix="tacit-")  # noqa: SIM115
        weakref.finalize(self, self._file.close)
        try:
            with _fsspec().open(address, "rb") as remote:
                shutil.copyfileobj(remote, self._file, 1 << 20)
        except Exception as error:
            raise TableError(
                f"{shown_path(address)} cannot be read ({type(error).__name__}); check the address."
            ) from None
        self._file.flush()

    @property
    def path(self) -> Path:
        """Where the copy can be opened."""
        return Path(f"/proc/self/fd/{self._file.fileno()}")


def fingerprint(files: Sequence[str]) -> str:
    """Return a hash of what a set of files is: names, sizes and times of change."""
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
    """Tables with the same columns, one after the other.

    Guarantee: if a file is added, taken away or written to between the first record and the last,
    an error follows the last and no result comes of it.
    """

    paths: tuple[str, ...]
    shown: str
    open_one: Callable[[str], _Table]

    def names(self) -> list[str]:
        """Return the names of the columns that all files have, as often as one of them has it."""
        headers = [self.open_one(path).names() for path in self.paths]
        common = [name for name in dict.fromkeys(headers[0]) if all(name in h for h in headers)]
        return [name for name in common for _ in range(max(h.count(name) for h in headers))]

    def type_of(self, name: str) -> Any:
        """Return the type that all files declare of a column; None where they do not agree."""
        first, *others = (self.open_one(path).type_of(name) for path in self.paths)
        return first if all(other == first for other in others) else None

    def count(self) -> int:
        """Return a number of records that is at least the true one."""
        return sum(self.open_one(path).count() for path in self.paths)

    def batches(self, names: Sequence[str]) -> Iterator[Any]:
        """Yield the named columns of file after file."""
        before = fingerprint(self.paths)
        for path in self.paths:
            yield from self.open_one(path).batches(names)
        if fingerprint(self.paths) != before:
            raise TableError(f"{self.shown}: a file changed while it was read; read them at rest.")
