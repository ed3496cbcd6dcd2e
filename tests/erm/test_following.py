"""What follows from the number of records costs no more than was planned, and pays."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tacit.erm.objective_perturbation as module
from tacit.erm import Objective, ObjectivePerturbation, Problem
from tacit.erm.following import covers, following
from tacit.erm.losses import HuberLoss, LogCoshLoss, LogisticLoss, SoftmaxLoss
from tacit.erm.minimizer import minimize_certified
from tacit.erm.perturbed import Perturbed
from tacit.erm.tilts import GaussianTilt, SphereTilt, tilt_in
from tacit.privacy import Budget, Guarantee, LogCoshObjective, PureObjective, Relation
from tacit.records import Bounds, MemoryRecords

DELTAS = [1e-6, 0.0]


def followed(
    n_records: float, *, widens: bool = True, intercept: float = 0.0, delta: float = 1e-6
) -> tuple[Any, Any, Problem, Problem]:
    """Return the planned tilt and problem, and those that follow from the count."""
    bounds = Bounds(label_range=(-1.0, 1.0), intercept=intercept)
    loss = LogCoshLoss(0.25, widens=widens)
    plan = ObjectivePerturbation().plan(Problem(Objective(loss, bounds), 4), Budget(1.0, delta))
    tilt = tilt_in(plan)
    problem, after = following(tilt, plan.problem, n_records)
    return tilt, after, plan.problem, problem


@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize("intercept", [0.0, 0.25])
@pytest.mark.parametrize("n_records", [1.0, 300.0, 1e3, 1e5, 1e9])
def test_following_the_count_costs_no_more_than_was_planned(
    n_records: float, intercept: float, delta: float
) -> None:
    planned, after, before, problem = followed(n_records, intercept=intercept, delta=delta)
    event: Any = after.main(problem.objective, Budget(1.0, delta))
    size, scale = math.hypot(1.0, intercept), after.row_scale
    knot = problem.objective.loss.lipschitz
    # of rows as long as they count: L and beta are no smaller than those of the scaled records
    assert event.lipschitz >= knot * math.hypot(scale, intercept)
    assert covers(planned, before.objective, after, problem.objective)
    if delta:
        charged = LogCoshObjective(
            0.25 * size, size**2, planned.regularization, planned.noise_std, Relation.ADD_REMOVE
        )
        grid = np.linspace(0.0, 5.0, 51)
        assert np.all(event.profile(grid) <= charged.profile(grid) * (1 + 1e-9))
        assert event.smoothness >= scale**2 + intercept**2
    else:
        pure = PureObjective(0.25 * size, size**2, planned.regularization, planned.noise_radius)
        assert event.pure_epsilon() <= pure.pure_epsilon() * (1 + 1e-12)
        assert event.hessian_trace >= scale**2 + intercept**2


@pytest.mark.parametrize("delta", DELTAS)
def test_few_records_count_shorter_beside_the_intercept(delta: float) -> None:
    _, few, _, _ = followed(5.0, intercept=0.25, delta=delta)
    _, many, _, _ = followed(1e6, intercept=0.25, delta=delta)
    assert few.row_scale < 0.25 < many.row_scale
    # the constant gets far less noise, the rows' weights more, and a ridge that holds them
    alone = followed(5.0, delta=delta)[1]
    assert few.noise < 0.4 * alone.noise
    assert few.steadying > 5.0
    assert alone.row_scale == 1.0


@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize("n_records", [3, 300, 10**6])
@pytest.mark.parametrize("loss", [LogisticLoss(), LogCoshLoss(0.25, widens=True), SoftmaxLoss(3)])
def test_what_follows_from_a_public_count_is_within_the_budget(
    loss: Any, n_records: int, delta: float
) -> None:
    labels = (-1.0, 1.0) if loss.key == "log_cosh" else None
    bounds = Bounds(2.0, labels, n_records=n_records, intercept=0.5)
    plan = ObjectivePerturbation().plan(Problem(Objective(loss, bounds), 4), Budget(1.0, delta))
    # 300 records are enough to ask for a second moment first
    asks = plan.settings.get("moment_noise_multiplier", 0.0) > 0.0
    assert asks == (n_records > 3 and delta > 0.0)
    assert plan.settings["row_scale"] < 1.0 or n_records == 10**6 or asks
    # a ridge that grew with a wider slope leaves some of a pure epsilon unspent
    assert (0.9 if delta else 0.8) < Guarantee(plan.event).epsilon(delta) <= 1.0 + 1e-9


def test_scaled_rows_are_the_same_as_shorter_ones() -> None:
    """b / a and ridge / a^2 on weights of rows are b and ridge on those of rows a times as long."""
    scale, bounds = 0.3, Bounds(label_range=(-1.0, 1.0), intercept=0.25)
    rng = np.random.default_rng(0)
    rows, labels = rng.uniform(-0.5, 0.5, (200, 3)), rng.uniform(-1, 1, 200)
    b, ridge = 5 * rng.standard_normal(4), 7.0
    objective = Objective(LogCoshLoss(0.25), bounds, ridge)
    scales = Problem(objective, 3).columns(scale, 1.0)
    tilted = Perturbed(
        objective, MemoryRecords(rows, labels, bounds), b / scales, ridge / scale**2 - ridge
    )
    shorter = Perturbed(objective, MemoryRecords(scale * rows, labels, bounds), b)
    long, short = (minimize_certified(p, np.zeros(4), 1e-6)[0] for p in (tilted, shorter))
    np.testing.assert_allclose(long, scales * short, rtol=1e-6)


@pytest.mark.parametrize("delta", DELTAS)
def test_many_records_widen_the_loss_and_few_raise_the_ridge(delta: float) -> None:
    planned, many, _, problem = followed(1e6, delta=delta)
    assert problem.objective.lipschitz > 5 * 0.25
    assert many.steadying == 0.0
    _, few, _, problem = followed(10.0, delta=delta)
    assert problem.objective.lipschitz == 0.25
    assert few.steadying > planned.regularization
    assert followed(1e6, widens=False, delta=delta)[3].objective.lipschitz == 0.25


def test_sphere_noise_lets_the_square_run_to_the_end_of_its_slope() -> None:
    """Only the greatest curvature costs there; no label is further from a score than its range."""
    assert followed(1e4, delta=0.0)[3].objective.loss.key == "huber"
    assert followed(1e12, delta=0.0)[3].objective.loss == HuberLoss(2.0)
    assert followed(1e4, delta=1e-6)[3].objective.loss.key == "log_cosh"


@pytest.mark.parametrize("delta", DELTAS)
def test_noise_that_follows_the_count_but_costs_more_is_withheld(
    delta: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    def halved(tilt: Any, problem: Problem, *counted: float) -> tuple[Problem, Any]:
        problem, tilt = following(tilt, problem, *counted)
        return problem, tilt.with_noise(tilt.noise / 2)

    bounds = Bounds()
    problem = Problem(Objective(LogisticLoss(), bounds), 2)
    plan = ObjectivePerturbation().plan(problem, Budget(1.0, delta))
    records = MemoryRecords(np.eye(2), np.ones(2), bounds)
    monkeypatch.setattr(module, "following", halved)
    # of two records the count may say that there are a hundred, which are turned
    monkeypatch.setattr(module, "may_turn", lambda *_: False)
    with pytest.raises(RuntimeError, match="costs more than was planned"):
        plan.mechanism.solve(plan, records, None)


@pytest.mark.parametrize("delta", DELTAS)
def test_nothing_that_costs_more_is_covered(delta: float) -> None:
    planned, after, before, problem = followed(1e5, delta=delta)
    wide, old = problem.objective, before.objective
    assert not covers(planned, old, after.with_noise(after.noise * 0.99), wide)
    assert not covers(planned, old, replace(after, regularization=planned.regularization / 2), wide)
    steeper = replace(wide, loss=HuberLoss(1.01 * wide.lipschitz))
    assert not covers(planned, old, after, steeper)
    longer = replace(wide, bounds=replace(wide.bounds, row_norm=1.1))
    assert not covers(planned, old, after, longer)


@pytest.mark.parametrize("what", ["smoothness", "hessian_trace", "hessian_rank"])
def test_a_loss_that_bends_more_is_not_covered(what: str) -> None:
    class Bent(SoftmaxLoss):
        pass

    more: Any = getattr(SoftmaxLoss(3), what) * (1 if what == "hessian_rank" else 1.01)
    setattr(Bent, what, property(lambda self: more + (what == "hessian_rank")))
    problem = Problem(Objective(SoftmaxLoss(3), Bounds()), 4)
    plan = ObjectivePerturbation().plan(problem, Budget(1.0, 1e-6))
    tilt, objective = tilt_in(plan), plan.problem.objective
    assert covers(tilt, objective, tilt, objective)
    assert not covers(tilt, objective, tilt, replace(objective, loss=Bent(3)))


@pytest.mark.parametrize("what", ["smoothness", "hessian_trace"])
def test_a_weaker_ridge_is_not_covered_by_either_bound_on_curvature(what: str) -> None:
    bent = {"smoothness": 0.0, "hessian_trace": 0.0, what: 1.0}
    loss = SimpleNamespace(hessian_rank=1)
    objective: Any = SimpleNamespace(bounds=Bounds(), lipschitz=1.0, loss=loss, **bent)
    tilt = GaussianTilt(2.0, 8.0)
    assert covers(tilt, objective, tilt, objective)
    weaker = replace(tilt, regularization=math.nextafter(2.0, 0.0))
    assert not covers(tilt, objective, weaker, objective)


@pytest.mark.parametrize("n_records", [3, 300, 30_000])
@pytest.mark.parametrize("loss", [LogisticLoss(), LogCoshLoss(0.25, widens=True)])
def test_an_even_ridge_is_one_for_all_weights_and_within_the_budget(
    loss: Any, n_records: int
) -> None:
    """As the laws of standard errors take it: one ridge, one noise, rows as long as they are."""
    labels = (-1.0, 1.0) if loss.key == "log_cosh" else None
    bounds = Bounds(2.0, labels, n_records=n_records, intercept=0.5)
    problem = Problem(Objective(loss, bounds), 4, even_ridge=True)
    plan = ObjectivePerturbation().plan(problem, Budget(1.0, 1e-6))
    tilt = tilt_in(plan)
    assert tilt.row_scale == 1.0
    assert tilt.steadying == 0.0
    assert plan.problem.objective.regularization == tilt.regularization
    assert Guarantee(plan.event).epsilon(1e-6) <= 1.0 + 1e-9
    private = replace(problem, objective=Objective(loss, replace(bounds, n_records=None)))
    planned = ObjectivePerturbation().plan(private, Budget(1.0, 1e-6))
    wide, after = following(tilt_in(planned), planned.problem, n_records)
    assert covers(tilt_in(planned), planned.problem.objective, after, wide.objective)
    assert (after.row_scale, after.steadying) == (1.0, 0.0)


@pytest.mark.parametrize("delta", DELTAS)
def test_shorter_rows_need_a_further_ridge(delta: float) -> None:
    """a^2 (lam + further) >= lam on weights of rows a times as long, or the promise is void."""
    planned, after, before, problem = followed(5.0, intercept=0.25, delta=delta)
    wide, old, budget = problem.objective, before.objective, Budget(1.0, delta)
    assert after.row_scale < 0.25
    assert covers(planned, old, after, wide)
    least = after.regularization / after.row_scale**2 - after.regularization
    for further in (0.0, least / 2, least * (1 - 1e-9)):
        less = replace(after, steadying=further)
        assert not covers(planned, old, less, wide)
        # and its event says so
        costs = [Guarantee(t.main(wide, budget)).epsilon(delta) for t in (less, after)]
        assert costs[0] > costs[1]
    assert covers(planned, old, replace(after, steadying=least * (1 + 1e-12)), wide)


@pytest.mark.parametrize("loss", [LogisticLoss(), LogCoshLoss(0.25, widens=True), SoftmaxLoss(3)])
def test_no_rounding_makes_what_follows_cost_more(loss: Any) -> None:
    labels = (-1.0, 1.0) if loss.key == "log_cosh" else None
    scales = set()
    for delta, row_norm, intercept in itertools.product(DELTAS, (0.7, 3.0), (0.01, 0.3, 1.1)):
        bounds = Bounds(row_norm, labels, intercept=intercept)
        problem = Problem(Objective(loss, bounds), 4)
        plan = ObjectivePerturbation().plan(problem, Budget(1.0, delta))
        for n_records in np.geomspace(1.0, 1e5, 12):
            wide, after = following(tilt_in(plan), plan.problem, float(n_records))
            assert covers(tilt_in(plan), plan.problem.objective, after, wide.objective)
            held = (after.regularization + after.steadying) * after.row_scale**2
            assert held >= after.regularization
            scales.add(after.row_scale)
    assert len(scales) > 5


def problem_of(loss: Any, n_features: int, **more: Any) -> Problem:
    labels = (-1.0, 1.0) if loss.key == "log_cosh" else None
    return Problem(Objective(loss, Bounds(label_range=labels)), n_features, **more)


@pytest.mark.parametrize("loss", [LogisticLoss(), LogCoshLoss(0.25, widens=True)])
def test_sphere_noise_is_taken_where_it_is_the_smaller(loss: Any) -> None:
    """Its standard deviation is sqrt(d + 1) L / epsilon, that of Gaussian noise L / mu."""

    def taken(n_features: int, epsilon: float, **more: Any) -> Any:
        problem = problem_of(loss, n_features, **more)
        return tilt_in(ObjectivePerturbation().plan(problem, Budget(epsilon, 1e-6)))

    few = taken(8, 100.0)
    assert isinstance(few, SphereTilt)
    gaussian = taken(8, 100.0, even_ridge=True)  # standard errors know Gaussian noise alone
    assert isinstance(gaussian, GaussianTilt)
    assert few.std(8) < gaussian.std(8) / 2
    assert isinstance(taken(3_000, 100.0), GaussianTilt)
    # whoever composes small budgets pays far less for Gaussian noise
    assert isinstance(taken(1, 1.0), GaussianTilt)


def test_a_pure_plan_is_within_a_budget_with_delta() -> None:
    plan = ObjectivePerturbation().plan(problem_of(LogisticLoss(), 8), Budget(20.0, 1e-6))
    assert isinstance(tilt_in(plan), SphereTilt)
    assert 19.9 < Guarantee(plan.event).epsilon(0.0) <= 20.0
    assert Guarantee(plan.event).epsilon(1e-6) <= 20.0
