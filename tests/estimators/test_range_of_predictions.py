"""Predictions keep to the declared range of labels, so that no error grows by what noise did."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tacit
from tacit.kernel import KernelRidge
from tacit.linear_model import (
    HuberRegressor,
    LinearRegression,
    PoissonRegressor,
    QuantileRegressor,
    Ridge,
)
from tacit.records.block import row_products
from tacit.saving import NotAModel
from tacit.saving.validation import check_released, kind_of, spec_of_kind
from tacit.schema import Number, NumberTarget, Schema, SchemaEncoder

LOW, HIGH = 0.0, 4.0


def starved(model: type[Any]) -> Any:
    """Return a model that is nearly all noise, and far rows to ask it about."""
    rng = np.random.default_rng(0)
    rows, labels = rng.uniform(-1, 1, (40, 3)), rng.integers(0, 5, 40)
    made = model(0.5, 1e-6, row_norm=1.7, label_range=(LOW, HIGH), mechanism="noisy_gradient")
    return made.fit(rows, labels)


@pytest.mark.parametrize(
    "model", [LinearRegression, Ridge, HuberRegressor, QuantileRegressor, PoissonRegressor]
)
def test_the_range_is_kept(model: type[Any], tmp_path: Path) -> None:
    fitted = starved(model)
    fitted.coef_ = np.array([400.0, -300.0, 900.0])
    rows = np.random.default_rng(1).uniform(-1, 1, (200, 3))
    found = fitted.predict(rows)
    assert found.min() == LOW or model is PoissonRegressor
    assert found.min() >= LOW
    assert found.max() == HIGH
    # for any label in the range the end of it is nearer than what lies beyond
    scores = row_products(rows, fitted.coef_) + fitted.intercept_
    with np.errstate(over="ignore"):
        bare = np.exp(scores) if model is PoissonRegressor else scores
    for label in np.linspace(LOW, HIGH, 9):
        assert np.all(np.abs(found - label) <= np.abs(bare - label))
    tacit.save(fitted, tmp_path / "model.tacit")
    np.testing.assert_array_equal(tacit.load(tmp_path / "model.tacit").predict(rows), found)


def test_within_the_range_nothing_moves() -> None:
    fitted = starved(LinearRegression)
    fitted.coef_ = np.array([0.1, 0.2, -0.1])
    fitted.intercept_ = 2.0
    rows = np.random.default_rng(1).uniform(-1, 1, (50, 3))
    np.testing.assert_allclose(fitted.predict(rows), rows @ fitted.coef_ + 2.0, rtol=1e-12)


@pytest.mark.parametrize("label_range", ["infer", None])
def test_what_was_read_from_labels_bounds_nothing(label_range: Any) -> None:
    rng = np.random.default_rng(0)
    rows = rng.uniform(-1, 1, (100, 2))
    model = LinearRegression(np.inf, row_norm=9.0, label_range=label_range)
    model.fit(rows, rows[:, 0])
    assert model.predict([[5.0, 0.0]])[0] == pytest.approx(5.0, rel=1e-6)


def test_kernels_keep_it_too() -> None:
    rng = np.random.default_rng(0)
    rows = rng.uniform(-1, 1, (60, 2))
    model = KernelRidge(0.1, 1e-6, label_range=(-1.0, 1.0), row_norm=1.5)
    with_noise = model.fit(rows, rows[:, 0]).predict(rng.uniform(-1, 1, (500, 2)))
    assert np.all(np.abs(with_noise) <= 1.0)


def test_a_range_of_a_schema_is_kept_before_and_after_saving(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    table = {"a": rng.uniform(0, 1, 60), "y": rng.uniform(0, 4, 60)}
    schema = Schema((Number("a", 0, 1),), NumberTarget("y", LOW, HIGH))
    steps = [("encode", SchemaEncoder(schema)), ("model", LinearRegression(1.0))]
    made = tacit.PrivatePipeline(steps, epsilon=None)
    made.fit(table, table["y"])
    made["model"].coef_ = np.array([500.0])
    found = made.predict(table)
    assert (found.min(), found.max()) == (LOW, HIGH)
    tacit.save(made, tmp_path / "m.tacit")
    np.testing.assert_array_equal(tacit.load(tmp_path / "m.tacit").predict(table), found)
    # what an earlier fit was told does not outlive it
    made["model"].set_params(epsilon=np.inf).fit([[0.0], [1.0]], [0.0, 50.0])
    assert made["model"].predict([[1.0]])[0] > HIGH


@pytest.mark.parametrize("ends", [(4.0, 0.0), (0.0,), [0.0, 4.0], (0.0, np.inf), ("0", "4")])
def test_a_damaged_range_is_refused(ends: Any) -> None:
    fitted = starved(LinearRegression)
    fitted.label_range_ = ends
    with pytest.raises(NotAModel, match="label_range_"):
        check_released(fitted, spec_of_kind(kind_of(fitted) or ""))
