"""Describe tables with diffprivlib, in its own environment: a job as JSON on stdin.

The job names an .npz file with an array per column and table ("number/age/0", "level/ward/0"), the
declared ranges, the epsilon of a whole table, and the number of repeats. The answer has, for each
column, the released figures of every table and repeat. Runs without tacit.
"""

from __future__ import annotations

import json
import sys
import warnings
from typing import Any

import numpy as np


def described(job: dict[str, Any]) -> dict[str, list[list[float]]]:
    """Return figures by column: [mean, median] of numbers, [share of the first level]."""
    from diffprivlib import tools

    data = np.load(job["data"])
    found: dict[str, list[list[float]]] = {}
    # A number has two questions, its mean and its median; a column of levels one histogram.
    n_questions = 2 * len(job["ranges"]) + len(job["levels"])
    epsilon = job["epsilon"] / n_questions
    for table in range(job["tables"]):
        for _ in range(job["repeats"]):
            for name, (low, high) in job["ranges"].items():
                values = data[f"number/{name}/{table}"]
                mean = tools.mean(values, epsilon=epsilon, bounds=(low, high))
                median = tools.median(values, epsilon=epsilon, bounds=(low, high))
                found.setdefault(name, []).append([float(mean), float(median)])
            for name, n_levels in job["levels"].items():
                codes = data[f"level/{name}/{table}"]
                edges = np.arange(n_levels + 1) - 0.5
                counts, _ = tools.histogram(
                    codes, epsilon=epsilon, bins=edges, range=(edges[0], edges[-1])
                )
                found.setdefault(name, []).append([float(counts[0] / max(counts.sum(), 1))])
    return found


def main() -> None:
    """Read a job, and print its answer."""
    job = json.load(sys.stdin)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        print(json.dumps(described(job)))


if __name__ == "__main__":
    main()
