"""Error bars against fits of the same records over and over, with fresh noise."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tacit.erm import ObjectivePerturbation, OutputPerturbation
from tacit.linear_model import LinearRegression, LogisticRegression
from tacit.location import Mean
from tacit.report import facts_of

N_FITS = 300


def surely(n_fits: int) -> float:
    """Return five times the relative error of a standard deviation from so many draws."""
    return 5 / np.sqrt(2 * n_fits)  # 5 x 4 % from 300


SURELY = surely(N_FITS)


def records(n: int, zeros: int = 0) -> np.ndarray:
    rows = np.random.default_rng(0).uniform(-1, 1, (n, 3))
    return np.column_stack([rows, np.zeros((n, zeros))])


def fits(
    model: Any, rows: np.ndarray, labels: np.ndarray, n_fits: int = N_FITS
) -> tuple[np.ndarray, np.ndarray]:
    """Return the numbers that fits released and the error bars they were given."""
    found, errors = [], []
    for _ in range(n_fits):
        coefficients = facts_of_quickly(model.fit(rows, labels))
        found.append([row.value for row in coefficients.rows])
        errors.append([row.error for row in coefficients.rows])
    return np.array(found), np.array(errors)


def spread(
    model: Any, rows: np.ndarray, labels: np.ndarray, n_fits: int = N_FITS
) -> tuple[np.ndarray, np.ndarray]:
    """Return the standard deviation of each released number, and the error bar it was given."""
    found, errors = fits(model, rows, labels, n_fits)
    return np.std(found, axis=0, ddof=1), errors[-1]


def facts_of_quickly(model: Any) -> Any:
    from tacit.report.collect import _coefficients, _feature_names

    names = _feature_names(model, model)
    return _coefficients(model, getattr(model, "plan_", None), names, from_schema=False)


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_output_noise_is_known_exactly(delta: float) -> None:
    rows = records(200)
    model = LogisticRegression(
        1.0, delta, row_norm=2.0, mechanism=OutputPerturbation(), regularization=50.0
    )
    actual, stated = spread(model, rows, rows[:, 0] > 0)
    assert np.all(np.abs(actual / stated - 1) < SURELY)
    assert not facts_of_quickly(model).errors_are_bounds


@pytest.mark.parametrize("n_fits", [60, pytest.param(N_FITS, marks=pytest.mark.slow)])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_a_tilt_is_bounded_and_the_bound_is_reached(delta: float, n_fits: int) -> None:
    # The last column is always zero: no record speaks about it, and the bound is attained.
    rows = records(200, zeros=1)
    tilted = ObjectivePerturbation()
    model = LogisticRegression(1.0, delta, row_norm=2.0, mechanism=tilted, regularization=8.0)
    actual, stated = spread(model, rows, rows[:, 0] > 0, n_fits)
    assert np.all(actual < stated * (1 + surely(n_fits)))
    assert abs(actual[3] / stated[3] - 1) < surely(n_fits)
    assert facts_of_quickly(model).errors_are_bounds


@pytest.mark.parametrize("n", [2, 30, 1000])
def test_moments_are_bounded(n: int) -> None:
    rows = records(n)
    model = LinearRegression(
        1.0, 1e-6, row_norm=2.0, label_range=(-2.0, 8.0), mechanism="sufficient_statistics"
    )
    found, errors = fits(model, rows, rows @ [1.0, -1.0, 0.5] + 3.0)
    # two fits of three, since one in a thousand is close to singular and as far off as it likes
    low, high = np.quantile(found, [1 / 6, 5 / 6], axis=0)
    actual, stated = (high - low) / 2, np.median(errors, axis=0)
    assert np.all(actual < 0.75 * stated)
    if n == 2:  # where the records say next to nothing, the bound is not far off
        assert np.all(actual > stated / 3)


@pytest.mark.parametrize("relation", ["add_remove", "replace"])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_a_mean_with_a_public_count(delta: float, relation: str) -> None:
    rows = records(50)
    model = Mean(1.0, delta, row_norm=2.0, n_records=50, relation=relation)
    actual, stated = spread(model, rows, rows[:, 0])
    assert np.all(np.abs(actual / stated - 1) < SURELY)


@pytest.mark.parametrize(
    "model",
    [
        LogisticRegression(1.0, 1e-6, mechanism="noisy_gradient"),
        LogisticRegression(np.inf),
        Mean(1.0, 1e-6),
        Mean(1.0, 1e-6, n_records="infer"),
    ],
)
def test_where_nothing_is_known_no_bar_is_drawn(model: Any) -> None:
    rows = records(200)
    coefficients = facts_of(model.fit(rows, rows[:, 0] > 0)).coefficients
    assert coefficients is not None
    assert all(row.error is None for row in coefficients.rows)
    assert coefficients.about_errors.startswith("No error bars")
