"""What lies beside a ledger, or in it besides, does nothing to it, nor it to them."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from pathlib import Path

import pytest

from tacit.ledger import Ledger, LedgerDamaged, LedgerError
from tacit.privacy import Budget, PureEpsilon
from tests.privacy.test_accountant import needs_fork

BUDGET = Budget(1.0)
TENTH = PureEpsilon(0.1)


@pytest.mark.parametrize("ending", ["-journal", "-wal", "-shm"])
def test_a_ledger_is_not_named_as_what_sqlite_keeps_beside_another(
    tmp_path: Path, ending: str
) -> None:
    # SQLite would take it for the journal of "a", and remove it.
    with pytest.raises(LedgerError, match=f"ends with {ending}"):
        Ledger.create(tmp_path / f"a{ending}", BUDGET)
    assert not list(tmp_path.iterdir())
    ledger = Ledger.create(tmp_path / "b", BUDGET)
    (tmp_path / "b").rename(tmp_path / f"a{ending}")
    for path in (tmp_path / f"a{ending}", tmp_path / "b"):
        if not path.exists():
            path.symlink_to(tmp_path / f"a{ending}")
        with pytest.raises(LedgerError, match=f"ends with {ending}"):
            Ledger.open(path)
    with pytest.raises(LedgerError, match=f"ends with {ending}"):
        ledger.charge(TENTH)


@pytest.mark.parametrize("ending", ["-journal", "-wal", "-shm"])
def test_what_is_left_of_another_is_not_removed_by_a_new_one(tmp_path: Path, ending: str) -> None:
    # Perhaps the one thing that undoes a charge which was cut short, of a ledger that was moved.
    left = tmp_path / f"a{ending}"
    left.write_bytes(b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7" + b"x" * 600)
    with pytest.raises(LedgerError, match="belongs to another file of that name"):
        Ledger.create(tmp_path / "a", BUDGET)
    assert left.stat().st_size == 608
    assert not (tmp_path / "a").exists()
    left.unlink()
    Ledger.create(tmp_path / "a", BUDGET)


CHANGES = {
    "missing": "DROP TRIGGER entries_stay",
    "other": "CREATE TRIGGER undo AFTER UPDATE ON head BEGIN SELECT 1; END",
    "index": "CREATE INDEX more ON entries (hash)",
    "view": "CREATE VIEW more AS SELECT * FROM head",
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_charge_names_a_trigger_that_is_not_tacits(tmp_path: Path, change: str) -> None:
    ledger = Ledger.create(tmp_path / "a", BUDGET)
    ledger.charge(TENTH)
    with contextlib.closing(sqlite3.connect(tmp_path / "a")) as connection:
        connection.execute(change)
    for use in (
        lambda: ledger.charge(TENTH),
        lambda: Ledger.open(tmp_path / "a"),
        ledger.verify,
    ):
        with pytest.raises(LedgerDamaged, match="is not as tacit made it"):
            use()


def test_a_trigger_that_takes_a_charge_back_is_not_believed(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "a", BUDGET)
    ledger.charge(TENTH)
    with contextlib.closing(sqlite3.connect(tmp_path / "a")) as connection:
        connection.execute("DROP TRIGGER entries_stay")
        connection.execute(
            "CREATE TRIGGER entries_stay AFTER UPDATE ON head BEGIN "
            "DELETE FROM entries WHERE number = NEW.number; END"
        )
    with pytest.raises(LedgerDamaged, match="entries_stay is not as tacit made it"):
        ledger.charge(TENTH)
    with pytest.raises(LedgerDamaged, match="entries_stay is not as tacit made it"):
        Ledger.open(tmp_path / "a").charge(TENTH)


@needs_fork
def test_a_process_forked_within_a_transaction_does_not_finish_it(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "a", BUDGET)
    read, write = os.pipe()
    try:
        with ledger._journal.store.writing(0, None) as page:
            page._connection.execute(  # type: ignore[attr-defined]
                "INSERT INTO entries VALUES (1, 'k', 'b', 'h')"
            )
            child = os.fork()
            if child:
                os.waitpid(child, 0)
                page._connection.execute("ROLLBACK")  # type: ignore[attr-defined]
                page._connection.execute("BEGIN")  # type: ignore[attr-defined]
    except LedgerError as why:  # pragma: no cover - another process
        os.write(write, str(why).encode())
    finally:
        if not child:  # pragma: no cover - another process
            os._exit(0)
    os.close(write)
    with os.fdopen(read) as stream:
        assert "which is its parent's" in stream.read()
    assert ledger.charge(TENTH) == 0.1
    assert ledger.verify().entries == 2
