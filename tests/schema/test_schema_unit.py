from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from tacit.records.privacy_unit import people_of
from tacit.schema import (
    ClassTarget,
    Number,
    Schema,
    SchemaEncoder,
    SchemaError,
    Unit,
    encode_file,
    encode_table,
)

SCHEMA = Schema((Number("age", 0, 100), Unit("patient")), ClassTarget("ill", ("no", "yes")))
COLUMNS = {
    "age": [30, 40, 50, 60],
    "patient": ["7", "8", "7", None],
    "ill": ["no", "?", "yes", "no"],
}


def test_it_is_no_feature() -> None:
    assert SCHEMA.unit == "patient"
    assert SCHEMA.feature_names == ("age",)
    assert SCHEMA.row_norm == 0.5
    encoder = SchemaEncoder(SCHEMA).fit()
    assert encoder.transform({"age": [50]}).tolist() == [[0.0]]


def test_files_say_it() -> None:
    assert 'patient = { kind = "unit" }' in SCHEMA.to_toml()
    assert Schema.from_dict(SCHEMA.to_dict()) == SCHEMA
    ignored = Schema.from_dict({"columns": {"patient": {"kind": "ignored"}}})
    assert ignored.unit is None
    assert SCHEMA.digest() != Schema((Number("age", 0, 100),), SCHEMA.target).digest()


def test_one_unit_at_most() -> None:
    with pytest.raises(SchemaError, match="a second time"):
        Schema((Unit("a"), Unit("b")))
    assert SCHEMA.with_unit("patient") is SCHEMA
    with pytest.raises(SchemaError, match="the schema's unit is 'patient'"):
        SCHEMA.with_unit("age")
    with pytest.raises(SchemaError, match="the target"):
        Schema((), SCHEMA.target).with_unit("ill")


def test_a_column_becomes_the_unit() -> None:
    schema = Schema((Number("a", 0, 1), Number("b", 0, 1)), unconfirmed=("a",)).with_unit("a")
    assert (schema.unit, schema.feature_names, schema.unconfirmed) == ("a", ("b",), ())


@pytest.mark.parametrize("make", [dict, pd.DataFrame, pl.DataFrame, pa.table])
def test_identifiers_of_the_records_that_count(make: Any) -> None:
    found: list[Any] = []
    rows, _ = encode_table(make(COLUMNS), SCHEMA, identifiers=found)
    assert len(rows) == len(found) == 3
    assert people_of(found).owner.tolist() == [0, 0, -1]
    bare = make({name: column for name, column in COLUMNS.items() if name != "patient"})
    assert np.array_equal(encode_table(bare, SCHEMA)[0], rows)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_identifiers_of_a_file(tmp_path: Path, suffix: str) -> None:
    frame = pd.DataFrame({**COLUMNS, "patient": ["7", "8", " 7", None]})
    path = tmp_path / f"table.{suffix}"
    getattr(frame, f"to_{suffix}")(path, index=False)
    found: list[Any] = []
    encode_file(path, SCHEMA, identifiers=found)
    assert set(people_of(found).words) == set(people_of(["7"]).words)


def test_a_dictionary_of_words() -> None:
    column = pa.array(["7", "8", "7", None]).dictionary_encode()
    found: list[Any] = []
    encode_table(pa.table({**COLUMNS, "patient": column}), SCHEMA, identifiers=found)
    assert people_of(found).owner.tolist() == [0, 0, -1]
