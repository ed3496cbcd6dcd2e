"""Every sensitivity that a mechanism states is that of its proof, with what floats may add.

What a replay on neighbouring data would not notice is held here to the formula: slacks of a
ten-thousandth or less, and factors that chosen neighbours do not attain.
"""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tacit.erm.noisy_gradient as noisy_gradient_module
import tacit.erm.output_perturbation as output_perturbation_module
import tacit.queries.noisy_sum as noisy_sum_module
import tacit.queries.selection as selection_module
from tacit.erm import (
    NoisyGradient,
    Objective,
    OutputPerturbation,
    Problem,
    PublicCandidates,
    SecondMoment,
    SufficientStatistics,
)
from tacit.erm.losses import LogisticLoss, SquaredLoss
from tacit.erm.perturbed import Perturbed, slopes_error, turning_error
from tacit.erm.second_moment import second_moment_reach
from tacit.erm.shrinking import TRACE_MULTIPLE
from tacit.noise import Bounded, select
from tacit.noise import gaussian as gaussian_noise
from tacit.privacy import Budget, Relation
from tacit.privacy.calibration import gaussian_multiplier
from tacit.queries import Facts, LabelMoment
from tacit.records import Bounds, MemoryRecords
from tacit.records.coordinates import Coordinates
from tacit.records.exact_rows import TERM_BITS
from tacit.records.exact_sums import Rounding
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


@pytest.mark.parametrize(("relation", "moved", "two"), [(ADD, 1, 1), (REPLACE, 2, math.sqrt(2))])
def test_moments(
    relation: Relation, moved: float, two: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = stated(noisy_sum_module, monkeypatch)
    problem = Problem(Objective(SquaredLoss(), BOUNDS), 3)
    plan = SufficientStatistics().plan(problem, Budget(1.0, 1e-6, relation))
    plan.mechanism.solve(plan, records(), None)
    least, packed, cross = (bounded.sensitivity for bounded in found)
    assert least == pytest.approx(REACH**2 * (1 + 1e-4), rel=1e-9)
    assert two * REACH**2 < packed < two * REACH**2 * (1 + 1e-4)
    assert packed == pytest.approx(second_moment_reach(BOUNDS, relation), rel=1e-14)
    # R is rounded, and so is the product
    assert moved * 3.0 * REACH * (1 + 2.0**-51) <= cross < moved * 3.0 * REACH * (1 + 1e-6)
    assert least >= np.linalg.eigvalsh(np.outer([1.5, 0.7], [1.5, 0.7])).max()


@pytest.mark.parametrize(("relation", "moved"), [(ADD, 1.0), (REPLACE, 2.0)])
def test_sums_of_many_records_are_charged_for_their_rounding(
    relation: Relation, moved: float
) -> None:
    many = replace(BOUNDS, n_records=2**20)
    slack = Rounding(TERM_BITS, 2**20).slack
    assert slack > 1e-8
    cross = LabelMoment(SquaredLoss()).sensitivity(Facts(many, 3, relation))
    exact = moved * 3.0 * REACH * (1 + slack) * (1 + 2.0**-50)
    assert cross.value == pytest.approx(exact, rel=4e-16)


def test_second_moments_are_charged_for_their_rounding() -> None:
    # Rows are in steps of 2^-20 or finer; the sum is rounded once, and once more where packed.
    from tacit.records.exact_moments import MOMENT_SLACK

    assert 0 < MOMENT_SLACK < 1e-5
    for relation, two in ((ADD, 1.0), (REPLACE, math.sqrt(2.0))):
        reach = two * REACH**2 * (1 + MOMENT_SLACK)
        assert second_moment_reach(BOUNDS, relation) == pytest.approx(reach, rel=1e-14)


@pytest.mark.parametrize(("relation", "moved"), [(ADD, 1.0), (REPLACE, 2.0)])
def test_minimisers(relation: Relation, moved: float, monkeypatch: pytest.MonkeyPatch) -> None:
    found = stated(output_perturbation_module, monkeypatch)
    certified: list[float] = []
    minimize: Any = vars(output_perturbation_module)["minimize_certified"]

    def noticed(problem: Any, start: Any, tau: float) -> Any:
        certified.append(tau)
        return minimize(problem, start, tau)

    monkeypatch.setattr(output_perturbation_module, "minimize_certified", noticed)
    problem = Problem(Objective(LogisticLoss(), BOUNDS, regularization=5.0), 3)
    plan = OutputPerturbation().plan(problem, Budget(1.0, 1e-6, relation))
    plan.mechanism.solve(plan, records(), None)
    exact = moved * REACH / 5.0
    assert found[0].sensitivity == pytest.approx(exact * (1 + 1e-4), rel=1e-12)
    # Either minimiser is off by tau / lam at most.
    assert exact + 2 * certified[0] / 5.0 == pytest.approx(found[0].sensitivity, rel=1e-12)


@pytest.mark.parametrize(("relation", "moved"), [(ADD, 1.0), (REPLACE, 2.0)])
def test_steps_in_other_coordinates(relation: Relation, moved: float) -> None:
    course = SimpleNamespace(turned=object(), clip=0.7)
    reach = noisy_gradient_module._reach(course, relation)
    assert reach == pytest.approx(moved * 0.7 * (1 + 1e-3), rel=1e-14)


def test_rounding_in_a_certificate() -> None:
    # u = 2^-53; docs/proofs/objective_perturbation.md, section 10
    objective = Objective(LogisticLoss(), BOUNDS, regularization=5.0)
    own = 8 * (objective.lipschitz + objective.smoothness / REACH)
    slopes = 7 * 2.0**-53 * (objective.smoothness * (3 + 4) * 2.0 + own)
    assert slopes_error(objective, 7, 3, 2.0) == pytest.approx(slopes, rel=1e-12)
    # Row sums of |A| are 3 and 4, eigenvalues about -3.5 and 0.5.
    matrix = np.array([[0.0, -1.0], [-1.0, -3.0]])
    least = np.abs(np.linalg.eigvalsh(matrix)).min()
    turned = 2 * 2 * 2.0**-53 * 4.0 * (1 + 3 / least) * 7 * 1.5
    assert turning_error(Coordinates(matrix), 7, 1.5) == pytest.approx(turned, rel=1e-9)


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


@pytest.mark.parametrize(("relation", "moved"), [(ADD, 1.0), (REPLACE, 2.0)])
def test_public_candidates(
    relation: Relation, moved: float, monkeypatch: pytest.MonkeyPatch
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
    plan.mechanism.solve(plan, MemoryRecords(rows, labels, BOUNDS), None)
    # from the first to the second; the penalty is rounded where it is added
    reach = moved * REACH * math.sqrt(5.0) * (1 + 1e-4) + 2.0**-51 * 1e6 / 2 * 4.0
    assert found[0].sensitivity == pytest.approx(reach, rel=1e-12)
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
    step = mechanism._step_multiplier(problem, budget, 50, object() if turned else None)
    whole = 1 / gaussian_multiplier(budget) ** 2
    asked = 0.01 * counted + (0.1 if turned else 1 / TRACE_MULTIPLE**2 * shrinks)
    spent = 50 / step**2 + asked * whole
    assert spent <= whole * (1 + 1e-15)
    assert spent == pytest.approx(whole, rel=1e-9)
