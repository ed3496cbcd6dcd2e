"""Utilities move by no more than their sensitivity, to the last bit."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from tacit.erm import Objective, Problem, PublicCandidates, QuantileOnALine, minimize
from tacit.erm.losses import LogisticLoss, QuantileLoss
from tacit.erm.minimization import run_plan
from tacit.noise import Entry, recording
from tacit.privacy import Budget, Relation
from tacit.queries import Facts, Quantile
from tacit.queries.quantile import rank_utility
from tacit.records import Bounds, MemoryRecords
from tacit.testing import replay

LEVELS = [0.1, 1 / 3, 0.7, 0.5, 0.9, 0.95, 0.999, 1e-3, math.pi / 4, 1e-9, 1 - 2**-53]
NUMBERS = [0, 1, 2, 3, 7, 10, 999, 10**6, 2**31 - 1, 2**40 + 1, 10**15 + 7, 2**53 - 1, 2**53]


def fraction_of(level: float) -> Fraction:
    return Quantile(level, 0.0, 1.0).fraction


def stated(level: float, relation: Relation) -> Fraction:
    facts = Facts(Bounds(), 1, relation)
    return Fraction(Quantile(level, 0.0, 1.0).sensitivity(facts).value)


@pytest.mark.parametrize("level", LEVELS)
def test_no_utility_moves_by_more_than_its_sensitivity(level: float) -> None:
    fraction = fraction_of(level)
    rng = np.random.default_rng(0)
    for n in NUMBERS:
        middle = int(level * n)
        ranks = [0, n, middle, *(middle + rng.integers(-50, 50, 20)), *rng.integers(0, n + 1, 20)]
        below = np.unique(np.clip(np.array(ranks, dtype=np.int64), 0, n))

        def n_changed(first: np.ndarray, second: np.ndarray) -> Fraction:
            pairs = zip(first.tolist(), second.tolist(), strict=True)
            return max(abs(Fraction(a) - Fraction(b)) for a, b in pairs)

        here = rank_utility(below, n, fraction)
        added = stated(level, Relation.ADD_REMOVE)
        # one record more, below or above
        assert n_changed(here, rank_utility(below, n + 1, fraction)) <= added
        assert n_changed(here, rank_utility(below + 1, n + 1, fraction)) <= added
        replaced = stated(level, Relation.REPLACE)
        assert n_changed(here, rank_utility(below + 1, n, fraction)) <= replaced


@pytest.mark.parametrize("level", LEVELS)
def test_utilities_are_rank_errors(level: float) -> None:
    fraction = fraction_of(level)
    for n in (0, 1, 10, 999, 10**9):
        below = np.unique(np.linspace(0, n, 50).astype(np.int64))
        found = rank_utility(below, n, fraction) / fraction.denominator
        np.testing.assert_allclose(
            found, -np.abs(below - float(fraction) * n), rtol=1e-12, atol=1e-6
        )
    assert abs(float(fraction) - level) < 2.0**-20


def test_levels_are_fractions_of_20_bits() -> None:
    """So that a rank of 32 bits times a denominator is a double, whatever the level."""
    level, facts = math.sqrt(2) / 2, Facts(Bounds(), 1, Relation.ADD_REMOVE)
    finer, nearest, coarser = (Fraction(level).limit_denominator(2**k) for k in (21, 20, 19))
    assert Quantile(level, 0.0, 1.0).rank_sensitivity(facts) == float(nearest)
    assert float(finer) != float(nearest) != float(coarser)


def test_what_is_not_finite_counts_as_zero() -> None:
    bounds = Bounds(row_norm=10.0)
    problem = Problem(Objective(QuantileLoss(0.5), bounds), 1)
    plan = QuantileOnALine(-1.0, 3.0).plan(problem, Budget(1.0))
    seen = []
    for odd in (0.0, math.nan, math.inf, -math.inf):
        with recording() as tape:
            run_plan(plan, MemoryRecords(np.array([[odd], [0.5], [2.0]]), None, bounds))
        (entry,) = tape.entries
        assert isinstance(entry, Entry)
        seen.append((entry.bounded.value, entry.public))
    for value, public in seen:
        np.testing.assert_array_equal(value, seen[0][0])
        assert str(public) == str(seen[0][1])


def test_ranks_that_far_off_are_equally_bad() -> None:
    found = rank_utility(np.array([0, 2**40, 2**52]), 2**53, Fraction(1, 2))
    assert found.tolist() == [-2.0 * (2**32 - 1)] * 2 + [0.0]


def test_levels_people_write_are_exact() -> None:
    assert [fraction_of(x) for x in (0.1, 1 / 3, 0.7, 0.95)] == [
        Fraction(1, 10),
        Fraction(1, 3),
        Fraction(7, 10),
        Fraction(19, 20),
    ]


@pytest.mark.parametrize("relation", [Relation.ADD_REMOVE, Relation.REPLACE])
@pytest.mark.parametrize("level", [0.1, 1 / 3, 0.7])
def test_a_quantile_replayed(level: float, relation: Relation) -> None:
    bounds = Bounds(n_records=1000)
    objective = Objective(QuantileLoss(level), bounds)
    values = np.random.default_rng(0).uniform(0, 1, (1000, 1))

    def fit(rows: np.ndarray) -> object:
        records = MemoryRecords(rows, np.zeros(len(rows)), bounds)
        return minimize(records, objective, Budget(1.0, 0.0, relation), QuantileOnALine(0.0, 1.0))

    other = values[1:] if relation is Relation.ADD_REMOVE else np.vstack([values[1:], [[7.0]]])
    assert replay(fit, values, other) == 1
    problem = Problem(objective, 1)
    plan = QuantileOnALine(0.0, 1.0).plan(problem, Budget(1.0, 0.0, relation))
    expected = 1.0 if relation is Relation.REPLACE else max(level, 1 - level)
    assert plan.settings["sensitivity"] == pytest.approx(expected)


def test_a_large_ridge_does_not_round_beyond_the_sensitivity() -> None:
    bounds = Bounds()
    candidates = np.array([[0.0], [1.0], [-1.0]])
    objective = Objective(LogisticLoss(), bounds, regularization=3e16)
    rows = np.linspace(-1.0, 1.0, 101)[:, None]

    def fit(n: int) -> object:
        records = MemoryRecords(rows[:n], np.ones(n), bounds)
        return minimize(records, objective, Budget(1.0, 0.0), PublicCandidates(candidates))

    with recording() as tape:
        for n in range(102):
            fit(n)
    values = [np.asarray(entry.bounded.value) for entry in tape.entries]
    limit = tape.entries[0].bounded.sensitivity
    moves = [np.abs(a - b).max() for a, b in pairwise(values)]
    assert max(moves) <= limit
    assert max(moves) == 2.0  # where one record's excess is at most 1
