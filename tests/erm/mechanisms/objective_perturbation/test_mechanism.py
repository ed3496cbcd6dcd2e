"""The output release that covers an approximate minimiser, checked against its own proof."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import tacit.erm.mechanisms.objective_perturbation.mechanism as objective_perturbation
import tacit.erm.solvers as solver_module
import tacit.queries.minimizer as query_module
from tacit.engine import release
from tacit.erm import CannotSolve, Objective, ObjectivePerturbation, Problem, choose_plan
from tacit.erm.losses import HuberLoss, LogisticLoss, SoftmaxLoss
from tacit.erm.mechanisms.objective_perturbation.perturbation import perturbation_of
from tacit.erm.minimization import run_plan
from tacit.erm.solvers import minimize_certified
from tacit.noise.perturbed_minimizer import (
    GaussianPerturbation,
    SpherePerturbation,
    release_minimizer,
)
from tacit.privacy import Budget
from tacit.records import Bounds, MemoryRecords

LOSSES = [LogisticLoss(), HuberLoss(0.5), SoftmaxLoss(3)]


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.key)
@pytest.mark.parametrize("delta", [1e-6, 0.0])
@pytest.mark.parametrize("row_norm", [0.1, 12.0])
def test_output_noise_covers_what_the_solver_may_leave(  # type: ignore[no-untyped-def]
    loss, delta, row_norm, monkeypatch
) -> None:
    """Two points of gradient norm tau are each within tau / lam of one minimiser: 2 tau / lam."""
    monkeypatch.setattr(
        objective_perturbation, "may_precondition", lambda *_: False
    )  # tested apart
    bounds = Bounds(row_norm=row_norm, label_range=(-1, 1) if loss.key == "huber" else None)
    plan = ObjectivePerturbation().plan(Problem(Objective(loss, bounds), 4), Budget(1.0, delta))
    seen = {}
    honest_minimize, honest_release = minimize_certified, release_minimizer

    def minimize(problem, start, target):  # type: ignore[no-untyped-def]
        seen["target"], seen["ridge"] = target, problem.ridge
        return honest_minimize(problem, start, target)

    def release(perturbation, *args):  # type: ignore[no-untyped-def]
        seen["perturbation"] = perturbation
        return honest_release(perturbation, *args)

    monkeypatch.setattr(solver_module, "minimize_certified", minimize)
    monkeypatch.setattr(query_module, "release_minimizer", release)
    rng = np.random.default_rng(0)
    labels = {"logistic": np.ones(50), "huber": rng.uniform(-1, 1, 50)}.get(loss.key, np.zeros(50))
    records = MemoryRecords(rng.standard_normal((50, 4)), labels, bounds)
    run_plan(plan, records, None)

    perturbation, lam = seen["perturbation"], seen["ridge"]
    assert lam >= plan.settings["regularization"]
    # the float error of the perturbation is part of the gradient norm that is covered
    sensitivity = 2 * (seen["target"] + perturbation.error) / lam
    charged: Any = plan.event
    output = charged.events[1]
    if delta:
        assert isinstance(perturbation, GaussianPerturbation)
        assert perturbation.noise_std == charged.events[0].noise_std
        assert perturbation.output_std >= output.noise_multiplier * sensitivity * (1 - 1e-12)
    else:
        assert isinstance(perturbation, SpherePerturbation)
        assert perturbation.noise_radius == charged.events[0].noise_radius
        assert perturbation.output_radius >= sensitivity / output.epsilon * (1 - 1e-12)


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.key)
def test_float_error_leaves_room_for_a_certificate(loss: Any) -> None:
    """The solver stops at half the target, so a sum's float error must be below the other half."""
    bounds = Bounds(row_norm=3.0, label_range=(-1, 1) if loss.key == "huber" else None)
    error = max(
        MemoryRecords(np.broadcast_to(0.0, (n, 9)), None, bounds).sum_error(fine=True)
        for n in (10**5, 6 * 10**5, 10**6, 10**7)
    )
    objective = Objective(loss, bounds)
    for budget in (Budget(e, d) for e in (0.1, 1.0, 8.0) for d in (0.0, 1e-9, 1e-5)):
        plan = ObjectivePerturbation().plan(Problem(objective, 9), budget)
        perturbation = perturbation_of(plan)
        _, target = perturbation.law(budget).laws(perturbation.regularization, plan.problem.shape)
        assert error * objective.lipschitz < 0.4 * target


@pytest.mark.parametrize("delta", [1e-9, 0.0])
@pytest.mark.parametrize("lam", [None, 5.0])
def test_more_records_than_can_be_certified_are_refused_in_the_plan(
    delta: float, lam: float | None
) -> None:
    budget = Budget(1.0, delta)

    def problem(n: int) -> Problem:
        return Problem(Objective(LogisticLoss(), Bounds(n_records=n), lam), 20)

    assert ObjectivePerturbation().plan(problem(10**7), budget)  # which was seen to be certified
    many = problem(3 * 10**7)  # which was seen not to be
    with pytest.raises(CannotSolve, match="noisy_gradient"):
        ObjectivePerturbation().plan(many, budget)
    if delta and lam is None:
        assert choose_plan(many, budget).mechanism.name == "noisy_gradient"


@pytest.mark.parametrize("delta", [1e-6, 0.0])
def test_less_noise_than_was_charged_for_is_withheld(delta: float) -> None:
    bounds = Bounds()
    problem = Problem(Objective(LogisticLoss(), bounds), 2)
    plan = ObjectivePerturbation().plan(problem, Budget(1.0, delta))
    records = MemoryRecords(np.eye(2), np.ones(2), bounds)
    noise = "noise_radius" if delta == 0.0 else "noise_std"
    less = replace(plan, settings={**plan.settings, noise: 0.5 * plan.settings[noise]})
    release(plan, lambda: run_plan(plan, records, None))
    with pytest.raises(RuntimeError, match="are not what was charged"):
        release(less, lambda: run_plan(less, records, None))
