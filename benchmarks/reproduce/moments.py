"""What epochs of DP-SGD cost: strong composition, the moments accountant, loss distributions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from reproduce.drawing import BLUE, GREEN, ORANGE, panels
from reproduce.figure import Figure, Rows, Run, require, where
from tacit.privacy import Guarantee, Repeated, SampledGaussian
from tacit.privacy.accounting.composition import renyi_of

RATE, NOISE, DELTA = 0.01, 4.0, 1e-5
EPOCHS = (1, 2, 5, 10, 20, 40, 60, 80, 100, 150, 200, 250, 300, 350, 400)
QUICK_EPOCHS = (1, 10, 100)
WAYS = {
    "strong_composition": ("strong composition", ORANGE),
    "moments": ("moments accountant (2016)", GREEN),
    "epsilon": ("loss distribution, as tacit counts", BLUE),
}
PINS = {"strong_composition": 9.338, "moments": 1.259, "epsilon": 0.947}  # at 100 epochs


_MOST_MOMENT = 256
_SPLITS = 400  # grid size for the split of delta between steps and composition


def cost(epoch: int) -> dict[str, Any]:
    step, n_steps = SampledGaussian(NOISE, RATE), round(epoch / RATE)
    return {
        "n_steps": n_steps,
        "epsilon": Guarantee(Repeated(step, n_steps)).epsilon(DELTA),
        "moments": moments_epsilon(step, n_steps, DELTA),
        "strong_composition": strong_composition_epsilon(step, n_steps, DELTA),
    }


def moments_epsilon(step: SampledGaussian, n_steps: int, delta: float) -> float:
    """Return epsilon by the moments accountant of Abadi et al. (2016).

        epsilon = min over whole l of (T alpha(l) + log(1 / delta)) / l,   alpha(l) = l r(l + 1)

    with r the Renyi divergence of a step; today's conversion from r is tighter.
    """
    moments = np.arange(1.0, _MOST_MOMENT + 1)
    alpha = moments * renyi_of(step, moments + 1)
    return float(np.min((n_steps * alpha + math.log(1 / delta)) / moments))


def strong_composition_epsilon(step: SampledGaussian, n_steps: int, delta: float) -> float:
    """Return epsilon by strong composition of amplified steps, to first order; no guarantee.

        e0 = sqrt(2 log(1.25 / d0)) / z,  e = q e0,  epsilon = e sqrt(2 T log(1 / d')) + T e^2

    with T q d0 + d' = delta split optimally.
    """
    rate, z = step.sampling_rate, step.noise_multiplier
    share = np.linspace(0.5, _SPLITS - 0.5, _SPLITS) / _SPLITS
    of_step, rest = share * delta / (n_steps * rate), (1 - share) * delta
    e = rate * np.sqrt(2 * np.log(1.25 / of_step)) / z
    return float(np.min(e * np.sqrt(2 * n_steps * np.log(1 / rest)) + n_steps * e**2))


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
)
