"""Sparse rows mean the same to norms and to products, whatever their arrays look like."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse
from scipy.sparse import csr_array

from tacit.records import Block, Bounds, MemoryRecords
from tacit.records.block import canonical, sparse_norms

FORMATS = ["csr", "csc", "coo", "bsr", "dia", "lil", "dok"]


def forged(data: Any, indices: Any, indptr: Any, shape: tuple[int, int]) -> Any:
    """Return a CSR array that says it is canonical and has not been looked at."""
    matrix = csr_array((np.zeros(0), np.zeros(0, int), np.zeros(shape[0] + 1, int)), shape=shape)
    matrix.data, matrix.indices, matrix.indptr = map(np.asarray, (data, indices, indptr))
    matrix.has_canonical_format = True
    return matrix


def sums(matrix: Any, bounds: Bounds) -> Any:
    def on_block(block: Block) -> tuple[Any, ...]:
        ones = np.ones(block.n_rows)
        scores = block.scores(np.ones(matrix.shape[1]))
        return block.weighted_sum(ones), block.weighted_sum(np.tanh(scores)), block.gram(ones)

    return MemoryRecords(matrix, None, bounds).sum(on_block)


def test_a_record_that_cancels_itself_erases_nobody_else() -> None:
    # Short as a row, since 1e200 - 1e200 = 0, and beyond all others as two terms of a sum.
    rng = np.random.default_rng(0)
    others = np.hstack([rng.uniform(0.1, 0.5, (50, 1)), np.zeros((50, 1))])
    data = [*others[:, 0], 1e200, -1e200]
    whole = forged(data, [0] * 52, [*range(51), 52], (51, 2))
    first, bent, gram = sums(whole, Bounds())
    assert first[0] == pytest.approx(others[:, 0].sum())
    assert bent[0] == pytest.approx((others[:, 0] * np.tanh(others[:, 0])).sum())
    assert gram[0, 0] == pytest.approx((others[:, 0] ** 2).sum())


@pytest.mark.parametrize("flag", [True, False, None])
def test_what_the_matrix_says_of_itself_is_not_believed(flag: bool | None) -> None:
    matrix = forged([0.7, 0.2, 0.7], [1, 0, 1], [0, 3], (1, 3))
    if flag is not None:
        matrix.has_canonical_format = flag
        matrix.has_sorted_indices = flag
    else:
        del matrix._has_canonical_format, matrix._has_sorted_indices
    arrays = matrix.data, matrix.indices, matrix.indptr
    before = [array.copy() for array in arrays]
    made = canonical(matrix)
    assert made.toarray().tolist() == [[0.2, 1.4, 0.0]]
    assert made.indices.tolist() == [0, 1]
    assert np.linalg.norm(sums(matrix, Bounds())[0]) <= 1.0
    # and it is left as it was
    assert (matrix.data, matrix.indices, matrix.indptr) == arrays
    assert all(np.array_equal(a, b) for a, b in zip(arrays, before, strict=True))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", [scipy.sparse.csr_array, scipy.sparse.csr_matrix])
def test_what_is_in_order_is_not_copied(kind: Any, dtype: Any) -> None:
    matrix = kind(np.eye(5, dtype=dtype))
    made = canonical(matrix)
    assert made.dtype == dtype
    assert np.shares_memory(made.data, matrix.data)
    assert np.shares_memory(made.indices, matrix.indices)


@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint8, np.int64, np.float32, np.float64])
@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("family", ["array", "matrix"])
def test_every_format_holds_the_same_rows(family: str, name: str, dtype: Any) -> None:
    dense = np.array([[0, 3, 0, 1], [0, 0, 0, 0], [2, 0, 0, 1]]).astype(dtype)
    matrix = getattr(scipy.sparse, f"{name}_{family}")(dense)
    kept = matrix.copy()
    made = canonical(matrix)
    assert isinstance(made, csr_array)
    assert made.dtype in (np.float32, np.float64)
    assert np.array_equal(made.toarray(), dense.astype(float))
    assert matrix.dtype == kept.dtype
    assert np.array_equal(matrix.toarray(), kept.toarray())
    for a, b in zip(
        sums(matrix, Bounds()), sums(csr_array(dense.astype(float)), Bounds()), strict=True
    ):
        assert np.array_equal(a, b)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, bool, np.float32])
@pytest.mark.parametrize("name", ["csr", "coo", "csc"])
def test_entries_are_added_in_double_precision(name: str, dtype: Any) -> None:
    top = {np.float32: 3e38, bool: 1}.get(dtype, 100)
    values, zeros = np.array([top, top], dtype=dtype), np.zeros(2, int)
    matrix: Any
    if name == "coo":
        matrix = scipy.sparse.coo_array((values, (zeros, zeros)), shape=(1, 1))
    else:
        made_as = getattr(scipy.sparse, f"{name}_array")
        matrix = made_as((values, zeros, np.array([0, 2])), shape=(1, 1))
    assert canonical(matrix).toarray()[0, 0] == pytest.approx(2 * float(top))


def test_explicit_zeros_and_entries_beyond_the_last_row_are_nothing() -> None:
    matrix = forged([0.0, 0.5, 1e300], [0, 1, 0], [0, 2], (1, 2))
    assert canonical(matrix).toarray().tolist() == [[0.0, 0.5]]
    assert sums(matrix, Bounds())[0].tolist() == [0.0, 0.5]


@pytest.mark.parametrize("values", [[np.nan], [np.inf], [np.inf, -np.inf], [1e308, 1e308]])
def test_entries_that_are_no_number_make_the_row_zero(values: list[float]) -> None:
    n = len(values)
    matrix = csr_array(([0.5, *values], [0] * (n + 1), [0, 1, n + 1]), shape=(2, 2))
    assert sums(matrix, Bounds())[0].tolist() == [0.5, 0.0]


BROKEN = {
    "beyond the columns": forged([1.0], [7], [0, 1], (1, 3)),
    "before the columns": forged([1.0], [-1], [0, 1], (1, 3)),
    "rows that run back": forged([1.0, 1.0], [0, 1], [0, 2, 1], (2, 3)),
    "more entries than there are": forged([1.0], [0], [0, 5], (1, 3)),
    "too few rows": forged([1.0], [0], [0, 1], (3, 3)),
    "a late start": forged([1.0, 1.0], [0, 1], [1, 2], (1, 3)),
    "indices without data": forged([1.0], [0, 1], [0, 2], (1, 3)),
}


@pytest.mark.parametrize("what", BROKEN)
def test_arrays_that_are_no_matrix_are_refused(what: str) -> None:
    with pytest.raises(ValueError, match="do not describe a matrix of their shape; build it anew"):
        MemoryRecords(BROKEN[what], None, Bounds())


@pytest.mark.parametrize("name", ["csc", "bsr", "coo"])
def test_of_other_formats_too(name: str) -> None:
    matrix = getattr(scipy.sparse, f"{name}_array")(np.eye(3))
    if name == "coo":
        matrix.coords = (np.array([0, 1, 9]), np.array([0, 1, 2]))
    else:
        matrix.indices = np.array([0, 1, 9], dtype=np.int32)
    with pytest.raises(ValueError, match="do not describe a matrix"):
        MemoryRecords(matrix, None, Bounds())


def test_samples_are_in_order_too() -> None:
    matrix = csr_array(([0.7, 0.7, 0.1], [1, 1, 0], [0, 2, 3]), shape=(2, 2))
    records = MemoryRecords(matrix, None, Bounds())
    sample = records.poisson_sample(1.0, lambda n: np.zeros(n, np.uint64))
    for part in (records.every(1), sample.records):
        assert isinstance(part, MemoryRecords)
        assert part.rows.toarray().tolist() == [[0.0, 1.4], [0.1, 0.0]]


def test_norms() -> None:
    rows = canonical(csr_array(np.array([[3.0, 4.0], [0.0, 0.0], [3e200, 4e200], [5e-324, 0.0]])))
    assert sparse_norms(rows).tolist() == pytest.approx(
        [5.0, 0.0, 5e200, 5e-324], rel=1e-6, abs=0.0
    )
