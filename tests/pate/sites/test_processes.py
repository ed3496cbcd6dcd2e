"""Three sites and a collector in four processes over sockets; one site is killed in the middle."""

from __future__ import annotations

import multiprocessing
import os
import signal
import socket
import struct
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB

from tacit.pate.sites import Round, TeacherSite, VoteCollector, digest_of
from tests.pate.helpers import table

NAMES = ("north", "south", "west")
_LENGTH = struct.Struct("<I")


def made(name: str, folder: Path) -> TeacherSite:
    return TeacherSite(name, GaussianNB(), 10, folder / name, classes=[0, 1, 2])


def records(name: str) -> tuple[Any, Any]:
    rows, labels, _ = table(600)
    own = slice(200 * NAMES.index(name), 200 * (NAMES.index(name) + 1))
    return rows[own], labels[own]


def send(port: int, data: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", port), timeout=20) as link:
        link.sendall(_LENGTH.pack(len(data)) + data)
        return receive(link)


def receive(link: socket.socket) -> bytes:
    head = _exactly(link, _LENGTH.size)
    return _exactly(link, *_LENGTH.unpack(head))


def _exactly(link: socket.socket, n: int) -> bytes:
    data = b""
    while len(data) < n:
        more = link.recv(n - len(data))
        if not more:
            raise ConnectionError("the other side is gone")
        data += more
    return data


def collect(agreed: bytes, port: Any, found: Any) -> None:
    """Listen until all votes are there; whoever breaks off is waited for."""
    collector = VoteCollector(Round.from_bytes(agreed))
    with socket.create_server(("127.0.0.1", 0)) as server:
        port.put(server.getsockname()[1])
        while collector.missing:
            link, _ = server.accept()
            with link:
                try:
                    data = receive(link)
                except ConnectionError:
                    continue  # it was killed; it will come again
                collector.add(data)
                link.sendall(_LENGTH.pack(2) + b"ok")
    found.put(collector.totals())


def vote(name: str, folder: Path, agreed: bytes, port: int, dies: bool) -> None:
    """Answer the round; one that dies sends half of its message and is killed."""
    site, (rows, labels), (_, _, pool) = made(name, folder), records(name), table(600)
    data = site.answer(Round.from_bytes(agreed), rows, labels, pool)
    if dies:
        link = socket.create_connection(("127.0.0.1", port), timeout=20)
        link.sendall(_LENGTH.pack(len(data)) + data[: len(data) // 2])
        (folder / "half").touch()
        time.sleep(60)
    assert send(port, data) == b"ok"


@pytest.mark.slow
def test_a_site_is_killed_and_comes_back(tmp_path: Path) -> None:
    spawn = multiprocessing.get_context("spawn")
    pool = table(600)[2]
    entries = tuple(made(name, tmp_path).entry(masked=True) for name in NAMES)
    agreed = Round("may", entries, 3, digest_of(pool), 40, 2.0, masked=True).to_bytes()
    port, found = spawn.Queue(), spawn.Queue()
    collector = spawn.Process(target=collect, args=(agreed, port, found))
    collector.start()
    at = port.get(timeout=60)
    voters = {
        name: spawn.Process(target=vote, args=(name, tmp_path, agreed, at, name == "west"))
        for name in NAMES
    }
    for voter in voters.values():
        voter.start()
    until = time.monotonic() + 60
    while not (tmp_path / "half").exists() and time.monotonic() < until:
        time.sleep(0.05)
    os.kill(voters["west"].pid or 0, signal.SIGKILL)
    voters["west"].join(20)
    (kept,) = (tmp_path / "west").glob("*.votes")
    before = kept.read_bytes()
    back = spawn.Process(target=vote, args=("west", tmp_path, agreed, at, False))
    back.start()
    totals = found.get(timeout=60)
    for process in (*voters.values(), back, collector):
        process.join(30)
    assert (back.exitcode, collector.exitcode) == (0, 0)
    assert kept.read_bytes() == before  # the same votes, to the last byte
    check = VoteCollector(Round.from_bytes(agreed))
    for name in NAMES:
        (path,) = (tmp_path / name).glob("*.votes")
        check.add(path.read_bytes())
    np.testing.assert_array_equal(check.totals(), totals)
