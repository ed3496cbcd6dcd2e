"""Sums over cells: what one record adds is exact, and wrong constants are caught."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tacit.privacy import Relation
from tacit.queries import GaussianNoise, NoisySum
from tacit.queries.base import plain_facts
from tacit.queries.noise import gaussian_parts
from tacit.queries.table_cells import (
    STEPS,
    CellCounts,
    CellModel,
    CellTable,
    Grouping,
    NumberLabels,
    ResidualSums,
    SeveralClasses,
    TwoClasses,
    steps_of,
)
from tacit.testing import check_query

FACTS = plain_facts(Relation.ADD_REMOVE)
KINDS = (TwoClasses(), SeveralClasses(4), NumberLabels(0.2))


def table(n: int, seed: int = 0, n_classes: int = 2) -> CellTable:
    """Return records in two columns of 40 and 7 cells."""
    rng = np.random.default_rng(seed)
    cells = rng.integers(0, 40, n), rng.integers(0, 7, n)
    return CellTable(cells, rng.integers(0, n_classes, n))


def model(kind: Any, seed: int = 0) -> CellModel:
    """Return a model of random terms."""
    rng = np.random.default_rng(seed)
    terms = tuple(steps_of(rng.standard_normal((n, kind.n_outputs))) for n in (40, 7))
    return CellModel(kind, steps_of(rng.standard_normal(kind.n_outputs)), terms)


def groups() -> tuple[Grouping, ...]:
    """Return groups of both columns, some cells in none."""
    return Grouping(0, np.arange(40) // 8 - 1, 4, 1.5), Grouping(1, np.arange(7), 7, 0.625)


@pytest.mark.parametrize("kind", KINDS, ids=repr)
def test_a_record_changes_a_sum_by_its_own_part_and_by_no_bit_more(kind: Any) -> None:
    many = table(999, n_classes=4)
    statistic = ResidualSums(groups(), model(kind))
    whole = statistic.total(many, FACTS)
    for left_out in (0, 500, 998):
        others = np.delete(np.arange(999), left_out)
        less = CellTable(tuple(c[others] for c in many.cells), many.labels[others])
        alone = CellTable(tuple(c[[left_out]] for c in many.cells), many.labels[[left_out]])
        own = statistic.total(alone, FACTS)
        # Equal to the last bit, although the others moved to other places of their arrays.
        np.testing.assert_array_equal(statistic.total(less, FACTS) + own, whole)
        assert np.linalg.norm(own) <= statistic.sensitivity(FACTS).value


@pytest.mark.parametrize("kind", KINDS, ids=repr)
def test_scores_updated_term_by_term_are_those_of_a_new_sum(kind: Any) -> None:
    records = table(300)
    first, second = model(kind, 1), model(kind, 2)
    records.scores(first)
    mixed = CellModel(kind, second.intercept, (first.terms[0], second.terms[1]))
    without = CellModel(kind, second.intercept, (None, second.terms[1]))
    for one in (mixed, without, second):
        np.testing.assert_array_equal(records.scores(one), table(300).scores(one))


def test_probabilities_are_those_of_the_logistic_function() -> None:
    scores = np.linspace(-20, 20, 1001)
    found = TwoClasses().probabilities(steps_of(scores)) / STEPS
    np.testing.assert_allclose(found, 1 / (1 + np.exp(-scores)), atol=3e-4)
    several = np.random.default_rng(0).standard_normal((100, 5))
    expected = np.exp(several) / np.exp(several).sum(axis=1, keepdims=True)
    found = SeveralClasses(5).probabilities(steps_of(several)) / STEPS
    np.testing.assert_allclose(found, expected, atol=2e-3)


def test_a_constant_model_has_smaller_residuals() -> None:
    constant = CellModel(TwoClasses(), steps_of([-1.0]), (None, None))
    assert 0.73 < constant.largest_residual() < 0.732
    assert model(TwoClasses()).largest_residual() == 1.0


def test_counts_that_leave_out_the_labels_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mutant: the sum over labels is released and not counted in the sensitivity."""
    stated = CellCounts.sensitivity

    def without_labels(self: CellCounts, facts: Any) -> Any:
        return stated(CellCounts(self.groups), facts)

    monkeypatch.setattr(CellCounts, "sensitivity", without_labels)
    with pytest.raises(AssertionError, match="moved by"):
        check_query(NoisySum(CellCounts.tried()[1], GaussianNoise(1.0)), FACTS)


def test_columns_weighted_without_their_noise_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mutant: totals have the columns' weights, and the sensitivity has not."""

    def unweighted(self: CellCounts, facts: Any) -> Any:
        bare = tuple(Grouping(g.column, g.group_of, g.n_groups) for g in self.groups)
        return stated(CellCounts(bare, self.labels), facts)

    stated = CellCounts.sensitivity
    monkeypatch.setattr(CellCounts, "sensitivity", unweighted)
    with pytest.raises(AssertionError, match="moved by"):
        check_query(NoisySum(CellCounts.tried()[0], GaussianNoise(1.0)), FACTS)


def test_a_column_cannot_be_counted_twice_at_one_price() -> None:
    with pytest.raises(ValueError, match="twice"):
        CellCounts((groups()[0], groups()[0]))


@pytest.mark.parametrize("weight", [0.0, -1.0, 17.0, 0.3])
def test_weights_that_floats_would_round_are_refused(weight: float) -> None:
    with pytest.raises(ValueError, match="eighths"):
        Grouping(0, np.zeros(1, dtype=np.int64), 1, weight)


def test_parts_of_a_release_cost_no_more_than_it() -> None:
    from fractions import Fraction

    whole = GaussianNoise(3.7)
    parts = gaussian_parts(whole, {str(i): 1 / 7 for i in range(7)}).values()
    total = sum(1 / Fraction(part.multiplier) ** 2 for part in parts)
    assert total <= 1 / Fraction(whole.multiplier) ** 2
