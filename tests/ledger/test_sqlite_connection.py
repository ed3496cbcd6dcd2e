"""A connection that is kept is with the file at its path, and believes nothing it once read."""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
from pathlib import Path

import pytest

from tacit.ledger import Ledger, LedgerDamaged, LedgerError
from tests.ledger.connection_helpers import BUDGET, TENTH, entries, idle
from tests.privacy.test_accountant import in_a_child, needs_fork

pytestmark = pytest.mark.skipif(os.name != "posix", reason="nothing is kept open there")


def write_over(path: Path, other: Path) -> None:
    """Put other bytes into the same file, as `cp` does."""
    number = path.stat().st_ino
    with path.open("r+b") as stream:
        stream.write(other.read_bytes())
        stream.truncate()
    assert path.stat().st_ino == number


def counter(path: Path) -> bytes:
    """Return by which bytes SQLite decides whether a file has changed."""
    return path.read_bytes()[24:40]


def test_one_connection_serves_many_charges(ledger: Ledger) -> None:
    before = idle(ledger)
    for _ in range(3):
        ledger.charge(TENTH)
        ledger.spent()
    assert idle(ledger) == before
    assert len(before) == 1
    ledger.verify()
    assert idle(ledger) == before


# --- another file at the path ---------------------------------------------------------------------


@pytest.mark.parametrize("put", [os.replace, lambda other, path: write_over(path, other)])
def test_yesterdays_copy(ledger: Ledger, tmp_path: Path, put: object) -> None:
    path, old = tmp_path / "a", tmp_path / "old"
    shutil.copy(path, old)
    ledger.charge(TENTH)
    put(old, path)  # type: ignore[operator]
    with pytest.raises(LedgerDamaged, match="older copy"):
        ledger.charge(TENTH)
    assert entries(path) == 2


@pytest.mark.parametrize("put", [os.replace, lambda other, path: write_over(path, other)])
def test_another_ledger(ledger: Ledger, tmp_path: Path, put: object) -> None:
    path, other = tmp_path / "a", tmp_path / "other"
    for _ in range(3):
        Ledger.open(other).charge(TENTH) if other.exists() else Ledger.create(other, BUDGET)
    put(other, path)  # type: ignore[operator]
    for _ in range(2):
        with pytest.raises(LedgerDamaged, match="entry 1 was changed"):
            ledger.charge(TENTH)
    assert entries(path) == 3
    assert Ledger.open(path).verify().entries == 3


def test_a_copy_that_was_charged_as_often(ledger: Ledger, tmp_path: Path) -> None:
    # SQLite takes it for the file it knows, whose pages it has read already.
    path, copy = tmp_path / "a", tmp_path / "copy"
    shutil.copy(path, copy)
    ledger.charge(TENTH)
    Ledger.open(copy).charge(TENTH)
    assert counter(path) == counter(copy)
    assert path.read_bytes() != copy.read_bytes()
    write_over(path, copy)
    with pytest.raises(LedgerDamaged, match="entry 2 was changed"):
        ledger.charge(TENTH)
    assert path.read_bytes() == copy.read_bytes()


def test_a_copy_whose_tables_begin_elsewhere(ledger: Ledger, tmp_path: Path) -> None:
    path, copy = tmp_path / "a", tmp_path / "copy"
    rebuild(path, copy)
    with (
        contextlib.closing(sqlite3.connect(path)) as one,
        contextlib.closing(sqlite3.connect(copy)) as other,
    ):
        for about in ("schema_version", "application_id"):
            found = [c.execute(f"PRAGMA {about}").fetchone() for c in (one, other)]
            assert found[0] == found[1]
        roots = [
            c.execute("SELECT name, rootpage FROM sqlite_master").fetchall() for c in (one, other)
        ]
        assert sorted(roots[0]) != sorted(roots[1])
    write_over(path, copy)
    assert ledger.charge(TENTH) == 0.2
    assert ledger.verify().entries == 3


def rebuild(path: Path, copy: Path) -> None:
    """Write a ledger anew, as from a dump: the same rows, the head's table first."""
    with (
        contextlib.closing(sqlite3.connect(path)) as old,
        contextlib.closing(sqlite3.connect(copy, isolation_level=None)) as new,
    ):
        made = old.execute("SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL")
        statements = {name: (kind, sql) for kind, name, sql in made}
        for name in ("head", "entries"):
            new.execute(statements[name][1])
            for row in old.execute(f"SELECT * FROM {name}"):
                new.execute(f"INSERT INTO {name} VALUES (?, ?, ?, ?)", row)
        for kind, sql in statements.values():
            if kind == "trigger":
                new.execute(sql)
        for about in ("application_id", "user_version"):
            ((value,),) = old.execute(f"PRAGMA {about}")
            new.execute(f"PRAGMA {about} = {value}")


def test_a_file_that_is_gone(ledger: Ledger, tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.rename(tmp_path / "b")
    for _ in range(2):
        with pytest.raises(LedgerError, match="there is no ledger"):
            ledger.charge(TENTH)
        with pytest.raises(LedgerError, match="there is no ledger"):
            ledger.spent()
    assert not path.exists()
    path.touch()
    with pytest.raises(LedgerError, match="is not a ledger"):
        ledger.charge(TENTH)
    assert path.stat().st_size == 0
    path.unlink()
    path.mkdir()
    with pytest.raises(LedgerError):
        ledger.charge(TENTH)
    path.rmdir()
    (tmp_path / "b").rename(path)
    assert ledger.charge(TENTH) == 0.2
    path.unlink()
    with pytest.raises(LedgerError, match="there is no ledger"):
        ledger.charge(TENTH)


def test_a_file_that_is_another_at_each_look(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As some network file systems have it.
    monkeypatch.setattr("tacit.ledger.sqlite.PATIENCE", 0.2)
    monkeypatch.setattr("tacit.ledger.sqlite_connection.Place.is_of", lambda self, path: False)
    with pytest.raises(LedgerError, match=r"replaced time and again .* Nothing was booked"):
        ledger.charge(TENTH)


def test_a_second_name(ledger: Ledger, tmp_path: Path) -> None:
    os.link(tmp_path / "a", tmp_path / "b")
    with pytest.raises(LedgerError, match="hard links"):
        ledger.charge(TENTH)
    (tmp_path / "b").unlink()
    assert ledger.charge(TENTH) == 0.2


@pytest.mark.parametrize("moved", ["file", "folder"])
def test_the_journal_is_where_others_look_for_it(tmp_path: Path, moved: str) -> None:
    # The same file by the same path, but its own name, which the journal has, is another.
    (tmp_path / "one").mkdir()
    path, home = tmp_path / "one" / "a", tmp_path / "two"
    ledger = Ledger.create(path, BUDGET)
    ledger.charge(TENTH)
    if moved == "folder":
        path.parent.rename(home)
        path.parent.symlink_to(home)
    else:
        home.mkdir()
        path.rename(home / "a")
        path.symlink_to(home / "a")
    assert ledger.charge(TENTH) == 0.2
    with ledger._journal.store.writing(2, None) as page:
        page._connection.execute("UPDATE head SET number = number + 1")  # type: ignore[attr-defined]
        assert (home / "a-journal").exists()
        page._connection.execute("ROLLBACK")  # type: ignore[attr-defined]
        page._connection.execute("BEGIN")  # type: ignore[attr-defined]


@pytest.mark.parametrize("known", ["all of it", "less"])
def test_a_charge_into_a_file_that_is_replaced_meanwhile_is_not_acknowledged(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, known: str
) -> None:
    from tacit.ledger.sqlite import SqlitePage

    path, copy = tmp_path / "a", tmp_path / "copy"
    shutil.copy(path, copy)
    if known == "less":
        ledger.charge(TENTH)
    append = SqlitePage.append

    def replaced(self: SqlitePage, entry: object, state: str) -> None:
        append(self, entry, state)  # type: ignore[arg-type]
        if copy.exists():
            os.replace(copy, path)

    monkeypatch.setattr(SqlitePage, "append", replaced)
    if known == "less":
        with pytest.raises(LedgerDamaged, match="older copy"):
            ledger.charge(TENTH)
        assert entries(path) == 2
    else:
        assert ledger.charge(TENTH) == 0.2  # in the file that is there now
        assert Ledger.open(path).verify().entries == 3


# --- the same file, changed -----------------------------------------------------------------------


@pytest.mark.parametrize("what", ["head", "last", "page", "end"])
def test_a_page_that_is_damaged_after_it_was_read(
    ledger: Ledger, tmp_path: Path, what: str
) -> None:
    path = tmp_path / "a"
    body = bytearray(path.read_bytes())
    before = counter(path)
    if what == "end":
        del body[len(body) - 4096 :]
    elif what == "page":
        body[4096 : 4096 + 40] = b"\xff" * 40
    else:
        text = b'"whole":[' if what == "head" else b'"kind":"charge"'
        at = body.index(text) + len(text)
        body[at + 2 : at + 4] = b"99"
    (tmp_path / "damaged").write_bytes(body)
    write_over(path, tmp_path / "damaged")
    assert counter(path) == before
    with pytest.raises(LedgerDamaged):
        ledger.charge(TENTH)
    assert path.read_bytes() == body


def test_another_journal_mode(ledger: Ledger, tmp_path: Path) -> None:
    with contextlib.closing(sqlite3.connect(tmp_path / "a")) as connection:
        assert connection.execute("PRAGMA journal_mode = WAL").fetchone() == ("wal",)
    with pytest.raises(LedgerError, match="journal mode wal"):
        ledger.charge(TENTH)
    with contextlib.closing(sqlite3.connect(tmp_path / "a")) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
    assert ledger.charge(TENTH) == 0.2


def test_charges_of_others_are_seen(ledger: Ledger, tmp_path: Path) -> None:
    for n in range(2, 6, 2):
        said = in_a_child(lambda: str(Ledger.open(tmp_path / "a").charge(TENTH).booking.entry))
        assert said == str(n)
        assert ledger.charge(TENTH).booking.entry == n + 1


@needs_fork
def test_a_file_that_may_no_longer_be_written(tmp_path: Path) -> None:
    path = tmp_path / "a"
    for folder in (tmp_path, *list(tmp_path.parents)[:3]):
        folder.chmod(0o755)
    tmp_path.chmod(0o777)

    def charge_twice() -> str:
        if os.geteuid() == 0:
            os.setuid(65534)
        ledger = Ledger.create(path, BUDGET)
        ledger.charge(TENTH)
        path.chmod(0o444)
        try:
            ledger.charge(TENTH)
        except LedgerError as why:
            said = f"{ledger.spent()} {why}"
        path.chmod(0o666)
        return f"{ledger.charge(TENTH):g} {said}"

    said = in_a_child(charge_twice)
    assert said.startswith("0.2 0.1 ")
    assert "Nothing was booked" in said
