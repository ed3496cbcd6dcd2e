import gzip

import numpy as np
import pytest

from tacit.datasets import kddcup99, load_kddcup99
from tacit.datasets.base import encode, find_file
from tests.datasets.helpers import check_only_own_record, needs

FILE = "kddcup99/kddcup.data_10_percent.gz"
pytestmark = needs(FILE)


@pytest.fixture(scope="module")
def data():
    return load_kddcup99()


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """The first 20,000 records."""
    head = tmp_path_factory.mktemp("kddcup99") / "head.gz"
    with gzip.open(find_file(FILE), "rt") as lines, gzip.open(head, "wt") as out:
        out.writelines(line for line, _ in zip(lines, range(20_000), strict=False))
    return kddcup99.read_table(head)


@pytest.mark.slow  # half a million records
def test_shapes_and_classes(data):
    assert data.train_rows.shape == (395_216, 67)
    assert data.test_rows.shape == (98_805, 67)
    assert len(data.feature_names) == 67
    assert data.train_labels.dtype == np.bool_
    counts = np.bincount(data.train_labels) + np.bincount(data.test_labels)
    assert counts.tolist() == [97_278, 494_021 - 97_278]


@pytest.mark.slow  # half a million records
def test_bounds(data):
    for rows in (data.train_rows, data.test_rows):
        assert rows.dtype == np.float64
        assert rows.min() == 0.0
        assert rows.max() == 1.0


def test_a_row_depends_on_its_own_record_only(table):
    check_only_own_record(lambda some: encode(some, kddcup99.SCHEMA), table)


def test_no_text_was_cut(table):
    for name in ("protocol_type", "service", "flag", "label"):
        longest = np.char.str_len(table[name]).max()
        assert longest <= len("buffer_overflow.") == table.dtype[name].itemsize // 4


def test_protocol_and_flag_are_complete(table):
    for feature in kddcup99.SCHEMA[:2]:
        assert np.all(feature.encode(table[feature.name]).sum(axis=1) == 1.0)
