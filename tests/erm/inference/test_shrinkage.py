"""What is noise is taken off released weights, what is not stays, and only releases decide."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import tacit.erm.mechanisms.noisy_gradient as noisy_gradient
import tacit.erm.mechanisms.objective_perturbation.mechanism as objective_perturbation
from tacit.erm import L2Ball, NoisyGradient, Objective, ObjectivePerturbation, Problem
from tacit.erm.inference.estimator_law import DescentLaw, Law, PerturbedMinimizerLaw
from tacit.erm.inference.shrinkage import can_shrink, shrunk
from tacit.erm.losses import HingeLoss, LogCoshLoss, LogisticLoss, Loss, SoftmaxLoss
from tacit.erm.minimization import run_plan
from tacit.linear_model import LinearRegression, LogisticRegression
from tacit.privacy import Budget, Gaussian, Relation
from tacit.queries import (
    Facts,
    GaussianNoise,
    HessianTrace,
    LaplaceNoise,
    Noise,
    Session,
    Slot,
)
from tacit.records import Bounds, MemoryRecords
from tacit.testing import replay

Array = Any
D, N = 40, 1000
BOUNDS = Bounds(label_range=(-1.0, 1.0), intercept=0.25)
ROWS = np.tile(np.eye(D), (N // D, 1))  # H = N / D in every direction
RIDGE, STD = 50.0, 30.0
NOISE = STD / (N / D + RIDGE)  # of a weight


def law(loss: Loss | None = None, bounds: Bounds = BOUNDS) -> PerturbedMinimizerLaw:
    return PerturbedMinimizerLaw(
        Objective(loss or LogCoshLoss(100.0), bounds), 1.0, None, RIDGE, STD, 0.0
    )


def kept(weights: Array, of: Law | None = None, bounds: Bounds = BOUNDS) -> Array:
    records = MemoryRecords(ROWS, np.zeros(N), bounds)
    facts, exactly = Facts(bounds, D, Relation.ADD_REMOVE), GaussianNoise(1e-3)
    event = exactly.event(facts)
    session = Session(records, facts, event, {"trace": Slot(event)})
    found = shrunk(weights, of or law(bounds=bounds), session, exactly, "trace", N).weights
    return session.release(found).value


def drawn(size: float, rng: np.random.Generator) -> tuple[Array, Array]:
    """Return the weights that records ask for, and those that are released."""
    truth = rng.standard_normal(D)
    truth *= size * NOISE * math.sqrt(D) / np.linalg.norm(truth)
    share = (N / D) / (N / D + RIDGE)
    return truth, np.append(share * truth + NOISE * rng.standard_normal(D), 7.0)


def test_noise_alone_is_taken_off_and_the_intercept_stays() -> None:
    rng = np.random.default_rng(0)
    lengths = []
    for _ in range(50):
        _, released = drawn(0.0, rng)
        after = kept(released)
        assert after[-1] == 7.0
        lengths.append(np.linalg.norm(after[:-1]) / np.linalg.norm(released[:-1]))
    # a ridge that left a third of the truth lets three times as much stand of what is not noise
    assert np.mean(lengths) < 0.2
    assert np.median(lengths) == 0.0


def test_what_is_far_above_the_noise_stays_as_it_is() -> None:
    _, released = drawn(30.0, np.random.default_rng(0))
    np.testing.assert_array_equal(kept(released), released)


@pytest.mark.parametrize("size", [0.0, 0.5, 1.0, 3.0, 10.0])
def test_the_error_is_not_made_larger(size: float) -> None:
    rng = np.random.default_rng(1)
    before, after = 0.0, 0.0
    for _ in range(60):
        truth, released = drawn(size, rng)
        before += float(np.sum((released[:-1] - truth) ** 2))
        after += float(np.sum((kept(released)[:-1] - truth) ** 2))
    # a deviation more than the mean is taken for noise, which costs a little in between
    assert after <= 1.1 * before
    if size == 0.0:
        assert after < 0.2 * before


def test_half_is_left_of_classes() -> None:
    bounds = Bounds(intercept=0.25)
    released = np.full(D + 1, 1e-9)
    after = kept(released, law(LogisticLoss(), bounds), bounds)
    np.testing.assert_allclose(after[:-1], 0.5 * released[:-1])
    assert after[-1] == released[-1]


def test_weights_that_are_0_stay_0() -> None:
    np.testing.assert_array_equal(kept(np.zeros(D + 1)), np.zeros(D + 1))


LAWS = [
    law(),
    *(
        DescentLaw(law().objective, 1.0, None, r, 2.0, t, 1 / 1100)
        for r in (0, 99)
        for t in (10, 90)
    ),
]


@pytest.mark.parametrize("of", LAWS)
def test_the_variance_is_convex_and_falls(of: Law) -> None:
    """So that equal curvatures have the least noise."""
    variances = np.array([of.variance(float(h)) for h in np.linspace(1.0, 1000.0, 200)])
    assert np.all(np.diff(variances) < 0.0)
    second = np.diff(variances, 2)
    assert np.all(second > -1e-3 * np.max(second))


@pytest.mark.parametrize("loss", [LogCoshLoss(0.5), LogisticLoss(), SoftmaxLoss(3)])
@pytest.mark.parametrize("relation", [Relation.ADD_REMOVE, Relation.REPLACE])
def test_a_record_moves_the_trace_by_its_sensitivity_at_most(loss: Any, relation: Relation) -> None:
    """And by all of it where it is as long, and its loss as bent, as they may be."""
    bounds = Bounds(2.0, intercept=0.5, label_range=(-1.0, 1.0) if loss.key == "log_cosh" else None)
    rows = np.vstack([np.zeros((9, 3)), [[1e6, 0.0, 0.0]]])
    shape = (4, 3) if loss.key == "softmax" else (4,)
    statistic = HessianTrace(Objective(loss, bounds), np.zeros(shape))
    facts = Facts(bounds, 3, relation)
    labels = np.ones(10) if loss.key == "logistic" else np.zeros(10)

    def trace(rows: Array, labels: Array) -> float:
        return statistic.total(MemoryRecords(rows, labels, bounds), facts)

    more = trace(rows, labels)
    fewer = (
        trace(rows[:9], labels[:9]) if relation is Relation.ADD_REMOVE else trace(0 * rows, labels)
    )
    stated = statistic.sensitivity(facts).value
    assert 0.999 * stated < abs(more - fewer) <= stated


FITS: list[Any] = [
    LinearRegression(1.0, 1e-6, label_range=(-1.0, 1.0)),
    LinearRegression(1.0, 1e-6, label_range=(-1.0, 1.0), mechanism="noisy_gradient"),
    LogisticRegression(1.0, 1e-6, classes=[0, 1]),
    LinearRegression(1.0, 0.0, label_range=(-1.0, 1.0)),
    LinearRegression(20.0, 1e-6, label_range=(-1.0, 1.0)),
    LogisticRegression(1.0, 0.0, classes=[0, 1]),
    LogisticRegression(1.0, 1e-6, classes=[0, 1, 2], mechanism="objective_perturbation"),
]


def replayed(model: Any) -> list[Array]:
    """Return the coefficients of neighbours that met the same releases."""
    rows, labels = np.random.default_rng(0).uniform(-1, 1, (60, 4)), np.arange(60) % 2
    found = []

    def fit(n: int) -> None:
        fitted = model.set_params(random_state=0).fit(rows[:n], labels[:n])
        found.append(np.append(fitted.coef_, fitted.plan_.excess_risk))

    assert replay(fit, 59, 60) >= 3
    return found


@pytest.mark.parametrize("model", FITS, ids=str)
def test_what_is_taken_off_follows_from_releases(
    model: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = replayed(model)
    np.testing.assert_array_equal(one, other)

    def peeking(weights: Array, law: Law, session: Session, *rest: Any) -> Any:
        honest = shrunk(weights, law, session, *rest)
        return honest._replace(weights=weights * (1 - 1e-6 * session._records.count()))

    for mechanism in (objective_perturbation, noisy_gradient):
        monkeypatch.setattr(mechanism, "shrunk", peeking)
    one, other = replayed(model)
    assert not np.array_equal(one, other)


@pytest.mark.parametrize("delta", [1e-6, 0.0])
@pytest.mark.parametrize("mechanism", [ObjectivePerturbation(), NoisyGradient()])
def test_an_uncharged_trace_is_refused(
    mechanism: Any, delta: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tenth of the noise costs a hundred times what was planned; no record is read for it."""
    if delta == 0.0 and mechanism.name == "noisy_gradient":
        pytest.skip("has no pure form")

    def cheated(weights: Array, law: Law, session: Session, noise: Noise, *rest: Any) -> Any:
        less: Noise
        if isinstance(noise, GaussianNoise):
            less = GaussianNoise(noise.multiplier / 20)
        else:
            less = LaplaceNoise(noise.epsilon * 20)
        return shrunk(weights, law, session, less, *rest)

    def read(self: HessianTrace, records: Any, facts: Facts) -> float:
        raise AssertionError("read")

    for kind in (objective_perturbation, noisy_gradient):
        monkeypatch.setattr(kind, "shrunk", cheated)
    monkeypatch.setattr(HessianTrace, "total", read)
    problem = Problem(Objective(LogisticLoss(), Bounds()), 4)
    plan = mechanism.plan(problem, Budget(1.0, delta))
    with pytest.raises(RuntimeError, match="what was paid for it"):
        run_plan(plan, MemoryRecords(np.eye(4), np.ones(4), Bounds()))


def test_the_trace_is_charged() -> None:
    plan = ObjectivePerturbation().plan(
        Problem(Objective(LogisticLoss(), Bounds()), 4), Budget(1.0, 1e-6)
    )
    assert Gaussian(plan.settings["trace_noise_multiplier"]) in dict(plan.event.leaves())


def test_what_was_asked_for_is_not_shrunk() -> None:
    free = Objective(LogisticLoss(), Bounds())
    assert can_shrink(Problem(free, 3))
    assert not can_shrink(Problem(free.with_regularization(1.0), 3))
    assert not can_shrink(Problem(free, 3, even_ridge=True))  # standard errors need the law
    assert not can_shrink(Problem(free, 2))  # Stein's paradox begins with three
    assert not can_shrink(Problem(Objective(HingeLoss(), Bounds()), 3))
    assert not can_shrink(Problem(Objective(LogisticLoss(), Bounds(), None, L2Ball(1.0)), 3))


def test_standard_errors_are_of_weights_as_released() -> None:
    rows, labels = np.random.default_rng(0).uniform(-1, 1, (60, 4)), np.arange(60) % 2
    model = LogisticRegression(1.0, 1e-6, classes=[0, 1], inference=0.1).fit(rows, labels)
    assert model.plan_.settings["trace_noise_multiplier"] == 0.0
    assert model.plan_.settings["row_scale"] == 1.0


def test_many_records_lose_nothing() -> None:
    rng = np.random.default_rng(0)
    rows = rng.uniform(-0.5, 0.5, (200_000, 3))
    labels = rows @ [0.5, -0.5, 0.2]
    model = LinearRegression(1.0, 1e-6, label_range=(-1.0, 1.0)).fit(rows, labels)
    np.testing.assert_allclose(model.coef_, [0.5, -0.5, 0.2], atol=5e-3)
