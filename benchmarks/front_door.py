"""`tacit fit` on Adult resampled to a million rows, beside reading and encoding it alone."""

from __future__ import annotations

import argparse
import gzip
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

from harness import SCRATCH, Run, machine, markdown_table, pin_threads, results_folder

pin_threads(os.cpu_count() or 1)

import numpy as np  # noqa: E402

from tacit.datasets.adult import ROUND  # noqa: E402
from tacit.io import read_table  # noqa: E402
from tacit.saving import load  # noqa: E402
from tacit.schema import ClassTarget, Schema  # noqa: E402

EPSILON, DELTA = 1.0, 1e-5
HEADER = (
    "age,workclass,fnlwgt,education,education-num,marital-status,occupation,relationship,race,sex,"
    "capital-gain,capital-loss,hours-per-week,native-country,income"
)
ENCODE = (
    "import sys; from tacit.preprocessing import Schema, encode_file;"
    "print(encode_file(sys.argv[1], Schema.from_file(sys.argv[2]))[0].nbytes)"
)


def records(name: str) -> list[str]:
    """Return the lines of a file of Adult as plain CSV."""
    from tacit.datasets.base import find_file

    with gzip.open(find_file(f"adult/{name}.gz"), "rt") as file:
        lines = (line.strip().rstrip(".") for line in file)
        return [
            ",".join(field.strip() for field in line.split(","))
            for line in lines
            if line and not line.startswith("|")
        ]


def write(path: Path, lines: list[str], rows: int | None = None) -> Path:
    """Write a table, resampled to so many rows."""
    rng = np.random.default_rng(0)
    with path.open("w", encoding="utf-8") as file:
        file.write(HEADER + "\n")
        at = range(len(lines)) if rows is None else rng.integers(0, len(lines), rows)
        file.writelines(lines[i] + "\n" for i in at)
    return path


def timed(*words: str | Path) -> tuple[float, float, str]:
    """Run a command; return its seconds, its peak memory in MB and what it printed."""
    start = time.perf_counter()
    with subprocess.Popen(list(map(str, words)), stdout=subprocess.PIPE, text=True) as process:
        printed = process.stdout.read() if process.stdout else ""
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{words[0]} failed")
    return time.perf_counter() - start, used.ru_maxrss / 1024, printed


def fit(table: Path, schema: Path, model: Path) -> tuple[float, float, str]:
    """Time `tacit fit`."""
    budget = ("--epsilon", str(EPSILON), "--delta", str(DELTA))
    out = ("--out", model, "--force")
    return timed(sys.executable, "-m", "tacit.cli", "fit", table, "--schema", schema, *budget, *out)


def accuracy(train: Path, test: Path, schema: Path, folder: Path, repeats: int) -> list[float]:
    """Return the test accuracy of models fitted by the command line."""
    scores = []
    for _ in range(repeats):
        fit(train, schema, folder / "adult.tacit")
        table = read_table(test, HEADER.split(","))
        truth = np.array([line.rsplit(",", 1)[1] for line in records("adult.test")])
        scores.append(float(np.mean(load(folder / "adult.tacit").predict(table) == truth)))
    return scores


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    run, folder = Run(), SCRATCH / "front_door"
    folder.mkdir(parents=True, exist_ok=True)
    schema = folder / "schema.toml"
    schema.write_text(Schema(tuple(ROUND), ClassTarget("income", ("<=50K", ">50K"))).to_toml())
    train, test = records("adult.data"), records("adult.test")
    large = write(folder / "large.csv", train, 50_000 if quick else 1_000_000)
    alone, whole = [], []
    matrix = 0.0
    for _ in range(1 if quick else 7):
        seconds, _, printed = timed(sys.executable, "-c", ENCODE, large, schema)
        matrix = float(printed) / 2**20
        alone.append(seconds)
        whole.append(fit(large, schema, folder / "large.tacit")[:2])
    seconds = statistics.median(took for took, _ in whole)
    reading = statistics.median(alone)
    ratio = statistics.median(took / one for (took, _), one in zip(whole, alone, strict=True))
    peak = max(memory for _, memory in whole)
    scores = accuracy(
        write(folder / "adult.csv", train),
        write(folder / "test.csv", test),
        schema,
        folder,
        1 if quick else 10,
    )
    rows = [
        ["time, s", f"{seconds:.2f}", f"{reading:.2f}", f"{ratio:.2f}", "1.5"],
        ["peak memory, MB", f"{peak:.0f}", f"{matrix:.0f}", f"{peak / matrix:.2f}", "1.5"],
    ]
    text = (
        "# From a table to a private model, in one command\n\n"
        f"`tacit fit` on Adult resampled to {50_000 if quick else 1_000_000:,} rows, a schema of "
        f"{len(schema.read_text().splitlines())} lines. Time beside a process that reads and "
        "encodes the table alone, medians of runs in turn; memory beside the encoded matrix.\n\n"
        + markdown_table(["", "tacit fit", "beside", "ratio", "limit"], rows)
        + f"\nTest accuracy on Adult itself at epsilon {EPSILON:g}, delta {DELTA:g}: "
        f"{statistics.mean(scores):.4f} (mean of {len(scores)}).\n"
    )
    (results_folder(partial=quick) / "front_door.md").write_text(f"{text}\n{machine(run)}\n")
    print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
