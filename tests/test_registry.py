"""The table of models: complete, and true of every class in it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, is_classifier, is_regressor

import tacit.kernel
import tacit.linear_model
import tacit.local
import tacit.location
from tacit.cli.options import Model
from tacit.estimators.predictors import Regressor
from tacit.estimators.summary import RESIDUAL_BOUND
from tacit.privacy import Relation
from tacit.registry import (
    IDENTITY,
    LOG,
    LOGIT,
    MARGIN,
    MODELS,
    NAMES,
    RANGE,
    SOMETIMES,
    VALUE,
    WAVES,
    ModelSpec,
    Predicts,
    spec_of,
)
from tests.declared import PROBLEMS, fit, made, word_of

WORDS = [spec.word for spec in MODELS]


def public_estimators() -> set[type[Any]]:
    """Every estimator of tacit, found and not listed."""
    found = [
        getattr(module, name)
        for module in (tacit.linear_model, tacit.location, tacit.local, tacit.kernel)
        for name in (getattr(module, "__all__", None) or vars(module))
    ]
    return {
        cls
        for cls in found
        if isinstance(cls, type)
        and issubclass(cls, BaseEstimator)
        and not cls.__name__.startswith("_")
        and cls is not BaseEstimator
    }


def test_every_estimator_is_declared() -> None:
    assert public_estimators() == {spec.model for spec in MODELS}


def test_a_word_means_one_model() -> None:
    kinds = [spec.kind for spec in MODELS if spec.kind is not None]
    assert len(set(WORDS)) == len(WORDS)
    assert len(set(kinds)) == len(kinds)
    assert len({spec.model for spec in MODELS}) == len(MODELS)


def test_words_keep_their_meaning() -> None:
    """Files hold kinds, and scripts hold words; a new one may be added to either."""
    kinds = {spec.kind: spec.model.__name__ for spec in MODELS}
    assert (
        kinds.items()
        >= {
            "logistic_regression": "LogisticRegression",
            "linear_svc": "LinearSVC",
            "linear_regression": "LinearRegression",
            "ridge": "Ridge",
            "huber_regressor": "HuberRegressor",
            "quantile_regressor": "QuantileRegressor",
            "poisson_regressor": "PoissonRegressor",
            "mean": "Mean",
            "median": "Median",
            "geometric_median": "GeometricMedian",
        }.items()
    )
    words = {spec.word: spec.model.__name__ for spec in MODELS}
    assert (
        words.items()
        >= {
            "logistic": "LogisticRegression",
            "svc": "LinearSVC",
            "linear": "LinearRegression",
            "huber": "HuberRegressor",
            "quantile": "QuantileRegressor",
            "poisson": "PoissonRegressor",
        }.items()
    )


def test_the_help_names_every_word() -> None:
    (option,) = Model.__metadata__  # type: ignore[attr-defined]
    assert all(spec.word in option.help for spec in MODELS if spec.is_offered)


def test_the_nearest_declared_class() -> None:
    class Mine(tacit.linear_model.PoissonRegressor):
        pass

    assert spec_of(Mine()).word == "poisson"  # type: ignore[union-attr]
    assert spec_of(BaseEstimator()) is None


@pytest.mark.parametrize("spec", MODELS, ids=word_of)
def test_what_is_declared_is_so(spec: ModelSpec) -> None:
    model = spec.model()
    assert is_classifier(model) == (spec.predicts is Predicts.CLASSES)
    assert is_regressor(model) == (spec.predicts is Predicts.NUMBERS)
    assert hasattr(model, "predict") == (spec.score is not None)
    assert ("relation" in model.get_params()) == (spec.relations == tuple(Relation))
    assert spec.examples()


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_fit_leaves_what_is_declared_and_nothing_else(name: str) -> None:
    spec, example = PROBLEMS[name]
    frame = pd.DataFrame(example.rows, columns=["a", "b", "c"])
    for rows, names in ((example.rows, set()), (frame, {NAMES})):
        model = fit(made(spec, example), rows, example.labels)
        left = set(vars(model)) - set(model.get_params(deep=False))
        own = {"privacy_", "plan_"} if spec.has_plan else {"privacy_"}
        # examples declare the range of their labels
        declared = {RANGE} if isinstance(model, Regressor) else set()
        declared |= {RESIDUAL_BOUND} & left  # examples have few records
        assert left == (set(spec.released) - SOMETIMES) | names | own | declared


@pytest.mark.parametrize("spec", [spec for spec in MODELS if spec.two_classes], ids=word_of)
def test_two_classes_are_not_three(spec: ModelSpec) -> None:
    rows, labels = np.eye(3), np.arange(3)
    with pytest.raises(ValueError, match="2 classes"):
        spec.model(classes=[0, 1, 2]).fit(rows, labels)


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_coefficient_means_what_is_said(name: str) -> None:
    """One feature grows by one: what happens to predictions is what the link says."""
    spec, example = PROBLEMS[name]
    if spec.link is VALUE:
        assert spec.predicts is Predicts.LOCATION
        return
    if spec.link is WAVES:
        assert spec.terms is not None
        return
    # so wide that no row is clipped
    model = fit(made(spec, example, row_norm=100.0), example.rows, example.labels)
    before, after = example.rows[:4], example.rows[:4] + np.eye(3)[1]
    slope = np.atleast_2d(model.coef_)[:, 1]
    if spec.link is IDENTITY:
        np.testing.assert_allclose(model.predict(after) - model.predict(before), slope[0])
    elif spec.link is LOG:
        np.testing.assert_allclose(model.predict(after) / model.predict(before), np.exp(slope[0]))
    elif spec.link is LOGIT:
        # of the last class against the first
        odds = [p[:, -1] / p[:, 0] for p in map(model.predict_proba, (before, after))]
        difference = slope[-1] - (slope[0] if len(slope) > 1 else 0.0)
        np.testing.assert_allclose(odds[1] / odds[0], np.exp(difference), rtol=1e-6)
    else:
        assert spec.link is MARGIN
        scores = [model.decision_function(rows) for rows in (before, after)]
        np.testing.assert_allclose(scores[1] - scores[0], slope[0])
        assert not hasattr(model, "predict_proba"), "then there are odds to speak of"


@pytest.mark.parametrize("spec", [spec for spec in MODELS if spec.is_offered], ids=word_of)
def test_a_score_prefers_the_model_to_a_constant(spec: ModelSpec) -> None:
    example = spec.examples()[0]
    assert spec.score is not None
    model = fit(made(spec, example, epsilon=np.inf, row_norm=100.0), example.rows, example.labels)
    good = spec.score.of(model, example.rows, example.labels)
    assert good > 0.02
    assert spec.score.of(model, example.rows[::-1], example.labels) < good
