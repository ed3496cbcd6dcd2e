"""What follows from the number of records costs no more than was planned, and pays."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import tacit.erm.mechanisms.objective_perturbation.mechanism as module
from tacit.erm import Objective, ObjectivePerturbation, Problem
from tacit.erm.losses import HuberLoss, LogCoshLoss, LogisticLoss, SmoothHingeLoss, SoftmaxLoss
from tacit.erm.mechanisms.objective_perturbation.adapt import adapt_to_count
from tacit.erm.mechanisms.objective_perturbation.perturbation import (
    GaussianPerturbationSettings,
    PerturbationSettings,
    SpherePerturbationSettings,
    minimizer_event,
    perturbation_of,
)
from tacit.erm.minimization import run_plan
from tacit.erm.solvers import Perturbed, minimize_certified
from tacit.noise import Entry, recording
from tacit.privacy import (
    Budget,
    Composed,
    Guarantee,
    LogCoshObjective,
    PureObjective,
    Relation,
)
from tacit.queries import Facts
from tacit.records import Bounds, MemoryRecords

DELTAS = [1e-6, 0.0]


def cost(perturbation: PerturbationSettings, objective: Objective, delta: float) -> Composed:
    """Return the event of a minimiser under a tilt: what is charged for it, and its price."""
    facts, budget = Facts(objective.bounds, 4, Relation.ADD_REMOVE), Budget(1.0, delta)
    event = minimizer_event(perturbation, objective, budget, facts)
    assert module._minimizer(Problem(objective, 4), perturbation, budget).event(facts) == event
    return event


def covers(
    planned: PerturbationSettings,
    objective: Objective,
    other: PerturbationSettings,
    wider: Objective,
    delta: float,
) -> bool:
    """Return whether the slot of a plan allows a minimiser under another tilt."""
    return cost(planned, objective, delta).covers(cost(other, wider, delta))


def followed(
    n_records: float, *, widens: bool = True, intercept: float = 0.0, delta: float = 1e-6
) -> tuple[Any, Any, Problem, Problem]:
    """Return the planned tilt and problem, and those that follow from the count."""
    bounds = Bounds(label_range=(-1.0, 1.0), intercept=intercept)
    loss = LogCoshLoss(0.25, widens=widens)
    plan = ObjectivePerturbation().plan(Problem(Objective(loss, bounds), 4), Budget(1.0, delta))
    perturbation = perturbation_of(plan)
    problem, after = adapt_to_count(perturbation, plan.problem, n_records)
    return perturbation, after, plan.problem, problem


@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize("intercept", [0.0, 0.25])
@pytest.mark.parametrize("n_records", [1.0, 300.0, 1e3, 1e5, 1e9])
def test_following_the_count_costs_no_more_than_was_planned(
    n_records: float, intercept: float, delta: float
) -> None:
    planned, after, before, problem = followed(n_records, intercept=intercept, delta=delta)
    event: Any = cost(after, problem.objective, delta).events[0]
    size, scale = math.hypot(1.0, intercept), after.row_scale
    knot = problem.objective.loss.lipschitz
    # of rows as long as they count: L and beta are no smaller than those of the scaled records
    assert event.lipschitz >= knot * math.hypot(scale, intercept)
    assert covers(planned, before.objective, after, problem.objective, delta)
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
    assert few.slope_ridge > 5.0
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
    assert many.slope_ridge == 0.0
    _, few, _, problem = followed(10.0, delta=delta)
    assert problem.objective.lipschitz == 0.25
    assert few.slope_ridge > planned.regularization
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
    def halved(perturbation: Any, problem: Problem, *counted: float) -> tuple[Problem, Any]:
        problem, perturbation = adapt_to_count(perturbation, problem, *counted)
        return problem, perturbation.with_noise(perturbation.noise / 2)

    bounds = Bounds()
    problem = Problem(Objective(LogisticLoss(), bounds), 2)
    plan = ObjectivePerturbation().plan(problem, Budget(1.0, delta))
    records = MemoryRecords(np.eye(2), np.ones(2), bounds)
    monkeypatch.setattr(module, "adapt_to_count", halved)
    # of two records the count may say that there are a hundred, which are turned
    monkeypatch.setattr(module, "may_precondition", lambda *_: False)
    refused = r"'weights' would release .* at this price or less"
    with recording() as tape, pytest.raises(RuntimeError, match=refused):
        run_plan(plan, records, None)
    (count,) = tape.entries  # nothing else was
    assert isinstance(count, Entry)
    assert count.event == plan.slots()["count"].event


@pytest.mark.parametrize("delta", DELTAS)
def test_nothing_that_costs_more_is_covered(delta: float) -> None:
    planned, after, before, problem = followed(1e5, delta=delta)
    wide, old = problem.objective, before.objective
    assert covers(planned, old, after, wide, delta)
    assert not covers(planned, old, after.with_noise(after.noise * 0.99), wide, delta)
    weaker = replace(after, regularization=planned.regularization / 2)
    assert not covers(planned, old, weaker, wide, delta)
    # of the same kind, so that it is the slope that is refused
    kind: Any = type(wide.loss)
    steeper = replace(wide, loss=kind(1.01 * wide.lipschitz))
    assert not covers(planned, old, after, steeper, delta)
    other = replace(wide, loss=HuberLoss(1.01 * wide.lipschitz))
    assert not covers(planned, old, after, other, delta)
    longer = replace(wide, bounds=replace(wide.bounds, row_norm=1.1))
    assert not covers(planned, old, after, longer, delta)


# What the event of a loss says of how it may bend, by the law of the noise.
BENT: list[tuple[type[Any], float, str, float]] = [
    (LogCoshLoss, 0.25, "smoothness", 1e-6),
    (HuberLoss, 0.25, "smoothness", 1e-6),
    (SmoothHingeLoss, 0.25, "smoothness", 1e-6),
    (SoftmaxLoss, 3, "n_classes", 1e-6),
    (SoftmaxLoss, 3, "hessian_trace", 0.0),
    (SoftmaxLoss, 3, "hessian_rank", 0.0),
    (HuberLoss, 0.25, "hessian_trace", 0.0),
]


def objective_of(loss: Any) -> Objective:
    labels = (-1.0, 1.0) if loss.key in ("log_cosh", "huber") else None
    return Objective(loss, Bounds(label_range=labels))


@pytest.mark.parametrize(("kind", "size", "what", "delta"), BENT)
def test_a_loss_that_bends_more_is_not_covered(
    kind: type[Any], size: float, what: str, delta: float
) -> None:
    plan = ObjectivePerturbation().plan(Problem(objective_of(kind(size)), 4), Budget(1.0, delta))
    perturbation, objective = perturbation_of(plan), plan.problem.objective
    assert covers(perturbation, objective, perturbation, objective, delta)
    if what == "n_classes":
        bent = kind(size + 1)
    else:
        own = getattr(kind(size), what)
        more = own + 1 if isinstance(own, int) else 1.01 * own
        bent = type("Bent", (kind,), {what: property(lambda _: more)})(size)
    assert not covers(perturbation, objective, perturbation, replace(objective, loss=bent), delta)


@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize(
    "loss",
    [LogisticLoss(), LogCoshLoss(0.25), HuberLoss(0.25), SmoothHingeLoss(0.25), SoftmaxLoss(2)],
    ids=lambda loss: loss.key,
)
def test_a_weaker_ridge_is_not_covered_by_any_bound_on_curvature(loss: Any, delta: float) -> None:
    """Not by the last bit: these bounds are powers of 2, so that a quotient is not rounded."""
    objective = objective_of(loss)
    perturbation: PerturbationSettings = (
        GaussianPerturbationSettings(2.0, 8.0) if delta else SpherePerturbationSettings(2.0, 8.0)
    )
    assert covers(perturbation, objective, perturbation, objective, delta)
    weaker = replace(perturbation, regularization=math.nextafter(2.0, 0.0))
    assert not covers(perturbation, objective, weaker, objective, delta)


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
    perturbation = perturbation_of(plan)
    assert perturbation.row_scale == 1.0
    assert perturbation.slope_ridge == 0.0
    assert plan.problem.objective.regularization == perturbation.regularization
    assert Guarantee(plan.event).epsilon(1e-6) <= 1.0 + 1e-9
    private = replace(problem, objective=Objective(loss, replace(bounds, n_records=None)))
    planned = ObjectivePerturbation().plan(private, Budget(1.0, 1e-6))
    wide, after = adapt_to_count(perturbation_of(planned), planned.problem, n_records)
    assert covers(perturbation_of(planned), planned.problem.objective, after, wide.objective, 1e-6)
    assert (after.row_scale, after.slope_ridge) == (1.0, 0.0)


@pytest.mark.parametrize("delta", DELTAS)
def test_shorter_rows_need_a_further_ridge(delta: float) -> None:
    """a^2 (lam + further) >= lam on weights of rows a times as long, or the promise is void."""
    planned, after, before, problem = followed(5.0, intercept=0.25, delta=delta)
    wide, old = problem.objective, before.objective
    assert after.row_scale < 0.25
    assert covers(planned, old, after, wide, delta)
    least = after.regularization / after.row_scale**2 - after.regularization
    for further in (0.0, least / 2, least * (1 - 1e-9)):
        less = replace(after, slope_ridge=further)
        assert not covers(planned, old, less, wide, delta)
        # and its event says so
        mains = [cost(t, wide, delta).events[0] for t in (less, after)]
        costs = [Guarantee(main).epsilon(delta) for main in mains]
        assert costs[0] > costs[1]
    assert covers(planned, old, replace(after, slope_ridge=least * (1 + 1e-12)), wide, delta)


@pytest.mark.parametrize("loss", [LogisticLoss(), LogCoshLoss(0.25, widens=True), SoftmaxLoss(3)])
def test_no_rounding_makes_what_follows_cost_more(loss: Any) -> None:
    labels = (-1.0, 1.0) if loss.key == "log_cosh" else None
    scales = set()
    for delta, row_norm, intercept in itertools.product(DELTAS, (0.7, 3.0), (0.01, 0.3, 1.1)):
        bounds = Bounds(row_norm, labels, intercept=intercept)
        problem = Problem(Objective(loss, bounds), 4)
        plan = ObjectivePerturbation().plan(problem, Budget(1.0, delta))
        for n_records in np.geomspace(1.0, 1e5, 12):
            wide, after = adapt_to_count(perturbation_of(plan), plan.problem, float(n_records))
            assert covers(
                perturbation_of(plan), plan.problem.objective, after, wide.objective, delta
            )
            held = (after.regularization + after.slope_ridge) * after.row_scale**2
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
        return perturbation_of(ObjectivePerturbation().plan(problem, Budget(epsilon, 1e-6)))

    few = taken(8, 100.0)
    assert isinstance(few, SpherePerturbationSettings)
    gaussian = taken(8, 100.0, even_ridge=True)  # standard errors know Gaussian noise alone
    assert isinstance(gaussian, GaussianPerturbationSettings)
    assert few.std(8) < gaussian.std(8) / 2
    assert isinstance(taken(3_000, 100.0), GaussianPerturbationSettings)
    # whoever composes small budgets pays far less for Gaussian noise
    assert isinstance(taken(1, 1.0), GaussianPerturbationSettings)


def test_a_pure_plan_is_within_a_budget_with_delta() -> None:
    plan = ObjectivePerturbation().plan(problem_of(LogisticLoss(), 8), Budget(20.0, 1e-6))
    assert isinstance(perturbation_of(plan), SpherePerturbationSettings)
    assert 19.9 < Guarantee(plan.event).epsilon(0.0) <= 20.0
    assert Guarantee(plan.event).epsilon(1e-6) <= 20.0
