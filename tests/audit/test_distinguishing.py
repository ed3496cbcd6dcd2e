"""Bounds hold as often as they say, and are as tight as they can be."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pytest
from scipy.stats import binom

from tacit.audit.distinguishing import (
    at_most,
    epsilon_of_errors,
    epsilon_promised,
    mu_of_errors,
    mu_of_pairs,
)
from tacit.privacy import Gaussian, PureEpsilon
from tacit.privacy.accounting.gaussian_profile import gaussian_mu

Array = npt.NDArray[np.float64]


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


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 7.0])
@pytest.mark.parametrize("threshold", [0.0, 0.3, 1.0])
def test_the_errors_of_the_best_guesser_give_the_promise_they_come_from(
    epsilon: float, threshold: float
) -> None:
    """A Gaussian's errors lie on its own curve and on no stricter one, whatever the threshold."""
    from scipy.special import ndtr

    mu = gaussian_mu(epsilon, 1e-5)
    errors = float(ndtr(-threshold)), float(ndtr(threshold - mu))
    found = epsilon_promised(*errors, lambda e: Gaussian(1 / gaussian_mu(e, 1e-5)))
    # From below, and no farther off than deltas and epsilons are looked at apart.
    assert 0.95 * epsilon < found <= epsilon
    # One delta, the claim's, sees far less of them.
    assert epsilon_of_errors(*errors, 1e-5) < 0.5 * found


def test_of_a_pure_promise_errors_say_what_the_definition_does() -> None:
    for epsilon in (0.1, 1.0, 5.0):
        rare = 1 / (1 + math.exp(epsilon))  # randomised response
        assert 0.99 * epsilon < epsilon_promised(rare, rare, PureEpsilon) <= epsilon
    assert epsilon_promised(0.5, 0.5, PureEpsilon) == 0.0
    assert epsilon_promised(1.0, 1.0, PureEpsilon) == 0.0
    assert epsilon_promised(0.0, 0.0, PureEpsilon) == math.inf


def pair_of(rng: np.random.Generator, mu: float, n: int, shared: float) -> tuple[Array, Array]:
    """Return scores of two worlds, so much of whose variance is the same noise."""
    common, one, other = rng.standard_normal((3, n))
    alone = np.sqrt(1 - shared)
    return np.sqrt(shared) * common + alone * one, mu + np.sqrt(shared) * common + alone * other


@pytest.mark.parametrize("mu", [0.0, 0.27, 1.7, 6.0])
@pytest.mark.parametrize("shared", [0.0, 0.9, 1.0])
def test_the_mean_test_is_no_oftener_too_high_than_it_says(mu: float, shared: float) -> None:
    rng = np.random.default_rng()
    repeats, n = 1000, 100
    found = [mu_of_pairs(*pair_of(rng, mu, n, shared), 0.05) for _ in range(repeats)]
    above = sum(f > mu * (1 + 1e-9) + 1e-9 for f in found)
    assert above <= binom.isf(1e-11, repeats, 0.05)
    # It is not far below either: a bound of 0 would be right, too. The spread is known to a tenth.
    assert np.median(found) > 0.8 * mu - 0.4 * np.sqrt(1 - shared) - 1e-9


def test_each_part_has_its_share_of_the_level() -> None:
    """With the same noise only the spread errs, with a fifth of it; of a known one the mean."""
    rng = np.random.default_rng()
    repeats, n, mu = 2000, 100, 3.0
    same = sum(mu_of_pairs(*pair_of(rng, mu, n, 1.0), 0.25) > mu for _ in range(repeats))
    # of two worlds with the same noise the spread is one number
    assert binom.ppf(1e-11, repeats, 0.05) <= same <= binom.isf(1e-11, repeats, 0.05)
    beside = np.tile(rng.standard_normal(100_000), (2, 1))
    beside /= beside.std()
    own = sum(mu_of_pairs(*pair_of(rng, 0.3, n, 0.0), 0.25, beside) > 0.3 for _ in range(repeats))
    # 20 %, and hardly less: the spread is known to 0.4 %
    assert binom.ppf(1e-11, repeats, 0.18) <= own <= binom.isf(1e-11, repeats, 0.2)


def test_the_mean_test_of_many_fits_is_finite_and_close() -> None:
    rng = np.random.default_rng()
    n = 20_000
    for mu in (0.0, 0.3, 8.0):
        found = mu_of_pairs(*pair_of(rng, mu, n, 0.0), 0.05)
        assert mu - 0.05 * mu - 0.09 < found < mu + 0.06 + 0.06 * mu
        found = mu_of_pairs(*pair_of(rng, mu, n, 1.0), 0.05)
        assert 0.93 * mu - 1e-9 <= found <= 1.04 * mu + 1e-9


def test_what_stands_beside_the_scores_makes_their_spread_known() -> None:
    rng = np.random.default_rng()
    n, mu = 50, 3.0
    found = np.array(
        [
            [mu_of_pairs(*scores, 0.05), mu_of_pairs(*scores, 0.05, beside)]
            for scores, beside in (
                (pair_of(rng, mu, n, 1.0), rng.standard_normal((2, 40 * n))) for _ in range(500)
            )
        ]
    )
    assert found[:, 1].std() < 0.5 * found[:, 0].std()  # 0.15 of it
    assert np.median(found[:, 1]) > np.median(found[:, 0]) + 0.2


def test_what_does_not_vary_tells_apart_surely_or_not_at_all() -> None:
    nothing = np.zeros(10)
    assert mu_of_pairs(nothing, nothing, 0.05) == 0.0
    assert mu_of_pairs(nothing, nothing + 1.0, 0.05) == np.inf


def test_a_spread_of_any_size_is_no_matter() -> None:
    seen = np.linspace(-1.0, 1.0, 50)
    assert mu_of_pairs(seen, seen + 1.0, 0.05) == pytest.approx(
        mu_of_pairs(1e6 * seen, 1e6 * (seen + 1.0), 0.05)
    )
