"""A clipped row is within its bound in real numbers, whoever clips it and wherever it stands."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import scipy.sparse

from tacit.local.estimators import _ready
from tacit.local.subgradients import clipped
from tacit.noise import Norm
from tacit.noise.summation import bounded_sum
from tacit.privacy import Relation
from tacit.records import Bounds, MemoryRecords
from tacit.row_clipping import clip_factors, clipped_rows, row_norms


def exact_square(row: Any) -> Fraction:
    return sum((Fraction(float(x)) ** 2 for x in row), Fraction(0))


def hard_rows(d: int) -> Any:
    rng = np.random.default_rng(d)
    sphere = rng.standard_normal((20, d))
    sphere /= np.linalg.norm(sphere, axis=1, keepdims=True)
    # large coordinates, then many whose squares are lost one by one in a sum of floats
    forgotten = np.full((1, d), math.sqrt(0.98 * math.ulp(1.0) / 2))
    forgotten[0, 0] = 1.0
    spread = rng.standard_normal((20, d)) * 10.0 ** rng.uniform(-320, 80, (20, d))
    tiny = np.full((2, d), [[5e-324], [1e-160]])
    return np.vstack([sphere, sphere * (1 + 1e-15), sphere * 1e9, forgotten, spread, tiny])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("bound", [1.0, 0.3, 1e20, 2.0**-899])
@pytest.mark.parametrize("d", [1, 2, 17, 200])
def test_no_row_is_longer_than_its_bound(d: int, bound: float, dtype: Any) -> None:
    with np.errstate(over="ignore"):
        rows = (hard_rows(d) * bound).astype(dtype)
    rows = rows[np.isfinite(rows).all(axis=1)]
    factors = clip_factors(row_norms(rows), bound, d)
    for row, factor, short in zip(rows, factors, clipped_rows(rows, bound), strict=True):
        limit, before, after = Fraction(bound) ** 2, exact_square(row), exact_square(short)
        assert after <= limit
        if factor > 0.0:
            assert before * Fraction(float(factor)) ** 2 <= limit
        if before <= limit * Fraction(999, 1000):
            assert np.array_equal(short, row)
        elif factor > 0.0:
            assert after >= min(before, limit * (1 - Fraction(1, 10**8)))


@pytest.mark.slow
def test_a_hundred_thousand_columns() -> None:
    rows = hard_rows(100_000)[[20, 60]]
    for short in clipped_rows(rows, 1.0):
        assert exact_square(short) <= 1


def test_ordinary_rows_are_scaled_as_ever() -> None:
    # the formula of the first release: fits on the same rows and noise give the same bits
    rows = np.random.default_rng(0).standard_normal((3000, 50))
    sizes = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    limit = 6.5 * (1.0 - 1e-9)
    expected = np.where(sizes > limit, limit / sizes, 1.0)
    assert np.array_equal(MemoryRecords(rows, None, Bounds(row_norm=6.5)).clip_factors(), expected)
    assert 100 < np.count_nonzero(expected < 1.0) < 2900


USERS = {
    "records": lambda row: MemoryRecords(row[None], None, Bounds())._block(0, 1).points()[0],
    "sparse records": lambda row: (
        MemoryRecords(scipy.sparse.csr_array(row[None]), None, Bounds())._block(0, 1).points()[0]
    ),
    "sum": lambda row: np.atleast_1d(
        bounded_sum(row[None], 1.0, Norm.L2, Relation.ADD_REMOVE, max_rows=1).value
    ),
    "table of people": lambda row: _ready(row[None], 1.0, 0.0)[0],
    "person": lambda row: clipped(row, 1.0),
}


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ([1e200, 0.0], [0.0, 0.0]),
        ([1e308, 1e308], [0.0, 0.0]),
        ([1e100, 1e100], [0.0, 0.0]),
        ([2.1e90, 0.0], [0.0, 0.0]),
        ([2.0e90, 0.0], [1.0, 0.0]),
        ([3e80, -4e80], [0.6, -0.8]),
        ([3e80, 1e-300], [1.0, 0.0]),
        ([1e-320], [1e-320]),
        ([5e-324, 1e-320], [5e-324, 1e-320]),
        ([0.6, 0.8], [0.6, 0.8]),
        ([30.0, 40.0], [0.6, 0.8]),
    ],
)
def test_everybody_clips_by_the_same_rule(
    user: str, row: list[float], expected: list[float]
) -> None:
    found = USERS[user](np.array(row))
    tolerance = 1e-15 if user == "sum" else 0.0  # which rounds to steps
    np.testing.assert_allclose(found, expected, rtol=2e-9, atol=tolerance)


@pytest.mark.parametrize("bad", [math.inf, -math.inf, math.nan])
@pytest.mark.parametrize("user", sorted(USERS.keys() - {"sum"}))  # which refuses it
def test_what_is_not_finite_counts_as_zero(user: str, bad: float) -> None:
    assert USERS[user](np.array([1.0, bad])).tolist() == [0.0, 0.0]


@pytest.mark.parametrize("d", [1, 2, 3, 5, 8, 31, 64, 1000, 9000])
def test_a_factor_is_the_rows_own(d: int) -> None:
    rng = np.random.default_rng(d)
    n = 70
    rows = rng.standard_normal((n, d))
    rows[::7] *= 10.0 ** rng.uniform(-160, 160, (n // 7, 1))
    expected = np.concatenate([row_norms(row[None]) for row in rows])
    raw = np.zeros(rows.nbytes + 8, dtype=np.uint8)
    for offset in (0, 1, 8):
        raw[offset : offset + rows.nbytes] = np.frombuffer(rows.tobytes(), dtype=np.uint8)
        elsewhere = raw[offset : offset + rows.nbytes].view(np.float64).reshape(n, d)
        assert np.array_equal(row_norms(elsewhere), expected)
    wide = np.zeros((2 * n, 2 * d + 1))
    wide[::2, 1::2] = rows
    for layout in (np.asfortranarray(rows), wide[::2, 1::2], rows[::-1].copy()[::-1]):
        assert np.array_equal(row_norms(layout), expected)
    for start, stop in ((0, 1), (1, 2), (3, 6), (5, n), (n - 1, n)):
        assert np.array_equal(row_norms(rows[start:stop]), expected[start:stop])
        assert np.array_equal(row_norms(np.asfortranarray(rows)[start:stop]), expected[start:stop])


@pytest.mark.parametrize("bound", [2.0**-901, 0.0, -1.0, math.nan])
def test_bounds_too_small_to_hold_are_refused(bound: float) -> None:
    with pytest.raises(ValueError, match="at least 2\\^-900"):
        clip_factors(np.ones(1), bound, 1)


def test_a_zero_row_under_a_large_bound() -> None:
    assert clip_factors(np.zeros(1), 1e300, 3).tolist() == [1.0]


def test_the_margin_grows_with_the_columns() -> None:
    # a billionth, or what rounding of so many squares may take
    for n_columns, margin in ((3, 1e-9), (10**8, (10**8 + 8) * 2.0**-51)):
        found = clip_factors(np.array([2.0]), 1.0, n_columns)[0]
        assert found == pytest.approx((1 - margin) / 2, rel=1e-15)
