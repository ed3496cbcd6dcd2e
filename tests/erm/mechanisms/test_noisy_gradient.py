"""One record more or less moves a step's sum by no more than its sensitivity, corners included."""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np
import pytest

from tacit.erm import Box, NoisyGradient, Objective, minimize
from tacit.erm.losses import (
    AbsoluteLoss,
    HingeLoss,
    HuberLoss,
    LogisticLoss,
    Loss,
    PoissonLoss,
    QuantileLoss,
    SmoothHingeLoss,
    SquaredLoss,
)
from tacit.erm.objective import records_gradient
from tacit.noise import Source, recording, seeded_source
from tacit.noise.release import SEEDED, Decision
from tacit.privacy import Budget, Gaussian, Relation
from tacit.queries import (
    Count,
    Facts,
    GaussianNoise,
    GaussianSum,
    LaplaceNoise,
    Noise,
    NoisySum,
    Session,
    Slot,
)
from tacit.records import Bounds, MemoryRecords
from tacit.testing import replay

Layout = Literal["C", "F"]
D = 20
SIDE = 0.004
# Where the second gradient is taken if the first step ended in the corner of the box: beyond it,
# by the momentum.
AT = np.full(D, SIDE) + 0.25 * np.full(D, SIDE)
CORNERS = [QuantileLoss(0.5), AbsoluteLoss(), QuantileLoss(0.5, 1e-18), HingeLoss()]


def row_on_the_corner(loss: Loss, layout: Layout) -> tuple[Any, float]:
    """Return a row and a label: the score is on one side of the corner or on the other.

    Which one is up to BLAS, which has one kernel for four rows and another for the up to three
    that are left over at the end of a block.
    """
    rng = np.random.default_rng(0)
    for _ in range(2000):
        x = rng.uniform(0.1, 0.3, D)
        if isinstance(loss, HingeLoss):
            x /= x @ AT  # a margin of 1
        scores = np.asarray(np.tile(x, (7, 1)), order=layout) @ AT
        label = 1.0 if isinstance(loss, HingeLoss) else float(scores[0])
        slopes = loss.d1(scores, np.full(7, label))
        if np.all(np.abs(slopes[4:] - slopes[0]) > 0.4):
            return x, label
    pytest.skip("this BLAS rounds a score alike wherever the row stands")


def copies(n: int, x: Any, label: float, layout: Layout) -> tuple[MemoryRecords, Bounds]:
    bounds = Bounds(row_norm=float(np.linalg.norm(x)) * (1 + 1e-6), label_range=(-1.0, 1.0))
    rows = np.asarray(np.tile(x, (n, 1)), order=layout)
    return MemoryRecords(rows, np.full(n, label), bounds), bounds


@pytest.mark.parametrize("layout", ["C", "F"])
@pytest.mark.parametrize("loss", CORNERS, ids=str)
def test_others_keep_their_slopes_on_a_corner(loss: Loss, layout: Layout) -> None:
    # 1,003 rows leave three over; 1,004 leave none.
    sums = []
    for n in (1003, 1004):
        records, bounds = copies(n, *row_on_the_corner(loss, layout), layout)
        objective = Objective(loss, bounds)
        sums.append(records_gradient(objective, records, AT))
    assert np.linalg.norm(sums[1] - sums[0]) <= objective.lipschitz * (1 + 1e-4)


@pytest.mark.parametrize("layout", ["C", "F"])
@pytest.mark.parametrize("loss", CORNERS[:3], ids=str)
def test_a_whole_descent_on_a_corner(loss: Loss, layout: Layout) -> None:
    x, label = row_on_the_corner(loss, layout)

    def fit(n: int) -> object:
        # All labels call for larger scores, so that the first step takes every weight to the
        # side of the box, whatever the noise.
        records, bounds = copies(n, x, label, layout)
        objective = Objective(loss, bounds, 0.0, Box(-SIDE, SIDE))
        return minimize(records, objective, Budget(50.0, 1e-2), NoisyGradient(n_steps=2))

    assert replay(fit, 1003, 1004) == 3
    assert replay(fit, 1004, 1003) == 3


@pytest.mark.parametrize("loss", CORNERS, ids=str)
def test_losses_with_corners_are_sharp(loss: Loss) -> None:
    assert loss.is_sharp(Bounds(label_range=(-1.0, 1.0)))


@pytest.mark.parametrize(
    "loss",
    [
        LogisticLoss(),
        SmoothHingeLoss(),
        HuberLoss(0.1),
        SquaredLoss(),
        SquaredLoss(2.0, 1.0),
        PoissonLoss(5.0, 9.0),
        QuantileLoss(0.9, 0.05),
    ],
    ids=str,
)
def test_smooth_losses_are_not(loss: Loss) -> None:
    bounds = Bounds(label_range=(-1.0, 1.0))
    assert not loss.is_sharp(bounds)
    assert not loss.is_sharp(bounds, 0.25)


def test_what_a_clip_leaves_of_a_slope_decides() -> None:
    # clipped to slopes of 1e-9, a residual is all but its sign
    assert SquaredLoss().is_sharp(Bounds(label_range=(-1.0, 1.0)), 1e-9)


def schedule(n: int, epsilon: float = 1.0) -> tuple[int, np.ndarray[Any, Any]]:
    """Return how many steps a descent over n records took, and where it ended."""
    rng = np.random.default_rng(0)
    bounds = Bounds(label_range=(-1.0, 1.0))
    records = MemoryRecords(rng.uniform(-0.2, 0.2, (n, D)), rng.uniform(-1, 1, n), bounds)
    objective = Objective(HuberLoss(0.25), bounds)
    with recording() as tape:
        result = minimize(records, objective, Budget(epsilon, 1e-6), "noisy_gradient")
    (steps,) = (e.value for e in tape.entries if isinstance(e, Decision))
    assert isinstance(steps, int)
    return steps, result.weights


def test_steps_follow_the_noisy_count() -> None:
    assert schedule(200)[0] < schedule(3_000)[0] < schedule(40_000)[0]


def test_few_records_do_not_explode() -> None:
    _, weights = schedule(500, epsilon=0.05)
    assert np.linalg.norm(weights) < 1.0


class Unreadable(MemoryRecords):
    def count(self) -> int:
        raise AssertionError("read")


def everything(source: Source | None = None) -> Session:
    """Return a session in which whatever is asked costs no more than one Gaussian."""
    bounds = Bounds()
    facts, planned = Facts(bounds, 2, Relation.ADD_REMOVE), Gaussian(4.0)
    records = MemoryRecords(np.zeros((9, 2)), None, bounds)
    return Session(records, facts, planned, {"all": Slot(planned, GaussianSum())}, source)


def test_the_parts_cost_no_more_than_the_whole() -> None:
    step = GaussianNoise(math.sqrt(50 / (1 / 16 - 1 / 1600)) * (1 + 1e-9))
    parts: list[Noise] = [GaussianNoise(40.0), *[step] * 50]
    beyond: list[list[Noise]] = [
        [*parts, GaussianNoise(1e3)],
        [*parts, step],
        [LaplaceNoise(1e-9)],
        [GaussianNoise(4.0 * (1 - 1e-12))],
        [GaussianNoise(4.0), GaussianNoise(1e7)],
    ]
    for within in (parts, parts[::-1], [GaussianNoise(4.0)], []):
        session = everything()
        for noise in within:
            session.ask(NoisySum(Count(), noise), "all")
        assert session.close() == Gaussian(4.0)
    for *within, last in beyond:
        session = everything()
        for noise in within:
            session.ask(NoisySum(Count(), noise), "all")
        session._records = Unreadable(np.zeros((9, 2)), None, Bounds())
        with pytest.raises(RuntimeError, match="what was paid for it"):
            session.ask(NoisySum(Count(), last), "all")


def test_a_seed_voids_what_the_parts_cost() -> None:
    session = everything(seeded_source(1))
    session.ask(NoisySum(Count(), GaussianNoise(4.0)), "all")
    assert session.close().reasons_void() == (SEEDED,)
