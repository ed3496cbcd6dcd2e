"""Readers of one column, of every type: Arrow in files and in memory, frames, arrays, lists."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from pyarrow import feather, parquet

from tacit.io.memory_tables import chunks, columns_of_batch
from tacit.io.reading import open_table
from tacit.records.coded_table import LevelCells, NumberCells, code_chunk
from tacit.schema import (
    Age,
    Boolean,
    Category,
    ClassTarget,
    Indicator,
    Intervals,
    Number,
    Weekday,
    Year,
)
from tacit.schema.encoding import encode_rows, write_rows
from tacit.testing import Encoded, Reader
from tests.testing.readers.hostile_values import (
    BOOLS,
    BYTES,
    DECIMALS,
    FLOATS,
    HOSTILE_BOOLS,
    HOSTILE_BYTES,
    HOSTILE_DECIMALS,
    HOSTILE_FLOATS,
    HOSTILE_INTS,
    HOSTILE_OBJECTS,
    HOSTILE_TEXTS,
    INTS,
    LARGE_INTS,
    MIXED,
    ONE_OF_EACH_TYPE,
    SMALL_FLOATS,
    TEXTS,
    TIME,
)

# Words that a careless reader changes for everybody: the mark of a lost byte, a whole number that
# is no float, a number that is a word, a word for a missing value.
WORDS = ("Oslo", "\ufffd", "\x1a", "NA", "1", "2", "7.5", "true", str(2**53), str(2**53 + 1))
COLUMNS = (
    Number("x", -1e6, 1e6, missing=Indicator()),
    Number("x", 1, 1e6, log=True),
    Intervals("x", (0, 10), missing=Indicator()),
    Category("x", WORDS, missing=Indicator()),
    Boolean("x", missing=Indicator()),
    Number("x", -1e6, 1e6, missing=Indicator(), missing_codes=(7.5, 100, "Oslo")),
    Intervals("x", (0, 10), missing=Indicator(), missing_codes=(1, "x")),
    Category.merged(
        "x",
        {"a": ["OSLO", "1"], "b": ["X", "7.5", "true"]},
        fold_case=True,
        missing=Indicator(),
        missing_codes=("YES", 2),
    ),
    Boolean("x", missing=Indicator(), fold_case=True, missing_codes=("x",)),
)
# Columns of dates are read by these alone, since a number cannot be made of a type for dates.
DATE_COLUMNS = (
    Age("x", "2026-01-01", 0, 110, missing=Indicator(), missing_codes=("1900-01-01", "NA")),
    Year("x", 1900, 2100, missing=Indicator()),
    Weekday("x", missing=Indicator()),
)


@dataclass(frozen=True)
class Typed:
    """A type of column: values of it, and how a list of them is encoded, in steps, in a folder."""

    ordinary: Sequence[Any]
    hostile: Mapping[str, Any]
    encode: Callable[[list[Any], int, Path], Encoded]

    def reader(self, name: str, records: Sequence[Any], step: int, folder: Path) -> Reader:
        return Reader(name, records, self.hostile, lambda values: self.encode(values, step, folder))


Family = dict[str, Typed]


def any_of(family: str) -> Callable[[Random, Path], Reader]:
    """Return a maker of readers of a type, and of values, that are drawn."""
    types = FAMILIES[family]

    def make(rng: Random, folder: Path) -> Reader:
        kind = rng.choice(list(types))
        # Two at least: pandas guesses the type of a column, and of one record's it is its own.
        records = [rng.choice(types[kind].ordinary) for _ in range(rng.randrange(2, 12))]
        return types[kind].reader(f"{family} of {kind}", records, rng.randrange(1, 8), folder)

    return make


def in_memory(
    make: Callable[[list[Any], int], Any], columns: Sequence[Any] = COLUMNS
) -> Callable[[list[Any], int, Path], Encoded]:
    """Return how values are encoded of which ``make`` makes a table in memory."""

    def encode(values: list[Any], step: int, _: Path) -> Encoded:
        return Encoded([row.tobytes() for row in encode_rows(make(values, step), columns)])

    return encode


CELLS = (
    NumberCells(Number("x", -1e6, 1e6), 64),
    NumberCells(Number("x", 1, 1e6, log=True), 16),
    NumberCells(Number("x", 0, 100), 101, whole=True),
    LevelCells(Intervals("x", (0, 10))),
    LevelCells(Category("x", WORDS)),
    LevelCells(Category("x", WORDS), tells_other=False),
    LevelCells(Boolean("x")),
    LevelCells(ClassTarget("x", ("Oslo", "1", "true"))),
)


def as_cells(make: Callable[[list[Any], int], Any]) -> Callable[[list[Any], int, Path], Encoded]:
    """Return how values are read as cells, of which ``make`` makes a table in memory."""

    def encode(values: list[Any], step: int, _: Path) -> Encoded:
        rows: list[bytes] = []
        for n, chunk in chunks(make(values, step), ["x"]):
            block = code_chunk(chunk, n, CELLS)
            both = zip(block.codes, block.units, strict=True)
            rows.extend(codes.tobytes() + units.tobytes() for codes, units in both)
        return Encoded(rows)

    return encode


def dictionary(values, kind):
    words = pa.array(values, pa.binary()).dictionary_encode()
    return pa.DictionaryArray.from_arrays(words.indices, words.dictionary.view(kind))


def halves(values):
    return pa.array([None if v is None else np.float16(v) for v in values], pa.float16())


ARROW_TYPES = {
    "string": (BYTES, HOSTILE_BYTES, lambda v: pa.array(v, pa.binary()).view(pa.string())),
    "large_string": (
        BYTES,
        HOSTILE_BYTES,
        lambda v: pa.array(v, pa.large_binary()).view(pa.large_string()),
    ),
    "string_view": (
        BYTES,
        HOSTILE_BYTES,
        lambda v: pa.array(v, pa.binary_view()).view(pa.string_view()),
    ),
    "binary": (BYTES, HOSTILE_BYTES, lambda v: pa.array(v, pa.binary())),
    "large_binary": (BYTES, HOSTILE_BYTES, lambda v: pa.array(v, pa.large_binary())),
    "binary_view": (BYTES, HOSTILE_BYTES, lambda v: pa.array(v, pa.binary_view())),
    "dictionary": (BYTES, HOSTILE_BYTES, lambda v: dictionary(v, pa.string())),
    "int64": (LARGE_INTS, HOSTILE_INTS, lambda v: pa.array(v, pa.int64())),
    "uint64": (INTS[:4], {**HOSTILE_INTS, "most": 2**64 - 1}, lambda v: pa.array(v, pa.uint64())),
    "int dictionary": (
        LARGE_INTS,
        HOSTILE_INTS,
        lambda v: pa.array(v, pa.int64()).dictionary_encode(),
    ),
    "float64": (FLOATS, HOSTILE_FLOATS, lambda v: pa.array(v, pa.float64())),
    "float32": (FLOATS, SMALL_FLOATS, lambda v: pa.array(v, pa.float32())),
    "float16": (FLOATS[:4], SMALL_FLOATS, halves),
    "bool": (BOOLS, HOSTILE_BOOLS, lambda v: pa.array(v, pa.bool_())),
    "decimal128": (DECIMALS, HOSTILE_DECIMALS, lambda v: pa.array(v, pa.decimal128(38, 4))),
    "decimal256": (DECIMALS, HOSTILE_DECIMALS, lambda v: pa.array(v, pa.decimal256(60, 4))),
}


def encode_batches(batches, columns=COLUMNS) -> Encoded:
    rows: list[bytes] = []
    for batch in batches:
        out = np.zeros((batch.num_rows, sum(len(column.names()) for column in columns)))
        write_rows(columns_of_batch(batch), columns, out)
        rows.extend(row.tobytes() for row in out)
    return Encoded(rows)


def anew(path: Path) -> Path:
    """Return a path at which there is nothing: ext4 waits for the disc when a file is replaced."""
    path.unlink(missing_ok=True)
    return path


def ipc(new, table, path, step) -> None:
    with pa.OSFile(str(path), "wb") as file, new(file, table.schema) as writer:
        writer.write_table(table, max_chunksize=step)


ARROW_FILES = {
    "x.parquet": lambda table, path, step: parquet.write_table(table, path, row_group_size=step),
    "plain.parquet": lambda table, path, step: parquet.write_table(
        table, path, use_dictionary=False, data_page_size=16, compression="none"
    ),
    "x.pq": lambda table, path, step: parquet.write_table(table, path, row_group_size=step),
    "x.feather": lambda table, path, step: feather.write_feather(table, str(path), chunksize=step),
    "x.arrow": lambda table, path, step: ipc(pa.ipc.new_file, table, path, step),
    "stream.arrow": lambda table, path, step: ipc(pa.ipc.new_stream, table, path, step),
    "x.ipc": lambda table, path, step: ipc(pa.ipc.new_stream, table, path, step),
}


def arrow_files(name: str) -> Family:
    def of(array):
        def encode(values, step, folder):
            path = anew(folder / name)
            ARROW_FILES[str(name)](pa.table({"x": array(values)}), path, step)
            return encode_batches(open_table(path).batches(["x"]))

        return encode

    return {kind: Typed(a, b, of(array)) for kind, (a, b, array) in ARROW_TYPES.items()}


def cut(array, step):
    return pa.chunked_array([array[i : i + step] for i in range(0, len(array), step)])


ARROW_TABLES = {
    "pyarrow table": lambda array, step: pa.table({"x": cut(array, step)}),
    "pyarrow batch": lambda array, step: pa.record_batch({"x": array}),
    "dictionary of pyarrow": lambda array, step: {"x": cut(array, step)},
    "pandas of pyarrow": lambda array, step: pd.DataFrame(
        {"x": pd.arrays.ArrowExtensionArray(cut(array, step))}
    ),
}


def arrow_tables(name: str) -> Family:
    def of(array):
        return in_memory(lambda values, step: ARROW_TABLES[name](array(values), step))

    return {
        kind: Typed(a, b, of(array))
        for kind, (a, b, array) in ARROW_TYPES.items()
        if not ("pandas" in name and "view" in kind)  # which pandas does not hold
    }


GUESSED = {
    "guessed whole numbers": LARGE_INTS,
    "guessed numbers": FLOATS,
    "guessed booleans": BOOLS,
    "guessed texts": TEXTS,
    "guessed objects": MIXED,
}
PANDAS_TYPES = {
    "object": (MIXED, HOSTILE_OBJECTS),
    "str": (TEXTS, HOSTILE_TEXTS),
    "string[python]": (TEXTS, HOSTILE_TEXTS),
    "string[pyarrow]": (TEXTS, HOSTILE_TEXTS),
    "category": (TEXTS, HOSTILE_TEXTS),
    "Int64": (LARGE_INTS, HOSTILE_INTS),
    "Float64": (FLOATS, HOSTILE_FLOATS),
    "float64": (FLOATS, HOSTILE_FLOATS),
    "float32": (FLOATS, SMALL_FLOATS),
    "boolean": (BOOLS, HOSTILE_BOOLS),
    "Sparse[float]": (FLOATS, HOSTILE_FLOATS),
}


def of_pandas(dtype):
    return in_memory(lambda values, _: pd.DataFrame({"x": pd.Series(values, dtype=dtype)}))


PANDAS = {kind: Typed(a, b, of_pandas(kind)) for kind, (a, b) in PANDAS_TYPES.items()} | {
    kind: Typed(values, ONE_OF_EACH_TYPE, of_pandas(None)) for kind, values in GUESSED.items()
}

POLARS_TYPES = {
    pl.String: (TEXTS, HOSTILE_TEXTS),
    pl.Binary: (BYTES, HOSTILE_BYTES),
    pl.Categorical: (TEXTS, HOSTILE_TEXTS),
    pl.Int64: (LARGE_INTS, HOSTILE_INTS),
    pl.UInt64: (INTS[:4], HOSTILE_INTS),
    pl.Float64: (FLOATS, HOSTILE_FLOATS),
    pl.Float32: (FLOATS, SMALL_FLOATS),
    pl.Boolean: (BOOLS, HOSTILE_BOOLS),
    pl.Decimal(38, 4): (DECIMALS, HOSTILE_DECIMALS),
    pl.Object: ([*TEXTS, *INTS, *FLOATS, *BOOLS], HOSTILE_OBJECTS),
    # Refused for their type, whatever they hold; a table that is refused has no rows to compare.
    pl.Datetime("ns"): ([TIME], {"null": None}),
    pl.Duration("ns"): ([datetime.timedelta(1)], {"null": None}),
}
if hasattr(pl, "Int128"):  # the oldest polars has none
    POLARS_TYPES[pl.Int128] = (LARGE_INTS, {**HOSTILE_INTS, "most": 2**100})


def of_polars(dtype):
    return in_memory(lambda values, _: pl.DataFrame({"x": pl.Series(values, dtype=dtype)}))


POLARS = {str(kind): Typed(a, b, of_polars(kind)) for kind, (a, b) in POLARS_TYPES.items()}
LISTS = {
    kind: Typed(values, HOSTILE_OBJECTS, in_memory(lambda values, _: {"x": values}))
    for kind, values in GUESSED.items()
}

NO_TEXT_NULLS = {kind: text for kind, text in HOSTILE_TEXTS.items() if text is not None}
NUMPY_TYPES = {
    "U200": (TEXTS, {k: v for k, v in NO_TEXT_NULLS.items() if len(v) <= 200}),
    "S200": (BYTES, {k: v for k, v in HOSTILE_BYTES.items() if v is not None and len(v) <= 200}),
    "T": (TEXTS, NO_TEXT_NULLS),
    "O": ([*TEXTS, *INTS, *FLOATS, *BOOLS], HOSTILE_OBJECTS),
    "i8": (LARGE_INTS, {k: v for k, v in HOSTILE_INTS.items() if v is not None}),
    "f8": (FLOATS, {k: v for k, v in HOSTILE_FLOATS.items() if v is not None}),
    "f4": (FLOATS, {k: v for k, v in SMALL_FLOATS.items() if v is not None}),
    "f2": (FLOATS[:4], {k: v for k, v in SMALL_FLOATS.items() if v is not None}),
    "longdouble": (FLOATS, {"huge": np.longdouble("4.71147e4000"), "nan": np.longdouble("nan")}),
    "?": (BOOLS, {"true": True}),
}


def objects(values):
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def numpy_array(values, kind):
    return objects(values) if kind == "O" else np.array(values, dtype=kind)


def structured(values, kind):
    table = np.empty(len(values), dtype=[("n", "i4"), ("x", kind)])
    table["x"] = numpy_array(values, kind)
    return table


def masked(values, kind):
    """Return an array with a mask, under which lies whatever is hostile."""
    array = numpy_array(values, kind)
    mask = [isinstance(v, float) and abs(v) > 1e6 for v in values]
    return np.ma.MaskedArray(array, mask=mask)


def of_numpy(make, *without: str) -> Family:
    def of(kind):
        return in_memory(lambda values, _: make(values, kind))

    return {k: Typed(a, b, of(k)) for k, (a, b) in NUMPY_TYPES.items() if k not in without}


DAYS = [datetime.datetime(1970, 1, 1), datetime.datetime(1999, 12, 31, 23), TIME]
DAYS += [datetime.datetime(1900, 1, 1), datetime.datetime(1912, 2, 29, 1, 2, 3)]
HOSTILE_DAYS = {
    "null": None,
    "first": datetime.datetime(1, 1, 1),
    "last": datetime.datetime(9999, 12, 31, 23, 59),
    "mark": datetime.datetime(4711, 4, 7),
}
# Nanoseconds hold the years 1678 to 2261 alone.
NEAR_DAYS = {
    "null": None,
    "old": datetime.datetime(1700, 1, 1),
    "new": datetime.datetime(2200, 1, 1),
}
EXTREME_TICKS = {"null": None, "most": 2**63 - 1, "least": -(2**63) + 1, "mark": 471147}
TEXT_DAYS = ["1970-01-01", " 1999-12-31 23:10", "2020-1-1T10:00", "1900-01-01", "NA", "2020-02-30"]


def ticks(kind):
    """Return how whole numbers become times of a type, however large."""
    return lambda values: pa.array(values, pa.int64()).view(kind)


ARROW_DATES = {
    "date32": (DAYS, HOSTILE_DAYS, lambda v: pa.array(v, pa.date32())),
    "date64": (DAYS, HOSTILE_DAYS, lambda v: pa.array(v, pa.date64())),
    "timestamp us": (DAYS, HOSTILE_DAYS, lambda v: pa.array(v, pa.timestamp("us"))),
    "timestamp ns": (DAYS, NEAR_DAYS, lambda v: pa.array(v, pa.timestamp("ns"))),
    "ticks of s": ([0, 86_399, 10**9], EXTREME_TICKS, ticks(pa.timestamp("s"))),
    "ticks of ns": ([0, 10**18 + 1, 10**15], EXTREME_TICKS, ticks(pa.timestamp("ns"))),
    "string": (TEXT_DAYS, HOSTILE_TEXTS, lambda v: pa.array(v, pa.string())),
    "int64": ([20200101, 7], HOSTILE_INTS, lambda v: pa.array(v, pa.int64())),
}


def arrow_dates(name: str | None) -> Family:
    def of(array):
        def encode(values, step, folder):
            path = anew(folder / str(name))
            ARROW_FILES[str(name)](pa.table({"x": array(values)}), path, step)
            return encode_batches(open_table(path).batches(["x"]), DATE_COLUMNS)

        def encode_table(values, step):
            return ARROW_TABLES["pyarrow table"](array(values), step)

        return in_memory(encode_table, DATE_COLUMNS) if name is None else encode

    return {
        kind: Typed(a, b, of(array))
        for kind, (a, b, array) in ARROW_DATES.items()
        if not (name and "ticks of s" in kind)  # which Parquet does not hold
    }


def dates_in(make: Callable[[list[Any]], Any]) -> Callable[[list[Any], int, Path], Encoded]:
    return in_memory(lambda values, _: {"x": make(values)}, DATE_COLUMNS)


DATES: Family = {
    "pandas us": Typed(DAYS, HOSTILE_DAYS, dates_in(lambda v: pd.Series(v, dtype="M8[us]"))),
    "pandas ns": Typed(DAYS, NEAR_DAYS, dates_in(lambda v: pd.Series(v, dtype="M8[ns]"))),
    "pandas objects": Typed(DAYS, HOSTILE_OBJECTS, dates_in(lambda v: pd.Series(v, dtype=object))),
    "pandas text": Typed(TEXT_DAYS, HOSTILE_TEXTS, dates_in(lambda v: pd.Series(v, dtype="str"))),
    "polars Date": Typed(DAYS, HOSTILE_DAYS, dates_in(lambda v: pl.Series(v, dtype=pl.Date))),
    "polars Datetime": Typed(
        DAYS, HOSTILE_DAYS, dates_in(lambda v: pl.Series(v, dtype=pl.Datetime("us")))
    ),
    "polars text": Typed(
        TEXT_DAYS, HOSTILE_TEXTS, dates_in(lambda v: pl.Series(v, dtype=pl.String))
    ),
    "NumPy days": Typed(DAYS, HOSTILE_DAYS, dates_in(lambda v: np.array(v, dtype="M8[D]"))),
    "list": Typed([*DAYS, *TEXT_DAYS], HOSTILE_OBJECTS, dates_in(lambda v: v)),
}

FAMILIES: dict[str, Family] = {
    **{name: arrow_files(name) for name in ARROW_FILES},
    **{name: arrow_tables(name) for name in ARROW_TABLES},
    "pandas": PANDAS,
    "polars": POLARS,
    "dictionary of lists": LISTS,
    "dictionary of arrays": of_numpy(lambda values, kind: {"x": numpy_array(values, kind)}),
    "masked arrays": of_numpy(lambda values, kind: {"x": masked(values, kind)}, "T"),
    "structured arrays": of_numpy(structured, "T"),
    "cells of lists": {
        kind: Typed(values, HOSTILE_OBJECTS, as_cells(lambda values, _: {"x": values}))
        for kind, values in GUESSED.items()
    },
    "cells of Arrow tables": {
        kind: Typed(a, b, as_cells(lambda values, _, make=make: pa.table({"x": make(values)})))
        for kind, (a, b, make) in ARROW_TYPES.items()
    },
    "dates of pyarrow": arrow_dates(None),
    "dates.parquet": arrow_dates("x.parquet"),
    "dates.arrow": arrow_dates("x.arrow"),
    "dates in pandas, polars and arrays": DATES,
}
