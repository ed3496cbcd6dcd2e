"""Files written whole or not at all, and read up to a size."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from pathlib import Path

from tacit.saving.container import MOST_BYTES
from tacit.saving.errors import NotAModel


def write_whole(path: str | os.PathLike[str], data: bytes) -> None:
    """Write a file so that a reader, or a crash, sees the old one or the new one, never a part.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from tacit.saving.files import write_whole
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_whole(pathlib.Path(folder) / "note.txt", b"all of it")
    ...     (pathlib.Path(folder) / "note.txt").read_bytes()
    b'all of it'
    """
    target = Path(os.path.realpath(path))  # a link keeps pointing where it points
    if target.is_dir():
        raise IsADirectoryError(f"{target} is a folder; name a file in it.")
    if not target.parent.is_dir():
        raise FileNotFoundError(
            f"{target.parent} is not a folder that is there; make it first, or name another."
        )
    part = target.with_name(f".{secrets.token_hex(8)}.part")
    handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, target)
    except BaseException:
        with contextlib.suppress(OSError):
            part.unlink()
        raise
    _remember_name(target.parent)


def _remember_name(folder: Path) -> None:
    """Ask the system to keep the folder's new entry, where it can be asked."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def read_bounded(path: str | os.PathLike[str], most: int = MOST_BYTES) -> bytes:
    """Return the bytes of an ordinary file of at most ``most`` bytes."""
    try:
        mode = os.stat(path).st_mode
    except ValueError:
        raise NotAModel("the path is not one that a file can have.") from None
    # Asked before opening: opening a pipe would wait for a writer.
    if not stat.S_ISREG(mode):
        if os.path.isdir(path):
            raise NotAModel("it is a folder; pass a file that tacit.save wrote.")
        raise NotAModel("it is not an ordinary file, such as a pipe or a device.")
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size > most:
            raise NotAModel(f"it has {size} bytes; a model has at most {most}.")
        return file.read(size)
