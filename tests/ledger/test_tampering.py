"""What was changed behind a ledger's back is named: by verify, and by the next charge."""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tacit.ledger import Ledger, LedgerDamaged, LedgerError
from tacit.ledger.journal import CHECKPOINT, start_of_tail
from tacit.ledger.store import canonical, digest
from tacit.location import Mean
from tacit.privacy import Budget, Guarantee, PureEpsilon
from tacit.privacy.guarantee import Booking
from tacit.saving import inspect, save
from tests.ledger.server import Server

ROWS = np.ones((50, 2))
BUDGET = Budget(1.0)


def run(address: str, *statements: tuple[str, tuple[Any, ...]]) -> None:
    """Change rows as whoever owns the database can: without the triggers."""
    if not address.startswith("postgresql:"):
        with sqlite3.connect(address) as connection:
            triggers = connection.execute(
                "SELECT name, sql FROM sqlite_master WHERE type='trigger'"
            )
            made = triggers.fetchall()
            for name, _ in made:
                connection.execute(f"DROP TRIGGER {name}")
            for statement, values in statements:
                connection.execute(statement, values)
            for _, sql in made:
                connection.execute(sql)
        connection.close()
        return
    import psycopg

    libpq, ledger = address.split("&ledger=")
    with psycopg.connect(libpq) as session:
        session.execute("SET session_replication_role = replica")
        session.execute(f"SET search_path = {ledger}".encode())
        for statement, values in statements:
            session.execute(statement.replace("?", "%s").encode(), values)


def run_plainly(address: str, statement: str) -> None:
    """Change rows as whoever may write the database can."""
    if address.startswith("postgresql:"):
        import psycopg

        libpq, name = address.split("&ledger=")
        with psycopg.connect(libpq) as session:
            session.execute(f"SET search_path = {name}".encode())
            session.execute(statement.encode())
        return
    with contextlib.closing(sqlite3.connect(address)) as connection:
        connection.execute(statement)
        connection.commit()


def rows_of(address: str) -> list[tuple[int, str, str]]:
    return [(e.number, e.body, e.hash) for e in Ledger.open(address)._journal.store.entries(0, 99)]


def cheaper(body: str) -> str:
    said = json.loads(body)
    said["cost"] = [1, 0]
    return canonical(said)


def change_a_row(address: str) -> None:
    _, body, _ = rows_of(address)[2]
    run(address, ("UPDATE entries SET body = ? WHERE number = 2", (cheaper(body),)))


def change_a_row_and_its_hash(address: str) -> None:
    rows = rows_of(address)
    body = cheaper(rows[2][1])
    own = digest(f"{rows[1][2]}\n{body}")
    run(address, ("UPDATE entries SET body = ?, hash = ? WHERE number = 2", (body, own)))


def change_every_hash(address: str) -> None:
    rows = rows_of(address)
    statements, before = [], rows[1][2]
    for number, body, _ in rows[2:]:
        text = cheaper(body) if number == 2 else body
        before = digest(f"{before}\n{text}")
        values = (text, before, number)
        statements.append(("UPDATE entries SET body = ?, hash = ? WHERE number = ?", values))
    statements.append(("UPDATE head SET hash = ?", (before,)))  # type: ignore[arg-type]
    run(address, *statements)


def delete_a_row(address: str) -> None:
    run(address, ("DELETE FROM entries WHERE number = 2", ()))


def delete_a_row_and_close_the_gap(address: str) -> None:
    run(
        address,
        ("DELETE FROM entries WHERE number = 2", ()),
        ("UPDATE entries SET number = 2 WHERE number = 3", ()),
        ("UPDATE entries SET number = 3 WHERE number = 4", ()),
        ("UPDATE head SET number = 3", ()),
    )


def swap_rows(address: str) -> None:
    run(
        address,
        ("UPDATE entries SET number = 99 WHERE number = 2", ()),
        ("UPDATE entries SET number = 2 WHERE number = 3", ()),
        ("UPDATE entries SET number = 3 WHERE number = 99", ()),
    )


def lower_the_totals(address: str) -> None:
    run(
        address,
        ("UPDATE head SET state = ?", ('{"analysts":{},"partitions":{},"whole":[0,0]}',)),
    )


def cut_the_tail(address: str) -> None:
    run(address, ("DELETE FROM entries WHERE number = 4", ()))


def change_a_key(address: str) -> None:
    run(address, ("UPDATE entries SET key = ? WHERE number = 2", ("mine",)))


CASES = [
    (change_a_row, "entry 2 was changed"),
    (change_a_row_and_its_hash, "entry 2 does not follow|entry 3 was changed, or the one before"),
    (change_every_hash, "entry 2 does not follow"),
    (delete_a_row, "entry 2 is missing"),
    (delete_a_row_and_close_the_gap, "entry 2 was changed"),
    (swap_rows, "entry 2 was changed"),
    (lower_the_totals, "head of the ledger was changed"),
    (cut_the_tail, "entry 4 is missing"),
    (change_a_key, "entry 2 was changed: its key"),
]


@pytest.mark.parametrize(("tamper", "named"), CASES, ids=lambda case: getattr(case, "__name__", ""))
def test_what_was_changed_is_named(address: str, tamper: Callable[[str], None], named: str) -> None:
    ledger = Ledger.create(address, BUDGET)
    for _ in range(4):
        ledger.charge(PureEpsilon(0.2))
    assert ledger.verify().entries == 5
    tamper(address)
    with pytest.raises(LedgerDamaged, match=named):
        ledger.verify()
    # By the next charge of whoever opens it, and nothing is booked.
    with pytest.raises(LedgerDamaged, match=named):
        Ledger.open(address).charge(PureEpsilon(0.1))


@pytest.mark.parametrize("tamper", [change_every_hash, lower_the_totals, cut_the_tail])
def test_what_was_changed_under_an_open_ledger_is_seen_by_its_next_charge(
    address: str, tamper: Callable[[str], None]
) -> None:
    ledger = Ledger.create(address, BUDGET)
    for _ in range(4):
        ledger.charge(PureEpsilon(0.2))
    tamper(address)
    with pytest.raises(LedgerDamaged):
        ledger.charge(PureEpsilon(0.1))
    with pytest.raises(LedgerDamaged):
        ledger.check(PureEpsilon(0.1))


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE entries SET body = 'x'",
        "DELETE FROM entries",
        "DELETE FROM head",
        "UPDATE head SET number = 0",
    ],
)
def test_rows_are_only_added(address: str, statement: str) -> None:
    ledger = Ledger.create(address, BUDGET)
    ledger.charge(PureEpsilon(0.2))
    with pytest.raises(Exception, match="only added to"):
        run_plainly(address, statement)
    assert ledger.verify().entries == 2


def test_a_row_is_not_replaced_either(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "a", BUDGET)
    ledger.charge(PureEpsilon(0.2))
    connection = sqlite3.connect(tmp_path / "a")
    with pytest.raises(sqlite3.IntegrityError, match="only added to"):
        connection.execute("INSERT OR REPLACE INTO entries VALUES (1, NULL, 'x', 'y')")
    connection.close()


def test_a_missing_trigger_is_named(address: str) -> None:
    ledger = Ledger.create(address, BUDGET)
    if address.startswith("postgresql:"):
        run(address, ("DROP TRIGGER entries_stay ON entries", ()))
    else:
        connection = sqlite3.connect(address)
        connection.execute("DROP TRIGGER entries_stay")
        connection.close()
    with pytest.raises(LedgerDamaged, match=r"trigger|TRIGGER"):
        ledger.verify()


def test_a_trigger_that_refuses_nothing_is_named(server: Server) -> None:
    ledger = Ledger.create(server.url("toothless"), BUDGET)
    nothing = "CREATE OR REPLACE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS "
    run(ledger.address, (nothing + "$$ BEGIN RETURN NEW; END $$", ()))
    with pytest.raises(LedgerDamaged, match="missing or disabled"):
        ledger.verify()


@pytest.mark.parametrize("where", ["its name", "a page", "a text", "its end"])
def test_a_damaged_file_is_named(tmp_path: Path, where: str) -> None:
    path = tmp_path / "a"
    ledger = Ledger.create(path, BUDGET)
    for _ in range(8):
        ledger.bound(purpose="x" * 500).charge(PureEpsilon(0.1))
    body = bytearray(path.read_bytes())
    if where == "its end":
        del body[len(body) // 2 :]
    else:
        at = {"its name": 0, "a page": 4096, "a text": body.index(b"x" * 500) + 7}[where]
        body[at : at + 40] = b"\xff" * 40
    path.unlink()
    path.write_bytes(body)
    with pytest.raises(LedgerError, match=r"is damaged|SQLite finds|entry . was changed"):
        ledger.verify()
    with pytest.raises(LedgerError):
        Ledger.open(path).charge(PureEpsilon(0.1))


# --- an older copy ------------------------------------------------------------------------------


def copied(path: Path, model_at: Path) -> tuple[Path, Booking]:
    """Return yesterday's copy of a ledger, in its place, and today's certificate."""
    ledger = Ledger.create(path, BUDGET)
    ledger.charge(PureEpsilon(0.3))
    shutil.copy(path, path.with_suffix(".yesterday"))
    model = Mean(0.3, 0.0, row_norm=2.0, accountant=ledger).fit(ROWS)
    save(model, model_at)
    path.unlink()
    shutil.move(path.with_suffix(".yesterday"), path)
    booking = inspect(model_at).privacy.booking
    assert booking is not None
    return path, booking


def test_an_older_copy_is_refused_by_whoever_knows_a_newer_entry(tmp_path: Path) -> None:
    path, newer = copied(tmp_path / "a", tmp_path / "m.tacit")
    # Nobody who knows nothing newer can tell.
    assert Ledger.open(path).verify().entries == 2
    with pytest.raises(LedgerDamaged, match="ends with entry 1, but entry 2 is known"):
        Ledger.open(path).verify(seen=newer)
    with pytest.raises(LedgerDamaged, match="older copy"):
        Ledger.open(path, seen=newer)
    # It is charged on, as another ledger would be: then the entry is another one.
    Ledger.open(path).charge(PureEpsilon(0.3))
    with pytest.raises(LedgerDamaged, match="entry 2 is not the one that a certificate names"):
        Ledger.open(path, seen=[newer])


def test_an_older_copy_is_refused_by_an_open_ledger_and_its_pickle(tmp_path: Path) -> None:
    import pickle

    path = tmp_path / "a"
    ledger = Ledger.create(path, BUDGET)
    shutil.copy(path, tmp_path / "b")
    ledger.charge(PureEpsilon(0.3))
    sent = pickle.dumps(ledger)
    os.replace(tmp_path / "b", path)
    for holder in (ledger, pickle.loads(sent)):
        with pytest.raises(LedgerDamaged, match="older copy"):
            holder.charge(PureEpsilon(0.3))
    assert len(list(Ledger.open(path).export())) == 1


def test_a_certificate_of_another_ledger_is_refused(tmp_path: Path) -> None:
    one, other = (Ledger.create(tmp_path / name, BUDGET) for name in "ab")
    with pytest.raises(LedgerError, match="the certificate names ledger"):
        Ledger.open(tmp_path / "a", seen=other.head)
    assert Ledger.open(tmp_path / "a", seen=one.head).spent() == 0.0


def test_a_certificate_names_ledger_entry_and_head(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "a", BUDGET)
    model = Mean(0.3, 0.0, row_norm=2.0, accountant=ledger).fit(ROWS)
    save(model, tmp_path / "m.tacit")
    certificate = inspect(tmp_path / "m.tacit")
    said = certificate.to_dict()["guarantee"]["booking"]
    assert said == ledger.head.to_dict()
    assert said["entry"] == 1
    assert ledger.head.head in str(certificate)
    again = Guarantee.from_json(certificate.privacy.to_json())
    assert again.booking == ledger.head


@pytest.mark.parametrize(
    "wrong", [{}, {"ledger": "x", "entry": 1, "head": "y"}, [], {"ledger": "0" * 32, "entry": -1}]
)
def test_a_booking_that_is_none_is_refused(wrong: Any) -> None:
    with pytest.raises((ValueError, TypeError)):
        Booking.from_dict(wrong)


# --- long ledgers ---------------------------------------------------------------------------------


def test_a_long_ledger_is_followed_from_a_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "benchmarks"))
    lengthened = importlib.import_module("ledger").lengthened
    path = tmp_path / "a"
    ledger = Ledger.create(path, BUDGET)
    lengthened(path, PureEpsilon(1e-9), 2600)
    assert start_of_tail(2650) == 1600 == 16 * CHECKPOINT
    opened = Ledger.open(path)
    assert opened.spent() == pytest.approx(2600e-9)
    assert opened.charge(PureEpsilon(0.5)) == pytest.approx(0.5 + 2600e-9)
    assert ledger.verify(prices=True).entries == 2602
    # Beyond the tail a change is for verify to find; within it the next charge does.
    for number, found in ((700, False), (1600, True), (2000, True)):
        before = next(ledger._journal.store.entries(number, number + 1))
        run(str(path), ("UPDATE entries SET body = 'x' WHERE number = ?", (number,)))
        with pytest.raises(LedgerDamaged, match=f"entry {number} "):
            ledger.verify()
        if found:
            with pytest.raises(LedgerDamaged, match=f"entry {number} "):
                Ledger.open(path)
        else:
            Ledger.open(path)
        run(str(path), ("UPDATE entries SET body = ? WHERE number = ?", (before.body, number)))
    ledger.verify()


def test_a_price_that_is_too_low_is_found_by_pricing_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tacit.ledger.state import Terms

    ledger = Ledger.create(tmp_path / "a", BUDGET)
    with monkeypatch.context() as cheap:
        cheap.setattr(Terms, "price", lambda self, charge: (1, 0))
        ledger.charge(PureEpsilon(0.9))
    ledger.verify()
    with pytest.raises(LedgerDamaged, match="entry 1 is booked for less"):
        ledger.verify(prices=True)
