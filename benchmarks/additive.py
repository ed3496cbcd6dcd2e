"""Accuracy of additive models from a schema alone: Adult, telco, Diabetes-130 and UCI regressions.

    TACIT_DATA=... python benchmarks/additive.py adult 10
    TACIT_DATA=... python benchmarks/additive.py wine 5

Numbers of Adult, telco and Diabetes-130 are declared from -1e7 to 1e7; those of the regressions ten
times too wide. Categories are those of all records (a public code book is assumed).
"""

from __future__ import annotations

import csv
import gzip
import math
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from harness import markdown_table, pin_threads

pin_threads(1)

from sklearn.metrics import r2_score, roc_auc_score  # noqa: E402

from tacit.additive import AdditiveClassifier, AdditiveRegressor  # noqa: E402
from tacit.datasets.adult import read_table  # noqa: E402
from tacit.schema import Category, ClassTarget, Number, NumberTarget, Schema  # noqa: E402

FOLDER = Path(os.environ.get("TACIT_DATA", "."))
EPSILONS = (0.5, 1.0, 4.0)
TARGET = "target"
Table = dict[str, Any]
Splits = Callable[[int], tuple[Any, Any]]


def _part(table: Table, at: Any) -> Table:
    return {name: column[at] for name, column in table.items()}


def _classes(table: Table, numbers: tuple[str, ...], second: Any) -> tuple[Table, Schema]:
    """Return a table with its target as yes or no, and a schema with wide bounds."""
    columns: list[Any] = []
    for name, column in table.items():
        if name in numbers:
            table[name] = np.array(
                [float(v) if v.strip() else math.nan for v in column.astype(str)]
            )
            columns.append(Number(name, -1e7, 1e7))
            continue
        words = sorted({str(v).strip() for v in column.tolist()} - {"", "?"})
        if words:
            columns.append(Category(name, tuple(words)))
    table[TARGET] = np.where(second, "yes", "no")
    return table, Schema(tuple(columns), ClassTarget(TARGET, ("no", "yes")))


def _shuffled(owners: Any) -> Splits:
    """Return splits of a fifth of the people for the test."""
    people = np.unique(owners)

    def split(seed: int) -> tuple[Any, Any]:
        held_out = np.random.default_rng(seed).permutation(people)[: len(people) // 5]
        test = np.isin(owners, held_out)
        return np.flatnonzero(~test), np.flatnonzero(test)

    return split


def adult() -> tuple[Table, Schema, Splits]:
    """Return Adult with its own split; the weight and the second education are left out."""
    parts = [read_table(FOLDER / "adult" / f"adult.{part}.gz") for part in ("data", "test")]
    joined, n = np.concatenate(parts), len(parts[0])
    left_out = ("fnlwgt", "education-num", "income")
    table = {name: joined[name] for name in joined.dtype.names or () if name not in left_out}
    numbers = ("age", "capital-gain", "capital-loss", "hours-per-week")
    made = _classes(table, numbers, joined["income"] == ">50K")
    return *made, lambda _: (np.arange(n), np.arange(n, len(joined)))


def _csv(path: Path) -> Table:
    with gzip.open(path, "rt", encoding="utf-8-sig") as file:
        header, *rows = csv.reader(file)
    return dict(zip(header, np.array(rows, dtype=str).T, strict=True))


def telco() -> tuple[Table, Schema, Splits]:
    """Return telco: whether a customer leaves."""
    table = _csv(FOLDER / "telco" / "telco.csv.gz")
    owners, second = table.pop("customerID"), table.pop("Churn") == "Yes"
    numbers = ("tenure", "MonthlyCharges", "TotalCharges")
    return *_classes(table, numbers, second), _shuffled(owners)


def diabetes() -> tuple[Table, Schema, Splits]:
    """Return Diabetes-130: readmission within 30 days, split by patient."""
    table = _csv(FOLDER / "diabetes130" / "diabetic_data.csv.gz")
    owners, second = table.pop("patient_nbr"), table.pop("readmitted") == "<30"
    del table["encounter_id"]
    counts = ("outpatient", "emergency", "inpatient", "diagnoses")
    numbers = (
        *("time_in_hospital", "num_lab_procedures", "num_procedures", "num_medications"),
        *(f"number_{what}" for what in counts),
    )
    return *_classes(table, numbers, second), _shuffled(owners)


def _round_up(value: float) -> float:
    power = 10.0 ** math.floor(math.log10(value))
    return next(k * power for k in (1, 2, 5, 10) if k * power >= value * (1 - 1e-12))


def regression(name: str) -> tuple[Table, Schema, Splits]:
    """Return one of the UCI regressions; the label's range is rounded up to 1, 2 or 5."""
    stored = np.load(FOLDER / "uci_regression" / f"{name}.npz")
    arrays = [stored[key] for key in stored.files]
    rows = next(array for array in arrays if array.ndim == 2 and array.shape[1] > 1)
    labels = next(a for a in arrays if a.size == len(rows)).ravel()
    table: Table = {f"x{j}": column.astype(np.float64) for j, column in enumerate(rows.T)}
    ends = {name: 10 * _round_up(max(np.abs(c).max(), 1e-9)) for name, c in table.items()}
    low = -_round_up(-labels.min()) if labels.min() < 0 else 0.0
    target = NumberTarget(TARGET, low, _round_up(np.abs(labels).max()))
    columns = tuple(Number(name, -end, end) for name, end in ends.items())
    table[TARGET] = labels
    return table, Schema(columns, target), _shuffled(np.arange(len(labels)))


def main(name: str, repeats: int) -> None:
    """Print mean and standard deviation of the score, and seconds of a fit."""
    known = {"adult": adult, "telco": telco, "diabetes": diabetes}
    table, schema, split = known[name]() if name in known else regression(name)
    of_class = isinstance(schema.target, ClassTarget)
    lines = []
    for epsilon in EPSILONS:
        scores, seconds = [], []
        for repeat in range(repeats):
            train, test = (_part(table, at) for at in split(repeat))
            cls: Any = AdditiveClassifier if of_class else AdditiveRegressor
            start = time.perf_counter()
            model = cls(schema, epsilon, 1e-6).fit(train)
            seconds.append(time.perf_counter() - start)
            truth = test[TARGET]
            scores.append(
                roc_auc_score(truth == "yes", model.decision_function(test))
                if of_class
                else r2_score(truth, model.predict(test))
            )
        found = f"{np.mean(scores):.4f} +- {np.std(scores):.4f}"
        lines.append([f"{epsilon:g}", found, f"{np.mean(seconds):.2f}"])
    header = ["epsilon", "AUC" if of_class else "R2", "seconds"]
    sys.stdout.write(markdown_table(header, lines) + "\n")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
