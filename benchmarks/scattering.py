"""Scattered images and a private linear model: accuracy on MNIST and CIFAR-10.

Settings of `ScatteringClassifier` were chosen on parts of the training images; test images are
asked for once a fit, and nothing follows from them. Features are made once by the classifier's own
map and kept in the temporary folder: they are public and the same for every fit, which is then that
of the classifier's linear part. Every fit has noise of its own, from the secure source.

    python benchmarks/scattering.py [--cases mnist-3,cifar10-1] [--fits 5] [--quick]
"""

from __future__ import annotations

import argparse
import csv
import statistics
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from cifar10 import load_cifar10
from harness import results_folder

from tacit.datasets import Dataset, load_mnist
from tacit.images import ScatteringClassifier
from tacit.records.lazy_table import MappedRows

DELTA = 1e-5
CACHE = Path(tempfile.gettempdir()) / "tacit-scattering"


@dataclass(frozen=True)
class Images:
    """A data set, and what is public of its images."""

    load: Callable[[], Dataset]
    shape: tuple[int, ...]
    mirrored: bool

    def classifier(self, epsilon: float) -> ScatteringClassifier:
        return ScatteringClassifier(
            epsilon,
            DELTA,
            image_shape=self.shape,
            mirrored=self.mirrored,
            classes=list(range(10)),
        )


DATA = {
    "mnist": Images(load_mnist, (28, 28), mirrored=False),
    "cifar10": Images(load_cifar10, (32, 32, 3), mirrored=True),
}
# By data set and epsilon: what was published (tuned on test images), reach, stretch.
CASES: dict[str, tuple[float, str, float, float]] = {
    "mnist-3": (3.0, "98.7", 98.7, 98.9),
    "mnist-1": (1.0, "97.78, with a network on top", 98.2, 98.9),
    "cifar10-3": (3.0, "67.0", 66.0, 68.0),
    "cifar10-1": (1.0, "63.15, with a network on top", 60.0, 63.0),
}


def features(name: str) -> tuple[Any, ...]:
    """Return rows and labels to train on and to test on, made once."""
    images, paths = DATA[name], [CACHE / f"{name}-{part}.npy" for part in ("train", "test")]
    data = images.load()
    CACHE.mkdir(exist_ok=True)
    function = images.classifier(1.0)._row_map(data.train_rows.shape[1])
    for path, rows in zip(paths, (data.train_rows, data.test_rows), strict=True):
        if not path.exists():
            np.save(path, MappedRows(rows, function).whole(lambda _: None))
    made = [np.load(path) for path in paths]
    return made[0], data.train_labels, made[1], data.test_labels


def measured(case: str, quick: bool) -> float:
    """Return the accuracy of one fit on test images, in percent."""
    name = case.partition("-")[0]
    rows, labels, test_rows, test_labels = features(name)
    if quick:
        rows, labels = rows[:2000], labels[:2000]
    linear = DATA[name].classifier(CASES[case][0])._linear()
    linear.fit(rows, labels)
    return 100 * float(np.mean(linear.predict(test_rows) == test_labels))


def report(found: dict[str, list[float]]) -> str:
    lines = [
        "# Scattered images",
        "",
        f"`ScatteringClassifier`, delta {DELTA:g}, number of images private, defaults; accuracy",
        "on the official test images in percent, mean of so many fits (standard deviation).",
        "Settings were chosen on parts of the training images: see decision 0038.",
        "",
        "| case | published | reach | stretch | accuracy | fits |",
        "|---|---|---|---|---|---|",
    ]
    for case, (epsilon, published, reach, stretch) in CASES.items():
        scores = found.get(case, [])
        spread = f" ({statistics.stdev(scores):.2f})" if len(scores) > 1 else ""
        shown = f"{statistics.mean(scores):.2f}{spread}" if scores else "not measured"
        name = f"{case.partition('-')[0]}, eps {epsilon:g}"
        cells = (name, published, reach, stretch, shown, len(scores))
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--cases", default=",".join(CASES))
    parser.add_argument("--fits", type=int, default=5)
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    folder = results_folder(options.quick)
    table = folder / "scattering.csv"
    for case in options.cases.split(","):
        for _ in range(1 if options.quick else options.fits):
            accuracy = measured(case, options.quick)
            print(f"{case}: {accuracy:.2f}", flush=True)
            with table.open("a", newline="") as out:
                csv.writer(out).writerow((case, f"{accuracy:.2f}"))
    found: dict[str, list[float]] = {}
    with table.open(newline="") as rows:
        for case, score in csv.reader(rows):
            found.setdefault(case, []).append(float(score))
    (folder / "scattering.md").write_text(report(found), encoding="utf-8")


if __name__ == "__main__":
    main()
