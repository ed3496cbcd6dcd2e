"""A private pipeline in a file: the same steps and promise, or a refusal."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn import preprocessing
from sklearn.base import clone

import tacit
from tacit.features import (
    Interactions,
    PolynomialFeatures,
    RandomFourierFeatures,
    SplineFeatures,
)
from tacit.linear_model import LogisticRegression
from tacit.pipeline import PrivatePipeline, Vouched
from tacit.preprocessing import PrivateMissing, PrivatePCA, PrivateStandardScaler
from tacit.privacy import Gaussian
from tacit.report import facts_of, render
from tacit.saving import CannotSave, NotAModel, inspect
from tacit.saving.container import to_json
from tacit.saving.model_file import members_of, stored_in
from tacit.schema import ClassTarget, Number, Schema, SchemaEncoder
from tests.test_private_pipeline import LABELS, ROWS, pipeline

COLUMNS = tuple(Number(name, -1, 1) for name in "abc")
SCHEMA = Schema(COLUMNS, ClassTarget("ill", ("no", "yes")))
TABLE = dict(zip("abc", ROWS.T, strict=True))
WORDS = np.where(LABELS, "yes", "no")


def of_tables(*between: Any, **parameters: Any) -> PrivatePipeline:
    named = [(f"step{place}", step) for place, step in enumerate(between)]
    steps = [("encode", SchemaEncoder(SCHEMA)), *named, ("model", LogisticRegression())]
    return PrivatePipeline(steps, **parameters).fit(TABLE, WORDS)


@pytest.mark.parametrize("parameters", [{}, {"epsilon": math.inf}, {"random_state": 3}])
@pytest.mark.parametrize("between", [(), (preprocessing.PolynomialFeatures(2),)])
def test_saved_and_loaded(between: Any, parameters: Any, tmp_path: Path) -> None:
    made = of_tables(*between, **parameters)
    tacit.save(made, tmp_path / "model.tacit")
    again = tacit.load(tmp_path / "model.tacit")
    assert np.all(again.predict_proba(TABLE) == made.predict_proba(TABLE))
    assert again.privacy_ == made.privacy_
    assert again.feature_names_met == made.feature_names_met
    if not parameters:
        assert clone(again).fit(TABLE, WORDS).privacy_.event == made.privacy_.event
    shown = str(inspect(tmp_path / "model.tacit"))
    assert "LogisticRegression of 'ill' from a table" in shown
    assert ("a^2" in shown) == bool(between)


def test_a_table_model_of_a_pipeline_is_one(tmp_path: Path) -> None:
    inner = pipeline(preprocessing.Normalizer(), epsilon=1.0)
    model = tacit.TableModel(SCHEMA, inner.set_params(model__classes=None)).fit(TABLE, WORDS)
    assert model.plan().event == model.privacy_.event
    tacit.save(model, tmp_path / "model.tacit")
    again = tacit.load(tmp_path / "model.tacit")
    assert again.evaluation_ is None
    assert np.all(again.predict_proba(TABLE) == model.predict_proba(TABLE))
    assert "Logistic" in render(facts_of(again))


def test_what_no_file_can_hold_is_refused(tmp_path: Path) -> None:
    same = Vouched(preprocessing.FunctionTransformer(), row_norm=1.0)
    with pytest.raises(CannotSave, match="Vouched"):
        tacit.save(of_tables(same), tmp_path / "model.tacit")


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda r: r["steps"][1]["parameters"].update(degree=3), "another number of features"),
        (lambda r: r["steps"][1].update(kind="lambda"), "does not know"),
        (lambda r: r["steps"][0].update(name="model"), "the same name"),
        (lambda r: r["steps"].pop(1), "is missing"),
        (lambda r: r["steps"].pop(), "not an estimator"),
        (lambda r: r.update(steps=[]), "without steps"),
        (lambda r: r["feature_names_met"].pop(), "names"),
        (lambda r: r["parameters"].update(delta=1e-9), "another budget"),
        (lambda r: r["parameters"].update(relation="add_remove_person"), "another budget"),
        (lambda r: r["steps"][-1].update(event=Gaussian(1.0).to_dict()), "not about"),
    ],
)
def test_a_forged_file_is_refused(change: Any, why: str) -> None:
    members = members_of(of_tables(preprocessing.PolynomialFeatures(2)))
    record = json.loads(members["model.json"])
    change(record)
    with pytest.raises(NotAModel, match=why):
        stored_in({**members, "model.json": to_json(record)})


@pytest.mark.parametrize(
    "steps",
    [
        (RandomFourierFeatures(n_frequencies=5, row_norm=2.0),),
        (PolynomialFeatures(2, row_norm=2.0), PrivatePCA(2)),
        (PrivateMissing(bounds=(-2, 2)), SplineFeatures()),
        (PrivateStandardScaler(bounds=(-2, 2)), Interactions()),
    ],
)
def test_maps_and_private_steps_are_saved(steps: Any, tmp_path: Path) -> None:
    made = pipeline(*steps, epsilon=5.0, evaluate=0.5).fit(ROWS, LABELS)
    tacit.save(made, tmp_path / "model.tacit")
    again = tacit.load(tmp_path / "model.tacit")
    assert np.all(again.predict_proba(ROWS) == made.predict_proba(ROWS))
    assert again.privacy_ == made.privacy_
