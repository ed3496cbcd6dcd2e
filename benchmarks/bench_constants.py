"""Seconds of what is computed before a record is read: noise for a budget, constants of sanitizers.

Fails where something takes longer than its limit, which leaves room for a busy machine.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

from harness import in_turn, markdown_table, pin_threads

pin_threads(1)

import dp_accounting  # noqa: E402
import numpy as np  # noqa: E402
from dp_accounting.pld import PLDAccountant  # noqa: E402

from tacit.local.sanitizers import (  # noqa: E402
    GaussianNoise,
    HalfSphere,
    PrivUnit,
    Sanitizer,
    SphereNoise,
)
from tacit.local.sanitizers.cap import (  # noqa: E402
    best_gamma,
    cap_variance,
    widest_cap,
)
from tacit.noise import Grid, Norm  # noqa: E402
from tacit.noise.bounded import Bounded  # noqa: E402
from tacit.noise.selection.line import select_on_line  # noqa: E402
from tacit.privacy import (  # noqa: E402
    Budget,
    Event,
    Gaussian,
    Relation,
    Repeated,
    SampledGaussian,
    calibrate,
)
from tacit.privacy.accounting.composition import RenyiRoute  # noqa: E402

BUDGET = Budget(1.0, 1e-5)
RATE, STEPS, D = 0.01, 10_000, 1000
N_KNOTS = 1_000_000


def sgd(multiplier: float) -> Repeated:
    return Repeated(SampledGaussian(multiplier, RATE), STEPS)


def theirs() -> None:
    def event(multiplier: float) -> object:
        once = dp_accounting.PoissonSampledDpEvent(RATE, dp_accounting.GaussianDpEvent(multiplier))
        return dp_accounting.SelfComposedDpEvent(once, STEPS)

    assert dp_accounting.calibrate_dp_mechanism(PLDAccountant, event, 1.0, 1e-5) > 0.0


def constants(sanitizer: Callable[[], Sanitizer]) -> None:
    """Compute all that a sanitizer needs, with nothing remembered from the last time."""
    for function in (best_gamma, widest_cap, cap_variance):
        function.cache_clear()
    assert sanitizer().tail.variance > 0.0


def renyi(leaves: tuple[tuple[Event, int], ...]) -> None:
    assert RenyiRoute(leaves).epsilon(1e-5) > 0.0


def jobs() -> dict[str, tuple[Callable[[], object], float]]:
    """Return what is run, and the seconds it may take."""
    leaves = tuple(sgd(1.0).leaves())
    knots = np.linspace(0.0, 1.0, N_KNOTS)
    utility = Bounded(-np.abs(knots - 0.5), 1.0, Norm.LINF, Relation.ADD_REMOVE)
    return {
        "Gaussian noise for a budget": (lambda: calibrate(Gaussian, BUDGET), 1e-3),
        "Renyi epsilon of 10,000 steps": (lambda: renyi(leaves), 3e-3),
        "noise of 10,000 steps for a budget": (lambda: calibrate(sgd, BUDGET), 5.0),
        "the same, dp-accounting": (theirs, np.inf),
        "PrivUnit, d = 1000": (lambda: constants(lambda: PrivUnit(1.0, D)), 0.2),
        "HalfSphere, d = 1000": (lambda: constants(lambda: HalfSphere(1.0, D)), 0.2),
        "SphereNoise, d = 1000": (lambda: constants(lambda: SphereNoise(1.0, D)), 0.2),
        "GaussianNoise, d = 1000": (lambda: constants(lambda: GaussianNoise(1.0, 1e-6, D)), 0.2),
        "a choice among a million knots": (
            lambda: select_on_line(knots, utility, Grid(0.0, 1.0), 1.0),
            10.0,
        ),
    }


def main() -> int:
    found = jobs()
    runs = {name: run for name, (run, _) in found.items()}
    # the fastest of each: what others take of the machine is not ours
    least = {name: min(times) for name, times in in_turn(runs, 5).items()}
    limits = {name: limit for name, (_, limit) in found.items()}
    limits["noise of 10,000 steps for a budget"] = least["the same, dp-accounting"]
    table = [[name, f"{least[name]:.5f}", f"{limits[name]:.5f}"] for name in least]
    print(markdown_table(["", "seconds, fastest of 5", "limit"], table))
    late = [name for name in least if least[name] > limits[name]]
    for name in late:
        print(f"too slow: {name}")
    return bool(late)


if __name__ == "__main__":
    sys.exit(main())
