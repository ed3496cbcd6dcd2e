"""Every sensitivity that a mechanism states is that of its proof, with what floats may add.

What a replay on neighbouring data would not notice is held here to the formula: slacks of a
ten-thousandth or less, and factors that chosen neighbours do not attain.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import tacit.erm.mechanisms.noisy_gradient as noisy_gradient_module
import tacit.erm.solvers as minimizer_module
import tacit.queries.noise as noisy_sum_module
import tacit.queries.selection as selection_module
from tacit.erm import (
    Balanced,
    NoisyGradient,
    Objective,
    ObjectivePerturbation,
    OutputPerturbation,
    Plan,
    Problem,
    PublicCandidates,
    SecondMoment,
    SufficientStatistics,
)
from tacit.erm.losses import LogisticLoss, SmoothHingeLoss, SoftmaxLoss, SquaredLoss
from tacit.erm.minimization import run_plan
from tacit.erm.preconditioning import Preconditioner
from tacit.erm.solvers import Perturbed, preconditioning_error, slopes_error
from tacit.noise import Norm, recording, seeded_source
from tacit.noise.bounded import Bounded
from tacit.noise.gaussian import gaussian as gaussian_noise
from tacit.noise.release import SEEDED, Entry
from tacit.noise.selection.finite import select
from tacit.privacy import Budget, Relation
from tacit.privacy.accounting.calibration import gaussian_multiplier
from tacit.queries import Facts
from tacit.queries import SecondMoment as SecondMomentOfRows
from tacit.queries.gradient import PreconditionedGradient
from tacit.queries.moments import LabelMoment
from tacit.queries.noise import gaussian_rest
from tacit.records import Bounds, MemoryRecords, RecordSource
from tacit.records.block import Coordinates
from tacit.records.exact.lattice import TERM_BITS, Rounding
from tacit.row_clipping import clipped_rows

ADD, REPLACE = Relation.ADD_REMOVE, Relation.REPLACE
BOUNDS = Bounds(row_norm=1.5, intercept=0.7, label_range=(-2.0, 3.0), n_records=40)
# ||(x, intercept)|| of the longest row
REACH = math.hypot(1.5, 0.7)


def records() -> MemoryRecords:
    rng = np.random.default_rng(0)
    return MemoryRecords(rng.standard_normal((40, 3)), rng.uniform(-1, 1, 40), BOUNDS)


def stated(module: Any, monkeypatch: pytest.MonkeyPatch) -> list[Bounded]:
    """Return the list to which every value that gets Gaussian noise is added."""
    found: list[Bounded] = []

    def noticed(bounded: Bounded, *rest: Any) -> Any:
        found.append(bounded)
        return gaussian_noise(bounded, *rest)

    monkeypatch.setattr(module, "gaussian", noticed)
    return found


def released(plan: Plan, of: RecordSource) -> list[Bounded]:
    """Return what a plan releases over records, in order, before noise."""
    with recording() as tape:
        run_plan(plan, of)
    return [entry.bounded for entry in tape.entries if isinstance(entry, Entry)]


@pytest.mark.parametrize(
    ("relation", "n_changed", "two"), [(ADD, 1, 1), (REPLACE, 2, math.sqrt(2))]
)
def test_moments(
    relation: Relation, n_changed: float, two: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = stated(noisy_sum_module, monkeypatch)
    problem = Problem(Objective(SquaredLoss(), BOUNDS), 3)
    plan = SufficientStatistics().plan(problem, Budget(1.0, 1e-6, relation))
    run_plan(plan, records(), None)
    least, packed, cross = (bounded.sensitivity for bounded in found)
    assert least == pytest.approx(REACH**2 * (1 + 1e-4), rel=1e-9)
    assert two * REACH**2 < packed < two * REACH**2 * (1 + 1e-4)
    stated_alone = SecondMomentOfRows().sensitivity(Facts(BOUNDS, 3, relation)).value
    assert packed == pytest.approx(stated_alone, rel=1e-14, abs=0.0)
    # R is rounded, and so is the product
    assert n_changed * 3.0 * REACH * (1 + 2.0**-51) <= cross < n_changed * 3.0 * REACH * (1 + 1e-6)
    assert least >= np.linalg.eigvalsh(np.outer([1.5, 0.7], [1.5, 0.7])).max()


@pytest.mark.parametrize(("relation", "n_changed"), [(ADD, 1.0), (REPLACE, 2.0)])
def test_sums_of_many_records_are_charged_for_their_rounding(
    relation: Relation, n_changed: float
) -> None:
    many = replace(BOUNDS, n_records=2**20)
    slack = Rounding(TERM_BITS, 2**20).slack
    assert slack > 1e-8
    cross = LabelMoment(SquaredLoss()).sensitivity(Facts(many, 3, relation))
    exact = n_changed * 3.0 * REACH * (1 + slack) * (1 + 2.0**-50)
    assert cross.value == pytest.approx(exact, rel=4e-16)


def test_second_moments_are_charged_for_their_rounding() -> None:
    # Rows are in steps of 2^-20 or finer; the sum is rounded once, and once more where packed.
    from tacit.records.exact.lattice import MOMENT_SLACK

    assert 0 < MOMENT_SLACK < 1e-5
    for relation, two in ((ADD, 1.0), (REPLACE, math.sqrt(2.0))):
        gradient_scale = two * REACH**2 * (1 + MOMENT_SLACK)
        found = SecondMomentOfRows().sensitivity(Facts(BOUNDS, 3, relation)).value
        assert found == pytest.approx(gradient_scale, rel=1e-14, abs=0.0)


@pytest.mark.parametrize(("relation", "n_changed"), [(ADD, 1.0), (REPLACE, 2.0)])
def test_minimisers(relation: Relation, n_changed: float, monkeypatch: pytest.MonkeyPatch) -> None:
    found = stated(noisy_sum_module, monkeypatch)
    certified: list[float] = []
    minimize = minimizer_module.minimize_certified

    def noticed(problem: Any, start: Any, tau: float) -> Any:
        certified.append(tau)
        return minimize(problem, start, tau)

    monkeypatch.setattr(minimizer_module, "minimize_certified", noticed)
    problem = Problem(Objective(LogisticLoss(), BOUNDS, regularization=5.0), 3)
    plan = OutputPerturbation().plan(problem, Budget(1.0, 1e-6, relation))
    run_plan(plan, records(), None)
    exact = n_changed * REACH / 5.0
    assert found[0].sensitivity == pytest.approx(exact * (1 + 1e-4), rel=1e-12, abs=0.0)
    # Either minimiser is off by tau / lam at most.
    assert exact + 2 * certified[0] / 5.0 == pytest.approx(found[0].sensitivity, rel=1e-12, abs=0.0)


@pytest.mark.parametrize("ridge", [0.3, 3.0, 7.0, 11.0, 49.0])
@pytest.mark.parametrize("row_norm", [0.1, 1.0, 1.7, 23.0])
def test_what_is_certified_leaves_room_for_roundings(
    row_norm: float, ridge: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In real numbers L / lam + 2 tau / lam is 2^-30 of 1e-4 less than what is stated."""
    certified: list[float] = []

    def noticed(problem: Any, start: Any, tau: float) -> Any:
        certified.append(tau)
        return start, tau

    monkeypatch.setattr(minimizer_module, "minimize_certified", noticed)
    bounds = Bounds(row_norm=row_norm)  # L is the row norm itself
    problem = Problem(Objective(LogisticLoss(), bounds, regularization=ridge), 1)
    plan = OutputPerturbation().plan(problem, Budget(1.0, 1e-6))
    (output,) = released(plan, MemoryRecords(np.ones((1, 1)), np.ones(1), bounds))
    exact = (Fraction(row_norm) + 2 * Fraction(certified[0])) / Fraction(ridge)
    assert float(1 - exact / Fraction(output.sensitivity)) == pytest.approx(9.3e-14, abs=2e-15)


@pytest.mark.parametrize(("relation", "n_changed"), [(ADD, 1.0), (REPLACE, 2.0)])
def test_steps_in_other_coordinates(relation: Relation, n_changed: float) -> None:
    objective, there = Objective(LogisticLoss(), BOUNDS), Coordinates(np.eye(4))
    gradient = PreconditionedGradient(objective, there, 1.0, 0.7, np.zeros(4))
    gradient_scale = gradient.sensitivity(Facts(BOUNDS, 3, relation)).value
    assert gradient_scale == pytest.approx(n_changed * 0.7 * (1 + 1e-3), rel=1e-14, abs=0.0)


class TwoRows(SecondMoment):
    """Coordinates that are known: of one column half is left."""

    def ask(self, *_: Any) -> Preconditioner:
        return Preconditioner(Coordinates(np.diag([1.0, 0.5])), 1.0, 40.0, 0.5)


@pytest.mark.parametrize(("error", "fine"), [(1.24e-5, False), (1.26e-5, True)])
def test_sums_there_are_as_fine_as_the_charge_asks_for(error: float, fine: bool) -> None:
    """Of 1e-3 of a clip 5e-5 is for the error e of a sum, 2 e over the least that A leaves."""
    asked: list[bool] = []

    class Coarse(MemoryRecords):
        def sum_error(self, *, fine: bool = False) -> float:
            return 0.0 if fine else error

        def sum(self, function: Any, *, fine: bool = False) -> Any:
            asked.append(fine)
            return super().sum(function, fine=fine)

    bounds = Bounds(row_norm=1.0, n_records=40)
    problem = Problem(Objective(LogisticLoss(), bounds), 2)
    mechanism = NoisyGradient(n_steps=3, preconditioner=TwoRows(always=True))
    plan = mechanism.plan(problem, Budget(1.0, 1e-6))
    run_plan(plan, Coarse(np.full((40, 2), 0.5), np.ones(40), bounds))
    assert asked == [fine] * 3


def test_rounding_in_a_certificate() -> None:
    # Numbers so small that an absolute tolerance would let everything pass: there is none.
    # u = 2^-53; docs/proofs/objective_perturbation.md, section 10
    objective = Objective(LogisticLoss(), BOUNDS, regularization=5.0)
    own = 8 * (objective.lipschitz + objective.smoothness / REACH)
    slopes = 7 * 2.0**-53 * (objective.smoothness * (3 + 4) * 2.0 + own)
    assert slopes_error(objective, 7, 3, 2.0) == pytest.approx(slopes, rel=1e-12, abs=0.0)
    # Row sums of |A| are 3 and 4, eigenvalues about -3.5 and 0.5.
    matrix = np.array([[0.0, -1.0], [-1.0, -3.0]])
    least = np.abs(np.linalg.eigvalsh(matrix)).min()
    turned = 2 * 2 * 2.0**-53 * 4.0 * (1 + 3 / least) * 7 * 1.5
    assert preconditioning_error(Coordinates(matrix), 7, 1.5) == pytest.approx(
        turned, rel=1e-9, abs=0.0
    )


def test_a_certificate_asks_for_the_sums_whose_error_it_charges(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[bool] = []
    added = MemoryRecords.sum

    def noticed(self: Any, function: Any, fine: bool = False) -> Any:
        asked.append(fine)
        return added(self, function, fine=fine)

    monkeypatch.setattr(MemoryRecords, "sum", noticed)
    objective = Objective(LogisticLoss(), BOUNDS, regularization=5.0)
    Perturbed(objective, records(), np.zeros(4)).certified_norm(np.ones(4))
    assert asked == [True]


@pytest.mark.parametrize(("relation", "n_changed"), [(ADD, 1.0), (REPLACE, 2.0)])
def test_public_candidates(
    relation: Relation, n_changed: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[Bounded] = []

    def noticed(bounded: Bounded, *rest: Any, **named: Any) -> Any:
        found.append(bounded)
        return select(bounded, *rest, **named)

    monkeypatch.setattr(selection_module, "select", noticed)
    candidates = np.array([[1.0, 0.0, 0.0, 0.0], [0.0, 2.0, 0.0, 0.0], [0.0, 0.0, -1.0, 1.0]])
    objective = Objective(LogisticLoss(), BOUNDS, regularization=1e6)
    plan = PublicCandidates(candidates).plan(Problem(objective, 3), Budget(1.0, 0.0, relation))
    rng = np.random.default_rng(1)
    rows, labels = rng.standard_normal((40, 3)), rng.choice([-1.0, 1.0], 40)
    run_plan(plan, MemoryRecords(rows, labels, BOUNDS), None)
    # from the first to the second; the penalty is rounded where it is added
    gradient_scale = n_changed * REACH * math.sqrt(5.0) * (1 + 1e-4) + 2.0**-51 * 1e6 / 2 * 4.0
    assert found[0].sensitivity == pytest.approx(gradient_scale, rel=1e-12)
    # Utilities are minus the objective, less that of the first without its penalty.
    whole = np.column_stack([clipped_rows(rows, 1.5), np.full(40, 0.7)])
    losses = np.array([np.logaddexp(0.0, -labels * (whole @ w)).sum() for w in candidates])
    penalty = 1e6 / 2 * (candidates**2).sum(axis=1)
    np.testing.assert_allclose(found[0].value + penalty, losses[0] - losses, atol=1e-5)


@pytest.mark.parametrize("counted", [True, False])
@pytest.mark.parametrize("preconditioner", [None, SecondMoment(share=0.1)])
@pytest.mark.parametrize("turned", [True, False])
@pytest.mark.parametrize("shrinks", [True, False])
def test_steps_and_questions_cost_one_gaussian(
    counted: bool,
    preconditioner: SecondMoment | None,
    turned: bool,
    shrinks: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(noisy_gradient_module, "_shrinks", lambda problem, budget: shrinks)
    bounds = Bounds(row_norm=1.0, n_records=None if counted else 1000)
    problem, budget = Problem(Objective(LogisticLoss(), bounds), 3), Budget(1.0, 1e-6)
    mechanism = NoisyGradient(preconditioner=preconditioner)
    if turned and preconditioner is None:
        return
    whole = Fraction(gaussian_multiplier(budget))
    noise = mechanism._noise(problem, budget, preconditioner if turned else None)
    asked = {"count": 0.01 * counted, "trace": 0.01 * (shrinks and not turned)}
    asked["second moment"] = 0.1 * turned
    # In real numbers and in shares of the whole.
    spent = {name: (whole / Fraction(one.multiplier)) ** 2 for name, one in noise.items()}
    steps = 50 * (whole / Fraction(gaussian_rest(noise["steps"], times=50).multiplier)) ** 2
    assert steps <= spent["steps"]
    assert sum(spent.values()) <= 1
    assert float(sum(spent.values()) - spent["steps"] + steps) > 1 - 1e-14
    others = {name: float(share) for name, share in spent.items() if name != "steps"}
    assert others == pytest.approx({k: v for k, v in asked.items() if v}, rel=1e-14, abs=0.0)


# Weights are shares of the greatest, 4, and are rounded down to whole steps of 2^-20 in a total.
WEIGHTED = Bounds(row_norm=1.5, n_classes=3, max_weight=4.0)
LABELS = np.array([0.0, 1.0, 2.0, 1.0, 2.0])
WEIGHTS = np.array([4.0 / 3.0, 9.0, 0.0, 4.0 / 7.0, 4.0])
SHARES = np.array([math.floor(2**20 * w) / 2**20 for w in (1 / 3, 1.0, 0.0, 1 / 7, 1.0)])


def weighted_records() -> MemoryRecords:
    rows = np.random.default_rng(2).standard_normal((5, 3))
    return MemoryRecords(rows, LABELS, WEIGHTED, WEIGHTS)


@pytest.mark.parametrize("delta", [1e-6, 0.0])
@pytest.mark.parametrize(("relation", "n_changed"), [(ADD, 1.0), (REPLACE, 2.0)])
def test_counts_of_classes(relation: Relation, n_changed: float, delta: float) -> None:
    problem = Problem(Objective(SoftmaxLoss(3), WEIGHTED, regularization=5.0), 3)
    inner = "output_perturbation"
    plan = Balanced(inner).plan(problem, Budget(1.0, delta, relation))
    counts, _ = released(plan, weighted_records())
    np.testing.assert_array_equal(counts.value, np.bincount(LABELS.astype(int), SHARES))
    # A record that is replaced leaves one count and enters another: 2, or sqrt(2) rounded up.
    gradient_scale = n_changed if delta == 0.0 else math.nextafter(math.sqrt(n_changed), math.inf)
    assert counts.sensitivity == gradient_scale
    assert counts.norm is (Norm.L1 if delta == 0.0 else Norm.L2)


@pytest.mark.parametrize("delta", [1e-6, 0.0])
def test_a_seed_voids_the_counts_of_classes_too(delta: float) -> None:
    problem = Problem(Objective(SoftmaxLoss(3), WEIGHTED, regularization=5.0), 3)
    plan = Balanced("output_perturbation").plan(problem, Budget(1.0, delta))
    seeded, again = (run_plan(plan, weighted_records(), seeded_source(7)) for _ in range(2))
    assert seeded.event.reasons_void() == (SEEDED,)
    np.testing.assert_array_equal(seeded.value, again.value)


@pytest.mark.parametrize("bounds", [WEIGHTED, replace(WEIGHTED, max_weight=None)])
def test_numbers_of_records(bounds: Bounds) -> None:
    weights = None if bounds.max_weight is None else WEIGHTS
    of = MemoryRecords(np.ones((5, 3)), LABELS, bounds, weights)
    problem = Problem(Objective(SoftmaxLoss(3), bounds, regularization=5.0), 3)
    counted, *_ = released(NoisyGradient(n_steps=1).plan(problem, Budget(1.0, 1e-6)), of)
    assert counted.value == (5.0 if weights is None else SHARES.sum())
    assert counted.sensitivity == 1.0


class Bent(SmoothHingeLoss):
    """A loss that bends everywhere as much as it may anywhere."""

    def hessian_trace_per_record(self, block: Any, weights: Any) -> Any:
        return np.full(block.n_rows, self.hessian_trace)


@pytest.mark.parametrize("mechanism", [ObjectivePerturbation(), NoisyGradient(n_steps=2)])
def test_traces(mechanism: Any) -> None:
    """A hinge with a corner of width 1/4 bends by 2: a record adds from 0 to 2 (3/2)^2."""
    bounds = Bounds(row_norm=1.5, intercept=0.7)
    rows = np.array([[0.5, 0.25, 0.0], [1.5, 0.0, 0.0], [0.0, 3.0, 0.0]])
    problem = Problem(Objective(Bent(0.25), bounds), 3)
    plan = mechanism.plan(problem, Budget(1.0, 1e-6))
    *_, trace = released(plan, MemoryRecords(rows, np.ones(3), bounds))
    assert trace.sensitivity == 2.0 * 1.5**2
    # the third row counts as long as may be
    assert trace.value == pytest.approx(2.0 * (0.5**2 + 0.25**2 + 1.5**2 + 1.5**2), abs=1e-3)


@pytest.mark.parametrize(("relation", "n_changed"), [(ADD, 1.0), (REPLACE, 2.0)])
def test_candidates_on_opposite_sides(relation: Relation, n_changed: float) -> None:
    bounds = Bounds(row_norm=1.0)
    problem = Problem(Objective(LogisticLoss(), bounds), 1)
    mechanism = PublicCandidates(np.array([[1000.0], [-1000.0]]))
    plan = mechanism.plan(problem, Budget(1.0, 0.0, relation))
    (scores,) = released(plan, MemoryRecords(np.array([[1.0]]), np.array([-1.0]), bounds))
    assert scores.sensitivity == pytest.approx(n_changed * 2000.0 * (1 + 1e-4), rel=1e-12)
    np.testing.assert_allclose(scores.value, [0.0, 1000.0])


def test_candidates_so_near_that_losses_differ_by_their_rounding() -> None:
    bounds, step = Bounds(row_norm=1.0), 2.0**-43
    mechanism = PublicCandidates(np.array([[1000.0, 1000.0], [1000.0 + step, 1000.0]]))
    plan = mechanism.plan(Problem(Objective(LogisticLoss(), bounds), 2), Budget(1.0))
    across = np.linspace(0.05, 0.99, 400)
    rows = np.column_stack([across, 0.999999999 * np.sqrt(1 - across**2)])
    losses = np.logaddexp(0.0, rows @ mechanism.candidates.T)
    far = np.argmax(np.abs(losses[:, 1] - losses[:, 0]))
    assert abs(losses[far, 1] - losses[far, 0]) > 1.5 * step
    (scores,) = released(plan, MemoryRecords(rows[[far]], np.array([-1.0]), bounds))
    first, second = np.asarray(scores.value)
    assert abs(second - first) <= scores.sensitivity < 1.5 * step
