"""How often 95 % intervals hold the truth: simulated tables, then RAND beside statsmodels.

Every line is a model, a mechanism, a number of records and an epsilon (delta 1e-6, inference 0.1,
secure noise). "noise / sampling" is the standard deviation of the estimates over what it is without
noise, squared, minus one: where it is below 1, intervals should hold the truth at most 97 % of the
time; everywhere at least 93 %. Results go to results/inference.md.
"""

from __future__ import annotations

import harness

harness.pin_threads(1)

import argparse  # noqa: E402
import math  # noqa: E402
import sys  # noqa: E402
import warnings  # noqa: E402
from collections.abc import Callable  # noqa: E402
from dataclasses import dataclass  # noqa: E402
from functools import lru_cache  # noqa: E402
from typing import Any  # noqa: E402

import numpy as np  # noqa: E402
import numpy.typing as npt  # noqa: E402

from tacit.erm import Objective, minimize  # noqa: E402
from tacit.erm.losses import PoissonLoss  # noqa: E402
from tacit.linear_model import (  # noqa: E402
    HuberRegressor,
    LinearRegression,
    LogisticRegression,
    PoissonRegressor,
)
from tacit.privacy import Budget  # noqa: E402
from tacit.records import Bounds, MemoryRecords  # noqa: E402

Array = npt.NDArray[np.float64]

DELTA, SHARE, WITHIN = 1e-6, 0.1, 1.959963984540054
LEAST, MOST = 0.93, 0.97
EPSILONS = (0.5, 1.0, 8.0)
TABLES = {2_000: 1_000, 20_000: 1_000, 200_000: 200}
COEFFICIENTS, INTERCEPT = np.array([1.0, -0.8, 0.5, 0.2, 0.0]), 0.3
ROW_NORM = 2.5
POPULATION = 4_000_000
OP, NG, SS = "objective_perturbation", "noisy_gradient", "sufficient_statistics"


def rows_of(rng: np.random.Generator, n: int) -> Array:
    """Return rows of five columns, the last of them correlated with the first, within the norm."""
    rows = 0.5 * rng.standard_normal((n, 5))
    rows[:, 4] = 0.5 * rows[:, 0] + math.sqrt(0.75) * rows[:, 4]
    sizes = np.linalg.norm(rows, axis=1, keepdims=True)
    clipped: Array = rows * np.minimum(1.0, ROW_NORM / sizes)
    return clipped


@dataclass(frozen=True)
class Kind:
    """A model, and labels for it given scores."""

    model: type[Any]
    labels: Callable[[np.random.Generator, Array], npt.NDArray[Any]]
    facts: dict[str, Any]
    mechanisms: tuple[str, ...] = (OP, NG)


KINDS = {
    "logistic": Kind(
        LogisticRegression,
        lambda rng, s: rng.random(s.size) < 1 / (1 + np.exp(-s)),
        {"classes": [False, True]},
    ),
    "linear": Kind(
        LinearRegression,
        lambda rng, s: s + 0.7 * rng.standard_normal(s.size),
        {"label_range": (-5.0, 5.0)},
        (OP, NG, SS),
    ),
    # errors of t with 5 degrees of freedom, twice as large where the score is positive
    "huber": Kind(
        HuberRegressor,
        lambda rng, s: s + 0.3 * rng.standard_t(5, s.size) * np.where(s > 0, 2.0, 1.0),
        {"label_range": (-5.0, 5.0)},
    ),
    "poisson": Kind(
        PoissonRegressor,
        lambda rng, s: rng.poisson(np.exp(s)).astype(float),
        {"label_range": (0.0, 20.0)},
    ),
}


@lru_cache
def truth_of(name: str) -> Array:
    """Return what intervals are for: what minimises the expected loss with its slopes bounded.

    For all but counts, which have no symmetric errors, these are the coefficients themselves.
    """
    if name != "poisson":
        return np.append(COEFFICIENTS, INTERCEPT)
    top = KINDS[name].facts["label_range"][1]
    bounds = Bounds(row_norm=ROW_NORM, intercept=1.0, label_range=(0.0, top))
    rows, labels = table(KINDS[name], POPULATION, np.random.default_rng(0))
    objective = Objective(PoissonLoss(top / 4, top), bounds, 0.0)
    return minimize(MemoryRecords(rows, labels, bounds), objective, Budget(math.inf)).weights


def table(kind: Kind, n: int, rng: np.random.Generator) -> tuple[Array, npt.NDArray[Any]]:
    rows = rows_of(rng, n)
    return rows, kind.labels(rng, rows @ COEFFICIENTS + INTERCEPT)


def estimates(
    kind: Kind, n: int, epsilon: float, mechanism: str, rng: np.random.Generator
) -> tuple[Array, Array, Array]:
    """Return what a summary says of a new table, and estimates without noise."""
    rows, labels = table(kind, n, rng)
    facts = {"row_norm": ROW_NORM, "inference": SHARE, **kind.facts}
    model = kind.model(epsilon, DELTA, mechanism=mechanism, **facts).fit(rows, labels)
    plain = kind.model(math.inf, DELTA, **facts).fit(rows, labels)
    return model.estimates_, model.standard_errors_, plain.estimates_


@dataclass(frozen=True)
class Line:
    """What many tables say of one cell."""

    name: str
    mechanism: str
    n: int
    epsilon: float
    tables: int
    coverage: float
    worst: float
    noise: float
    width: float

    @property
    def is_met(self) -> bool:
        # two standard deviations of a share measured on so many tables of six terms
        slack = 2 * math.sqrt(0.95 * 0.05 / self.tables / len(COEFFICIENTS))
        return self.coverage >= LEAST - slack and (self.noise >= 1 or self.coverage <= MOST + slack)

    def cells(self) -> list[str]:
        return [
            self.name,
            self.mechanism,
            f"{self.n:,}",
            f"{self.epsilon:g}",
            f"{self.tables:,}",
            f"{100 * self.coverage:.1f} %",
            f"{100 * self.worst:.1f} %",
            f"{self.noise:.2g}",
            f"{self.width:.2g}",
            "yes" if self.is_met else "NO",
        ]


def measure(name: str, mechanism: str, n: int, epsilon: float, tables: int, seed: int = 0) -> Line:
    """Return how often intervals of a model's terms hold the truth."""
    kind, rng = KINDS[name], np.random.default_rng([seed, n, tables])
    truth = truth_of(name)
    found, errors, plain = map(
        np.array,
        zip(*(estimates(kind, n, epsilon, mechanism, rng) for _ in range(tables)), strict=True),
    )
    held = np.abs(found - truth) <= WITHIN * errors
    noise = np.median(np.var(found - plain, axis=0) / np.var(plain, axis=0))
    each, sizes = held.mean(axis=0), errors / plain.std(axis=0)
    coverage, width = float(held.mean()), float(np.median(sizes))
    return Line(
        name, mechanism, n, epsilon, tables, coverage, float(each.min()), float(noise), width
    )


HEADER = [
    *("model", "mechanism", "records", "epsilon", "tables", "coverage", "worst term"),
    *("noise / sampling", "std err / sampling", "met"),
]


def rand(epsilon: float = 3.0) -> list[list[str]]:
    """Return RAND's terms: statsmodels' interval, ours, and whether they agree."""
    import statsmodels.api
    from regret_problems import RAND_VISITS, load_rand

    data = load_rand()
    rows, labels, names = data.train_rows, data.train_labels, [*data.feature_names, "(intercept)"]
    lines = []
    for model, ours in (
        ("linear", LinearRegression(epsilon, DELTA, row_norm=3.0, label_range=RAND_VISITS)),
        ("poisson", PoissonRegressor(epsilon, DELTA, row_norm=3.0, label_range=RAND_VISITS)),
    ):
        ours.set_params(inference=SHARE).fit(rows, labels)
        design = np.column_stack([rows, np.ones(len(rows))])
        family = statsmodels.api.families
        link = family.Gaussian() if model == "linear" else family.Poisson()
        theirs = statsmodels.api.GLM(labels, design, link).fit(cov_type="HC0")
        for i, (row, limits) in enumerate(
            zip(ours.summary().rows(), theirs.conf_int(), strict=True)
        ):
            overlap = row["low"] <= limits[1] and limits[0] <= row["high"]
            sign = limits[0] * limits[1] <= 0 or row["coefficient"] * theirs.params[i] > 0
            lines.append(
                [
                    model,
                    names[i],
                    f"{theirs.params[i]:.3f} [{limits[0]:.3f}, {limits[1]:.3f}]",
                    f"{row['coefficient']:.3f} [{row['low']:.3f}, {row['high']:.3f}]",
                    "yes" if overlap else "NO",
                    "yes" if sign else "NO",
                ]
            )
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer tables, none of 200,000")
    parser.add_argument("--tables", type=int, help="how many tables a line, at most")
    parser.add_argument("--models", nargs="*", default=list(KINDS))
    options, _ = parser.parse_known_args()
    warnings.simplefilter("ignore")
    most = options.tables or (40 if options.quick else 1_000)
    run, lines = harness.Run(), []
    for n, tables in TABLES.items():
        if options.quick and n > 20_000:
            continue
        for name in options.models:
            for mechanism in KINDS[name].mechanisms:
                for epsilon in EPSILONS:
                    line = measure(name, mechanism, n, epsilon, min(tables, most))
                    print("  ".join(line.cells()), flush=True)
                    lines.append(line)
    agreed = rand()
    for shown in agreed:
        print("  ".join(shown), flush=True)
    partial = options.quick or options.tables is not None or set(options.models) != set(KINDS)
    write(harness.results_folder(partial) / "inference.md", lines, agreed, run)
    return int(not all(line.is_met for line in lines) or any("NO" in line for line in agreed))


def write(path: Any, lines: list[Line], agreed: list[list[str]], run: Any) -> None:
    """Write the page."""

    def rows(header: list[str], cells: list[list[str]]) -> str:
        marked = [header, ["---"] * len(header), *cells]
        return "\n".join("| " + " | ".join(line) + " |" for line in marked)

    heading = ["model", "term", "statsmodels", "tacit, epsilon 3", "overlap", "same sign"]
    path.write_text(
        f"# Inference\n\n{__doc__}\nCommit {run.commit}.\n\n"
        + rows(HEADER, [line.cells() for line in lines])
        + "\n\n## RAND\n\n"
        + rows(heading, agreed)
        + "\n",
        encoding="utf-8",
    )


if __name__ == "__main__":
    sys.exit(main())
