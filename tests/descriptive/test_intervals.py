"""Intervals near the ends of a range, projections and rounding."""

from __future__ import annotations

import numpy as np
import pytest

from tacit.descriptive.intervals import (
    acceptance,
    count_intervals,
    first_reaching,
    non_negative,
    normal_interval,
    share_intervals,
    whole_numbers,
)

REGION = acceptance(0.95)


@pytest.mark.parametrize("mean", [0.0, 0.5, 1.0, 2.0, 3.0, 10.0])
def test_counts_near_zero_are_covered_as_often_as_others(mean: float) -> None:
    x = np.random.default_rng(0).normal(mean, 1.0, 100_000)
    low, high = count_intervals(x, np.ones(len(x)), np.zeros(len(x)), REGION)
    covered = np.mean((low <= mean + 1e-6) & (mean - 1e-6 <= high))
    assert covered == pytest.approx(0.95, abs=0.004)
    assert np.all(low <= high)
    assert np.all(low >= 0)


def test_central_intervals_far_from_zero() -> None:
    low, high = count_intervals(np.array([100.0]), np.array([4.0]), np.zeros(1), REGION)
    assert low[0] == pytest.approx(100 - 1.96 * 2, abs=1e-3)
    assert high[0] == pytest.approx(100 + 1.96 * 2, abs=1e-3)


@pytest.mark.parametrize("share", [0.0, 0.001, 0.02, 0.5, 0.98, 0.999, 1.0])
def test_shares_are_covered(share: float) -> None:
    rng, n, std = np.random.default_rng(0), 5000, 15.0
    counts = rng.binomial(n, share, 40_000) + rng.normal(0, std, 40_000)
    variance = np.tile([std**2, n, -n], (len(counts), 1))
    zero = np.zeros((len(counts), 1))
    low, high = share_intervals(counts, np.full(len(counts), float(n)), variance, zero, REGION)
    covered = np.mean((low <= share + 1e-9) & (share - 1e-9 <= high))
    assert covered == pytest.approx(0.95, abs=0.008)
    assert np.all((low >= 0) & (high <= 1) & (low <= high))


def test_laplace_noise_is_covered() -> None:
    x = np.random.default_rng(0).laplace(50.0, 1.0, 100_000)
    variance = np.full(len(x), 2.0)
    low, high = count_intervals(x, variance, 3.0 * variance**2, REGION)
    assert np.mean((low <= 50) & (high >= 50)) == pytest.approx(0.95, abs=0.005)


def test_projection_and_rounding_add_up() -> None:
    rng = np.random.default_rng(0)
    for _ in range(200):
        counts, total = rng.normal(0, 20, 30), int(rng.integers(0, 500))
        projected = non_negative(counts, float(total))
        assert np.all(projected >= 0)
        assert projected.sum() == pytest.approx(total, abs=1e-6)
        whole = whole_numbers(projected, total)
        assert whole.sum() == total
        assert np.all(whole >= 0)
        assert np.max(np.abs(whole - projected)) <= 1.0


def test_an_exact_figure_has_no_interval() -> None:
    assert normal_interval(3.0, 0.0, 0.0, 1.96) == (3.0, 3.0)


def test_ranks_beyond_the_ends() -> None:
    steps, at = np.array([0.0, 4.0, 8.0]), np.arange(3.0)
    assert first_reaching(steps, -3.0, at) == 0.0
    assert first_reaching(steps, 9.0, at) == 2.0
    assert first_reaching(steps, -3.0, at, last=True) == 0.0
    assert first_reaching(steps, 9.0, at, last=True) == 2.0
    assert first_reaching(steps, 6.0, at) == 1.5
