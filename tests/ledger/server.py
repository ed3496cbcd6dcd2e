"""A PostgreSQL server of one's own, in a folder, without a network."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

ACCOUNT = "postgres"  # PostgreSQL refuses to be run by root


class Server:
    """A server that is started, stopped and killed at will."""

    def __init__(self, folder: Path | None = None) -> None:
        self.bin = _programs()
        pytest.importorskip("psycopg", reason="psycopg is not installed")
        self.as_user = ACCOUNT if os.geteuid() == 0 else None
        # Not in pytest's folder: the path of a socket has 107 letters at most.
        self.folder = Path(tempfile.mkdtemp(prefix="tacit-pg-")) if folder is None else folder
        if self.as_user:
            shutil.chown(self.folder, self.as_user, self.as_user)
        made = ["--no-sync", "--auth=trust", "--username=tacit", "--no-instructions", "-E", "UTF8"]
        self._run(self.bin / "initdb", *made, "-D", self.folder / "data")
        self._process: subprocess.Popen[bytes] | None = None

    def url(self, ledger: str) -> str:
        return f"postgresql://tacit@/postgres?host={self.folder}&ledger={ledger}"

    def start(self) -> None:
        settings = ["-c", "listen_addresses=", "-c", "max_connections=150", "-k", str(self.folder)]
        self._process = subprocess.Popen(
            [self.bin / "postgres", "-D", self.folder / "data", *settings],
            user=self.as_user,
            cwd=self.folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for _ in range(600):
            ready = [self.bin / "pg_isready", "-q", "-h", self.folder, "-U", "tacit"]
            if subprocess.run(ready, check=False).returncode == 0:
                return
            time.sleep(0.05)
        pytest.skip("PostgreSQL does not start")

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """Stop, by default at once (SIGINT), with a crash (SIGQUIT) or without a word (SIGKILL)."""
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(timeout=60)
            self._process = None

    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def remove(self) -> None:
        self.stop(signal.SIGQUIT)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _run(self, *command: str | Path) -> None:
        done = subprocess.run(
            command, user=self.as_user, cwd=self.folder, capture_output=True, check=False
        )
        if done.returncode:
            pytest.skip(f"{command[0]} fails: {done.stderr.decode()[:200]}")


def _programs() -> Path:
    """Return the folder of PostgreSQL's programs; skip with the reason if there is none."""
    here = shutil.which("initdb")
    debian = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if not here and not debian:
        pytest.skip("PostgreSQL is not installed (Debian: postgresql; .ci/postgres installs it)")
    return Path(here).resolve().parent if here else debian[-1].parent
