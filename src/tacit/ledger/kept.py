"""A connection with a SQLite file, kept for the next charge while it is surely with that file.

To open a file costs as much as to write to a quick disk. But a connection goes on writing to a file
that was replaced or removed, looks for the journal of a charge that was cut short under the name
the file once had, and believes what it has read. So within every transaction it is asked anew what
file the path leads to, and nothing that was read in one is believed in the next.
"""

from __future__ import annotations

import os
import sqlite3
import weakref
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from tacit.ledger.forks import no_fork
from tacit.privacy.processes import generation

# An open file can be neither replaced nor removed elsewhere, so nothing is kept open there.
_KEEPS = os.name == "posix"
# Where each table begins, and how each was made.
_SCHEMA = "SELECT group_concat(rootpage || coalesce(sql, ''), ';') FROM sqlite_master"


class Place(NamedTuple):
    """What a path leads to: where its links end, which file that is, and whether to write it."""

    path: str  # beside which SQLite looks for the journal
    device: int
    file: int  # nobody else's while it is open
    names: int
    may_write: bool

    def is_of(self, path: str) -> bool:
        """Return whether a path leads to this file, and it may be written as before."""
        return self.is_under(path) and os.access(path, os.W_OK) == self.may_write

    def is_under(self, path: str) -> bool:
        """Return whether a path leads to this file, under the one name it had."""
        try:
            found = os.lstat(self.path)  # no link: this is the file's own name
            led_to = found if path == self.path else os.stat(path)
        except OSError:
            return False
        return (
            found.st_ino == led_to.st_ino == self.file
            and found.st_dev == led_to.st_dev == self.device
            and found.st_nlink == self.names
        )


def place_of(path: str) -> Place:
    """Return what a path leads to now."""
    where, found = os.path.realpath(path), os.stat(path)
    return Place(where, found.st_dev, found.st_ino, found.st_nlink, os.access(path, os.W_OK))


@dataclass
class Opened:
    """A connection, the place it was opened at, and where SQLite found the tables."""

    connection: sqlite3.Connection
    place: Place
    schema: str | None = None
    is_written: bool = False
    is_done: bool = False
    made_in: int = field(default_factory=generation)

    @property
    def is_inherited(self) -> bool:
        """Whether it is that of the process from which this one was forked."""
        return self.made_in != generation()

    def is_at(self, path: str) -> bool:
        """Return whether it is with what the path leads to; asked within a transaction.

        A file that was written over keeps its number, and SQLite compares a counter alone: tables
        that begin elsewhere in it would be looked for where they were.
        """
        ((schema,),) = self.connection.execute(_SCHEMA)
        if self.schema is None:
            self.schema = schema
        return self.schema == schema and self.place.is_of(path)


class Kept:
    """Hands out connections with the file at a path, one idle one at most being kept.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from tacit.ledger.forks import no_fork
    >>> from tacit.ledger.kept import Kept
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "a"
    ...     path.touch()
    ...     kept = Kept(str(path))
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
        """Start without a connection, in a new process too."""
        self._idle: list[Opened] = []
        self._generation = generation()
        weakref.finalize(self, _forget, self._idle, self._generation)

    def take(self) -> Opened:
        """Return a connection, to be given back; the caller holds `no_fork` meanwhile."""
        _close_forgotten()
        if self._generation != generation():
            _forget(self._idle, self._generation)
            self._start()
        return self._idle.pop() if self._idle else _opened(self._path)

    def give_back(self, opened: Opened) -> None:
        """Keep a connection whose transaction was done, and close any other."""
        if opened.is_inherited:
            _inherited.append(opened)
            return
        if _KEEPS and opened.is_done and not self._idle:
            opened.is_done = opened.is_written = False
            try:
                # Nothing that was read is believed again.
                opened.connection.execute("PRAGMA shrink_memory")
            except sqlite3.Error:
                pass
            else:
                self._idle.append(opened)
                return
        opened.connection.close()  # rolls back what was not committed


def _opened(path: str) -> Opened:
    place = place_of(path)
    mode = "rw" if place.may_write else "ro"
    connection = sqlite3.connect(
        f"{Path(path).as_uri()}?mode={mode}",
        uri=True,
        timeout=0,
        isolation_level=None,
        check_same_thread=False,  # one at a time has it, by the lock
    )
    # Bytes that are no text are for the hash to find, which names the entry.
    connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
    # The directory too is synchronised, so that the journal does not come back.
    connection.execute("PRAGMA synchronous = EXTRA")
    return Opened(connection, place)


# --- connections whose ledger is gone -------------------------------------------------------------

_forgotten: list[Opened] = []
# Of the process that this one was forked from: never closed, since SQLite does not allow it.
_inherited: list[Opened] = []


def _forget(idle: list[Opened], made_in: int) -> None:
    if made_in != generation():
        _inherited.extend(idle)
    else:
        _forgotten.extend(idle)
        # Called at any moment, perhaps in the middle of what another thread waits for: not waiting.
        if no_fork.acquire(blocking=False):
            try:
                _close_forgotten()
            finally:
                no_fork.release()
    idle.clear()


def _close_forgotten() -> None:
    while _forgotten:
        _forgotten.pop().connection.close()
