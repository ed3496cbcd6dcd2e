import datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from tacit.io.memory_tables import chunks
from tacit.schema import Boolean, ClassTarget, Schema, SchemaEncoder, TableError
from tacit.schema.encoding import encode_rows
from tests.schema.helpers import HEADER, ROWS, SCHEMA, columns

TABLES = {
    "dict": columns(),
    "arrays": {name: np.array(values) for name, values in columns().items()},
    "fields": np.rec.fromarrays([np.array(v) for v in columns().values()], names=list(HEADER)),  # type: ignore[call-overload]
    "pandas": pd.DataFrame(columns()),
    "pandas objects": pd.DataFrame(columns(), dtype=object),
    "pandas categories": pd.DataFrame(columns()).astype("category"),
    "polars": pl.DataFrame(columns()),
    "pyarrow": pa.table(columns()),
    "record batch": pa.RecordBatch.from_pydict(columns()),
    "chunks": pa.concat_tables([pa.table(columns())[:1], pa.table(columns())[1:]]),
    "dict of arrow": {name: pa.array(values) for name, values in columns().items()},
}


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_every_table_gives_the_same_rows(table):
    assert np.allclose(SchemaEncoder(SCHEMA).transform(table), ROWS)


TYPED: dict[str, list[Any]] = {
    "age": [39, 130, None],
    "size": [10.0, None, 1e9],
    "hours": [None, 40.5, 9.0],
    "town": ["Oslo", None, "NA"],
    "smoker": [True, None, False],
}


@pytest.mark.parametrize("make", [dict, pd.DataFrame, pl.DataFrame, pa.table])
def test_typed_columns_read_as_text_does(make):
    words = {
        name: ["" if v is None else str(v).lower() if v in (True, False) else str(v) for v in value]
        for name, value in TYPED.items()
    }
    encoder = SchemaEncoder(SCHEMA)
    assert np.array_equal(encoder.transform(make(TYPED)), encoder.transform(words))


def test_masked_values_are_missing():
    age = np.ma.MaskedArray([39.0, 50.0], mask=[False, True])
    table = {name: values[:2] for name, values in columns().items()} | {"age": age}
    assert SchemaEncoder(SCHEMA).transform(table)[:, 0] == pytest.approx([-0.11, 0.0])


def test_an_empty_table_has_no_rows():
    for make in (pa.table, pd.DataFrame, pl.DataFrame):
        assert SchemaEncoder(SCHEMA).transform(make(columns())[:0]).shape == (0, 11)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"age": [1]}, "no column named 'size'"),
        (pd.DataFrame({"age": [1]}), "no column named 'size'"),
        (pa.table([[1], [2]], names=["age", "age"]), "several columns named 'age'"),
        (pd.DataFrame([[1, 2]], columns=["age", "age"]), "several columns named 'age'"),
        (np.ones((2, 3)), "named columns is needed, got ndarray"),
        ([[1]], "named columns is needed, got list"),
        (pl.LazyFrame({"age": [1]}), "collect"),
        (columns() | {"age": [1]}, "different lengths"),
        (columns() | {"age": np.ones((4, 2))}, "'age' has 2 dimensions"),
    ],
)
def test_other_tables_are_refused(table, message):
    with pytest.raises(TableError, match=message):
        SchemaEncoder(SCHEMA).transform(table)


def test_a_missing_header_does_not_print_a_record():
    record = pd.DataFrame([["x"]], columns=["SECRET"])
    with pytest.raises(TableError) as refusal:
        SchemaEncoder(SCHEMA).transform(record)
    assert "SECRET" not in str(refusal.value)


PLACE = {"1": 0, "a": 1, "true": 2, str(2**53 + 1): 3, str(2**53): 4}


def read(column):
    """Return what numbers and which words a column is read as, or the refusal."""
    try:
        ((_, chunk),) = chunks({"x": column}, ["x"])
        return chunk["x"].numbers().tobytes(), chunk["x"].codes(PLACE).tobytes()
    except TableError as error:
        return str(error)


TIME, SPAN = datetime.datetime(2020, 1, 1), datetime.timedelta(1)
POLARS = [
    *((kind, [1, 2]) for kind in (pl.Int8, pl.Int64, pl.UInt64, pl.Float32, pl.Float64)),
    # which the oldest polars does not have
    *((getattr(pl, name), [1, 2]) for name in ("Int128",) if hasattr(pl, name)),
    (pl.Int64, [1, 2**53 + 1]),
    (pl.Boolean, [True, False]),
    (pl.String, ["1", "a"]),
    (pl.Categorical, ["1", "a"]),
    (pl.Enum(["1", "a"]), ["1", "a"]),
    (pl.Binary, [b"1", b"\xff"]),
    (pl.Decimal(20, 2), [Decimal(1), Decimal("2.5")]),
    (pl.Date, [TIME.date()] * 2),
    (pl.Time, [TIME.time()] * 2),
    *((pl.Datetime(unit), [TIME] * 2) for unit in ("ms", "us", "ns")),
    *((pl.Duration(unit), [SPAN] * 2) for unit in ("ms", "us", "ns")),
    (pl.List(pl.Int64), [[1], [2]]),
    (pl.Struct({"a": pl.Int64}), [{"a": 1}] * 2),
    (pl.Object, [1, "a"]),
    (pl.Null, [None, None]),
]
PANDAS = [
    *((kind, [1, 2]) for kind in ("Int64", "Float32", "float32", "category", "int64[pyarrow]")),
    (None, [1, 2**53 + 1]),  # floats beside a missing value
    ("Int64", [1, 2**53 + 1]),
    ("category", [1, 2**53 + 1]),
    ("category", [True, False]),
    ("boolean", [True, False]),
    (None, [True, False]),
    ("object", [1, True, "a", TIME]),
    ("str", ["1", "a"]),
    ("string[python]", ["1", "a"]),
    ("string[pyarrow]", ["1", "a"]),
    ("datetime64[ns]", [TIME] * 2),
    ("datetime64[us, UTC]", [TIME] * 2),
    ("timedelta64[ns]", [SPAN] * 2),
    ("period[D]", [TIME] * 2),
    ("timestamp[ns][pyarrow]", [TIME] * 2),
]


def same_beside_a_null(full, nulled):
    alone, beside = read(full), read(nulled)
    if isinstance(alone, str):
        assert alone == beside
    else:
        assert all(b.startswith(a) for a, b in zip(alone, beside, strict=True))


@pytest.mark.parametrize(("kind", "values"), POLARS, ids=str)
def test_a_null_changes_no_other_record_of_polars(kind, values):
    same_beside_a_null(pl.Series(values, dtype=kind), pl.Series([*values, None], dtype=kind))


@pytest.mark.parametrize(("kind", "values"), PANDAS, ids=str)
def test_a_null_changes_no_other_record_of_pandas(kind, values):
    same_beside_a_null(pd.Series(values, dtype=kind), pd.Series([*values, None], dtype=kind))


TIMES = [np.array([1, 2], f"{kind}8[{unit}]") for kind in "mM" for unit in ("s", "us", "ns")]
TIMES += [np.ma.MaskedArray(times, mask=[False, True]) for times in TIMES]
TIMES += [pd.Series(times) for times in TIMES[:6]]
TIMES += [pd.Series(pd.Series(TIMES[0]).astype("category")), pd.interval_range(0, 2).to_series()]
TIMES += [pl.Series([TIME]), pl.Series([TIME.date()]), pl.Series([TIME.time()]), pl.Series([SPAN])]
TIMES += [pa.array([TIME]), pa.array([SPAN]), pa.chunked_array([[TIME.date()]])]


@pytest.mark.parametrize(
    "times",
    TIMES,
    ids=lambda times: f"{type(times)} {times.dtype if hasattr(times, 'dtype') else times.type}",
)
def test_dates_and_spans_of_time_are_refused_by_their_type(times):
    assert "'x' is of type" in read(times)


def test_text_that_is_not_utf8_is_unknown_in_a_frame():
    # "Wrapping ... failed", said pandas, and repeated the value
    words = pa.array([b"a", b"\xff4711"]).view(pa.string())
    for column in (
        words,
        pa.chunked_array([words]),
        pd.Series(pd.arrays.ArrowExtensionArray(words)),
    ):
        ((_, chunk),) = chunks({"x": column}, ["x"])
        assert chunk["x"].codes(PLACE).tolist() == [1, -1]


def test_the_shape_of_lists_does_not_matter():
    assert read(pa.array([[1], [2]])) == read(pa.array([[1], [2, 3]]))


YES_NO = [True, None, False]
NULLABLE = {
    "boolean": pd.DataFrame({"b": pd.array(YES_NO, dtype="boolean")}),
    "boolean[pyarrow]": pd.DataFrame({"b": pd.array(YES_NO, dtype="boolean[pyarrow]")}),
    "objects": pd.DataFrame({"b": YES_NO}),
    "categories": pd.DataFrame({"b": pd.Categorical(YES_NO)}),
    "arrow": pa.table({"b": YES_NO}),
    "arrow chunks": pa.table({"b": pa.chunked_array([[True], YES_NO[1:]])}),
    "arrow dictionary": pa.table({"b": pa.array(YES_NO).dictionary_encode()}),
    "polars": pl.DataFrame({"b": YES_NO}),
    "as pandas writes it to a CSV": pd.DataFrame({"b": ["True", "", "False"]}),
}


@pytest.mark.parametrize("table", NULLABLE.values(), ids=NULLABLE)
def test_booleans_that_may_be_missing(table):
    column = Schema((Boolean("b"),))
    assert encode_rows(table, column.columns).tolist() == [[0.5], [0.0], [-0.5]]
    for target in (ClassTarget("b", (False, True)), column.with_target("b").target):
        assert target is not None
        read = [target.encode(chunk["b"]) for _, chunk in chunks(table, ["b"])]
        assert [str(label).lower() for labels, _ in read for label in labels] == ["true", "false"]
        assert [bool(kept) for _, which in read for kept in which] == [True, False, True]
