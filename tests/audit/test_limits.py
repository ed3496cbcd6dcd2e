"""Bounds hold as often as they say, and are as tight as they can be."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom

from tacit.audit.limits import at_most, epsilon_of_errors, mu_of_errors, mu_of_means


@pytest.mark.parametrize(("runs", "ceiling"), [(500, 4.906), (1000, 5.601)])
def test_without_an_error_the_bound_is_the_known_ceiling(runs: int, ceiling: float) -> None:
    limit = at_most(0, runs, 0.025)
    assert epsilon_of_errors(limit, limit, 0.0) == pytest.approx(ceiling, abs=5e-4)


@pytest.mark.parametrize(("errors", "trials"), [(0, 50), (3, 100), (40, 100), (999, 1000)])
def test_a_limit_is_where_so_few_errors_are_as_unlikely_as_the_level(
    errors: int, trials: int
) -> None:
    limit = at_most(errors, trials, 0.025)
    assert binom.cdf(errors, trials, limit) == pytest.approx(0.025)
    assert at_most(trials, trials, 0.025) == 1.0


def test_errors_of_a_guesser_follow_the_definition() -> None:
    # P[with | with] = 0.9 and P[with | without] = 0.1 need e^epsilon >= (0.9 - delta) / 0.1.
    assert epsilon_of_errors(0.1, 0.1, 0.0) == pytest.approx(math.log(9))
    assert epsilon_of_errors(0.1, 0.1, 0.2) == pytest.approx(math.log(7))
    assert epsilon_of_errors(0.5, 0.1, 0.0) == pytest.approx(math.log(5))  # by the other order
    assert epsilon_of_errors(0.6, 0.6, 0.0) == 0.0
    assert epsilon_of_errors(1.0, 1.0, 0.1) == 0.0


@pytest.mark.parametrize("mu", [0.1, 1.0, 4.0])
def test_the_errors_of_the_best_guesser_of_a_gaussian_give_its_mu(mu: float) -> None:
    from scipy.special import ndtr

    for threshold in (-1.0, 0.3, 2.0):
        false_alarms, misses = float(ndtr(-threshold)), float(ndtr(threshold - mu))
        assert mu_of_errors(false_alarms, misses) == pytest.approx(mu)
    assert mu_of_errors(1.0, 0.0) == 0.0


@pytest.mark.parametrize("mu", [0.0, 0.27, 1.7, 6.0])
def test_the_mean_test_is_as_often_too_high_as_it_says(mu: float) -> None:
    rng = np.random.default_rng()
    repeats, n = 1000, 100
    found = [
        mu_of_means(rng.standard_normal(n), mu + rng.standard_normal(n), 0.05)
        for _ in range(repeats)
    ]
    above = sum(f > mu for f in found)
    low, high = binom.ppf(1e-11, repeats, 0.05), binom.isf(1e-11, repeats, 0.05)
    assert (low <= above <= high) if mu else above <= high
    # It is not far below either: a bound of 0 would be right, too.
    assert np.median(found) > mu - 0.4 - 0.1 * mu


def test_the_mean_test_of_many_fits_is_finite_and_close() -> None:
    rng = np.random.default_rng()
    n = 20_000
    for mu in (0.0, 0.3, 8.0):
        found = mu_of_means(rng.standard_normal(n), mu + rng.standard_normal(n), 0.05)
        assert mu - 0.02 * (1 + mu) - 0.06 < found < mu + 0.06 + 0.06 * mu


def test_what_stands_beside_the_scores_makes_their_spread_known() -> None:
    rng = np.random.default_rng()
    repeats, n, mu = 1000, 50, 3.0
    found = np.array(
        [
            [
                mu_of_means(
                    *(scores := (rng.standard_normal(n), mu + rng.standard_normal(n))), 0.05
                ),
                mu_of_means(*scores, 0.05, rng.standard_normal(40 * n)),
            ]
            for _ in range(repeats)
        ]
    )
    above = np.sum(found[:, 1] > mu)
    assert binom.ppf(1e-11, repeats, 0.05) <= above <= binom.isf(1e-11, repeats, 0.05)
    assert found[:, 1].std() < 0.85 * found[:, 0].std()  # 0.69 of it


def test_a_spread_of_any_size_is_no_matter() -> None:
    seen = np.linspace(-1.0, 1.0, 50)
    assert mu_of_means(seen, seen + 1.0, 0.05) == pytest.approx(
        mu_of_means(1e6 * seen, 1e6 * (seen + 1.0), 0.05)
    )
