"""Rounding in other coordinates is part of the certificate of a minimum."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from tacit.erm import Objective
from tacit.erm.losses import HingeLoss, LogisticLoss, SquaredLoss
from tacit.erm.solvers import Perturbed, preconditioning_error
from tacit.records import Bounds, MemoryRecords
from tacit.records.block import Coordinates
from tacit.records.reweighted import LeverageWeights, ReweightedRecords

UNIT = 2.0**-53


def coordinates(d: int, least: float, seed: int) -> Coordinates:
    """Return a symmetric matrix with eigenvalues from ``least`` to 1."""
    turn = np.linalg.qr(np.random.default_rng(seed).standard_normal((d, d)))[0]
    matrix = turn @ np.diag(np.geomspace(least, 1.0, d)) @ turn.T
    return Coordinates((matrix + matrix.T) / 2)


def exactly(matrix: Any, vector: Any) -> list[Fraction]:
    return [
        sum(
            (Fraction(float(a)) * Fraction(float(v)) for a, v in zip(row, vector, strict=True)),
            Fraction(),
        )
        for row in matrix
    ]


@pytest.mark.parametrize("d", [2, 5, 20])
@pytest.mark.parametrize("least", [1.0, 0.1, 1e-3])
def test_a_product_is_off_by_no_more_than_is_said(d: int, least: float) -> None:
    there, rng, worst = coordinates(d, least, d), np.random.default_rng(0), Fraction(0)
    for _ in range(20):
        vector = rng.standard_normal(d)
        made = there.of(vector)
        off = [
            Fraction(float(a)) - b for a, b in zip(made, exactly(there.matrix, vector), strict=True)
        ]
        length = Fraction(float(np.linalg.norm(vector)))
        worst = max(worst, sum((o * o for o in off), Fraction()) / length**2)
    assert 0 < worst <= Fraction(preconditioning_error(there, 1.0, 1.0)) ** 2


def test_a_weight_is_off_by_no_more_than_is_said() -> None:
    """(r / ||A x||)^2 of a record's own length there, which A may leave little of."""
    there, rng = coordinates(4, 1e-6, 1), np.random.default_rng(0)
    bounds, length = Bounds(1.0), 1e-7
    # along the direction of which least is left, and a little off it
    _, vectors = np.linalg.eigh(there.matrix)
    rows = vectors[:, 0] * 0.9 + 1e-7 * rng.standard_normal((50, 4))
    records = MemoryRecords(rows, None, bounds)
    (shares,) = ReweightedRecords(records, LeverageWeights(there, length)).sum(
        lambda block: (block.weighed(np.ones(block.n_rows)),)
    )
    worst = 0.0
    for row, share in zip(rows, shares, strict=True):
        square = sum((v * v for v in exactly(there.matrix, row)), Fraction())
        true = (Fraction(length) * Fraction(1 - 1e-9)) ** 2 / square
        worst = max(worst, abs(float(Fraction(float(share)) / true - 1)))
    # far more than a few units, since A x is a small difference
    assert 1e-12 < worst < preconditioning_error(there, 1.0, 1.0)


def test_the_bound_is_that_of_the_formula() -> None:
    there = Coordinates(np.array([[0.5, -0.3], [-0.3, 0.5]]))  # row sums 0.8, eigenvalues 0.8, 0.2
    formula = 2 * 2 * UNIT * 0.8 * (1 + 3 / 0.2) * 70 * 1.5
    assert preconditioning_error(there, 70.0, 1.5) == pytest.approx(formula, rel=1e-12, abs=0.0)
    assert preconditioning_error(None, 70.0, 1.5) == 0.0


def test_it_is_in_the_certificate() -> None:
    there, rng, bounds = coordinates(3, 0.01, 2), np.random.default_rng(0), Bounds(2.0)
    records = MemoryRecords(rng.standard_normal((40, 3)), rng.choice([-1.0, 1.0], 40), bounds)
    objective = Objective(LogisticLoss(), bounds, 0.5)
    b, v = rng.standard_normal(3), rng.standard_normal(3)
    problem = Perturbed(objective, records, b, coordinates=there)
    (total,) = records.sum(lambda block: (objective.gradient(block, there.of(v)),), fine=True)
    computed = np.linalg.norm(there.of(total) + 0.5 * v + b)
    others = Perturbed(objective, records, b)._float_error(v)
    preconditioned = preconditioning_error(there, 40.0, objective.lipschitz)
    assert problem.certified_norm(v) >= computed + others + preconditioned
    assert preconditioned > others  # or this would say nothing


def test_a_large_ridge_is_in_the_certificate() -> None:
    """Its product with the weights is rounded, the further ridge's too."""
    bounds, w = Bounds(1e-3), np.array([3.0, -4.0])
    records = MemoryRecords(np.full((1, 2), 1e-4), np.ones(1), bounds)
    for ridge, further, size in ((1e8, 0.0, 5e8), (1.0, 1e8, 5e8)):
        objective = Objective(LogisticLoss(), bounds, ridge)
        error = Perturbed(objective, records, np.zeros(2), further)._float_error(w)
        assert 4 * UNIT * size <= error <= 5 * UNIT * size
    tilted = Perturbed(objective, records, np.full(2, 1e12), 1e8)._float_error(w)
    assert tilted >= 4 * UNIT * math.sqrt(2) * 1e12


def test_slopes_that_jump_have_no_certificate() -> None:
    bounds = Bounds(1.0)
    records = MemoryRecords(np.ones((2, 1)), np.ones(2), bounds)
    for loss in (HingeLoss(), SquaredLoss()):
        problem = Perturbed(Objective(loss, bounds, 1.0), records, np.zeros(1))
        assert problem.certified_norm(np.zeros(1)) == math.inf


@pytest.mark.parametrize("d", [3, 40_000])
def test_the_length_of_many_numbers_is_off_by_more(d: int) -> None:
    """A float norm of d numbers errs by up to d u / 2, and a certificate has room for it."""
    objective = Objective(LogisticLoss(), Bounds(), regularization=1.0)
    b = np.full(d, 1e6)
    tilted = Perturbed(objective, MemoryRecords(np.zeros((1, d)), np.ones(1), Bounds()), b)
    # 4 u are for the rounding of b in the gradient; of the one record next to nothing is left
    off = tilted.certified_norm(np.zeros(d)) / float(np.linalg.norm(b)) - 1 - 4 * UNIT
    assert off == pytest.approx((d + 8) * UNIT, abs=2 * UNIT)
