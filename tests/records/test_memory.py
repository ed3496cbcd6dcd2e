from __future__ import annotations

import math
import threading
import tracemalloc
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse
from scipy.stats import binom, chi2_contingency

from tacit.noise import secure_source, seeded_source
from tacit.records import Block, Bounds, MemoryRecords, threads
from tacit.records import memory as module

ACCEPT = 1e-9


def make(kind, X):
    if kind == "csr":
        return scipy.sparse.csr_array(X)
    return X.astype(kind)


KINDS = ["float64", "float32", "csr"]


def everything(block: Block):
    ones = np.ones(block.n_rows)
    w = np.linspace(-1.0, 1.0, block.rows.shape[1] + (1 if block.intercept else 0))
    scores = block.scores(w)
    several = block.scores(np.stack([w, -2 * w], axis=1))
    return (
        block.weighted_sum(ones),
        block.weighted_sum(np.tanh(scores)),
        block.weighted_sum(np.tanh(several)),
        block.gram(1.0 / (1.0 + scores**2)),
        block.points().sum(axis=0),
        np.array(float(block.n_rows)),
        np.array(0.0 if block.labels is None else block.labels.sum()),
    )


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
        monkeypatch.setattr(module, "_FINE_ROWS", (fine_rows, fine_rows))
        monkeypatch.setattr(module, "_FEWEST_ROWS", fine_rows)
        for block_bytes in (1, 1000, 8 << 20):
            monkeypatch.setattr(module, "_BLOCK_BYTES", block_bytes)
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


# Clipping


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


# Memory


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
    assert records.poisson_sample(0.5, secure_source().words).count() == 0


# Poisson sampling


def tagged(n):
    """Return records whose row says which one it is."""
    return MemoryRecords(np.arange(1.0, n + 1)[:, None], np.arange(n), Bounds(row_norm=1e9))


def chosen(records, rate, words):
    return (records.poisson_sample(rate, words).rows[:, 0] - 1).astype(int)


def test_the_threshold_is_exact():
    for rate in (0.5, 0.1, 1e-5, 1 / 3, 1.0, 2.0**-64, 0.0):
        threshold = min(int(Fraction(rate) * 2**64), 2**64 - 1)
        words = np.array(
            [0, max(threshold - 1, 0), threshold, min(threshold + 1, 2**64 - 1), 2**64 - 1],
            dtype=np.uint64,
        )
        got = set(chosen(tagged(5), rate, lambda n, w=words: w).tolist())
        assert got == {i for i in range(5) if int(words[i]) < threshold}


@pytest.mark.parametrize("rate", [0.03, 0.5, 0.97])
def test_each_record_is_in_at_the_stated_rate(rate):
    n, repeats = 200, 2000
    records, source = tagged(n), secure_source()
    counts = np.zeros(n)
    for _ in range(repeats):
        counts[chosen(records, rate, source.words)] += 1
    total = counts.sum()

    def p_value(true):
        return 2 * min(binom.cdf(total, n * repeats, true), binom.sf(total - 1, n * repeats, true))

    assert p_value(rate) > ACCEPT
    assert p_value(0.9 * rate) < 1e-12
    assert p_value(min(1.1 * rate, (1 + rate) / 2)) < 1e-12
    # and no record more often than its share: the variance over records is binomial
    spread = np.sum((counts - repeats * rate) ** 2) / (repeats * rate * (1 - rate))
    assert abs(spread - n) < 7 * math.sqrt(2 * n)


def test_records_are_in_independently_of_each_other():
    records, source = tagged(6), secure_source()
    member = np.zeros((20_000, 6), dtype=bool)
    for row in member:
        row[chosen(records, 0.4, source.words)] = True
    for i in range(6):
        for j in range(i):
            table = np.histogram2d(member[:, i], member[:, j], bins=2)[0]
            assert chi2_contingency(table).pvalue > ACCEPT
    # a sample of fixed size would fail the same test
    fixed = np.argsort(np.random.default_rng(6).uniform(size=member.shape), axis=1) < 3
    table = np.histogram2d(fixed[:, 0], fixed[:, 1], bins=2)[0]
    assert chi2_contingency(table).pvalue < ACCEPT
    # nor does one sample tell of the next
    table = np.histogram2d(member[1:, 0], member[:-1, 0], bins=2)[0]
    assert chi2_contingency(table).pvalue > ACCEPT


@pytest.mark.parametrize("kind", KINDS)
def test_a_sample_keeps_rows_labels_and_clipping_together(kind):
    rng = np.random.default_rng(7)
    X, y = rng.standard_normal((300, 3)) * 5, rng.standard_normal(300)
    bounds = Bounds(row_norm=1.0, label_range=(-1.0, 1.0), intercept=0.3)
    records = MemoryRecords(make(kind, X), y, bounds)
    words = seeded_source(0).words(300)
    sample = records.poisson_sample(0.3, lambda n: words)
    keep = words < np.uint64(int(0.3 * 2**64))
    same = MemoryRecords(make(kind, X[keep]), y[keep], bounds)
    assert sample.count() == np.count_nonzero(keep) > 0
    assert sample.bounds == bounds
    for a, b in zip(sample.sum(everything), same.sum(everything), strict=True):
        assert np.allclose(a, b)


# Float error


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
    monkeypatch.setattr(module, "_BLOCK_BYTES", 100_000)
    monkeypatch.setattr(module, "_FINE_PRODUCT", 2**20)
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


# Threads


@pytest.mark.parametrize("fine", [False, True])
def test_threads_do_not_wait_for_themselves(fine, monkeypatch):
    # clip factors are shared among the same threads, and were once asked for by one of them
    monkeypatch.setattr(module, "_SHARED_BYTES", 1)
    monkeypatch.setattr(module, "_BLOCK_BYTES", 8 * 3 * 256)
    monkeypatch.setattr(module, "_FINE_PRODUCT", 2**20)
    monkeypatch.setattr(threads, "available_threads", lambda: 2)
    X = np.random.default_rng(0).standard_normal((5000, 3)) * 3
    records, found = MemoryRecords(X, None, Bounds()), []
    worker = threading.Thread(
        target=lambda: found.extend(records.sum(everything, fine=fine)), daemon=True
    )
    worker.start()
    worker.join(60)
    assert found, "the threads wait for each other"
    scaled = X * np.minimum(1.0, 1.0 / np.linalg.norm(X, axis=1))[:, None]
    assert np.allclose(found[0], scaled.sum(axis=0), rtol=1e-6)


# Bounds


@pytest.mark.parametrize(
    ("parameters", "remedy"),
    [
        ({"row_norm": 0.0}, "row_norm must be positive and finite.*pass the norm"),
        ({"row_norm": math.inf}, "row_norm"),
        ({"row_norm": math.nan}, "row_norm"),
        ({"intercept": -1.0}, "intercept must be finite"),
        ({"label_range": (1.0, 1.0)}, "label_range must be two finite numbers.*such as"),
        ({"label_range": (0.0, math.inf)}, "label_range"),
        ({"n_records": 0}, "n_records must be at least 1"),
    ],
)
def test_bounds_that_bound_nothing_are_refused(parameters, remedy):
    with pytest.raises(ValueError, match=remedy):
        Bounds(**parameters)


def test_what_bounds_say():
    assert Bounds(row_norm=3.0, intercept=4.0).total_norm == 5.0
    assert Bounds(label_range=(-3.0, 2.0)).label_bound == 3.0
    assert Bounds().label_bound == math.inf
