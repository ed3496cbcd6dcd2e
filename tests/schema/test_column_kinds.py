"""Columns of which less is public, and the schema that leaves them open."""

from __future__ import annotations

import numpy as np
import pytest

from tacit.linear_model import LogisticRegression
from tacit.pipeline import PrivatePipeline
from tacit.schema import (
    ClassTarget,
    Fill,
    Indicator,
    Neutral,
    Number,
    OpenCategory,
    OpenNumber,
    Schema,
    SchemaEncoder,
    SchemaError,
)
from tacit.table_model import TableModel

OPEN = Schema(
    (OpenNumber("age", 0, 1000), OpenCategory("town", 3), Number("n", 0, 1)),
    ClassTarget("ill", ("no", "yes")),
)


@pytest.mark.parametrize(
    "column",
    [
        OpenNumber("x", 0, 10),
        OpenNumber("x", 1, 10, log=True, missing=Indicator()),
        OpenNumber("x", 0, 10, missing=Fill(3)),
        OpenCategory("x", 2),
        OpenCategory("x", 2, ("b", "a"), Indicator()),
        OpenCategory("x", 2, ()),
    ],
)
def test_a_schema_says_what_it_leaves_open_and_is_read_back(column):
    schema = Schema((column,))
    assert Schema.from_dict(schema.to_dict()) == schema
    assert schema.is_open


def test_numbers_are_encoded_by_the_outer_bounds_and_gaps_stay():
    values = np.array([0.0, 10.0, 99.0, np.nan, np.inf])
    rows = OpenNumber("x", 0, 10, missing=Indicator()).encode(values)
    assert rows[:3, 0].tolist() == [-0.5, 0.5, 0.5]
    assert np.isnan(rows[3:, 0]).all()
    assert rows[:, 1].tolist() == [0, 0, 0, 1, 1]
    assert OpenNumber("x", 0, 10, missing=Fill(5)).encode(values)[3, 0] == 0.0


def test_words_have_as_many_features_as_declared_whatever_was_learned():
    for learned in (("Oslo",), (), ("Bergen", "Moss", "Oslo")):
        column = OpenCategory("town", 3, learned)
        rows = column.encode(np.array(["Oslo", "Utsira", ""], dtype=object))
        assert rows.shape == (3, 3) == (3, len(column.names()))
        assert rows[0].sum() == ("Oslo" in learned)
        assert rows[1:].sum() == 0
    assert OpenCategory("town", 3, ("Oslo",)).names() == ["town=Oslo", "town#2", "town#3"]
    assert OpenCategory("town", 3).ranges() == [(0.0, 1.0)] * 3


def test_words_that_nobody_learned_are_refused():
    with pytest.raises(SchemaError, match="PrivatePipeline"):
        OpenCategory("town", 3).encode(np.array(["Oslo"]))


def test_a_schema_is_completed():
    whole = OPEN.with_words({"town": ("Bergen", "Oslo")})
    assert whole.feature_names == ("age", "town=Bergen", "town=Oslo", "town#3", "n")
    assert whole.row_norm == OPEN.row_norm
    assert len(whole.feature_names) == len(OPEN.feature_names)
    assert OPEN.open_words == {"town": 3}
    assert OPEN.open_numbers == ("age",)
    assert not Schema((Number("n", 0, 1),)).is_open


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: OpenCategory("town", 0), "max_values"),
        (lambda: OpenCategory("town", True), "max_values"),
        (lambda: OpenCategory("town", 1, ("a", "b")), "more than max_values"),
        (lambda: OpenCategory("town", 2, ("a", "a")), "twice"),
        (lambda: OpenCategory("town", 2, missing=Fill("a")), "until they are learned"),
        (lambda: OpenNumber("age", 1, 1), "lower"),
        (lambda: Schema.from_dict({"columns": {"t": {"kind": "open_category"}}}), "max_values"),
    ],
)
def test_what_is_not_possible_is_refused(make, why):
    with pytest.raises(SchemaError, match=why):
        make()


def test_without_a_private_pipeline_an_open_schema_is_refused_before_reading():
    class Untouchable(dict[str, object]):
        def __getitem__(self, name):
            raise AssertionError("the records were read")

    table = Untouchable(age=[1], town=["a"], n=[0], ill=["no"])
    with pytest.raises(SchemaError, match="open"):
        TableModel(OPEN, LogisticRegression()).fit(table)
    with pytest.raises(SchemaError, match="open"):
        TableModel(OPEN, LogisticRegression()).plan()
    steps = [("encode", SchemaEncoder(OPEN)), ("model", LogisticRegression())]
    with pytest.raises(SchemaError, match="open"):
        PrivatePipeline(steps, epsilon=None).fit(table)


def test_missing_is_neutral_unless_said():
    assert OpenNumber("x", 0, 1).missing == OpenCategory("x", 1).missing == Neutral()
