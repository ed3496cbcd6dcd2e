"""The page of the regret benchmark, made from its lines."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, geometric_mean
from typing import Any

import harness
import scipy.stats
import uci_regression
from regret_problems import ENDLESS, problems

REFERENCE, CONSTANT = "non-private", "constant"
# An excess below this share of the non-private error counts as that much: nobody would notice it.
UNNOTICED = 0.01
# What that share is decides much, so a stricter one is shown beside it.
STRICT = 0.001
WANTED_MEAN, WANTED_WORST = 1.1, 1.5
WANTED_CONSTANT = 1.02
WANTED_RISK, WANTED_SHARE = 3.0, 0.8
WANTED_ENDLESS = 0.001


@dataclass(frozen=True, eq=False)
class Cell:
    """What was measured on one problem at one budget, by one measure of error."""

    problem: str
    epsilon: float
    measure: str
    lines: dict[str, dict[str, Any]]  # by method, of those that applied
    published: float | None
    published_floor: float | None

    def errors(self, method: str) -> list[float]:
        found: list[float] = self.lines[method]["errors"][self.measure]
        return found

    def error(self, method: str) -> float:
        return fmean(self.errors(method))

    @property
    def alone(self) -> list[str]:
        return [name for name in self.lines if name not in ("auto", REFERENCE, CONSTANT)]

    @property
    def best(self) -> str:
        return min(self.alone, key=self.error)

    @property
    def best_beats_constant(self) -> bool:
        return self.error(self.best) < self.error(CONSTANT)

    def excess(self, method: str) -> float:
        return self.error(method) - self.error(REFERENCE)

    def excess_ratio(self, floor: float = UNNOTICED) -> float:
        """max(e(auto), t) / max(e(best), t), e = error - non-private, t = floor * non-private."""
        least = floor * self.error(REFERENCE)
        return max(self.excess("auto"), least) / max(self.excess(self.best), least)

    @property
    def bare_ratio(self) -> float | None:
        """The same without t, where there is an excess."""
        auto, best = self.excess("auto"), self.excess(self.best)
        return auto / best if best > 0 and auto > 0 else None

    @property
    def to_constant(self) -> float:
        return self.error("auto") / self.error(CONSTANT)

    @property
    def to_published(self) -> float | None:
        return None if self.published is None else self.error("auto") / self.published

    @property
    def must_beat_published(self) -> bool:
        if self.published is None or self.published_floor is None:
            return False
        return self.epsilon >= 0.1 and self.published > 1.01 * self.published_floor

    @property
    def actual_risk(self) -> float:
        """The training loss per record above the least there is."""
        return fmean(self.lines["auto"]["training"]) - fmean(self.lines[REFERENCE]["optimum"])

    @property
    def risk_ratio(self) -> float:
        """What the plan predicted, by what happened."""
        return float(self.lines["auto"]["predicted"]) / self._happened

    @property
    def told_ratio(self) -> float:
        """What the fits said that they had lost, by what happened."""
        return fmean(self.lines["auto"]["told"]) / self._happened

    @property
    def _happened(self) -> float:
        return max(self.actual_risk, 1e-9 * fmean(self.lines[REFERENCE]["optimum"]))

    @property
    def ran(self) -> str:
        return ", ".join(sorted(set(self.lines["auto"]["mechanisms"])))


def cells_of(rows: Iterable[dict[str, Any]]) -> list[Cell]:
    """Return a cell for each problem, budget and measure."""
    figures = {(f.name, f.epsilon, f.method): f.error for f in published()}
    without: dict[str, dict[str, Any]] = {}
    found: dict[tuple[str, float], dict[str, Any]] = {}
    for row in rows:
        if row["method"] in (REFERENCE, CONSTANT):
            without.setdefault(row["problem"], {})[row["method"]] = row
        elif not row["refused"]:
            found.setdefault((row["problem"], row["epsilon"]), {})[row["method"]] = row
    return [
        Cell(
            name,
            epsilon,
            measure,
            {**lines, **without[name]},
            figures.get((name, epsilon, "AdaSSP")),
            figures.get((name, epsilon, "non-private")),
        )
        for (name, epsilon), lines in found.items()
        for measure in problems()[name].measures
    ]


def published() -> tuple[uci_regression.Published, ...]:
    try:
        return uci_regression.read_published()
    except FileNotFoundError:
        return ()


def half_width(values: Sequence[float]) -> float:
    """Return half of the 95 % interval of a mean, by Student's t."""
    n = len(values)
    if n < 2:
        return math.nan
    quantile = float(scipy.stats.t.ppf(0.975, n - 1))
    return quantile * harness.spread(values) / math.sqrt(n)


def worst(cells: Iterable[Cell], value: Any, above: float) -> str:
    """Name the cells whose value is above a limit, the greatest first."""
    over = sorted((c for c in cells if value(c) > above), key=value, reverse=True)
    names = [f"{c.problem} ({c.measure}) at {c.epsilon:g}: {value(c):.3f}" for c in over]
    return f"{len(over)}" + (f" ({'; '.join(names)})" if names else "")


def near(ratios: list[float]) -> str:
    """Say how many of them are within a factor of 1."""
    close = [1 / WANTED_RISK <= ratio <= WANTED_RISK for ratio in ratios]
    return (
        f"within a factor {WANTED_RISK:g} of what happened: {fmean(close):.0%} (wanted: "
        f"{WANTED_SHARE:.0%}); between {min(ratios):.2g} and {max(ratios):.2g} times that"
    )


def summary(everything: list[Cell]) -> list[str]:
    cells = [cell for cell in everything if cell.epsilon < ENDLESS]
    useful = [cell for cell in cells if cell.best_beats_constant]
    hard = [cell for cell in cells if cell.must_beat_published]
    compared = [cell.to_published for cell in cells if cell.to_published is not None]
    bare = {cell: cell.bare_ratio for cell in cells if cell.bare_ratio is not None}
    other = [c for c in cells if c.ran != c.lines["auto"]["planned"]]
    lines = [
        f"cells: {len(cells)}; in {len(useful)} the best in hindsight beats a constant",
        f"excess over the best in hindsight, geometric mean: "
        f"{geometric_mean(c.excess_ratio() for c in cells):.3f} (wanted: {WANTED_MEAN})",
        f"the same with a floor of {STRICT:.1%}: "
        f"{geometric_mean(c.excess_ratio(STRICT) for c in cells):.3f}, above {WANTED_WORST}: "
        + worst(cells, lambda c: c.excess_ratio(STRICT), WANTED_WORST),
        f"the same without the floor of {UNNOTICED:.0%}, over the {len(bare)} cells where both "
        f"exceed non-private: geometric mean {geometric_mean(bare.values()):.3f}, above "
        f"{WANTED_WORST}: " + worst(bare, lambda c: bare[c], WANTED_WORST),
        f"with the floor, where the best beats a constant: greatest "
        f"{max((c.excess_ratio() for c in useful), default=math.nan):.2f}, above {WANTED_WORST}: "
        + worst(useful, Cell.excess_ratio, WANTED_WORST),
        f"error above {WANTED_CONSTANT} of a constant's: "
        + worst(cells, lambda c: c.to_constant, WANTED_CONSTANT),
        "risk of which a fit's releases speak " + near([cell.told_ratio for cell in cells]),
        "risk predicted before it " + near([cell.risk_ratio for cell in cells]),
        f"plans for the known number of records that name another mechanism than was run: "
        f"{len(other)}",
    ]
    if compared:
        lines += [
            f"not below AdaSSP as published, of {len(hard)} cells (epsilon from 0.1, AdaSSP more "
            "than 1 % above non-private): "
            + worst(hard, lambda c: c.to_published, math.nextafter(1.0, 0.0)),
            f"error by AdaSSP's published, mean: {fmean(compared):.3f}",
        ]
    return lines


def endless_table(cells: list[Cell]) -> str:
    """Return how near epsilon 100 comes to no privacy, in training error and in test error."""
    body = []
    for cell in (c for c in cells if c.epsilon == ENDLESS):
        optimum = fmean(cell.lines[REFERENCE]["optimum"])
        over = {
            name: fmean(cell.lines[name]["training"]) / optimum - 1
            for name in ("auto", *cell.alone)
        }
        best = min(cell.alone, key=lambda name: over[name])
        body.append(
            [
                cell.problem,
                cell.ran,
                f"{over['auto']:.3%}",
                "yes" if over["auto"] <= WANTED_ENDLESS else "**no**",
                f"{best} {over[best]:.3%}",
                f"{cell.error('auto') / cell.error(REFERENCE) - 1:.3%}",
            ]
        )
    header = ["set", "ran", "above least squares", "met", "nearest alone", "test error above ridge"]
    return harness.markdown_table(header, body) if body else "Not measured.\n"


def main_table(cells: list[Cell]) -> str:
    names = list(dict.fromkeys(name for cell in cells for name in cell.alone))
    header = ["problem", "epsilon", "measure", "auto", "ran", *names, "constant", "non-private"]
    header += [
        "AdaSSP",
        "best",
        "excess ratio",
        "by constant",
        "by AdaSSP",
        "predicted / actual",
        "told / actual",
    ]
    body = []
    for cell in cells:
        alone = [number(cell.error(name)) if name in cell.lines else "" for name in names]
        body.append(
            [
                cell.problem,
                f"{cell.epsilon:g}",
                cell.measure,
                f"{number(cell.error('auto'))} ± {half_width(cell.errors('auto')):.1g}",
                cell.ran,
                *alone,
                number(cell.error(CONSTANT)),
                number(cell.error(REFERENCE)),
                number(cell.published),
                cell.best,
                f"{cell.excess_ratio():.2f}",
                f"{cell.to_constant:.3f}",
                number(cell.to_published),
                f"{cell.risk_ratio:.2g}",
                f"{cell.told_ratio:.2g}",
            ]
        )
    return harness.markdown_table(header, body)


def family(cell: Cell) -> str:
    """Return which kind of problem a cell is of."""
    if cell.published is not None:
        return "Wang's ten"
    kind, _, rest = cell.problem.partition(": ")
    return {"number": "drawn numbers", "class": "drawn classes"}[kind] if rest else "other tables"


def draw(everything: list[Cell], path: Path) -> None:
    """Draw auto beside the best in hindsight, and beside AdaSSP, all as shares of a constant."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    cells = [cell for cell in everything if cell.epsilon < ENDLESS]
    figure, axes = plt.subplots(1, 2, figsize=(10, 4.6), layout="constrained")
    panels: tuple[tuple[Any, str, Any, list[Cell]], ...] = (
        (axes[0], "the best mechanism in hindsight", lambda c: c.error(c.best), cells),
        (axes[1], "AdaSSP, as published", lambda c: c.published, [c for c in cells if c.published]),
    )
    for axis, title, other, shown in panels:
        for name in dict.fromkeys(map(family, shown)):
            mine = [cell for cell in shown if family(cell) == name]
            beside = [other(cell) / cell.error(CONSTANT) for cell in mine]
            axis.scatter(beside, [cell.to_constant for cell in mine], s=14, alpha=0.7, label=name)
        axis.axline((1, 1), slope=1, color="black", lw=0.7)
        axis.axhline(WANTED_CONSTANT, color="black", lw=0.7, ls=":")
        axis.set(xscale="log", yscale="log", xlabel=title, ylabel='mechanism="auto"')
    axes[0].legend(fontsize=8)
    figure.suptitle("Error on test records, as a share of the best constant's")
    figure.savefig(path, dpi=110)
    plt.close(figure)


def number(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"


def csv_rows(cells: list[Cell]) -> list[dict[str, Any]]:
    """Return a row for each method of each cell."""
    return [
        {
            "problem": cell.problem,
            "epsilon": cell.epsilon,
            "measure": cell.measure,
            "method": method,
            "repeats": len(cell.errors(method)),
            "error": cell.error(method),
            "half_width": half_width(cell.errors(method)),
            "mechanisms": ", ".join(sorted(set(line["mechanisms"]))),
            "predicted_risk": line.get("predicted"),
            "told_risk": fmean(line.get("told") or [math.nan]),
            "actual_risk": fmean(line["training"]) - fmean(cell.lines[REFERENCE]["optimum"]),
            "published_adassp": cell.published,
            "fit_seconds": line.get("seconds"),
        }
        for cell in cells
        for method, line in cell.lines.items()
    ]


def write(rows: list[dict[str, Any]], folder: Path, run: harness.Run) -> None:
    """Write regret.csv, regret.md and regret.png, and print what it comes to."""
    cells = cells_of(rows)
    draw(cells, folder / "regret.png")
    harness.write_csv(folder / "regret.csv", csv_rows(cells))
    lines = "\n".join(f"- {line}" for line in summary(cells))
    endless = endless_table(cells)
    text = f"""# Regret

{harness.machine(run)}

What `mechanism="auto"` loses to the best mechanism in hindsight: defaults, no tuning, n private,
delta = 1e-6; ± is half of a 95 % interval over repeats. All methods meet the same seeds of noise.
Error: on test records. Excess ratio: (auto - non-private) / (best - non-private), each counted as
{UNNOTICED:.0%} of the non-private error at least. Constant: the mean label or the most frequent
class, without noise. The ten regressions follow Wang (2018): ten folds, rows of norm 1,
non-private is ridge with lam = 1, AdaSSP is the published figure. Elsewhere non-private is
scikit-learn. How often a cell was repeated is in regret.csv. Predicted: the plan's excess risk
per record, given n; told: what `plan_` says after the fit; actual: half the mean square, or the
log loss, on training records above the least there is.

{lines}

![Error of auto beside the best mechanism in hindsight and AdaSSP](regret.png)

## Consistency

Training error at epsilon {ENDLESS:g}, at most {WANTED_ENDLESS:.1%} above that of least squares.

{endless}
## Cells

{main_table(cells)}"""
    (folder / "regret.md").write_text(text)
    print(lines)
    print(endless)
