"""Noisy gradient descent pays for the rank of the rows, not for their number of columns."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.optimize import minimize

from reproduce.drawing import BLUE, ORANGE, RED, panels, ranged
from reproduce.figure import Figure, Rows, Run, mean_of, require, where
from tacit.erm import NoisyGradient
from tacit.linear_model import LogisticRegression

# 16 steps with momentum go as far (step T^2 / 4) as the bound's eta T does at rank 50.
N, EPSILON, DELTA, STEPS, SIZE = 4_000, 1.0, 1e-5, 16, 3.0
PADDED_RANK, DIMENSIONS = 5, (5, 20, 100, 500, 2000)
RANKS, WIDE = (1, 2, 5, 10, 20, 50, 100, 200), 200


@lru_cache(maxsize=4)
def problem(rank: int) -> tuple[Any, Any, float, float]:
    """Return rows of norm 1 and this rank, labels, the least log loss, and the best weights' norm.

    Labels follow a logistic model, and the best weights are those of the records themselves.
    """
    rng = np.random.default_rng(rank)
    rows = rng.standard_normal((N, rank))
    rows /= np.linalg.norm(rows, axis=1)[:, None]
    truth = np.full(rank, SIZE / math.sqrt(rank))
    signs = np.where(rng.random(N) < 1 / (1 + np.exp(-rows @ truth)), 1.0, -1.0)
    best = minimize(
        risk_and_slope,
        np.zeros(rank),
        (rows, signs),
        jac=True,
        method="L-BFGS-B",
        options={"ftol": 1e-14, "gtol": 1e-9},
    )
    return rows, signs, float(best.fun), float(np.linalg.norm(best.x))


def risk_and_slope(weights: Any, rows: Any, signs: Any) -> tuple[float, Any]:
    """Return the mean log loss and its gradient."""
    margins = signs * (rows @ weights)
    slopes = -signs / (1 + np.exp(margins))
    return float(np.mean(np.logaddexp(0, -margins))), rows.T @ slopes / len(rows)


def excess(rank: int, dimension: int, repeats: int) -> dict[str, Any]:
    """Return excess empirical risks of tacit's descent, and the bound of the theorem."""
    rows, signs, least, norm = problem(rank)
    padded = np.hstack([rows, np.zeros((N, dimension - rank))])
    found = []
    for seed in range(repeats):
        model = LogisticRegression(
            EPSILON, DELTA, relation="replace", row_norm=1.0, classes=[-1.0, 1.0], n_records=N,
            mechanism=NoisyGradient(n_steps=STEPS), regularization=0.0, fit_intercept=False,
            random_state=1000 * dimension + seed,
        ).fit(padded, signs)  # fmt: skip
        found.append(risk_and_slope(model.coef_[0][:rank], rows, signs)[0] - least)
    # L ||w*||_M sqrt(1 + 4 rank log(1/delta)) / (epsilon n), L = 1: with Claim 3.2's noise the
    # document's 2 is a 4
    bound = norm * math.sqrt(1 + 4 * rank * math.log(1 / DELTA)) / (EPSILON * N)
    return {"values": found, "bound": bound}


def measure(run: Run) -> None:
    repeats = 40 if run.quick else 60
    for dimension in (5, 500) if run.quick else DIMENSIONS:
        settings = {"panel": "padded", "rank": PADDED_RANK, "d": dimension}
        run.cell({**settings, "repeats": repeats}, excess, PADDED_RANK, dimension, repeats)
    for rank in (5, 50) if run.quick else RANKS:
        settings = {"panel": "rank", "rank": rank, "d": WIDE}
        run.cell({**settings, "repeats": repeats}, excess, rank, WIDE, repeats)


def check(rows: Rows) -> None:
    padded = where(rows, panel="padded")
    least, most = padded[0]["values"], padded[-1]["values"]
    error = math.sqrt(np.var(least) / len(least) + np.var(most) / len(most))
    apart = abs(float(np.mean(least)) - float(np.mean(most)))
    require(apart < 4 * error, f"zero columns change nothing beyond noise: {least}, {most}")
    low, high = (mean_of(rows, panel="rank", rank=rank) for rank in (5, 50))
    require(high > 3 * low, f"rank costs: {low}, {high}")
    for row in rows:
        require(float(np.mean(row["values"])) < row["bound"], f"within the bound: {row}")


def draw(rows: Rows) -> Any:
    figure, axes = panels(2, sharey=True)
    for axis, name, x in ((axes[0], "padded", "d"), (axes[1], "rank", "rank")):
        found = where(rows, panel=name)
        ranged(axis, found, x, label="tacit's noisy gradient", color=BLUE)
        at, bound = [r[x] for r in found], [r["bound"] for r in found]
        axis.plot(at, bound, color=ORANGE, label="Theorem 4.1, corrected")
        axis.set(xscale="log", yscale="log", ylim=(1e-5, 0.5))
    generic = [r["bound"] * math.sqrt(r["d"] / r["rank"]) for r in where(rows, panel="padded")]
    axes[0].plot(
        [r["d"] for r in where(rows, panel="padded")],
        generic,
        color=RED,
        linestyle="--",
        label="a bound that grows with d",
    )
    axes[0].set(
        xlabel="columns, all but five of them zero",
        ylabel="excess empirical risk",
        title=f"rank {PADDED_RANK}",
    )
    axes[1].set(xlabel="rank of the rows", title=f"{WIDE} columns")
    axes[0].legend(loc="lower right")
    axes[1].legend()
    return figure


def summary(rows: Rows) -> dict[str, str]:
    padded = where(rows, panel="padded")
    return {
        "least": f"{np.mean(padded[0]['values']):.2g}",
        "most": f"{np.mean(padded[-1]['values']):.2g}",
        "d": f"{padded[-1]['d']:,}",
        "low": f"{mean_of(rows, panel='rank', rank=5):.2g}",
        "high": f"{mean_of(rows, panel='rank', rank=50):.2g}",
    }


FIGURE = Figure(
    name="rank",
    title="Rank, not dimension",
    original="Brown, Theorem 4.1 (Song et al. 2021): the excess risk of noisy gradient descent on "
    "a generalised linear model grows with the square root of the rank of the rows, whatever "
    "their number of columns. No figure in the document.",
    found="Padded with zero columns from 5 to {d}, the excess risk stays ({least} and {most}); "
    "from rank 5 to rank 50 it grows from {low} to {high}. 4,000 records, epsilon 1, delta 1e-5, "
    "16 steps; mean and range of 60 fits. The bound has 4 where the document has 2; it is for the "
    "document's own descent and step size, which tacit's is not. 8, 12, 16, 24 and 50 steps were "
    "tried: up to 24 stayed below the bound, and 50 exceeded it at rank 50 (about 0.067 beside "
    "0.043).",
    measure=measure,
    check=check,
    draw=draw,
    summary=summary,
)
