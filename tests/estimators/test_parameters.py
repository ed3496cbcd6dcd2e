"""What is public says how it came to be so, and what was not declared is said."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from tacit.estimators.parameters import (
    Fact,
    Provenance,
    classes_of,
    codes_of,
    label_range_of,
    n_records_of,
)
from tacit.linear_model import LinearRegression, LinearSVC, LogisticRegression
from tacit.local import LocalLogisticRegression
from tacit.location import Mean
from tacit.privacy import Relation

RNG = np.random.default_rng(0)
ROWS = RNG.standard_normal((200, 2))
WORDS = np.where(ROWS[:, 0] > 0, "yes", "no")
CLASSIFIERS = [LogisticRegression, LinearSVC, LocalLogisticRegression]


@pytest.mark.parametrize("estimator", CLASSIFIERS)
def test_the_pool_of_a_polars_categorical_is_no_list_of_classes(estimator: Any) -> None:
    # Categories are a pool of the whole process: strings of unrelated columns are among them.
    diagnoses = pl.Series("diagnosis", ["HIV positive", "gout"], dtype=pl.Categorical)
    labels = pl.Series(WORDS, dtype=pl.Categorical)
    with pytest.raises(ValueError, match=r"Categorical.*Enum") as refusal:
        estimator().fit(ROWS, labels)
    assert "HIV" not in str(refusal.value)
    model = estimator(classes=["no", "yes"]).fit(ROWS, labels)
    assert model.classes_.tolist() == ["no", "yes"]
    assert len(diagnoses) == 2  # alive until here, and so is the pool


def test_categories_that_pandas_may_have_made_from_the_data_are_said() -> None:
    labels = pd.Series(WORDS).astype("category")
    model = LogisticRegression().fit(ROWS, labels)
    assert model.privacy_.assumptions == (
        "the categories of the labels' type, which came with the data, do not have to be protected",
    )
    more = pd.Series([*WORDS, "perhaps"]).astype("category")
    other = LogisticRegression().fit(np.vstack([ROWS, [0.0, 0.0]]), more)
    assert "categories of the labels' type" in other.privacy_.statement()


@pytest.mark.parametrize(
    "labels",
    [
        WORDS == "yes",
        pd.Series(WORDS == "yes"),
        pd.Series(WORDS == "yes").astype("boolean"),
        pd.Series(WORDS == "yes").astype("bool[pyarrow]"),
        pl.Series(WORDS == "yes"),
        pl.Series(WORDS, dtype=pl.Enum(["no", "yes"])),
    ],
    ids=["numpy", "pandas", "nullable", "arrow", "polars", "enum"],
)
def test_types_that_cannot_come_from_the_data_need_no_sentence(labels: Any) -> None:
    fact = classes_of(None, labels)
    assert fact.provenance is Provenance.TYPED
    model = LogisticRegression(row_norm=3.0).fit(ROWS, labels)
    assert model.privacy_.assumptions == ()
    assert model.score(ROWS, labels) > 0.5


@pytest.mark.parametrize(
    "labels", [WORDS, WORDS.tolist(), pd.Series(WORDS), pl.Series(WORDS), np.arange(200) % 2]
)
def test_other_labels_need_a_declaration(labels: Any) -> None:
    with pytest.raises(ValueError, match=r"classes=\[\.\.\.\]"):
        classes_of(None, labels)


def test_whatever_is_inferred_adds_its_sentence() -> None:
    model = LinearRegression(label_range="infer", n_records="infer").fit(
        pd.DataFrame(ROWS, columns=["a", "b"]), ROWS[:, 0]
    )
    said = model.privacy_.statement()
    for what in ("range of the labels", "number of records", "names of the columns"):
        assert what in said
    assert LinearRegression(label_range=(-1, 1)).fit(ROWS, ROWS[:, 0]).privacy_.assumptions == ()


def test_names_that_came_with_the_table_are_said() -> None:
    frame = pd.DataFrame(ROWS, columns=["a", "b"])
    for model in (Mean().fit(frame), LocalLogisticRegression().fit(frame, WORDS == "yes")):
        assert "names of the columns, which came with the data" in model.privacy_.statement()
    assert "names" not in Mean().fit(ROWS).privacy_.statement()


def test_declared_facts_are_silent() -> None:
    assert classes_of(["b", "a"], None).assumptions == ()
    assert label_range_of((0, 1)).assumptions == ()
    assert n_records_of(5, 9, Relation.REPLACE) == Fact(5, "the number of records")


def test_every_provenance_but_two_has_its_sentence() -> None:
    silent = {Provenance.DECLARED, Provenance.TYPED}
    for provenance in Provenance:
        said = Fact(1, "the moon", provenance).assumptions
        assert bool(said) == (provenance not in silent)
        assert all("the moon" in sentence for sentence in said)


def test_one_odd_label_does_not_change_the_others() -> None:
    # A list with one word among its numbers would become words altogether in NumPy.
    labels: list[Any] = [0, 1] * 100
    odd: list[Any] = [*labels[:-1], "HIV positive"]
    for value in (odd, [*labels[:-1], None.__class__], [*labels[:-1], [1]], [*labels[:-1], 0.5]):
        model = LogisticRegression(float("inf"), classes=[0, 1], regularization=1.0)
        assert np.allclose(
            model.fit(ROWS, value).coef_,
            LogisticRegression(float("inf"), classes=[0, 1], regularization=1.0)
            .fit(ROWS[:-1], labels[:-1])
            .coef_,
            atol=1e-6,
        )
    codes, known = codes_of(np.array([{}, 1, "x"], dtype=object), np.array([0, 1]))
    assert codes[known].tolist() == [1]
