"""How many people a second one core can ask, sanitising included, and with how much memory."""

from __future__ import annotations

import argparse
import resource
import statistics
import sys
import time
from typing import Any

from harness import Run, machine, markdown_table, pin_threads, results_folder

pin_threads(1)

import numpy as np  # noqa: E402

from tacit.local import (  # noqa: E402
    Banco,
    GaussianNoise,
    GradientDescent,
    HalfSphere,
    Learner,
    LocalLogisticRegression,
    Logistic,
    PrivUnit,
    Sanitizer,
    SphereNoise,
)
from tacit.local.stream import learn  # noqa: E402
from tacit.noise import secure_source  # noqa: E402

D, EPSILON = 50, 1.0


def people(n: int, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((n, D))
    rows /= np.linalg.norm(rows, axis=1)[:, None]
    return rows, np.where(rows[:, 0] > 0.0, 1.0, -1.0)


def speeds(n: int, repeats: int) -> list[list[str]]:
    """Return people a second for each sanitizer and learner: the median and the least."""
    rows, labels = people(n)
    unit = PrivUnit(EPSILON, D)
    sanitizers: list[Sanitizer] = [
        unit,
        HalfSphere(EPSILON, D),
        SphereNoise(EPSILON, D),
        GaussianNoise(EPSILON, 1e-6, D),
    ]
    table = []
    for sanitizer in sanitizers:
        learners: list[Learner] = [Banco(sanitizer.tail), GradientDescent(0.01)]
        for learner in learners:
            seconds = []
            for _ in range(repeats + 1):  # the first compiles
                start = time.perf_counter()
                source, state = secure_source(), learner.init(D)
                learn(learner, state, rows, labels, Logistic(), sanitizer, source, compile_it=True)
                seconds.append(time.perf_counter() - start)
            took = seconds[1:]
            name = f"{type(sanitizer).__name__}, {type(learner).__name__}"
            speed = [f"{n / s:,.0f}" for s in (statistics.median(took), max(took))]
            table.append([name, *speed, f"{seconds[0] - statistics.median(took):.1f}"])
    return table


def memory(blocks: int, size: int) -> list[list[str]]:
    """Return the peak memory after more and more people, who come in blocks."""
    model = LocalLogisticRegression(row_norm=1.0, classes=[-1.0, 1.0])
    table = []
    for block in range(blocks):
        model.partial_fit(*people(size, block))
        if block + 1 in (1, 2, blocks // 4, blocks):
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            table.append([f"{model.n_reports_:,}", f"{peak:.0f} MB"])
    return table


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    run = Run()
    stream = memory(4 if quick else 20, 50_000)
    table = speeds(50_000 if quick else 500_000, 2 if quick else 5)
    text = (
        f"# Local privacy: people a second on one core, d = {D}\n\n"
        + markdown_table(["", "median", "slowest repeat", "seconds to compile"], table)
        + f"\nPeak memory of a stream in blocks of 50,000 people (d = {D}):\n\n"
        + markdown_table(["people so far", "peak"], stream)
    )
    folder = results_folder(partial=quick)
    (folder / "local_speed.md").write_text(f"{text}\n{machine(run)}\n")
    print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
