"""Sizes that queries state, to the digit: of moments, of risks, and of what rounding may add."""

from __future__ import annotations

import inspect
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tacit.erm import Objective
from tacit.erm.losses import HuberLoss, LogisticLoss
from tacit.noise import Norm
from tacit.noise.summation import bounded_sum
from tacit.privacy import Relation
from tacit.queries import (
    Facts,
    GaussianNoise,
    LaplaceNoise,
    PerturbedMinimizer,
    Quantile,
    SphereNoise,
)
from tacit.queries.gradient import Measured, PreconditionedGradient, rounds_too_much
from tacit.queries.moments import ColumnMoments
from tacit.queries.selection import CandidateRisks, RiskInBall
from tacit.records import Bounds
from tacit.records.block import Coordinates
from tacit.records.grouped import PeopleInMemory
from tacit.records.privacy_unit import people_of

BOUNDS = Bounds(row_norm=1.0, n_classes=2)


@pytest.mark.parametrize("counts", [True, False])
def test_moments_move_as_far_as_the_sum_they_are(counts: bool) -> None:
    """A wider row is rounded in more places: a count is one more, and no count is none."""
    facts = Facts(Bounds(), 3, Relation.ADD_REMOVE)
    for statistic in ColumnMoments.tried():
        if statistic.counts is counts:
            rows = np.zeros((4, 2 * len(statistic.columns) + counts))
            summed = bounded_sum(rows, statistic._length, Norm.L2, facts.relation)
            assert statistic.sensitivity(facts).value == summed.sensitivity


@pytest.mark.parametrize(("width", "stretch"), [(2, 1.0), (10, 7.0), (300, 1e3)])
def test_a_product_rounds_too_much_from_its_limit_on(width: int, stretch: float) -> None:
    """2 d u (||A|| / a) n is 2.5e-5 there (docs/proofs/noisy_gradient.md, section 7)."""
    limit = 2.5e-5 / (2 * width * 2.0**-53 * stretch)
    assert not rounds_too_much(width, 0.999 * limit, stretch)
    assert rounds_too_much(width, 1.001 * limit, stretch)


def test_the_widest_row_of_a_preconditioner_decides() -> None:
    """By the sum of sizes in a row of A, wherever that row is."""
    matrix = np.array([[0.5, 0.0], [-1.5, 1.5]])
    objective = Objective(LogisticLoss(), BOUNDS, 2.0)
    shape = objective.shape(2)
    gradient = PreconditionedGradient(objective, Coordinates(matrix), 0.25, 1.0, np.zeros(shape))
    limit = 2.5e-5 / (2 * 2 * 2.0**-53 * 3.0 / 0.25)

    class Many:
        def __init__(self, n: float) -> None:
            self.n = n

        def count(self) -> float:
            return self.n

    few: Any = Many(0.999 * limit)
    many: Any = Many(1.001 * limit)
    gradient._check_rounding(few)
    with pytest.raises(ValueError, match="too many records"):
        gradient._check_rounding(many)


def test_people_s_sums_have_no_lengths_of_their_own() -> None:
    people = PeopleInMemory(np.zeros((3, 2)), None, BOUNDS, people_of(["a", "a", "b"]))
    facts = Facts(BOUNDS, 2, Relation.ADD_REMOVE_PERSON, sums_by_person=True)
    source: Any = None
    assert Measured(Coordinates(np.eye(2))).apply(people, facts, source) == (people, facts)


@pytest.mark.parametrize("knot", [0.5, 1.0, 3.0])
def test_a_steeper_loss_moves_a_risk_further(knot: float) -> None:
    """By its greatest slope times the row norm times the distance."""
    facts = Facts(Bounds(row_norm=2.0, label_range=(-1.0, 1.0)), 2, Relation.ADD_REMOVE)
    candidates = np.array([[0.0, 0.0], [3.0, 4.0]])
    assert (
        CandidateRisks(HuberLoss(knot), candidates).utility_sensitivity(facts) == knot * 2.0 * 5.0
    )
    assert RiskInBall(HuberLoss(knot), 1.5).utility_sensitivity(facts) == knot * 2.0 * 1.5


def test_noise_has_the_standard_deviation_that_plans_show() -> None:
    assert LaplaceNoise(0.5).std(3.0) == pytest.approx(math.sqrt(2.0) * 6.0, rel=1e-15)
    assert GaussianNoise(0.5).std(3.0) == 1.5
    assert math.isnan(SphereNoise(0.5).std(3.0))


def test_no_ridge_is_charged_that_nobody_adds() -> None:
    """A ridge that is declared lowers the price; whoever adds one says so."""
    defaults = inspect.signature(PerturbedMinimizer).parameters
    assert defaults["further_ridge"].default == 0.0
    assert defaults["row_scale"].default == 1.0


def test_a_quantile_is_of_a_column_that_is_there() -> None:
    facts = Facts(Bounds(), 3, Relation.ADD_REMOVE)
    one = Quantile.tried()[0]
    assert replace(one, column=2).applies(facts)
    assert not replace(one, column=3).applies(facts)
