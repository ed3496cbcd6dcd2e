"""A ledger in one file, by the SQLite of the standard library (docs/decisions/0026)."""

from __future__ import annotations

import contextlib
import os
import random
import sqlite3
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from tacit.ledger.entry import REMEDY, Entry
from tacit.ledger.errors import Interrupted, LedgerDamaged, LedgerError
from tacit.ledger.forks import no_fork
from tacit.ledger.store import PATIENCE, Head

_APPLICATION = 0x74616374  # "tact": by this `file` and we tell a ledger from another database
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
    # REPLACE would remove a row without a word
    "CREATE TRIGGER entries_follow BEFORE INSERT ON entries "
    f"WHEN NEW.number IS NOT (SELECT number + 1 FROM head) {_REFUSE}",
    f"CREATE TRIGGER head_stays BEFORE DELETE ON head {_REFUSE}",
    "CREATE TRIGGER head_advances BEFORE UPDATE ON head "
    f"WHEN NEW.number IS NOT OLD.number + 1 {_REFUSE}",
)
_SECONDS_FOR_READERS = 5
_BUSY = ("SQLITE_BUSY", "SQLITE_LOCKED", "SQLITE_PROTOCOL")
_DAMAGED = ("SQLITE_CORRUPT", "SQLITE_NOTADB", "SQLITE_FORMAT", "SQLITE_CONSTRAINT")


class SqliteStore:
    """Entries in a SQLite file, which may be shared by processes of one machine.

    A connection lives for one transaction: it is never carried over a fork, and a file that was
    put in the place of another is seen by the next charge.

    Parameters
    ----------
    path
        The file; a relative path is taken from where the process stands now.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(os.path.abspath(os.fspath(path)))

    @property
    def address(self) -> str:
        """The absolute path."""
        return str(self._path)

    def create(self, entry: Entry, state: str) -> None:
        """Make the file, which must not be there yet."""
        try:
            # SQLite itself would open what another process has just made.
            os.close(os.open(self._path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o666))
        except FileExistsError:
            raise LedgerError(f"{self._name} is there already; name another file.") from None
        except OSError as why:
            raise LedgerError(f"{self._name} cannot be made ({why.strerror}).") from None
        try:
            with self._transaction("BEGIN IMMEDIATE", new=True) as connection:
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

    @contextlib.contextmanager
    def writing(self, since: int, key: str | None) -> Iterator[SqlitePage]:
        """Return a transaction that nobody else writes in; on disk when its block ends."""
        with self._transaction("BEGIN IMMEDIATE") as connection:
            yield SqlitePage(connection, since, key)

    def reading(self, since: int, key: str | None = None) -> SqlitePage:
        """Return the head, the entry ``since`` and the last two."""
        with self._transaction("BEGIN") as connection:
            return SqlitePage(connection, since, key)

    def entries(self, start: int, stop: int) -> Iterator[Entry]:
        """Yield entries; a thousand at a time, so that charges get in between."""
        for first in range(start, stop, 1000):
            with self._transaction("BEGIN") as connection:
                found = _entries(connection, first, min(first + 1000, stop))
            yield from found

    def check(self) -> None:
        """Ask SQLite whether its file is whole, and compare the tables and triggers."""
        with self._transaction("BEGIN") as connection:
            said = [row[0] for row in connection.execute("PRAGMA integrity_check(3)")]
            rows = connection.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL")
            there = {row[0] for row in rows}
        if said != ["ok"]:
            raise LedgerDamaged(f"{self._name}: SQLite finds {'; '.join(said)}. {REMEDY}")
        changed = there ^ {*_TABLES, *_TRIGGERS}
        if changed:
            names = sorted(" ".join(statement.split()[1:3]) for statement in changed)
            raise LedgerDamaged(
                f"{self._name}: {', '.join(names)} is not as tacit made it, so rows may have been "
                f"changed. {REMEDY}"
            )

    @property
    def _name(self) -> str:
        return repr(self.address)

    @contextlib.contextmanager
    def _transaction(self, begin: str, new: bool = False) -> Iterator[sqlite3.Connection]:
        deadline = time.monotonic() + PATIENCE
        with contextlib.ExitStack() as stack:
            while True:
                try:
                    connection = stack.enter_context(self._connection())
                    if not new:
                        self._recognise(connection)
                    connection.execute(begin)
                    break
                except sqlite3.Error as why:
                    stack.close()
                    self._wait_or_raise(why, deadline)
            # Waiting for readers to leave, which a commit must, is SQLite's own matter.
            connection.execute(f"PRAGMA busy_timeout = {_SECONDS_FOR_READERS * 1000}")
            try:
                yield connection
            except sqlite3.Error as why:
                raise self._explained(why) from why
            try:
                connection.execute("COMMIT")
            except sqlite3.Error as why:
                raise Interrupted(str(self._explained(why))) from why

    @contextlib.contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        with no_fork:
            mode = "rw" if os.access(self._path, os.W_OK) else "ro"
            connection = sqlite3.connect(
                f"{self._path.as_uri()}?mode={mode}", uri=True, timeout=0, isolation_level=None
            )
            # Bytes that are no text are for the hash to find, which names the entry.
            connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
            try:
                # The directory too is synchronised, so that the journal does not come back.
                connection.execute("PRAGMA synchronous = EXTRA")
                yield connection
            finally:
                connection.close()  # rolls back what was not committed

    def _recognise(self, connection: sqlite3.Connection) -> None:
        # The journal that undoes a charge which was cut short is found by the file's name alone.
        if (links := self._path.stat().st_nlink) > 1:
            raise LedgerError(
                f"{self._name} is one of {links} names of a file (hard links): a charge that is "
                "cut short under one name is not undone under another. Remove the other names, or "
                "use symbolic links."
            )
        ((application,),) = connection.execute("PRAGMA application_id")
        ((version,),) = connection.execute("PRAGMA user_version")
        if application != _APPLICATION:
            raise LedgerError(
                f"{self._name} is not a ledger, or one whose making was interrupted; name another "
                "file, or make one with Ledger.create."
            )
        if version != _VERSION:
            raise LedgerError(f"{self._name} was made by a newer tacit; use that one.")
        ((mode,),) = connection.execute("PRAGMA journal_mode")
        if mode != "delete":
            raise LedgerError(
                f"{self._name} was put into journal mode {mode}, in which a charge may be lost; "
                "put it back with: PRAGMA journal_mode = DELETE."
            )

    def _wait_or_raise(self, why: sqlite3.Error, deadline: float) -> None:
        # What else cannot be opened is told from what is not there without opening it: to close
        # a file that SQLite has open as well would drop its locks.
        if not self._path.exists():
            raise LedgerError(
                f"there is no ledger at {self._name}; make one with Ledger.create, or check the "
                "path."
            ) from None
        if not why.sqlite_errorname.startswith(_BUSY):
            raise self._explained(why) from why
        if time.monotonic() > deadline:
            raise LedgerError(
                f"{self._name} was busy for {PATIENCE:g} seconds. Nothing was booked. See which "
                "process holds it, and try again."
            ) from why
        time.sleep(random.uniform(0.001, 0.02))

    def _explained(self, why: sqlite3.Error) -> LedgerError:
        name = getattr(why, "sqlite_errorname", "") or type(why).__name__
        if name.startswith(_DAMAGED):
            return LedgerDamaged(f"{self._name} is damaged: {why} ({name}). {REMEDY}")
        remedy = "free some space" if name == "SQLITE_FULL" else "check the disk and permissions"
        return LedgerError(
            f"{self._name} cannot be used: {why} ({name}). Nothing was booked; {remedy}."
        )


class SqlitePage:
    """What a transaction with SQLite sees."""

    def __init__(self, connection: sqlite3.Connection, since: int, key: str | None) -> None:
        self._connection = connection
        self.head = Head(*_one(connection, "SELECT number, hash, state FROM head"))
        last = self.head.number
        select = "SELECT number, body, hash, key FROM entries WHERE number IN (?, ?, ?) "
        rows = connection.execute(select + "ORDER BY number", (since, last - 1, last))
        self.entries: Sequence[Entry] = [Entry(*row) for row in rows]
        self.found: Entry | None = None
        if key is not None:
            select = "SELECT number, body, hash, key FROM entries WHERE key = ?"
            self.found = next((Entry(*row) for row in connection.execute(select, (key,))), None)

    def append(self, entry: Entry, state: str) -> None:
        """Write an entry and the state after it."""
        row = (entry.number, entry.key, entry.body, entry.hash)
        self._connection.execute("INSERT INTO entries VALUES (?, ?, ?, ?)", row)
        self._connection.execute(
            "UPDATE head SET number = ?, hash = ?, state = ?", (entry.number, entry.hash, state)
        )


def _one(connection: sqlite3.Connection, select: str) -> tuple[int, str, str]:
    row: tuple[int, str, str] | None = connection.execute(select).fetchone()
    # SQLite keeps what it is given: a number may have become a text.
    if row is None or tuple(map(type, row)) != (int, str, str):
        raise LedgerDamaged(f"the head of the ledger is missing or changed. {REMEDY}")
    return row


def _entries(connection: sqlite3.Connection, start: int, stop: int) -> list[Entry]:
    select = "SELECT number, body, hash, key FROM entries WHERE number >= ? AND number < ? "
    rows = connection.execute(select + "ORDER BY number", (start, stop))
    return [Entry(*row) for row in rows]
