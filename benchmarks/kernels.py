"""Kernel machines beside linear models, and what a pass over random Fourier features costs.

Accuracy at epsilon 1 and 8, delta 1e-6, with defaults and without tuning: classes of Adult and
KDDCup99, numbers of four tables of `uci_regression`. The linear models have the row norm of the
other benchmarks; a kernel has its bandwidth from the largest norm that the schema allows. Speed:
2,000 features of 500,000 rows of 40 numbers, one gradient pass through a record source beside its
matrix products, cosines and sines alone, one BLAS thread. Results go to results/kernels.csv,
kernels.md and rings.png.
"""

from __future__ import annotations

import harness

harness.pin_threads(1)

import argparse  # noqa: E402
import json  # noqa: E402
import math  # noqa: E402
import resource  # noqa: E402
import subprocess  # noqa: E402
import sys  # noqa: E402
import time  # noqa: E402
from statistics import fmean, median  # noqa: E402
from typing import Any  # noqa: E402

import numpy as np  # noqa: E402
from uci_regression import load_uci_regression  # noqa: E402

from tacit.datasets import Dataset, adult, kddcup99, load_adult, load_kddcup99  # noqa: E402
from tacit.kernel import KernelLogisticRegression, KernelRidge, KernelSVC  # noqa: E402
from tacit.linear_model import LinearSVC, LogisticRegression, Ridge  # noqa: E402

REPEATS = 5
EPSILONS, DELTA = (1.0, 8.0), 1e-6
CLASSES: dict[str, Any] = {"classes": [False, True]}
NUMBERS: dict[str, Any] = {"label_range": (-1.0, 1.0), "row_norm": 1.0}
TABLES = ("bike", "elevators", "kin40k", "pol")
# a column gives at most one 1
NORMS = {"adult": math.sqrt(len(adult.ROUND)), "kddcup99": math.sqrt(len(kddcup99.SCHEMA))}
N_ROWS, N_COLUMNS, N_FEATURES = 500_000, 40, 2_000
MOST_RATIO, MOST_BYTES = 1.3, 1.5e9

Row = dict[str, Any]


def models(table: str, epsilon: float) -> dict[str, Any]:
    """Return what is fitted to a table, the linear model of each pair first."""
    if table in TABLES:
        return {
            "Ridge": Ridge(epsilon, DELTA, **NUMBERS),
            "KernelRidge": KernelRidge(epsilon, DELTA, **NUMBERS),
        }
    linear, kernel = {**CLASSES, "row_norm": 1.0}, {**CLASSES, "row_norm": NORMS[table]}
    return {
        "LogisticRegression": LogisticRegression(epsilon, DELTA, **linear),
        "KernelLogisticRegression": KernelLogisticRegression(epsilon, DELTA, **kernel),
        "LinearSVC": LinearSVC(epsilon, DELTA, **linear),
        "KernelSVC": KernelSVC(epsilon, DELTA, **kernel),
    }


def loaded(table: str) -> Dataset:
    loaders = {"adult": load_adult, "kddcup99": load_kddcup99}
    return loaders[table]() if table in loaders else load_uci_regression(table)


def accuracy(tables: tuple[str, ...], repeats: int) -> list[Row]:
    rows = []
    for table in tables:
        data = loaded(table)
        for epsilon in EPSILONS:
            for name, model in models(table, epsilon).items():
                scores = [
                    model.fit(data.train_rows, data.train_labels).score(
                        data.test_rows, data.test_labels
                    )
                    for _ in range(repeats)
                ]
                rows.append(
                    {
                        "table": table,
                        "epsilon": epsilon,
                        "model": name,
                        "score": fmean(scores),
                        "spread": harness.spread(scores),
                    }
                )
                print(rows[-1], flush=True)
    return rows


def rings(n: int, seed: int) -> tuple[Any, Any]:
    """Return points on two rings and on which of them each is; no line tells them apart."""
    rng = np.random.default_rng(seed)
    outer = rng.random(n) < 0.5
    radius = np.where(outer, 1.0, 0.5) + 0.05 * rng.standard_normal(n)
    angle = rng.uniform(0.0, 2.0 * math.pi, n)
    return np.column_stack([radius * np.cos(angle), radius * np.sin(angle)]), outer


def draw_rings(path: Any) -> None:
    """Draw what a linear and a kernel model of 20,000 points on two rings say, epsilon 1."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    (X, y), (test, true) = rings(20_000, 0), rings(20_000, 1)
    line = np.linspace(-1.25, 1.25, 200)
    grid = np.stack(np.meshgrid(line, line), axis=-1).reshape(-1, 2)
    known: dict[str, Any] = {"row_norm": 1.25, **CLASSES}
    figure, axes = plt.subplots(1, 2, figsize=(8.0, 4.2), sharey=True)
    for axis, kind in zip(axes, (LogisticRegression, KernelLogisticRegression), strict=True):
        model = kind(1.0, DELTA, **known).fit(X, y)
        p = model.predict_proba(grid)[:, 1].reshape(len(line), -1)
        axis.contourf(line, line, p, levels=np.linspace(0, 1, 11), cmap="RdBu_r", alpha=0.8)
        axis.contour(line, line, p, levels=[0.5], colors="black")
        for side, colour in ((False, "#08306b"), (True, "#67000d")):
            shown = test[true == side][:300]
            axis.scatter(*shown.T, s=3, color=colour)
        axis.set_title(f"{kind.__name__}: accuracy {model.score(test, true):.3f}")
        axis.set_aspect("equal")
    figure.suptitle("Two rings, n = 20,000, epsilon = 1, delta = 1e-6")
    figure.tight_layout()
    figure.savefig(path, dpi=110, bbox_inches="tight")


def speed_here(repeats: int) -> Row:
    """Measure one pass and its parts in this process, and the most memory it has had."""
    from tacit.features import GaussianKernel, RandomFourierFeatures
    from tacit.records import Block, Bounds, MemoryRecords
    from tacit.records.block import usual_rows

    rng = np.random.default_rng(0)
    rows = rng.uniform(-1, 1, (N_ROWS, N_COLUMNS))
    labels = np.where(rows[:, 0] > 0, 1.0, -1.0)
    features = RandomFourierFeatures(GaussianKernel(2.0), N_FEATURES // 2, seed=0)
    function = features.fit(rows).row_map(features.domain_)
    w = rng.standard_normal(N_FEATURES)
    records = MemoryRecords(features.mapped(rows), labels, Bounds(row_norm=1.0))
    step, length = usual_rows(N_FEATURES), math.sqrt(2.0 / N_FEATURES)
    made = np.empty((step, N_FEATURES))

    def gradient(block: Block) -> tuple[Any]:
        assert block.labels is not None
        return (block.weighted_sum(-block.labels / (1 + np.exp(block.labels * block.scores(w)))),)

    def parts(waves: Any) -> Any:
        def run() -> object:
            total = np.zeros(N_FEATURES)
            for at in range(0, N_ROWS, step):
                block = rows[at : at + step]
                out = made[: len(block)]
                waves(block @ function.frequencies, out)
                slopes = out @ w
                total += out.T @ slopes
            return total

        return run

    def of_numpy(turns: Any, out: Any) -> None:
        np.multiply(turns, 2.0 * math.pi, out=turns)
        np.cos(turns, out=out[:, : N_FEATURES // 2])
        np.sin(turns, out=out[:, N_FEATURES // 2 :])

    def of_tacit(turns: Any, out: Any) -> None:
        from tacit.features.kernels import waves

        waves(turns, length, out, compiled=True)

    def clocked(work: Any) -> Any:
        # of the processor, whatever else it does meanwhile
        def run() -> float:
            start = time.process_time()
            work()
            return time.process_time() - start

        return run

    runs = {
        "pass": lambda: records.sum(gradient),
        "parts, cosines and sines of NumPy": parts(of_numpy),
        "parts, cosines and sines of tacit": parts(of_tacit),
    }
    times = harness.in_turn({name: clocked(work) for name, work in runs.items()}, repeats)
    found: Row = {name: median(values) for name, values in times.items()}
    found["bytes"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return found


def speed(repeats: int) -> Row:
    """Measure in a process of its own, so that the memory is that of the pass."""
    command = [sys.executable, __file__, "--speed-here", str(repeats)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: Row = json.loads(done.stdout.splitlines()[-1])
    return found


def report(rows: list[Row], cost: Row, run: harness.Run, *, partial: bool) -> None:
    folder = harness.results_folder(partial)
    harness.write_csv(folder / "kernels.csv", rows)
    cells = [
        (r["table"], f"{r['epsilon']:g}", r["model"], f"{r['score']:.3f}", f"{r['spread']:.3f}")
        for r in rows
    ]
    header = ("table", "epsilon", "model", "accuracy or R2", "spread")
    text = f"{__doc__}\n{harness.markdown_table(header, cells)}\n"
    numpy, own = (cost[f"parts, cosines and sines of {who}"] for who in ("NumPy", "tacit"))
    lines = [
        ("a gradient pass", f"{cost['pass']:.2f} s", ""),
        (
            "its parts, with NumPy's cosines and sines",
            f"{numpy:.2f} s",
            f"{cost['pass'] / numpy:.2f}",
        ),
        ("its parts, with tacit's", f"{own:.2f} s", f"{cost['pass'] / own:.2f}"),
        ("peak memory", f"{cost['bytes'] / 1e9:.2f} GB", ""),
    ]
    text += harness.markdown_table(("", "measured", "pass / parts"), lines)
    (folder / "kernels.md").write_text(f"{text}\n{harness.machine(run)}\n")
    print(text)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one repeat, two tables")
    parser.add_argument("--repeats", type=int, default=REPEATS)
    parser.add_argument("--speed-here", type=int, default=0, help=argparse.SUPPRESS)
    options, _ = parser.parse_known_args()
    if options.speed_here:
        print(json.dumps(speed_here(options.speed_here)))
        return 0
    run = harness.Run()
    repeats = 1 if options.quick else options.repeats
    cost = speed(repeats)
    draw_rings(harness.results_folder(options.quick) / "rings.png")
    tables = TABLES[:2] if options.quick else (*TABLES, "adult", "kddcup99")
    report(accuracy(tables, repeats), cost, run, partial=options.quick)
    own = cost["parts, cosines and sines of tacit"]
    return 0 if cost["pass"] <= MOST_RATIO * own and cost["bytes"] <= MOST_BYTES else 1


if __name__ == "__main__":
    sys.exit(main())
