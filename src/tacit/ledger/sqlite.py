"""Store a ledger in one SQLite file (docs/decisions/0026)."""

from __future__ import annotations

import contextlib
import os
import random
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TypeVar

from tacit.ledger.sqlite_connection import Opened, Place, ReusedConnection, no_fork
from tacit.ledger.store import (
    PATIENCE,
    REMEDY,
    Entry,
    Head,
    Interrupted,
    LedgerDamaged,
    LedgerError,
)

T = TypeVar("T")

_APPLICATION = 0x74616374  # "tact": identifies a ledger to tacit and to the command `file`
_VERSION = 1
_TABLES = (
    "CREATE TABLE entries (number INTEGER PRIMARY KEY, key TEXT UNIQUE, body TEXT NOT NULL, "
    "hash TEXT NOT NULL)",
    "CREATE TABLE head (one INTEGER PRIMARY KEY CHECK (one = 1), number INTEGER NOT NULL, "
    "hash TEXT NOT NULL, state TEXT NOT NULL)",
)
_REFUSE = "BEGIN SELECT RAISE(ABORT, 'a ledger is only added to'); END"
_TRIGGERS = (
    f"CREATE TRIGGER entries_stay BEFORE DELETE ON entries {_REFUSE}",
    f"CREATE TRIGGER entries_keep BEFORE UPDATE ON entries {_REFUSE}",
    # INSERT OR REPLACE would delete a row without firing the DELETE trigger.
    "CREATE TRIGGER entries_follow BEFORE INSERT ON entries "
    f"WHEN NEW.number IS NOT (SELECT number + 1 FROM head) {_REFUSE}",
    f"CREATE TRIGGER head_stays BEFORE DELETE ON head {_REFUSE}",
    "CREATE TRIGGER head_advances BEFORE UPDATE ON head "
    f"WHEN NEW.number IS NOT OLD.number + 1 {_REFUSE}",
)
# Suffixes of the files that SQLite creates beside a database, and deletes.
_BESIDE = ("-journal", "-wal", "-shm")
# A COMMIT waits this long for readers to finish, in seconds.
_SECONDS_FOR_READERS = 5
_BUSY = ("SQLITE_BUSY", "SQLITE_LOCKED", "SQLITE_PROTOCOL")
_NO_SQLITE = "SQLITE_NOTADB"
_DAMAGED = ("SQLITE_CORRUPT", _NO_SQLITE, "SQLITE_FORMAT", "SQLITE_CONSTRAINT")


class SqliteStore:
    """Stores entries in a SQLite file, which processes of one machine may share.

    A connection is reused by the next transaction, but never after a fork. The next charge notices
    if the file was replaced (`tacit.ledger.sqlite_connection`).

    Parameters
    ----------
    path
        The file. A relative path refers to the current directory of this moment.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(os.path.abspath(os.fspath(path)))
        self._reused = ReusedConnection(str(self._path))

    @property
    def address(self) -> str:
        """The absolute path."""
        return str(self._path)

    def create(self, entry: Entry, state: str) -> None:
        """Create the file, which must not exist."""
        self._check_name(self.address)
        for ending in _BESIDE:
            if os.path.lexists(self.address + ending):
                raise LedgerError(
                    f"{self.address + ending!r} belongs to another file of that name, which SQLite "
                    "may need to repair it; name another file, or move it to where that one is."
                )
        try:
            # O_EXCL: SQLite would open a file that another process has just created.
            os.close(os.open(self._path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o666))
        except FileExistsError:
            raise LedgerError(f"{self._name} exists already; name another file.") from None
        except OSError as why:
            raise LedgerError(
                f"{self._name} cannot be made ({why.strerror}); name a file in an existing folder "
                "that may be written to."
            ) from None
        try:
            with self._transaction("BEGIN IMMEDIATE", _connection, new=True) as connection:
                connection.execute(f"PRAGMA application_id = {_APPLICATION}")
                connection.execute(f"PRAGMA user_version = {_VERSION}")
                for statement in _TABLES:
                    connection.execute(statement)
                connection.execute(
                    "INSERT INTO entries VALUES (?, ?, ?, ?)",
                    (entry.number, entry.key, entry.body, entry.hash),
                )
                head = (entry.number, entry.hash, state)
                connection.execute("INSERT INTO head VALUES (1, ?, ?, ?)", head)
                for statement in _TRIGGERS:
                    connection.execute(statement)
        except BaseException:
            with contextlib.suppress(OSError):
                self._path.unlink()
            raise

    def writing(self, since: int, key: str | None) -> AbstractContextManager[SqlitePage]:
        """Return a transaction with exclusive write access, on disk when its block ends."""
        return self._transaction("BEGIN IMMEDIATE", lambda opened: SqlitePage(opened, since, key))

    def reading(self, since: int, key: str | None = None) -> SqlitePage:
        """Return the head, the entry ``since`` and the last two."""
        with self._transaction("BEGIN", lambda opened: SqlitePage(opened, since, key)) as page:
            return page

    def entries(self, start: int, stop: int) -> Iterator[Entry]:
        """Yield entries in blocks of a thousand, so that charges can run in between."""
        for first in range(start, stop, 1000):
            with self._transaction("BEGIN", _connection) as connection:
                found = _entries(connection, first, min(first + 1000, stop))
            yield from found

    def check(self) -> None:
        """Run SQLite's integrity check; the transaction itself compares tables and triggers."""
        with self._transaction("BEGIN", _connection) as connection:
            said = [row[0] for row in connection.execute("PRAGMA integrity_check(3)")]
        if said != ["ok"]:
            raise LedgerDamaged(f"{self._name}: SQLite finds {'; '.join(said)}. {REMEDY}")

    def _check_schema(self, connection: sqlite3.Connection) -> None:
        """Raise if tables or triggers are not tacit's: rows may have been changed, or may be."""
        rows = connection.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL")
        changed = {row[0] for row in rows} ^ {*_TABLES, *_TRIGGERS}
        if changed:
            names = sorted({" ".join(statement.split()[1:3]) for statement in changed})
            raise LedgerDamaged(
                f"{self._name}: {', '.join(names)} is not as tacit made it, so rows may have been "
                f"changed. {REMEDY}"
            )

    def _check_place(self, place: Place) -> None:
        self._check_name(place.path)
        # SQLite finds the journal of an interrupted charge by the file's name alone.
        if place.names > 1:
            raise LedgerError(
                f"{self._name} is one of {place.names} names of a file (hard links): a charge that "
                "is cut short under one name is not undone under another. Remove the other names, "
                "or use symbolic links."
            )

    def _check_name(self, path: str) -> None:
        ending = next((ending for ending in _BESIDE if path.endswith(ending)), None)
        if ending is not None:
            raise LedgerError(
                f"{path!r} ends with {ending}: SQLite would take it for its own temporary file of "
                f"{path.removesuffix(ending)!r}, and remove it. Choose another name."
            )

    @property
    def _name(self) -> str:
        return repr(self.address)

    @contextlib.contextmanager
    def _transaction(
        self, begin: str, view: Callable[[Opened], T], new: bool = False
    ) -> Iterator[T]:
        """Begin, yield the result of ``view``, and commit; wait while others hold the lock."""
        deadline = time.monotonic() + PATIENCE
        while True:
            with no_fork:
                opened, why = self._begun(begin, new)
                if opened is not None:
                    try:
                        yield view(opened)
                        self._commit(opened)
                    except sqlite3.Error as error:
                        raise self._explained(error) from error
                    finally:
                        self._reused.give_back(opened)
                    return
            self._wait_or_raise(why, deadline)

    def _begun(self, begin: str, new: bool) -> tuple[Opened | None, Exception | None]:
        """Return a connection in a transaction, or None with the error that prevents one."""
        try:
            opened = self._reused.take()
        except (sqlite3.Error, OSError) as why:
            return None, why
        is_begun = False
        try:
            opened.connection.execute(begin)
            is_begun = new or self._recognised(opened)
        except sqlite3.Error as why:
            return None, why
        finally:
            if not is_begun:
                self._reused.give_back(opened)
        return (opened if is_begun else None), None

    def _commit(self, opened: Opened) -> None:
        if opened.is_inherited:
            raise LedgerError("the process was forked in a transaction, which is its parent's.")
        try:
            try:
                opened.connection.execute("COMMIT")
            except sqlite3.OperationalError as why:
                if why.sqlite_errorname != "SQLITE_BUSY":
                    raise
                # Readers hold the file. SQLite itself can wait for them during a COMMIT.
                wait = f"PRAGMA busy_timeout = {_SECONDS_FOR_READERS * 1000:.0f}"
                opened.connection.execute(wait)
                opened.connection.execute("COMMIT")
                opened.connection.execute("PRAGMA busy_timeout = 0")
        except sqlite3.Error as why:
            raise Interrupted(str(self._explained(why))) from why
        opened.is_done = True
        if opened.is_written and not opened.place.is_under(self.address):
            raise Interrupted(f"{self._name} was replaced or removed while it was written to.")

    def _recognised(self, opened: Opened) -> bool:
        """Return whether the path leads to this file; raise if the file is no usable ledger."""
        is_new = opened.schema is None
        if not opened.is_at(self.address):
            return False
        if is_new:
            self._check_place(opened.place)
        connection = opened.connection
        ((application,),) = connection.execute("PRAGMA application_id")
        ((version,),) = connection.execute("PRAGMA user_version")
        if application != _APPLICATION:
            raise LedgerError(
                f"{self._name} is not a ledger, or one whose making was interrupted; name another "
                "file, or make one with tacit ledger create or Ledger.create."
            )
        if version != _VERSION:
            raise LedgerError(f"{self._name} was made by a newer tacit; use that one.")
        ((mode,),) = connection.execute("PRAGMA journal_mode")
        if mode != "delete":
            raise LedgerError(
                f"{self._name} was put into journal mode {mode}, in which a charge may be lost; "
                "put it back with: PRAGMA journal_mode = DELETE."
            )
        if is_new:  # otherwise the connection's schema was compared before
            self._check_schema(connection)
        return True

    def _wait_or_raise(self, why: Exception | None, deadline: float) -> None:
        # Distinguish a missing file from others without opening it: closing a file that SQLite
        # has open too would drop SQLite's locks (POSIX).
        if isinstance(why, OSError) and not isinstance(why, FileNotFoundError | NotADirectoryError):
            raise LedgerError(
                f"{self._name} cannot be used: {why.strerror}. Nothing was booked; check the disk "
                "and permissions."
            ) from None
        if isinstance(why, OSError) or not os.path.exists(self.address):
            raise LedgerError(
                f"there is no ledger at {self._name}; make one with tacit ledger create or "
                "Ledger.create, or check the path."
            ) from None
        if isinstance(why, sqlite3.Error) and not why.sqlite_errorname.startswith(_BUSY):
            raise self._explained(why) from why
        if time.monotonic() > deadline:
            raise LedgerError(
                f"{self._name} was {'busy' if why else 'replaced time and again'} for "
                f"{PATIENCE:g} seconds. Nothing was booked. See which process holds it and that it "
                "is on a local disk, and try again."
            ) from why
        time.sleep(random.uniform(0.001, 0.02))

    def _explained(self, why: sqlite3.Error) -> LedgerError:
        name = getattr(why, "sqlite_errorname", "") or type(why).__name__
        if name.startswith(_DAMAGED):
            of = "no ledger (check the path), or is damaged" if name == _NO_SQLITE else "damaged"
            return LedgerDamaged(f"{self._name} is {of}: {why} ({name}). {REMEDY}")
        remedy = "free some space" if name == "SQLITE_FULL" else "check the disk and permissions"
        return LedgerError(
            f"{self._name} cannot be used: {why} ({name}). Nothing was booked; {remedy}."
        )


class SqlitePage:
    """The view of one SQLite transaction."""

    def __init__(self, opened: Opened, since: int, key: str | None) -> None:
        self._opened = opened
        self._connection = connection = opened.connection
        self.head = Head(*_one(connection, "SELECT number, hash, state FROM head"))
        last = self.head.number
        # If ``since`` is the last entry, the caller has verified it, and none before it is needed.
        first = last if since == last else last - 1
        self.entries: Sequence[Entry] = _entries(connection, first, last + 1)
        if since < first:
            self.entries = [*_entries(connection, since, since + 1), *self.entries]
        self.found: Entry | None = None
        if key is not None:
            select = "SELECT number, body, hash, key FROM entries WHERE key = ?"
            for row in connection.execute(select, (key,)).fetchall():
                self.found = Entry._make(row)

    def append(self, entry: Entry, state: str) -> None:
        """Write an entry and the state after it."""
        self._opened.is_written = True
        row = (entry.number, entry.key, entry.body, entry.hash)
        self._connection.execute("INSERT INTO entries VALUES (?, ?, ?, ?)", row)
        self._connection.execute(
            "UPDATE head SET number = ?, hash = ?, state = ?", (entry.number, entry.hash, state)
        )


def _connection(opened: Opened) -> sqlite3.Connection:
    return opened.connection


def _one(connection: sqlite3.Connection, select: str) -> tuple[int, str, str]:
    # Fetch all rows: an open SELECT would keep others from writing.
    rows: list[tuple[int, str, str]] = connection.execute(select).fetchall()
    # SQLite does not enforce column types: a number may have become a text.
    if len(rows) != 1 or tuple(map(type, rows[0])) != (int, str, str):
        raise LedgerDamaged(f"the head of the ledger is missing or changed. {REMEDY}")
    return rows[0]


def _entries(connection: sqlite3.Connection, start: int, stop: int) -> list[Entry]:
    select = "SELECT number, body, hash, key FROM entries WHERE number >= ? AND number < ? "
    rows = connection.execute(select + "ORDER BY number", (start, stop))
    return [Entry._make(row) for row in rows]
