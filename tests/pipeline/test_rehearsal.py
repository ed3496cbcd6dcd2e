"""What a step would refuse is found before the pipeline is charged, and weights are not dropped."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer

from tacit.estimators.parameters import NobodyCountedWarning
from tacit.linear_model import LinearSVC, LogisticRegression, PoissonRegressor
from tacit.location import Mean, Median
from tacit.metrics.evaluation import NoEvaluationWarning
from tacit.pipeline import PrivatePipeline, Vouched
from tacit.pipeline.private import as_pipeline
from tacit.preprocessing import PrivatePCA, PrivateQuantileBounds, PrivateStandardScaler
from tacit.privacy import Accountant, Budget
from tacit.schema import ClassTarget, Number, Schema, SchemaEncoder

RNG = np.random.default_rng(0)
ROWS = RNG.uniform(-1, 1, (300, 3))
LABELS = ROWS[:, 0] > 0
SCHEMA = Schema((Number("age", 0, 100),), ClassTarget("ill", ("no", "yes")))
AGES = RNG.uniform(0, 100, 300)
ILL = np.where(AGES > 50, "yes", "no")


def logistic(**parameters: Any) -> LogisticRegression:
    return LogisticRegression(row_norm=1.0, **parameters)


@pytest.mark.parametrize(
    ("steps", "said"),
    [
        ([("scale", PrivateStandardScaler()), ("model", logistic())], "bounds of column 'x0'"),
        ([("bounds", PrivateQuantileBounds()), ("model", logistic())], "bounds of column 'x0'"),
        (
            [
                ("bounds", PrivateQuantileBounds(bounds=(1e300, 2e300))),
                ("model", logistic()),
            ],
            "at most 2\\^500",
        ),
        ([("model", LinearSVC(row_norm=1.0, classes=[0, 1, 2]))], "needs exactly 2 classes"),
        ([("model", logistic(n_records=0))], "n_records must be|records are too few"),
        ([("where", Median(bounds=None))], "bounds must be finite pairs"),
        ([("where", Median(bounds=(0, 1), quantile=1.5))], "level must be between 0 and 1"),
        ([("where", Mean(row_norm=1.0, center=[1.0, 2.0]))], "center must be one number"),
    ],
    ids=lambda value: value if isinstance(value, str) else value[0][0],
)
@pytest.mark.parametrize("evaluate", [0.0, 0.5])
def test_what_a_step_refuses_is_refused_before_the_charge(
    steps: Any, said: str, evaluate: float
) -> None:
    purse = Accountant(Budget(100.0, 1e-2))
    predicts = hasattr(steps[-1][1], "predict")  # a location has no evaluation
    made = PrivatePipeline(steps, 30.0, evaluate=evaluate * predicts, accountant=purse)
    with pytest.raises(ValueError, match=said):
        made.fit(ROWS, LABELS if predicts else None)
    assert purse.events == ()


@pytest.mark.parametrize("n_records", [None, 300])
@pytest.mark.parametrize("regularization", [None, 10.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_declared_max_weight_needs_no_weights(
    n_records: int | None, regularization: float | None, weighted: bool
) -> None:
    shared: Any = {
        "row_norm": 1.0,
        "max_weight": 2.0,
        "n_records": n_records,
        "regularization": regularization,
    }
    weights = np.ones(300) if weighted else None
    for model in (
        LogisticRegression(classes=[False, True], **shared),
        PoissonRegressor(label_range=(0, 1), **shared),
    ):
        made = PrivatePipeline([("model", model)]).fit(ROWS, LABELS, sample_weight=weights)
        assert made.privacy_.epsilon(1e-6) <= 1.0


def test_weights_beside_an_encoded_table_are_refused() -> None:
    table = SchemaEncoder(SCHEMA).unread({"age": AGES}, ILL)
    model = LogisticRegression(max_weight=1.0)
    for made in (
        PrivatePipeline([("model", model)]),
        PrivatePipeline([("model", model)], epsilon=None),
    ):
        with pytest.raises(ValueError, match="sample_weight goes with rows in memory"):
            made.fit(table, None, sample_weight=np.zeros(300))


def test_weights_are_given_once() -> None:
    made = PrivatePipeline([("model", logistic(max_weight=1.0))])
    ones = np.ones(300)
    with pytest.raises(TypeError, match="sample_weight and model__sample_weight"):
        made.fit(ROWS, LABELS, sample_weight=ones, model__sample_weight=ones)


@pytest.mark.parametrize(
    "step",
    [
        PrivatePCA(1, epsilon=5.0, row_norm=0.5),
        PrivateStandardScaler(epsilon=5.0, bounds=(-0.5, 0.5)),
        Vouched(FunctionTransformer(np.tanh), row_norm=0.5),
    ],
    ids=lambda step: type(step).__name__,
)
def test_scikit_learns_pipeline_cannot_hide_what_a_step_learned(step: Any) -> None:
    """Its guarantee is the estimator's alone, which does not cover the step, or not say it all."""
    model = LogisticRegression(epsilon=1.0, row_norm=0.5, classes=["no", "yes"])
    made = Pipeline([("encode", SchemaEncoder(SCHEMA)), ("step", step), ("model", model)])
    made.fit({"age": AGES}, ILL)
    with pytest.raises(TypeError, match=r"PrivatePipeline"):
        as_pipeline(made)


def test_a_warning_that_is_an_error_does_not_lose_the_model() -> None:
    made = PrivatePipeline([("model", logistic())], epsilon=100.0, evaluate=0.004)
    with warnings.catch_warnings():
        warnings.simplefilter("error", NoEvaluationWarning)
        with pytest.raises(NoEvaluationWarning):
            made.fit(ROWS, LABELS)
    assert made.evaluation_ is None
    assert made.privacy_.epsilon(1e-6) <= 100.0


def test_a_warning_of_a_step_that_is_an_error_does_not_lose_the_model() -> None:
    made = PrivatePipeline([("model", logistic())], epsilon=0.01)
    with warnings.catch_warnings():
        warnings.simplefilter("error", NobodyCountedWarning)
        for _ in range(8):  # of five records the count is above its threshold once in forty times
            try:
                made.fit(ROWS[:5], LABELS[:5])
            except NobodyCountedWarning:
                break
        else:
            pytest.fail("no warning")
    assert made.predict(ROWS).shape == (300,)


def test_the_guarantee_of_a_step_says_that_it_is_one_of_several() -> None:
    steps = [("pca", PrivatePCA(1, row_norm=1.0)), ("model", logistic())]
    made = PrivatePipeline(steps).fit(ROWS, LABELS)
    for step in made.steps_.values():
        assert "see the guarantee of the pipeline" in step.privacy_.statement()
    assert "see the guarantee of the pipeline" not in made.privacy_.statement()
