"""Rows are read in `predict` as they are in `fit`: absurd ones count as zeros, places add up."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

from tacit.linear_model import LinearRegression, LogisticRegression

RNG = np.random.default_rng(3)
ROWS = RNG.uniform(-1, 1, (300, 3))


@pytest.fixture(params=["classes", "number"])
def model(request: pytest.FixtureRequest) -> Any:
    if request.param == "number":
        return LinearRegression(math.inf, row_norm=2.0, regularization=1.0).fit(ROWS, ROWS[:, 0])
    labels = RNG.integers(0, 3, 300)
    return LogisticRegression(math.inf, classes=[0, 1, 2], row_norm=2.0).fit(ROWS, labels)


def scores(model: Any, rows: Any) -> Any:
    return getattr(model, "decision_function", model.predict)(rows)


def test_an_absurd_row_is_asked_about_as_zeros(model: Any) -> None:
    odd = np.array([[1e308, -1e308, 1e308], [0.1, 0.2, 0.3]])
    plain = np.array([[0.0, 0.0, 0.0], [0.1, 0.2, 0.3]])
    assert np.allclose(scores(model, odd), scores(model, plain))
    assert np.allclose(scores(model, csr_array(odd)), scores(model, plain))


def test_entries_at_one_place_add_up_before_they_are_asked_about(model: Any) -> None:
    twice = csr_array(([1e200, -1e200, 0.3, 0.2], [0, 0, 1, 0], [0, 4]), shape=(1, 3))
    assert np.allclose(scores(model, twice), scores(model, np.array([[0.2, 0.3, 0.0]])))
