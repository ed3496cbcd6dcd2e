"""Statements that a connection keeps planned are those of the ledger that is there now."""

from __future__ import annotations

import threading
import time
import uuid
from typing import Any

import pytest

import tacit.ledger.postgres
from tacit.ledger import Ledger, LedgerDamaged, LedgerError
from tacit.ledger.postgres import _PREPARED, PostgresStore
from tacit.ledger.state import State
from tacit.ledger.store import Draft
from tacit.privacy import Budget, PureEpsilon
from tests.ledger.server import Server

BUDGET = Budget(1.0)
TENTH = PureEpsilon(0.1)


@pytest.fixture
def address(server: Server) -> str:
    return server.url(f"a{uuid.uuid4().hex}")


def connection_of(ledger: Ledger) -> Any:
    store = ledger._journal.store
    assert isinstance(store, PostgresStore)
    (idle,) = store._idle
    return idle


def run(address: str, statement: str) -> None:
    import psycopg

    libpq, ledger = address.split("&ledger=")
    with psycopg.connect(libpq) as session:
        session.execute(statement.format(ledger).encode())


def test_a_connection_plans_each_statement_once(address: str) -> None:
    ledger = Ledger.create(address, BUDGET)
    for _ in range(3):
        ledger.charge(TENTH)
        ledger.spent()
    found = connection_of(ledger).execute("SELECT name FROM pg_prepared_statements").fetchall()
    assert len(found) == len(_PREPARED)


def test_a_plan_that_was_made_for_a_short_ledger_does_for_a_long_one(address: str) -> None:
    ledger = Ledger.create(address, BUDGET)
    run(address, "ANALYZE {0}.entries")  # which shows how short it is
    ledger.charge(TENTH)
    for statement in ("since(1)", "keyed('k')", "last", "head", "locked"):
        rows = connection_of(ledger).execute(f"EXPLAIN EXECUTE {statement}").fetchall()
        plan = "\n".join(row[0] for row in rows)
        assert ("Index" in plan) == ("entries" in plan)
        assert "JIT" not in plan  # which takes forty milliseconds


def test_another_ledger_of_the_same_name_is_not_charged(address: str) -> None:
    ledger = Ledger.create(address, BUDGET)
    ledger.charge(TENTH)
    run(address, "DROP SCHEMA {0} CASCADE")
    with pytest.raises(LedgerError, match="there is no ledger"):
        ledger.charge(TENTH)
    other = Ledger.create(address, BUDGET)
    other.charge(TENTH)
    with pytest.raises(LedgerDamaged, match="entry 1 was changed"):
        ledger.charge(TENTH)
    assert other.verify().entries == 2


def test_a_ledger_replaced_between_two_charges_is_seen(address: str) -> None:
    ledger = Ledger.create(address, BUDGET)
    ledger.charge(TENTH)
    before = connection_of(ledger)
    run(address, "ALTER SCHEMA {0} RENAME TO {0}_away")
    Ledger.create(address, BUDGET)
    with pytest.raises(LedgerDamaged, match="older copy"):
        ledger.charge(TENTH)
    run(address, "DROP SCHEMA {0} CASCADE")
    run(address, "ALTER SCHEMA {0}_away RENAME TO {0}")
    assert ledger.charge(TENTH) == 0.2
    assert before.closed  # after an error nothing is kept


def test_a_statement_that_was_forgotten_is_an_error_and_no_charge(address: str) -> None:
    ledger = Ledger.create(address, BUDGET)
    ledger.charge(TENTH)
    connection_of(ledger).execute("DEALLOCATE ALL")  # as a pool between client and server may
    with pytest.raises(LedgerError, match="Nothing was booked"):
        ledger.charge(TENTH)
    assert ledger.charge(TENTH) == 0.2
    assert ledger.verify().entries == 3


# --- one at a time --------------------------------------------------------------------------------


def wait_until_somebody_waits(address: str) -> None:
    """Return once a session of the server waits for another's lock."""
    import psycopg

    asked = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
    with psycopg.connect(address.split("&ledger=")[0], autocommit=True) as session:
        for _ in range(3000):
            if session.execute(asked).fetchone() != (0,):
                return
            time.sleep(0.01)
    raise AssertionError("nobody waits")


@pytest.mark.parametrize("turn", ["EXECUTE locked", "EXECUTE turn; EXECUTE locked"])
def test_whoever_holds_the_head_is_waited_for(
    address: str, monkeypatch: pytest.MonkeyPatch, turn: str
) -> None:
    ledger, other = Ledger.create(address, BUDGET), Ledger.open(address)
    _, draft = ledger._priced(TENTH, None)
    paid: list[float] = []
    thread = threading.Thread(target=lambda: paid.append(other.charge(TENTH)))
    ours = tacit.ledger.postgres._WRITE
    # A tacit that does not queue for its turn locks the same row.
    monkeypatch.setattr(tacit.ledger.postgres, "_WRITE", ("READ COMMITTED", turn))

    def accept(before: State) -> tuple[Draft, State]:
        monkeypatch.setattr(tacit.ledger.postgres, "_WRITE", ours)
        thread.start()
        wait_until_somebody_waits(address)
        return draft, before.after(draft.content)

    ledger._journal.book(draft, accept)
    thread.join(60)
    assert paid == [0.2]
    assert other.verify().entries == 3
