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

    A file that is replaced keeps its permissions and, where the system allows it, its owner and its
    group; nobody else may read the new one who could not read the old one. A new file has the
    permissions that any new file has.

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
    replaced = os.stat(target) if target.exists() else None
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    # What replaces a file is its writer's alone until it has the permissions of that file.
    handle = os.open(part, flags, 0o666 if replaced is None else 0o600)
    try:
        with os.fdopen(handle, "wb") as file:
            if replaced is not None:
                _take_permissions(file.fileno(), replaced)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, target)
    except BaseException:
        with contextlib.suppress(OSError):
            part.unlink()
        raise
    _remember_name(target.parent)


def _take_permissions(handle: int, of: os.stat_result) -> None:
    """Give an open file the owner, the group and the permissions of another, where it can be."""
    mode = stat.S_IMODE(of.st_mode) & 0o777
    if hasattr(os, "fchown"):
        with contextlib.suppress(OSError):  # which the system lets root alone do
            os.fchown(handle, of.st_uid, -1)
        try:
            os.fchown(handle, -1, of.st_gid)
        except OSError:
            mode &= ~0o070  # meant for the members of another group
    if hasattr(os, "fchmod"):
        os.fchmod(handle, mode)


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
