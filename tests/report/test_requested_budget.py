"""A report shows the budget that was asked for, not the estimator's part of it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from tacit.linear_model import LogisticRegression
from tacit.pipeline import PrivatePipeline
from tacit.report import facts_of
from tacit.saving import load, save
from tacit.schema import ClassTarget, OpenNumber, Schema, SchemaEncoder


def test_the_epsilon_of_a_pipeline_is_that_of_all_steps(tmp_path: Path) -> None:
    ages = np.random.default_rng(0).uniform(0, 90, 4000)
    table = pd.DataFrame({"age": ages, "ill": np.where(ages > 50, "yes", "no")})
    schema = Schema((OpenNumber("age", 0, 1e4),), ClassTarget("ill", ("no", "yes")))
    steps = [("schema", SchemaEncoder(schema)), ("model", LogisticRegression())]
    model = PrivatePipeline(steps, 0.9, 1e-7).fit(table)
    save(model, tmp_path / "model.tacit")
    for found in (model, load(tmp_path / "model.tacit")):
        shown = {fact.name: fact.value for fact in facts_of(found).public}
        assert shown["Requested epsilon"] == "0.9"
        assert shown["Requested delta"] == "10⁻⁷"
        assert 0.5 < float(shown["Epsilon of the estimator alone"]) < 0.9


def test_an_estimator_alone_has_one_epsilon() -> None:
    rows = np.random.default_rng(0).uniform(-1, 1, (2000, 2))
    model = LogisticRegression(1.5, row_norm=1.5, inference=0.3).fit(rows, rows[:, 0] > 0)
    shown = {fact.name: fact.value for fact in facts_of(model).public}
    assert shown["Requested epsilon"] == "1.5"
    assert "Epsilon of the estimator alone" not in shown
