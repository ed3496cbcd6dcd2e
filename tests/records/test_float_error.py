"""The bound on the float error of a sum."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tacit.records import Bounds, MemoryRecords, block
from tests.records.helpers import make


def adversarial_terms(n, seed):
    rng = np.random.default_rng(seed)
    size = 10.0 ** rng.uniform(-18, 0, n)
    sign = np.resize([1.0, -1.0], n)
    yield size * sign
    yield np.ones(n) * (1 - 1e-9)
    yield np.where(np.arange(n) % 2, -1.0, 1.0) * (1 - rng.uniform(size=n) * 1e-8)
    yield np.sort(size)
    yield np.sort(size)[::-1] * 0.1
    yield np.concatenate([[1.0], np.full(n - 1, 2.0**-54)])
    yield rng.uniform(-1, 1, n)


@pytest.mark.parametrize("fine", [False, True])
@pytest.mark.parametrize("kind", ["float64", "csr"])
@pytest.mark.parametrize("n", [1, 100, 5000, 60_000])
def test_the_bound_on_float_error_holds(n, kind, fine, monkeypatch):
    monkeypatch.setattr(block, "_BLOCK_BYTES", 100_000)
    monkeypatch.setattr(block, "_FINE_PRODUCT", 2**20)
    for terms in adversarial_terms(n, seed=n):
        X = np.stack([terms, terms[::-1], np.zeros(n)], axis=1)
        X *= (1 - 1e-8) / max(np.linalg.norm(X, axis=1).max(), 1.0)
        records = MemoryRecords(make(kind, X), None, Bounds())
        (total,) = records.sum(lambda b: (b.weighted_sum(np.ones(b.n_rows)),), fine=fine)
        assert np.all(records.clip_factors() == 1.0)  # so that the terms are known exactly
        exact = [math.fsum(column) for column in X.T]
        error = math.hypot(*(a - b for a, b in zip(total, exact, strict=True)))
        assert error <= records.sum_error(fine=fine)


def test_fine_sums_have_the_tighter_bound():
    records = MemoryRecords(np.ones((1_000_000, 1)), None, Bounds())
    assert records.sum_error(fine=True) < 0.1 * records.sum_error(fine=False)


def test_the_bound_of_fine_sums_hardly_grows_with_the_records():
    def error(n):
        return MemoryRecords(np.broadcast_to(1.0, (n, 1)), None, Bounds()).sum_error(fine=True)

    assert error(10**5) < error(10**6) < error(10**7) < 1.1e-7
    assert error(4 * 10**9) < 5e-5 < error(5 * 10**9)  # what docs/proofs/noisy_gradient.md says
