"""Scores and sums of rows in whole steps are exact, with BLAS, numba or SciPy."""

from __future__ import annotations

from fractions import Fraction
from typing import Any
from unittest import mock

import numpy as np
import pytest
import scipy.sparse

import tacit.records.exact.lattice as lattice_block_module
import tacit.records.memory as memory_module
from tacit.records import Bounds, MemoryRecords
from tacit.records.exact.kernels import compiled
from tacit.records.exact.lattice import (
    MOST_ROWS,
    LatticeBlock,
    check_few_rows,
    on_lattice,
    sum_in_steps,
)
from tacit.records.exact.tiles import Tiles

N, D = 300, 37
BOUNDS = Bounds(row_norm=2.0, intercept=0.5)


def table(seed: int = 0):
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((N, D)) * rng.choice([0.01, 1.0, 9.0], (N, 1))
    return np.where(rng.random((N, D)) < 0.3, rows, 0.0)


def tiled(whole: Any) -> Tiles:
    tiles = Tiles.room_for(whole)
    tiles.put(0, whole)
    return tiles


def weights(*shape: int):
    return np.random.default_rng(5).standard_normal(shape) * 3.0


def scores_of(records: MemoryRecords, w: Any, how: str = "numba"):
    """Return all scores, by compiled kernels or by BLAS."""
    seen = []

    def look(block: LatticeBlock):
        seen.append(block.scores(w))
        return (np.zeros(1),)

    compiles = how == "numba"
    with mock.patch.object(memory_module, "is_worth_compiling", return_value=compiles):
        sum_in_steps(records, look, n_outputs=1 if w.ndim == 1 else w.shape[1])
    return np.concatenate(seen)


def exact_score(row: Any, w: Any, step: float) -> float:
    products = (Fraction(float(k)) * Fraction(float(v)) for k, v in zip(row, w, strict=True))
    return float(sum(products, Fraction(0)) * Fraction(step))


@pytest.mark.parametrize("shape", [(D + 1,), (D + 1, 3)])
def test_scores_are_exact_whoever_computes_them(shape: tuple[int, ...]) -> None:
    assert compiled() is not None
    rows, w = table(), weights(*shape)
    found = scores_of(MemoryRecords(rows, None, BOUNDS), w)
    by_blas = scores_of(MemoryRecords(rows, None, BOUNDS), w, "blas")
    by_scipy = scores_of(MemoryRecords(scipy.sparse.csr_array(rows), None, BOUNDS), w)
    alone = np.concatenate([scores_of(MemoryRecords(r[None], None, BOUNDS), w) for r in rows])
    for other in (by_blas, by_scipy, alone):
        assert np.array_equal(found, other)
    whole = MemoryRecords(rows, None, BOUNDS)._table().rows
    column, first = (w[:, 0], found[:, 0]) if w.ndim == 2 else (w, found)
    lattice = np.multiply(*on_lattice(w[:-1]))
    lattice = lattice[:, 0] if w.ndim == 2 else lattice
    expected = [exact_score(row, lattice, 2.0**-14) for row in whole]
    assert np.array_equal(first, np.array(expected) + 0.5 * column[-1])


def test_a_matrix_product_of_such_rows_alone_is_not_exact() -> None:
    # else the test above would say nothing
    rows, w = MemoryRecords(table(), None, BOUNDS)._table().rows.astype(float), weights(D)
    exact = [exact_score(row, w, 1.0) for row in rows]
    assert not np.array_equal(rows @ w, exact)


@pytest.mark.parametrize("n_outputs", [1, 3])
def test_sums_are_exact(n_outputs: int) -> None:
    rng = np.random.default_rng(2)
    shape = (N,) if n_outputs == 1 else (N, n_outputs)
    numbers = rng.integers(-(2**18), 2**18, shape).astype(float)
    whole = MemoryRecords(table(), None, BOUNDS)._table().rows
    expected = whole.T.astype(object) @ numbers.astype(int).astype(object)
    blocks = [
        LatticeBlock(whole, 1.0, None, 0.0),
        LatticeBlock(tiled(whole), 1.0, None, 0.0),
        LatticeBlock(scipy.sparse.csr_array(whole.astype(float)), 1.0, None, 0.0),
    ]
    for block in blocks:
        assert np.array_equal(block.whole_sum(numbers), expected.astype(float))


@pytest.mark.parametrize("n_outputs", [1, 3])
def test_every_record_is_in_a_sum_once_however_a_block_is_cut(n_outputs: int) -> None:
    # A record in two slices would move the sum by twice what is charged for it.
    shape = (N,) if n_outputs == 1 else (N, n_outputs)
    numbers = np.random.default_rng(3).integers(-(2**18), 2**18, shape).astype(float)
    whole = MemoryRecords(table(), None, BOUNDS)._table().rows
    expected = whole.T.astype(object) @ numbers.astype(int).astype(object)
    with (
        mock.patch.object(lattice_block_module, "small_rows", return_value=64),
        mock.patch.object(lattice_block_module, "MOST_ROWS", 70),
    ):
        for rows in (whole, scipy.sparse.csr_array(whole.astype(float))):
            found = LatticeBlock(rows, 1.0, None, 0.0).whole_sum(numbers)
            assert np.array_equal(found, expected.astype(float))


def test_lengths_are_those_of_the_steps() -> None:
    whole = MemoryRecords(table(), None, BOUNDS)._table().rows
    expected = (whole.astype(float) ** 2).sum(axis=1) * 2.0**-28
    for rows in (whole, tiled(whole), scipy.sparse.csr_array(whole.astype(float))):
        block = LatticeBlock(rows, 2.0**-14, None, 0.0)
        assert np.array_equal(block.squared_norms(), expected)


def test_weights_keep_28_bits() -> None:
    w = weights(50)
    whole, spacing = on_lattice(w)
    assert np.array_equal(whole, np.rint(whole))
    assert np.linalg.norm(whole) <= 2.0**27 + 4
    assert np.abs(whole * spacing - w).max() <= np.linalg.norm(w) * 2.0**-26
    assert np.array_equal(on_lattice(np.zeros(3))[0], np.zeros(3))
    assert np.array_equal(on_lattice(np.full(3, 1e-200))[0], np.zeros(3))


def test_weights_beyond_reason_are_refused() -> None:
    for absurd in (np.inf, np.nan, 1e200):
        with np.errstate(over="ignore"), pytest.raises(ValueError, match="not finite"):
            on_lattice(np.array([1.0, absurd]))
    block = LatticeBlock(np.ones((1, 1), dtype=np.int16), 1.0, None, 1.0)
    for absurd in (np.inf, np.nan):
        with pytest.raises(ValueError, match="not finite"):
            block.scores(np.array([1.0, absurd]))
        with pytest.raises(ValueError, match="not finite"):  # of one output among several
            block.scores(np.array([[1.0, 1.0], [1.0, absurd]]))


def test_blocks_that_could_not_be_added_exactly_are_refused() -> None:
    check_few_rows(MOST_ROWS)
    with pytest.raises(ValueError, match="smaller"):
        check_few_rows(MOST_ROWS + 1)


def test_whole_numbers_of_a_block_add_up_within_a_double() -> None:
    from tacit.records.exact.lattice import COEFFICIENT_BITS, MOST_ROWS, ROW_BITS

    assert MOST_ROWS * 2**ROW_BITS * 2**COEFFICIENT_BITS <= 2**53
