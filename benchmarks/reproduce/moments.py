"""What epochs of DP-SGD cost: strong composition, the moments accountant, loss distributions."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from reproduce.drawing import BLUE, GREEN, ORANGE, panels
from reproduce.figure import Figure, Rows, Run, require, where
from tacit.privacy import SampledGaussian

RATE, NOISE, DELTA = 0.01, 4.0, 1e-5
EPOCHS = (1, 2, 5, 10, 20, 40, 60, 80, 100, 150, 200, 250, 300, 350, 400)
QUICK_EPOCHS = (1, 10, 100)
WAYS = {
    "strong_composition": ("strong composition", ORANGE),
    "moments": ("moments accountant (2016)", GREEN),
    "epsilon": ("loss distribution, as tacit counts", BLUE),
}
PINS = {"strong_composition": 9.338, "moments": 1.259, "epsilon": 0.947}  # at 100 epochs


def cost(epoch: int) -> dict[str, Any]:
    from tacit.deep.planning import cost_after

    steps = round(epoch / RATE)
    return asdict(cost_after(SampledGaussian(NOISE, RATE), steps, DELTA, epoch))


def measure(run: Run) -> None:
    for epoch in QUICK_EPOCHS if run.quick else EPOCHS:
        run.cell({"epoch": epoch}, cost, epoch)


def check(rows: Rows) -> None:
    for row in rows:
        order = [row[way] for way in WAYS]
        require(order == sorted(order, reverse=True), f"each way is tighter: {row}")
    (row,) = where(rows, epoch=100)
    for way, pin in PINS.items():
        require(abs(row[way] - pin) < 0.002, f"{way} is {row[way]}, not {pin}")
    require(row["strong_composition"] / row["moments"] > 7, f"moments win by seven: {row}")


def draw(rows: Rows) -> Any:
    figure, axis = panels(1, size=(5.2, 3.4))
    for way, (name, colour) in WAYS.items():
        axis.plot([r["epoch"] for r in rows], [r[way] for r in rows], label=name, color=colour)
    axis.set(xlabel="epoch", ylabel="epsilon at delta = 1e-5", ylim=(0, None), xlim=(0, None))
    axis.set_title("q = 0.01, sigma = 4")
    axis.legend()
    return figure


def summary(rows: Rows) -> dict[str, str]:
    (row,) = where(rows, epoch=100)
    return {way: f"{row[way]:.3g}" for way in WAYS}


FIGURE = Figure(
    name="moments",
    title="The moments accountant",
    original="Slides, DP-SGD: Results (Abadi et al., figure 2), q = 0.01, sigma = 4, delta = "
    "1e-5: 9.34 by strong composition and 1.26 by the moments accountant after 100 epochs.",
    found="{strong_composition} and {moments}; the distribution of the privacy loss, by which "
    "tacit counts, gives {epsilon}. Computed, so without error bars.",
    measure=measure,
    check=check,
    draw=draw,
    summary=summary,
    needs=("torch",),
)
