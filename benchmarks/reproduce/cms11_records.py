"""Accuracy against the number of training records, at two small epsilon."""

from __future__ import annotations

from typing import Any

from reproduce.cms11 import FILES, METHODS, NAMES, accuracies, limits
from reproduce.drawing import BLUE, ORANGE, RED, panels, ranged, shared_legend
from reproduce.figure import Figure, Rows, Run, mean_of, require, where

DATA = "KDDCup99"
EPSILONS = (0.05, 0.01)
RECORDS = (5_000, 10_000, 20_000, 50_000, 100_000, 200_000, 395_216)
QUICK_RECORDS = (5_000, 100_000)
COLOURS = {"objective": BLUE, "printed": ORANGE, "output": RED}


def measure(run: Run) -> None:
    repeats = 2 if run.quick else 5
    for n in QUICK_RECORDS if run.quick else RECORDS:
        for model in NAMES:
            at = {"data": DATA, "model": model, "n": n}
            run.cell({**at, "method": "none"}, limits, *at.values())
            for method in COLOURS:
                for epsilon in EPSILONS:
                    settings = {**at, "method": method, "epsilon": epsilon, "repeats": repeats}
                    run.cell(settings, accuracies, *settings.values())


def check(rows: Rows) -> None:
    for model in NAMES:
        at = {"model": model, "epsilon": EPSILONS[0]}
        few, many = (
            {m: mean_of(rows, **at, n=n, method=m) for m in COLOURS} for n in QUICK_RECORDS
        )
        require(many["objective"] > few["objective"] + 0.05, f"records help: {at}, {few}, {many}")
        require(many["objective"] > many["output"] + 0.05, f"objective first: {at}, {many}")
        require(many["objective"] > many["printed"] - 0.005, f"above CMS11: {at}, {many}")
        small = {"model": model, "epsilon": EPSILONS[1]}
        few, less = (
            {m: mean_of(rows, **small, n=n, method=m) for m in COLOURS} for n in QUICK_RECORDS
        )
        require(less["printed"] > few["printed"] + 0.03, f"records help: {small}, {few}, {less}")
        require(less["printed"] > less["output"] + 0.03, f"objective first: {small}, {less}")
        require(less["printed"] < many["printed"], f"epsilon helps: {model}, {less}, {many}")


def draw(rows: Rows) -> Any:
    figure, axes = panels(2, 2, sharex=True, sharey=True)
    for line, model in zip(axes, NAMES, strict=True):
        for axis, epsilon in zip(line, EPSILONS, strict=True):
            limit = where(rows, model=model, method="none")
            ranged(axis, limit, "n", label="without privacy", color="black", marker="")
            floor = limit[-1]["floor"]
            axis.axhline(floor, color="black", linestyle=":", label="larger class")
            for method, colour in COLOURS.items():
                found = where(rows, model=model, method=method, epsilon=epsilon)
                ranged(axis, found, "n", label=METHODS[method], color=colour)
            axis.set(xscale="log", title=f"{NAMES[model]}, epsilon {epsilon:g}", ylim=(0.55, 1.01))
    for axis in axes[1]:
        axis.set_xlabel("training records")
    for axis in axes[:, 0]:
        axis.set_ylabel("test accuracy")
    shared_legend(figure, axes[0, 0], 3)
    return figure


def summary(rows: Rows) -> dict[str, str]:
    at = {"model": "logistic", "epsilon": 0.05, "n": 100_000}
    fewer = {"model": "logistic", "epsilon": 0.05, "n": 10_000}
    return {m: f"{mean_of(rows, **at, method=m):.1%}" for m in COLOURS} | {
        f"few_{m}": f"{mean_of(rows, **fewer, method=m):.1%}" for m in COLOURS
    }


FIGURE = Figure(
    name="cms11_records",
    title="Accuracy against the number of training records",
    original="Slides, Accuracy vs. Training Data Size Tradeoff (CMS11, figures 4 and 5), at "
    "epsilon 0.05 and 0.01: privacy is bought with records, and objective perturbation needs "
    "fewer of them.",
    found="KDDCup99, logistic regression, 100,000 records, epsilon 0.05: {objective} by objective "
    "perturbation with the ridge that tacit chooses, {printed} by Algorithm 2 as printed, "
    "{output} by output perturbation. Privacy is bought with records, and output perturbation "
    "needs the most. With fewer records Algorithm 2 as printed is the better classifier (10,000 "
    "records: {few_printed} beside {few_objective}): tacit's ridge is chosen for the log loss and "
    "keeps close to the larger class where that is all that can be promised. Mean and range of "
    "five fits.",
    measure=measure,
    check=check,
    draw=draw,
    summary=summary,
    data=FILES[DATA],
)
