"""Offsets and exposures: statsmodels' without noise, right on average with it, bounded always."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import statsmodels.api
from sklearn.base import clone

from tacit.erm import NoisyGradient, Objective
from tacit.erm.losses import LogisticLoss, PoissonOffsetLoss
from tacit.erm.solvers import slopes_error
from tacit.linear_model import (
    HuberRegressor,
    LinearRegression,
    PoissonRegressor,
    QuantileRegressor,
    Ridge,
)
from tacit.privacy import Accountant, Budget
from tacit.records import Bounds, MemoryRecords
from tacit.saving import load, save
from tacit.testing import replay

RNG = np.random.default_rng(8)
N = 20_000
ROWS = RNG.uniform(-1, 1, (N, 2))
EXPOSURE = RNG.uniform(0.2, 4.0, N)
RANGE = (math.log(0.1), math.log(5.0))
COUNTS = RNG.poisson(EXPOSURE * np.exp(ROWS @ [0.6, -0.4] + 0.5)).astype(float)
OFFSET = RNG.uniform(-3, 3, N)
NUMBERS = ROWS @ [1.0, -0.5] + 0.7 + OFFSET + 0.3 * RNG.standard_normal(N)
DESIGN = np.column_stack([ROWS, np.ones(N)])


def poisson(epsilon: float, **more: Any) -> PoissonRegressor:
    return PoissonRegressor(
        epsilon, row_norm=1.5, label_range=(0, 40), offset_range=RANGE, inference=0.2, **more
    )


def linear(epsilon: float, **more: Any) -> LinearRegression:
    return LinearRegression(
        epsilon, row_norm=1.5, label_range=(-6, 6), offset_range=(-3, 3), inference=0.2, **more
    )


def test_counts_without_noise_are_those_of_statsmodels() -> None:
    ours = poisson(math.inf).fit(ROWS, COUNTS, exposure=EXPOSURE)
    family = statsmodels.api.families.Poisson()
    theirs = statsmodels.api.GLM(COUNTS, DESIGN, family, exposure=EXPOSURE).fit(cov_type="HC0")
    np.testing.assert_allclose(ours.estimates_, theirs.params, rtol=1e-3)
    np.testing.assert_allclose(ours.standard_errors_, theirs.bse, rtol=1e-3)
    same = poisson(math.inf).fit(ROWS, COUNTS, offset=np.log(EXPOSURE))
    np.testing.assert_allclose(same.coef_, ours.coef_)
    expected = theirs.predict(DESIGN, exposure=EXPOSURE)
    np.testing.assert_allclose(ours.predict(ROWS, exposure=EXPOSURE), expected, rtol=1e-3)


def test_numbers_without_noise_are_those_of_statsmodels() -> None:
    ours = linear(math.inf).fit(ROWS, NUMBERS, offset=OFFSET)
    theirs = statsmodels.api.OLS(NUMBERS - OFFSET, DESIGN).fit(cov_type="HC0")
    np.testing.assert_allclose(ours.estimates_, theirs.params, rtol=1e-3)
    predicted = theirs.predict(DESIGN) + OFFSET
    np.testing.assert_allclose(ours.predict(ROWS, offset=OFFSET), predicted, rtol=1e-3)


@pytest.mark.parametrize("mechanism", ["objective_perturbation", "noisy_gradient"])
def test_private_estimates_are_near_the_truth(mechanism: str) -> None:
    model = poisson(4.0, mechanism=mechanism).fit(ROWS, COUNTS, exposure=EXPOSURE)
    away = np.abs(model.estimates_ - [0.6, -0.4, 0.5]) / model.standard_errors_
    assert away.max() < 5.5
    assert model.standard_errors_.max() < 0.1
    model = linear(4.0, mechanism=mechanism).fit(ROWS, NUMBERS, offset=OFFSET)
    away = np.abs(model.estimates_ - [1.0, -0.5, 0.7]) / model.standard_errors_
    assert away.max() < 5.5
    assert model.standard_errors_.max() < 0.1
    # ignoring the exposure is wrong by the logarithm of its mean
    without = PoissonRegressor(4.0, row_norm=1.5, label_range=(0, 40), inference=0.2)
    assert without.fit(ROWS, COUNTS).estimates_[2] > 1.0


@pytest.mark.parametrize("kind", [Ridge, HuberRegressor])
def test_other_lines_take_offsets(kind: Any) -> None:
    model = kind(8.0, row_norm=1.5, label_range=(-6, 6), offset_range=(-3, 3))
    model.fit(ROWS, NUMBERS, offset=OFFSET)
    assert np.abs(model.coef_ - [1.0, -0.5]).max() < 0.3


def test_a_wild_offset_moves_no_sum_further_than_the_slope_bound() -> None:
    """The gradient of a record is bounded whatever its offset; offsets are clipped as labels."""
    loss = PoissonOffsetLoss(5.0, 40.0, start=RANGE[0], step=(RANGE[1] - RANGE[0]) / 40.0)
    bounds = Bounds(row_norm=1.5, label_range=(0.0, 40.0))
    wild = np.array([[40.0, 1e300], [0.0, -1e300], [3.0, np.nan], [7.0, 20.0], [1e9, np.inf]])
    records = MemoryRecords(np.full((5, 2), 9.0), wild, bounds)
    for scale in (-50.0, 0.0, 1.0, 50.0):
        weights = np.full(2, scale)
        for record in range(5):
            one = records.where(slice(record, record + 1))
            (gradient,) = one.sum(lambda b, w=weights: (loss.gradient(b, w, bounds, 7.5),))
            assert np.linalg.norm(gradient) <= 7.5 * (1 + 1e-9)
            (labels,) = one.sum(lambda block: (block.labels.sum(axis=0),))
            assert np.all((labels >= 0.0) & (labels <= 40.0))


def test_a_loss_without_offsets_refuses_them() -> None:
    bounds = Bounds(row_norm=1.5, label_range=(-1.0, 1.0))
    records = MemoryRecords(ROWS[:2], np.ones((2, 2)), bounds)
    with pytest.raises(ValueError, match="one label per record"):
        records.sum(lambda block: (LogisticLoss().gradient(block, np.zeros(2), bounds, 1.0),))
    with pytest.raises(ValueError, match="different lengths"):
        MemoryRecords(ROWS[:2], np.ones((2, 3)), bounds)


def test_odd_offsets_are_clipped_and_stop_nothing() -> None:
    odd = EXPOSURE.copy()
    odd[:4] = [np.nan, -1.0, 0.0, np.inf]
    model = poisson(4.0).fit(ROWS, COUNTS, exposure=odd)
    assert np.isfinite(model.coef_).all()
    assert np.isfinite(model.predict(ROWS[:4], exposure=odd[:4])).all()


def test_people_bring_their_offsets() -> None:
    model = poisson(4.0).fit(ROWS, COUNTS, exposure=EXPOSURE, unit=np.arange(N) // 2)
    assert np.abs(model.estimates_[:2] - [0.6, -0.4]).max() < 0.3


def test_mistakes_are_refused_before_anything_is_charged() -> None:
    accountant = Accountant(Budget(9.0, 1e-6))

    def fit(model: Any, **more: Any) -> None:
        model.set_params(accountant=accountant).fit(ROWS, COUNTS, **more)

    with pytest.raises(ValueError, match="got no offset;"):
        fit(poisson(1.0))
    with pytest.raises(ValueError, match="got no offset_range"):
        fit(PoissonRegressor(1.0, row_norm=1.5, label_range=(0, 9)), exposure=EXPOSURE)
    with pytest.raises(ValueError, match="pass one of them"):
        fit(poisson(1.0), exposure=EXPOSURE, offset=OFFSET)
    with pytest.raises(ValueError, match="exposure is for counts"):
        fit(linear(1.0), exposure=EXPOSURE)
    with pytest.raises(ValueError, match="no offset_range"):
        fit(QuantileRegressor(1.0, row_norm=1.5, label_range=(0, 9)), offset=OFFSET)
    with pytest.raises(ValueError, match="offset_range must be two finite"):
        fit(poisson(1.0).set_params(offset_range=(1.0, 1.0)), exposure=EXPOSURE)
    with pytest.raises(ValueError, match="exposure has no or several dimensions"):
        fit(poisson(1.0), exposure=EXPOSURE[:-1])
    assert not accountant.events


def test_a_model_with_offsets_is_saved(tmp_path: Path) -> None:
    model = poisson(4.0).fit(ROWS, COUNTS, exposure=EXPOSURE)
    save(model, tmp_path / "model.tacit")
    loaded = load(tmp_path / "model.tacit")
    expected = model.predict(ROWS, exposure=EXPOSURE)
    np.testing.assert_array_equal(loaded.predict(ROWS, exposure=EXPOSURE), expected)
    assert isinstance(loaded.plan_.problem.objective.loss, PoissonOffsetLoss)


def test_rounding_of_offsets_is_part_of_the_certified_error() -> None:
    bounds = Bounds(row_norm=1.5, label_range=(0.0, 40.0))
    plain, wide = PoissonOffsetLoss(5.0, 40.0), PoissonOffsetLoss(5.0, 40.0, False, -4.0, 0.2)
    assert (plain.largest_offset, wide.largest_offset) == (0.0, 12.0)
    errors = [slopes_error(Objective(loss, bounds), 1000, 2, 0.0) for loss in (plain, wide)]
    # 1000 records, each off by u times the smoothness times the norm of a row times the offset
    assert errors[1] - errors[0] == pytest.approx(1000 * 2.0**-53 * 45 * 1.5 * 12)


WILD = [(1e9, 1e300), (0.0, -1e300), (40.0, np.nan), (np.nan, np.inf), (-5.0, 0.0)]


@pytest.mark.parametrize("mechanism", ["objective_perturbation", "noisy_gradient"])
@pytest.mark.parametrize("kind", [PoissonRegressor, LinearRegression])
def test_one_record_more_moves_nothing_further_than_its_sensitivity(
    kind: Any, mechanism: Any
) -> None:
    """Fits with standard errors, replayed without the last record, whatever its offset is."""
    if mechanism == "noisy_gradient":
        mechanism = NoisyGradient(n_steps=4)
    model = kind(
        1.0,
        row_norm=1.5,
        label_range=(0, 40),
        offset_range=(-2.0, 2.0),
        mechanism=mechanism,
        inference=0.3,
    )

    def fit(table: tuple[Any, Any, Any]) -> None:
        clone(model).fit(table[0], table[1], offset=table[2])

    rows, counts, offsets = ROWS[:60], COUNTS[:60], OFFSET[:60]
    for label, offset in WILD:
        more = (
            np.vstack([rows, [[1e6, -1e6]]]),
            np.append(counts, 0.0 if np.isnan(label) else label),
            np.append(offsets, offset),
        )
        assert replay(fit, more, (rows, counts, offsets)) >= 4
