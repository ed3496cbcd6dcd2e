"""What a private search is worth: nothing tried, tried in private, on parts, and without paying.

On Adult and Diabetes-130 (errors of logistic regression) and on two tables of uci_regression (mean
square of least squares over that of the mean), with 12 candidates: how long rows may be, and how
much is regularized. "no search" is the default of tacit; "unpaid grid" fits all candidates with
the whole budget each and takes the one that is best on the test records: no search among them can
do better, and what it promises is twelve times as weak. Results go to results/search.csv and
search.md, the figure to docs/assets/search.svg.
"""

from __future__ import annotations

import harness

harness.pin_threads(1)

import argparse  # noqa: E402
import sys  # noqa: E402
import warnings  # noqa: E402
from collections.abc import Callable  # noqa: E402
from dataclasses import dataclass  # noqa: E402
from pathlib import Path  # noqa: E402
from statistics import fmean, stdev  # noqa: E402
from typing import Any  # noqa: E402

import numpy as np  # noqa: E402
from diabetes130 import ROW_NORM, load_diabetes130  # noqa: E402
from uci_regression import load_uci_regression  # noqa: E402

from tacit.datasets import Dataset, load_adult  # noqa: E402
from tacit.linear_model import LinearRegression, LogisticRegression  # noqa: E402
from tacit.tuning import DisjointSearch, PrivateSearch  # noqa: E402
from tacit.tuning.space import candidates  # noqa: E402

EPSILONS = (0.1, 1.0, 8.0)
DELTA = 1e-6
REPEATS, QUICK_REPEATS = 2, 1
MEAN_TRIES = 10
COLOURS = {
    "no search": "#0072b2",
    "PrivateSearch": "#d55e00",
    "DisjointSearch": "#009e73",
    "unpaid grid": "#777777",
}
METHODS = tuple(COLOURS)


@dataclass(frozen=True)
class Problem:
    name: str
    load: Callable[[], Dataset]
    model: Any
    row_norm: float
    loss: str

    @property
    def space(self) -> dict[str, list[float]]:
        # in units of the curvature of a record: a tenth, one, ten, a hundred, a thousand
        ridge = [c * self.row_norm**2 for c in (1.0, 10.0, 100.0, 1000.0)]
        return {"row_norm": [self.row_norm * c for c in (0.5, 0.75, 1.0)], "regularization": ridge}


def _logistic(row_norm: float, classes: list[Any]) -> Any:
    return LogisticRegression(classes=classes, row_norm=row_norm)


def _least_squares() -> Any:
    return LinearRegression(label_range=(-1.0, 1.0), row_norm=1.0, fit_intercept=False)


PROBLEMS = (
    Problem("Adult", load_adult, None, 1.0, "errors"),
    Problem("Diabetes-130", load_diabetes130, None, ROW_NORM, "errors"),
    Problem("bike", lambda: load_uci_regression("bike"), _least_squares(), 1.0, "mean square"),
    Problem("kin40k", lambda: load_uci_regression("kin40k"), _least_squares(), 1.0, "mean square"),
)


def loss(model: Any, data: Dataset, kind: str) -> float:
    said = model.predict(data.test_rows)
    if kind == "errors":
        return float(np.mean(said != data.test_labels))
    off = np.mean((np.clip(said, -1.0, 1.0) - data.test_labels) ** 2)
    return float(off / np.var(data.test_labels))


def once(problem: Problem, model: Any, data: Dataset, epsilon: float) -> dict[str, float]:
    records = data.train_rows, data.train_labels
    own: dict[str, Any] = {"epsilon": epsilon, "delta": DELTA}

    def judged(fitted: Any) -> float:
        return loss(fitted, data, problem.loss)

    def fitted(**parameters: Any) -> Any:
        from sklearn.base import clone

        return clone(model).set_params(**own, **parameters).fit(*records)

    grid = candidates(problem.space, 12)
    return {
        "no search": judged(fitted()),
        "PrivateSearch": judged(
            PrivateSearch(model, problem.space, MEAN_TRIES, **own).fit(*records)
        ),
        "DisjointSearch": judged(
            DisjointSearch(model, problem.space, n_iter=12, **own).fit(*records)
        ),
        "unpaid grid": min(judged(fitted(**one)) for one in grid),
    }


def measured(repeats: int) -> list[dict[str, Any]]:
    rows = []
    for problem in PROBLEMS:
        data = problem.load()
        classes = np.unique(data.train_labels).tolist()  # of a public file
        model = problem.model or _logistic(problem.row_norm, classes)
        for epsilon in EPSILONS:
            found = [once(problem, model, data, epsilon) for _ in range(repeats)]
            for method in METHODS:
                values = [one[method] for one in found]
                spread = stdev(values) if len(values) > 1 else 0.0
                row = {"table": problem.name, "epsilon": epsilon, "method": method}
                rows.append({**row, "loss": fmean(values), "sd": spread})
                print(rows[-1], flush=True)
    return rows


def write(rows: list[dict[str, Any]], partial: bool, run: harness.Run) -> None:
    folder = harness.results_folder(partial)
    harness.write_csv(folder / "search.csv", rows)
    found = {(r["table"], r["epsilon"], r["method"]): r for r in rows}
    cells = [
        (p.name, f"{e:g}", *(f"{found[p.name, e, m]['loss']:.4f}" for m in METHODS))
        for p in PROBLEMS
        for e in EPSILONS
    ]
    table = harness.markdown_table(("table", "epsilon", *METHODS), cells)
    (folder / "search.md").write_text(f"{__doc__}\n{table}\n\n{harness.machine(run)}\n")
    print(table)
    assets = folder if partial else Path(__file__).parent.parent / "docs" / "assets"
    draw(found, assets / "search.svg")


def draw(found: dict[tuple[str, float, str], dict[str, Any]], path: Path) -> None:
    """Write one panel for each table, side by side: loss against the logarithm of epsilon."""
    panels = [_panel(found, problem, 10 + 250 * i) for i, problem in enumerate(PROBLEMS)]
    legend = [
        f'<text x="{60 + 200 * i}" y="228" fill="{colour}">{method}</text>'
        for i, (method, colour) in enumerate(COLOURS.items())
    ]
    head = (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1010 240" font-size="11" '
        'font-family="sans-serif" fill="#333"><rect width="1010" height="240" fill="#fff"/>'
    )
    path.write_text("\n".join([head, *panels, *legend, "</svg>", ""]))


def _panel(found: dict[tuple[str, float, str], dict[str, Any]], of: Problem, left: int) -> str:
    losses = {m: [float(found[of.name, e, m]["loss"]) for e in EPSILONS] for m in METHODS}
    low, high = min(map(min, losses.values())), max(map(max, losses.values()))
    first, last = np.log(EPSILONS[0]), np.log(EPSILONS[-1])

    def x(epsilon: float) -> float:
        return left + 45 + 185 * float((np.log(epsilon) - first) / (last - first))

    def y(loss: float) -> float:
        return 180 - 145 * (loss - low) / (high - low)

    parts = [f'<text x="{left + 45}" y="20" font-weight="bold">{of.name}, {of.loss}</text>']
    parts += [f'<text x="{left}" y="{y(v) + 4:.0f}">{v:.4f}</text>' for v in (low, high)]
    parts += [f'<text x="{x(e) - 6:.0f}" y="200">{e:g}</text>' for e in EPSILONS]
    for method, colour in COLOURS.items():
        points = " ".join(
            f"{x(e):.1f},{y(v):.1f}" for e, v in zip(EPSILONS, losses[method], strict=True)
        )
        dash = ' stroke-dasharray="5 4"' if method == "unpaid grid" else ""
        parts.append(
            f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"{dash}/>'
        )
    return "\n".join(parts)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one repeat")
    options, _ = parser.parse_known_args()
    run = harness.Run()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rows = measured(QUICK_REPEATS if options.quick else REPEATS)
    write(rows, options.quick, run)
    return 0


if __name__ == "__main__":
    sys.exit(main())
