"""Tables larger than memory: time and memory by the number of rows, beside reading and peers.

Tables of 20 columns (ten float32, ten int8) are made on the spot as Parquet, and smaller sizes are
their first files. Each size and each peer runs in a process of its own and is kept, so that a run
may be done in parts: ``scale.py --folder tables 1000000 10000000``. Results go to results/scale.md,
scale.json and scale.png. The peer dask-ml wants an environment of its own: ``--dask-ml PYTHON``.
"""

from __future__ import annotations

import os

import harness

# As many as this process may use.
N_CORES = len(os.sched_getaffinity(0))
harness.pin_threads(N_CORES)

import argparse  # noqa: E402
import json  # noqa: E402
import shutil  # noqa: E402
import subprocess  # noqa: E402
import sys  # noqa: E402
import tempfile  # noqa: E402
import threading  # noqa: E402
import time  # noqa: E402
from collections.abc import Callable, Iterator  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import Any  # noqa: E402

import numpy as np  # noqa: E402

SIZES = (1_000_000, 3_000_000, 10_000_000, 30_000_000, 100_000_000)
# Beyond this many rows the peers, which take minutes, are left out.
MOST_FOR_PEERS = 10_000_000
N_STEPS = 30
N_FLOATS = N_BYTES = 10
ROWS_A_FILE = 500_000
EPSILON, DELTA = 1.0, 1e-9


def names() -> list[str]:
    return [f"x{j}" for j in range(N_FLOATS)] + [f"b{j}" for j in range(N_BYTES)]


def write_tables(folder: Path, n_rows: int) -> None:
    """Write Parquet files: labels follow four of the columns."""
    import pyarrow as pa
    from pyarrow import parquet

    for part, start in enumerate(range(0, n_rows, ROWS_A_FILE)):
        if name_of(folder, part).exists():
            continue
        rng = np.random.default_rng(part)
        n = min(ROWS_A_FILE, n_rows - start)
        floats = rng.uniform(-1, 1, (N_FLOATS, n)).astype(np.float32)
        whole = rng.integers(0, 2, (N_BYTES, n), dtype=np.int8)
        score = 3 * floats[0] - 2 * floats[1] + 2 * whole[0] - 2 * whole[1]
        label = (score + rng.logistic(size=n) > 0).astype(np.int8)
        columns = dict(zip(names(), [*floats, *whole], strict=True))
        table = pa.table({**columns, "y": label})
        parquet.write_table(table, name_of(folder, part))


def name_of(folder: Path, part: int) -> Path:
    return folder / f"part-{part:04d}.parquet"


def files_of(folder: Path, n_rows: int) -> list[Path]:
    return [name_of(folder, part) for part in range(-(-n_rows // ROWS_A_FILE))]


def schema() -> Any:
    from tacit.schema import ClassTarget, Number, Schema

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


def model_and_records(folder: Path, n_rows: int, mechanism: Any, shown: list[float]) -> Any:
    """Return a private logistic regression and the records of files, not read yet."""
    from tacit.linear_model import LogisticRegression
    from tacit.records.files import ParquetRecords

    declared = schema()
    model = LogisticRegression(
        EPSILON,
        DELTA,
        row_norm=declared.row_norm,
        classes=[0, 1],
        n_records=n_rows,
        mechanism=mechanism,
    )
    bounds = model.plan(len(declared.feature_names)).problem.objective.bounds
    files = [str(file) for file in files_of(folder, n_rows)]
    return model, ParquetRecords(files, declared, bounds, progress=shown.append)


def fit_objective(folder: Path, n_rows: int) -> dict[str, Any]:
    """Fit by objective perturbation, whose minimum is certified, or say why that is refused."""
    from tacit.erm import CannotSolve, NotCertified, ObjectivePerturbation

    memory = AnonymousMemory()
    memory.start()
    start, refused = time.perf_counter(), ""
    try:
        model, records = model_and_records(folder, n_rows, ObjectivePerturbation(), [])
        records.count()
        start = time.perf_counter()
        model.fit(records, None)
    except (CannotSolve, NotCertified) as error:  # in the plan, or after the fit
        refused = str(error)
    end = time.perf_counter()
    memory.over.set()
    found: dict[str, Any] = {"fit": end - start, "memory": memory.peak}
    return (
        {**found, "refused": refused} if refused else found | {"accuracy": accuracy(folder, model)}
    )


def fit_private(folder: Path, n_rows: int) -> dict[str, float]:
    """Fit logistic regression to the files; return seconds and memory."""
    from tacit.erm import NoisyGradient

    memory = AnonymousMemory()
    memory.start()
    shown = list[float]()
    mechanism = NoisyGradient(n_steps=N_STEPS)
    model, records = model_and_records(folder, n_rows, mechanism, shown)
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
        "progress shown": len(shown),
        "accuracy": accuracy(folder, model),
    }


def accuracy(folder: Path, model: Any) -> float:
    """Return the share of the first file's labels that a model says."""
    rows, labels = next(batches(files_of(folder, 1)))
    return float(np.mean(model.predict(rows) == labels))


def one_pass(records: Any) -> None:
    """Add up gradients of the logistic loss once."""
    from tacit.erm import Objective
    from tacit.erm.losses import LogisticLoss
    from tacit.privacy import Relation
    from tacit.queries import Facts, Gradient

    objective = Objective(LogisticLoss(), records.bounds)
    weights = np.full(objective.shape(records.n_features), 0.1)
    facts = Facts(records.bounds, records.n_features, Relation.ADD_REMOVE)
    Gradient(objective, 1.0, records.count(), weights).total(records, facts)


def seconds(function: Any) -> float:
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def batches(files: list[Path]) -> Iterator[tuple[Any, Any]]:
    from pyarrow import parquet

    for file in files:
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
        for rows, labels in batches(files_of(folder, n_rows)):
            model.partial_fit(rows, labels, classes=[0, 1])
        times.append(time.perf_counter() - start)
    memory.over.set()
    right = accuracy(folder, model)
    return {"epoch": times[0], "fit": sum(times), "memory": memory.peak, "accuracy": right}


def fit_dask_ml(folder: Path, n_rows: int) -> dict[str, float]:
    """Fit dask-ml's logistic regression, not private; arrays are kept."""
    import dask
    import dask.array as da
    from dask_ml.linear_model import LogisticRegression

    memory = AnonymousMemory()
    memory.start()
    start = time.perf_counter()

    def load(file: Path) -> Any:
        some = [(rows, labels) for rows, labels in batches([file])]
        rows, labels = (np.concatenate(each) for each in zip(*some, strict=True))
        return np.column_stack([rows, labels.astype(np.float32)])

    parts = [
        da.from_delayed(dask.delayed(load)(file), (ROWS_A_FILE, len(names()) + 1), np.float32)
        for file in files_of(folder, n_rows)
    ]
    with dask.config.set(scheduler="threads", num_workers=N_CORES):
        (table,) = dask.persist(da.concatenate(parts))
        model = LogisticRegression(solver="lbfgs", max_iter=N_STEPS)
        model.fit(table[:, :-1], table[:, -1])
    seconds = time.perf_counter() - start
    memory.over.set()
    rows, labels = next(batches(files_of(folder, 1)))
    right = np.mean((rows @ model.coef_.ravel() + model.intercept_ > 0) == (labels > 0))
    return {"fit": seconds, "memory": memory.peak, "accuracy": float(right)}


RUNS: dict[str, Callable[[Path, int], dict[str, Any]]] = {
    "private": fit_private,
    "objective": fit_objective,
    "sgd": fit_peer,
    "dask-ml": fit_dask_ml,
}


def in_its_own_process(what: str, folder: Path, n_rows: int, python: str) -> dict[str, Any]:
    command = [python, __file__, "--run", what, "--folder", str(folder), str(n_rows)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    print(what, found, flush=True)
    return found


def measure(folder: Path, sizes: tuple[int, ...], dask_ml: str | None) -> dict[str, Any]:
    """Return what each run found, by the number of rows."""
    results = dict[str, Any]()
    for n_rows in sizes:
        write_tables(folder, n_rows)
        runs = {"private": sys.executable, "objective": sys.executable}
        if n_rows <= MOST_FOR_PEERS:
            runs["sgd"] = sys.executable
            if dask_ml is not None:
                runs["dask-ml"] = dask_ml
        results[str(n_rows)] = {
            what: in_its_own_process(what, folder, n_rows, python) for what, python in runs.items()
        }
    return results


def row_of(n_rows: str, found: dict[str, dict[str, Any]]) -> dict[str, str]:
    """Return one line of the table: a dash where a peer was left out."""
    private = found["private"]
    whole = private["encode"] + private["fit"]
    row = {
        "rows": f"{int(n_rows):,}",
        "encode s": f"{private['encode']:.1f}",
        "fit s": f"{private['fit']:.1f}",
        "pass ms": f"{1e3 * private['pass']:.1f}",
        "NumPy reads ms": f"{1e3 * private['read alone']:.1f}",
        "of NumPy's bandwidth": f"{private['read alone'] / private['pass']:.2f}",
        "MB": f"{private['memory']:.0f}",
        "accuracy": f"{private['accuracy']:.4f}",
    }
    tilted = found.get("objective")
    row["objective s"] = "-" if not tilted else f"{tilted['fit']:.1f}"
    row["objective MB"] = "-" if not tilted else f"{tilted['memory']:.0f}"
    row["objective accuracy"] = (
        f"{tilted['accuracy']:.4f}" if tilted and "accuracy" in tilted else "-"
    )
    for peer in ("sgd", "dask-ml"):
        seen = found.get(peer)
        row[f"{peer} s"] = f"{seen['fit']:.1f}" if seen else "-"
        row[f"{peer} MB"] = f"{seen['memory']:.0f}" if seen else "-"
        row[f"{peer} accuracy"] = f"{seen['accuracy']:.4f}" if seen else "-"
        row[f"tacit / {peer}"] = f"{whole / seen['fit']:.2f}" if seen else "-"
    return row


def plot(results: dict[str, Any], path: Path) -> None:
    """Draw seconds by rows, and a straight line through the origin and the largest."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    rows = np.array(sorted(map(int, results)))
    found = [results[str(n)]["private"] for n in rows]
    figure, axes = pyplot.subplots(figsize=(6, 4))
    for label, value in {
        "encode and fit": [each["encode"] + each["fit"] for each in found],
        "encode": [each["encode"] for each in found],
        "one pass": [each["pass"] for each in found],
    }.items():
        axes.loglog(rows, value, "o-", label=label)
        axes.loglog(rows, value[-1] * rows / rows[-1], ":", color="grey")
    axes.set(xlabel="rows", ylabel="seconds", title="20 columns; dotted: linear in rows")
    axes.legend()
    figure.savefig(path, dpi=120, bbox_inches="tight")


def report(results: dict[str, Any], run: harness.Run, folder: Path) -> None:
    rows = [row_of(n, results[n]) for n in sorted(results, key=int)]
    text = [
        "# Tables larger than memory",
        "",
        f"{N_FLOATS} float32 and {N_BYTES} int8 columns in Parquet, logistic regression at epsilon "
        f"{EPSILON:g}, delta {DELTA:g} by {N_STEPS} noisy gradients over `ParquetRecords`. MB is "
        "peak anonymous memory (the page cache is not counted), interpreter and libraries "
        "included. A pass is one noisy gradient's sum over the mapped cache; NumPy reads the same "
        "cache as int64 and adds it up, on one thread. objective is objective perturbation "
        "over the same records, whose minimum is certified; a dash for its accuracy where that was "
        "refused. Peers are not private, on the same "
        "files: sgd is scikit-learn's SGDClassifier.partial_fit, five epochs; dask-ml its "
        f"LogisticRegression, lbfgs of at most {N_STEPS} iterations over arrays kept in memory. "
        "Accuracy is that on the first 65,536 rows, which are among the records.",
        "",
        harness.markdown_table(list(rows[0]), [list(row.values()) for row in rows]),
        "",
        "![Seconds by rows](scale.png)",
        "",
        harness.machine(run),
        "",
    ]
    (folder / "scale.md").write_text("\n".join(text))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--run", choices=list(RUNS))
    parser.add_argument("--draw", action="store_true", help="draw again what was measured")
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--dask-ml")
    parser.add_argument("sizes", nargs="*", type=int)
    told = parser.parse_args()
    if told.run:
        print(json.dumps(RUNS[told.run](told.folder, told.sizes[0])))
        return
    run, results = harness.Run(), harness.results_folder(told.quick)
    if told.draw:
        plot(json.loads((results / "scale.json").read_text()), results / "scale.png")
        return
    sizes = tuple(told.sizes) or (SIZES[:1] if told.quick else SIZES)
    folder = told.folder or Path(tempfile.mkdtemp(prefix="tacit-bench-"))
    kept, known = results / "scale.json", dict[str, Any]()
    if told.sizes and kept.exists():  # a part of a run: what was measured before stays
        known = json.loads(kept.read_text())
    try:
        found = {**known, **measure(folder, sizes, told.dask_ml)}
        kept.write_text(json.dumps(found, indent=1) + "\n")
        report(found, run, results)
        plot(found, results / "scale.png")
    finally:
        if told.folder is None:
            shutil.rmtree(folder)


if __name__ == "__main__":
    main()
