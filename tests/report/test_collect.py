from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression as NotPrivate

from tacit.linear_model import LogisticRegression
from tacit.location import Mean
from tacit.report import facts_of, render
from tacit.saving import load, save
from tacit.table_model import TableModel
from tests.declared import PROBLEMS, fit, made
from tests.report.helpers import picture, schema, table_model

ROWS = np.random.default_rng(0).uniform(-1, 1, (500, 3))


@pytest.mark.parametrize("pure", [False, True])
@pytest.mark.parametrize("name", PROBLEMS)
def test_every_estimator_has_a_report(name: str, pure: bool) -> None:
    spec, example = PROBLEMS[name]
    budget = {"delta": 0.0} if pure and spec.word != "geometric_median" else {}
    model = fit(made(spec, example, **budget), example.rows, example.labels)
    facts = facts_of(model)
    assert facts.privacy is model.privacy_
    assert facts.coefficients is not None
    values = [row.value for row in facts.coefficients.rows]
    released = model.coef_ if hasattr(model, "coef_") else model.location_
    assert values[:3] == np.ravel(released)[:3].tolist()
    assert facts.coefficients.meaning == spec.link.meaning(getattr(model, "classes_", None))
    assert "NO GUARANTEE" not in render(facts)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("linear-number", "What the prediction changes by when a feature grows by one."),
        ("poisson-count", "the predicted rate is multiplied by exp(coefficient)."),
        ("logistic-binary", "the class 'True': when a feature grows by one, the odds of that"),
        ("logistic-three", "multiplied by exp(the difference of their coefficients)."),
        ("svc-binary", "A positive coefficient speaks for the class 'True'."),
        ("mean-ball", "The released value of each column."),
    ],
)
def test_what_a_coefficient_means(name: str, said: str) -> None:
    spec, example = PROBLEMS[name]
    model = fit(made(spec, example), example.rows, example.labels)
    assert said in facts_of(model).coefficients.meaning


def test_of_a_model_of_no_declared_class_less_is_said() -> None:
    model = LogisticRegression().fit(ROWS, ROWS[:, 0] > 0)
    own = type("Own", (), {"get_params": lambda self, deep: {}, **vars(model)})()
    assert (
        facts_of(own).coefficients.meaning == "A positive coefficient speaks for the class 'True'."
    )


def test_a_table_model_brings_its_schema() -> None:
    model = table_model()
    facts = facts_of(model, accuracy=picture(), made_on="1 May 2027")
    assert facts.schema == model.schema
    assert facts.title == "Logistic regression of income"
    assert facts.coefficients is not None
    names = [row.name for row in facts.coefficients.rows]
    assert names == [*model.get_feature_names_out(), "intercept"]
    assert facts.made_on == "1 May 2027"


def test_several_classes() -> None:
    labels = np.array(["a", "b", "c"])[np.digitize(ROWS[:, 0], [-0.5, 0.5])]
    model = LogisticRegression(classes=["a", "b", "c"]).fit(ROWS, labels)
    facts = facts_of(model)
    assert facts.coefficients is not None
    assert [row.output for row in facts.coefficients.rows][::4] == ["a", "b", "c"]
    assert facts.coefficients.rows[3].value == model.intercept_[0]


def test_the_intercepts_error_is_in_the_intercepts_units() -> None:
    model = LogisticRegression(row_norm=2.0, mechanism="output_perturbation")
    rows = facts_of(model.fit(ROWS, ROWS[:, 0] > 0)).coefficients.rows
    assert rows[-1].name == "intercept"
    # The constant coordinate is a quarter of the row norm.
    assert rows[0].error is not None
    assert rows[-1].error == pytest.approx(0.5 * rows[0].error)


def test_nothing_else_that_the_object_carries_gets_in() -> None:
    frame = pd.DataFrame(ROWS, columns=["a", "b", "c"])
    model = LogisticRegression(random_state=None).fit(frame, ROWS[:, 0] > 0)
    before = render(facts_of(model))
    model.rows_ = frame
    model.n_rows_ = 424_242
    model.note_ = "a secret"
    model.privacy_.__dict__["note"] = "a secret"
    assert render(facts_of(model)) == before
    assert "424242" not in before.replace(",", "")


def test_a_loaded_model_has_the_same_report(tmp_path: Any) -> None:
    model = table_model()
    save(model, tmp_path / "model.tacit")
    assert render(facts_of(load(tmp_path / "model.tacit"))) == render(facts_of(model))


@pytest.mark.parametrize(
    "model", [LogisticRegression(), NotPrivate(), "model", TableModel(schema(), Mean())]
)
def test_what_has_no_guarantee_has_no_report(model: Any) -> None:
    with pytest.raises((TypeError, ValueError), match="fit"):
        facts_of(model)


def test_an_ordinary_model_has_no_report() -> None:
    with pytest.raises(TypeError, match="privacy_"):
        facts_of(NotPrivate().fit(ROWS, ROWS[:, 0] > 0))
