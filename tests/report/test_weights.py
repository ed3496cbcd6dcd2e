"""A report of a weighted model: what it says of weights, and the plans it compares."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tacit.linear_model import LogisticRegression
from tacit.report import facts_of


@pytest.mark.parametrize(
    ("class_weight", "shown"), [("balanced", "balanced"), ({"no": 1, "yes": 8}, "no: 1, yes: 8")]
)
def test_weights_are_said(class_weight: Any, shown: str) -> None:
    rows = np.random.default_rng(0).standard_normal((500, 2))
    model = LogisticRegression(
        1.0, 1e-6, row_norm=2.0, classes=["yes", "no"], class_weight=class_weight
    ).fit(rows, np.where(rows[:, 0] > 1, "yes", "no"))
    facts = facts_of(model)
    said = {fact.name: fact.value for fact in facts.public}
    assert said["Class weights"] == shown
    assert said["Largest record weight"] == "none: all records have weight 1"
    assert model.plan_ is not None
    run = [row for row in facts.mechanisms if row.chosen]
    assert [row.name for row in run] == ["objective_perturbation"]
    assert ("counted first" in run[0].noise) is (class_weight == "balanced")
    others = {row.name for row in facts.mechanisms if row.excess_risk is not None}
    assert {"noisy_gradient", "output_perturbation"} <= others
    assert facts.coefficients is not None
    assert all(row.error is not None for row in facts.coefficients.rows)
