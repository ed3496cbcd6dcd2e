"""Counts and second moments are exact sums of what each record adds."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from tacit.privacy import Relation
from tacit.queries import Facts, SecondMoment
from tacit.records import Bounds, ChunkedRecords, MemoryRecords
from tacit.records.exact.lattice import MOMENT_SLACK, exact_moment, exact_totals

BOUNDS = Bounds(row_norm=1.3, intercept=0.3, max_weight=2.0)


def data(n: int = 300):
    rng = np.random.default_rng(0)
    return rng.standard_normal((n, 4)), rng.uniform(0, 1, n), rng.uniform(0, 2.5, n)


def memory(at=slice(None)) -> MemoryRecords:
    rows, labels, weights = data()
    return MemoryRecords(rows[at], labels[at], BOUNDS, weights[at])


def chunked() -> ChunkedRecords:
    rows, labels, weights = data()

    def read():
        for a, b in ((0, 3), (3, 200), (200, 300)):
            yield rows[a:b], labels[a:b], weights[a:b]

    return ChunkedRecords(read, 4, BOUNDS)


def totals(records, greatest: float = 0.75) -> float:
    return float(exact_totals(records, lambda block: block.weighed(block.labels), greatest))


def test_the_same_bits_for_any_order() -> None:
    turned = np.random.default_rng(1).permutation(300)
    for of in (totals, exact_moment):
        first = of(memory())
        assert np.array_equal(first, of(memory(turned)))
        assert np.array_equal(first, of(chunked()))


def test_a_record_adds_no_more_than_the_greatest() -> None:
    far = [totals(memory()) - totals(memory(np.arange(300) != i)) for i in range(60)]
    assert 0.7 < max(far) <= 0.75
    assert min(far) >= 0.0
    weighed = data()[1] * np.minimum(data()[2], 2) / 2
    assert totals(memory(), 1.0) == pytest.approx(weighed.sum(), rel=1e-5)


def test_a_record_moves_the_moment_by_no_more_than_its_length() -> None:
    facts = Facts(memory().bounds, memory().n_features, Relation.ADD_REMOVE)
    reach = SecondMoment().sensitivity(facts).value
    assert reach == pytest.approx(1.3**2 + 0.3**2, rel=2e-6)
    whole, far = exact_moment(memory()), []
    for i in range(60):
        gap = whole - exact_moment(memory(np.arange(300) != i))
        far.append(sum(Fraction(float(g)) ** 2 for g in gap.ravel()))
    assert Fraction(9, 10) < max(far) / Fraction(reach) ** 2 <= 1


def test_the_slack_of_a_moment_is_that_of_two_roundings() -> None:
    """2^-52 n for each of two, of the sum and of what sqrt(2) packs, with n at most 2^31.

    2^-50 more is for what states it: R is rounded (by one unit in the last place, 2^-52), its
    square and the product, and so is the sqrt(2) by which entries are multiplied.
    """
    assert MOMENT_SLACK == 2 * 2**31 * 2.0**-52 + 2.0**-50


def test_it_is_the_moment() -> None:
    (near,) = memory().sum(lambda b: (b.gram(np.ones(b.n_rows)),))
    np.testing.assert_allclose(exact_moment(memory()), near, rtol=1e-4, atol=2e-3)


def test_what_is_no_number_counts_as_nothing() -> None:
    bad = exact_totals(memory(), lambda block: np.full(block.n_rows, np.nan), 1.0)
    assert float(bad) == 0.0


@pytest.mark.parametrize("intercept", [0.3, 1.0, 0.7])
def test_a_weighted_intercept_gets_no_longer(intercept: float) -> None:
    bounds = Bounds(row_norm=1.0, intercept=intercept, max_weight=1.0)
    for weight in np.linspace(0.03, 1.0, 40):
        records = MemoryRecords(np.zeros((1, 2)), np.zeros(1), bounds, np.array([weight]))
        found = Fraction(float(exact_moment(records)[-1, -1]))
        exact = Fraction(float(weight)) * Fraction(intercept) ** 2
        assert exact * Fraction(999, 1000) < found <= exact
