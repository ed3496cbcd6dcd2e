"""Of two classes, the last one declared is told: its odds, its coefficients, its curves."""

from __future__ import annotations

import csv
import io
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.metrics import get_scorer

from tacit.estimators.parameters import positive_class
from tacit.kernel import KernelLogisticRegression
from tacit.linear_model import LinearSVC, LogisticRegression
from tacit.metrics import evaluate
from tacit.pipeline import PrivatePipeline
from tacit.report import facts_of, render
from tacit.saving import NotAModel, inspect, load, save
from tacit.saving.container import from_json, to_json
from tacit.saving.model_file import members_of, stored_in
from tacit.schema import ClassTarget, Number, Schema
from tacit.table_model import TableModel
from tests.cli.helpers import run

RNG = np.random.default_rng(5)
AGE = RNG.uniform(-1, 1, (4000, 1))
ILL = RNG.random(4000) < 1 / (1 + np.exp(-(2 * AGE[:, 0] - 1)))  # the old are ill, a few in all
LABELS = np.where(ILL, "ja", "nein")


def fitted(classes: Any, labels: Any = LABELS, **more: Any) -> LogisticRegression:
    known = {"row_norm": 1.0, "inference": 0.1, "random_state": 1, **more}
    return LogisticRegression(8.0, classes=classes, **known).fit(AGE, labels)


def of_table(order: tuple[str, ...] = ("nein", "ja")) -> PrivatePipeline:
    schema = Schema((Number("age", -1, 1),), ClassTarget("ill", order))
    model = TableModel(schema, LogisticRegression(8.0, inference=0.1, random_state=1))
    return model.fit(pd.DataFrame({"age": AGE[:, 0], "ill": LABELS}))


def test_odds_are_those_of_the_last_declared_class() -> None:
    model, other = fitted(["nein", "ja"]), fitted(["ja", "nein"])
    assert (positive_class(model), positive_class(other)) == ("ja", "nein")
    ill, well = model.summary(), other.summary()
    assert ill.rows()[0]["odds_ratio"] > 2
    assert well.rows()[0]["odds_ratio"] < 0.5
    assert str(ill).splitlines()[0] == "LogisticRegression: odds of ja"
    np.testing.assert_array_equal(ill.coefficients, -np.array(well.coefficients))
    np.testing.assert_array_equal(ill.standard_errors, well.standard_errors)


def test_what_scikit_learn_reads_is_sorted() -> None:
    model, other = fitted(["nein", "ja"]), fitted(["ja", "nein"])
    for one in (model, other):
        assert one.classes_.tolist() == ["ja", "nein"]
        assert get_scorer("roc_auc")(one, AGE, LABELS) > 0.6
    assert model.coef_.tobytes() == other.coef_.tobytes()
    assert not hasattr(other, "declared_classes_")  # so that its file is as it was


def test_types_declare_an_order_too() -> None:
    category = pd.Series(pd.Categorical(LABELS, ["nein", "ja"]))
    enum = pl.Series(LABELS, dtype=pl.Enum(["nein", "ja"]))
    for labels in (category, enum):
        assert positive_class(fitted(None, labels)) == "ja"
    assert positive_class(fitted(None, pd.Series(LABELS).astype("category"))) == "nein"
    assert positive_class(fitted("infer")) == "nein"
    assert positive_class(fitted(None, ILL)) is True
    assert positive_class(fitted([True, False], ILL)) is False


def test_a_second_fit_forgets_the_first_order() -> None:
    waves = KernelLogisticRegression(8.0, n_frequencies=2, classes=["nein", "ja"])
    for model in (LinearSVC(8.0, row_norm=1.0, classes=["nein", "ja"]), waves):
        assert positive_class(model.fit(AGE, LABELS)) == "ja"
        assert positive_class(model.set_params(classes=["ja", "nein"]).fit(AGE, LABELS)) == "nein"


def test_everything_shown_of_a_table_names_it(tmp_path: Path) -> None:
    model, path = of_table(), tmp_path / "model.tacit"
    save(model, path)
    for one in (model, load(path)):
        assert positive_class(one) == "ja"
        facts = facts_of(one)
        assert facts.coefficients is not None
        assert facts.coefficients.rows[0].value > 0
        assert "the odds of that class" in facts.coefficients.meaning
        assert "'ja'" in facts.coefficients.meaning
        assert one.summary().rows()[0]["coefficient"] > 0
        assert "of the odds of ja." in render(facts)
    certificate = inspect(path)
    assert "modelled class: ja" in str(certificate)
    assert "LogisticRegression: odds of ja" in str(certificate)
    assert certificate.to_dict()["positive_class"] == "ja"
    shown = run("inspect", path, "--coefficients", "--csv").stdout
    row = next(csv.DictReader(io.StringIO(shown)))
    assert (row["class"], float(row["value"]) > 0) == ("ja", True)


def test_a_file_without_a_declared_order_is_told_as_it_was(tmp_path: Path) -> None:
    model, path = of_table(), tmp_path / "model.tacit"
    del model.estimator_.declared_classes_
    save(model, path)
    assert positive_class(load(path)) == "nein"
    assert load(path).summary().rows()[0]["coefficient"] < 0


@pytest.mark.parametrize("forged", [["ja", "nein"], ["nein", "nein"], ["nein"]])
def test_a_forged_order_is_refused(tmp_path: Path, forged: list[str]) -> None:
    path = tmp_path / "model.tacit"
    model = fitted(["nein", "ja"])
    model.declared_classes_ = np.array(forged, dtype=model.classes_.dtype)
    with pytest.raises(Exception, match="declared_classes_"):
        save(model, path)


def test_a_schema_of_another_order_is_refused() -> None:
    members = members_of(of_table())
    record = from_json(members["model.json"], "model.json")
    record["schema"] = {**record["schema"], "facts": of_table(("ja", "nein")).schema.to_dict()}
    with pytest.raises(NotAModel, match="in another order"):
        stored_in({**members, "model.json": to_json(record)})


def test_curves_and_calibration_are_of_that_class() -> None:
    names = {"nein": "0 nein", "ja": "1 ja"}  # sorted as they are declared
    renamed = np.array([names[label] for label in LABELS])
    model, plain = fitted(["nein", "ja"]), fitted(["0 nein", "1 ja"], renamed)
    # The other order of codes gives other noise: let both predict alike.
    plain.coef_, plain.intercept_ = -model.coef_, -model.intercept_
    found = evaluate(model, AGE, LABELS, epsilon=math.inf)
    expected = evaluate(plain, AGE, renamed, epsilon=math.inf)
    assert (found.positive, expected.positive) == ("ja", "1 ja")
    for name, metric in expected.metrics.items():
        assert found[name].value == pytest.approx(metric.value, abs=1e-9), name
    for name, curve in expected.curves.items():
        for part in ("x", "y"):
            mine, theirs = getattr(found.curves[name], part), getattr(curve, part)
            np.testing.assert_allclose(mine, theirs, atol=1e-9, err_msg=name)
        assert found.curves[name].name == curve.name.replace("1 ja", "ja")
    assert "share of ja" in found.curves["calibration"].name
    assert "the class ja." in str(found)
    # The last of the classes that the caller declares, of any model.
    assert evaluate(plain, AGE, renamed, epsilon=math.inf, classes=["1 ja", "0 nein"]).positive == (
        "0 nein"
    )


def test_the_evaluation_of_a_pipeline_survives_saving(tmp_path: Path) -> None:
    steps = [("model", LogisticRegression(row_norm=1.0, classes=["nein", "ja"]))]
    model = PrivatePipeline(steps, epsilon=8.0, evaluate=0.3, random_state=1).fit(AGE, LABELS)
    save(model, tmp_path / "model.tacit")
    again = load(tmp_path / "model.tacit")
    for one in (model, again):
        assert one.evaluation_.positive == "ja"
    before, after = model.evaluation_.to_dict(), again.evaluation_.to_dict()
    assert before["curves"] == after["curves"]
    assert before["positive_class"] == "ja"
