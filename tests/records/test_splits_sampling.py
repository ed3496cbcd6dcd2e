"""Poisson samples of records."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom, chi2_contingency

from tacit.noise import secure_source, seeded_source
from tacit.records import Bounds, MemoryRecords
from tests.records.helpers import KINDS, everything, make

ACCEPT = 1e-9


def tagged(n):
    """Return records whose row says which one it is."""
    return MemoryRecords(np.arange(1.0, n + 1)[:, None], np.arange(n), Bounds(row_norm=1e9))


def chosen(records, rate, words):
    return (records.poisson_sample(rate, words).records.rows[:, 0] - 1).astype(int)


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
    sample = records.poisson_sample(0.3, lambda n: words).records
    keep = words < np.uint64(int(0.3 * 2**64))
    same = MemoryRecords(make(kind, X[keep]), y[keep], bounds)
    assert sample.count() == np.count_nonzero(keep) > 0
    assert sample.bounds == bounds
    for a, b in zip(sample.sum(everything), same.sum(everything), strict=True):
        assert np.allclose(a, b)
