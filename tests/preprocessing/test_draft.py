import tomllib

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from tacit.preprocessing import (
    Boolean,
    Category,
    ClassTarget,
    Ignored,
    Number,
    NumberTarget,
    Schema,
    TableError,
    draft_schema,
    encode_file,
)
from tacit.preprocessing.draft import round_outward
from tests.preprocessing.helpers import HEADER, WORDS, write_csv


@pytest.fixture
def path(tmp_path):
    n = 500
    frame = pd.DataFrame(
        {
            "age": np.arange(n) % 71 + 17,
            "name": [f"person {i}" for i in range(n)],
            "town": np.array(["Rome", "Oslo", "?"])[np.arange(n) % 3],
            "ill": np.where(np.arange(n) % 2, "yes", "no"),
            "share": np.linspace(0.021, 0.94, n),
            "nothing": "",
        }
    )
    frame.to_csv(tmp_path / "x.csv", index=False)
    parquet.write_table(pa.table(frame), tmp_path / "x.parquet")
    return tmp_path / "x.csv"


EXPECTED = Schema(
    (
        Number("age", 10, 90),
        Ignored("name"),
        Category("town", ("Oslo", "Rome")),
        Boolean("ill"),
        Number("share", 0, 1),
        Ignored("nothing"),
    )
)


def test_a_draft_is_a_schema_nobody_has_confirmed(path):
    for file in (path, path.with_suffix(".parquet")):
        text = draft_schema(file)
        schema = Schema.from_dict(tomllib.loads(text))
        assert schema.columns == EXPECTED.columns
        assert schema.unconfirmed == EXPECTED.names
        assert schema.assumptions
    lines = text.splitlines()
    assert "LOOKING AT THE DATA" in lines[0]
    body = lines[lines.index("[columns]") + 1 :]
    assert len(body) == 6
    assert all("confirmed = false" in line and line.endswith("# guessed") for line in body)


def test_a_line_is_confirmed_by_deleting_the_mark(path):
    text = draft_schema(path, "ill").replace(", confirmed = false", "")
    schema = Schema.from_dict(tomllib.loads(text))
    assert schema.unconfirmed == ()
    assert schema.target == ClassTarget("ill", ("no", "yes"))
    rows, labels = encode_file(path, schema)
    assert len(rows) == len(labels) == 500


def test_targets(path, tmp_path):
    assert 'age = { kind = "target", lower = 10' in draft_schema(path, "age")
    with pytest.raises(TableError, match=r"'name'.*cannot be the target"):
        draft_schema(path, "name")
    with pytest.raises(TableError, match="no column 'income'"):
        draft_schema(path, "income")
    (tmp_path / "y.csv").write_text("a,b\n0,1.5\n1,2.5\n0,3.5\n")
    schema = Schema.from_dict(tomllib.loads(draft_schema(tmp_path / "y.csv", "a")))
    assert schema.target == ClassTarget("a", ("0", "1"))
    schema = Schema.from_dict(tomllib.loads(draft_schema(tmp_path / "y.csv", "b")))
    assert schema.target == NumberTarget("b", 1, 4)


def test_headers_that_name_no_columns(tmp_path):
    for header in ("a,a", "a,"):
        (tmp_path / "x.csv").write_text(f"{header}\n1,2\n")
        with pytest.raises(TableError, match="names that differ"):
            draft_schema(tmp_path / "x.csv")


@given(st.floats(-1e300, 1e300), st.floats(-1e300, 1e300))
@example(5e-324, 0.0)
@example(-1e300, 1e300)
@example(1e16, 1e16)
@example(1e16 + 2, 1e16)
@example(1e305, 1.7e308)
def test_rounding_is_outward(a, b):
    low, high = min(a, b), max(a, b)
    lower, upper = round_outward(low, high)
    assert lower < upper
    if low >= -1e299 and high <= 1e299:
        assert lower <= low <= high <= upper
    Number("x", lower, upper)


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.lists(WORDS, min_size=7, max_size=7), max_size=6), st.booleans())
def test_any_table_has_a_draft_or_a_table_error(tmp_path, records, headless):
    records = [[w.encode("utf-8", "replace").decode() for w in record] for record in records]
    header = records[0] if headless and records else HEADER
    path = write_csv(tmp_path / "x.csv", records, header)
    try:
        text = draft_schema(path)
    except TableError:
        return
    assert Schema.from_dict(tomllib.loads(text)).unconfirmed
