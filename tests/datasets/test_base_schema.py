import numpy as np
import pytest

from tacit.datasets import adult, kddcup99
from tacit.datasets.base import Intervals, LogScaled, OneHot, Scaled, encode, feature_names
from tests.datasets.helpers import check_only_own_record

SCHEMA = (
    OneHot("kind", ("a", "b")),
    Intervals("number", (-1.0, 0.5)),
    Scaled("number", -2.0, 2.0),
    LogScaled("number", 9.0),
)


@pytest.fixture
def table():
    generator = np.random.default_rng(3)
    table = np.zeros(500, dtype=[("kind", "U4"), ("number", "f8")])
    table["kind"] = generator.choice(["a", "b", "?", "aa"], 500)
    table["number"] = 3 * generator.standard_normal(500)
    return table


def test_a_row_depends_on_its_own_record_only(table):
    check_only_own_record(lambda some: encode(some, SCHEMA), table)


def test_all_features_lie_between_0_and_1(table):
    rows = encode(table, SCHEMA)
    assert rows.min() == 0.0
    assert rows.max() == 1.0
    assert rows.shape == (500, len(feature_names(SCHEMA)))


def test_an_unknown_category_is_zeros(table):
    rows = OneHot("kind", ("a", "b")).encode(table["kind"])
    assert np.array_equal(rows.sum(axis=1), np.isin(table["kind"], ["a", "b"]))


def test_a_value_lies_in_one_interval(table):
    feature = Intervals("number", (-1.0, 0.5))
    assert np.all(feature.encode(table["number"]).sum(axis=1) == 1.0)
    assert feature.encode(np.array([-1.0, 0.5])).argmax(axis=1).tolist() == [1, 2]
    assert feature.names() == ["number < -1", "-1 <= number < 0.5", "number >= 0.5"]


@pytest.mark.parametrize("schema", [adult.ROUND, adult.PLAIN, kddcup99.SCHEMA])
def test_names_are_unique(schema):
    names = feature_names(schema)
    assert len(set(names)) == len(names)
