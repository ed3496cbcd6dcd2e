"""Define the interface of a store of entries, and choose the store of an address."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import NamedTuple, Protocol

from tacit.ledger.entry import Entry

# Seconds that a charge waits for other charges before it gives up.
PATIENCE = 60.0
# Addresses of other services, and mistyped ones of a database. Such a text may contain a password,
# and errors repeat file names, so the text is never taken for a file name.
_ELSEWHERE = re.compile(
    r"\s*[a-z][a-z0-9+.-]+:/"  # any scheme
    r"|(.*[/\\\s])?postgres[a-z0-9+]*\s*:"  # postgresql: without its slashes
    r"|(?!/(?!/)|\.{1,2}[/\\]|~|[a-z]:[/\\]).*:.*@"  # user:password@host, but no path
    r"|(.*\s)?\s*(host|dbname)\s*=|.*password\s*=",  # libpq's keyword=value form
    re.I | re.S,
)


class Head(NamedTuple):
    """The last entry's number and hash, and the state after it, as text."""

    number: int
    hash: str
    state: str


class Page(Protocol):
    """The view of one transaction: reads, and at most one write; a transaction is atomic."""

    @property
    def head(self) -> Head:
        """The head at the start of the transaction."""

    @property
    def entries(self) -> Sequence[Entry]:
        """The entry of the requested number and the last two, in order, as far as they exist.

        If the last entry is requested, the one before it may be missing.
        """

    @property
    def found(self) -> Entry | None:
        """The entry of the requested key, or None."""

    def append(self, entry: Entry, state: str) -> None:
        """Write an entry and the state after it, which becomes the head."""


class Store(Protocol):
    """Stores entries in order.

    Contract: `writing` admits one writer at a time, from any process or machine, and shows the
    newest head. Appended entries are on disk when its block ends without an error, and nothing is
    stored if the block raises. `tacit.ledger.errors.Interrupted` means that the outcome is unknown.
    """

    @property
    def address(self) -> str:
        """Path or URL of the store, without any password."""

    def create(self, entry: Entry, state: str) -> None:
        """Create the ledger with its first entry; raise if the address is taken."""

    def writing(self, since: int, key: str | None) -> AbstractContextManager[Page]:
        """Return a transaction that sees the entry ``since`` and the end, and may append one."""

    def reading(self, since: int, key: str | None = None) -> Page:
        """Return the head, the entry ``since`` and the last two, all of one instant."""

    def entries(self, start: int, stop: int) -> Iterator[Entry]:
        """Yield the entries with ``start`` <= number < ``stop``, in order, as far as they exist."""

    def check(self) -> None:
        """Raise `LedgerDamaged` if the file, its tables or its triggers were changed."""


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
        # Do not repeat the address: it may contain a password, and errors are logged.
        raise ValueError(
            "a ledger's address is the path of a file, or postgresql://user@host/database?ledger="
            "name; this one looks like a connection of another kind, or a mistyped one. Write ./ "
            "before the name of a file that has a colon and an @."
        )
    from tacit.ledger.sqlite import SqliteStore

    return SqliteStore(text)
