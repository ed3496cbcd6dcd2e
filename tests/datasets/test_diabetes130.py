import gzip

import diabetes130
import numpy as np
import pytest
from diabetes130 import load_diabetes130

from tacit.datasets.base import encode, feature_names, find_file
from tests.datasets.helpers import check_only_own_record, needs

FILE = "diabetes130/diabetic_data.csv.gz"
pytestmark = needs(FILE)


@pytest.fixture(scope="module")
def data():
    return load_diabetes130()


@pytest.fixture(scope="module")
def head(tmp_path_factory):
    """A file with the first 5,000 records."""
    path = tmp_path_factory.mktemp("diabetes130") / "head.gz"
    with gzip.open(find_file(FILE), "rt") as lines, gzip.open(path, "wt") as out:
        out.writelines(line for line, _ in zip(lines, range(5_001), strict=False))
    return path


@pytest.fixture(scope="module")
def table(head):
    return diabetes130.read_table(head)


def test_shapes_and_classes(data):
    assert len(data.train_rows) + len(data.test_rows) == 101_766
    assert data.train_rows.shape[1] == data.test_rows.shape[1] == len(data.feature_names) == 114
    assert data.train_rows.dtype == np.float64
    assert data.train_labels.dtype == np.bool_
    assert data.train_labels.sum() + data.test_labels.sum() == 11_357


def test_nobody_is_on_both_sides(data):
    train, test = np.unique(data.train_unit), np.unique(data.test_unit)
    assert train.size + test.size == 71_518
    assert not np.isin(train, test).any()
    assert len(data.train_unit) == len(data.train_rows)
    assert len(data.test_unit) == len(data.test_rows)
    assert train.size == 71_518 * 80 // 100


def test_the_patient_is_no_feature(table):
    others = table.copy()
    others["patient_nbr"] = 1 + np.arange(len(table))
    schema = diabetes130.SCHEMA
    assert np.array_equal(encode(others, schema), encode(table, schema))
    assert not {feature.name for feature in schema} & {"patient_nbr", "encounter_id"}


def test_the_declared_norm_holds_and_is_reached(data):
    norms = [np.linalg.norm(rows, axis=1).max() for rows in (data.train_rows, data.test_rows)]
    assert max(norms) == diabetes130.ROW_NORM == np.sqrt(23)
    assert set(np.unique(data.train_rows)) == {0.0, 1.0}


def test_a_row_depends_on_its_own_record_only(head, table, tmp_path):
    check_only_own_record(lambda some: encode(some, diabetes130.SCHEMA), table)
    with gzip.open(head, "rt") as lines:
        header, *records = lines.readlines()
    with gzip.open(tmp_path / "some.gz", "wt") as out:
        out.writelines([header, *records[100:200]])
    assert np.array_equal(diabetes130.read_table(tmp_path / "some.gz"), table[100:200])


def test_a_known_row(table):
    # The second record: a girl of 10 to 20, diagnoses 276, 250.01 and 255, back after 30 days.
    row = encode(table[1:2], diabetes130.SCHEMA)[0]
    names = feature_names(diabetes130.SCHEMA)
    assert table[1]["patient_nbr"] == 55_629_189
    assert table[1]["readmitted"] == ">30"
    assert [name for name, value in zip(names, row, strict=True) if value == 1.0] == [
        "race=Caucasian",
        "gender=Female",
        "age=[10-20)",
        "admission_type_id=1",
        "discharge_disposition_id=home",
        "admission_source_id=emergency",
        "3 <= time_in_hospital < 4",
        "40 <= num_lab_procedures < 60",
        "num_procedures < 1",
        "15 <= num_medications < 20",
        "number_outpatient < 1",
        "number_emergency < 1",
        "number_inpatient < 1",
        "diag_1=other",
        "diag_2=diabetes",
        "diag_3=other",
        "number_diagnoses >= 9",
        "insulin=Up",
        "change=Ch",
        "diabetesMed=Yes",
    ]


@pytest.mark.parametrize(
    ("code", "group"),
    [
        ("250", "diabetes"),
        ("250.83", "diabetes"),
        ("249", "other"),
        ("390", "circulatory"),
        ("459", "circulatory"),
        ("785", "circulatory"),
        ("460", "respiratory"),
        ("8", "other"),
        ("V27", "other"),
        ("E885", "other"),
        ("?", "?"),
    ],
)
def test_groups_of_diagnoses(code, group):
    assert diabetes130._diagnosis(code) == group


def test_no_word_of_the_schema_was_cut(table):
    for name in table.dtype.names:
        if table.dtype[name].kind == "U":
            assert np.char.str_len(table[name]).max() < table.dtype[name].itemsize // 4, name
