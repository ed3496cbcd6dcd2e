"""What is public: facts that must be declared, and what a fitted estimator may keep."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from tacit.linear_model import (
    LinearRegression,
    LinearSVC,
    LogisticRegression,
    QuantileRegressor,
)
from tacit.location import GeometricMedian, Mean, Median
from tacit.privacy import Relation
from tests.estimators.helpers import (
    CLASSES,
    LABELS,
    RANGE,
    Exploding,
    X,
    Y,
)


@pytest.mark.parametrize(
    ("estimator", "words"),
    [
        (LogisticRegression(), "classes is not declared"),
        (LogisticRegression(epsilon=0.0, classes=[0, 1]), "epsilon must be above 0"),
        (LogisticRegression(epsilon=math.nan, classes=[0, 1]), "NaN"),
        (LogisticRegression(delta=1.0, classes=[0, 1]), "delta"),
        (LogisticRegression(relation="swap", classes=[0, 1]), "add_remove"),
        (LinearSVC(), "classes is not declared"),
        (LinearRegression(), "label_range is not declared"),
        (QuantileRegressor(epsilon=-1.0, label_range=(0, 1)), "above 0"),
        (Mean(row_norm=0.0), "row_norm"),
        (GeometricMedian(row_norm=-1.0), "row_norm"),
        (Median(quantile=1.0), "level"),
    ],
)
def test_missing_facts_are_refused_before_the_table_is_read(estimator: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        estimator.fit(Exploding(), np.arange(5))


def test_number_of_records_is_a_public_fact_under_replacement() -> None:
    model = LogisticRegression(relation=Relation.REPLACE, row_norm=3.0)
    with pytest.raises(ValueError, match="n_records"):
        model.fit(X, LABELS)
    fitted = model.set_params(n_records="infer").fit(X, LABELS)
    assert "number of records" in fitted.privacy_.statement()
    assert model.set_params(n_records=400).fit(X, LABELS).privacy_.assumptions == ()


def test_typed_labels_declare_their_classes() -> None:
    import pandas as pd
    import polars as pl

    words = np.where(LABELS, "yes", "no")
    for labels in (
        LABELS,
        pd.Series(LABELS).astype("boolean"),
        pl.Series(LABELS),
        pl.Series(words, dtype=pl.Enum(["no", "yes"])),
    ):
        model = LogisticRegression(row_norm=3.0).fit(X, labels)
        assert len(model.classes_) == 2
        assert model.privacy_.assumptions == ()
    inferred = LogisticRegression(row_norm=3.0, classes="infer").fit(X, words)
    assert "list of classes" in inferred.privacy_.statement()


def test_a_class_that_does_not_occur_is_kept_and_an_unknown_one_does_not_count() -> None:
    model = LogisticRegression(10.0, classes=[0, 1, 2, 7], row_norm=3.0).fit(X, CLASSES)
    assert model.coef_.shape == (4, 4)
    stray = np.append(CLASSES, 99)
    more = np.vstack([X, 1e9 * np.ones(4)])
    quiet = LogisticRegression(math.inf, classes=[0, 1, 2], row_norm=3.0, regularization=1.0)
    assert np.allclose(
        clone(quiet).fit(X, CLASSES).coef_, clone(quiet).fit(more, stray).coef_, atol=1e-6
    )
    words = np.array(["no", "yes", "yesterday"] * 100, dtype=object)
    declared = LogisticRegression(math.inf, classes=np.array(["no", "yes"]), regularization=1.0)
    kept = words != "yesterday"
    assert np.allclose(
        clone(declared).fit(X[:300], words).coef_,
        clone(declared).fit(X[:300][kept], words[kept]).coef_,
    )
    with pytest.raises(ValueError, match="labels' own type"):
        LogisticRegression(classes=[0, 1]).fit(X, np.where(LABELS, "a", "b"))


ALLOWED = {
    "coef_",
    "intercept_",
    "classes_",
    "n_features_in_",
    "feature_names_in_",
    "privacy_",
    "plan_",
    "row_norm_",
    "label_range_",
    "residual_bound_",  # follows from the plan and the released count
    "location_",
}


@pytest.mark.parametrize(
    ("model", "target"),
    [
        (LogisticRegression(1.0, row_norm=3.0), LABELS),
        (LinearSVC(1.0, row_norm=3.0), LABELS),
        (LinearRegression(1.0, row_norm=3.0, label_range=RANGE), Y),
        (Mean(1.0, row_norm=3.0), None),
        (Median(1.0, bounds=(-3, 3)), None),
        (GeometricMedian(1.0, row_norm=3.0), None),
    ],
    ids=lambda m: type(m).__name__,
)
def test_only_released_or_public_attributes_are_kept(model: Any, target: Any) -> None:
    model = clone(model).fit(X, target)
    kept = {name for name in vars(model) if name not in model.get_params()}
    assert kept <= ALLOWED
    for value in vars(model.plan_).values() if getattr(model, "plan_", None) else ():
        assert not isinstance(value, np.ndarray)


def test_a_seed_repeats_the_fit_and_voids_the_guarantee() -> None:
    models = [LogisticRegression(1.0, row_norm=3.0, random_state=4).fit(X, LABELS) for _ in "ab"]
    assert np.array_equal(models[0].coef_, models[1].coef_)
    assert models[0].privacy_.epsilon(1e-6) == math.inf
    assert "seeded" in models[0].privacy_.statement()
    free = [LogisticRegression(1.0, row_norm=3.0).fit(X, LABELS) for _ in "ab"]
    assert not np.array_equal(free[0].coef_, free[1].coef_)
    assert free[0].privacy_.epsilon(1e-6) <= 1.0
