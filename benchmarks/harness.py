"""What the benchmarks share: threads, timing, peers in their own environment, tables."""

from __future__ import annotations

import csv
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
RESULTS = HERE / "results"
SCRATCH = HERE.parent / ".bench"
PEERS = SCRATCH / "peers"
# diffprivlib 0.6.6 does not import with a later scikit-learn.
PEER_PACKAGES = ("diffprivlib==0.6.6", "scikit-learn==1.7.2", "numpy==2.4.6", "scipy==1.17.1")
_THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def results_folder(partial: bool) -> Path:
    """Return where results go: a partial run must not overwrite the results of a whole one."""
    folder = SCRATCH / "partial" if partial else RESULTS
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def pin_threads(count: int) -> None:
    """Give BLAS so many threads, here and in every child; call before NumPy is imported."""
    for name in _THREAD_VARIABLES:
        os.environ[name] = str(count)


class Run:
    """What is being measured, from when on, and beside which neighbours."""

    def __init__(self) -> None:
        self.commit = commit()  # of the code that is loaded, whatever happens to the files later
        self._start = self._busy(), self._own()

    def taken_by_others(self) -> float:
        """Return the part of all cores' time that other processes had (Linux; else unknown)."""
        elapsed, busy = (b - a for a, b in zip(self._start[0], self._busy(), strict=True))
        own = self._own() - self._start[1]
        return max(busy - own, 0.0) / elapsed if elapsed > 0 else float("nan")

    @staticmethod
    def _busy() -> tuple[float, float]:
        """Return seconds of all cores: in all, and not idle."""
        try:
            ticks = [float(x) for x in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
        except OSError:
            return 0.0, 0.0
        unit = float(os.sysconf("SC_CLK_TCK"))
        idle = ticks[3] + ticks[4]
        return sum(ticks) / unit, (sum(ticks) - idle) / unit

    @staticmethod
    def _own() -> float:
        times = os.times()
        return times.user + times.system + times.children_user + times.children_system


def in_turn(runs: dict[str, Callable[[], object]], repeats: int) -> dict[str, list[float]]:
    """Time several calls in turn, after one round to warm up, so that all meet the same weather.

    A call that returns a float has measured its own time.
    """
    times: dict[str, list[float]] = {name: [] for name in runs}
    for repeat in range(repeats + 1):
        for name, run in runs.items():
            start = time.perf_counter()
            result = run()
            elapsed = time.perf_counter() - start
            if repeat > 0:
                times[name].append(result if isinstance(result, float) else elapsed)
    return times


def peer_python() -> Path:
    """Return the interpreter with the peers, made on first use."""
    python = PEERS / "bin" / "python"
    stamp = PEERS / ".ready"
    wanted = "\n".join(PEER_PACKAGES)
    if not stamp.exists() or stamp.read_text() != wanted:
        print(f"installing {', '.join(PEER_PACKAGES)} in {PEERS}", flush=True)
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(PEERS)], check=True)
        pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, *PEER_PACKAGES], check=True)
        stamp.write_text(wanted)
    return python


def run_peer(data: Path, model: str, parameters: dict[str, Any], repeats: int) -> dict[str, Any]:
    """Fit a peer in its own process; return its scores and seconds."""
    job = json.dumps(
        {"data": str(data), "model": model, "parameters": parameters, "repeats": repeats}
    )
    done = subprocess.run(
        [str(peer_python()), str(HERE / "peer_worker.py")],
        input=job,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(f"{model} failed: {done.stderr.strip().splitlines()[-1:]}")
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


def spread(values: Sequence[float]) -> float:
    """Return the standard deviation; 0 for one value."""
    return statistics.stdev(values) if len(values) > 1 else 0.0


def write_csv(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    """Write rows, with the union of their keys as columns."""
    columns = list(dict.fromkeys(key for row in rows for key in row))
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, columns)
        writer.writeheader()
        writer.writerows(rows)


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table in Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def commit() -> str:
    """Return the commit that is measured, marked if code was changed since."""

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(HERE.parent), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    try:
        changed = git("status", "--porcelain", "src", "benchmarks/*.py")
        return git("rev-parse", "--short", "HEAD") + (" with changes" if changed else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def machine(run: Run) -> str:
    """Return one sentence on where and with what this ran."""
    versions = ", ".join(
        f"{name} {metadata.version(name)}" for name in ("tacit", "numpy", "scipy", "scikit-learn")
    )
    threads = os.environ.get(_THREAD_VARIABLES[0], "any")
    return (
        f"{time.strftime('%Y-%m-%d')}, commit {run.commit}, "
        f"Python {platform.python_version()}, {versions}, "
        f"{os.cpu_count()} cores, BLAS threads: {threads}; other "
        f"processes took {run.taken_by_others():.0%} of the machine meanwhile. Peers: "
        f"{', '.join(PEER_PACKAGES[:2])}."
    )
