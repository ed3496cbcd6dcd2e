"""The regressor's means: their sensitivity in steps, rounded up."""

from __future__ import annotations

from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tacit.pate.regressor as regressor_module
from tacit.noise import Release
from tacit.pate import PATERegressor
from tacit.privacy import Budget, Gaussian


def test_the_root_of_the_queries_is_rounded_up(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[Fraction] = []

    def noticed(bounded: Any, multiplier: float, source: Any) -> Any:
        found.append(Fraction(bounded.sensitivity))
        return Release(bounded.value, Gaussian(multiplier))

    monkeypatch.setattr(regressor_module, "gaussian", noticed)
    model = PATERegressor(n_teachers=5, label_range=(0.0, 1.0))
    plan = SimpleNamespace(
        event=Gaussian(2.0), budget=Budget(1.0, 1e-6), settings={"noise_multiplier": 2.0}
    )
    for n_queries in range(1, 40):
        model._noisy(np.zeros(n_queries), plan, None)
        assert found[-1] ** 2 >= regressor_module.STEPS**2 * n_queries
