"""Killed at any instant, a charge is stored or it is not; raced for, the last unit has one winner.

Processes are forked rather than started, which is quicker.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import select
import signal
import time
from collections import Counter
from collections.abc import Callable

import pytest

from tacit.ledger import Ledger, LedgerError
from tacit.privacy import Budget, BudgetExceeded, PureEpsilon

STORES = ["sqlite", "postgres"]


class Children:
    """Forked processes, each of which says what it has to say in a pipe."""

    def __init__(self, n: int, work: Callable[[Callable[[bytes], None]], None]) -> None:
        self.pids: list[int] = []
        self.ends: list[int] = []
        for _ in range(n):
            read, write = os.pipe()
            pid = os.fork()
            if pid == 0:  # pragma: no cover - another process
                try:
                    work(lambda text, write=write: os.write(write, text) and None)
                except BaseException as error:
                    os.write(write, f"E {error!r}\n".encode()[:4000])
                os._exit(0)
            os.close(write)
            self.pids.append(pid)
            self.ends.append(read)

    def kill_one_by_one(self, rng: random.Random) -> None:
        """Kill each at an instant of its own, while the others charge."""
        select.select(self.ends, [], [], 10.0 * rng.randrange(2))  # mid-work, or at the start
        for pid in self.pids:
            time.sleep(rng.uniform(0.0, 0.03))
            os.kill(pid, signal.SIGKILL)

    def said(self) -> list[str]:
        """Return the lines of all, once they have ended."""
        lines: list[str] = []
        for pid, end in zip(self.pids, self.ends, strict=True):
            with os.fdopen(end, "rb") as stream:
                # A line that was cut short was not said.
                lines += stream.read().decode().split("\n")[:-1]
            os.waitpid(pid, 0)
        return lines


def charging(address: str, epsilon: float) -> Callable[[Callable[[bytes], None]], None]:
    def work(say: Callable[[bytes], None]) -> None:
        ledger = Ledger.open(address)
        while True:
            try:
                paid = ledger.charge(PureEpsilon(epsilon))
            except BudgetExceeded:
                return
            say(f"{paid.booking.entry}\n".encode())

    return work


def killed(address: str, rounds: int) -> None:
    """Kill eight charging processes, each at its instant, time and again."""
    ledger = Ledger.create(address, Budget(1.0))
    rng = random.Random(1)
    acknowledged: set[int] = set()
    for _ in range(rounds):
        children = Children(8, charging(address, 1e-5))
        children.kill_one_by_one(rng)
        new = {int(line) for line in children.said()}
        assert not new & acknowledged
        acknowledged |= new
        # What was acknowledged is there, and at most one each was stored without a word.
        assert max(new, default=0) <= ledger.head.entry <= len(acknowledged) + 8 * rounds
    assert 0 < len(acknowledged) <= ledger.head.entry
    assert ledger.verify().entries == ledger.head.entry + 1
    assert ledger.spent() == pytest.approx(ledger.head.entry * 1e-5)
    ledger.charge(PureEpsilon(1e-5))


@pytest.mark.slow
@pytest.mark.parametrize("store", STORES)
def test_what_was_acknowledged_survives_a_kill(
    store: str, new_address: Callable[[str], str]
) -> None:
    killed(new_address(store), 4)


@pytest.mark.slow
@pytest.mark.parametrize("store", STORES)
def test_300_kills(store: str, new_address: Callable[[str], str]) -> None:
    killed(new_address(store), 38)  # of eight instants each


def race(addresses: list[str], writers: int) -> None:
    """Let writers want the last unit of each ledger at the same moment; see that one gets it."""
    for address in addresses:
        Ledger.create(address, Budget(1.0)).charge(PureEpsilon(0.5))
    start = multiprocessing.get_context("fork").Barrier(writers)

    def work(say: Callable[[bytes], None]) -> None:
        for place, address in enumerate(addresses):
            mine = Ledger.open(address)
            start.wait(60)
            try:
                mine.charge(PureEpsilon(0.5))
            except BudgetExceeded:
                say(f"{place} over\n".encode())
            else:
                say(f"{place} won\n".encode())

    said = Counter(Children(writers, work).said())
    for place, address in enumerate(addresses):
        assert (said[f"{place} won"], said[f"{place} over"]) == (1, writers - 1)
        assert Ledger.open(address).verify().entries == 3
    assert said.total() == writers * len(addresses)


@pytest.mark.parametrize("store", STORES)
def test_one_of_many_gets_the_last_unit(store: str, new_address: Callable[[str], str]) -> None:
    race([new_address(store) for _ in range(2)], 12)


@pytest.mark.slow
@pytest.mark.parametrize("store", STORES)
def test_one_of_64_gets_the_last_unit_20_times(
    store: str, new_address: Callable[[str], str]
) -> None:
    race([new_address(store) for _ in range(20)], 64)


def test_a_ledger_held_too_long_is_said_to_be(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tacit.ledger.sqlite.PATIENCE", 0.2)
    monkeypatch.setattr("tacit.ledger.postgres._SETTINGS", ("SET lock_timeout = '200ms'",))
    ledger = Ledger.create(address, Budget(1.0))
    other = Ledger.open(address)
    with (
        other._journal.store.writing(0, None),
        pytest.raises(LedgerError, match=r"busy for .* Nothing was booked"),
    ):
        in_another_thread(lambda: ledger.charge(PureEpsilon(0.5)))
    assert ledger.spent() == 0.0


def in_another_thread(work: Callable[[], object]) -> None:
    """Do it where the locks of this thread do not let it in."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:  # pragma: no cover - another process
        try:
            work()
        except LedgerError as error:
            os.write(write, str(error).encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as stream:
        said = stream.read()
    os.waitpid(pid, 0)
    if said:
        raise LedgerError(said)
