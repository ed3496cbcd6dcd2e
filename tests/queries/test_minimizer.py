"""What is minimised is objective perturbation of rows as long as they count, and nothing else."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tacit.queries.minimizer as module
from tacit.erm import Objective, ObjectivePerturbation, Problem
from tacit.erm.losses import HuberLoss, LogCoshLoss, LogisticLoss, SoftmaxLoss
from tacit.erm.mechanisms.objective_perturbation.adapt import adapt_preconditioned
from tacit.erm.mechanisms.objective_perturbation.mechanism import (
    _law,
    _minimizer,
    _preconditioned_minimizer,
)
from tacit.erm.mechanisms.objective_perturbation.perturbation import (
    GaussianPerturbationSettings,
    PerturbationSettings,
    perturbation_of,
)
from tacit.erm.objective import records_gradient
from tacit.erm.preconditioning import Preconditioner
from tacit.erm.solvers import Perturbed, certified_solver, minimize_certified
from tacit.noise import Release, SensitivityViolation, secure_source
from tacit.privacy import Budget, Gaussian, PureObjective, Relation
from tacit.queries import Facts, PerturbedMinimizer, Session, Slot
from tacit.queries.minimizer import GaussianObjectiveNoise, SphereObjectiveNoise, least_ridge
from tacit.records import Bounds, MemoryRecords
from tacit.records.block import Coordinates
from tacit.records.reweighted import LeverageWeights, ReweightedRecords
from tacit.testing import replay

LOSSES = [LogisticLoss(), LogCoshLoss(0.25), SoftmaxLoss(3)]


class Stopped:
    """In place of `release_minimizer`: keeps what it was given."""

    def __call__(self, perturbation: Any, minimize: Any, implied: Any, event: Any, _: Any) -> Any:
        self.perturbation, self.minimize, self.implied = perturbation, minimize, implied
        return Release(np.zeros(perturbation.shape), event)


def few_records(
    loss: Any, delta: float, relation: Relation = Relation.ADD_REMOVE
) -> tuple[Problem, PerturbationSettings, Any, Any, Any]:
    """Return a plan for so few records that rows count shorter, and what a fit of it minimises."""
    labels = (-1.0, 1.0) if loss.key == "log_cosh" else None
    bounds = Bounds(1.0, labels, n_records=12, intercept=0.3)
    budget = Budget(1.0, delta, relation)
    plan = ObjectivePerturbation().plan(Problem(Objective(loss, bounds), 2), budget)
    rng = np.random.default_rng(0)
    targets = {"logistic": rng.choice([-1.0, 1.0], 12), "softmax": rng.integers(0, 3, 12)}
    rows, y = 0.6 * rng.uniform(-1, 1, (12, 2)), targets.get(loss.key, rng.uniform(-1, 1, 12))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "release_minimizer", stopped := Stopped())
        perturbation, records = perturbation_of(plan), MemoryRecords(rows, y.astype(float), bounds)
        _minimizer(plan.problem, perturbation, budget).answer(records, plan.facts, secure_source())
    assert perturbation.row_scale < 0.5
    return plan.problem, perturbation, records, stopped, _law(plan.problem, perturbation, budget)


@pytest.mark.parametrize("delta", [1e-6, 0.0])
@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_rows_that_count_shorter_are_minimised_as_shorter_rows(loss: Any, delta: float) -> None:
    """Of rows a times as long: the noise and at least the ridge that the event is about."""
    problem, perturbation, records, stopped, law = few_records(loss, delta)
    b = perturbation.noise * np.random.default_rng(1).standard_normal(problem.shape)
    found = stopped.minimize(b)
    scales = np.ones(problem.shape)
    scales[:-1] = perturbation.row_scale
    # shorter rows, v = a w; the ridge of rows is a^2 (lam + steadying), at least lam
    bounds = records.bounds
    (rows,) = records.sum(lambda block: (block.rows,))
    shorter = MemoryRecords(
        perturbation.row_scale * rows, records.sum(lambda block: (block.labels,))[0], bounds
    )
    ridge = (perturbation.regularization + perturbation.slope_ridge) * perturbation.row_scale**2
    assert ridge >= perturbation.regularization
    objective = problem.objective.with_regularization(perturbation.regularization)
    there = Perturbed(objective, shorter, b, ridge - perturbation.regularization)
    w, _ = minimize_certified(there, np.zeros(problem.shape), 1e-9)
    np.testing.assert_allclose(found, scales * w, rtol=1e-4, atol=1e-6 * np.abs(found).max())
    # what the fit says of its own noise and ridge on weights of rows
    assert law.noise_std == pytest.approx(
        perturbation.std(problem.dimension) / perturbation.row_scale
    )
    assert law.ridge == perturbation.regularization + perturbation.slope_ridge


@pytest.mark.parametrize("relation", [Relation.ADD_REMOVE, Relation.REPLACE])
def test_what_an_audit_compares_is_the_gradient_of_shorter_rows(relation: Relation) -> None:
    """And no record moves it by more than the noise is for."""
    problem, perturbation, records, stopped, _ = few_records(LogisticLoss(), 1e-6, relation)
    scales = np.array([perturbation.row_scale, perturbation.row_scale, 1.0])
    w = np.array([0.3, -2.0, 1.0])
    implied = stopped.implied(w)
    gradient = records_gradient(problem.objective, records, w)
    np.testing.assert_allclose(implied.value, scales * gradient)
    times = 2.0 if relation is Relation.REPLACE else 1.0
    assert implied.sensitivity == pytest.approx(
        times * np.hypot(perturbation.row_scale, 0.3), rel=1e-5
    )
    assert implied.sensitivity >= times * np.hypot(perturbation.row_scale, 0.3)


def test_weights_of_rows_that_say_nothing_are_noise_over_ridge() -> None:
    """With rows of zeros the weights are -b / (a (lam + steadying)), b of the planned noise."""
    bounds = Bounds(1.0, n_records=12, intercept=0.3)
    budget = Budget(1.0, 1e-6)
    plan = ObjectivePerturbation().plan(Problem(Objective(LogisticLoss(), bounds), 400), budget)
    perturbation = perturbation_of(plan)
    assert perturbation.row_scale < 0.5
    records = MemoryRecords(np.zeros((12, 400)), np.resize([-1.0, 1.0], 12), bounds)
    query = _minimizer(plan.problem, perturbation, budget)
    released = query.answer(records, plan.facts, secure_source())
    spread = float(np.sqrt(np.mean(np.asarray(released.value)[:-1] ** 2)))
    expected = (
        perturbation.std(401)
        / perturbation.row_scale
        / (perturbation.regularization + perturbation.slope_ridge)
    )
    # of 400 Gaussians the spread is off by a quarter less than once in a billion runs
    assert 0.75 < spread / expected < 1.3


@pytest.mark.parametrize("relation", [Relation.ADD_REMOVE, Relation.REPLACE])
def test_in_other_coordinates_rows_are_those_rows(relation: Relation) -> None:
    """Over rows A x, weighted as they are long: minimiser, gradient, and how far it moves."""
    bounds, budget = Bounds(1.0, n_records=300), Budget(1.0, 1e-6, relation)
    plan = ObjectivePerturbation().plan(Problem(Objective(LogisticLoss(), bounds), 3), budget)
    rng = np.random.default_rng(0)
    rows, labels = rng.uniform(-0.5, 0.5, (300, 3)), rng.choice([-1.0, 1.0], 300)
    turn = np.linalg.qr(rng.standard_normal((3, 3)))[0]
    there = Coordinates(turn @ np.diag([0.1, 0.4, 1.0]) @ turn.T)
    turned = Preconditioner(there, 0.25, 50.0, 0.1)
    problem, perturbation = adapt_preconditioned(
        GaussianPerturbationSettings.of(plan), plan.problem, turned, 300.0
    )
    weights = LeverageWeights(there, 0.25)
    records = ReweightedRecords(MemoryRecords(rows, labels, bounds), weights)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "release_minimizer", stopped := Stopped())
        query = _preconditioned_minimizer(problem, perturbation, turned, plan)
        query.answer(records, plan.facts, secure_source())
    points = rows @ there.matrix
    own = np.minimum(1.0, 0.25 / np.linalg.norm(points, axis=1)) ** 2
    assert own.min() < 0.5 < 1.0 == own.max()

    def gradient(v: Any) -> Any:
        return (-own * labels / (1 + np.exp(labels * (points @ v)))) @ points

    v = np.array([1.0, -2.0, 0.5])
    implied = stopped.implied(v)
    np.testing.assert_allclose(implied.value, gradient(v), rtol=1e-6)
    # a slope of at most 1, times a row that counts as long as 0.25
    times = 2.0 if relation is Relation.REPLACE else 1.0
    assert 0.25 * times <= implied.sensitivity <= 0.25 * times * (1 + 1e-5)
    b = perturbation.noise * rng.standard_normal(3)
    found = stopped.minimize(b)
    left = gradient(found) + perturbation.regularization * found + b
    assert np.linalg.norm(left) < 1e-4 * np.linalg.norm(b)


@pytest.mark.parametrize("share", [1.0, 0.4])
def test_half_a_sensitivity_of_a_perturbed_minimum_is_caught(
    share: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the released weights the gradients' sum moves by no more than L, and by nearly that."""
    stated = PerturbedMinimizer.sensitivity

    def smaller(self: PerturbedMinimizer, facts: Facts) -> Any:
        whole = stated(self, facts)
        return replace(whole, value=share * whole.value)

    monkeypatch.setattr(PerturbedMinimizer, "sensitivity", smaller)
    bounds = Bounds(row_norm=1.0)
    objective = Objective(HuberLoss(0.5), bounds, 5.0)
    noise = GaussianObjectiveNoise(1.0, 100.0)
    query = PerturbedMinimizer(objective, (2,), noise, 5.0, certified_solver(objective))
    facts = Facts(bounds, 2, Relation.ADD_REMOVE)
    slots = {"weights": Slot(query.event(facts))}

    def run(rows: Any) -> Any:
        records = MemoryRecords(rows, np.full(len(rows), 50.0), bounds)
        session = Session(records, facts, query.event(facts), slots)
        return session.release(session.ask(query, "weights"))

    few = np.eye(2)
    if share == 1.0:
        assert replay(run, few, np.vstack([few, [1.0, 0.0]])) == 1
    else:
        with pytest.raises(SensitivityViolation):
            replay(run, few, np.vstack([few, [1.0, 0.0]]))


# Constants, to the digit.


@pytest.mark.parametrize("ridge", [0.3, 7.0, 1e3])
@pytest.mark.parametrize("shape", [(1,), (40, 3)])
@pytest.mark.parametrize("output", [0.7, 31.0, 1e13])
def test_noise_on_the_output_covers_what_a_certificate_leaves_open(
    ridge: float, shape: tuple[int, ...], output: float
) -> None:
    """2 (tolerance + error of b) / lam is the sensitivity, in exact arithmetic; and nearly equal.

    With 1e13 the float error of b decides how far the minimum is certified.
    """
    for size in np.linspace(0.1, 3.0, 40).tolist():
        gaussian, tolerance = GaussianObjectiveNoise(size, output).laws(ridge, shape)
        assert gaussian.noise_std == size
        open_ = 2 * (Fraction(tolerance) + Fraction(gaussian.error)) / Fraction(ridge)
        needed = Fraction(output) * open_
        assert needed <= Fraction(gaussian.output_std) <= needed * (1 + Fraction(1, 10**12))
        sphere, tolerance = SphereObjectiveNoise(size, 1 / output).laws(ridge, shape)
        assert sphere.noise_radius == size
        open_ = 2 * (Fraction(tolerance) + Fraction(sphere.error)) / Fraction(ridge)
        needed = open_ / Fraction(1 / output)
        assert needed <= Fraction(sphere.output_radius) <= needed * (1 + Fraction(1, 10**12))


def test_rows_that_count_less_have_smaller_constants() -> None:
    seen: list[Any] = []

    def perturbed_event(*told: Any) -> Gaussian:
        seen.append(told)
        return Gaussian(1.0)

    loss = SimpleNamespace(perturbed_event=perturbed_event, hessian_rank=2)
    sizes = {"row_norm": 3.0, "lipschitz": 5.0, "smoothness": 7.0, "hessian_trace": 11.0}
    objective: Any = SimpleNamespace(loss=loss, **sizes)
    facts = Facts(Bounds(), 3, Relation.REPLACE)
    GaussianObjectiveNoise(13.0, 1.0).main(objective, 17.0, 0.5, facts)
    assert seen == [((1.5, 2.5, 1.75), 17.0, 13.0, Relation.REPLACE)]
    event = SphereObjectiveNoise(13.0, 1.0).main(objective, 170.0, 0.5, facts)
    assert event == PureObjective(2.5, 2.75, 170.0, 13.0, 2, Relation.REPLACE)


def test_the_least_ridge() -> None:
    assert least_ridge(2.0, 1.0, 0.5) == 0.75
    assert least_ridge(2.0, 1.0, 1.0) == 2.0
    assert least_ridge(2.0, 6.0, 0.5) == 2.0
