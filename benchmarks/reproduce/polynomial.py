"""Polynomial regression: regularisation tames what one record does, and so makes privacy cheap."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from reproduce.drawing import BLUE, GREEN, GREY, ORANGE, RED, panels
from reproduce.figure import Figure, Rows, Run, require, where
from tacit.features import PolynomialFeatures
from tacit.linear_model import HuberRegressor, Ridge

POINTS, DEGREE, KNOT, EPSILON, DELTA = 16, 15, 0.25, 1.0, 1e-6
RIDGES = tuple(10.0**k for k in range(-4, 3))
GRID = np.linspace(-1, 1, 201)
SMALL_DEGREE, MANY = 6, 5_000


def made(n: int, seed: int) -> tuple[Any, Any]:
    """Return points around a smooth curve on [-1, 1]."""
    rng = np.random.default_rng(seed)
    x = np.sort(rng.uniform(-1, 1, n))
    return x, curve(x) + 0.1 * rng.standard_normal(n)


def curve(x: Any) -> Any:
    return 0.6 * np.sin(3 * x)


def powers(x: Any, degree: int) -> Any:
    """Return x, x^2, ..., x^degree: rows of norm at most sqrt(degree)."""
    return PolynomialFeatures(degree, ranges=[(-1.0, 1.0)]).fit_transform(np.asarray(x)[:, None])


def without_noise(x: Any, y: Any, ridge: float) -> Any:
    """Return the exact Huber fit of this ridge: weights, and the curve."""
    model = HuberRegressor(
        math.inf, 0.0, knot=KNOT, label_range=(-2.0, 2.0), row_norm=math.sqrt(DEGREE),
        regularization=ridge,
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(powers(x, DEGREE), y)
    return np.append(model.coef_, model.intercept_), model.predict(powers(GRID, DEGREE))


def moved_by_one(ridge: float) -> dict[str, Any]:
    """Return how far the weights move when the label of one point changes, and what is proved."""
    x, y = made(POINTS, 1)
    weights, shown = without_noise(x, y, ridge)
    farthest, other = 0.0, shown
    for i in range(POINTS):
        changed = y.copy()
        changed[i] = -np.sign(y[i])
        there, shown_there = without_noise(x, changed, ridge)
        if np.linalg.norm(there - weights) > farthest:
            farthest, other = float(np.linalg.norm(there - weights)), shown_there
    # SUM form, L = knot times the norm of a row with its intercept
    slope = KNOT * math.sqrt(DEGREE + 1)
    found: dict[str, Any] = {"moved": farthest, "bound": 2 * slope / ridge}
    if ridge in (RIDGES[0], 1.0):
        found |= {"curve": shown.tolist(), "other": other.tolist()}
    return found


def private_curves(n: int, repeats: int) -> dict[str, Any]:
    """Return private fits of a polynomial of a lower degree."""
    x, y = made(n, 2)
    fits = []
    for seed in range(repeats):
        model = Ridge(
            EPSILON, DELTA, row_norm=math.sqrt(SMALL_DEGREE), label_range=(-1.0, 1.0),
            random_state=seed,
        )  # fmt: skip
        fits.append(model.fit(powers(x, SMALL_DEGREE), y).predict(powers(GRID, SMALL_DEGREE)))
    drawn = np.array(fits)
    worst = np.sqrt(np.mean((drawn - curve(GRID)) ** 2, axis=1))
    return {"low": drawn.min(0).tolist(), "high": drawn.max(0).tolist(), "values": worst.tolist()}


def measure(run: Run) -> None:
    for ridge in (RIDGES[0], 1.0, 10.0) if run.quick else RIDGES:
        run.cell({"part": "moved", "ridge": ridge}, moved_by_one, ridge)
    for n in (500, MANY):
        repeats = 5 if run.quick else 20
        run.cell({"part": "private", "n": n, "repeats": repeats}, private_curves, n, repeats)


def check(rows: Rows) -> None:
    found = where(rows, part="moved")
    for row in found:
        require(row["moved"] <= row["bound"], f"within 2 L / lam: {row['moved']}, {row['bound']}")
    least, most = found[0], where(found, ridge=10.0)[0]
    require(least["moved"] > 10 * most["moved"], "a ridge tames what one point does")
    few, many = (float(np.mean(where(rows, part="private", n=n)[0]["values"])) for n in (500, MANY))
    require(many < 0.08 and many < few, f"private fits follow the curve: {few}, {many}")


def draw(rows: Rows) -> Any:
    figure, axes = panels(2, 2)
    x, y = made(POINTS, 1)
    for axis, ridge, colour in ((axes[0, 0], RIDGES[0], BLUE), (axes[0, 1], 1.0, GREEN)):
        (row,) = where(rows, part="moved", ridge=ridge)
        axis.plot(x, y, "o", color=GREY)
        axis.plot(GRID, row["curve"], color=colour, label="fit")
        axis.plot(GRID, row["other"], color=colour, linestyle="--", label="one label changed")
        name = f"degree {DEGREE}, {POINTS} points, ridge {ridge:g}"
        axis.set(title=name, ylim=(-1.6, 1.6), xlabel="x", ylabel="y")
        axis.legend()
    draw_moved(axes[1, 0], where(rows, part="moved"))
    draw_private(axes[1, 1], where(rows, part="private"))
    return figure


def draw_moved(axis: Any, moved: Rows) -> None:
    at = [row["ridge"] for row in moved]
    axis.plot(at, [row["moved"] for row in moved], "o-", color=BLUE, label="measured, worst of 16")
    axis.plot(at, [row["bound"] for row in moved], color=ORANGE, label="2 L / ridge")
    wrong = [row["bound"] * POINTS for row in moved]
    axis.plot(at, wrong, color=RED, linestyle="--", label="2 n L / ridge, as printed")
    axis.set(
        xscale="log",
        yscale="log",
        xlabel="ridge",
        ylabel="distance the weights move",
        title="what one record does",
    )
    axis.legend()


def draw_private(axis: Any, rows: Rows) -> None:
    for n, colour in ((500, ORANGE), (MANY, BLUE)):
        (row,) = where(rows, n=n)
        axis.fill_between(
            GRID,
            row["low"],
            row["high"],
            color=colour,
            alpha=0.4,
            linewidth=0,
            label=f"private, {n:,} points",
        )
    axis.plot(GRID, curve(GRID), color="black", label="truth")
    axis.set(
        title=f"Ridge, degree {SMALL_DEGREE}, epsilon {EPSILON:g}",
        ylim=(-1.6, 1.6),
        xlabel="x",
        ylabel="y",
    )
    axis.legend()


def summary(rows: Rows) -> dict[str, str]:
    found = where(rows, part="moved")
    (many,) = where(rows, part="private", n=MANY)
    return {
        "wild": f"{found[0]['moved']:.2g}",
        "tame": f"{where(found, ridge=1.0)[0]['moved']:.2g}",
        "error": f"{np.mean(many['values']):.2g}",
    }


FIGURE = Figure(
    name="polynomial",
    title="Regularisation tames sensitivity",
    original="Kamath, figure 1: a polynomial through all points is wild, one with a regulariser "
    "is not, and is less sensitive to each point. Lemma 1 bounds that by 2n/lambda.",
    found="Changing one label of 16 moves the weights by {wild} with a ridge of 0.0001 and by "
    "{tame} with a ridge of 1. The bound is 2 L / ridge for a sum of losses, without the "
    "document's n. Private fits of epsilon 1 (range of 20) with 5,000 points are off by {error} "
    "(root mean square).",
    measure=measure,
    check=check,
    draw=draw,
    summary=summary,
)
