"""What leaks without privacy: the exact median is a record, a support vector moves the plane."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from sklearn.svm import SVC

from reproduce.drawing import BLUE, GREY, ORANGE, panels
from reproduce.figure import Figure, Rows, Run, require, where
from tacit.linear_model import LinearSVC
from tacit.location import Median

EPSILON, N_MEDIAN, N_PLANE = 1.0, 101, 200
WORLDS = (("with", BLUE, "with the record"), ("without", ORANGE, "without it"))


def incomes() -> Any:
    """Return an odd number of incomes, of which one is the median."""
    return np.random.default_rng(13).lognormal(10.5, 0.6, N_MEDIAN)


def medians(repeats: int) -> dict[str, Any]:
    """Return exact and private medians with the middle record as it is, and with it replaced."""
    values = incomes()
    other = values.copy()
    other[np.argsort(values)[N_MEDIAN // 2]] = values.max()
    found: dict[str, Any] = {"records": values.tolist()}
    for world, table in (("with", values), ("without", other)):
        found[f"exact_{world}"] = float(np.median(table))
        found[f"private_{world}"] = [
            float(
                Median(EPSILON, bounds=(0.0, 200_000.0), relation="replace", random_state=seed)
                .fit(table[:, None])
                .location_[0]
            )
            for seed in range(repeats)
        ]
    found["exact_is_record"] = bool(np.isin(found["exact_with"], values))
    found["private_are_records"] = int(np.isin(found["private_with"], values).sum())
    return found


def points() -> tuple[Any, Any]:
    """Return two clouds of points that a line separates; the first is the only one near it."""
    rng = np.random.default_rng(5)
    signs = np.repeat([1.0, -1.0], N_PLANE // 2)
    rows = np.column_stack(
        [signs * rng.uniform(0.4, 0.8, N_PLANE), rng.uniform(-0.5, 0.5, N_PLANE)]
    )
    rows[0] = (0.05, 0.5)
    return rows, signs


def planes(repeats: int) -> dict[str, Any]:
    """Return the angles of exact and private planes, with and without one support vector."""
    rows, signs = points()
    found: dict[str, Any] = {}
    for world, kept in (("with", slice(0, None)), ("without", slice(1, None))):
        exact = SVC(kernel="linear", C=1e6).fit(rows[kept], signs[kept])
        found[f"exact_{world}"] = angle(exact.coef_[0])
        found[f"plane_{world}"] = [*exact.coef_[0].tolist(), float(exact.intercept_[0])]
        found[f"private_{world}"] = [
            angle(private(seed).fit(rows[kept], signs[kept]).coef_[0]) for seed in range(repeats)
        ]
    return found


def private(seed: int) -> Any:
    return LinearSVC(EPSILON, 0.0, row_norm=1.0, classes=[-1.0, 1.0], random_state=seed)


def angle(weights: Any) -> float:
    return math.degrees(math.atan2(weights[1], weights[0]))


def told_apart(one: Any, other: Any) -> float:
    """Return how often the best threshold tells two worlds apart; it is chosen in hindsight."""
    at = np.sort(np.concatenate([one, other]))
    below = np.searchsorted(np.sort(one), at, side="right") / len(one)
    below_other = np.searchsorted(np.sort(other), at, side="right") / len(other)
    return float(0.5 + 0.5 * np.max(np.abs(below - below_other)))


def measure(run: Run) -> None:
    repeats = 200 if run.quick else 1000
    run.cell({"case": "median", "repeats": repeats}, medians, repeats)
    run.cell({"case": "plane", "repeats": repeats}, planes, repeats)


def check(rows: Rows) -> None:
    most = math.exp(EPSILON) / (1 + math.exp(EPSILON))  # of any attack on a pure promise
    (median,), (plane,) = where(rows, case="median"), where(rows, case="plane")
    require(median["exact_is_record"], "the exact median is a record")
    require(median["private_are_records"] == 0, "no private median is a record")
    require(abs(plane["exact_with"] - plane["exact_without"]) > 10, f"the plane moves: {plane}")
    for row in (median, plane):
        share = told_apart(row["private_with"], row["private_without"])
        error = 4 * math.sqrt(0.5 / row["repeats"])  # of a supremum over thresholds
        require(share < most + error, f"{row['case']}: told apart {share}, at most {most}")


def draw(rows: Rows) -> Any:
    figure, axes = panels(3)
    (median,), (plane,) = where(rows, case="median"), where(rows, case="plane")
    in_thousands = {
        key: np.array(value) / 1e3
        for key, value in median.items()
        if key.startswith(("exact_w", "private_w"))
    }
    draw_worlds(axes[0], in_thousands, np.linspace(10, 80, 36))
    records = np.array(median["records"]) / 1e3
    axes[0].plot(records, np.full(len(records), -0.002), "|", color=GREY, label="records")
    axes[0].set(xlabel="income, thousands", ylabel="density", title="the median", xlim=(10, 80))
    axes[0].legend(fontsize=6.5)
    draw_planes(axes[1], plane)
    draw_worlds(axes[2], plane, np.linspace(-90, 90, 37))
    axes[2].set(xlabel="angle of the plane, degrees", ylabel="density", title="its angle")
    axes[2].set_ylim(0, 1.5 * axes[2].get_ylim()[1])
    axes[2].legend(fontsize=6.5, loc="upper left")
    return figure


def draw_worlds(axis: Any, found: dict[str, Any], bins: Any) -> None:
    """Draw the exact results of both tables, and histograms of the private ones."""
    for world, colour, name in WORLDS:
        told = {"color": colour, "alpha": 0.45, "density": True, "label": f"private, {name}"}
        axis.hist(found[f"private_{world}"], bins, **told)
        axis.axvline(found[f"exact_{world}"], color=colour, label=f"exact, {name}")


def draw_planes(axis: Any, plane: dict[str, Any]) -> None:
    rows, signs = points()
    axis.scatter(*rows.T, c=np.where(signs > 0, "#333333", "#bbbbbb"), s=5)
    axis.scatter(*rows[0], facecolors="none", edgecolors="#D55E00", s=70, label="the record")
    y = np.array([-0.6, 0.6])
    for world, colour, name in WORLDS:
        a, b, c = plane[f"plane_{world}"]
        axis.plot(-(b * y + c) / a, y, color=colour, label=f"exact, {name}")
    axis.set(title="a support vector machine", xlim=(-0.9, 0.9), ylim=(-0.6, 0.95))
    axis.legend(fontsize=6.5, loc="upper left")


def summary(rows: Rows) -> dict[str, str]:
    (median,), (plane,) = where(rows, case="median"), where(rows, case="plane")
    return {
        "turned": f"{abs(plane['exact_with'] - plane['exact_without']):.0f}",
        "median": f"{told_apart(median['private_with'], median['private_without']):.0%}",
        "plane": f"{told_apart(plane['private_with'], plane['private_without']):.0%}",
    }


FIGURE = Figure(
    name="leaks",
    title="What leaks without privacy",
    original="Kamath, Privacy Considerations: the median of an odd number of points is one of "
    "them, and a support vector machine is determined by the points nearest to its plane. No "
    "figure in the document.",
    found="The exact median is a record, and the exact plane turns by {turned} degrees when one "
    "of 200 records is taken away: either tells the two tables apart every time. Private medians "
    "and planes of epsilon 1 (1,000 of each table) tell them apart in {median} and {plane} of "
    "cases with the best threshold in hindsight, where guessing has 50% and the promise allows "
    "73%.",
    measure=measure,
    check=check,
    draw=draw,
    summary=summary,
)
