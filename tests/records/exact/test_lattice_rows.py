"""Rows in whole steps are no longer than their norm, and depend on nothing but themselves."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse

from tacit.records import Bounds
from tacit.records.block import factors_of
from tacit.records.exact.lattice import in_steps, power_above, row_step

NORMS = [1.0, 0.7, 2.0, 2.0**-30, 3e100, 1.0 + 2.0**-52]


def rows(n: int = 400, d: int = 7, seed: int = 0):
    rng = np.random.default_rng(seed)
    table = rng.standard_normal((n, d)) * rng.choice([1e-3, 0.1, 1.0, 50.0], (n, 1))
    table[rng.random((n, d)) < 0.4] = 0.0
    table[:d] = 1e6 * np.eye(d)  # as far along one axis as it gets
    return table


def whole_rows(table, norm: float):
    scaled = table * norm
    return in_steps(scaled, factors_of(scaled, Bounds(row_norm=norm)), norm)


def longest(whole, norm: float) -> Fraction:
    """Return the greatest squared length by the norm squared, in real numbers."""
    step = Fraction(row_step(norm)) / Fraction(norm)
    return max(sum(int(k) ** 2 for k in row) for row in whole) * step**2


@pytest.mark.parametrize("norm", NORMS)
def test_no_row_is_longer_than_its_norm(norm: float) -> None:
    whole = whole_rows(rows(), norm)
    assert Fraction(999, 1000) < longest(whole, norm) <= 1
    assert np.abs(whole.astype(int)).max() <= 2**15 - 1


@pytest.mark.parametrize("norm", NORMS)
def test_rounding_to_the_nearest_alone_would_be_longer(norm: float) -> None:
    scaled = rows() * norm
    factors = factors_of(scaled, Bounds(row_norm=norm))
    nearest = np.rint(scaled * factors[:, None] / row_step(norm))
    assert longest(nearest, norm) > 1


def test_short_rows_are_rounded_to_the_nearest() -> None:
    short = rows() * 1e-3
    short[:7] = 0.0
    whole = in_steps(short, factors_of(short, Bounds()), 1.0)
    assert np.abs(whole * row_step(1.0) - short).max() <= row_step(1.0) / 2


def test_a_row_depends_on_itself_alone() -> None:
    table = rows()
    whole = whole_rows(table, 1.0)
    for i in range(0, 400, 37):
        assert np.array_equal(whole_rows(table[i : i + 1], 1.0)[0], whole[i])
    order = np.random.default_rng(1).permutation(400)
    assert np.array_equal(whole_rows(np.asfortranarray(table[order]), 1.0), whole[order])


def test_sparse_and_single_rows_are_the_same_as_dense_ones() -> None:
    table = rows().astype(np.float32)
    dense = whole_rows(table.astype(np.float64), 1.0)
    sparse = scipy.sparse.csr_array(table.astype(np.float64))
    found = in_steps(sparse, factors_of(sparse, Bounds()), 1.0)
    assert np.array_equal(found.toarray(), dense)
    single = in_steps(table, factors_of(table.astype(np.float64), Bounds()), 1.0)
    assert np.array_equal(single, dense)


def test_rows_that_nobody_clipped_do_not_wrap_around() -> None:
    far = np.array([[1e9, -1e9]])
    assert in_steps(far, np.ones(1), 1.0).tolist() == [[32767, -32767]]


def test_powers() -> None:
    for value in (1.0, 1.5, 2.0, 2.0**-40, 3e-20, 7e30):
        e = power_above(value)
        assert 2.0 ** (e - 1) < value <= 2.0**e
