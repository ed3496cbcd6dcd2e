"""Measure the coverage and the width of the intervals of `tacit.describe`, and of other tools.

    python benchmarks/describe.py               # 1,000 tables, some 10 minutes
    python benchmarks/describe.py --tables 100  # a quick look
    python benchmarks/describe.py --peers       # beside OpenDP and diffprivlib

Tables of 20,000 records are drawn from a known population of 20 columns, so that each figure of the
population is known. `figures_of` computes all figures from exact counts plus noise of the planned
standard deviation, drawn by NumPy: the noise of a release has the same distribution up to a lattice
far below its standard deviation, and 1,000 tables take minutes.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from harness import HERE, peer_python

from tacit.descriptive import DescriptionPlan, plan_description
from tacit.descriptive.figures import figures_of
from tacit.io.values import ArrayValues
from tacit.noise import Norm
from tacit.records.coded_table import CodedBlock, NumberCells
from tacit.schema import Boolean, Category, Number, Schema

Array = npt.NDArray[np.float64]
Key = tuple[str, str, str, str]

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

    covered: dict[Key, list[bool]]
    of_table: dict[Key, list[bool]]
    widths: dict[Key, list[float]]

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
    covered: dict[Key, list[bool]] = defaultdict(list)
    of_table: dict[Key, list[bool]] = defaultdict(list)
    widths: dict[Key, list[float]] = defaultdict(list)
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


def _population(plan: DescriptionPlan, by: str | None) -> dict[Key, float]:
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


# Figures that all tools have: means of numbers on a linear scale, shares of first levels.
_COMPARED = {name: ends[:2] for name, ends in _NUMBERS.items() if name not in ("log", "gaps")}


def peers(n_tables: int = 80, repeats: int = 3, seed: int = 1) -> list[dict[str, object]]:
    """Compare tools on the same tables at the same epsilon for a whole table.

    OpenDP gets the number of records for free, is asked for means and shares alone, and its
    intervals are those of its own accuracy functions. diffprivlib has pure epsilon and no
    intervals: for it a user has the sampling interval about the released figure. tacit releases all
    figures of all columns.
    """
    rng = np.random.default_rng(seed)
    plan = plan_description(schema(), EPSILON, 1e-6)
    tables = [draw(rng, N_RECORDS) for _ in range(n_tables)]
    truth = {key: value for key, value in _population(plan, None).items() if key[3] == "all"}
    found: dict[tuple[str, str], list[tuple[float, float, float, float, float]]] = defaultdict(list)

    def note(
        tool: str, kind: str, scale: float, aim: float, own: float, value: float, half: float
    ) -> None:
        error = (value - own) / scale
        hits = float(abs(value - aim) <= half), float(abs(value - own) <= half)
        found[tool, kind].append((*hits, 2 * half / scale, error * error, 0.0))

    for table in tables:
        own = _own_figures(table)
        exact = totals(plan, table)
        for _ in range(repeats):
            for figure in figures_of(plan, noisy(plan, exact, rng)):
                kind = _kind(figure.column, figure.figure, figure.level)
                if kind is None:
                    continue
                scale = _scale(figure.column)
                mine, aim = own[figure.column], truth[figure[:4]]
                for tool, low, high in (
                    ("tacit, of the population", figure.low, figure.high),
                    ("tacit, of the table", figure.table_low, figure.table_high),
                ):
                    hits = float(_in(aim, low, high)), float(_in(mine, low, high))
                    error = (figure.value - mine) / scale
                    found[tool, kind].append((*hits, (high - low) / scale, error * error, 0.0))
            for name, value, half in _opendp(table):
                kind = "mean" if name in _COMPARED else "share"
                key = (
                    (name, "mean", "", "all")
                    if kind == "mean"
                    else (name, "share", "level 0", "all")
                )
                note("OpenDP, its accuracy", kind, _scale(name), truth[key], own[name], value, half)
    for name, table_number, value in _diffprivlib(tables, repeats):
        kind = "mean" if name in _COMPARED else "share"
        key = (name, "mean", "", "all") if kind == "mean" else (name, "share", "level 0", "all")
        mine = _own_figures(tables[table_number])[name]
        sd = math.sqrt(mine * (1 - mine)) if kind == "share" else _sd(tables[table_number], name)
        half = 1.96 * sd / math.sqrt(N_RECORDS)
        note("diffprivlib, sampling alone", kind, _scale(name), truth[key], mine, value, half)
    rows: list[dict[str, object]] = []
    for (tool, kind), each in sorted(found.items()):
        population, of_table, width, square, _ = np.mean(each, axis=0)
        rows.append(
            {
                "tool": tool,
                "figure": kind,
                "covers the population": f"{100 * population:.1f} %",
                "covers the table": f"{100 * of_table:.1f} %",
                "mean width": f"{width:.4f}",
                "root mean square error": f"{math.sqrt(square):.5f}",
            }
        )
    return rows


def _kind(column: str, figure: str, level: str) -> str | None:
    if figure == "mean" and column in _COMPARED:
        return "mean"
    is_share = figure == "share" and level == "level 0" and column in _SHARES
    return "share" if is_share and column != "missing words" else None


def _scale(column: str) -> float:
    low, high = _COMPARED.get(column, (0.0, 1.0))
    return high - low


def _clipped(table: dict[str, Any], name: str) -> Array:
    low, high = _COMPARED[name]
    return np.clip(np.asarray(table[name], dtype=np.float64), low, high)


def _sd(table: dict[str, Any], name: str) -> float:
    return float(_clipped(table, name).std())


def _own_figures(table: dict[str, Any]) -> dict[str, float]:
    """Return the table's own means and shares of first levels."""
    means = {name: float(_clipped(table, name).mean()) for name in _COMPARED}
    shares = {name: float(np.mean(table[name] == 0)) for name in _SHARES if name != "missing words"}
    return {**means, **shares}


def _opendp(table: dict[str, Any]) -> Iterator[tuple[str, float, float]]:
    """Yield name, figure and half width of OpenDP's means and shares, an equal budget each."""
    import opendp.prelude as dp

    dp.enable_features("contrib", "idealized-numerics", "honest-but-curious")
    levels = [name for name in _SHARES if name != "missing words"]
    rho = _opendp_rho() / (len(_COMPARED) + len(levels))
    for name, (low, high) in _COMPARED.items():
        # Neighbours replace a record: the mean moves by the range over n.
        scale = (high - low) / N_RECORDS / math.sqrt(2 * rho)
        domain = dp.vector_domain(dp.atom_domain(T=float, nan=False), size=N_RECORDS)
        mean = dp.t.make_clamp(domain, dp.symmetric_distance(), (float(low), float(high)))
        query = mean >> dp.t.then_mean() >> dp.m.then_gaussian(scale)
        half = dp.gaussian_scale_to_accuracy(scale, 0.05)
        yield name, query([float(v) for v in table[name]]), half
    for name in levels:
        scale = 1 / math.sqrt(2 * rho)
        counts = dp.t.make_count_by_categories(
            dp.vector_domain(dp.atom_domain(T=int)),
            dp.symmetric_distance(),
            list(range(len(_SHARES[name]))),
            null_category=True,
            MO=dp.L2Distance[float],
            TOA=int,
        )
        query = counts >> dp.m.then_gaussian(scale)
        first = query([int(v) for v in table[name]])[0]
        half = dp.discrete_gaussian_scale_to_accuracy(scale, 0.05)
        yield name, first / N_RECORDS, half / N_RECORDS


@lru_cache(maxsize=1)
def _opendp_rho() -> float:
    """Return the greatest rho that OpenDP converts to (EPSILON, 1e-6)."""
    import opendp.prelude as dp

    low, high = 1e-6, 1.0
    for _ in range(60):
        middle = math.sqrt(low * high)
        space = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
        noise = dp.m.make_gaussian(*space, scale=1 / math.sqrt(2 * middle))
        epsilon = dp.c.make_zCDP_to_approxDP(noise).map(1.0).epsilon(1e-6)
        low, high = (middle, high) if epsilon < EPSILON else (low, middle)
    return low


def _diffprivlib(
    tables: Sequence[dict[str, Any]], repeats: int
) -> Iterator[tuple[str, int, float]]:
    """Yield column, table and figure of diffprivlib's means and first shares."""
    arrays = {f"number/{n}/{i}": _clipped(t, n) for i, t in enumerate(tables) for n in _COMPARED}
    levels = [name for name in _SHARES if name != "missing words"]
    arrays |= {f"level/{n}/{i}": t[n] for i, t in enumerate(tables) for n in levels}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "tables.npz")
        np.savez(path, allow_pickle=False, **arrays)
        job = {
            "data": str(path),
            "ranges": _COMPARED,
            "levels": {name: len(_SHARES[name]) for name in levels},
            "epsilon": EPSILON,
            "tables": len(tables),
            "repeats": repeats,
        }
        done = subprocess.run(
            [str(peer_python()), str(HERE / "describe_peer.py")],
            input=json.dumps(job),
            capture_output=True,
            text=True,
            check=True,
        )
    answer = json.loads(done.stdout.splitlines()[-1])
    for name, figures in answer.items():
        for place, values in enumerate(figures):
            yield name, place // repeats, values[0]


def shown(rows: Sequence[dict[str, object]]) -> str:
    """Return rows as a table of a page."""
    header = list(rows[0])
    lines = [header, ["---"] * len(header), *([str(row[key]) for key in header] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def main() -> None:
    """Run the study, or the comparison, and print its table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=1000)
    parser.add_argument("--epsilon", type=float, default=EPSILON)
    parser.add_argument("--delta", type=float, default=1e-6)
    parser.add_argument("--records", type=int, default=N_RECORDS)
    parser.add_argument("--by", default=None)
    parser.add_argument("--peers", action="store_true", help="compare with OpenDP and diffprivlib")
    chosen = parser.parse_args()
    if chosen.peers:
        print(shown(peers()))
        return
    found = study(
        chosen.tables,
        n_records=chosen.records,
        epsilon=chosen.epsilon,
        delta=chosen.delta,
        by=chosen.by,
    )
    names = {"covered": "its interval", "of_table": "that of the table's own"}
    for what, interval in names.items():
        rows = [
            {
                "figure": kind,
                "figures": n,
                "pooled coverage": f"{100 * mean:.1f} %",
                "least of one figure": f"{100 * least:.1f} %",
            }
            for kind, (mean, least, n) in found.by_kind(what).items()
        ]
        print(f"{interval}\n\n{shown(rows)}\n")


if __name__ == "__main__":
    main()
