"""The disk of a server is full: nothing is released, and nothing is paid twice afterwards."""

from __future__ import annotations

import contextlib
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tacit.engine import release
from tacit.ledger import Ledger, LedgerError
from tacit.privacy import Budget, PureEpsilon
from tests.ledger.server import Server
from tests.ledger.test_failures import PLAN, Records, refused


@pytest.fixture
def small_server() -> Iterator[Server]:
    """Return a server whose disk has 100 megabytes."""
    folder = Path(tempfile.mkdtemp(prefix="tacit-small-"))
    mount = ["mount", "-t", "tmpfs", "-o", "size=100m", "tacit-test", str(folder)]
    try:
        subprocess.run(mount, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("only root may mount a small disk")
    server = None
    try:
        server = Server(folder)
        server.start()
        yield server
    finally:
        if server is not None:
            server.remove()
        subprocess.run(["umount", "-l", str(folder)], check=False)
        folder.rmdir()


def fill(path: Path) -> None:
    with path.open("wb", buffering=0) as stream, contextlib.suppress(OSError):
        while stream.write(b"x" * 65536):
            pass
        while stream.write(b"x" * 512):
            pass


def charged_until_refused(ledger: Ledger) -> int:
    paid = []
    with contextlib.suppress(LedgerError):
        while True:
            paid.append(ledger.charge(PureEpsilon(1e-5)))
    return len(paid)


@pytest.mark.slow
def test_a_server_whose_disk_is_full(small_server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tacit.ledger.journal._PAUSES", (0.0, 0.1))
    ledger = Ledger.create(small_server.url("a"), Budget(1.0))
    ledger.charge(PureEpsilon(0.25))
    long = ledger.bound(purpose="x" * 1000)
    fill(small_server.folder / "filler")
    # What is left of its log holds some charges; then one cannot be stored.
    paid = charged_until_refused(long)
    refused(long, "booked")
    (small_server.folder / "filler").unlink()
    if not small_server.is_running():
        small_server.stop()
        small_server.start()
    # At most one charge was stored without being acknowledged.
    assert paid <= ledger.head.entry - 1 <= paid + 1
    records = Records()
    release(PLAN, records.released, accountant=ledger)
    assert records.opened == 1
    assert ledger.verify().entries == ledger.head.entry + 1
