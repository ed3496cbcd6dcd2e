import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from tacit.preprocessing import SchemaEncoder, TableError
from tests.preprocessing.helpers import HEADER, ROWS, SCHEMA, columns

TABLES = {
    "dict": columns(),
    "arrays": {name: np.array(values) for name, values in columns().items()},
    "fields": np.rec.fromarrays([np.array(v) for v in columns().values()], names=list(HEADER)),
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


TYPED = {
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
