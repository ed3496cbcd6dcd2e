import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import feather, parquet

from tacit.io.arrow import ArrowValues
from tacit.io.values import ArrayValues, ReadOnce
from tacit.schema import (
    Boolean,
    Category,
    ClassTarget,
    Ignored,
    Indicator,
    Intervals,
    Number,
    NumberTarget,
    Schema,
    SchemaError,
    TableError,
    check_file,
)
from tacit.schema.columns import ColumnCheck
from tests.schema.helpers import HEADER, RECORDS, SCHEMA, WORDS, columns, write_csv

# Of RECORDS with one more, whose label is not declared: records, missing, unreadable, clipped.
MORE = [*RECORDS, ("Ed", "39,5", "NA", "ten", "Rome", "N", "perhaps")]
EXPECTED = {
    "age": (5, 0, 2, 2),
    "size": (5, 2, 0, 1),
    "hours": (5, 1, 1, 0),
    "town": (5, 1, 1, 0),
    "smoker": (5, 1, 1, 0),
    "ill": (5, 0, 1, 0),
}
WRITERS = {
    "x.csv": lambda path: pd.DataFrame(columns(MORE)).to_csv(path, index=False),
    "x.parquet": lambda path: parquet.write_table(pa.table(columns(MORE)), path),
    "x.arrow": lambda path: feather.write_feather(pa.table(columns(MORE)), path),
}


def counts(checks):
    return {c.name: (c.records, c.missing, c.unreadable, c.clipped) for c in checks}


@pytest.mark.parametrize("name", WRITERS)
def test_every_format_has_the_same_counts(tmp_path, name):
    WRITERS[name](tmp_path / name)
    checks = check_file(tmp_path / name, SCHEMA)
    assert counts(checks) == EXPECTED
    assert [check.kind for check in checks][-2:] == ["boolean", "target"]


def test_numbers_as_targets(tmp_path):
    schema = Schema((Ignored("age"),), NumberTarget("size", 1, 1000))
    assert counts(check_file(write_csv(tmp_path / "x.csv"), schema)) == {"size": (4, 1, 0, 1)}
    schema = Schema((Number("size", 1, 2e9),))
    assert counts(check_file(tmp_path / "x.csv", schema)) == {"size": (4, 1, 0, 0)}


def test_numbers_that_are_stored_as_such(tmp_path):
    table = pa.table({"age": [39.0, None, np.nan, 130.0], "town": [1, 2, None, 3]})
    parquet.write_table(table, tmp_path / "x.parquet")
    schema = Schema((Number("age", 0, 100), Category("town", (1, 2))))
    found = counts(check_file(tmp_path / "x.parquet", schema))
    assert found == {"age": (4, 2, 0, 1), "town": (4, 1, 1, 0)}


def test_many_batches_add_up(tmp_path):
    shares: list[float] = []
    path = tmp_path / "x.csv"
    pd.DataFrame(columns(MORE * 5000)).to_csv(path, index=False)
    checks = check_file(path, SCHEMA, progress=shares.append)
    assert counts(checks) == {
        n: tuple(5000 * c for c in counted) for n, counted in EXPECTED.items()
    }
    assert len(shares) > 2
    assert shares == sorted(shares)
    assert shares[-1] == 1.0


def test_a_table_without_records(tmp_path):
    checks = check_file(write_csv(tmp_path / "x.csv", []), SCHEMA)
    assert counts(checks) == dict.fromkeys(EXPECTED, (0, 0, 0, 0))


def test_what_cannot_be_checked_is_refused(tmp_path):
    path = write_csv(tmp_path / "x.csv")
    with pytest.raises(SchemaError, match="nothing to check"):
        check_file(path, Schema((Ignored("age"),)))
    with pytest.raises(TableError, match=r"no column named 'Age', which the schema declares"):
        check_file(path, Schema((Number("Age", 0, 1),)))
    with pytest.raises(TableError, match="delimiter must be"):
        check_file(path, SCHEMA, delimiter="")


COLUMNS = [
    Number("x", 0, 10, missing=Indicator()),
    Intervals("x", (0, 5), missing=Indicator()),
    Category("x", ("Oslo", "1", "NA"), missing=Indicator()),
    Boolean("x", missing=Indicator()),
]


@pytest.mark.parametrize("column", COLUMNS, ids=lambda column: column.kind)
@given(st.lists(st.one_of(WORDS, st.none()), max_size=12))
def test_what_is_counted_is_what_the_features_show(column, values):
    """One place decides what is readable: no feature disagrees with the counts."""
    array = pa.array(values, pa.string())
    check = column.check(ArrowValues(array, "x"))
    features = column.encode(np.array(values, dtype=object))
    absent = int(features[:, -1].sum())
    assert check.records == len(values)
    assert check.missing + check.unreadable + check.clipped <= len(values)
    if column.kind == "category":  # an unknown word is not missing there
        assert check.missing == absent
        assert check.unreadable == len(values) - int(features.sum())
    else:
        assert check.missing + check.unreadable == absent
    objects = np.empty(len(values), dtype=object)
    objects[:] = values
    assert check == column.check(ArrayValues(objects))
    assert check == column.check(ReadOnce(ArrayValues(objects)))


@pytest.mark.parametrize("kind", [pa.string_view(), pa.large_string(), pa.binary_view()])
def test_text_of_every_type_can_be_chosen_from(kind):
    array = pa.array(["3", "x", None]).cast(kind)
    check = Number("x", 0, 9).check(ArrowValues(array, "x"))
    assert check == ColumnCheck("x", "number", 3, 1, 1)
    check = Number("x", 0, 9).check(ArrowValues(array.cast(pa.string()).dictionary_encode(), "x"))
    assert check == ColumnCheck("x", "number", 3, 1, 1)


def test_reading_once_is_reading():
    class Counting(ArrayValues):
        asked = 0

        def codes(self, place):
            Counting.asked += 1
            return super().codes(place)

    values = ReadOnce(Counting(np.array(["b", "x", "?"])))
    assert len(values) == 3
    for _ in range(2):
        codes = values.codes({"a": 0, "b": 1})
        assert codes.tolist() == [1, -1, -2]
        codes[:] = 0  # whoever asks may change what it got
        numbers = values.numbers()
        assert np.isnan(numbers).all()
        numbers[:] = 0.0
    assert Counting.asked == 1
    assert values.codes({"x": 5}).tolist() == [-1, 5, -2]


def test_a_check_is_of_classes_as_a_fit_reads_them():
    target = ClassTarget("ill", (0, 1))
    values = ArrayValues(np.array(["1", 0, 1.0, "1.0", "", None], dtype=object))
    _, kept = target.encode(values)
    check = target.check(values)
    assert (check.missing, check.unreadable) == (2, 1)
    assert check.records - check.missing - check.unreadable == kept.sum()


def test_frames_with_other_columns_are_read_by_name(tmp_path):
    frame = pd.DataFrame(columns(MORE, HEADER))[list(reversed(HEADER))]
    frame.to_csv(tmp_path / "x.csv", index=False)
    assert counts(check_file(tmp_path / "x.csv", SCHEMA)) == EXPECTED
