"""Tables: every kind gives the same fit; rows beyond their norm are scaled alike."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from tacit.linear_model import (
    LogisticRegression,
)
from tacit.location import Mean
from tests.estimators.helpers import (
    LABELS,
    X,
)


def test_every_kind_of_table_gives_the_same_fit() -> None:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    names = ["a", "b", "c", "d"]
    frame = pd.DataFrame(X, columns=names)
    quiet = LogisticRegression(math.inf, row_norm=1.5, regularization=1.0)
    base = clone(quiet).fit(X, LABELS)
    tables: list[Any] = [
        sparse.csr_array(X),
        sparse.csc_matrix(X),
        frame,
        pl.DataFrame(frame.to_dict("list")),
        pa.table(frame.to_dict("list")),
        np.asfortranarray(X),
        X.tolist(),
    ]
    for table in tables:
        model = clone(quiet).fit(table, LABELS)
        np.testing.assert_allclose(model.coef_, base.coef_, atol=1e-7)
        np.testing.assert_allclose(model.predict_proba(table), base.predict_proba(X), atol=1e-7)
    np.testing.assert_allclose(
        clone(quiet).fit(X.astype(np.float32), LABELS).coef_, base.coef_, atol=1e-4
    )
    for table in (frame, pl.DataFrame(frame.to_dict("list")), pa.table(frame.to_dict("list"))):
        assert list(clone(quiet).fit(table, LABELS).feature_names_in_) == names


def test_rows_beyond_the_norm_are_scaled_in_fit_and_predict() -> None:
    quiet = LogisticRegression(math.inf, row_norm=1.0, regularization=1.0)
    short = X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1.0)
    a, b = clone(quiet).fit(X, LABELS), clone(quiet).fit(short, LABELS)
    np.testing.assert_allclose(a.coef_, b.coef_, atol=1e-6)
    np.testing.assert_allclose(a.predict_proba(X), b.predict_proba(short), atol=1e-6)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_not_a_number_is_refused(bad: float) -> None:
    broken = X.copy()
    broken[3, 1] = bad
    for model in (LogisticRegression(), Mean()):
        with pytest.raises(ValueError, match=r"NaN|infinity"):
            model.fit(broken, LABELS)
