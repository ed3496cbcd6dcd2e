"""A sum over a source is the exact sum of its rounded points, whatever its blocks are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tacit.queries.moments as module
from tacit.noise import Norm
from tacit.noise.summation import bounded_sum
from tacit.privacy import Relation
from tacit.queries import Facts, PointSum
from tacit.records import Bounds, ChunkedRecords, MemoryRecords, block


@pytest.mark.parametrize("relation", Relation)
def test_no_block_shows(relation: Relation, monkeypatch: pytest.MonkeyPatch) -> None:
    X = np.random.default_rng(0).standard_normal((600, 3)) * 10.0 ** np.arange(-2, 1)
    bounds = Bounds(row_norm=1.7)
    facts = Facts(bounds, 3, relation)
    whole = PointSum().total(MemoryRecords(X, None, bounds), facts)
    plain = bounded_sum(X, 1.7, Norm.L2, relation)
    np.testing.assert_allclose(whole, plain.value, atol=600 * 1.7 * 2.0**-20)
    assert PointSum().sensitivity(facts).value == plain.sensitivity
    monkeypatch.setattr(block, "_BLOCK_BYTES", 1)
    for rows in (1, 100, 777):
        monkeypatch.setattr(block, "_FEWEST_ROWS", rows)
        for records in (
            MemoryRecords(X, None, bounds),
            MemoryRecords(X[::-1], None, bounds),
            ChunkedRecords(lambda: [(X[:199], None), (X[199:], None)], 3, bounds),
        ):
            assert np.array_equal(PointSum().total(records, facts), whole)


def test_points_with_an_intercept() -> None:
    bounds = Bounds(row_norm=3.0, intercept=4.0)
    facts = Facts(bounds, 2, Relation.ADD_REMOVE)
    total = PointSum().total(MemoryRecords(np.zeros((5, 2)), None, bounds), facts)
    assert np.array_equal(np.round(total, 6), [0.0, 0.0, 20.0])
    stated = PointSum().sensitivity(facts)
    assert stated.value == pytest.approx(5.0, rel=1e-5)


def test_squares() -> None:
    bounds, rows = Bounds(row_norm=2.0), np.array([[1.0, -1.5], [0.5, 0.0]])
    facts = Facts(bounds, 2, Relation.REPLACE)
    total = PointSum(squared=True).total(MemoryRecords(rows, None, bounds), facts)
    assert total == pytest.approx([1.25, 2.25], rel=1e-6)
    stated = PointSum(squared=True).sensitivity(facts)
    assert stated.value == pytest.approx(8.0, rel=1e-5)


def test_too_many_records_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_RECORDS", 4)
    records: Any = MemoryRecords(np.ones((5, 2)), None, Bounds())
    with pytest.raises(ValueError, match="to add up exactly"):
        PointSum().total(records, Facts(records.bounds, 2, Relation.ADD_REMOVE))


@pytest.mark.parametrize("dtype", [np.int64, np.int8, np.float32])
def test_rows_of_other_types_are_added_up_as_numbers(dtype: Any) -> None:
    rows, bounds = np.array([[3, 0], [-1, 1]]), Bounds(row_norm=2.0)
    facts = Facts(bounds, 2, Relation.ADD_REMOVE)
    found = PointSum().total(MemoryRecords(rows.astype(dtype), None, bounds), facts)
    plain = PointSum().total(MemoryRecords(rows.astype(float), None, bounds), facts)
    np.testing.assert_array_equal(found, plain)
    np.testing.assert_allclose(found, [1.0, 1.0], atol=1e-5)
