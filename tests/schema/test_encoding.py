import string
import tracemalloc

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from pyarrow import feather, parquet

from tacit.schema import (
    Category,
    ClassTarget,
    Ignored,
    Number,
    NumberTarget,
    Schema,
    SchemaError,
    TableError,
    encode_file,
    encode_table,
)
from tacit.schema.encoding import encode_rows
from tests.schema.helpers import LABELS, RECORDS, ROWS, SCHEMA, columns, write_csv


def write(path, records=RECORDS):
    table = pa.table(columns(records))
    if path.suffix == ".csv":
        write_csv(path, records)
    elif path.suffix == ".parquet":
        parquet.write_table(table, path)
    else:
        feather.write_feather(table, path)
    return path


FORMATS = ["x.csv", "x.parquet", "x.arrow", "x.feather"]


@pytest.mark.parametrize("name", FORMATS)
def test_a_file_gives_the_rows_of_its_table(tmp_path, name):
    strangers = [(*RECORDS[0][:-1], "perhaps"), (*RECORDS[0][:-1], "")]
    records = [*RECORDS[:2], *strangers, *RECORDS[2:]]
    rows, labels = encode_file(write(tmp_path / name, records), SCHEMA)
    assert np.allclose(rows, ROWS)
    assert labels.tolist() == LABELS
    again, labels_again = encode_table(pd.DataFrame(columns(records)), SCHEMA)
    assert np.array_equal(rows, again)
    assert np.array_equal(labels, labels_again)
    assert np.array_equal(rows, encode_rows(columns(), SCHEMA.encoded))


def test_types_of_rows_and_labels(tmp_path):
    rows, _ = encode_file(write(tmp_path / "x.csv"), SCHEMA, np.float32)
    assert rows.dtype == np.float32
    assert rows.flags.c_contiguous
    schema = Schema((Number("size", 0, 1),), NumberTarget("age", 0, 100))
    rows, labels = encode_file(tmp_path / "x.csv", schema)
    assert labels.tolist() == [39.0, 100.0, 0.0]  # "abc" is no number: its record does not count
    assert len(rows) == 3


FIELDS = st.one_of(
    st.text(alphabet=string.ascii_letters + string.digits + ' ,".;-\r', max_size=6),
    st.binary(max_size=4).map(lambda b: b.replace(b"\n", b"").decode("latin-1")),
    st.sampled_from(["39", "1e999", "nan", "yes", "no", "Oslo", '"a', '"', "Rome", "?"]),
)


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(FIELDS, max_size=9), st.integers(0, 4))
@example(["x", "1", "1", "1", '"Oslo', "yes", "no"], 1)
@example(["x", "one", "1", "1", "Oslo", "yes", "no"], 0)
@example(["x", "1", "1", "1", "\xff", "yes", "no"], 2)
def test_one_odd_record_changes_no_other(tmp_path, odd, place):
    """The property privacy rests on: neighbours differ in one row, whatever the record says."""
    path = write_csv(tmp_path / "x.csv")
    lines = path.read_bytes().splitlines(keepends=True)
    lines.insert(1 + place, ",".join(odd).encode("latin-1") + b"\n")
    path.write_bytes(b"".join(lines))
    rows, labels = encode_file(path, SCHEMA)
    if len(rows) == len(ROWS) + 1:
        rows, labels = np.delete(rows, place, 0), np.delete(labels, place)
    assert np.allclose(rows, ROWS)
    assert labels.tolist() == LABELS


@pytest.mark.parametrize("value", ["abc", "", "99999999999999999999", "1.5", "true", None])
def test_one_odd_value_changes_no_other_row_of_a_frame(value):
    plain = pd.DataFrame({"age": [1, 2, 3], "town": [1, 2, 3], "ill": ["no", "yes", "no"]})
    schema = Schema((Number("age", 0, 10), Category("town", (1, 2))), SCHEMA.target)
    odd = plain.astype(object)
    odd.loc[3] = [value, value, "yes"]
    rows, _ = encode_table(odd, schema)
    for typed in (odd, odd.infer_objects()):
        assert np.array_equal(encode_table(typed, schema)[0], rows)
    assert np.array_equal(rows[:3], encode_table(plain, schema)[0])


def test_memory_is_the_rows_and_little_more(tmp_path):
    n = 100_000
    values = tuple(map(str, range(100)))
    frame = pd.DataFrame(
        {"a": np.arange(n) % 100, "b": np.arange(n), "y": np.where(np.arange(n) % 2, "no", "yes")}
    )
    frame.to_csv(tmp_path / "x.csv", index=False)
    schema = Schema((Category("a", values), Number("b", 0, n)), ClassTarget("y", ("no", "yes")))
    encode_file(tmp_path / "x.csv", schema)  # what is imported does not count
    arrow = []
    tracemalloc.start()
    rows, labels = encode_file(
        tmp_path / "x.csv", schema, progress=lambda _: arrow.append(pa.total_allocated_bytes())
    )
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert rows.nbytes == n * 101 * 8
    assert len(labels) == n
    assert peak < 1.1 * rows.nbytes
    assert max(arrow) < 0.2 * rows.nbytes
    assert np.array_equal(rows[:, :100].argmax(axis=1), frame["a"])
    assert np.allclose((rows[:, 100] + 0.5) * n, frame["b"])


def test_progress_ends_at_1(tmp_path):
    shares: list[float] = []
    records = RECORDS * 5000
    encode_file(write_csv(tmp_path / "x.csv", records), SCHEMA, progress=shares.append)
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    assert len(shares) > 1


@pytest.mark.parametrize("records", [[], [("4711",) * 6], [("4711",) * 7]])
def test_no_record_that_counts_is_no_error(tmp_path, records):
    # A table with one record more would be read: the error alone would reveal it.
    rows, labels = encode_file(write_csv(tmp_path / "x.csv", records), SCHEMA)
    assert (len(rows), len(labels)) == (0, 0)
    assert rows.shape[1] == len(SCHEMA.feature_names)


@pytest.mark.parametrize(
    ("records", "schema", "error", "message"),
    [
        (RECORDS, Schema(SCHEMA.columns), SchemaError, "no target"),
        (RECORDS, Schema((Ignored("age"),), SCHEMA.target), SchemaError, "nothing to learn"),
        (
            RECORDS,
            Schema((Number("Age", 0, 1),), SCHEMA.target),
            TableError,
            r"x\.csv.*no column named 'Age'",
        ),
    ],
)
def test_what_cannot_be_fitted_is_refused(tmp_path, records, schema, error, message):
    with pytest.raises(error, match=message) as refusal:
        encode_file(write_csv(tmp_path / "x.csv", records), schema)
    assert "4711" not in str(refusal.value)


def test_a_table_too_large_for_memory(tmp_path, monkeypatch):
    def full(*_, **__):
        raise MemoryError

    monkeypatch.setattr(np, "zeros", full)
    with pytest.raises(TableError, match=r"11 features.*memory"):
        encode_file(write_csv(tmp_path / "x.csv"), SCHEMA)


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_no_file_gives_another_error(tmp_path, data):
    """Valid files with bytes changed, cut out and put in, and any bytes at all."""
    name = data.draw(st.sampled_from(FORMATS))
    content = bytearray(write(tmp_path / name).read_bytes())
    for _ in range(data.draw(st.integers(0, 4))):
        start = data.draw(st.integers(0, len(content)))
        stop = min(len(content), start + data.draw(st.integers(0, 9)))
        content[start:stop] = data.draw(st.binary(max_size=6))
    if data.draw(st.integers(0, 4)) == 0:
        content = bytearray(data.draw(st.binary()))
    (tmp_path / name).write_bytes(bytes(content))
    try:
        rows, labels = encode_file(tmp_path / name, SCHEMA)
    except TableError as refusal:
        words = str(refusal).replace(str(tmp_path), "")  # which may hold any digits
        assert not any(record[1] in words for record in RECORDS[:3])
    else:
        assert len(rows) == len(labels) > 0
        assert np.all(np.abs(rows) <= 1)
        assert np.linalg.norm(rows, axis=1).max() <= SCHEMA.row_norm * (1 + 1e-12)
        assert set(labels) <= {"no", "yes"}
