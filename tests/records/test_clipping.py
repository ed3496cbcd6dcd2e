"""No row is longer than its bound, to the last digit."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse

from tacit.records import Bounds, MemoryRecords
from tests.records.helpers import make


def adversarial_rows():
    tiny, least = 1e-300, 5e-324
    rows = [
        [0.0, 0.0, 0.0],
        [1e300, 1e300, -1e300],
        [1.7e308, 1.7e308, 1.7e308],
        [1e300, tiny, 1.0],
        [tiny, tiny, tiny],
        [least, -least, 0.0],
        [2.2e-308, 1e-310, least],
        [1e160, 1.0, 0.0],
        [1e155, 1e-155, 1e154],
        [1.0, 0.0, 0.0],
        [0.6, 0.8, 0.0],
        [1.0, least, least],
        [math.nextafter(1.0, 2.0), 0.0, 0.0],
        [1e-160, 1.0, 1e160],
        [3.0, 1e-200, -4.0],
    ]
    rng = np.random.default_rng(2)
    spread = rng.standard_normal((200, 3)) * 10.0 ** rng.uniform(-320, 308, (200, 3))
    on_sphere = rng.standard_normal((200, 3))
    on_sphere /= np.linalg.norm(on_sphere, axis=1, keepdims=True)
    return np.vstack([rows, np.clip(spread, -1.7e308, 1.7e308), on_sphere])


def exact_square(vector):
    return sum((Fraction(float(x)) ** 2 for x in vector), Fraction(0))


@pytest.mark.parametrize("row_norm", [1e-12, 0.1, 1.0, 12.0, 1e6])
@pytest.mark.parametrize("kind", ["float64", "csr"])
def test_no_row_is_longer_than_its_bound(kind, row_norm):
    X = adversarial_rows()
    limit = Fraction(row_norm) ** 2
    records = MemoryRecords(make(kind, X), None, Bounds(row_norm=row_norm))
    block = records._block(0, len(X))
    dense = block.rows.toarray() if kind == "csr" else block.rows
    for factor, row, raw in zip(block.factors, dense, X, strict=True):
        # exactly, then as floats multiply
        assert exact_square(row) * Fraction(float(factor)) ** 2 <= limit
        assert exact_square(factor * row) <= limit
        size = math.hypot(*raw)
        if size < 0.999 * row_norm:
            assert factor == 1.0
        elif size < 1e80 * row_norm:
            assert exact_square(factor * row) >= limit * Fraction(999, 1000)


@pytest.mark.parametrize("kind", ["float64", "csr"])
def test_sums_of_one_row_are_within_their_sensitivity(kind):
    bounds = Bounds(row_norm=12.0)
    w = 1e6 * np.array([1.0, -2.0, 0.5])
    for row in adversarial_rows():
        block = MemoryRecords(make(kind, row[None]), None, bounds)._block(0, 1)
        one = np.ones(1)
        assert np.linalg.norm(block.weighted_sum(one)) <= 12.0 * (1 + 1e-12)
        assert np.linalg.norm(block.gram(one)) <= 144.0 * (1 + 1e-12)
        assert np.abs(block.scores(w)) <= np.linalg.norm(w) * 12.0 * (1 + 1e-12)
        assert np.linalg.norm(block.points()) <= 12.0 * (1 + 1e-12)


@pytest.mark.parametrize("kind", ["float64", "csr"])
@pytest.mark.parametrize("bad", [np.inf, -np.inf, np.nan])
def test_a_row_that_is_not_finite_counts_as_zero(kind, bad):
    X = np.array([[0.3, 0.4], [bad, 1.0], [0.0, 2.0]])
    X = make(kind, X)
    (total,) = MemoryRecords(X, None, Bounds()).sum(lambda b: (b.weighted_sum(np.ones(3)),))
    assert np.allclose(total, [0.3, 1.4])


def test_single_precision_rows_are_clipped_in_double():
    X = np.random.default_rng(3).standard_normal((500, 40)).astype(np.float32) * 1e30
    block = MemoryRecords(X, None, Bounds(row_norm=0.1))._block(0, 500)
    sizes = np.linalg.norm(block.points(), axis=1)
    assert np.all((sizes <= 0.1) & (sizes > 0.0999))


def test_duplicate_entries_of_a_sparse_row_add_up_before_clipping():
    # (0, 0) holds 0.7 + 0.7: shorter than 1 only if each were squared alone
    X = scipy.sparse.csr_array((np.full(2, 0.7), [0, 0], [0, 2]), shape=(1, 3))
    block = MemoryRecords(X, None, Bounds())._block(0, 1)
    assert np.linalg.norm(block.weighted_sum(np.ones(1))) <= 1.0
    assert X.nnz == 2
