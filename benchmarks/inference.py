"""How often 95 % intervals hold the truth: simulated tables, then RAND beside statsmodels.

Every line is a model, a mechanism, a number of records and an epsilon (delta 1e-6, inference 0.1,
secure noise). "noise / sampling" is the standard deviation of the estimates over what it is without
noise, squared, minus one: where it is below 1, intervals should hold the truth at most 97 % of the
time; everywhere at least 93 %.

A whole run takes hours, so that it can be had in pieces (--models, --mechanisms, --records): each
line replaces that of the same cell in results/inference.csv and says which commit it is of. Results
go to results/inference.md, those on RAND to results/inference_rand.csv.
"""

from __future__ import annotations

import harness

harness.pin_threads(1)

import argparse  # noqa: E402
import csv  # noqa: E402
import math  # noqa: E402
import sys  # noqa: E402
import warnings  # noqa: E402
from collections.abc import Callable, Iterable, Iterator, Sequence  # noqa: E402
from dataclasses import asdict, dataclass, fields  # noqa: E402
from functools import lru_cache  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import Any  # noqa: E402

import numpy as np  # noqa: E402
import numpy.typing as npt  # noqa: E402
from scipy.stats import poisson  # noqa: E402

from tacit.erm.losses import PoissonLoss  # noqa: E402
from tacit.linear_model import (  # noqa: E402
    HuberRegressor,
    LinearRegression,
    LogisticRegression,
    PoissonRegressor,
)

Array = npt.NDArray[np.float64]

DELTA, SHARE, WITHIN = 1e-6, 0.1, 1.959963984540054
LEAST, MOST = 0.93, 0.97
EPSILONS = (0.5, 1.0, 8.0)
TABLES = {2_000: 1_000, 20_000: 1_000, 200_000: 200}
COEFFICIENTS, INTERCEPT = np.array([1.0, -0.8, 0.5, 0.2, 0.0]), 0.3
ROW_NORM = 2.5
POPULATION, MOST_COUNT, NEWTON_STEPS = 100_000, 120, 4
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
    Counts of a row are averaged over exactly: were they drawn, those of 4,000,000 rows would leave
    an error of a fifth of what 200,000 records have.
    """
    truth = np.append(COEFFICIENTS, INTERCEPT)
    if name != "poisson":
        return truth
    top = KINDS[name].facts["label_range"][1]
    loss, rows = PoissonLoss(top / 4, top), rows_of(np.random.default_rng(0), POPULATION)
    design, found = np.column_stack([rows, np.ones(POPULATION)]), truth
    chances = [poisson.pmf(count, np.exp(design @ truth)) for count in range(MOST_COUNT)]
    for _ in range(NEWTON_STEPS):
        scores, slopes, turns = design @ found, np.zeros(POPULATION), np.zeros(POPULATION)
        for count, chance in enumerate(chances):
            label = np.full(POPULATION, min(float(count), top))
            slopes += chance * loss.d1(scores, label)
            turns += chance * loss.d2(scores, label)
        found = found - np.linalg.solve(design.T @ (turns[:, None] * design), design.T @ slopes)
    return found


def table(kind: Kind, n: int, rng: np.random.Generator) -> tuple[Array, npt.NDArray[Any]]:
    rows = rows_of(rng, n)
    return rows, kind.labels(rng, rows @ COEFFICIENTS + INTERCEPT)


def tables_of(
    name: str, n: int, tables: int, seed: int = 0
) -> Iterator[tuple[Array, npt.NDArray[Any]]]:
    """Return simulated tables, the same for every mechanism and epsilon."""
    rng = np.random.default_rng([seed, n, tables])
    return (table(KINDS[name], n, rng) for _ in range(tables))


def model_of(name: str, epsilon: float, **told: Any) -> Any:
    kind = KINDS[name]
    return kind.model(epsilon, DELTA, row_norm=ROW_NORM, inference=SHARE, **kind.facts, **told)


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
    commit: str = ""

    @property
    def cell(self) -> tuple[str, str, int, float]:
        return self.name, self.mechanism, self.n, self.epsilon

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
            self.commit,
        ]


def measured(
    name: str, n: int, tables: int, cells: Iterable[tuple[str, float]], commit: str = ""
) -> list[Line]:
    """Return how often intervals of a model's terms hold the truth, mechanism by mechanism.

    Every table is made once, and fitted without noise once; plans are remembered.
    """
    plain, told = model_of(name, math.inf), list(cells)
    models = [model_of(name, epsilon, mechanism=mechanism) for mechanism, epsilon in told]
    sampled, found = [], []
    for rows, labels in tables_of(name, n, tables):
        sampled.append(plain.fit(rows, labels).estimates_)
        fits = (model.fit(rows, labels) for model in models)
        found.append([(fit.estimates_, fit.standard_errors_) for fit in fits])
    results = np.array(found)  # table, cell, estimate or error, term
    return [
        line_of(name, *told[i], n, np.array(sampled), results[:, i], commit)
        for i in range(len(told))
    ]


def line_of(
    name: str, mechanism: str, epsilon: float, n: int, plain: Array, found: Array, commit: str
) -> Line:
    """Return a cell's line from estimates with and without noise."""
    estimates, errors = found[:, 0], found[:, 1]
    held = np.abs(estimates - truth_of(name)) <= WITHIN * errors
    noise = np.median(np.var(estimates - plain, axis=0) / np.var(plain, axis=0))
    each, sizes = held.mean(axis=0), errors / plain.std(axis=0)
    return Line(
        name,
        mechanism,
        n,
        epsilon,
        len(plain),
        coverage=float(held.mean()),
        worst=float(each.min()),
        noise=float(noise),
        width=float(np.median(sizes)),
        commit=commit,
    )


def measure(name: str, mechanism: str, n: int, epsilon: float, tables: int) -> Line:
    """Return one cell's line."""
    return measured(name, n, tables, [(mechanism, epsilon)])[0]


HEADER = [
    *("model", "mechanism", "records", "epsilon", "tables", "coverage", "worst term"),
    *("noise / sampling", "std err / sampling", "met", "commit"),
]


@dataclass(frozen=True)
class Agreement:
    """A term of RAND: statsmodels' interval, one of ours, and how many of ours agree with it."""

    model: str
    term: str
    theirs: str
    ours: str
    fits: int
    overlaps: int
    signs: int

    def cells(self) -> list[str]:
        shares = (f"{count} of {self.fits}" for count in (self.overlaps, self.signs))
        return [self.model, self.term, self.theirs, self.ours, *shares]


def rand(epsilon: float = 3.0, fits: int = 10) -> list[Agreement]:
    """Return how private intervals on RAND agree with statsmodels' on the same records.

    A sign that statsmodels is not sure of is no sign to agree on.
    """
    import statsmodels.api
    from regret_problems import RAND_VISITS, load_rand

    data, family = load_rand(), statsmodels.api.families
    rows, labels, names = data.train_rows, data.train_labels, [*data.feature_names, "(intercept)"]
    known: dict[str, Any] = {"row_norm": 3.0, "label_range": RAND_VISITS, "inference": SHARE}
    found = []
    for model, ours, link in (
        ("linear", LinearRegression(epsilon, DELTA, **known), family.Gaussian()),
        ("poisson", PoissonRegressor(epsilon, DELTA, **known), family.Poisson()),
    ):
        design = np.column_stack([rows, np.ones(len(rows))])
        theirs = statsmodels.api.GLM(labels, design, link).fit(cov_type="HC0")
        summaries = [ours.fit(rows, labels).summary().rows() for _ in range(fits)]
        for name, value, (low, high), *terms in zip(
            names, theirs.params, theirs.conf_int(), *summaries, strict=True
        ):
            overlaps = sum(term["low"] <= high and low <= term["high"] for term in terms)
            signs = sum(low * high <= 0 or term["coefficient"] * value > 0 for term in terms)
            mine = _interval(*(terms[0][key] for key in ("coefficient", "low", "high")))
            theirs_shown = _interval(value, low, high)
            found.append(Agreement(model, name, theirs_shown, mine, fits, overlaps, signs))
    return found


def _interval(value: float, low: float, high: float) -> str:
    return f"{value:.3f} [{low:.3f}, {high:.3f}]"


def agree(found: list[Agreement]) -> bool:
    """Whether 95 % of the intervals overlap, and as many signs are the same."""
    most = sum(term.fits for term in found)
    least = min(sum(term.overlaps for term in found), sum(term.signs for term in found))
    return least >= 0.95 * most


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer tables, none of 200,000")
    parser.add_argument("--tables", type=int, help="how many tables a line, at most")
    parser.add_argument("--models", nargs="*", default=list(KINDS))
    parser.add_argument("--mechanisms", nargs="*", default=[OP, NG, SS])
    parser.add_argument("--records", nargs="*", type=int, default=list(TABLES))
    parser.add_argument("--no-rand", action="store_true", help="leave out RAND")
    options, _ = parser.parse_known_args()
    warnings.simplefilter("ignore")
    most = options.tables or (40 if options.quick else 1_000)
    folder, run = harness.results_folder(options.quick), harness.Run()
    agreed = [] if options.no_rand else rand()
    if agreed:
        harness.write_csv(folder / "inference_rand.csv", [asdict(term) for term in agreed])
    for n in options.records:
        if options.quick and n > 20_000:
            continue
        for name in options.models:
            mechanisms = [m for m in KINDS[name].mechanisms if m in options.mechanisms]
            cells = [(m, epsilon) for m in mechanisms for epsilon in EPSILONS]
            lines = measured(name, n, min(TABLES[n], most), cells, run.commit)
            print(*("  ".join(line.cells()) for line in lines), sep="\n", flush=True)
            write(folder, lines)  # hours may follow
    write(folder, [])
    known, agreed = kept(folder / "inference.csv", Line), kept(folder / RAND, Agreement)
    return int(not (all(line.is_met for line in known) and agree(agreed)))


RAND = "inference_rand.csv"


def kept(path: Path, kind: type[Any]) -> list[Any]:
    """Return the lines of a file, as they were measured."""
    if not path.exists():
        return []
    types = {"int": int, "float": float, "str": str}
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    return [kind(**{f.name: types[str(f.type)](row[f.name]) for f in fields(kind)}) for row in rows]


def write(folder: Path, new: Sequence[Line]) -> None:
    """Write the page and the numbers, with new lines in the place of old ones."""
    lines = {line.cell: line for line in [*kept(folder / "inference.csv", Line), *new]}
    order = [
        (name, m, n, e) for n in TABLES for name in KINDS for m in (OP, NG, SS) for e in EPSILONS
    ]
    known = [lines[cell] for cell in order if cell in lines]
    heading = ["model", "term", "statsmodels", "tacit, epsilon 3", "overlap", "same sign"]
    agreed = kept(folder / RAND, Agreement)
    (folder / "inference.md").write_text(
        f"# Inference\n\n{__doc__}\n"
        + harness.markdown_table(HEADER, [line.cells() for line in known])
        + "\n## RAND\n\n"
        + harness.markdown_table(heading, [term.cells() for term in agreed]),
        encoding="utf-8",
    )
    harness.write_csv(folder / "inference.csv", [asdict(line) for line in known])


if __name__ == "__main__":
    sys.exit(main())
