"""Sums of columns and of their squares: their lengths, and what they add up to."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tacit.noise import Norm
from tacit.noise.summation import sum_sensitivity
from tacit.privacy import Relation
from tacit.queries import Facts
from tacit.queries.moments import ColumnMoments
from tacit.records import Bounds, MemoryRecords

LIMITS = ((0.0, 10.0), (-1.0, 1.0), (5.0, 6.0))
ROWS = np.array([[0.0, 1.0, 6.0], [10.0, -1.0, 5.0], [7.5, 0.5, 5.75], [99.0, math.nan, 5.5]])
UNITS = np.array([[-1.0, 1.0, 1.0], [1.0, -1.0, -1.0], [0.5, 0.5, 0.5], [1.0, 0.0, 0.0]])


@pytest.mark.parametrize("counts", [True, False])
@pytest.mark.parametrize("k", [1, 2, 3])
def test_no_record_is_clipped_and_none_is_longer_than_stated(k: int, counts: bool) -> None:
    statistic = ColumnMoments(tuple(range(k)), LIMITS[:k], counts)
    facts = Facts(Bounds(), 3, Relation.ADD_REMOVE)
    total = statistic.total(MemoryRecords(ROWS, None, facts.bounds), facts)
    units = UNITS[:, :k]
    constant = 1.25 * k**0.25 if counts else 0.0
    assert statistic.count_constant == pytest.approx(constant, rel=1e-15)
    expected = [*units.sum(axis=0), *(2 * units**2 - 1.25).sum(axis=0)]
    np.testing.assert_allclose(total, expected + [4 * constant] * counts, atol=1e-5)
    length = math.sqrt(25 * k / 16 + constant**2)
    for relation in (Relation.ADD_REMOVE, Relation.REPLACE):
        stated = statistic.sensitivity(Facts(Bounds(), 3, relation)).value
        needed = sum_sensitivity(length, 2 * k + counts, Norm.L2, relation)
        assert stated == pytest.approx(needed, rel=1e-14)


def test_where_it_can_be_asked() -> None:
    for n_features, relation, counts, expected in (
        (3, Relation.ADD_REMOVE, True, True),
        (3, Relation.REPLACE, True, False),
        (3, Relation.REPLACE, False, True),
        (2, Relation.ADD_REMOVE, True, False),
        (2, Relation.REPLACE, False, False),
    ):
        statistic = ColumnMoments((0, 2), LIMITS[:2], counts)
        assert statistic.applies(Facts(Bounds(), n_features, relation)) is expected
