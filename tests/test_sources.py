"""Where the five source documents err: each correction of docs/sources, held against numbers."""

from __future__ import annotations

import math
import re
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import brentq

from tacit.features import GaussianKernel, RandomFourierFeatures
from tacit.linear_model import LogisticRegression
from tacit.pate import LNMax
from tacit.privacy import (
    Gaussian,
    Guarantee,
    PureObjective,
    Relation,
    Repeated,
    SampledGaussian,
)

ROOT = Path(__file__).parents[1]
PAGES = sorted((ROOT / "docs" / "sources").glob("*.md"))
TEST = re.compile(r"`(tests/[\w/]+\.py)(?:::(\w+))?`")
SCRIPT = re.compile(r"`(benchmarks/[\w/]+\.(?:py|md))[` ]")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_pages_name_tests_and_scripts_that_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for file, name in TEST.findall(text):
        assert (ROOT / file).is_file(), file
        assert not name or f"def {name}(" in (ROOT / file).read_text(encoding="utf-8"), name
    for file in SCRIPT.findall(text):
        assert (ROOT / file).is_file(), file


# Slides -----------------------------------------------------------------------------------------


def test_the_constants_of_algorithm_2() -> None:
    # n = 1000, Lambda = 0.01 (lam = 10 for a sum), c = 1/4, epsilon = 0.1
    jacobian = math.log1p(0.25 / 10)
    assert 0.1 - 2 * jacobian == pytest.approx(0.0506148, abs=1e-7)
    assert 0.1 - jacobian == pytest.approx(0.0753074, abs=1e-7)
    # tacit's event with the noise of the tight constant costs epsilon, and no less
    tight = PureObjective(
        lipschitz=1.0, hessian_trace=0.25, regularization=10.0, noise_radius=2 / (0.1 - jacobian),
        relation=Relation.REPLACE,
    )  # fmt: skip
    assert Guarantee(tight).epsilon(0.0) == pytest.approx(0.1, rel=1e-6)


def test_features_as_printed_are_too_long() -> None:
    # one frequency and its own shift: sqrt(2) cos(0)
    rng = np.random.default_rng(0)
    rows = rng.uniform(-1, 1, (500, 2))
    printed = math.sqrt(2 / 4) * np.cos(rows @ rng.standard_normal((2, 4)))
    assert np.linalg.norm(printed, axis=1).max() > 1.3
    ours = RandomFourierFeatures(GaussianKernel(1.0), 4, seed=0, row_norm=2.0).fit_transform(rows)
    assert np.linalg.norm(ours, axis=1) == pytest.approx(1.0, abs=1e-6)


def test_a_vote_moves_two_counts() -> None:
    event = LNMax(0.05).event(1, Relation.ADD_REMOVE)
    assert Guarantee(event).epsilon(0.0) == pytest.approx(0.1)


# Kamath -----------------------------------------------------------------------------------------


def best_weight(flipped: bool, n: int) -> float:
    """Return the minimiser over w of n logistic losses in one dimension, and w^2 / 2."""

    def slope(w: float) -> float:
        of_others = -(n - 1) / 2 / (1 + math.exp(w)) + (n - 1) / 2 / (1 + math.exp(-w))
        own = 1 / (1 + math.exp(-w)) if flipped else -1 / (1 + math.exp(w))
        return of_others + own + w

    return float(brentq(slope, -10, 10, xtol=1e-13))


def test_lemma_1_has_no_n() -> None:
    # lambda = 1, L = 1: at most 2 L / lambda, and less of it the more others there are
    moved = [best_weight(False, n) - best_weight(True, n) for n in (1, 11, 101, 1001)]
    assert 0.7 < moved[0] <= 2.0
    assert moved == sorted(moved, reverse=True)


def test_the_noise_of_bst14() -> None:
    n, delta = 1000, 1e-6
    printed = math.sqrt(32 * math.log(n / delta) * math.log(1 / delta))
    enough = Repeated(SampledGaussian(4.59, 1 / n), n * n)
    assert printed == pytest.approx(95.7, abs=0.1)
    assert 0.9 < Guarantee(enough).epsilon(delta) < 1.0
    assert (printed / 4.59) ** 2 == pytest.approx(435, abs=1)


# Brown ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("claimed", "true"), [(1.0, 1.11), (3.0, 3.80), (8.0, 12.3)])
def test_claim_3_2_has_too_little_noise(claimed: float, true: float) -> None:
    # sigma = 2 L sqrt(T log(1/delta)) / (n epsilon), and a replaced record moves a mean by 2 L / n
    delta, steps = 1e-5, 100
    multiplier = math.sqrt(steps * math.log(1 / delta)) / claimed
    replaced = Repeated(Gaussian(multiplier, Relation.REPLACE), steps)
    assert Guarantee(replaced).epsilon(delta) == pytest.approx(true, rel=0.01)
    added = Repeated(Gaussian(2 * multiplier, Relation.ADD_REMOVE), steps)
    assert Guarantee(added).epsilon(delta) < claimed


def test_zero_columns_never_reach_a_score() -> None:
    rng = np.random.default_rng(0)
    rows = np.hstack([rng.uniform(-0.5, 0.5, (2000, 2)), np.zeros((2000, 30))])
    model = LogisticRegression(
        1.0, 1e-5, row_norm=1.0, classes=[False, True], mechanism="noisy_gradient",
        fit_intercept=False, n_records=2000,
    ).fit(rows, rows[:, 0] > 0)  # fmt: skip
    # noise is there on the zero columns, and predictions are those of the others
    assert np.all(model.coef_[0, 2:] != 0.0)
    kept = model.predict(rows)
    model.coef_[0, 2:] = 0.0
    assert np.array_equal(kept, model.predict(rows))


# Smith and Ullman -------------------------------------------------------------------------------


def replaced_loss(delta_over_gr: float) -> float:
    """Return the exact loss of a draw from exp(-F / (2 Delta)) when a record of 50 moves across."""
    grid, n = np.linspace(-1, 1, 20_001), 50
    rate = 1 / (2 * delta_over_gr)
    before = -rate * n * np.abs(grid + 1)
    after = -rate * ((n - 1) * np.abs(grid + 1) + np.abs(grid - 1))
    before, after = (x - np.logaddexp.reduce(x) for x in (before, after))
    return float(np.abs(before - after).max())


def test_the_range_of_a_ball() -> None:
    assert replaced_loss(1.0) == pytest.approx(1.96, abs=0.01)
    assert replaced_loss(2.0) <= 1.0


def test_the_small_ball_of_the_proof() -> None:
    radius, r, best = 1.0, 0.4, 1.0  # on a line through the centre, w* on the border

    def inside(centre: float) -> bool:
        ends = np.array([centre - r / 2, centre + r / 2])
        return bool(
            np.all(np.abs(ends) <= radius + 1e-12) and np.all(np.abs(ends - best) <= r + 1e-12)
        )

    assert inside((1 - r / (2 * radius)) * best)
    assert not inside((radius - r) / radius * best)
