"""Tilted objectives in the coordinates of a second moment: no record does more than was charged."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import tacit.erm.mechanisms.objective_perturbation.mechanism as module
import tacit.queries.session as views_module
from tacit.erm import Objective, ObjectivePerturbation, Problem
from tacit.erm.losses import LogCoshLoss, LogisticLoss, SoftmaxLoss
from tacit.erm.mechanisms.objective_perturbation.adapt import (
    adapt_preconditioned,
    best_preconditioner,
    can_certify,
    may_precondition,
)
from tacit.erm.mechanisms.objective_perturbation.perturbation import (
    MOMENT,
    GaussianPerturbationSettings,
    minimizer_event,
)
from tacit.erm.minimization import run_plan
from tacit.erm.preconditioning import Preconditioner
from tacit.erm.solvers import Perturbed, minimize_certified
from tacit.linear_model import LinearRegression, LogisticRegression
from tacit.noise import Entry, recording
from tacit.privacy import Budget, Composed, Gaussian, Guarantee, PureEpsilon
from tacit.records import Bounds, MemoryRecords
from tacit.records.block import Coordinates
from tacit.records.reweighted import LeverageWeights, ReweightedRecords
from tacit.testing import replay

BUDGET = Budget(4.0, 1e-6)
LOSSES = [LogisticLoss(), LogCoshLoss(0.25, widens=True), SoftmaxLoss(3)]


def short_rows(n: int, d: int = 3, seed: int = 0) -> Any:
    """Rows a twentieth as long as they may be, along few directions."""
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, d)) @ np.diag(np.geomspace(0.1, 0.002, d))


def coordinates(d: int) -> Coordinates:
    rng = np.random.default_rng(1)
    turn = np.linalg.qr(rng.standard_normal((d, d)))[0]
    return Coordinates(turn @ np.diag(np.geomspace(0.05, 1.0, d)) @ turn.T)


def problem_of(loss: Any, n_features: int = 3, **known: Any) -> Problem:
    labels = (-1.0, 1.0) if loss.key == "log_cosh" else None
    return Problem(Objective(loss, Bounds(1.0, labels, **known)), n_features)


@pytest.mark.parametrize("intercept", [0.0, 0.25])
def test_a_long_record_counts_for_no_more_than_the_length_allows(intercept: float) -> None:
    rng = np.random.default_rng(0)
    rows = np.vstack([rng.standard_normal((50, 3)), np.eye(3) * 1e9, np.zeros((1, 3))])
    bounds, there, length = (
        Bounds(2.0, intercept=intercept),
        coordinates(4 if intercept else 3),
        0.1,
    )
    records = MemoryRecords(rows, None, bounds, None)
    weighted = ReweightedRecords(records, LeverageWeights(there, length))
    (a,) = weighted.sum(lambda b: (b.weighed(np.ones(b.n_rows)),))
    (points,) = records.sum(lambda b: (b.points(),))
    lengths = np.linalg.norm(points @ there.matrix, axis=1)
    assert np.all(a * lengths <= length)
    assert np.all(a * lengths**2 <= length**2)
    np.testing.assert_allclose(a, np.minimum(1.0, length / np.maximum(lengths, 1e-9)) ** 2, 1e-6)
    assert np.all(a[lengths < 0.99 * length] == 1.0)
    (every,) = weighted.every(7).sum(lambda b: (b.weighed(np.ones(b.n_rows)),))
    np.testing.assert_array_equal(every, a[::7])


def perturbed(loss: Any, d: int = 3) -> Perturbed:
    rng = np.random.default_rng(2)
    labels = {"logistic": rng.choice([-1.0, 1.0], 300), "softmax": rng.integers(0, 3, 300)}
    problem = problem_of(loss, d)
    targets = np.asarray(labels.get(loss.key, rng.uniform(-1, 1, 300)), dtype=float)
    records = MemoryRecords(rng.uniform(-0.5, 0.5, (300, d)), targets, problem.objective.bounds)
    there = coordinates(d)
    objective = problem.objective.with_regularization(2.0)
    b = rng.standard_normal(problem.shape)
    return Perturbed(
        objective, ReweightedRecords(records, LeverageWeights(there, 0.2)), b, coordinates=there
    )


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.key)
def test_gradients_there_are_those_of_the_value(loss: Any) -> None:
    function = perturbed(loss)
    v = np.random.default_rng(3).standard_normal(function.perturbation.shape)
    _, gradient = function.value_and_gradient(v)
    along = np.random.default_rng(4).standard_normal(v.shape)
    step = 1e-5
    ahead, behind = (function.value_and_gradient(v + s * step * along) for s in (1, -1))
    assert (ahead[0] - behind[0]) / (2 * step) == pytest.approx(np.vdot(gradient, along), rel=1e-5)
    bent = function.hessian_times(v, along)
    np.testing.assert_allclose((ahead[1] - behind[1]) / (2 * step), bent, rtol=1e-4, atol=1e-6)
    if loss.n_outputs == 1:
        whole = function.hessian(v) + np.diag(function.ridges(v))
        np.testing.assert_allclose(whole @ along, bent, rtol=1e-9)


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.key)
def test_the_certificate_is_of_the_gradient_there(loss: Any) -> None:
    function = perturbed(loss)
    v, certified = minimize_certified(function, np.zeros(function.perturbation.shape), 1e-6)
    assert float(np.linalg.norm(function.value_and_gradient(v)[1])) <= certified <= 1e-6


def planned(loss: Any, **known: Any) -> Any:
    return ObjectivePerturbation().plan(problem_of(loss, **known), BUDGET)


def cost(perturbation: GaussianPerturbationSettings, problem: Problem) -> Composed:
    """Return the event of a minimiser under a tilt."""
    return minimizer_event(perturbation, problem.objective, BUDGET, problem.facts(BUDGET.relation))


def price(
    perturbation: GaussianPerturbationSettings,
    there: Problem,
    preconditioner: Preconditioner,
    plan: Any,
) -> Composed:
    """Return what is asked for in other coordinates costs."""
    event = module._preconditioned_minimizer(there, perturbation, preconditioner, plan).event(
        plan.facts
    )
    assert event == cost(perturbation, there)
    return event


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.key)
@pytest.mark.parametrize("length", [1e-3, 0.1, 1.0])
@pytest.mark.parametrize("n_records", [10.0, 1e4, 1e8])
def test_noise_there_costs_no_more_than_was_planned(
    loss: Any, length: float, n_records: float
) -> None:
    plan = planned(loss)
    perturbation = GaussianPerturbationSettings.of(plan)
    preconditioner = Preconditioner(coordinates(3), length, 50.0, 0.05)
    there, after = adapt_preconditioned(perturbation, plan.problem, preconditioner, n_records)
    assert cost(perturbation, plan.problem).covers(price(after, there, preconditioner, plan))
    less = replace(after, noise_std=after.noise_std * 0.99)
    assert not cost(perturbation, plan.problem).covers(price(less, there, preconditioner, plan))
    event: Any = price(after, there, preconditioner, plan).events[0]
    charged: Any = cost(perturbation, plan.problem).events[0]
    grid = np.linspace(0.0, 8.0, 33)
    assert np.all(event.profile(grid) <= charged.profile(grid) * (1 + 1e-9))
    longest = there.objective.row_norm
    assert longest >= length * (1 - 1e-12)
    assert getattr(event, "row_norm", event.__dict__.get("lipschitz", 0.0)) >= (
        longest if hasattr(event, "row_norm") else longest * there.objective.loss.lipschitz
    ) * (1 - 1e-12)


@pytest.mark.parametrize("length", [1e-3, 0.3])
def test_a_large_planned_ridge_is_kept_there(length: float) -> None:
    """In units of squared rows: what the event asks for, where nothing else asks for more."""
    plan = planned(LogisticLoss())
    perturbation = replace(GaussianPerturbationSettings.of(plan), regularization=1e9)
    preconditioner = Preconditioner(coordinates(3), length, 50.0, 0.05)
    there, after = adapt_preconditioned(perturbation, plan.problem, preconditioner, 1e8)
    assert after.regularization == pytest.approx(1e9 * length**2)
    assert cost(perturbation, plan.problem).covers(price(after, there, preconditioner, plan))


MODELS: list[Any] = [
    LinearRegression(4.0, 1e-6, label_range=(-1.0, 1.0)),
    LinearRegression(4.0, 1e-6, label_range=(-1.0, 1.0), fit_intercept=False),
    LogisticRegression(4.0, 1e-6, classes=[0, 1]),
    LogisticRegression(4.0, 1e-6, classes=[0, 1], relation="replace", n_records=3000),
    LogisticRegression(4.0, 1e-6, classes=[0, 1, 2], mechanism="objective_perturbation"),
]


def replayed(model: Any, monkeypatch: pytest.MonkeyPatch, label: int = 1) -> list[Any]:
    """Return the coefficients of neighbours: one has a record where the others have nothing."""
    rows, labels = short_rows(3_000), np.arange(3_000) % 2
    rows[-1], labels[-1] = [0.0, 0.0, 1.0], label
    other_rows = rows.copy()
    other_rows[-1] = -rows[-1]
    found: list[Any] = []
    preconditioner = []
    honest = best_preconditioner

    def seen(*args: Any) -> Any:
        preconditioner.append(honest(*args))
        return preconditioner[-1]

    monkeypatch.setattr(module, "best_preconditioner", seen)

    def fit(which: int) -> None:
        if model.relation == "replace":
            found.append(
                model.set_params(random_state=0).fit([rows, other_rows][which], labels).coef_
            )
        else:
            n = 2_999 + which
            found.append(model.set_params(random_state=0).fit(rows[:n], labels[:n]).coef_)

    replay(fit, 0, 1)
    assert all(preconditioner), "the test is of turned coordinates"
    return found


@pytest.mark.parametrize("model", MODELS, ids=lambda m: f"{type(m).__name__}-{m.relation}")
def test_neighbours_meet_the_same_releases(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = replayed(model, monkeypatch)
    np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("model", [MODELS[0], MODELS[2]], ids=lambda m: type(m).__name__)
def test_a_record_that_counts_in_full_is_caught(
    model: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of two labels one pulls by half of what it may at least, and far more than was charged."""
    monkeypatch.setattr(
        views_module.Reweighted, "apply", lambda self, records, facts, _: (records, facts)
    )
    with pytest.raises(AssertionError):  # noqa: PT012
        replayed(model, monkeypatch, 0)
        replayed(model, monkeypatch, 1)


def test_the_moment_is_charged_whether_or_not_it_is_asked_for() -> None:
    plan = planned(LogisticLoss())
    assert Gaussian(plan.settings["moment_noise_multiplier"]) in dict(plan.event.leaves())
    assert 3.9 < Guarantee(plan.event).epsilon(1e-6) <= 4.0
    for n in (5, 3_000):
        records = MemoryRecords(short_rows(n), np.ones(n), plan.problem.objective.bounds)
        assert run_plan(plan, records, None).event == plan.event


def test_an_uncharged_moment_is_withheld(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = planned(LogisticLoss())
    multiplier = MOMENT.noise_multiplier(BUDGET)
    monkeypatch.setattr(type(MOMENT), "noise_multiplier", lambda *_: multiplier / 3)
    records = MemoryRecords(short_rows(3_000), np.ones(3_000), plan.problem.objective.bounds)
    with recording() as tape, pytest.raises(RuntimeError, match="'second moment' would release"):
        run_plan(plan, records, None)
    (count,) = tape.entries  # nothing else was
    assert isinstance(count, Entry)
    assert count.event == Gaussian(plan.settings["count_noise_multiplier"])


def test_it_is_asked_for_where_it_can_be_seen() -> None:
    problem = problem_of(LogisticLoss())
    assert may_precondition(problem, BUDGET, 1e4)
    assert not may_precondition(problem, BUDGET, 5)
    assert not may_precondition(problem, Budget(4.0, 0.0), 1e4)
    assert not may_precondition(replace(problem, even_ridge=True), BUDGET, 1e4)
    assert not may_precondition(replace(problem, n_features=5_000), BUDGET, 1e9)
    pure = ObjectivePerturbation().plan(problem, Budget(4.0, 0.0))
    assert all(not isinstance(leaf, Gaussian) for leaf, _ in pure.event.leaves())
    assert any(isinstance(leaf, PureEpsilon) for leaf, _ in pure.event.leaves())


def test_even_rows_are_left_alone() -> None:
    plan = planned(LogisticLoss())
    even = Preconditioner(Coordinates(math.sqrt(0.1) * np.eye(3)), 1.0, 10.0, 0.3)
    perturbation = GaussianPerturbationSettings.of(plan)
    assert best_preconditioner(even, perturbation, plan.problem, 1e9) is None
    short = replace(even, row_norm=0.1)
    assert best_preconditioner(short, perturbation, plan.problem, 1e3) is not None


def test_rows_shorter_than_declared_cost_little() -> None:
    """With rows a tenth as long as they may be, noise is for rows as long as they are."""
    rng = np.random.default_rng(0)
    rows = 0.1 * rng.standard_normal((20_000, 10)) / math.sqrt(10)
    scores = rows @ (rng.standard_normal(10) * 10)
    labels = np.clip(0.3 * scores + 0.1 * rng.standard_normal(20_000), -1, 1)
    best = np.linalg.lstsq(rows, labels, rcond=None)[0]
    least = float(np.mean((rows @ best - labels) ** 2))

    def excess(mechanism: Any) -> float:
        found = []
        for _ in range(3):
            model = LinearRegression(
                1.0, 1e-6, label_range=(-1.0, 1.0), row_norm=1.0, mechanism=mechanism
            ).fit(rows, labels)
            found.append(float(np.mean((model.predict(rows) - labels) ** 2)) / least - 1)
        return float(np.mean(found))

    assert excess("auto") < 0.3 < excess("output_perturbation")


def test_rows_are_left_alone_where_there_is_no_room_for_a_certificate() -> None:
    plan = planned(LogisticLoss())
    perturbation = GaussianPerturbationSettings.of(plan)
    preconditioner = Preconditioner(coordinates(3), 0.1, 50.0, 0.05)
    _, after = adapt_preconditioned(perturbation, plan.problem, preconditioner, 1e4)
    assert can_certify(after, plan.problem, preconditioner, BUDGET, 1e4)
    assert not can_certify(after, plan.problem, preconditioner, BUDGET, 1e8)


@pytest.mark.slow
@pytest.mark.parametrize(("n", "d"), [(30_000, 40), (150_000, 20), (400_000, 10)])
def test_many_uneven_records_are_certified_one_way_or_the_other(n: int, d: int) -> None:
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((n, d)) * np.geomspace(0.3, 3e-4, d) / math.sqrt(d)
    labels = (rows.sum(axis=1) + 0.05 * rng.standard_normal(n) > 0).astype(int)
    for epsilon in (0.1, 1.0, 8.0):
        LogisticRegression(epsilon, 1e-6, row_norm=1.0, classes=[0, 1]).fit(rows, labels)
        LinearRegression(epsilon, 1e-6, row_norm=1.0, label_range=(-1, 1)).fit(rows, labels)


@pytest.mark.parametrize(("ridge", "noise"), [(1e-3, 1.0), (1.0, 0.99)])
@pytest.mark.parametrize("model", [LogisticRegression, LinearRegression])
def test_less_ridge_or_noise_than_was_paid_for_is_withheld(
    model: Any, ridge: float, noise: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def cheaper(*facts: Any) -> Any:
        there, perturbation = adapt_preconditioned(*facts)
        asked.append(there)
        lam = ridge * perturbation.regularization
        less = replace(perturbation.with_noise(noise * perturbation.noise), regularization=lam)
        return there.with_regularization(lam), less

    monkeypatch.setattr(module, "adapt_preconditioned", cheaper)
    rows = short_rows(20_000)
    known = {"classes": [False, True]} if model is LogisticRegression else {"label_range": (-1, 1)}
    with pytest.raises(RuntimeError, match=r"'weights' would release .* at this price or less"):
        model(4.0, 1e-6, row_norm=1.0, **known).fit(rows, rows[:, 0] > 0)
    assert asked
