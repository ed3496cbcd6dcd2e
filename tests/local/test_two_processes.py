"""Ten thousand people and a server, in two processes over a socket; the server is killed twice."""

import multiprocessing
import os
import signal
import socket
import struct
import time
from collections import Counter
from typing import Any

import numpy as np
import pytest

from tacit.local import Banco, Client, Reason, Rejected, Report, Server, state_to_bytes
from tacit.noise import secure_source
from tests.local.protocol_helpers import D, agreement, everything

N_PEOPLE = 10_000
KILLED_FROM_OUTSIDE = 4_000
# Here it dies by itself after a report was counted and before its sender is told.
KILLED_BEFORE_TELLING = 7_000
SAVED_EVERY = 1_500
SENT_AGAIN_EVERY = 100
ASK, TELL = b"?", b"!"
COUNTED = b"counted"
PATIENCE_OF_TEST = 120.0

_PROCESSES = multiprocessing.get_context("forkserver")
_PROCESSES.set_forkserver_preload(["tests.local.test_two_processes"])


def _send(connection, data):
    connection.sendall(struct.pack("<I", len(data)) + data)


def _receive(connection):
    (size,) = struct.unpack("<I", _exactly(connection, 4))
    return _exactly(connection, size)


def _exactly(connection, size):
    data = b""
    while len(data) < size:
        more = connection.recv(size - len(data))
        if not more:
            raise ConnectionError
        data += more
    return data


def serve(path, address):
    """The server's process: it comes back from its file and answers whoever connects."""
    server = Server.load(path, synced=False)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(address)
        listener.listen()
        while True:
            connection, _ = listener.accept()
            try:
                _converse(server, connection)
            except ConnectionError:
                connection.close()


def _converse(server, connection):
    while True:
        request = _receive(connection)
        if request == ASK:
            _send(connection, server.question())
            continue
        try:
            n_reports = server.receive(request[len(TELL) :]).n_reports
        except Rejected as error:
            _send(connection, error.reason.value.encode())
            continue
        if n_reports == KILLED_BEFORE_TELLING:
            os.kill(os.getpid(), signal.SIGKILL)
        if n_reports % SAVED_EVERY == 0:
            server.save(synced=False)
        _send(connection, COUNTED)


def answer_all(address, log_path):
    """The people's process: each answers once, and sends the answer until it is acknowledged."""
    agreed, source, line = agreement(), secure_source(), _Line(address)
    rng = np.random.default_rng(0)
    labels = rng.choice([-1.0, 1.0], size=N_PEOPLE)
    table = rng.normal(size=(N_PEOPLE, D)) + labels[:, None]
    with open(log_path, "wb", buffering=0) as log:
        for i in range(N_PEOPLE):
            client = Client(table[i], labels[i], agreed, source=source)
            report = client.answer(line.request(ASK))
            outcome = line.request(TELL + report)
            # A person whose server died learns that the report was counted before it died.
            assert outcome in (COUNTED, Reason.REPLAYED.value.encode()), outcome
            log.write(report + bytes([outcome == COUNTED]))
            if i % SENT_AGAIN_EVERY == 0:
                assert line.request(TELL + report) == Reason.REPLAYED.value.encode()


class _Line:
    """A connection that is made anew, and a request sent again, whenever the server is gone."""

    def __init__(self, address):
        self._address = address
        self._connection: Any = None

    def request(self, data):
        end = time.monotonic() + PATIENCE_OF_TEST
        while time.monotonic() < end:
            try:
                if self._connection is None:
                    self._connection = socket.socket(socket.AF_UNIX)
                    self._connection.connect(self._address)
                _send(self._connection, data)
                return _receive(self._connection)
            except OSError:
                self._connection.close()
                self._connection = None
                time.sleep(0.01)
        raise TimeoutError(self._address)


def _start(target, *arguments):
    process = _PROCESSES.Process(target=target, args=arguments, daemon=True)
    process.start()
    return process


@pytest.mark.slow
def test_a_killed_server_goes_on_as_if_nothing_had_happened(tmp_path):
    agreed, path, address = agreement(), str(tmp_path / "server"), str(tmp_path / "socket")
    first = Server(Banco(agreed.sanitizer.tail, agreed.sanitizer.norm), agreed)
    first.save(path)
    first.close()

    log_path = tmp_path / "log"
    log_path.touch()
    people = _start(answer_all, address, str(log_path))
    server = _start(serve, path, address)
    size, n_killed, end = agreed.report_size + 1, 0, time.monotonic() + PATIENCE_OF_TEST
    while people.is_alive() and time.monotonic() < end:
        time.sleep(0.002)
        if n_killed == 0 and log_path.stat().st_size >= KILLED_FROM_OUTSIDE * size:
            server.kill()
            server.join()
        if server.exitcode is not None:
            assert server.exitcode == -signal.SIGKILL
            n_killed += 1
            os.unlink(address)
            server = _start(serve, path, address)
    people.join(1.0)
    server.kill()
    server.join()
    assert people.exitcode == 0
    assert n_killed == 2

    log = log_path.read_bytes()
    entries = [log[i : i + size] for i in range(0, len(log), size)]
    reports = [entry[:-1] for entry in entries]
    # At least the one that was counted when the server killed itself was told so only later.
    assert sum(not entry[-1] for entry in entries) in (1, 2)

    uninterrupted = Server(first.learner, agreed)
    for report in reports:
        uninterrupted.receive(report)
    survivor = Server.load(path)
    assert state_to_bytes(survivor.state) == state_to_bytes(uninterrupted.state)
    assert everything(survivor) == everything(uninterrupted)

    tokens = Counter(Report.from_bytes(report).token for report in reports)
    assert survivor.n_reports == len(tokens) == N_PEOPLE
    assert set(tokens.values()) == {1}
    assert all(survivor.has_counted(token) for token in tokens)
    assert [Report.from_bytes(report).number for report in reports] == list(range(N_PEOPLE))
    assert np.all(np.isfinite(survivor.estimate))
    survivor.close()
