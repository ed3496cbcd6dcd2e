"""BANCO against gradient descent under local privacy: what a learning rate is worth.

Everybody in a stream answers once. All learners of one repeat meet the same people and the same
noise, in turn. `make bench` runs the whole study; --quick a small one; --only NAME one part.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache
from types import SimpleNamespace
from typing import Any, NamedTuple

from harness import Run, machine, pin_threads, results_folder, write_csv

pin_threads(1)

import numpy as np  # noqa: E402
import numpy.typing as npt  # noqa: E402

from tacit.local import (  # noqa: E402
    Absolute,
    Banco,
    GradientDescent,
    Learner,
    Logistic,
    PosterBanco,
    Tail,
)
from tacit.local.sanitizers import (  # noqa: E402
    GaussianNoise,
    HalfSphere,
    PrivUnit,
    Sanitizer,
    SphereNoise,
)
from tacit.local.stream import learn_prepared  # noqa: E402
from tacit.local.subgradients import LocalLoss  # noqa: E402
from tacit.noise import secure_source  # noqa: E402

Array = npt.NDArray[np.float64]

LOSSES = ("excess", "plain_excess")
RATES = np.logspace(-5, 1, 13)
N_TEST = 100_000
_CHUNK_NUMBERS = 1 << 18


class Tracked(NamedTuple):
    """A learner's state with the plain average of its points beside its own."""

    inner: Any
    n_reports: int
    point: Array
    estimate: Array
    plain: Array


_tracked_steps: dict[Any, Any] = {}


def tracked_step(step: Any) -> Any:
    """Return the step that also keeps the plain average."""
    if step not in _tracked_steps:
        from numba import njit

        inner_step = njit(step)

        def tracked(state: Tracked, report: Array, settings: Any) -> Tracked:
            inner = inner_step(state.inner, report, settings)
            plain = state.plain + (state.point - state.plain) / inner.n_reports
            return Tracked(inner, inner.n_reports, inner.point, inner.estimate, plain)

        _tracked_steps[step] = tracked
    return _tracked_steps[step]


@dataclass(frozen=True)
class Problem:
    """People to draw, the loss, and how far any weights are from the best."""

    name: str
    d: int
    size: float
    loss: LocalLoss
    people: Callable[[int, np.random.Generator], tuple[Array, Array]]
    best: Array

    test_people: tuple[Array, Array]

    def excess(self, weights: Array) -> float:
        rows, labels = self.test_people
        return _risk(self.loss, rows, labels, weights) - _risk(self.loss, rows, labels, self.best)


def _risk(loss: LocalLoss, rows: Array, labels: Array, weights: Array) -> float:
    scores = rows @ weights
    if isinstance(loss, Logistic):
        return float(np.mean(np.logaddexp(0.0, -labels * scores)))
    return float(np.mean(np.abs(labels - scores)))


def synthetic(kind: str, d: int, size: float) -> Problem:
    """Rows uniform on the unit sphere; logistic labels, or a line plus Laplace noise of 0.1."""
    best = np.random.default_rng(d).standard_normal(d)
    best *= size / np.linalg.norm(best)

    def people(n: int, rng: np.random.Generator) -> tuple[Array, Array]:
        rows = rng.standard_normal((n, d))
        rows /= np.linalg.norm(rows, axis=1)[:, None]
        scores = rows @ best
        if kind == "logistic":
            return rows, np.where(rng.random(n) < 1.0 / (1.0 + np.exp(-scores)), 1.0, -1.0)
        return rows, scores + rng.laplace(0.0, 0.1, n)

    loss: LocalLoss = Logistic() if kind == "logistic" else Absolute()
    test = people(N_TEST, np.random.default_rng(2**32))
    return Problem(f"{kind} d={d} |w*|={size:g}", d, size, loss, people, best, test)


def adult() -> Problem:
    """Adult, drawn with replacement: a population of its training rows, tested on its test rows."""
    from sklearn.linear_model import LogisticRegression

    from tacit.datasets import adult as schemas
    from tacit.datasets import load_adult

    data = load_adult(schema=schemas.PLAIN)
    rows, test_rows = _scaled(data.train_rows), _scaled(data.test_rows)
    signs, test_signs = (np.where(y, 1.0, -1.0) for y in (data.train_labels, data.test_labels))
    best = LogisticRegression(C=1e4, fit_intercept=False, max_iter=2000).fit(rows, signs).coef_[0]

    def people(n: int, rng: np.random.Generator) -> tuple[Array, Array]:
        chosen = rng.integers(0, len(rows), n)
        return rows[chosen], signs[chosen]

    size = float(np.linalg.norm(best))
    name = f"Adult logistic d={rows.shape[1]} |w*|={size:.3g}"
    test = test_rows, test_signs
    return Problem(name, rows.shape[1], size, Logistic(), people, best, test)


def _scaled(rows: Any) -> Array:
    dense = np.asarray(rows, dtype=np.float64)
    dense = np.column_stack([dense, np.full(len(dense), 0.25)])
    scaled: Array = dense / np.maximum(np.linalg.norm(dense, axis=1), 1.0)[:, None]
    return scaled


def marks(n_people: int) -> list[int]:
    """Return 1000, 3162, 10000, ... up to the number of people."""
    grid = [round(10**k) for k in np.arange(3.0, math.log10(n_people) + 0.01, 0.5)]
    return sorted({*[m for m in grid if m < n_people], n_people})


def race(
    problem: Problem, sanitizer: Sanitizer, learners: dict[str, Learner], n_people: int, seed: int
) -> dict[str, list[tuple[int, float, float]]]:
    """Return each learner's excess at every mark: by its own average and by the plain one."""
    rng, source = np.random.default_rng(seed), secure_source()
    zeros = np.zeros(problem.d)
    states = {
        name: Tracked(learner.init(problem.d), 0, zeros, zeros, zeros)
        for name, learner in learners.items()
    }
    results: dict[str, list[tuple[int, float, float]]] = {name: [] for name in learners}
    done = 0
    for mark in marks(n_people):
        while done < mark:
            n = min(mark - done, _CHUNK_NUMBERS // problem.d)
            rows, labels = problem.people(n, rng)
            prepared = sanitizer.prepare(n, source)
            for name, learner in learners.items():
                step = tracked_step(learner.step)
                tracked: Any = SimpleNamespace(step=step, settings=learner.settings)
                given = tracked, states[name], rows, labels, problem.loss, sanitizer, prepared
                states[name] = learn_prepared(*given, compile_it=True)
            done += n
        for name, state in states.items():
            if not all(np.all(np.isfinite(v)) for v in (state.point, state.estimate, state.plain)):
                results[name].append((mark, math.inf, math.inf))
                continue
            results[name].append(
                (mark, problem.excess(state.estimate), problem.excess(state.plain))
            )
    return results


def contenders(sanitizer: Sanitizer, n_people: int) -> dict[str, Learner]:
    """Return BANCO, the poster's, 13 rates, and three rates of no thought."""
    rates: dict[str, Learner] = {
        f"rate {rate:.3g}": GradientDescent(float(rate), decay=0.0) for rate in RATES
    }
    return {
        "banco": Banco(sanitizer.tail, sanitizer.norm),
        "poster": PosterBanco(sanitizer.tail, sanitizer.norm),
        "default 1/sqrt(t)": GradientDescent(1.0, decay=0.5),
        "default 1/sqrt(T)": GradientDescent(1.0 / math.sqrt(n_people), decay=0.0),
        "default 1/(B sqrt(T))": GradientDescent(
            1.0 / (sanitizer.rms_norm * math.sqrt(n_people)), decay=0.0
        ),
        **rates,
    }


# -- the three parts -------------------------------------------------------------------------------

# Chosen for the words: several sizes and dimensions, Adult, absolute loss; epsilon 1.
HEADLINE = [
    ("logistic", 5, 5.0),
    ("logistic", 50, 5.0),
    ("absolute", 5, 5.0),
    ("absolute", 50, 1.0),
    ("adult", 0, 0.0),
]
FURTHER = [("logistic", 5, 1.0), ("absolute", 50, 5.0), ("absolute", 10, 25.0)]


@cache
def problem_of(kind: str, d: int, size: float) -> Problem:
    return adult() if kind == "adult" else synthetic(kind, d, size)


def rate_task(args: tuple[str, int, float, float, int, int]) -> list[list[Any]]:
    kind, d, size, epsilon, n_people, seed = args
    problem = problem_of(kind, d, size)
    sanitizer = PrivUnit(epsilon, problem.d)
    results = race(problem, sanitizer, contenders(sanitizer, n_people), n_people, seed)
    zero = problem.excess(np.zeros(problem.d))
    return [
        [problem.name, epsilon, seed, name, mark, own, plain, zero]
        for name, series in results.items()
        for mark, own, plain in series
    ]


def sanitizer_task(args: tuple[int, float, int, int]) -> list[list[Any]]:
    d, epsilon, n_people, seed = args
    problem = problem_of("absolute", d, 1.0)
    sphere = SphereNoise(epsilon, d)
    half, unit = HalfSphere(epsilon, d), PrivUnit(epsilon, d)
    gaussian = GaussianNoise(epsilon, 1e-6, d)
    poster_tail = Tail(18.0 * d**2 / epsilon**2, sphere.tail.largest_rate)
    cases: dict[str, tuple[Sanitizer, Tail]] = {
        "sphere, the poster's 18 d^2": (sphere, poster_tail),
        "sphere, corrected 4.6 (d + 1)": (sphere, sphere.tail),
        "half sphere, Hoeffding": (half, Tail(half.rms_norm**2)),
        "half sphere": (half, half.tail),
        "PrivUnit, Hoeffding": (unit, Tail(unit.rms_norm**2)),
        "PrivUnit (auto)": (unit, unit.tail),
        "Gaussian, delta 1e-6": (gaussian, gaussian.tail),
    }
    rows = []
    for name, (sanitizer, tail) in cases.items():
        learners: dict[str, Learner] = {"banco": Banco(tail), "poster": PosterBanco(tail)}
        for learner, series in race(problem, sanitizer, learners, n_people, seed).items():
            rows += [[d, epsilon, seed, name, learner, *point] for point in series]
    return rows


def scaling_task(args: tuple[int, float, int, int]) -> list[list[Any]]:
    d, epsilon, n_people, seed = args
    problem = problem_of("absolute", d, 1.0)
    sanitizer = PrivUnit(epsilon, d)
    learners: dict[str, Learner] = {
        "banco": Banco(sanitizer.tail),
        "poster": PosterBanco(sanitizer.tail),
    }
    results = race(problem, sanitizer, learners, n_people, seed)
    return [
        [d, epsilon, seed, name, mark, own, plain, sanitizer.rms_norm]
        for name, series in results.items()
        for mark, own, plain in series
    ]


def endless_task(n_people: int) -> list[list[Any]]:
    """Run BANCO for very long on a hard and on an easy stream; say whether it stayed finite."""
    rows = []
    for kind, d, size, epsilon in (("logistic", 5, 5.0, 0.5), ("absolute", 5, 25.0, 8.0)):
        problem, sanitizer = synthetic(kind, d, size), PrivUnit(epsilon, d)
        learners: dict[str, Learner] = {
            "banco": Banco(sanitizer.tail),
            "poster": PosterBanco(sanitizer.tail),
        }
        start = time.perf_counter()
        for name, series in race(problem, sanitizer, learners, n_people, 0).items():
            finite = all(math.isfinite(x) for point in series for x in point)
            took = time.perf_counter() - start
            rows.append([problem.name, epsilon, name, n_people, finite, *series[-1][1:], took])
    return rows


def over_seeds(header: list[str], rows: list[list[Any]]) -> list[dict[str, Any]]:
    """Return one row for each case: the mean of each loss over its seeds, and their number."""
    groups: dict[Any, list[dict[str, Any]]] = {}
    for row in rows:
        record = dict(zip(header, row, strict=True))
        record.pop("seed", None)
        key = tuple(value for name, value in record.items() if name not in LOSSES)
        groups.setdefault(key, []).append(record)
    result = []
    for group in groups.values():
        losses = {name: [record[name] for record in group] for name in LOSSES}
        means = {name: f"{np.mean(values):.5g}" for name, values in losses.items()}
        spreads = {f"{name}_sd": f"{np.std(values):.2g}" for name, values in losses.items()}
        result.append({**group[0], **means, **spreads, "seeds": len(group)})
    return result


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", choices=["rates", "sanitizers", "scaling", "endless"])
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    args = parser.parse_args()
    n_people, n_seeds = (20_000, 2) if args.quick else (1_000_000, 10)
    folder = results_folder(partial=args.quick)
    run = Run()
    seeds = range(n_seeds)
    epsilons, dimensions = (0.5, 1.0, 2.0, 4.0, 8.0), (5, 10, 20, 50, 100)
    parts: dict[str, tuple[Any, list[Any], list[str]]] = {
        "rates": (
            rate_task,
            [(*p, 1.0, n_people, s) for s in seeds for p in HEADLINE]
            + [(*p, 1.0, n_people, s) for s in seeds[:5] for p in FURTHER]
            + [("logistic", 50, 5.0, e, n_people, s) for s in seeds[:3] for e in (0.5, 4.0, 8.0)],
            ["problem", "epsilon", "seed", "learner", "n", "excess", "plain_excess", "zero"],
        ),
        "sanitizers": (
            sanitizer_task,
            [(50, 1.0, n_people, s) for s in seeds],
            ["d", "epsilon", "seed", "sanitizer", "learner", "n", "excess", "plain_excess"],
        ),
        "scaling": (
            scaling_task,
            [(d, 1.0, n_people, s) for s in seeds[:5] for d in dimensions]
            + [(20, e, n_people, s) for s in seeds[:5] for e in epsilons if e != 1.0],
            ["d", "epsilon", "seed", "learner", "n", "excess", "plain_excess", "rms_norm"],
        ),
        "endless": (
            endless_task,
            [20_000 if args.quick else 10_000_000],
            ["problem", "epsilon", "learner", "n", "finite", "excess", "plain_excess", "seconds"],
        ),
    }
    for name, (task, tasks, header) in parts.items():
        if args.only not in (None, name):
            continue
        rows = []
        start = time.perf_counter()
        with ProcessPoolExecutor(args.processes) as pool:
            for done, result in enumerate(pool.map(task, tasks), 1):
                rows += result
                elapsed = time.perf_counter() - start
                print(f"{name}: {done} of {len(tasks)} after {elapsed:.0f} s", flush=True)
        write_csv(folder / f"local_{name}.csv", over_seeds(header, rows))
    from local_report import write_report

    write_report(folder, machine(run))
    return 0


if __name__ == "__main__":
    sys.exit(main())
