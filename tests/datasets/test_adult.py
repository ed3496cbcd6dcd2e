import numpy as np
import pytest

from tacit.datasets import adult, load_adult
from tacit.datasets.base import encode, find_file
from tests.datasets.helpers import check_only_own_record, needs

pytestmark = needs("adult/adult.data.gz")


@pytest.fixture(scope="module", params=["ROUND", "PLAIN"])
def schema(request):
    return getattr(adult, request.param)


@pytest.fixture(scope="module")
def data(schema):
    return load_adult(schema=schema)


@pytest.fixture(scope="module")
def table():
    return adult.read_table(find_file("adult/adult.test.gz"))


def test_shapes_and_classes(data, schema):
    d = {adult.ROUND: 96, adult.PLAIN: 105}[schema]
    assert data.train_rows.shape == (32_561, d)
    assert data.test_rows.shape == (16_281, d)
    assert len(data.feature_names) == d
    assert data.train_rows.dtype == np.float64
    assert data.train_labels.dtype == np.bool_
    assert np.bincount(data.train_labels).tolist() == [24_720, 7_841]
    assert np.bincount(data.test_labels).tolist() == [12_435, 3_846]


def test_bounds(data):
    for rows in (data.train_rows, data.test_rows):
        assert rows.min() == 0.0
        assert rows.max() == 1.0
        assert np.linalg.norm(rows, axis=1).max() <= np.sqrt(14)


def test_a_row_depends_on_its_own_record_only(schema, table):
    check_only_own_record(lambda some: encode(some, schema), table)


def test_unknown_values(table):
    # README.md of the data: 1,221 test rows have a "?".
    columns = ("workclass", "occupation", "native-country")
    unknown = np.any([table[name] == "?" for name in columns], axis=0)
    assert unknown.sum() == 1_221
    ones = encode(table, adult.ROUND).sum(axis=1)
    assert np.all(ones[~unknown & (table["native-country"] == "United-States")] == 12.0)
    assert np.all(ones[unknown] < 12.0)


def test_every_category_is_known(table):
    for feature in adult.PLAIN[6:]:
        assert set(table[feature.name]) - {"?"} <= set(feature.values)  # type: ignore[attr-defined]


def test_a_known_row(table):
    # The first record of adult.test: 25, Private, ..., 40 hours, United-States, <=50K.
    row = encode(table[:1], adult.ROUND)[0]
    names = [n for n, v in zip(load_adult().feature_names, row, strict=True) if v == 1.0]
    assert names == [
        "25 <= age < 30",
        "40 <= hours-per-week < 50",
        "capital-gain < 1",
        "capital-loss < 1",
        "workclass=Private",
        "education=11th",
        "marital-status=Never-married",
        "occupation=Machine-op-inspct",
        "relationship=Own-child",
        "race=Black",
        "sex=Male",
        "native-country=United-States",
    ]
