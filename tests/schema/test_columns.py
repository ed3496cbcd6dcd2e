import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.schema import (
    Boolean,
    Category,
    Fill,
    Ignored,
    Indicator,
    Intervals,
    Number,
    SchemaError,
)
from tests.schema.helpers import SCHEMA, WORDS

NUMBERS = st.floats(-1e300, 1e300)
COLUMNS = st.one_of(
    st.builds(
        lambda ends, log, missing: Number("x", *ends, log=log, missing=missing),
        st.tuples(st.floats(1e-300, 1e10), st.floats(2e10, 1e300)),
        st.booleans(),
        st.sampled_from([Indicator(), Fill(1.5e10)]),
    ),
    st.sampled_from(SCHEMA.columns),
)


def test_a_number_is_clipped_and_scaled():
    rows = Number("x", -10, 10).encode(np.array([-11.0, -10.0, 0.0, 5.0, 10.0, 1e308]))
    assert rows[:, 0].tolist() == [-0.5, -0.5, 0.0, 0.25, 0.5, 0.5]


def test_log_scales():
    assert Number("x", 0, 999, log=True).encode(np.array([9.0]))[0, 0] == pytest.approx(-1 / 6)
    assert Number("x", 1e-6, 1, log=True).encode(np.array([1e-3, 0.0]))[:, 0].tolist() == [
        pytest.approx(0.0),
        -0.5,
    ]


@pytest.mark.parametrize("absent", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_missing(absent):
    values = np.array([absent])
    assert Number("x", 0, 4).encode(values).tolist() == [[0.0]]
    assert Number("x", 0, 4, missing=Fill(1)).encode(values).tolist() == [[-0.25]]
    assert Number("x", 0, 4, missing=Indicator()).encode(values).tolist() == [[0.0, 1.0]]
    assert Intervals("x", (1, 2)).encode(values).tolist() == [[0.0, 0.0, 0.0]]
    assert Intervals("x", (1, 2), Fill(1)).encode(values).tolist() == [[0.0, 1.0, 0.0]]
    assert Intervals("x", (1,), Indicator()).encode(values).tolist() == [[0.0, 0.0, 1.0]]


def test_unknown_and_missing_words_differ():
    words = np.array(["b", "c", "", "?"])
    indicated = Category("x", ("a", "b"), Indicator()).encode(words)
    assert indicated.tolist() == [[0, 1, 0], [0, 0, 0], [0, 0, 1], [0, 0, 1]]
    filled = Category("x", ("a", "b"), Fill("a")).encode(words)
    assert filled.tolist() == [[0, 1], [0, 0], [1, 0], [1, 0]]
    assert Category("x", ("a", "?")).encode(words)[3].tolist() == [0, 1]  # declared, so no gap


def test_booleans():
    words = np.array(["yes", "No", "1", "FALSE", "maybe"])
    assert Boolean("x").encode(words)[:, 0].tolist() == [0.5, -0.5, 0.5, -0.5, 0]
    assert Boolean("x", ("oui",), ("non",)).encode(np.array(["oui", "yes"]))[:, 0].tolist() == [
        0.5,
        0.0,
    ]
    assert Boolean("x", missing=Fill(True)).encode(words)[4].tolist() == [0.5]
    assert Boolean("x").encode(np.array([True, False]))[:, 0].tolist() == [0.5, -0.5]


@given(COLUMNS, st.lists(st.one_of(WORDS, NUMBERS, st.none(), st.booleans()), max_size=20))
def test_the_norm_of_features_is_at_most_the_largest(column, values):
    array = np.empty(len(values), dtype=object)
    array[:] = values
    rows = column.encode(array)
    assert rows.shape == (len(values), len(column.names()))
    assert np.all(np.abs(rows) <= column.largest)
    low, high = np.array(column.ranges()).reshape(-1, 2).T
    assert np.all((low <= rows) & (rows <= high))
    assert np.all((rows**2).sum(axis=1) <= column.largest**2)


@given(COLUMNS, st.lists(st.one_of(WORDS, NUMBERS, st.none(), st.booleans()), min_size=1))
def test_a_row_depends_on_its_own_value_only(column, values):
    array = np.empty(len(values), dtype=object)
    array[:] = values
    alone = np.vstack([column.encode(array[i : i + 1]) for i in range(len(values))])
    assert np.array_equal(column.encode(array), alone)


def test_the_greatest_norm_is_reached():
    reached = {
        "age": ["0", "100"],
        "size": [None],
        "hours": ["0", None],
        "town": ["Oslo", ""],
        "smoker": ["yes", "no"],
    }
    for column in SCHEMA.encoded:
        rows = column.encode(np.array(reached[column.name], dtype=object))
        assert np.all(np.linalg.norm(rows, axis=1) == column.largest), column.name


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Number("age", 90, 17), "'age'.*lower must be below upper"),
        (lambda: Number("age", 3, 3), "'age'.*lower must be below upper"),
        (lambda: Number("age", float("nan"), 3), "'age'.*lower must be a number"),
        (lambda: Number("age", 0, float("inf")), "'age'.*upper must be a number"),
        (lambda: Number("age", 0, 10**400), "'age'.*upper must be a number"),
        (lambda: Number("age", "0", 1), "'age'.*lower must be a number"),
        (lambda: Number("age", False, 1), "'age'.*lower must be a number"),
        (lambda: Number("age", -1, 1, log=True), "'age'.*lower must be 0 or above"),
        (lambda: Number("age", 1e5, np.nextafter(1e5, 2e5), log=True), "'age'.*logarithmic"),
        (lambda: Number("age", 0, 1, log=1), "'age'.*log must be true or false"),
        (lambda: Number("age", 0, 1, missing=Fill(2)), "'age'.*missing.*outside"),
        (lambda: Number("age", 0, 1, missing="mean"), "'age'.*missing must be"),
        (lambda: Number("", 0, 1), "a column is named ''"),
        (lambda: Number(" age", 0, 1), "a column is named ' age'"),
        (lambda: Number("\ud800", 0, 1), "a column is named"),
        (lambda: Intervals("age", ()), "'age'.*cuts must be"),
        (lambda: Intervals("age", (2, 1)), "'age'.*cuts must be"),
        (lambda: Intervals("age", 3), "'age'.*cuts must be a list"),
        (lambda: Category("town", ()), "'town'.*values is empty"),
        (lambda: Category("town", ("a", "a")), "'town'.*'a' twice"),
        (lambda: Category("town", (1, "1")), "'town'.*'1' twice"),
        (lambda: Category("town", (" a",)), "'town'.*values holds ' a'"),
        (lambda: Category("town", ("",)), "'town'.*values holds ''"),
        (lambda: Category("town", ([],)), r"'town'.*values holds \[\]"),
        (lambda: Category("town", "ab"), "'town'.*values must be a list"),
        (lambda: Category("town", ("a",), Fill("b")), "'town'.*not among its values"),
        (lambda: Boolean("ill", ("no",)), "'ill'.*'no' is in both"),
        (lambda: Boolean("ill", missing=Fill("yes")), "'ill'.*missing must be true or false"),
        (lambda: Ignored(3), "a column is named 3"),
    ],
)
def test_impossible_facts_are_refused(make, message):
    with pytest.raises(SchemaError, match=message):
        make()


@pytest.mark.parametrize(
    ("name", "shown"), [("diag_1", "diag_1"), ("body mass", '"body mass"'), ("a<b", '"a<b"')]
)
def test_an_interval_is_named_by_both_ends(name, shown):
    assert Intervals(name, (280, 390.5, 460)).names() == [
        f"{shown} < 280",
        f"280 <= {shown} < 390.5",
        f"390.5 <= {shown} < 460",
        f"{shown} >= 460",
    ]
    assert Intervals(name, (1,)).names() == [f"{shown} < 1", f"{shown} >= 1"]
