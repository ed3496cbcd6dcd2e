"""Compare the speed of this checkout with an older commit, in one run: `make speed-gate`.

Each case runs in two processes at a time, on one thread each: one of the older commit, one of this
checkout. They take turns within milliseconds, so that what else the machine does weighs on both
alike. Of each process the least CPU time counts; the ratio is the median over some pairs of
processes. A case above the limit is measured once more, with more pairs, before it fails.

    python benchmarks/speed_gate.py                   # against the commit in speed_baseline.txt
    python benchmarks/speed_gate.py --against HEAD~5 "fit, small"
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BASELINE = Path(__file__).parent / "speed_baseline.txt"
# What `.ci/run` refuses. A change may cost 5 %; what is above that is the machine's own noise.
MOST = 1.15

# A case defines `work(turn)`. Whoever starts it writes a line for each turn, and reads a time.
_HARNESS = """
import sys, time
for turn, _ in enumerate(sys.stdin):
    start = time.process_time()
    work(turn)
    print(time.process_time() - start, flush=True)
"""
_TABLE = """
import warnings
warnings.simplefilter("ignore")
import numpy as np
rng = np.random.default_rng(0)
X = rng.standard_normal((20_000, 10))
y = (X[:, 0] + rng.standard_normal(len(X)) > 0).astype(int)
from tacit.linear_model import LogisticRegression
def model(mechanism, n_records=None, epsilon=1.0):
    return LogisticRegression(
        epsilon, 1e-6, row_norm=4.0, classes=[0, 1], mechanism=mechanism, n_records=n_records
    )
"""


@dataclass(frozen=True)
class Case:
    """Code whose speed is compared, and how often it is run in a process."""

    code: str
    turns: int
    pairs: int = 3


CASES = {
    # Only the first import of a process is one.
    "import tacit": Case("def work(turn):\n    import tacit\n", turns=1, pairs=9),
    # Plans are remembered: another epsilon is another plan.
    "plan": Case(
        _TABLE + 'def work(turn):\n    model("auto", epsilon=1 + turn / 128).plan(10)\n', turns=12
    ),
    "fit, objective perturbation": Case(
        _TABLE + 'def work(turn):\n    model("objective_perturbation").fit(X, y)\n', turns=16
    ),
    "fit, noisy gradient": Case(
        _TABLE + 'def work(turn):\n    model("noisy_gradient", 20_000).fit(X, y)\n', turns=10
    ),
    "fit, small": Case(
        _TABLE + 'def work(turn):\n    model("noisy_gradient", 500).fit(X[:500], y[:500])\n',
        turns=20,
    ),
    "network step": Case(
        _TABLE
        + """
import torch
torch.set_num_threads(1)
from tacit.deep import PrivateTrainer
from tacit.privacy import Budget
rows, labels = X[:4096].astype("float32"), y[:4096].astype("int64")
def work(turn):
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(10, 32), torch.nn.Tanh(), torch.nn.Linear(32, 2))
    PrivateTrainer(
        net, torch.nn.CrossEntropyLoss(reduction="none"),
        torch.optim.SGD(net.parameters(), lr=0.5), Budget(3.0, 1e-6),
        n_records=4096, batch_size=256, n_steps=60,
    ).fit(rows, labels)
""",
        turns=6,
        pairs=2,
    ),
}


class Worker:
    """A process that runs one case of one checkout, turn by turn."""

    def __init__(self, name: str, source: Path) -> None:
        threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
        self.name, self.source = name, source
        self.times: list[float] = []
        self.process = subprocess.Popen(
            [sys.executable, "-c", CASES[name].code + _HARNESS],
            env={**os.environ, **threads, "PYTHONPATH": str(source), "PYTHONHASHSEED": "0"},
            cwd=source,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def turn(self) -> None:
        """Run the case once, and keep its CPU time."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        try:
            self.process.stdin.write("\n")
            self.process.stdin.flush()
            self.times.append(float(self.process.stdout.readline()))
        except (OSError, ValueError):
            _, told = self.process.communicate()
            raise SystemExit(f"{self.name} failed in {self.source}:\n{told[-2000:]}") from None

    def least(self) -> float:
        """Return the least time; the first turn, which also warms up, counts if it is alone."""
        return min(self.times[1:] or self.times)

    def end(self) -> None:
        """Let the process end."""
        self.process.communicate()


def compare(name: str, before: Path, after: Path, *, pairs: int, turns: int) -> tuple[float, str]:
    """Return how much slower a case is in a checkout than in another, and both times in words."""
    found: list[tuple[float, float]] = []
    for pair in range(pairs):
        old, new = Worker(name, before), Worker(name, after)
        try:
            for turn in range(turns):
                # Who comes first alternates: it finds the caches in another state.
                for worker in (old, new) if (pair + turn) % 2 else (new, old):
                    worker.turn()
        finally:
            old.end()
            new.end()
        found.append((old.least(), new.least()))
    ratio = statistics.median(new / old for old, new in found)
    old_ms, new_ms = (1e3 * statistics.median(side) for side in zip(*found, strict=True))
    return ratio, f"{old_ms:.1f} -> {new_ms:.1f} ms"


def unpack(commit: str, folder: Path) -> str | None:
    """Write the sources of a commit to a folder; return why that cannot be done, or None."""
    try:
        archive = subprocess.run(
            ["git", "archive", commit, "src"], cwd=ROOT, capture_output=True, check=False
        )
    except FileNotFoundError:
        return "there is no git"
    if archive.returncode:
        return f"{commit} is not in this clone's history (git fetch --unshallow brings it)"
    subprocess.run(["tar", "-x", "-C", folder], input=archive.stdout, check=True)
    return None


def main() -> int:
    """Print the ratios; return 1 if one is above what CI allows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--against", default=BASELINE.read_text().split()[0])
    parser.add_argument("--source", type=Path, default=ROOT / "src", help="what is measured")
    parser.add_argument("--most", type=float, default=MOST)
    parser.add_argument("cases", nargs="*", help="names of cases; all by default")
    options = parser.parse_args()
    start, slow = time.monotonic(), []
    with tempfile.TemporaryDirectory() as folder:
        missing = unpack(options.against, Path(folder))
        if missing is not None:
            print(f"speed-gate skipped, nothing was compared: {missing}.")
            return 0
        before, after = Path(folder) / "src", options.source.resolve()
        for name in options.cases or CASES:
            case = CASES[name]
            ratio, times = compare(name, before, after, pairs=case.pairs, turns=case.turns)
            print(f"{name}: {ratio:.3f} ({times})", flush=True)
            if ratio > options.most:
                pairs, turns = 2 * case.pairs + 1, 2 * case.turns if case.turns > 1 else 1
                ratio, times = compare(name, before, after, pairs=pairs, turns=turns)
                print(f"{name}, again: {ratio:.3f} ({times})", flush=True)
            if ratio > options.most:
                slow.append(name)
    print(f"{time.monotonic() - start:.0f} s; slower than {options.against} allows: {slow or 'no'}")
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
