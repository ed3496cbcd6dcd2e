"""What weights of classes do where one is rare: Diabetes-130, 11 % positive, epsilon 1.

scikit-learn's balanced model beside tacit's, with defaults and without tuning, on patients held
out: how many of the positives are found, and how many of those found are positive. Results go to
results/weights.csv and weights.md. Fails if a balanced model finds fewer than half of the
positives, or at a precision more than 0.02 below scikit-learn's.
"""

from __future__ import annotations

import harness

harness.pin_threads(1)

import argparse  # noqa: E402
import math  # noqa: E402
import sys  # noqa: E402
from statistics import fmean  # noqa: E402
from typing import Any  # noqa: E402

import numpy as np  # noqa: E402
import sklearn.linear_model  # noqa: E402
from diabetes130 import SCHEMA, load_diabetes130  # noqa: E402

from tacit.datasets import Dataset  # noqa: E402
from tacit.linear_model import LinearSVC, LogisticRegression  # noqa: E402

REPEATS = 10
QUICK_REPEATS = 2
EPSILON, DELTA = 1.0, 1e-6
LEAST_RECALL, MOST_BELOW = 0.5, 0.02
# A column gives at most one 1.
KNOWN: dict[str, Any] = {"row_norm": math.sqrt(len(SCHEMA)), "classes": [False, True]}
WEIGHTS: dict[str, Any] = {"none": None, "1 : 8": {False: 1, True: 8}, "balanced": "balanced"}


def judged(model: Any, data: Dataset) -> dict[str, float]:
    """Return recall and precision of the rarer class, and of how many it is said."""
    said, true = np.asarray(model.predict(data.test_rows), bool), data.test_labels.astype(bool)
    hits = float((said & true).sum())
    return {
        "recall": hits / true.sum(),
        "precision": hits / max(said.sum(), 1),
        "said": float(said.mean()),
    }


def averaged(fits: list[dict[str, float]]) -> dict[str, float]:
    return {name: fmean(fit[name] for fit in fits) for name in fits[0]}


def measured(data: Dataset, repeats: int) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    records = data.train_rows, data.train_labels.astype(bool)
    for name, weight in WEIGHTS.items():
        sk = sklearn.linear_model.LogisticRegression(class_weight=weight, max_iter=2000)
        rows.append({"model": "scikit-learn", "weights": name, **judged(sk.fit(*records), data)})
        for kind in (LogisticRegression, LinearSVC):
            model = kind(EPSILON, DELTA, class_weight=weight, **KNOWN)
            fits = [judged(model.fit(*records), data) for _ in range(repeats)]
            rows.append({"model": kind.__name__, "weights": name, **averaged(fits)})
    return rows


def write(rows: list[dict[str, Any]], partial: bool, run: harness.Run) -> None:
    folder = harness.results_folder(partial)
    harness.write_csv(folder / "weights.csv", rows)
    header = ("model", "weights", "positives found", "of those found, positive", "said positive")
    cells = [
        (r["model"], r["weights"], *(f"{r[k]:.3f}" for k in ("recall", "precision", "said")))
        for r in rows
    ]
    table = harness.markdown_table(header, cells)
    (folder / "weights.md").write_text(f"{__doc__}\n{table}\n\n{harness.machine(run)}\n")
    print(table)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="two repeats")
    options, _ = parser.parse_known_args()
    run = harness.Run()
    rows = measured(load_diabetes130(), QUICK_REPEATS if options.quick else REPEATS)
    write(rows, options.quick, run)
    found = {(row["model"], row["weights"]): row for row in rows}
    peer, own = found["scikit-learn", "balanced"], found["LogisticRegression", "balanced"]
    met = own["recall"] >= LEAST_RECALL and own["precision"] >= peer["precision"] - MOST_BELOW
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
