"""A table model is an estimator of scikit-learn's: scored, cross-validated, searched."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.model_selection import GridSearchCV, cross_val_score

from tacit.linear_model import LinearRegression, LogisticRegression
from tacit.pipeline import PrivatePipeline
from tacit.schema import Category, ClassTarget, Number, NumberTarget, Schema, TableError
from tacit.table_model import TableModel

RNG = np.random.default_rng(0)
AGE = RNG.uniform(0, 100, 3000)
FRAME = pd.DataFrame({"age": AGE, "sex": RNG.choice(["f", "m"], 3000), "noted": "nothing"})
ILL = pd.Series(np.where(AGE > 50, "yes", "no"))
COLUMNS = (Number("age", 0, 100), Category("sex", ("f", "m")))


def classifier() -> PrivatePipeline:
    return TableModel(Schema(COLUMNS, ClassTarget("ill", ("no", "yes"))), LogisticRegression(5.0))


def regressor() -> PrivatePipeline:
    return TableModel(Schema(COLUMNS, NumberTarget("cost", 0, 100)), LinearRegression(5.0))


def test_it_is_what_its_estimator_is() -> None:
    assert is_classifier(classifier())
    assert is_regressor(regressor())
    assert not is_classifier(regressor())


@pytest.mark.parametrize(
    "make",
    [
        lambda: FRAME,
        lambda: pl.DataFrame(FRAME.to_dict("list")),
        lambda: pa.table(FRAME.to_dict("list")),
        lambda: FRAME.to_dict("list"),
    ],
    ids=["pandas", "polars", "arrow", "dictionary"],
)
def test_the_target_may_come_beside_the_table(make: Any) -> None:
    table = make()
    model = classifier().fit(table, ILL)
    assert model.score(table, ILL) > 0.9
    assert model.score(FRAME.assign(ill=ILL)) == model.score(table, ILL.tolist())


def test_records_without_a_target_are_not_scored() -> None:
    model = classifier().fit(FRAME, ILL)
    some = ILL.where(np.arange(3000) % 2 == 0, None)
    assert model.score(FRAME, some) == model.score(FRAME[::2], ILL[::2])


def test_cross_validation_and_search() -> None:
    assert cross_val_score(classifier(), FRAME, ILL, cv=3).min() > 0.9
    assert cross_val_score(regressor(), FRAME, FRAME["age"], cv=3).min() > 0.5
    search = GridSearchCV(classifier(), {"estimator__epsilon": [0.1, 5.0]}, cv=2)
    search.fit(FRAME, ILL)
    assert search.best_estimator_.score(FRAME, ILL) > 0.9
    assert (
        clone(search.best_estimator_)["estimator"].epsilon
        == search.best_params_["estimator__epsilon"]
    )


def test_a_missing_column_or_a_short_target_is_refused() -> None:
    with pytest.raises(TableError, match="'sex'"):
        classifier().fit(FRAME[["age"]], ILL)
    with pytest.raises(TableError, match="different lengths"):
        classifier().fit(FRAME, ILL[:-1])
