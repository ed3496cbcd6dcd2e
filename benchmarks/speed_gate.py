"""Compare the speed of this checkout with an older commit, in one run: `make speed-gate`.

Each case runs in a process of its own, on one thread, this checkout and the older commit in turns.
Of each turn the least CPU time counts, and the ratio is that of the medians over the turns, so that
what else the machine does weighs on both sides alike.

    python benchmarks/speed_gate.py                   # against the commit in speed_baseline.txt
    python benchmarks/speed_gate.py --against HEAD~5 --turns 15
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BASELINE = Path(__file__).parent / "speed_baseline.txt"
# What `.ci/run` refuses. A change may cost 5 %; what is above that is the machine's own noise.
MOST = 1.15

_TIMED = """
import time, warnings
warnings.simplefilter("ignore")
def least(function, repeats):
    function()
    found = []
    for _ in range(repeats):
        start = time.process_time()
        function()
        found.append(time.process_time() - start)
    print(min(found))
"""
_TABLE = """
import numpy as np
rng = np.random.default_rng(0)
X = rng.standard_normal((20_000, 10))
y = (X[:, 0] + rng.standard_normal(len(X)) > 0).astype(int)
from tacit.linear_model import LogisticRegression
def model(mechanism, n_records=None):
    return LogisticRegression(
        1.0, 1e-6, row_norm=4.0, classes=[0, 1], mechanism=mechanism, n_records=n_records
    )
"""
CASES = {
    "import tacit": "import time\nstart = time.process_time()\nimport tacit\n"
    "print(time.process_time() - start)",
    "plan": _TIMED
    + _TABLE
    + """
from tacit.erm import planner
def plan():
    planner._remembered.cache_clear()
    model("auto").plan(10)
least(plan, 5)
""",
    "fit, objective perturbation": _TIMED
    + _TABLE
    + 'least(lambda: model("objective_perturbation").fit(X, y), 5)\n',
    "fit, noisy gradient": _TIMED
    + _TABLE
    + 'least(lambda: model("noisy_gradient", 20_000).fit(X, y), 5)\n',
    "fit, small": _TIMED
    + _TABLE
    + 'least(lambda: model("noisy_gradient", 500).fit(X[:500], y[:500]), 9)\n',
    "network step": _TIMED
    + _TABLE
    + """
import torch
torch.set_num_threads(1)
from tacit.deep import PrivateTrainer
from tacit.privacy import Budget
rows, labels = X[:4096].astype("float32"), y[:4096].astype("int64")
def train():
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(10, 32), torch.nn.Tanh(), torch.nn.Linear(32, 2))
    PrivateTrainer(
        net, torch.nn.CrossEntropyLoss(reduction="none"),
        torch.optim.SGD(net.parameters(), lr=0.5), Budget(3.0, 1e-6),
        n_records=4096, batch_size=256, n_steps=60,
    ).fit(rows, labels)
least(train, 3)
""",
}


def seconds(case: str, source: Path) -> float:
    """Return the least CPU time of a case in one process."""
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    environment = {**os.environ, **threads, "PYTHONPATH": str(source), "PYTHONHASHSEED": "0"}
    command = [sys.executable, "-c", CASES[case]]
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False, cwd=source
    )
    if done.returncode:
        raise SystemExit(f"{case} failed in {source}:\n{done.stderr[-2000:]}")
    return float(done.stdout.split()[-1])


def main() -> int:
    """Print the ratios; return 1 if one is above what CI allows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--against", default=BASELINE.read_text().split()[0])
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--most", type=float, default=MOST)
    parser.add_argument("cases", nargs="*", help="names of cases; all by default")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        archive = subprocess.run(
            ["git", "archive", options.against, "src"], cwd=ROOT, capture_output=True, check=False
        )
        if archive.returncode:
            print(f"skipped: {options.against} is not in this clone's history")
            return 0
        subprocess.run(["tar", "-x", "-C", folder], input=archive.stdout, check=True)
        before, after = Path(folder) / "src", ROOT / "src"
        slow = 0
        for case in options.cases or CASES:
            turns = [(seconds(case, before), seconds(case, after)) for _ in range(options.turns)]
            old, new = (statistics.median(side) for side in zip(*turns, strict=True))
            slow += new / old > options.most
            print(f"{case}: {new / old:.3f} ({old * 1e3:.1f} -> {new * 1e3:.1f} ms)", flush=True)
    print(f"{len(options.cases or CASES) - slow} passed, {slow} failed")
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
