"""Keep a SQLite connection for the next charge while it is surely with the same file.

SQLite stores the locks of a process in its memory. If a process forks while one of its threads
holds a lock, the child believes that it owns the lock and never releases it.

Opening a file costs as much as writing to a fast disk. But an open connection keeps writing to a
file that was replaced or removed. It looks for the journal of an interrupted charge under the
file's old name, and it trusts its cache. So each transaction checks anew to which file the path
leads, and drops the cache at its end.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import weakref
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from tacit.privacy.fork import generation

#: Held while a connection is open, and while a process is forked.
no_fork = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=no_fork.acquire, after_in_parent=no_fork.release, after_in_child=no_fork.release
    )


# Windows lets nobody replace or remove an open file, so connections are closed there.
_KEEPS = os.name == "posix"
# Root page and definition of each table: a change shows that the file was overwritten.
_SCHEMA = "SELECT group_concat(rootpage || coalesce(sql, ''), ';') FROM sqlite_master"


class Place(NamedTuple):
    """The file that a path leads to: its real path, identity, number of links, and write access."""

    path: str  # without links; SQLite looks for the journal beside it
    device: int
    file: int  # inode; unique while the file is open
    names: int
    may_write: bool

    def is_of(self, path: str) -> bool:
        """Return whether a path leads to this file, with the same write access."""
        return self.is_under(path) and os.access(path, os.W_OK) == self.may_write

    def is_under(self, path: str) -> bool:
        """Return whether a path leads to this file, under its only name."""
        try:
            found = os.lstat(self.path)  # not a link: the file's own name
            led_to = found if path == self.path else os.stat(path)
        except OSError:
            return False
        return (
            found.st_ino == led_to.st_ino == self.file
            and found.st_dev == led_to.st_dev == self.device
            and found.st_nlink == self.names
        )


def place_of(path: str) -> Place:
    """Return the file that a path leads to now."""
    where, found = os.path.realpath(path), os.stat(path)
    return Place(where, found.st_dev, found.st_ino, found.st_nlink, os.access(path, os.W_OK))


@dataclass
class Opened:
    """A connection, the file it was opened with, and the definitions of its tables."""

    connection: sqlite3.Connection
    place: Place
    schema: str | None = None
    is_written: bool = False
    is_done: bool = False
    made_in: int = field(default_factory=generation)

    @property
    def is_inherited(self) -> bool:
        """Whether the connection belongs to the process that this one was forked from."""
        return self.made_in != generation()

    def is_at(self, path: str) -> bool:
        """Return whether the connection is with the path's file; call it within a transaction.

        A file that was overwritten keeps its inode, and SQLite compares only a change counter. It
        would look for tables at their old pages, so the definitions are compared too.
        """
        ((schema,),) = self.connection.execute(_SCHEMA)
        if self.schema is None:
            self.schema = schema
        return self.schema == schema and self.place.is_of(path)


class ReusedConnection:
    """Hands out connections to the file at a path, and keeps at most one idle.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from tacit.ledger.sqlite_connection import no_fork
    >>> from tacit.ledger.sqlite_connection import ReusedConnection
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "a"
    ...     path.touch()
    ...     kept = ReusedConnection(str(path))
    ...     with no_fork:
    ...         opened = kept.take()
    ...         kept.give_back(opened)
    ...     opened.place.is_of(str(path))
    True
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._start()

    def _start(self) -> None:
        """Start without a connection, also after a fork."""
        self._idle: list[Opened] = []
        self._generation = generation()
        weakref.finalize(self, _forget, self._idle, self._generation)

    def take(self) -> Opened:
        """Return a connection; the caller holds `no_fork` until it gives the connection back."""
        _close_forgotten()
        if self._generation != generation():
            _forget(self._idle, self._generation)
            self._start()
        return self._idle.pop() if self._idle else _opened(self._path)

    def give_back(self, opened: Opened) -> None:
        """Keep a connection whose transaction was committed, and close any other."""
        if opened.is_inherited:
            _inherited.append(opened)
            return
        if _KEEPS and opened.is_done and not self._idle:
            opened.is_done = opened.is_written = False
            try:
                # Drop SQLite's cache: the file may be overwritten before the next transaction.
                opened.connection.execute("PRAGMA shrink_memory")
            except sqlite3.Error:
                pass
            else:
                self._idle.append(opened)
                return
        opened.connection.close()  # rolls back an uncommitted transaction


def _opened(path: str) -> Opened:
    place = place_of(path)
    mode = "rw" if place.may_write else "ro"
    connection = sqlite3.connect(
        f"{Path(path).as_uri()}?mode={mode}",
        uri=True,
        timeout=0,
        isolation_level=None,
        check_same_thread=False,  # `no_fork` admits one thread at a time
    )
    # Decode invalid UTF-8 too: the hash check then names the changed entry.
    connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
    # EXTRA also syncs the directory after the journal is deleted, so it cannot reappear.
    connection.execute("PRAGMA synchronous = EXTRA")
    return Opened(connection, place)


# --- connections of deleted ledgers ---------------------------------------------------------------

_forgotten: list[Opened] = []
# Connections of the parent process: never closed, since SQLite forbids that after a fork.
_inherited: list[Opened] = []


def _forget(idle: list[Opened], made_in: int) -> None:
    if made_in != generation():
        _inherited.extend(idle)
    else:
        _forgotten.extend(idle)
        # The garbage collector may call this while another thread holds the lock: do not wait for
        # it.
        if no_fork.acquire(blocking=False):
            try:
                _close_forgotten()
            finally:
                no_fork.release()
    idle.clear()


def _close_forgotten() -> None:
    while _forgotten:
        _forgotten.pop().connection.close()
