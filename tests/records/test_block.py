"""Threads that share a pass."""

from __future__ import annotations

import signal
import threading

import pytest

from tacit.records import block
from tests.privacy.test_accountant import in_a_child, needs_fork


@needs_fork
def test_a_forked_process_has_threads_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its parent's do not follow it, and it would wait for them for ever."""
    monkeypatch.setattr(block, "available_threads", lambda: 2)
    workers = block.Workers()
    both = threading.Barrier(2)  # so that there are two
    assert sorted(workers.map(lambda _: both.wait(60), [1, 2])) == [0, 1]

    def in_the_child() -> str:
        signal.alarm(20)
        return "".join(workers.map(str, [3, 4]))

    assert in_a_child(in_the_child) == "34"
    assert workers.map(str, [5, 6]) == ["5", "6"]
