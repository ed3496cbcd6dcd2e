from __future__ import annotations

import subprocess
import sys
import tracemalloc

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse

from tacit.records.rows_and_labels import as_rows

TABLE = np.array([[1.0, 2.0], [3.0, 4.5], [-1.0, 0.0]])


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("order", ["C", "F"])
def test_float_arrays_are_not_copied(dtype, order):
    X = np.array(TABLE, dtype=dtype, order=order)
    rows, names = as_rows(X)
    assert np.shares_memory(rows, X)
    assert rows.dtype == dtype
    assert names is None


def test_nothing_large_is_allocated():
    X = np.ones((10_000, 50))
    as_rows(X)
    tracemalloc.start()
    as_rows(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.05 * X.nbytes


@pytest.mark.parametrize(
    "dtype", [np.int8, np.int64, np.uint16, np.bool_, np.float16, np.longdouble, object]
)
def test_other_numbers_become_doubles(dtype):
    X = np.array([[0, 1], [1, 1]]).astype(dtype)
    rows, _ = as_rows(X)
    assert rows.dtype == np.float64
    assert rows.tolist() == [[0.0, 1.0], [1.0, 1.0]]


def test_lists():
    rows, names = as_rows([[1, 2], [3, 4]])
    assert rows.dtype == np.float64
    assert names is None


@pytest.mark.parametrize("make", ["csr", "csc", "coo"])
@pytest.mark.parametrize("kind", ["array", "matrix"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64])
def test_sparse(make, kind, dtype):
    X = getattr(scipy.sparse, f"{make}_{kind}")(TABLE.astype(dtype))
    rows, names = as_rows(X)
    assert rows.format == "csr"
    assert rows.dtype == (np.float32 if dtype == np.float32 else np.float64)
    assert np.array_equal(rows.toarray(), TABLE.astype(dtype))
    assert names is None
    if make == "csr" and dtype != np.int64:
        assert np.shares_memory(rows.data, X.data)


def pandas_numpy(data):
    return pd.DataFrame(data)


def pandas_nullable(data, **backend):
    with np.errstate(invalid="ignore"):  # pandas 2 casts infinity to see whether it is whole
        return pd.DataFrame(data).convert_dtypes(**backend)


def pandas_arrow(data):
    return pandas_nullable(data, dtype_backend="pyarrow")


FRAMES = [
    pandas_numpy,
    pandas_nullable,
    pandas_arrow,
    pl.DataFrame,
    pa.table,
    lambda data: pa.RecordBatch.from_pydict({k: pa.array(v) for k, v in data.items()}),
]
FRAME_IDS = ["pandas", "nullable", "pandas arrow", "polars", "arrow", "record batch"]


@pytest.mark.parametrize("frame", FRAMES, ids=FRAME_IDS)
def test_frames_of_numbers(frame):
    rows, names = as_rows(frame({"age": [30, 41], "height": [1.5, 1.75], "member": [True, False]}))
    assert names == ("age", "height", "member")
    assert isinstance(rows, np.ndarray)
    assert rows.dtype == np.float64
    assert rows.tolist() == [[30.0, 1.5, 1.0], [41.0, 1.75, 0.0]]


@pytest.mark.parametrize("frame", FRAMES, ids=FRAME_IDS)
def test_frames_with_missing_values_are_refused(frame):
    for values in ([1.5, None], [None, 2.0], [1, None], [True, None]):
        if values[0] is True and frame is pandas_numpy:
            continue  # a column of objects, refused as such
        with pytest.raises(ValueError, match=r"Input X contains NaN\. .*'height'.*fill in or drop"):
            as_rows(frame({"age": [30, 41], "height": values}))
    with pytest.raises(ValueError, match=r"Input X contains infinity.*'height'"):
        as_rows(frame({"age": [30, 41], "height": [1.0, float("inf")]}))


@pytest.mark.parametrize("frame", FRAMES, ids=FRAME_IDS)
def test_frames_with_text_are_refused(frame):
    with pytest.raises(ValueError, match=r"column 'city' of X holds .*not numbers.*encode") as info:
        as_rows(frame({"age": [30, 41], "city": ["Atlantis", "Ys"]}))
    assert "Atlantis" not in str(info.value)


@pytest.mark.parametrize("frame", FRAMES, ids=FRAME_IDS)
def test_frames_with_dates_are_refused(frame):
    from datetime import datetime

    with pytest.raises(ValueError, match="column 'born' of X holds"):
        as_rows(frame({"born": [datetime(2020, 1, 1), datetime(2021, 1, 1)]}))


def test_categories_are_refused():
    labels = ["a", "b"]
    with pytest.raises(ValueError, match="column 'c' of X holds category"):
        as_rows(pd.DataFrame({"c": pd.Categorical(labels)}))
    with pytest.raises(ValueError, match="column 'c' of X holds Enum"):
        as_rows(pl.DataFrame({"c": pl.Series(labels, dtype=pl.Enum(labels))}))
    with pytest.raises(ValueError, match="column 'c' of X holds dictionary"):
        as_rows(pa.table({"c": pa.array(labels).dictionary_encode()}))


@pytest.mark.parametrize("frame", FRAMES, ids=FRAME_IDS)
def test_empty_frames_are_refused(frame):
    with pytest.raises(ValueError, match=r"0 sample\(s\), while a minimum of 1"):
        as_rows(frame({"age": np.array([], dtype=float)}))


def test_tables_without_columns_are_refused():
    for X in (np.empty((3, 0)), pd.DataFrame(index=range(3)), pa.table({"a": [1.0]}).select([])):
        with pytest.raises(ValueError, match=r"0 (feature|sample)\(s\)"):
            as_rows(X)


def test_float32_frames_stay_single():
    single = np.ones(2, dtype=np.float32)
    for X in (
        pd.DataFrame({"a": single, "b": single}),
        pl.DataFrame({"a": single, "b": single}),
        pa.table({"a": single, "b": single}),
    ):
        assert as_rows(X)[0].dtype == np.float32


def test_columns_without_names():
    assert as_rows(pd.DataFrame(TABLE))[1] is None
    assert as_rows(pd.DataFrame(TABLE, columns=["a", 1]))[1] is None


@pytest.mark.parametrize(
    ("X", "error", "message"),
    [
        (np.ones(3), ValueError, "Expected 2D array, got 1D array instead.*Reshape your data"),
        ([1.0, 2.0], ValueError, "Expected 2D array, got 1D array instead"),
        (np.float64(3.0), ValueError, "Expected 2D array, got 0D array instead"),
        (np.ones((2, 2, 2)), ValueError, "got 3D array instead"),
        (pd.Series([1.0]), ValueError, r"got 1D array instead.*X\.to_frame\(\)"),
        (pl.Series([1.0]), ValueError, r"got 1D array instead.*X\.to_frame\(\)"),
        (pa.array([1.0]), ValueError, "got 1D array instead"),
        (pl.LazyFrame({"a": [1.0]}), TypeError, r"pass X\.collect\(\)"),
        (np.empty((0, 3)), ValueError, r"0 sample\(s\), while a minimum of 1"),
        (np.empty((3, 0)), ValueError, r"0 feature\(s\) \(shape=\(, 0\)\) while a minimum of 1"),
        (np.ones((2, 2)) * 1j, ValueError, "Complex data not supported"),
        (np.array([["a", "b"]]), ValueError, "not numbers"),
        (np.array([["1", "2"]]), ValueError, "not numbers"),
        (np.array([["Alice", 1.0]], dtype=object), ValueError, "text.*could not convert string"),
        (np.array([[{}, 1.0]], dtype=object), TypeError, "argument must be .* string.* number"),
        (np.array([["2020-01-01"]], dtype="M8[D]"), ValueError, "not numbers"),
        (np.ma.masked_equal(TABLE, 1.0), TypeError, r"masked array.*X\.filled"),
        (np.array([[1.0, 2.0], [3.0, np.nan]]), ValueError, r"Input X contains NaN\..*column 1;"),
        (np.array([[np.inf, 2.0]]), ValueError, r"Input X contains infinity.*column 0;"),
        (np.array([[1.0, None]], dtype=object), ValueError, r"Input X contains NaN.*column 1;"),
        (
            scipy.sparse.csr_array([[0.0, 1.0, np.nan]]),
            ValueError,
            r"Input X contains NaN\..*column 2;",
        ),
    ],
)
def test_what_is_refused(X, error, message):
    with pytest.raises(error, match=message) as info:
        as_rows(X)
    assert "Alice" not in str(info.value)


def test_no_value_is_repeated_in_an_error():
    secret = np.array([123456.789, 2.0])
    for X in (secret, secret[:, None] * [[1.0, np.nan]], secret.astype(str)[:, None]):
        with pytest.raises(ValueError) as info:
            as_rows(X)
        assert "123456" not in str(info.value)


def test_frame_libraries_are_not_imported():
    code = (
        "import sys\n"
        "from tacit.records.rows_and_labels import as_rows\n"
        "assert not {'pandas', 'polars', 'pyarrow', 'sklearn'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
