"""Sums over records in memory: what they are, what they cost, and who waits for whom."""

from __future__ import annotations

import copy
import pickle
import threading
import tracemalloc
from typing import Any

import numpy as np
import pytest

from tacit.noise import secure_source
from tacit.records import Bounds, MemoryRecords, RecordSource
from tacit.records import block as block_sums
from tacit.records import memory as module
from tacit.records.block import Coordinates, measured
from tacit.records.exact import lattice
from tests.records.helpers import KINDS, everything, make


def directly(X, y, bounds):
    """Return the same sums from explicit clipped rows."""
    X = np.asarray(X, dtype=np.float64)
    sizes = np.linalg.norm(X, axis=1, keepdims=True)
    rows = X * np.minimum(1.0, bounds.row_norm / sizes)
    if bounds.intercept:
        rows = np.hstack([rows, np.full((len(rows), 1), bounds.intercept)])
    y = y if bounds.label_range is None else np.clip(y, *bounds.label_range)
    w = np.linspace(-1.0, 1.0, rows.shape[1])
    scores = rows @ w
    several = rows @ np.stack([w, -2 * w], axis=1)
    return (
        rows.sum(axis=0),
        rows.T @ np.tanh(scores),
        rows.T @ np.tanh(several),
        rows.T @ (rows / (1.0 + scores**2)[:, None]),
        rows.sum(axis=0),
        len(rows),
        y.sum(),
    )


@pytest.mark.parametrize("intercept", [0.0, 0.7])
@pytest.mark.parametrize("kind", KINDS)
def test_sums_are_those_of_clipped_rows(kind, intercept):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((700, 5)) * rng.choice([0.1, 1.0, 20.0], (700, 1))
    X = make(kind, X * (rng.uniform(size=X.shape) < 0.7) + 1e-3)
    y = rng.normal(0, 5, 700)
    bounds = Bounds(row_norm=1.5, label_range=(-2.0, 3.0), intercept=intercept)
    dense = X.toarray() if kind == "csr" else X
    for fine in (False, True):
        found = MemoryRecords(X, y, bounds).sum(everything, fine=fine)
        for a, b in zip(found, directly(dense, y, bounds), strict=True):
            assert np.allclose(a, b, rtol=1e-6, atol=1e-6)
            assert np.asarray(a).dtype == np.float64


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [0, 1, 2, 513, 1537])
def test_sums_do_not_depend_on_the_size_of_blocks(kind, n, monkeypatch):
    rng = np.random.default_rng(1)
    X, y = make(kind, rng.standard_normal((n, 4)) * 3), rng.standard_normal(n)
    bounds = Bounds(row_norm=1.0, label_range=(-1.0, 1.0), intercept=0.25)
    expected = MemoryRecords(X, y, bounds).sum(everything)
    assert expected[5] == n
    for fine_rows in (1, 60, 512):
        monkeypatch.setattr(block_sums, "_FINE_ROWS", (fine_rows, fine_rows))
        monkeypatch.setattr(block_sums, "_FEWEST_ROWS", fine_rows)
        for block_bytes in (1, 1000, 8 << 20):
            monkeypatch.setattr(block_sums, "_BLOCK_BYTES", block_bytes)
            records = MemoryRecords(X, y, bounds)
            for fine in (False, True):
                if n > 500 and fine_rows == 1 and (fine or block_bytes == 1):
                    continue  # slow, and nothing new
                for a, b in zip(records.sum(everything, fine=fine), expected, strict=True):
                    assert np.allclose(a, b, rtol=1e-12, atol=1e-12)


def test_no_labels():
    records = MemoryRecords(np.ones((3, 2)), None, Bounds())
    assert records._block(0, 3).labels is None


def test_labels_are_clipped_only_to_a_declared_range():
    y = np.array([-1e300, -2.0, 0.5, 7.0])
    ranged = MemoryRecords(np.ones((4, 1)), y, Bounds(label_range=(-1.0, 2.0)))
    assert ranged._block(0, 4).labels.tolist() == [-1.0, -1.0, 0.5, 2.0]
    assert MemoryRecords(np.ones((4, 1)), y, Bounds())._block(0, 4).labels.tolist() == y.tolist()
    assert y[0] == -1e300


@pytest.mark.parametrize("fine", [False, True])
def test_a_pass_never_copies_the_rows(fine):
    X = np.random.default_rng(4).standard_normal((50_000, 100))
    y = np.zeros(len(X))
    before = X.copy()
    w = np.ones(101)

    def passes():
        records = MemoryRecords(X, y, Bounds(row_norm=3.0, label_range=(-1.0, 1.0), intercept=1.0))
        records.sum(lambda b: (b.weighted_sum(np.tanh(b.scores(w))),), fine=fine)
        records.sum(lambda b: (b.gram(np.ones(b.n_rows)),), fine=fine)

    MemoryRecords(X[:10], y[:10], Bounds()).sum(everything)  # imports
    tracemalloc.start()
    passes()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert X.nbytes == 40_000_000
    assert peak < 0.25 * X.nbytes
    assert np.array_equal(X, before)


@pytest.mark.parametrize("kind", KINDS)
def test_data_are_left_as_they_were(kind):
    X = make(kind, np.random.default_rng(5).standard_normal((60, 4)) * 1e3)
    y = np.linspace(-9, 9, 60)
    kept = X.copy(), y.copy()
    MemoryRecords(X, y, Bounds(row_norm=0.1, label_range=(-1.0, 1.0))).sum(everything)
    same = abs(X - kept[0]).nnz == 0 if kind == "csr" else np.array_equal(X, kept[0])
    assert same
    assert np.array_equal(y, kept[1])


@pytest.mark.parametrize("kind", KINDS)
def test_no_records_at_all(kind):
    records = MemoryRecords(make(kind, np.empty((0, 3))), np.empty(0), Bounds(intercept=0.5))
    assert records.count() == 0
    for fine in (False, True):
        totals = records.sum(everything, fine=fine)
        assert all(not np.any(total) for total in totals)
        assert totals[0].shape == (4,)
        assert totals[3].shape == (4, 4)
        assert records.sum_error(fine=fine) > 0.0
    assert records.poisson_sample(0.5, secure_source().words).records.count() == 0


@pytest.mark.parametrize("fine", [False, True])
def test_threads_do_not_wait_for_themselves(fine, monkeypatch):
    # clip factors are shared among the same threads, and were once asked for by one of them
    monkeypatch.setattr(module, "_SHARED_BYTES", 1)
    monkeypatch.setattr(block_sums, "_BLOCK_BYTES", 8 * 3 * 256)
    monkeypatch.setattr(block_sums, "_FINE_PRODUCT", 2**20)
    monkeypatch.setattr(block_sums, "available_threads", lambda: 2)
    X = np.random.default_rng(0).standard_normal((5000, 3)) * 3
    records = MemoryRecords(X, None, Bounds())
    found: list[Any] = []
    worker = threading.Thread(
        target=lambda: found.extend(records.sum(everything, fine=fine)), daemon=True
    )
    worker.start()
    worker.join(60)
    assert found, "the threads wait for each other"
    scaled = X * np.minimum(1.0, 1.0 / np.linalg.norm(X, axis=1))[:, None]
    assert np.allclose(found[0], scaled.sum(axis=0), rtol=1e-6)


@pytest.mark.parametrize("name", ["sum", "sum_in_steps"])
def test_two_sums_at_once_do_not_write_into_each_others_rows(name, monkeypatch):
    monkeypatch.setattr(block_sums, "_BLOCK_BYTES", 8 * 3 * 256)
    monkeypatch.setattr(lattice, "_NUMBERS", 3 * 256)
    rows = np.random.default_rng(0).standard_normal((600, 3)).astype(np.float32)
    records = MemoryRecords(rows, None, Bounds(row_norm=10.0))
    summed = getattr(records, name)

    def total(block: Any) -> Any:
        return (block.squared_norms().sum(),)

    def while_another_fit_runs(block: Any) -> Any:
        other = threading.Thread(target=summed, args=(total,))
        other.start()
        other.join()
        return total(block)

    assert summed(while_another_fit_runs) == summed(total)


def test_lengths_are_those_of_the_coordinates_asked_for_last():
    records: RecordSource = MemoryRecords(np.array([[3.0, 4.0]]), None, Bounds(row_norm=10.0))
    for size in (1.0, 2.0):
        records = measured(records, Coordinates(size * np.eye(2)))
        noted = records.sum(lambda block: (np.asarray(block.lengths),))
        assert noted[0] == 5.0 * size


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda it: pickle.loads(pickle.dumps(it))])
def test_records_that_were_summed_can_be_sent_elsewhere(copied):
    """A cluster would wait for ever for a part that cannot be sent."""
    records = MemoryRecords(np.ones((4, 2), np.float32), None, Bounds(row_norm=2.0))

    def total(block):
        return (block.weighted_sum(np.ones(len(block.factors))),)

    records.sum_in_steps(lambda _: (np.ones(1),))
    records.sum(total)
    again = copied(records)
    np.testing.assert_array_equal(again.sum(total)[0], records.sum(total)[0])
    assert again._buffers is not records._buffers
