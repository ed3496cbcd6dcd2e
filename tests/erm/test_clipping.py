"""What limits leave: as asked, as noisy as stated, and what is chosen from it."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import chi2

from tacit.erm import Objective
from tacit.erm.clipping import Curve, asked
from tacit.erm.laws import TiltLaw
from tacit.erm.losses import HuberLoss
from tacit.erm.matrices import Statistic, hessian
from tacit.erm.standard_errors import Total
from tacit.noise import secure_source
from tacit.privacy import Gaussian
from tacit.records import Bounds, MemoryRecords

ROWS = np.random.default_rng(5).standard_normal((60, 3))
BOUNDS = Bounds(row_norm=2.0, intercept=0.5, label_range=(-3.0, 3.0))
LAW = TiltLaw(Objective(HuberLoss(9.0), BOUNDS), 9.0)
STATISTIC = hessian(LAW, np.zeros(4))
LARGEST = 2.0**2 + 0.5**2  # a second derivative of 1, the row and the intercept's coordinate


def curve_of(statistic: Statistic, rows: np.ndarray, noise: float = 1e-9) -> Curve:
    records = MemoryRecords(rows, np.zeros(len(rows)), BOUNDS)
    return asked(statistic, records, Gaussian(noise), secure_source())[0]


def test_sums_are_those_of_the_records() -> None:
    curve = curve_of(STATISTIC, ROWS)
    squared = np.sum(ROWS**2, axis=1)
    norms = np.minimum(squared, 4.0) + 0.25
    assert curve.limits[0] == pytest.approx(LARGEST)
    for limit, found in zip(curve.limits, curve.sums, strict=True):
        assert found == pytest.approx(np.minimum(norms, limit).sum(), rel=1e-5)
    assert curve.total.value == pytest.approx(60.0, rel=1e-5)


@pytest.mark.parametrize(("has_matrix", "has_total"), [(True, True), (True, False), (False, True)])
def test_one_record_moves_it_as_far_as_stated(has_matrix: bool, has_total: bool) -> None:
    """The longest row attains the length that noise is for; none goes beyond."""
    statistic = replace(STATISTIC, has_matrix=has_matrix, has_total=has_total)
    one = np.array([[1e9, 0.0, 0.0]])
    curve = curve_of(statistic, one)
    moved = np.append(curve.sums, curve.total.value * LARGEST if has_total else 0.0)
    stated = curve.std / 1e-9  # the noise's deviation over its multiplier
    assert np.linalg.norm(moved) == pytest.approx(stated, rel=2e-4)
    squares = 2 * (1 - 2.0**-13) * has_matrix + has_total
    assert stated == pytest.approx(LARGEST * math.sqrt(squares), rel=2e-4)


@pytest.mark.parametrize("off", [1.0, 0.9, 1.1])
def test_the_noise_is_as_stated(off: float) -> None:
    exact, source, away = curve_of(STATISTIC, ROWS), secure_source(), []
    records = MemoryRecords(ROWS, np.zeros(60), BOUNDS)
    for _ in range(600):
        curve, _ = asked(STATISTIC, records, Gaussian(3.0), source)
        away += [*((curve.sums - exact.sums) / curve.std)]
        away.append((curve.total.value - exact.total.value) / curve.total.std)
    p = chi2.cdf(np.sum((np.array(away) / off) ** 2), len(away))
    assert (1e-9 < p < 1 - 1e-9) == (off == 1.0)


def curve(kept: list[float], std: float = 0.0) -> Curve:
    """Return what thirteen limits leave of 100; the last of those given stands for the rest."""
    sums = 100.0 * np.array(kept + [kept[-1]] * (13 - len(kept)))
    return Curve(2.0 ** (-np.arange(13) / 2), sums, std, Total(0.0, 0.0))


def test_the_least_limit_that_loses_little_is_taken() -> None:
    found = curve([1.0, 1.0, 0.99, 0.9, 0.8])
    assert found.limit(1e-9, 3) == pytest.approx(0.5)  # 1 % is nothing
    # z 2^(-3/2) sqrt(6) 6 / 100 is more than 10 % from z = 1.93 on
    assert found.limit(1.9, 3) == pytest.approx(0.5)
    assert found.limit(2.0, 3) == pytest.approx(2**-1.5)
    assert curve([1.0]).limit(1e-9, 3) == pytest.approx(1 / 64)


def test_a_curve_that_is_all_noise_clips_nothing_below_its_noise() -> None:
    """Going down it ends with the first limit that may lose more, whatever comes after."""
    assert curve([1.0, 0.5, 1.0], std=1.0).limit(1e-9, 3) == 1.0
    assert curve([1.0], std=50.0).limit(1e-9, 3) == 1.0
    assert curve([-1.0], std=50.0).limit(1e-9, 3) == 1.0
