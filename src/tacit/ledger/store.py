"""Where the books are kept: what a store must do, and which one an address means."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import NamedTuple, Protocol

from tacit.ledger.entry import Entry

# How long a charge waits for the charges of others, in seconds.
PATIENCE = 60.0
# An address of something else, or a mistyped one of a database. Such a text may hold a password, so
# it is never taken for the name of a file, which errors repeat.
_ELSEWHERE = re.compile(
    r"\s*[a-z][a-z0-9+.-]+:/"  # any scheme
    r"|(.*[/\\\s])?postgres[a-z0-9+]*\s*:"  # postgresql: without its slashes
    r"|(?!/(?!/)|\.{1,2}[/\\]|~|[a-z]:[/\\]).*:.*@"  # user:password@host, no path
    r"|(.*\s)?\s*(host|dbname)\s*=|.*password\s*=",  # libpq's other way to write a connection
    re.I | re.S,
)


class Head(NamedTuple):
    """The last entry's number and hash, and the state after it, as text."""

    number: int
    hash: str
    state: str


class Page(Protocol):
    """What a transaction sees, and where it writes; everything is stored or nothing."""

    @property
    def head(self) -> Head:
        """The head."""

    @property
    def entries(self) -> Sequence[Entry]:
        """The entry of the number asked for and the last two, in order, those that are there.

        Where the last is asked for, the one before it may be left out.
        """

    @property
    def found(self) -> Entry | None:
        """The entry of the key asked for."""

    def append(self, entry: Entry, state: str) -> None:
        """Write an entry and the state after it, which becomes the head."""


class Store(Protocol):
    """Keeps entries in order.

    Contract: `writing` lets in one at a time, whatever process or machine they are of, and shows
    the newest head; what was appended is on disk when its block ends without an error, and nothing
    is if the block raises. `tacit.ledger.errors.Interrupted` says that this is not known.
    """

    @property
    def address(self) -> str:
        """Where it is, without any password."""

    def create(self, entry: Entry, state: str) -> None:
        """Make the ledger with its first entry, or raise if there is something already."""

    def writing(self, since: int, key: str | None) -> AbstractContextManager[Page]:
        """Return a transaction that sees the entry ``since`` and the end, and may append one."""

    def reading(self, since: int, key: str | None = None) -> Page:
        """Return the head, the entry ``since`` and the last two, of one instant."""

    def entries(self, start: int, stop: int) -> Iterator[Entry]:
        """Yield the entries with ``start`` <= number < ``stop``, in order, those that are there."""

    def check(self) -> None:
        """Raise `LedgerDamaged` where the store is not as it was made: its file, its triggers."""


def store_at(address: str | os.PathLike[str]) -> Store:
    """Return the store of an address: PostgreSQL for ``postgresql://...``, else a SQLite file.

    Examples
    --------
    >>> from tacit.ledger.store import store_at
    >>> type(store_at("survey.ledger")).__name__
    'SqliteStore'
    """
    text = os.fspath(address)
    if isinstance(text, str) and text.startswith(("postgresql://", "postgres://")):
        from tacit.ledger.postgres import PostgresStore

        return PostgresStore(text)
    if _ELSEWHERE.match(os.fsdecode(text)):
        # Not repeated here: it may hold a password, and an error is logged.
        raise ValueError(
            "a ledger's address is the path of a file, or postgresql://user@host/database?ledger="
            "name; this one looks like a connection of another kind, or a mistyped one. Write ./ "
            "before the name of a file that has a colon and an @."
        )
    from tacit.ledger.sqlite import SqliteStore

    return SqliteStore(text)
