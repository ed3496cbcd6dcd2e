"""How fast tacit's fits are, as ratios to peers and to the passes over X, in one run.

Two BLAS threads for everyone; medians of at least five repeats taken in turn. Results go to
results/speed.csv, speed.md and scaling.png.
"""

from __future__ import annotations

import harness

harness.pin_threads(2)

import argparse  # noqa: E402
import json  # noqa: E402
import subprocess  # noqa: E402
import sys  # noqa: E402
from collections.abc import Callable  # noqa: E402
from functools import partial  # noqa: E402
from pathlib import Path  # noqa: E402
from statistics import median  # noqa: E402
from typing import Any  # noqa: E402

import numpy as np  # noqa: E402
import sklearn.linear_model  # noqa: E402

from tacit.datasets import adult, load_adult, load_mnist  # noqa: E402
from tacit.erm import NoisyGradient  # noqa: E402
from tacit.linear_model import LinearRegression, LogisticRegression  # noqa: E402

EPSILON, DELTA = 1.0, 1e-5
REPEATS = 7
LEAST_REPEATS = 5
N_COLUMNS = 50  # of the synthetic tables
BIG_BYTES = 400_000_000
SIZES = (10_000, 31_623, 100_000, 316_228, 1_000_000)
LINEAR_SIZES = SIZES[2:]  # where overhead no longer counts
# The greatest ratios allowed.
LIMITS = {
    "fit / scikit-learn": 0.5,
    "fit / diffprivlib": 0.2,
    "iteration / two passes": 1.15,
    "memory / X": 0.25,
}

Row = dict[str, Any]


def private(mechanism: Any = "auto") -> LogisticRegression:
    return LogisticRegression(
        epsilon=EPSILON, delta=DELTA, row_norm=1.0, classes=[False, True], mechanism=mechanism
    )


def row(part: str, what: str, value: float, base: float, ratio: str | None, unit: str) -> Row:
    """Return one measurement and, where there is a limit on the ratio, whether it is kept."""
    limit = LIMITS.get(ratio) if ratio else None
    result = {
        "part": part,
        "what": what,
        "value": value,
        "unit": unit,
        "base": base,
        "ratio": value / base,
        "ratio_of": ratio or "",
        "limit": limit,
        "met": None if limit is None else value / base <= limit,
    }
    print(f"{part:10s} {what:52s} {value:10.4g} {unit} ratio {value / base:6.3f} {met(result)}")
    sys.stdout.flush()
    return result


def met(result: Row) -> str:
    return "" if result["met"] is None else ("yes" if result["met"] else "**no**")


def measure_fits(repeats: int) -> list[Row]:
    """The whole private fit of Adult beside scikit-learn's non-private one and diffprivlib's."""
    data = load_adult(schema=adult.PLAIN)
    norms = np.linalg.norm(data.train_rows, axis=1, keepdims=True)
    rows, labels = data.train_rows / np.maximum(norms, 1.0), data.train_labels
    baseline = sklearn.linear_model.LogisticRegression(C=1.0, max_iter=1000)
    runs: dict[str, Callable[[], object]] = {
        "tacit": lambda: private().fit(rows, labels),
        "tacit, float32 rows": lambda: private().fit(rows32, labels),
        "tacit, noisy gradient": lambda: private("noisy_gradient").fit(rows, labels),
        "scikit-learn": lambda: baseline.fit(rows, labels),
        "diffprivlib": lambda: peer_seconds(path),
    }
    rows32 = rows.astype(np.float32)
    path = harness.SCRATCH / "adult_plain.npz"
    path.parent.mkdir(exist_ok=True)
    np.savez(path, train_rows=rows, train_labels=labels, test_rows=rows, test_labels=labels)
    times = {name: median(values) for name, values in harness.in_turn(runs, repeats).items()}
    peers = {name: times.pop(name) for name in ("scikit-learn", "diffprivlib")}
    print(", ".join(f"{name} {value:.3f} s" for name, value in peers.items()), flush=True)
    return [
        row("fit", f"Adult, {name} / {peer}", time, base, f"fit / {peer}", "s")
        for name, time in times.items()
        for peer, base in peers.items()
    ]


def peer_seconds(path: Path) -> float:
    """Return the time of diffprivlib's second fit in a process of its own."""
    parameters = {"epsilon": EPSILON, "data_norm": 1.0}
    return float(harness.run_peer(path, "logistic", parameters, 2)["seconds"][-1])


def measure_iterations(repeats: int, quick: bool) -> list[Row]:
    """One step of noisy gradient descent beside the two passes X @ w and X.T @ r."""
    small = load_adult(schema=adult.PLAIN)
    results = iteration_ratios("Adult", small.train_rows, small.train_labels, (20, 220), repeats)
    if not quick:
        large = load_mnist()
        results += iteration_ratios(
            "MNIST", large.train_rows, large.train_labels >= 5, (5, 45), repeats
        )
    return results


def iteration_ratios(
    name: str, rows: Any, labels: Any, steps: tuple[int, int], repeats: int
) -> list[Row]:
    results = []
    few, many = steps
    for dtype in (np.float64, np.float32):
        X = np.ascontiguousarray(rows, dtype=dtype)
        runs: dict[str, Callable[[], object]] = {
            "passes": partial(two_passes, X, many - few),
            "few": partial(descend, X, labels, few),
            "many": partial(descend, X, labels, many),
        }
        times = harness.in_turn(runs, repeats)
        differences = [b - a for a, b in zip(times["few"], times["many"], strict=True)]
        step = median(differences) / (many - few)
        base = median(times["passes"]) / (many - few)
        what = f"{name} {np.dtype(dtype).name} ({X.nbytes / 1e6:.0f} MB)"
        results.append(
            row("iteration", what, 1e3 * step, 1e3 * base, "iteration / two passes", "ms")
        )
    return results


def two_passes(X: Any, count: int) -> None:
    w, r = np.ones(X.shape[1], dtype=X.dtype), np.ones(X.shape[0], dtype=X.dtype)
    for _ in range(count):
        X @ w
        X.T @ r


def descend(X: Any, labels: Any, n_steps: int) -> object:
    return private(NoisyGradient(n_steps=n_steps)).fit(X, labels)


MEMORY_FITS: dict[str, Callable[[], Any]] = {
    "logistic regression": private,
    "logistic regression, noisy gradient": lambda: private("noisy_gradient"),
    "linear regression": lambda: LinearRegression(
        epsilon=EPSILON, delta=DELTA, row_norm=1.0, label_range=(-2.0, 2.0)
    ),
    "scikit-learn, non-private": lambda: sklearn.linear_model.LogisticRegression(max_iter=20),
}


def measure_memory(quick: bool) -> list[Row]:
    """The most memory a fit takes on top of X, each in a process of its own."""
    results = []
    for name in MEMORY_FITS:
        for dtype in ("float64",) if quick else ("float64", "float32"):
            command = [sys.executable, __file__, "--memory-of", name, "--dtype", dtype]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                raise RuntimeError(f"{name}, {dtype}: {done.stderr.splitlines()[-1]}")
            grown = json.loads(done.stdout.splitlines()[-1])
            ratio = None if name.startswith("scikit") else "memory / X"
            what = f"{name}, {dtype}"
            results.append(row("memory", what, grown / 1e6, BIG_BYTES / 1e6, ratio, "MB"))
    return results


def memory_of(name: str, dtype: str) -> None:
    """Print by how many bytes a fit raises the peak of this process above what it holds."""
    import warnings

    warnings.simplefilter("ignore")
    n = BIG_BYTES // (N_COLUMNS * np.dtype(dtype).itemsize)
    small = table(1000, dtype)
    MEMORY_FITS[name]().fit(small, noisy_labels(small))  # imports and buffers are not the fit's
    X = table(n, dtype)
    y = noisy_labels(X)
    # Not getrusage: its peak is inherited from the parent and remembers what was freed (proc(5)).
    Path("/proc/self/clear_refs").write_text("5")
    before = resident("VmRSS")
    MEMORY_FITS[name]().fit(X, y)
    print(json.dumps(resident("VmHWM") - before))


def resident(field: str) -> int:
    """Return a size from this process's status, in bytes (Linux)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    (line,) = (line for line in lines if line.startswith(field + ":"))
    return 1024 * int(line.split()[1])


def table(n: int, dtype: str = "float64") -> Any:
    """Return n rows of norm about 1, drawn in place."""
    X = np.random.default_rng(0).random((n, N_COLUMNS), dtype=np.dtype(dtype).type)
    X -= 0.5
    X *= 0.5
    return X


def noisy_labels(X: Any) -> Any:
    """Return classes that the first five columns tell, but not surely."""
    scores = 4 * X[:, :5].sum(axis=1)
    return np.random.default_rng(1).random(len(X)) < 1 / (1 + np.exp(-scores))


def measure_scaling(repeats: int, folder: Path, quick: bool) -> list[Row]:
    """The time of a fit against the number of records."""
    sizes = SIZES[:3] if quick else SIZES
    X = table(sizes[-1])
    labels = noisy_labels(X)
    numbers = X[:, :5].sum(axis=1) + 0.1 * np.random.default_rng(2).standard_normal(len(X))
    regression = MEMORY_FITS["linear regression"]
    baseline = sklearn.linear_model.LogisticRegression(C=1.0, max_iter=1000)
    times: dict[str, list[float]] = {}
    for n in sizes:
        runs: dict[str, Callable[[], object]] = {
            "logistic regression": partial(private().fit, X[:n], labels[:n]),
            "linear regression": partial(regression().fit, X[:n], numbers[:n]),
            "scikit-learn logistic, non-private": partial(baseline.fit, X[:n], labels[:n]),
        }
        for name, values in harness.in_turn(runs, repeats).items():
            times.setdefault(name, []).append(median(values))
    draw_scaling(sizes, times, folder)
    results = []
    for name, values in times.items():
        for n, value in zip(sizes, values, strict=True):
            baseline_time = times["scikit-learn logistic, non-private"][sizes.index(n)]
            what = f"{name}, n = {n:,}"
            results.append(row("scaling", what, value, baseline_time, None, "s"))
    return results


def slope(sizes: Any, values: Any) -> float:
    """Return the slope of log time against log n."""
    return float(np.polyfit(np.log(sizes), np.log(values), 1)[0])


def draw_scaling(sizes: Any, times: dict[str, list[float]], folder: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axis = plt.subplots(figsize=(6.5, 4.5))
    for (name, values), marker in zip(times.items(), "os^", strict=False):
        label = f"{name} (slope {tail_slope(sizes, values):.2f})"
        axis.loglog(sizes, values, marker=marker, label=label)
    first = next(iter(times.values()))
    axis.loglog(sizes, first[-1] * np.array(sizes) / sizes[-1], "k:", label="linear in n")
    axis.set_xlabel(f"records, {N_COLUMNS} columns")
    axis.set_ylabel("seconds of a fit")
    axis.set_title(f"epsilon {EPSILON:g}, delta {DELTA:g}; slopes from n = 100,000")
    axis.legend()
    axis.grid(alpha=0.3)
    figure.tight_layout()
    figure.savefig(folder / "scaling.png", dpi=130)
    plt.close(figure)


def tail_slope(sizes: Any, values: Any) -> float:
    chosen = [(n, t) for n, t in zip(sizes, values, strict=True) if n in LINEAR_SIZES]
    return slope(*zip(*chosen, strict=True)) if len(chosen) > 1 else float("nan")


def slopes_text(results: list[Row]) -> str:
    """Return the slopes from the largest tables, in a sentence."""
    times: dict[str, list[tuple[int, float]]] = {}
    for result in results:
        if result["part"] == "scaling":
            name, n = result["what"].split(", n = ")
            times.setdefault(name, []).append((int(n.replace(",", "")), result["value"]))
    parts = [
        f"{name} {slope(*zip(*pairs, strict=True)):.2f} over all n and "
        f"{tail_slope(*zip(*pairs, strict=True)):.2f} from n = 100,000"
        for name, pairs in times.items()
    ]
    return "Slope of log time against log n: " + "; ".join(parts) + "."


def write(results: list[Row], folder: Path, run: harness.Run) -> None:
    harness.write_csv(folder / "speed.csv", results)
    body = [
        [
            result["part"],
            result["what"],
            f"{result['value']:.4g} {result['unit']}",
            f"{result['base']:.4g} {result['unit']}",
            f"{result['ratio']:.3f}",
            "" if result["limit"] is None else f"{result['limit']:g}",
            met(result),
        ]
        for result in results
    ]
    text = f"""# Speed

{harness.machine(run)}

Medians of at least {LEAST_REPEATS} repeats taken in turn, at epsilon {EPSILON:g}, delta {DELTA:g}.
fit: Adult, 105 columns, beside scikit-learn's non-private LogisticRegression(C=1) and diffprivlib's
default. iteration: one step of noisy gradient descent (the difference of a long and a short fit)
beside X @ w and X.T @ r. memory: the most a fit takes on top of an X of 400 MB, beside X.
scaling: time of a fit, beside scikit-learn's non-private logistic regression.

"""
    header = ["part", "what", "value", "beside", "ratio", "limit", "met"]
    tail = f"\n{slopes_text(results)}\n\n![time against n](scaling.png)\n"
    (folder / "speed.md").write_text(text + harness.markdown_table(header, body) + tail)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="3 repeats, no MNIST, n to 100,000")
    parser.add_argument("--memory-of", choices=list(MEMORY_FITS), help=argparse.SUPPRESS)
    parser.add_argument("--dtype", default="float64", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.memory_of:
        memory_of(options.memory_of, options.dtype)
        return 0
    folder = harness.results_folder(options.quick)
    repeats = 3 if options.quick else REPEATS
    run = harness.Run()
    results: list[Row] = []
    parts: list[Callable[[], list[Row]]] = [
        partial(measure_fits, repeats),
        partial(measure_iterations, repeats, options.quick),
        partial(measure_memory, options.quick),
        partial(measure_scaling, min(repeats, LEAST_REPEATS), folder, options.quick),
    ]
    for part in parts:
        results += part()
        write(results, folder, run)
    return 0


if __name__ == "__main__":
    sys.exit(main())
