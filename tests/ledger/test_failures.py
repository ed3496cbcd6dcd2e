"""Where a disk or a server fails, no record is opened, nothing is paid twice and nothing free."""

from __future__ import annotations

import contextlib
import os
import pickle
import resource
import signal
import socket
import sqlite3
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tacit.engine import Plan, release
from tacit.ledger import Ledger, LedgerError
from tacit.ledger.sqlite_connection import Opened, ReusedConnection
from tacit.noise import Release
from tacit.privacy import Budget, PureEpsilon
from tests.ledger.server import Server
from tests.privacy.test_accountant import in_a_child

PLAN = Plan("sum", PureEpsilon(0.25), Budget(0.25), "test")


class Records:
    """A source that counts how often it is opened."""

    def __init__(self) -> None:
        self.opened = 0

    def released(self) -> Release[float]:
        self.opened += 1
        return Release(1.0, PLAN.event)


def refused(ledger: Ledger, match: str) -> None:
    """See that a release is refused before the records are opened."""
    records = Records()
    with pytest.raises(LedgerError, match=match):
        release(PLAN, records.released, accountant=ledger)
    assert records.opened == 0


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Return a folder on a disk of 96 kilobytes."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=96k", "tacit-test", str(folder)]
    try:
        subprocess.run(mount, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("only root may mount a small disk")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=False)


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tacit.ledger.journal._PAUSES", (0.0, 0.01))


def test_a_full_disk(small_disk: Path) -> None:
    ledger = Ledger.create(small_disk / "a", Budget(1.0))
    ledger.charge(PureEpsilon(0.25))
    filler = small_disk / "filler"
    with filler.open("wb", buffering=0) as stream, contextlib.suppress(OSError):
        while True:
            stream.write(b"x" * 512)
    refused(ledger, "Nothing was booked")
    assert ledger.spent() == 0.25
    filler.unlink()
    assert ledger.charge(PureEpsilon(0.25)) == 0.5
    assert ledger.verify().entries == 3


def test_a_disk_that_becomes_read_only(small_disk: Path) -> None:
    ledger = Ledger.create(small_disk / "a", Budget(1.0))
    ledger.charge(PureEpsilon(0.25))
    # A disk on which a file is open for writing is not made read-only by asking.
    ledger = pickle.loads(pickle.dumps(ledger))
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    refused(ledger, "readonly")
    # Reading goes on.
    assert Ledger.open(small_disk / "a").verify().entries == 2
    subprocess.run(["mount", "-o", "remount,rw", str(small_disk)], check=True)
    assert ledger.charge(PureEpsilon(0.25)) == 0.5


def test_a_file_that_may_not_grow(tmp_path: Path) -> None:
    # As a quota does: a write beyond the limit fails, in the middle of a transaction.
    path = tmp_path / "a"
    ledger = Ledger.create(path, Budget(1.0))
    size = path.stat().st_size

    def limited() -> str:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size // 2, size // 2))
        records = Records()
        with contextlib.suppress(LedgerError):
            release(PLAN, records.released, accountant=ledger)
        return str(records.opened)

    assert in_a_child(limited) == "0"
    assert ledger.spent() == 0.0
    assert ledger.charge(PureEpsilon(0.25)) == 0.25
    assert ledger.verify().entries == 2


class Failing:
    """A connection that fails at a statement, before it is carried out or right after."""

    def __init__(self, real: sqlite3.Connection, at: str, after: bool, times: list[int]) -> None:
        self._real, self._at, self._after, self._times = real, at, after, times

    def execute(self, statement: str, *values: Any) -> Any:
        if not statement.startswith(self._at) or not self._times:
            return self._real.execute(statement, *values)
        self._times.pop()
        if self._after:
            self._real.execute(statement, *values)
        error = sqlite3.OperationalError("disk I/O error")
        error.sqlite_errorname = "SQLITE_IOERR_FSYNC"
        raise error


def failing(monkeypatch: pytest.MonkeyPatch, at: str, times: int, after: bool = False) -> None:
    """Let so many statements fail that start with ``at``."""
    take, give_back = ReusedConnection.take, ReusedConnection.give_back
    left = [0] * times

    def taken(self: ReusedConnection) -> Opened:
        opened = take(self)
        opened.connection = Failing(opened.connection, at, after, left)  # type: ignore[assignment]
        return opened

    def given_back(self: ReusedConnection, opened: Opened) -> None:
        opened.connection = opened.connection._real  # type: ignore[attr-defined]
        give_back(self, opened)

    monkeypatch.setattr(ReusedConnection, "take", taken)
    monkeypatch.setattr(ReusedConnection, "give_back", given_back)


@pytest.mark.parametrize("at", ["INSERT", "UPDATE", "SELECT"])
def test_an_io_error_in_a_transaction(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: str
) -> None:
    ledger = Ledger.create(tmp_path / "a", Budget(1.0))
    with monkeypatch.context() as broken:
        failing(broken, at, times=1)
        refused(ledger, "SQLITE_IOERR")
    assert ledger.spent() == 0.0
    assert ledger.verify().entries == 1


@pytest.mark.parametrize("after", [False, True])
def test_a_commit_of_unknown_outcome_is_asked_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: bool
) -> None:
    ledger = Ledger.create(tmp_path / "a", Budget(1.0))
    records = Records()
    with monkeypatch.context() as broken:
        failing(broken, "COMMIT", times=1, after=after)
        release(PLAN, records.released, accountant=ledger)
    assert records.opened == 1
    assert ledger.spent() == 0.25
    assert ledger.verify().entries == 2


@pytest.mark.parametrize("after", [False, True])
def test_a_commit_that_never_succeeds_releases_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: bool
) -> None:
    ledger = Ledger.create(tmp_path / "a", Budget(1.0))
    with monkeypatch.context() as broken:
        failing(broken, "COMMIT", times=9, after=after)
        refused(ledger, "not known")
    # Stored or not, it is one entry at most.
    assert ledger.verify().entries == (2 if after else 1)


# --- a server ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def own(server: Server) -> Iterator[Server]:
    """Return the server, which a test may stop and must start again."""
    yield server
    if server._process is None:
        server.start()


def test_a_server_that_is_stopped(own: Server) -> None:
    ledger = Ledger.create(own.url("stopped"), Budget(1.0))
    ledger.charge(PureEpsilon(0.25))
    own.stop()
    refused(ledger, "counts as spent")
    own.start()
    # The same ledger goes on by itself: the lost connection is replaced.
    assert ledger.charge(PureEpsilon(0.25)) == 0.5
    assert ledger.verify().entries == 3


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGQUIT])
def test_a_server_that_is_stopped_in_the_middle_of_a_transaction(
    own: Server, monkeypatch: pytest.MonkeyPatch, how: signal.Signals
) -> None:
    from tacit.ledger.postgres import _Page

    ledger = Ledger.create(own.url(f"middle{how:d}"), Budget(1.0))
    ledger.charge(PureEpsilon(0.25))
    commit = _Page.commit

    def stopped(self: _Page) -> None:
        own.stop(how)
        commit(self)

    with monkeypatch.context() as broken:
        broken.setattr(_Page, "commit", stopped)
        refused(ledger, "counts as spent")
    own.start()
    assert ledger.spent() == 0.25
    assert ledger.charge(PureEpsilon(0.25)) == 0.5
    assert ledger.verify().entries == 3


class Wire:
    """A relay between a client and a server that can cut what the server answers to a commit."""

    def __init__(self, folder: Path, server: Server) -> None:
        self.folder, self._server = folder, server
        self.cut = threading.Event()
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(str(folder / ".s.PGSQL.5432"))
        self._listening.listen()
        self._ends: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                server = socket.socket(socket.AF_UNIX)
                server.connect(str(self._server.folder / ".s.PGSQL.5432"))
                self._ends += [client, server]
                for one, other in ((client, server), (server, client)):
                    relay = (one, other, other is client)
                    self._threads.append(threading.Thread(target=self._relay, args=relay))
                    self._threads[-1].start()

    def _relay(self, one: socket.socket, other: socket.socket, answers: bool) -> None:
        with contextlib.suppress(OSError):
            while data := one.recv(65536):
                if answers and self.cut.is_set() and b"COMMIT\0" in data:
                    self.cut.clear()
                    break
                other.sendall(data)
        for end in (one, other):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        one.close()

    def close(self) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        for end in self._ends:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()


def test_a_connection_that_is_cut_after_the_commit(own: Server, tmp_path: Path) -> None:
    ledger = Ledger.create(own.url("cut"), Budget(1.0))
    import tempfile

    with tempfile.TemporaryDirectory(prefix="tacit-wire-") as folder:
        wire = Wire(Path(folder), own)
        try:
            far = Ledger.open(own.url("cut").replace(str(own.folder), folder))
            far.charge(PureEpsilon(0.25))
            records = Records()
            wire.cut.set()
            release(PLAN, records.released, accountant=far)
            assert not wire.cut.is_set()  # it was cut
        finally:
            wire.close()
    assert records.opened == 1
    assert ledger.spent() == 0.5
    assert ledger.verify().entries == 3


def test_a_server_without_fsync_is_refused(own: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    Ledger.create(own.url("fsync"), Budget(1.0))
    import psycopg

    real: Callable[..., Any] = psycopg.Connection.execute

    def execute(self: Any, query: Any, *args: Any, **kwargs: Any) -> Any:
        return real(self, "SELECT 'off'" if query == "SHOW fsync" else query, *args, **kwargs)

    monkeypatch.setattr(psycopg.Connection, "execute", execute)
    with pytest.raises(LedgerError, match="fsync off"):
        Ledger.open(own.url("fsync"))


# --- passwords -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://ann:hunter2@host/db",
        "postgresql://ann@host/db?password=hunter2",
        "postgresql://ann@host/db?sslpassword=hunter2&ledger=a",
        "postgresql://ann:hunter2@[bad/db",
    ],
)
def test_a_password_in_an_address_is_refused_and_not_repeated(address: str) -> None:
    for call in (lambda: Ledger.open(address), lambda: Ledger.create(address, Budget(1.0))):
        with pytest.raises(ValueError) as error:
            call()
        assert "hunter2" not in str(error.value)
        assert error.value.__cause__ is None
        assert error.value.__suppress_context__ or error.value.__context__ is None


def test_a_password_of_the_environment_is_nowhere(
    own: Server, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    import pickle

    monkeypatch.setenv("PGPASSWORD", "hunter2")
    ledger = Ledger.create(own.url("secret"), Budget(1.0))
    paid = ledger.charge(PureEpsilon(0.5))
    shown = [repr(ledger), str(pickle.dumps(ledger)), str(paid.booking), str(list(ledger.export()))]
    with pytest.raises(LedgerError) as error:
        Ledger.open(own.url("secret").replace("tacit@", "nobody@"))
    shown += [str(error.value), str(error.value.__cause__), *capfd.readouterr()]
    assert "hunter2" not in "".join(shown)
    assert os.environ["PGPASSWORD"] == "hunter2"
