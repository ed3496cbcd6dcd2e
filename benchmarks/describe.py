"""Measure the coverage and the width of the intervals of `tacit.describe`, and of other tools.

    python -m benchmarks.describe               # 1,000 tables, writes docs/describe_coverage.md
    python -m benchmarks.describe --tables 100  # a quick look, printed only

Tables of 20,000 records are drawn from a known population of 20 columns, so that each figure of the
population is known. `figures_of` computes all figures from exact counts plus noise of the planned
standard deviation, drawn by NumPy: the noise of a release has the same distribution up to a lattice
far below its standard deviation, and 1,000 tables take minutes.
"""

from __future__ import annotations

import argparse
import math
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.descriptive import DescriptionPlan, plan_description
from tacit.descriptive.figures import figures_of
from tacit.io.values import ArrayValues
from tacit.noise import Norm
from tacit.records.coded_table import CodedBlock, NumberCells
from tacit.schema import Boolean, Category, Number, Schema

Array = npt.NDArray[np.float64]

N_RECORDS = 20_000
EPSILON = 0.5
_POPULATION = 4_000_000  # records of which the population's figures are computed
_OWN = 200  # tables of which intervals of the table's own figures are checked too

# name: (lower, upper, generator of values); quartiles of whole numbers are covered more often.
_NUMBERS: dict[str, tuple[float, float, Any]] = {
    "normal": (0, 100, lambda r, n: r.normal(50, 12, n)),
    "narrow": (0, 100, lambda r, n: r.normal(40, 6, n)),
    "uniform": (0, 1, lambda r, n: r.uniform(0, 1, n)),
    "gamma": (0, 60, lambda r, n: r.gamma(3, 4, n)),
    "skewed": (0, 100, lambda r, n: 100 * r.beta(1.5, 6, n)),
    "two modes": (-10, 10, lambda r, n: np.where(r.random(n) < 0.4, -4, 3) + r.normal(0, 1.5, n)),
    "clipped": (0, 50, lambda r, n: r.normal(30, 12, n)),
    "gaps": (0, 10, lambda r, n: np.where(r.random(n) < 0.08, np.nan, r.normal(6, 1.5, n))),
    "log": (1, 1e6, lambda r, n: r.lognormal(8, 1.5, n)),
    "temperature": (34, 42, lambda r, n: r.normal(37.2, 0.7, n)),
}
_SHARES: dict[str, tuple[float, ...]] = {
    "even": (0.25, 0.25, 0.25, 0.25),
    "rare": (0.9, 0.05, 0.03, 0.015, 0.004, 0.001),
    "two": (0.6, 0.4),
    "almost all": (0.995, 0.005),
    "ten": tuple([0.1] * 10),
    "geometric": (0.5, 0.25, 0.125, 0.0625, 0.0625),
    "never": (0.7, 0.3, 0.0),
    "missing words": (0.45, 0.45, 0.1),
}
GROUP = "group"


def schema() -> Schema:
    """Return the public schema of the made tables: 10 numbers, 9 categories, 1 boolean."""
    numbers = [
        Number(name, low, high, log=name == "log") for name, (low, high, _) in _NUMBERS.items()
    ]
    words = [Category(name, _levels(shares)) for name, shares in _SHARES.items()]
    groups = Category(GROUP, ("a", "b"))
    return Schema((*numbers, *words, groups, Boolean("flag")), n_records=N_RECORDS)


def _levels(shares: tuple[float, ...]) -> tuple[str, ...]:
    return tuple(f"level {i}" for i in range(len(shares)))


def draw(rng: np.random.Generator, n: int) -> dict[str, Any]:
    """Return a table as numbers: levels by their place, -1 where a word is missing."""
    table: dict[str, Any] = {name: make(rng, n) for name, (_, _, make) in _NUMBERS.items()}
    for name, shares in _SHARES.items():
        places = np.searchsorted(np.cumsum(shares[:-1]), rng.random(n), side="right")
        if name == "missing words":
            places = np.where(places == len(shares) - 1, -1, places)
        table[name] = places
    group = rng.random(n) < 0.3
    table[GROUP] = group.astype(np.int64)
    table["normal"] = table["normal"] + 5 * group  # groups differ
    table["flag"] = (rng.random(n) < np.where(group, 0.2, 0.1)).astype(np.int64)
    return table


def words(table: dict[str, Any]) -> dict[str, Any]:
    """Return a drawn table as people have it, with words for levels."""
    named = dict(table)
    for name, shares in _SHARES.items():
        named[name] = np.array([*_levels(shares), None], dtype=object)[table[name]]
    named[GROUP] = np.array(["a", "b"])[table[GROUP]]
    named["flag"] = table["flag"].astype(bool)
    return named


def totals(plan: DescriptionPlan, table: dict[str, Any]) -> Array:
    """Return the exact counts and sums of a drawn table."""
    n = len(table[GROUP])
    codes = np.zeros((n, len(plan.cells)), dtype=np.int64)
    units = np.full((n, len(plan.cells)), np.nan)
    for place, cells in enumerate(plan.cells):
        values = table[cells.name]
        if isinstance(cells, NumberCells):
            codes[:, place], units[:, place] = cells.read(ArrayValues(values))
        else:
            codes[:, place] = values  # -1 is out of range, and counts as missing
    return np.asarray(plan.counts.total(_Block(CodedBlock(codes, units)), plan.facts))


@dataclass(frozen=True)
class _Block:
    block: CodedBlock

    def sum(self, function: Any) -> Array:
        return np.asarray(function(self.block))


def noisy(plan: DescriptionPlan, exact: Array, rng: np.random.Generator) -> Array:
    """Return counts and sums with noise of the planned distribution."""
    if plan.counts.norm is Norm.L1:
        return exact + rng.laplace(0, plan.noise_std / math.sqrt(2), len(exact))
    return exact + rng.normal(0, plan.noise_std, len(exact))


KINDS = {
    "count": "counts",
    "missing": "counts",
    "missing share": "shares of missing values",
    "share": "shares of levels",
    "histogram": "shares of bins",
    "mean": "means",
    "geometric mean": "means",
    "sd": "standard deviations",
    "geometric sd": "standard deviations",
    "q25": "quartiles",
    "median": "quartiles",
    "q75": "quartiles",
}


@dataclass
class Study:
    """Coverage of each figure: how often its intervals contained the truth."""

    covered: dict[tuple[str, ...], list[bool]]
    of_table: dict[tuple[str, ...], list[bool]]
    widths: dict[tuple[str, ...], list[float]]

    def by_kind(self, what: str = "covered") -> dict[str, tuple[float, float, int]]:
        """Return for each kind of figure the pooled and the least coverage, and the figures."""
        pooled: dict[str, list[float]] = defaultdict(list)
        for key, found in getattr(self, what).items():
            pooled[KINDS[key[1]]].append(float(np.mean(found)))
        return {kind: (float(np.mean(c)), min(c), len(c)) for kind, c in pooled.items()}


def study(
    n_tables: int,
    *,
    n_records: int = N_RECORDS,
    epsilon: float = EPSILON,
    delta: float = 1e-6,
    by: str | None = None,
    seed: int = 0,
) -> Study:
    """Draw tables, describe each, and compare intervals with the truth."""
    plan = plan_description(schema(), epsilon, delta, by=by, n_records=n_records)
    # Exact figures of a table: counts of all, quantities that depend on bins of some.
    same = plan_description(
        schema(),
        math.inf,
        0.0 if delta == 0 else 1e-6,
        by=by,
        n_records=n_records,
        bins=_bins(plan),
    )
    bare = plan_description(schema(), math.inf, by=by, n_records=n_records, bins=1024)
    rng = np.random.default_rng(seed)
    truth = _population(plan, by)
    covered: dict[tuple[str, ...], list[bool]] = defaultdict(list)
    of_table: dict[tuple[str, ...], list[bool]] = defaultdict(list)
    widths: dict[tuple[str, ...], list[float]] = defaultdict(list)
    for number in range(n_tables):
        table = draw(rng, n_records)
        exact = totals(plan, table)
        own = {f[:4]: f.value for f in figures_of(same, exact)}
        if number < _OWN:
            fine = {f[:4]: f.value for f in figures_of(bare, totals(bare, table))}
            own.update({key: fine[key] for key in own if key[1] != "histogram"})
        for figure in figures_of(plan, noisy(plan, exact, rng)):
            key = figure[:4]
            aim = truth[key] if figure.about == "population" else own[key]
            covered[key].append(_in(aim, figure.low, figure.high))
            if number < _OWN:
                of_table[key].append(_in(own[key], figure.table_low, figure.table_high))
            widths[key].append(figure.high - figure.low)
    return Study(dict(covered), dict(of_table), dict(widths))


def _in(value: float, low: float, high: float) -> bool:
    slack = 1e-9 * max(abs(value), 1.0)
    return low - slack <= value <= high + slack


def _population(plan: DescriptionPlan, by: str | None) -> dict[tuple[str, ...], float]:
    """Return the figures of the population: of many records, without noise, with fine bins."""
    rng = np.random.default_rng(12345)
    table = draw(rng, _POPULATION)
    fine = plan_description(schema(), math.inf, by=by, n_records=_POPULATION, bins=1024)
    truth = {f[:4]: f.value for f in figures_of(fine, totals(fine, table))}
    same = plan_description(schema(), math.inf, by=by, n_records=_POPULATION, bins=_bins(plan))
    bins = {
        f[:4]: f.value for f in figures_of(same, totals(same, table)) if f.figure == "histogram"
    }
    return {**truth, **bins}


def _bins(plan: DescriptionPlan) -> int:
    return next(cells.n_bins for cells in plan.cells if isinstance(cells, NumberCells))


def main() -> None:
    """Run the studies and print their tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=1000)
    parser.add_argument("--epsilon", type=float, default=EPSILON)
    parser.add_argument("--delta", type=float, default=1e-6)
    parser.add_argument("--records", type=int, default=N_RECORDS)
    parser.add_argument("--by", default=None)
    chosen = parser.parse_args()
    found = study(
        chosen.tables,
        n_records=chosen.records,
        epsilon=chosen.epsilon,
        delta=chosen.delta,
        by=chosen.by,
    )
    for what in ("covered", "of_table"):
        print(what)
        for kind, (mean, least, n) in found.by_kind(what).items():
            print(f"  {kind:28} pooled {100 * mean:.1f} %  least {100 * least:.1f} %  figures {n}")
    worst = sorted((float(np.mean(c)), key) for key, c in found.covered.items())[:8]
    for share, key in worst:
        print(f"  {100 * share:.1f} %  {key}")


if __name__ == "__main__":
    main()
