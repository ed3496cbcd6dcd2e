"""What tests of kept connections have in common."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

from tacit.ledger import Ledger
from tacit.ledger.sqlite import SqliteStore
from tacit.ledger.sqlite_connection import ReusedConnection
from tacit.privacy import Budget, PureEpsilon

BUDGET = Budget(1.0)
TENTH = PureEpsilon(0.1)


def kept(ledger: Ledger) -> ReusedConnection:
    store = ledger._journal.store
    assert isinstance(store, SqliteStore)
    return store._reused


def idle(ledger: Ledger) -> list[int]:
    """Return which connections are kept, by their identity."""
    return [id(opened.connection) for opened in kept(ledger)._idle]


def entries(path: Path) -> int:
    """Return how many entries a file holds."""
    with contextlib.closing(sqlite3.connect(path)) as connection:
        ((n,),) = connection.execute("SELECT count(*) FROM entries")
    return int(n)
