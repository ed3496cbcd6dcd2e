"""Entries of a ledger, sealed by hashes, and the stores that keep them.

    hash_n = SHA-256(hash_(n-1), newline, body_n)        hash_(-1) = 64 zeros

The hash of the last entry, the head, therefore depends on all entries and their order.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol


class LedgerError(RuntimeError):
    """A ledger cannot be used; the message says why and what to do. Nothing was released.

    Examples
    --------
    >>> from tacit.ledger import Ledger
    >>> Ledger.open("no such file.ledger")
    Traceback (most recent call last):
        ...
    tacit.ledger.store.LedgerError: there is no ledger at ...
    """


class LedgerDamaged(LedgerError):
    """A ledger was tampered with: an entry was changed or removed, or an older copy restored."""


class Interrupted(LedgerError):
    """The store was lost during a transaction, and the outcome of the commit is unknown.

    Only the ledger catches this error; it tries again with the same key.
    """


GENESIS = "0" * 64
Content = Mapping[str, Any]
_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False)


class Entry(NamedTuple):
    """An entry as it is stored: number, text and hash; ``key`` is a copy of the text's, for lookup.

    Examples
    --------
    >>> from tacit.ledger.store import GENESIS, sealed
    >>> first = sealed({"number": 0, "kind": "created"}, GENESIS)
    >>> first.body
    '{"kind":"created","number":0}'
    """

    number: int
    body: str
    hash: str
    key: str | None = None

    @property
    def content(self) -> Content:
        """The parsed text."""
        found: Content = json.loads(self.body)
        return found

    def check(self, previous: str) -> None:
        """Raise if the entry's hash does not follow from the hash before it."""
        if self.hash != digest(f"{previous}\n{self.body}"):
            raise LedgerDamaged(
                f"entry {self.number} was changed, or the one before it: its hash does not follow "
                f"from them. {REMEDY}"
            )


REMEDY = (
    "Nothing was booked. Keep the ledger as it is for whoever looks into it, and restore the "
    "newest copy that 'tacit ledger verify' accepts with the newest certificate."
)


def canonical(record: Any) -> str:
    """Return the canonical JSON of a record: sorted keys, ASCII, no spaces, no NaN."""
    return _CANONICAL.encode(record)


def digest(text: str) -> str:
    """Return the SHA-256 of a text, in hexadecimal digits."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


class Draft:
    """An entry's content without its place in the chain, encoded once for all entries of it.

    Examples
    --------
    >>> from tacit.ledger.store import GENESIS, Draft
    >>> Draft({"kind": "created", "who": "me"}).sealed({"number": 0}, GENESIS).body
    '{"kind":"created","number":0,"who":"me"}'
    """

    def __init__(self, content: Content) -> None:
        self.content = content
        self._texts = _texts(content)

    def sealed(self, more: Content, previous: str) -> Entry:
        """Return the entry with the content ``more``, at least its number, sealed after a hash."""
        texts = self._texts | _texts(more)
        # Equals `canonical` of the whole content; the shared texts are not encoded again.
        body = f"{{{','.join([texts[name] for name in sorted(texts)])}}}"
        return Entry(more["number"], body, digest(f"{previous}\n{body}"), more.get("key"))


def _texts(content: Content) -> dict[str, str]:
    return {name: f'"{name}":{_text(value)}' for name, value in content.items()}


def _text(value: Any) -> str:
    return str(value) if type(value) is int else canonical(value)


def sealed(content: Content, previous: str) -> Entry:
    """Return the entry of a content, sealed after the hash ``previous``."""
    return Draft({}).sealed(content, previous)


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
    stored if the block raises. `tacit.ledger.store.Interrupted` means that the outcome is unknown.
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
