"""Arrays on nameless files: nobody else can read them, and nothing is left of a killed process."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest

import tacit.disk_arrays as module
from tacit.disk_arrays import disk_array, empty_like_rows, is_on_disk, zeros_somewhere


def test_it_is_an_array_on_a_file_without_a_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    array = disk_array((1000, 3), np.float32)
    array[:] = 7.0
    assert array.sum() == 21_000
    assert is_on_disk(array)
    assert is_on_disk(np.asarray(array)[10:])
    assert list(tmp_path.iterdir()) == []
    held = [
        line for line in Path("/proc/self/maps").read_text().splitlines() if str(tmp_path) in line
    ]
    assert len(held) == 1
    assert "(deleted)" in held[0]


def test_only_its_owner_may_read_it(monkeypatch: pytest.MonkeyPatch) -> None:
    modes = []
    real = os.posix_fallocate

    def look(fd: int, *rest: int) -> None:
        modes.append(stat.S_IMODE(os.fstat(fd).st_mode))
        real(fd, *rest)

    monkeypatch.setattr(os, "posix_fallocate", look)
    disk_array((10,), np.int8)
    assert modes == [0o600]


def test_a_killed_process_leaves_nothing(tmp_path: Path) -> None:
    script = (
        "import numpy as np, sys, time\n"
        "from tacit.disk_arrays import disk_array\n"
        "a = disk_array((100_000,), np.float64); a[:] = 1.0\n"
        "print('ready', flush=True); time.sleep(60)\n"
    )
    where = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, env=where
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n"
        assert list(tmp_path.iterdir()) == []
        child.send_signal(signal.SIGKILL)
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_refused_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(OSError, match="set TMPDIR"):
        disk_array((10,), np.int8)


def test_only_large_arrays_are_made_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "memory_bytes", lambda: 8000)
    assert not is_on_disk(zeros_somewhere((250,), np.float64))
    assert is_on_disk(zeros_somewhere((251,), np.float64))
    assert is_on_disk(empty_like_rows(disk_array((3,), np.int8), (2,), np.float64))
    assert not is_on_disk(empty_like_rows(np.zeros(3), (2,), np.float64))
    assert disk_array((0, 3), np.float64).shape == (0, 3)
