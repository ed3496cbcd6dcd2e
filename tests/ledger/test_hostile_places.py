"""A ledger by other names, in other places and after other accidents is one budget, or refused."""

from __future__ import annotations

import os
import pickle
import shutil
import signal
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from tacit.ledger import Ledger, LedgerDamaged, LedgerError
from tacit.privacy import Budget, BudgetExceeded, PureEpsilon
from tests.ledger.server import Server
from tests.ledger.test_crashes import Children
from tests.privacy.test_accountant import in_a_child, needs_fork

BUDGET = Budget(1.0)
HALF = PureEpsilon(0.5)


def test_a_symbolic_link_is_the_same_ledger(tmp_path: Path) -> None:
    folder, other = tmp_path / "real", tmp_path / "other"
    folder.mkdir()
    other.mkdir()
    ledger = Ledger.create(folder / "a", BUDGET)
    (other / "link").symlink_to(folder / "a")
    linked = Ledger.open(other / "link")
    linked.charge(HALF)
    # What undoes a charge that is cut short lies beside the file, where any name finds it.
    with linked._journal.store.writing(1, None) as page:
        page._connection.execute("UPDATE head SET number = number + 1")  # type: ignore[attr-defined]
        assert (folder / "a-journal").exists()
        assert not (other / "link-journal").exists()
        page._connection.execute("ROLLBACK")  # type: ignore[attr-defined]
        page._connection.execute("BEGIN")  # type: ignore[attr-defined]
    assert ledger.spent() == 0.5
    (other / "link").unlink()
    (other / "link").symlink_to(Ledger.create(other / "b", BUDGET).address)
    with pytest.raises(LedgerDamaged):
        linked.charge(HALF)


def test_a_hard_link_is_refused(tmp_path: Path) -> None:
    # A journal is found by name: what was cut short under one name is not undone under another.
    ledger = Ledger.create(tmp_path / "a", BUDGET)
    os.link(tmp_path / "a", tmp_path / "b")
    for use in (lambda: Ledger.open(tmp_path / "b"), lambda: ledger.charge(HALF)):
        with pytest.raises(LedgerError, match="hard links"):
            use()
    (tmp_path / "b").unlink()
    assert ledger.charge(HALF) == 0.5


def test_a_relative_path_stays_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        Ledger.create(tmp_path / name / "a", BUDGET)
    monkeypatch.chdir(tmp_path / "one")
    one = Ledger.open("a")
    sent = pickle.dumps(one)
    monkeypatch.chdir(tmp_path / "two")
    one.charge(HALF)
    pickle.loads(sent).charge(HALF)
    assert Ledger.open("a").spent() == 0.0
    assert Ledger.open("../one/a").spent() == 1.0


def test_a_moved_ledger_is_not_made_anew(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "a", BUDGET)
    ledger.charge(HALF)
    (tmp_path / "a").rename(tmp_path / "b")
    with pytest.raises(LedgerError, match="there is no ledger"):
        ledger.charge(HALF)
    assert not (tmp_path / "a").exists()
    assert Ledger.open(tmp_path / "b", seen=ledger._journal.known).charge(HALF) == 1.0


def test_a_pickle_on_another_machine_finds_no_other_ledger(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "a", BUDGET)
    ledger.charge(HALF)
    sent = pickle.dumps(ledger)
    (tmp_path / "a").unlink()
    with pytest.raises(LedgerError, match="there is no ledger"):
        pickle.loads(sent).charge(HALF)
    Ledger.create(tmp_path / "a", BUDGET)  # of the same name, on the other machine
    with pytest.raises(LedgerError, match="the certificate names ledger"):
        pickle.loads(sent).charge(HALF)


def cut_short(path: Path) -> None:
    """Kill a process in the middle of a charge, when some pages are in the file already."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:  # pragma: no cover - another process
        try:
            connection = sqlite3.connect(path, isolation_level=None)
            connection.execute("PRAGMA cache_size = 1")  # pages go out as when memory is short
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("INSERT INTO entries VALUES (2, 'k', ?, 'h')", ("y" * 40000,))
            connection.execute("UPDATE head SET number = 2, state = ?", ("x" * 20000,))
            os.write(write, b"x")
            time.sleep(60)
        finally:
            os._exit(1)
    os.close(write)
    assert os.read(read, 1) == b"x"
    os.close(read)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


@needs_fork
def test_a_charge_that_was_cut_short_is_undone_by_whoever_comes_next(tmp_path: Path) -> None:
    path, journal = tmp_path / "a", tmp_path / "a-journal"
    ledger = Ledger.create(path, BUDGET)
    ledger.charge(PureEpsilon(0.25))
    cut_short(path)
    assert journal.exists()
    # Taken along with the file it undoes what was not committed; the file alone is refused.
    for name in ("alone", "both"):
        shutil.copy(path, tmp_path / name)
    for name in ("both-journal", "stale"):
        shutil.copy(journal, tmp_path / name)
    assert Ledger.open(tmp_path / "both").charge(PureEpsilon(0.25)) == 0.5
    with pytest.raises(LedgerDamaged):
        Ledger.open(tmp_path / "alone").charge(PureEpsilon(0.25))
    assert ledger.charge(PureEpsilon(0.25)) == 0.5
    assert not journal.exists()
    assert ledger.verify().entries == 3
    # A journal of long ago beside a newer file puts it back in time: whoever knows more sees it.
    sent = pickle.dumps(ledger)
    shutil.copy(tmp_path / "stale", journal)
    for holder in (ledger, pickle.loads(sent)):
        with pytest.raises(LedgerDamaged):
            holder.charge(PureEpsilon(0.25))


@needs_fork
@pytest.mark.parametrize("locked", ["file", "folder"])
def test_whoever_may_only_read_reads(tmp_path: Path, locked: str) -> None:
    path = tmp_path / "a"
    Ledger.create(path, BUDGET).charge(PureEpsilon(0.25))
    for folder in (tmp_path, *list(tmp_path.parents)[:3]):
        folder.chmod(0o755)
    path.chmod(0o444 if locked == "file" else 0o666)

    def read_and_charge() -> str:
        if os.geteuid() == 0:
            os.setuid(65534)
        ledger = Ledger.open(path)
        assert ledger.verify().entries == 2
        try:
            ledger.charge(HALF)
        except LedgerError as why:
            return f"{ledger.spent()} {why}"
        return "charged"

    if os.geteuid() != 0 and locked == "folder":
        tmp_path.chmod(0o555)
    said = in_a_child(read_and_charge)
    tmp_path.chmod(0o755)
    assert said.startswith("0.25 ")
    assert "Nothing was booked" in said
    assert Ledger.open(path).charge(HALF) == 0.75


def test_a_ledger_of_a_later_tacit_is_left_alone(address: str) -> None:
    from tacit.ledger.state import State, Terms, rule_for
    from tacit.ledger.store import GENESIS, sealed, store_at

    content = {"kind": "created", **Terms("0" * 32, BUDGET, rule_for(None, BUDGET)).to_dict()}
    state = State().after(content)
    full = {**content, "version": 2, "number": 0, "state": state.digest}
    store_at(address).create(sealed(full, GENESIS), state.text)
    with pytest.raises(LedgerError, match="newer tacit"):
        Ledger.open(address)
    assert len(list(store_at(address).entries(0, 9))) == 1
    if not address.startswith("postgresql:"):
        Ledger.create(address + "2", BUDGET)
        connection = sqlite3.connect(address + "2")
        connection.execute("PRAGMA user_version = 2")
        connection.close()
        with pytest.raises(LedgerError, match="newer tacit"):
            Ledger.open(address + "2")


def test_many_who_make_the_same_ledger_make_one(address: str) -> None:
    def work(say: Callable[[bytes], None]) -> None:
        try:
            Ledger.create(address, BUDGET)
        except LedgerError:
            say(b"refused\n")
        else:
            say(b"made\n")

    assert Counter(Children(6, work).said()) == {"made": 1, "refused": 5}
    assert Ledger.open(address).verify().entries == 1


def test_many_who_declare_the_same_declare_it_once(address: str) -> None:
    Ledger.create(address, BUDGET)

    def work(say: Callable[[bytes], None]) -> None:
        mine = Ledger.open(address)
        for declare in (lambda: mine.add_partition("p"), lambda: mine.add_analyst("a", 0.5)):
            try:
                declare()
            except ValueError:
                say(b"there\n")
            else:
                say(b"new\n")

    assert Counter(Children(6, work).said()) == {"new": 2, "there": 10}
    assert Ledger.open(address).verify().entries == 3


def test_many_who_ask_by_the_same_key_pay_once(address: str) -> None:
    ledger = Ledger.create(address, BUDGET)

    def work(say: Callable[[bytes], None]) -> None:
        paid = Ledger.open(address).charge(PureEpsilon(0.25), key="march")
        say(f"{paid.booking.entry}\n".encode())

    assert Children(6, work).said() == ["1"] * 6
    assert ledger.spent() == 0.25
    assert ledger.verify().entries == 2


def test_nobody_elses_operators_are_asked(server: Server) -> None:
    """A search path of the role's does not let another schema's tables or operators in."""
    import psycopg

    address = server.url("mine")
    libpq = address.split("&ledger=")[0]
    with psycopg.connect(libpq, autocommit=True) as session:
        session.execute("CREATE SCHEMA evil")
        session.execute("CREATE TABLE evil.head AS SELECT 1 AS number")
        session.execute(
            "CREATE FUNCTION evil.never(bigint, integer) RETURNS boolean LANGUAGE sql AS "
            "'SELECT false'"
        )
        session.execute(
            "CREATE OPERATOR evil.< (LEFTARG = bigint, RIGHTARG = integer, FUNCTION = evil.never)"
        )
    ledger = Ledger.create(f"{address}&options=-csearch_path%3Devil,pg_catalog", BUDGET)
    for _ in range(3):
        ledger.charge(PureEpsilon(0.25))
    assert ledger.verify().entries == 4


def test_threads_share_a_handle_and_its_price(address: str) -> None:
    ledger, start = Ledger.create(address, BUDGET), threading.Barrier(4)
    paid: list[float] = []

    def spend(epsilon: float) -> None:
        start.wait()
        for _ in range(5):
            ledger.charge(PureEpsilon(epsilon))
            paid.append(epsilon)

    threads = [threading.Thread(target=spend, args=(e,)) for e in (0.01, 0.02, 0.03, 0.04)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    booked = [e["event"]["epsilon"] for e in ledger.export() if e["kind"] == "charge"]
    assert sorted(booked) == sorted(paid)
    assert ledger.spent() == pytest.approx(sum(paid))
    assert ledger.verify(prices=True).entries == 21


def test_a_file_replaced_in_the_middle_of_a_charge_is_seen_by_the_next(tmp_path: Path) -> None:
    path = tmp_path / "a"
    ledger = Ledger.create(path, BUDGET)
    shutil.copy(path, tmp_path / "old")
    with ledger._journal.store.writing(0, None):
        os.replace(tmp_path / "old", path)
    ledger.charge(HALF)  # nothing was lost: the copy is as new as what it replaced
    shutil.copy(path, tmp_path / "old")
    ledger.charge(PureEpsilon(0.25))
    os.replace(tmp_path / "old", path)
    with pytest.raises(LedgerDamaged, match="older copy"):
        ledger.charge(PureEpsilon(0.25))
    with pytest.raises(BudgetExceeded):
        Ledger.open(path).charge(PureEpsilon(0.75))
