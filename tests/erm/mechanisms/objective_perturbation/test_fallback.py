"""With more records than planned for, gradient steps cost no more than the perturbation."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import tacit.erm.mechanisms.objective_perturbation.fallback as descending
import tacit.erm.mechanisms.objective_perturbation.mechanism as module
import tacit.erm.minimization as planner
import tacit.erm.plan as planned
from tacit.erm import Balanced, Objective, ObjectivePerturbation, Problem, SecondMoment
from tacit.erm.losses import (
    HuberLoss,
    LogCoshLoss,
    LogisticLoss,
    PoissonLoss,
    SmoothHingeLoss,
    SoftmaxLoss,
)
from tacit.erm.mechanisms.noisy_gradient import descend_preconditioned
from tacit.erm.mechanisms.objective_perturbation.perturbation import (
    GaussianPerturbationSettings,
    minimizer_event,
)
from tacit.erm.minimization import run_plan
from tacit.linear_model import LinearRegression, LogisticRegression
from tacit.noise import Entry, recording
from tacit.privacy import Budget, Composed, Gaussian, Guarantee, Relation
from tacit.queries import Count, GaussianNoise, NoisySum, Session
from tacit.queries.session import Reweighted
from tacit.records import Bounds, MemoryRecords
from tacit.records.reweighted import ClassWeights
from tacit.testing import replay
from tests.erm.mechanisms.objective_perturbation.test_preconditioned import short_rows

LOSSES: list[Any] = [
    LogisticLoss(),
    LogCoshLoss(0.25),
    SoftmaxLoss(3),
    HuberLoss(0.25),
    PoissonLoss(5.0, 20.0),
]


def plan_of(loss: Any, budget: Budget) -> Any:
    labels = {"log_cosh": (-1.0, 1.0), "huber": (-1.0, 1.0), "poisson": (0.0, 20.0)}.get(loss.key)
    return ObjectivePerturbation().plan(Problem(Objective(loss, Bounds(1.0, labels)), 3), budget)


def part_of(plan: Any) -> Gaussian:
    """Return the Gaussian that minimiser and trace may be exchanged for."""
    event = plan.slots()["steps"].event
    assert isinstance(event, Gaussian)
    return event


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.key)
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
def test_a_tilt_costs_at_least_its_gaussian_part(loss: Any, epsilon: float) -> None:
    """By every route: profiles, and Renyi divergences where a ledger adds those up."""
    budget = Budget(epsilon, 1e-6)
    plan = plan_of(loss, budget)
    perturbation, objective = GaussianPerturbationSettings.of(plan), plan.problem.objective
    main, output = events = minimizer_event(perturbation, objective, budget, plan.facts).events
    assert isinstance(output, Gaussian)
    alone = Gaussian(perturbation.noise_std / objective.lipschitz)
    grid = np.linspace(-3 * epsilon, 3 * epsilon, 121)
    profile = np.asarray(main.profile(grid))
    assert np.all(profile >= np.asarray(alone.profile(grid)) * (1 - 1e-9))
    orders = np.array([1.5, 2.0, 4.0, 16.0, 64.0])
    assert np.all(main.renyi(orders) >= alone.renyi(orders) * (1 - 1e-9))
    parts = [*events]
    if perturbation.trace_noise_multiplier:
        parts.append(Gaussian(perturbation.trace_noise_multiplier))
    part = part_of(plan)
    # no more in real numbers than the squares add up to
    of = [Fraction(objective.lipschitz) / Fraction(perturbation.noise_std)]
    of.append(1 / Fraction(output.noise_multiplier))
    if perturbation.trace_noise_multiplier:
        of.append(1 / Fraction(perturbation.trace_noise_multiplier))
    assert 1 / Fraction(part.noise_multiplier) ** 2 < sum(mu**2 for mu in of)
    for delta in (1e-4, 1e-6, 1e-9):
        paid, spent = Guarantee(Composed(tuple(parts))), Guarantee(part)
        assert spent.epsilon(delta) <= paid.epsilon(delta)
    if loss in LOSSES[:2]:  # and nearly all of it: nothing is wasted
        assert spent.epsilon(1e-6) > 0.9 * paid.epsilon(1e-6)


@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_rows_that_count_for_less_leave_less(epsilon: float) -> None:
    """What a plan for few records pays is for shorter rows, and so is what steps may spend."""
    budget, objective = Budget(epsilon, 1e-6), Objective(LogisticLoss(), Bounds(n_records=100))
    objective = replace(objective, bounds=replace(objective.bounds, intercept=0.25))
    plan = ObjectivePerturbation().plan(Problem(objective, 20), budget)
    perturbation = GaussianPerturbationSettings.of(plan)
    assert perturbation.row_scale < 1
    assert Guarantee(part_of(plan)).epsilon(1e-6) <= epsilon


def test_a_tilt_that_leaves_little_is_not_spent_on_a_moment() -> None:
    """A loss with a sharp bend pays for curvature: a moment would cost more than is left."""
    budget, loss = Budget(0.01, 1e-6), SmoothHingeLoss(0.01)
    plan = ObjectivePerturbation().plan(Problem(Objective(loss, Bounds()), 30), budget)
    perturbation, slot = GaussianPerturbationSettings.of(plan), plan.slots()["steps"]
    assert descending._left(plan, slot) < 0
    assert not descending.may_ask(plan, slot, perturbation, 1e6)


def test_sums_that_could_not_be_formed_are_not_asked_for() -> None:
    """Rows of one direction, so many that a sum there would be refused after the moment."""
    problem, budget = Problem(Objective(LogisticLoss(), Bounds()), 2), Budget(8.0, 1e-6)
    assert SecondMoment().pays(problem, budget, 100_000)
    for n in (4e6, 1e8, 1e12):
        assert not SecondMoment().pays(problem, budget, n)
        assert not SecondMoment(always=True).pays(problem, budget, n)


MODELS: list[Any] = [
    LinearRegression(4.0, 1e-6, label_range=(-1.0, 1.0)),
    LogisticRegression(4.0, 1e-6, classes=[0, 1]),
    LogisticRegression(4.0, 1e-6, classes=[0, 1, 2], mechanism="objective_perturbation"),
]


@pytest.fixture
def uncertified(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """No minimum can be certified; what is descended instead is noted."""
    seen: list[Any] = []
    honest = descending.descend_instead

    def noted(*args: Any) -> Any:
        seen.append(honest(*args))
        return seen[-1]

    monkeypatch.setattr(module, "can_certify", lambda *_: False)
    monkeypatch.setattr(module, "descend_instead", noted)
    return seen


@pytest.fixture
def unplanned(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """Plans expect so few records that they ask for no second moment; descents are noted."""
    seen: list[Any] = []
    honest = descending.descend_instead

    def noted(*args: Any) -> Any:
        assert args[3] is None  # no moment was planned
        seen.append(honest(*args))
        return seen[-1]

    monkeypatch.setattr(planned, "TYPICAL_N_RECORDS", 10)
    monkeypatch.setattr(module, "descend_instead", noted)
    planner._remembered.cache_clear()
    yield seen
    planner._remembered.cache_clear()


def fitted(model: Any, n: int) -> Any:
    rows, labels = short_rows(3_000), np.arange(3_000) % 2
    rows[-1], labels[-1] = [0.0, 0.0, 1.0], 1
    return model.set_params(random_state=0).fit(rows[:n], labels[:n]).coef_


@pytest.mark.parametrize("case", ["uncertified", "unplanned"])
@pytest.mark.parametrize("model", MODELS, ids=lambda m: type(m).__name__)
def test_neighbours_meet_the_same_releases(
    model: Any, case: str, request: pytest.FixtureRequest
) -> None:
    seen, found = request.getfixturevalue(case), list[Any]()
    assert replay(lambda n: found.append(fitted(model, n)), 2_999, 3_000) >= 10
    np.testing.assert_array_equal(*found)
    assert len(seen) == 2


@pytest.mark.parametrize("loss", LOSSES[:3], ids=lambda loss: loss.key)
def test_a_moment_that_was_not_planned_is_paid_by_the_tilt(loss: Any, unplanned: list[Any]) -> None:
    plan = plan_of(loss, Budget(4.0, 1e-6))
    assert GaussianPerturbationSettings.of(plan).moment_noise is None
    records = MemoryRecords(short_rows(3_000), np.ones(3_000), plan.problem.objective.bounds)
    with recording() as tape:
        assert run_plan(plan, records, None).event == plan.event
    assert len(unplanned) == 1
    count, *spent = (entry.event for entry in tape.entries if isinstance(entry, Entry))
    assert count == plan.slots()["count"].event
    # steps that were not Gaussian would count as infinitely dear
    mu2 = math.fsum(
        1 / event.noise_multiplier**2 if isinstance(event, Gaussian) else math.inf
        for event in spent
    )
    # all of it, and no more
    assert 1 - 1e-9 < mu2 * part_of(plan).noise_multiplier ** 2 <= 1


def test_a_moment_beside_steps_for_all_of_the_tilt_is_withheld(
    unplanned: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = plan_of(LogisticLoss(), Budget(4.0, 1e-6))
    allowed = part_of(plan)
    honest: Any = descend_preconditioned

    def as_if_free(*args: Any) -> Any:
        *rest, _ = args
        return honest(*rest, GaussianNoise(allowed.noise_multiplier))

    monkeypatch.setattr(descending, "descend_preconditioned", as_if_free)
    records = MemoryRecords(short_rows(3_000), np.ones(3_000), plan.problem.objective.bounds)
    with pytest.raises(RuntimeError, match=r"'steps' would release .* as often as mu.2 allows"):
        run_plan(plan, records, None)


def test_few_records_keep_the_tilt(unplanned: list[Any]) -> None:
    fitted(LogisticRegression(0.2, 1e-6, classes=[0, 1]), 1_000)
    assert not unplanned


@pytest.mark.parametrize("model", MODELS[:2], ids=lambda m: type(m).__name__)
def test_a_gradient_that_is_not_clipped_is_caught(
    model: Any, uncertified: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    loss = LogisticLoss if isinstance(model, LogisticRegression) else LogCoshLoss
    honest = loss.gradient_clipped_in

    def unclipped(self: Any, there: Any, block: Any, weights: Any, bounds: Any, clip: float) -> Any:
        return honest(self, there, block, weights, bounds, 100 * clip)

    monkeypatch.setattr(loss, "gradient_clipped_in", unclipped)
    with pytest.raises(AssertionError):
        replay(lambda n: fitted(model, n), 2_999, 3_000)


@pytest.mark.parametrize("loss", LOSSES[:3], ids=lambda loss: loss.key)
def test_it_is_charged_as_planned(loss: Any, uncertified: list[Any]) -> None:
    plan = plan_of(loss, Budget(4.0, 1e-6))
    bounds = plan.problem.objective.bounds
    records = MemoryRecords(short_rows(3_000), np.ones(3_000), bounds)
    assert run_plan(plan, records, None).event == plan.event
    assert len(uncertified) == 1
    assert Guarantee(plan.event).epsilon(1e-6) <= 4.0


def test_steps_that_cost_more_are_withheld(
    uncertified: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    honest: Any = descend_preconditioned

    def dearer(*args: Any) -> Any:
        *rest, whole = args
        return honest(*rest, GaussianNoise(whole.multiplier / 1.01))

    monkeypatch.setattr(descending, "descend_preconditioned", dearer)
    plan = plan_of(LogisticLoss(), Budget(4.0, 1e-6))
    records = MemoryRecords(short_rows(3_000), np.ones(3_000), plan.problem.objective.bounds)
    with pytest.raises(RuntimeError, match=r"'steps' would release .* as often as mu.2 allows"):
        run_plan(plan, records, None)


@pytest.mark.parametrize(
    ("budget", "known", "may"),
    [
        (Budget(4.0, 1e-6), {}, True),
        (Budget(4.0, 1e-6), {"max_weight": 1.0}, False),
        (Budget(4.0, 1e-6, Relation.REPLACE), {"n_records": 3_000}, False),
        (Budget(4.0, 1e-6, Relation.ADD_REMOVE_PERSON), {}, False),
        (Budget(4.0, 0.0), {}, False),
    ],
)
def test_only_what_is_proved_can_be_exchanged(
    budget: Budget, known: dict[str, Any], may: bool
) -> None:
    problem = Problem(Objective(LogisticLoss(), Bounds(1.0, **known)), 3)
    assert ("steps" in ObjectivePerturbation().plan(problem, budget).slots()) == may


@pytest.mark.parametrize("first", ["weights", "steps"])
def test_minimiser_and_steps_are_never_both_asked_for(first: str) -> None:
    plan = plan_of(LogisticLoss(), Budget(4.0, 1e-6))
    records = MemoryRecords(short_rows(300), np.ones(300), plan.problem.objective.bounds)
    session = Session(records, plan.facts, plan.event, plan.slots())
    asked = {
        "weights": module._minimizer(
            plan.problem, GaussianPerturbationSettings.of(plan), plan.budget
        ),
        "steps": NoisySum(Count(), GaussianNoise(1e3 * part_of(plan).noise_multiplier)),
    }
    session.ask(asked.pop(first), first)
    ((second, query),) = asked.items()
    with recording() as tape, pytest.raises(RuntimeError, match="SECURITY"):
        session.ask(query, second)
    assert not tape.entries


@pytest.mark.parametrize("case", ["uncertified", "unplanned"])
@pytest.mark.parametrize("weighted", [False, True])
def test_records_that_are_weighted_after_planning_are_left_to_the_tilt(
    case: str, weighted: bool, request: pytest.FixtureRequest
) -> None:
    """The plan knows of no weights; the records that it is carried out on have some."""
    seen, bounds = request.getfixturevalue(case), Bounds(1.0, n_classes=2)
    problem = Problem(Objective(LogisticLoss(), bounds), 3)
    plan = ObjectivePerturbation().plan(problem, Budget(4.0, 1e-6))
    assert "steps" in plan.slots()
    records = MemoryRecords(short_rows(3_000), np.resize([-1.0, 1.0], 3_000), bounds)
    session = Session(records, plan.facts, plan.event, plan.slots())
    view = session.on(Reweighted(ClassWeights((1.0, 0.5)))) if weighted else session
    plan.solve(view)
    assert session.close() == plan.event
    assert len(seen) == (0 if weighted else 1)


@pytest.mark.parametrize("case", ["uncertified", "unplanned"])
def test_classes_that_are_counted_first_are_left_to_the_tilt(
    case: str, request: pytest.FixtureRequest
) -> None:
    seen = request.getfixturevalue(case)
    fitted(LogisticRegression(4.0, 1e-6, classes=[0, 1], mechanism=ObjectivePerturbation()), 3_000)
    assert len(seen) == 1
    balanced = Balanced(ObjectivePerturbation())
    fitted(LogisticRegression(4.0, 1e-6, classes=[0, 1], mechanism=balanced), 3_000)
    assert len(seen) == 1


@pytest.mark.parametrize("case", ["uncertified", "unplanned"])
def test_what_is_not_proved_is_left_to_the_tilt(case: str, request: pytest.FixtureRequest) -> None:
    seen = request.getfixturevalue(case)
    facts: dict[str, Any] = {"classes": [0, 1], "n_records": 3_000}
    fitted(LogisticRegression(4.0, 1e-6, relation="replace", **facts), 3_000)
    rows, labels = short_rows(3_000), np.arange(3_000) % 2
    weighted = LogisticRegression(4.0, 1e-6, max_weight=1.0, classes=[0, 1])
    weighted.fit(rows, labels, sample_weight=np.ones(3_000))
    assert not seen
