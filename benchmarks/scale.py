"""Tables larger than memory: time and memory by the number of rows, beside reading and a peer.

Tables of 20 columns (ten float32, ten int8) are made on the spot as Parquet. Each size runs in a
process of its own. Results go to results/scale.md and scale.png.
"""

from __future__ import annotations

import harness

harness.pin_threads(2)

import argparse  # noqa: E402
import json  # noqa: E402
import shutil  # noqa: E402
import subprocess  # noqa: E402
import sys  # noqa: E402
import tempfile  # noqa: E402
import threading  # noqa: E402
import time  # noqa: E402
from collections.abc import Iterator  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import Any  # noqa: E402

import numpy as np  # noqa: E402

SIZES = (1_000_000, 3_000_000, 10_000_000)
N_STEPS = 30
N_FLOATS = N_BYTES = 10
ROWS_A_FILE = 500_000
EPSILON, DELTA = 1.0, 1e-9
# The least share of NumPy's bandwidth, the most anonymous memory in MB, the longest beside a peer.
LIMITS = {"bandwidth": 0.7, "memory": 2000.0, "peer": 1.0}


def names() -> list[str]:
    return [f"x{j}" for j in range(N_FLOATS)] + [f"b{j}" for j in range(N_BYTES)]


def write_tables(folder: Path, n_rows: int) -> None:
    """Write Parquet files: labels follow four of the columns."""
    import pyarrow as pa
    from pyarrow import parquet

    for part, start in enumerate(range(0, n_rows, ROWS_A_FILE)):
        rng = np.random.default_rng(part)
        n = min(ROWS_A_FILE, n_rows - start)
        floats = rng.uniform(-1, 1, (N_FLOATS, n)).astype(np.float32)
        whole = rng.integers(0, 2, (N_BYTES, n), dtype=np.int8)
        score = 3 * floats[0] - 2 * floats[1] + 2 * whole[0] - 2 * whole[1]
        label = (score + rng.logistic(size=n) > 0).astype(np.int8)
        columns = dict(zip(names(), [*floats, *whole], strict=True))
        table = pa.table({**columns, "y": label})
        parquet.write_table(table, folder / f"part-{part:04d}.parquet")


def schema() -> Any:
    from tacit.preprocessing import ClassTarget, Number, Schema

    columns = [Number(name, -1, 1) for name in names()[:N_FLOATS]]
    columns += [Number(name, 0, 1) for name in names()[N_FLOATS:]]
    return Schema(tuple(columns), ClassTarget("y", (0, 1)))


class AnonymousMemory(threading.Thread):
    """The most memory, in MB, that is not a file's, looked at twenty times a second."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.peak, self.over = 0.0, threading.Event()

    def run(self) -> None:
        while not self.over.wait(0.05):
            for line in Path("/proc/self/status").read_text().splitlines():
                if line.startswith("RssAnon"):
                    self.peak = max(self.peak, float(line.split()[1]) / 1024)


def fit_private(folder: Path, n_rows: int) -> dict[str, float]:
    """Fit logistic regression to the files; return seconds and memory."""
    from tacit.erm import NoisyGradient
    from tacit.file_records import ParquetRecords
    from tacit.linear_model import LogisticRegression

    memory = AnonymousMemory()
    memory.start()
    declared = schema()
    model = LogisticRegression(
        EPSILON,
        DELTA,
        row_norm=declared.row_norm,
        classes=[0, 1],
        n_records=n_rows,
        mechanism=NoisyGradient(n_steps=N_STEPS),
    )
    bounds = model.plan(len(declared.feature_names)).problem.objective.bounds
    records = ParquetRecords(str(folder / "*.parquet"), declared, bounds)
    start = time.perf_counter()
    records.count()
    read = time.perf_counter()
    model.fit(records, None)
    end = time.perf_counter()
    passes = [seconds(lambda: one_pass(records)) for _ in range(5)]
    whole = records._read()._table().rows.tiles
    alone = [seconds(lambda: np.asarray(whole).view(np.int64).sum()) for _ in range(5)]
    memory.over.set()
    return {
        "rows": n_rows,
        "encode": read - start,
        "fit": end - read,
        "pass": float(np.median(passes)),
        "read alone": float(np.median(alone)),
        "gigabytes": whole.nbytes / 1e9,
        "memory": memory.peak,
        "coefficient": float(model.coef_.ravel()[0]),
    }


def one_pass(records: Any) -> None:
    """Add up gradients of the logistic loss once."""
    from tacit.erm import Objective
    from tacit.erm.exact_gradient import ExactGradient
    from tacit.erm.losses import LogisticLoss
    from tacit.privacy import Relation

    objective = Objective(LogisticLoss(), records.bounds)
    shape = objective.shape(records.n_features)
    exact = ExactGradient(objective, shape, 1.0, Relation.ADD_REMOVE, records.count())
    exact(records, np.full(shape, 0.1))


def seconds(function: Any) -> float:
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def batches(folder: Path) -> Iterator[tuple[Any, Any]]:
    from pyarrow import parquet

    for file in sorted(folder.glob("*.parquet")):
        for batch in parquet.ParquetFile(file).iter_batches(batch_size=65_536):
            columns = [batch.column(name).to_numpy() for name in names()]
            yield np.column_stack(columns).astype(np.float32), batch.column("y").to_numpy()


def fit_peer(folder: Path, n_rows: int, epochs: int = 5) -> dict[str, float]:
    """Fit scikit-learn's logistic regression by SGD, not private, batch by batch."""
    from sklearn.linear_model import SGDClassifier

    memory = AnonymousMemory()
    memory.start()
    model = SGDClassifier(loss="log_loss", alpha=1e-6, random_state=0)
    times = []
    for _ in range(epochs):
        start = time.perf_counter()
        for rows, labels in batches(folder):
            model.partial_fit(rows, labels, classes=[0, 1])
        times.append(time.perf_counter() - start)
    memory.over.set()
    return {"rows": n_rows, "epoch": times[0], "fit": sum(times), "memory": memory.peak}


def in_its_own_process(what: str, folder: Path, n_rows: int) -> dict[str, float]:
    command = [sys.executable, __file__, "--run", what, "--folder", str(folder), str(n_rows)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    print(what, {name: round(value, 4) for name, value in found.items()}, flush=True)
    return found


def measure(sizes: tuple[int, ...]) -> list[dict[str, float]]:
    results = []
    for n_rows in sizes:
        folder = Path(tempfile.mkdtemp(prefix="tacit-bench-"))
        try:
            write_tables(folder, n_rows)
            private = in_its_own_process("private", folder, n_rows)
            peer = in_its_own_process("peer", folder, n_rows)
            results.append({**private, **{f"peer {name}": peer[name] for name in peer}})
        finally:
            shutil.rmtree(folder)
    return results


def report(results: list[dict[str, float]], run: harness.Run, folder: Path) -> None:
    rows = [
        {
            "rows": f"{r['rows']:,.0f}",
            "encode s": f"{r['encode']:.1f}",
            "fit s": f"{r['fit']:.1f}",
            "pass s": f"{r['pass']:.3f}",
            "of NumPy's bandwidth": f"{r['read alone'] / r['pass']:.2f}",
            "MB": f"{r['memory']:.0f}",
            "SGD, 1 epoch s": f"{r['peer epoch']:.1f}",
            "SGD, 5 epochs s": f"{r['peer fit']:.1f}",
            "SGD MB": f"{r['peer memory']:.0f}",
            "tacit / SGD (5)": f"{(r['encode'] + r['fit']) / r['peer fit']:.2f}",
        }
        for r in results
    ]
    text = [
        "# Tables larger than memory",
        "",
        f"{N_FLOATS} float32 and {N_BYTES} int8 columns in Parquet, logistic regression at epsilon "
        f"{EPSILON:g}, delta {DELTA:g} by {N_STEPS} noisy gradients over `ParquetRecords`. MB is "
        "peak anonymous memory (the page cache is not counted), interpreter and libraries "
        "included. SGD is scikit-learn SGDClassifier.partial_fit, not private, on the same files.",
        "",
        harness.markdown_table(list(rows[0]), [list(row.values()) for row in rows]),
        "",
        harness.machine(run),
        "",
    ]
    (folder / "scale.md").write_text("\n".join(text))
    (folder / "scale.json").write_text(json.dumps(results, indent=1) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--run", choices=["private", "peer"])
    parser.add_argument("--folder", type=Path)
    parser.add_argument("sizes", nargs="*", type=int)
    told = parser.parse_args()
    if told.run:
        function = fit_private if told.run == "private" else fit_peer
        print(json.dumps(function(told.folder, told.sizes[0])))
        return
    run = harness.Run()
    sizes = tuple(told.sizes) or (SIZES[:1] if told.quick else SIZES)
    report(measure(sizes), run, harness.results_folder(told.quick))


if __name__ == "__main__":
    main()
