"""Errors that the system itself reports, at each call that a charge makes of the disk."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tacit.ledger import Ledger
from tacit.privacy import Budget, PureEpsilon

# Charges so often, and only then opens the records each time; says which of the two it came to.
PROGRAM = """
import sys
from tacit.engine import Plan, release
from tacit.ledger import Ledger, LedgerError
from tacit.noise import Release
from tacit.privacy import Budget, PureEpsilon

ledger = Ledger.open(sys.argv[1])
plan = Plan("sum", PureEpsilon(0.01), Budget(0.01), "test")

def work():
    print("opened", flush=True)
    return Release(1.0, plan.event)

for _ in range(int(sys.argv[2])):
    try:
        release(plan, work, accountant=ledger)
    except LedgerError as why:
        print("refused", why, flush=True)
"""


def charged_with(path: Path, call: str, error: str, place: str, charges: int) -> str:
    """Return what a process says whose n-th system call of a kind fails, or all from there (n+)."""
    fault = f"inject={call}:error={error}:when={place}"
    command = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", f"trace={call}", "-e", fault]
    done = subprocess.run(
        [*command, sys.executable, "-c", PROGRAM, str(path), str(charges)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
    )
    assert done.stdout, done.stderr
    return done.stdout


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    if (
        not shutil.which("strace")
        or subprocess.run(
            ["strace", "-qq", "-o", "/dev/null", "true"], check=False, capture_output=True
        ).returncode
    ):
        pytest.skip("strace, which injects the errors, is not installed or not allowed")
    return Ledger.create(tmp_path / "a", Budget(1.0))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("call", "error", "places", "charges"),
    [
        ("pwrite64", "EIO", "1 2 4 5 1+", 1),
        ("pwrite64", "ENOSPC", "3 2+", 1),
        ("fdatasync,fsync", "EIO", "1 2 3 1+ 3+", 1),
        # By a connection that is kept from a charge before.
        ("pwrite64", "EIO", "9 12 14 9+", 3),
        ("pwrite64", "EROFS", "9+", 3),
        ("fdatasync,fsync", "EIO", "5 6 7 5+", 3),
    ],
)
def test_an_error_of_the_disk_neither_releases_nor_loses(
    ledger: Ledger, call: str, error: str, places: str, charges: int
) -> None:
    said = []
    for place in places.split():
        before = ledger.head.entry
        said += charged_with(Path(ledger.address), call, error, place, charges).splitlines()
        booked, opened = ledger.head.entry - before, said[-charges:].count("opened")
        # Opened: paid, once each. Not opened: at most paid for nothing.
        assert opened <= booked <= charges
        assert ledger.verify().entries == before + booked + 1
    assert any(line.startswith("refused") for line in said)  # the errors did reach it
    assert ledger.charge(PureEpsilon(0.01)) > 0.0
