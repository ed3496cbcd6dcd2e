"""A score is the row's own: the same bits wherever the row stands and whatever is around it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse

from tacit.erm.losses import DistanceLoss
from tacit.records import Block, Bounds, MemoryRecords
from tacit.records import block as block_sums
from tacit.records import block as row_products
from tacit.records import memory as memory_module


def scores_of(rows: Any, weights: Any, bounds: Bounds) -> Any:
    """Return steady scores by the road of a fit: blocks, clip factors, threads."""
    found: dict[float, Any] = {}

    def on_block(block: Block) -> tuple[Any]:
        assert block.labels is not None
        found.update(zip(block.labels.tolist(), block.steady_scores(weights), strict=True))
        return (np.zeros(1),)

    MemoryRecords(rows, np.arange(float(rows.shape[0])), bounds).sum(on_block)
    return np.array([found[i] for i in range(rows.shape[0])])


KINDS: dict[str, Any] = {
    "float64": lambda X: X,
    "float32": lambda X: X.astype(np.float32),
    "csr": scipy.sparse.csr_array,
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("outputs", [None, 3])
@pytest.mark.parametrize("intercept", [0.0, 0.7])
@pytest.mark.parametrize("d", [1, 2, 3, 8, 20, 33])
def test_a_score_is_the_rows_own(
    d: int, intercept: float, outputs: int | None, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(d)
    n = 203
    X = rng.standard_normal((n, d)).astype(np.float32).astype(np.float64)
    X[5, 0] = np.inf  # counts as zeros
    rows, shape = KINDS[kind](X), (d + (intercept > 0), outputs)[: 1 if outputs is None else 2]
    weights = rng.standard_normal(shape)
    bounds = Bounds(row_norm=float(np.sqrt(d)), intercept=intercept)  # half the rows are clipped
    alone = np.concatenate([scores_of(rows[i : i + 1], weights, bounds) for i in range(n)])
    expected = MemoryRecords(X, None, bounds)._block(0, n).scores(weights)
    np.testing.assert_allclose(alone, expected, rtol=1e-12, atol=1e-12 * np.abs(expected).max())
    assert np.array_equal(scores_of(rows, weights, bounds), alone)
    for keep in (slice(1, None), slice(0, -1), slice(None, None, 2), slice(100, 103)):
        assert np.array_equal(scores_of(rows[keep], weights, bounds), alone[keep])
    order = rng.permutation(n)
    assert np.array_equal(scores_of(rows[order], weights, bounds), alone[order])
    for number in (1, 100, 3000):  # blocks, and terms at once
        monkeypatch.setattr(block_sums, "_BLOCK_BYTES", 8 * number)
        monkeypatch.setattr(block_sums, "_FEWEST_ROWS", 1 + number // 40)
        monkeypatch.setattr(row_products, "_TERMS", number)
        assert np.array_equal(scores_of(rows, weights, bounds), alone)
    monkeypatch.setattr(memory_module, "_SHARED_BYTES", 1)
    monkeypatch.setattr(block_sums, "available_threads", lambda: 2)
    assert np.array_equal(scores_of(rows, weights, bounds), alone)


@pytest.mark.parametrize("d", [1, 2, 3, 8, 20, 33])
def test_nor_does_it_matter_how_rows_lie_in_memory(d: int) -> None:
    rng = np.random.default_rng(d)
    n = 203
    X, weights, bounds = rng.standard_normal((n, d)), rng.standard_normal(d), Bounds(row_norm=2.0)
    expected = scores_of(X, weights, bounds)
    wide = np.zeros((3 * n, 2 * d + 1))
    wide[::3, 1::2] = X
    raw = np.zeros(X.nbytes + 8, dtype=np.uint8)
    raw[1 : 1 + X.nbytes] = np.frombuffer(X.tobytes(), dtype=np.uint8)
    shifted = raw[1 : 1 + X.nbytes].view(np.float64).reshape(n, d)
    backwards = X[::-1, ::-1].copy()[::-1, ::-1]
    for layout in (np.asfortranarray(X), wide[::3, 1::2], shifted, backwards):
        assert np.array_equal(layout, X)
        assert np.array_equal(scores_of(layout, weights, bounds), expected)
        for start in (1, n - 3, n - 1):
            assert np.array_equal(scores_of(layout[start:], weights, bounds), expected[start:])


def test_terms_are_added_in_pairs() -> None:
    # as far apart as half the row: 1 and 2^-60 meet only after 2^60 has gone
    row = np.array([[2.0**60, 1.0, -(2.0**60), 2.0**-60]])
    assert row_products.row_products(row, np.ones(4))[0] == 1.0


@pytest.mark.parametrize("shape", [(0, 3), (4, 0), (0, 0)])
def test_no_rows_or_no_columns(shape: tuple[int, int]) -> None:
    assert np.array_equal(
        row_products.row_products(np.ones(shape), np.ones(shape[1])), np.zeros(shape[0])
    )


@pytest.mark.parametrize("d", [1, 2, 5, 20, 9000])
def test_a_distance_is_the_rows_own(d: int) -> None:
    # where w = x the unit vector towards w jumps
    rng = np.random.default_rng(d)
    n = 23
    X, bounds = rng.standard_normal((n, d)), Bounds(row_norm=float(np.sqrt(d)))

    def gradients(rows: Any, at: Any) -> Any:
        block = MemoryRecords(rows, None, bounds)._block(0, len(rows))
        return DistanceLoss().gradients(at, block.points())

    clipped = MemoryRecords(X, None, bounds)._block(0, n).points()
    for at in (np.zeros(d), clipped[3], clipped[3] * (1 + 2.0**-52)):
        expected = gradients(X, at)
        for layout in (X, np.asfortranarray(X)):
            for keep in (slice(1, None), slice(3, 4), slice(None, 4), slice(None, None, 2)):
                assert np.array_equal(gradients(layout[keep], at), expected[keep])
    assert not gradients(X, clipped[3])[3].any()
