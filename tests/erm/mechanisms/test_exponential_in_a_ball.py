"""Weights in a ball have the density of the exponential mechanism, and neighbours are close."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy.stats import kstest

from tacit.erm import (
    CannotSolve,
    ExponentialInABall,
    L1Ball,
    L2Ball,
    NoisyGradient,
    Objective,
    Problem,
    minimize,
)
from tacit.erm.losses import (
    AnyLoss,
    DistanceLoss,
    HingeLoss,
    HuberLoss,
    LogisticLoss,
    PoissonLoss,
    QuantileLoss,
    SoftmaxLoss,
    SquaredLoss,
)
from tacit.linear_model import LogisticRegression
from tacit.noise import SensitivityViolation
from tacit.noise.selection.ball import Concave
from tacit.privacy import Budget, ExponentialMechanism, Relation
from tacit.queries import Facts
from tacit.queries.selection import RiskInBall
from tacit.records import Bounds, MemoryRecords
from tacit.testing import replay
from tests.noise.helpers import ACCEPT, grouped_pvalue

Array = npt.NDArray[np.float64]
RADIUS = 1.0


def table_of(dimension: int, n: int) -> tuple[Array, Array]:
    rng = np.random.default_rng(dimension)
    rows = rng.standard_normal((n, dimension))
    rows /= np.linalg.norm(rows, axis=1)[:, None]
    labels = np.where(rows[:, 0] + 0.3 * rng.standard_normal(n) > 0, 1.0, -1.0)
    return rows, labels


def records_of(dimension: int, n: int, **told: Any) -> MemoryRecords:
    return MemoryRecords(*table_of(dimension, n), Bounds(**told))


def objective_of(loss: AnyLoss, regularization: float = 0.0, **told: Any) -> Objective:
    return Objective(loss, Bounds(**told), regularization, L2Ball(RADIUS))


def utility_of(records: MemoryRecords, objective: Objective) -> Concave:
    """Return minus the risk of weights in the ball, relative to that of 0."""
    facts = Facts(records.bounds, records.n_features, Relation.ADD_REMOVE)
    risk = RiskInBall(objective.loss, RADIUS, objective.regularization or 0.0)
    return risk.concave(records, facts)


def drawn(records: MemoryRecords, objective: Objective, epsilon: float, draws: int) -> Array:
    mechanism, budget = ExponentialInABall(), Budget(epsilon)
    return np.array([minimize(records, objective, budget, mechanism).weights for _ in range(draws)])


def apart(drawn: Array, risk: Array, weight: Array, rate: float) -> float:
    """Return how far the mean risk of draws is from that of the law, in standard errors.

    ``risk`` and ``weight`` are those of the points of a fine grid, without the exponential.
    """
    shares = weight * np.exp(-rate * (risk - risk.min()))
    shares /= shares.sum()
    mean = float(shares @ risk)
    std = math.sqrt(float(shares @ (risk - mean) ** 2))
    return abs(float(drawn.mean()) - mean) / (std / math.sqrt(drawn.size))


# At the right law 6.5 standard errors are exceeded once in ten thousand million times.
CLOSE, FAR = 6.5, 7.0


@pytest.mark.parametrize("loss", [LogisticLoss(), HingeLoss()])
def test_one_weight_has_the_integrated_law(loss: Any) -> None:
    records, objective = records_of(1, 60), objective_of(loss, 0.5)
    rows, labels = table_of(1, 60)
    epsilon = 6.0

    def risk(weights: Array) -> Array:
        # by hand: a sum of losses and the ridge
        total: Array = loss.value(rows * weights, labels[:, None]).sum(axis=0) + weights**2 / 4
        return total

    points = drawn(records, objective, epsilon, 400)[:, 0]
    grid = (np.arange(4000) + 0.5) / 2000 - 1.0
    shares = np.exp(-epsilon / 2 * (risk(grid) - risk(grid).min()))
    table = np.cumsum(shares) / shares.sum()
    assert kstest(points, lambda x: np.interp(x, grid + 1 / 4000, table)).pvalue > ACCEPT
    # rate = epsilon / (2 L R), L = R = 1
    found = [apart(risk(points), risk(grid), np.ones(4000), epsilon * f) for f in (0.5, 1.0, 0.25)]
    assert found[0] < CLOSE
    assert min(found[1:]) > FAR, found


@pytest.mark.slow
def test_two_weights_have_the_integrated_law() -> None:
    records, objective = records_of(2, 80), objective_of(LogisticLoss())
    rows, labels = table_of(2, 80)
    epsilon = 20.0

    def risk(weights: Array) -> Array:
        total: Array = np.logaddexp(0.0, -(weights @ rows.T) * labels).sum(axis=1)
        return total

    points = drawn(records, objective, epsilon, 400)
    assert (np.linalg.norm(points, axis=1) <= RADIUS).all()
    # a fine grid of the disc
    radii, angles = (np.arange(400) + 0.5) / 400, (np.arange(600) + 0.5) / 600
    r, a = (part.ravel() for part in np.meshgrid(radii, angles, indexing="ij"))
    grid = np.stack([r * np.cos(2 * math.pi * a), r * np.sin(2 * math.pi * a)], axis=1)

    def bins(places: Array) -> npt.NDArray[np.int64]:
        ring = np.minimum(np.linalg.norm(places, axis=1) * 4, 3).astype(int)
        turn = np.arctan2(places[:, 1], places[:, 0]) / (2 * math.pi) % 1.0
        return ring * 12 + np.minimum(turn * 12, 11).astype(int)

    weight = r * np.exp(-epsilon / 2 * (risk(grid) - risk(grid).min()))
    shares = np.bincount(bins(grid), weights=weight, minlength=48) / weight.sum()
    assert grouped_pvalue(np.bincount(bins(points), minlength=48), shares) > ACCEPT
    found = [apart(risk(points), risk(grid), r, epsilon * factor) for factor in (0.5, 1.0, 0.25)]
    assert found[0] < CLOSE
    assert min(found[1:]) > FAR, found


def log_ratio(
    relation: Relation, dimension: int, rows: Array, labels: Array, less: float = 1.0
) -> float:
    """Return the greatest log-ratio of densities between two neighbours, at epsilon 1."""
    steps = {1: 400, 2: 40}[dimension]
    side = np.linspace(-RADIUS, RADIUS, 2 * steps + 1)
    points = np.array([p for p in product(side, repeat=dimension) if np.dot(p, p) <= RADIUS**2])
    objective = objective_of(HingeLoss())
    budget = Budget(1.0, relation=relation)
    plan = ExponentialInABall().plan(Problem(objective, dimension), budget)
    if relation is Relation.ADD_REMOVE:
        tables = (rows[:-1], labels[:-1]), (rows, labels)
    else:
        flipped = np.append(labels[:-1], -labels[-1])
        tables = (rows, flipped), (rows, labels)
    logs = []
    for table, label in tables:
        at = utility_of(MemoryRecords(table, label, Bounds()), objective).at
        utility = np.array([at(w) for w in points])
        log = utility / (2 * less * plan.settings["sensitivity"])
        logs.append(log - np.logaddexp.reduce(log))
    return float(np.abs(logs[0] - logs[1]).max())


@pytest.mark.parametrize("relation", [Relation.ADD_REMOVE, Relation.REPLACE])
@pytest.mark.parametrize("dimension", [1, 2])
def test_densities_of_neighbours_are_within_epsilon(relation: Relation, dimension: int) -> None:
    # Many records want the weights at one end of the ball, one wants them at the other.
    rows = np.zeros((400, dimension))
    rows[:, 0] = 1.0
    labels = np.append(np.ones(399), -1.0)
    assert 0.9 < log_ratio(relation, dimension, rows, labels) <= 1.0
    # half the sensitivity would not do, nor what is right for adding where records are replaced
    assert log_ratio(relation, dimension, rows, labels, less=0.5) > 1.5


def test_the_documents_constant_is_not_private_under_replace() -> None:
    """Delta = G R on a ball of radius R is twice epsilon where a record is replaced."""
    plans = [
        ExponentialInABall().plan(
            Problem(objective_of(HingeLoss()), 2), Budget(1.0, relation=relation)
        )
        for relation in (Relation.ADD_REMOVE, Relation.REPLACE)
    ]
    assert [plan.settings["sensitivity"] for plan in plans] == [1.0, 2.0]
    assert [plan.event for plan in plans] == [
        ExponentialMechanism(1.0, Relation.ADD_REMOVE),
        ExponentialMechanism(1.0, Relation.REPLACE),
    ]


LOSSES: list[tuple[AnyLoss, dict[str, Any]]] = [
    (LogisticLoss(), {}),
    (HingeLoss(), {}),
    (HuberLoss(0.3), {"label_range": (-3.0, 3.0)}),
    (QuantileLoss(0.8), {"label_range": (-3.0, 3.0)}),
    (PoissonLoss(2.0, 5.0), {"label_range": (0.0, 5.0)}),
    (DistanceLoss(), {}),
]


@pytest.mark.parametrize(("loss", "told"), LOSSES, ids=lambda x: type(x).__name__)
@pytest.mark.parametrize("dimension", [1, 3])
def test_any_lipschitz_loss(loss: AnyLoss, told: dict[str, Any], dimension: int) -> None:
    records = records_of(dimension, 500, **told)
    objective = objective_of(loss, 1.0, **told)
    utility = utility_of(records, objective).at
    grid = np.random.default_rng(0).uniform(-1.0, 1.0, (2000, dimension))
    grid = grid[np.linalg.norm(grid, axis=1) <= 1.0]
    most = max(utility(w) for w in grid)
    for _ in range(3):
        w = minimize(records, objective, Budget(50.0), ExponentialInABall()).weights
        # the risk exceeds the least one by a gamma variable of shape about d, over the rate
        rate = 50.0 / (2 * objective.lipschitz)
        assert most - utility(w) < (dimension + 60) / rate


def test_several_outputs() -> None:
    rng = np.random.default_rng(3)
    rows = rng.uniform(-0.7, 0.7, (400, 1))
    labels = (rows[:, 0] > 0).astype(float)
    bounds = Bounds(n_classes=2, intercept=1.0)
    objective = Objective(SoftmaxLoss(2), bounds, 0.0, L2Ball(2.0))
    records = MemoryRecords(rows, labels, bounds)
    w = minimize(records, objective, Budget(20.0), ExponentialInABall()).weights
    assert w.shape == (2, 2)
    assert w[0, 1] > w[0, 0]


def test_tangent_planes_are_above_with_records_in_blocks() -> None:
    rng = np.random.default_rng(1)
    records, objective = records_of(3, 5000), objective_of(LogisticLoss(), 2.0)
    utility = utility_of(records, objective)
    error = utility.error
    assert error < 1e-4
    centres, points = rng.uniform(-2, 2, (20, 3)), rng.uniform(-0.57, 0.57, (20, 3))
    values, slopes = utility.tangents(centres)
    for value, slope, centre in zip(values, slopes, centres, strict=True):
        assert all(utility.at(w) <= value + slope @ (w - centre) + error for w in points)
        assert utility.at(centre) == pytest.approx(value, abs=error)


def test_the_excess_risk_is_as_predicted() -> None:
    records, objective = records_of(2, 2000), objective_of(LogisticLoss())
    utility = utility_of(records, objective).at
    plan = ExponentialInABall().plan(
        Problem(objective_of(LogisticLoss(), n_records=2000), 2), Budget(1.0)
    )
    side = np.linspace(-1.0, 1.0, 81)
    exact = max(utility(np.array(p)) for p in product(side, repeat=2) if np.dot(p, p) <= 1.0)
    excess = [exact - utility(w) for w in drawn(records, objective, 1.0, 60)]
    # a mean of 60 with a spread of about its own size
    assert np.mean(excess) / 2000 < 2.5 * plan.excess_risk


def estimator(**told: Any) -> LogisticRegression:
    known: dict[str, Any] = {"row_norm": 1.0, "classes": [0, 1], "fit_intercept": False}
    return LogisticRegression(2.0, 0.0, mechanism=ExponentialInABall(), **{**known, **told})


def test_what_does_not_apply_says_what_does() -> None:
    with pytest.raises(CannotSolve, match=r"up to 4 weights.*noisy_gradient"):
        estimator(constraint=L2Ball(1.0)).plan(5)
    for constraint in (None, L1Ball(1.0)):
        with pytest.raises(CannotSolve, match="L2Ball"):
            estimator(constraint=constraint).plan(2)
    square = Problem(objective_of(SquaredLoss(math.inf, 1.0), label_range=(-1.0, 1.0)), 2)
    with pytest.raises(CannotSolve, match="unbounded"):
        ExponentialInABall().plan(square, Budget(1.0))
    # which takes the same ball
    plan = NoisyGradient().plan(
        Problem(Objective(LogisticLoss(), Bounds(), None, L2Ball(1.0)), 5), Budget(1.0, 1e-6)
    )
    assert plan.mechanism.name == "noisy_gradient"


def test_an_estimator_stays_in_its_ball_and_on_the_lattice() -> None:
    rng = np.random.default_rng(2)
    X = rng.uniform(-1, 1, (800, 2))
    model = estimator(constraint=L2Ball(3.0), n_records=800).fit(X, (X[:, 0] > 0).astype(int))
    assert np.linalg.norm(model.coef_) <= 3.0
    assert model.score(X, X[:, 0] > 0) > 0.85
    assert model.privacy_.epsilon(0.0) <= 2.0
    spacing = 2.0**-23
    assert (model.coef_ / spacing == np.round(model.coef_ / spacing)).all()


def test_half_the_sensitivity_is_found_by_a_replay(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = np.vstack([np.tile([[0.5, 0.5]], (50, 1)), [[-1.0, 0.0]]])
    labels = np.append(np.ones(50), 1)

    def fit(data: tuple[Array, Array]) -> object:
        # a plan is remembered, so each time another ball
        return estimator(constraint=L2Ball(radius)).fit(*data)

    data, neighbour, radius = (rows, labels), (rows[:-1], labels[:-1]), 0.5
    assert replay(fit, data, neighbour) >= 1
    radius = 0.4
    utility_sensitivity = RiskInBall.utility_sensitivity
    monkeypatch.setattr(
        RiskInBall, "utility_sensitivity", lambda self, facts: utility_sensitivity(self, facts) / 2
    )
    with pytest.raises(SensitivityViolation):
        replay(fit, data, neighbour)
