"""A kept connection among other readers, threads and processes: locks, forks and its end."""

from __future__ import annotations

import contextlib
import gc
import os
import pickle
import sqlite3
import threading
from pathlib import Path

import pytest

from tacit.ledger import Ledger, LedgerError
from tests.ledger.connection_helpers import BUDGET, TENTH, entries, idle, kept
from tests.privacy.test_accountant import in_a_child, needs_fork

pytestmark = pytest.mark.skipif(os.name != "posix", reason="nothing is kept open there")


def test_an_idle_connection_holds_no_lock(ledger: Ledger, tmp_path: Path) -> None:
    ledger.spent()
    (opened,) = kept(ledger)._idle
    # Nor would it wait for one while it keeps others from forking.
    assert opened.connection.execute("PRAGMA busy_timeout").fetchone() == (0,)
    with contextlib.closing(sqlite3.connect(tmp_path / "a", timeout=0)) as other:
        other.execute("BEGIN EXCLUSIVE")


def test_a_reader_who_stays(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tacit.ledger.sqlite._SECONDS_FOR_READERS", 0.05)
    monkeypatch.setattr("tacit.ledger.journal._PAUSES", (0.0, 0.01))
    with contextlib.closing(sqlite3.connect(tmp_path / "a", isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM head").fetchall()
        with pytest.raises(LedgerError, match="locked"):
            ledger.charge(TENTH)
        assert entries(tmp_path / "a") == 2
    assert ledger.charge(TENTH) == 0.2
    # One who leaves in time is waited for.
    monkeypatch.setattr("tacit.ledger.sqlite._SECONDS_FOR_READERS", 60)
    reader = sqlite3.connect(tmp_path / "a", isolation_level=None, check_same_thread=False)
    reader.execute("BEGIN")
    reader.execute("SELECT * FROM head").fetchall()
    leaves = threading.Timer(0.2, reader.close)
    leaves.start()
    assert ledger.charge(TENTH) == pytest.approx(0.3)
    leaves.join()


def test_threads_take_turns(ledger: Ledger) -> None:
    before, paid = idle(ledger), []
    for _ in range(3):
        thread = threading.Thread(target=lambda: paid.append(ledger.charge(TENTH)))
        thread.start()
        thread.join()
    assert paid == pytest.approx([0.2, 0.3, 0.4])
    assert idle(ledger) == before


def test_an_interrupted_charge_leaves_nothing_behind(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tacit.ledger.sqlite import SqlitePage

    append = SqlitePage.append

    def interrupted(self: SqlitePage, entry: object, state: str) -> None:
        append(self, entry, state)  # type: ignore[arg-type]
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(SqlitePage, "append", interrupted)
        with pytest.raises(KeyboardInterrupt):
            ledger.charge(TENTH)
    assert not idle(ledger)
    assert entries(tmp_path / "a") == 2
    assert ledger.charge(TENTH) == 0.2


@needs_fork
def test_a_forked_process_leaves_its_parents_connection_alone(
    ledger: Ledger, tmp_path: Path
) -> None:
    before = idle(ledger)
    inherited = kept(ledger)._idle[0].connection

    def in_the_child() -> str:
        paid = ledger.charge(TENTH)
        own = idle(ledger)
        inherited.execute("SELECT 1")  # not closed
        return f"{paid:g} {own != before}"

    assert in_a_child(in_the_child) == "0.2 True"
    assert ledger.charge(TENTH) == pytest.approx(0.3)
    assert idle(ledger) == before


@needs_fork
def test_a_child_that_drops_the_ledger_keeps_its_locks(ledger: Ledger, tmp_path: Path) -> None:
    # To close a file drops the locks that a process has on it, by whichever connection.
    held = [ledger]

    def in_the_child() -> str:
        mine = Ledger.open(tmp_path / "a")
        with mine._journal.store.writing(1, None):
            held.clear()
            gc.collect()
            return in_another_process(tmp_path / "a")

    del ledger
    assert in_a_child(in_the_child) == "locked"


def in_another_process(path: Path) -> str:
    """Return whether another process may write a file."""
    import subprocess
    import sys

    program = (
        "import sqlite3, sys\n"
        "try: sqlite3.connect(sys.argv[1], timeout=0).execute('BEGIN IMMEDIATE')\n"
        "except sqlite3.OperationalError: print('locked', end='')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=True
    )
    return done.stdout


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="needs /proc")
def test_a_ledger_that_is_dropped_lets_its_file_go(tmp_path: Path) -> None:
    def files() -> int:
        gc.collect()
        return len(os.listdir("/proc/self/fd"))

    before = files()
    Ledger.create(tmp_path / "a", BUDGET)
    ledgers = [Ledger.open(tmp_path / "a") for _ in range(20)]
    for ledger in ledgers:
        ledger.spent()
    assert files() == before + 20
    pickle.loads(pickle.dumps(ledgers[0])).spent()
    del ledgers, ledger
    assert files() == before


def test_a_ledger_dropped_while_another_thread_charges_is_closed_later(
    ledger: Ledger, tmp_path: Path
) -> None:
    others = [Ledger.open(tmp_path / "a")]
    others[0].spent()
    (opened,) = kept(others[0])._idle
    entered, leave = threading.Event(), threading.Event()

    def charge() -> None:
        with ledger._journal.store.writing(1, None):
            entered.set()
            leave.wait(60)

    thread = threading.Thread(target=charge)
    thread.start()
    entered.wait(60)
    others.clear()
    gc.collect()  # does not wait for the thread, which waits for us
    opened.connection.execute("SELECT 1")
    leave.set()
    thread.join()
    ledger.spent()
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        opened.connection.execute("SELECT 1")
