"""Missing codes, merged levels, folded case and dates are described as a fit reads them."""

from __future__ import annotations

import datetime
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import parquet

import tacit
from tacit.cluster import DaskTable
from tacit.descriptive import Description
from tacit.privacy import Accountant, Budget
from tacit.report.description import render_description
from tacit.schema import (
    Age,
    Boolean,
    Category,
    ClassTarget,
    Fill,
    Intervals,
    Number,
    NumberTarget,
    Schema,
    SchemaError,
    TableError,
    Weekday,
    Year,
)
from tacit.schema.encoding import refuse_file_without_columns, refuse_without_columns
from tests.cluster.helpers import AtOnce

BORN = Age("born", "2026-01-01", 0, 110, format="%d.%m.%Y", missing_codes=("01.01.1900",), per=10)
ADMITTED = Year("admitted", 2010, 2030, format="%d.%m.%Y")
LEFT = Weekday("left", format="%d.%m.%Y", reference="Sunday", missing=Fill("Monday"))
COLUMNS = (
    BORN,
    ADMITTED,
    LEFT,
    Number("height", 100, 220, missing=Fill(170), missing_codes=(9999, "NA", "?"), per=10),
    Category.merged(
        "sex",
        {"f": ["w", "weiblich"], "m": ["m", "m\u00e4nnlich"]},
        fold_case=True,
        reference="f",
        missing_codes=("unbekannt",),
    ),
    Boolean("smoker", ("ja",), ("nein",), fold_case=True, missing_codes=("k.A.",)),
    Intervals("bmi", (20, 30), missing_codes=(-1,)),
)
SCHEMA = Schema(COLUMNS, ClassTarget("ill", ("nein", "ja"), fold_case=True, missing_codes=("9",)))
ROW = {
    "born": "01.01.1976",
    "admitted": "31.12.2024",
    "left": "05.01.2026",  # a Monday
    "height": "180",
    "sex": "W",
    "smoker": "JA",
    "bmi": "25",
    "ill": "Ja",
}
OTHER = {
    "born": "01.01.1900",
    "admitted": "1.2.2020",
    "left": "unknown",
    "height": "9999",
    "sex": "UNBEKANNT",
    "smoker": "k.a.",
    "bmi": "-1",
    "ill": "9",
}
N, N_OTHER = 300, 100


def table() -> dict[str, list[str]]:
    return {name: [ROW[name]] * N + [OTHER[name]] * N_OTHER for name in ROW}


def described(rows: Any, schema: Schema = SCHEMA, **more: Any) -> Description:
    return tacit.describe(rows, schema, math.inf, **more)


def check(found: Description) -> None:
    for name in ("born", "height", "sex", "smoker", "bmi", "ill", "left"):
        assert found.figure(name, "missing").value == N_OTHER, name
    assert found.figure("admitted", "missing").value == 0
    # Nothing missing is clipped, filled or the middle of a range.
    assert found.figure("height", "mean").value == pytest.approx(180, abs=1e-2)
    assert found.figure("height", "sd").value == pytest.approx(0, abs=0.5)
    assert found.figure("born", "mean").value == pytest.approx(50, abs=1e-2)
    assert found.figure("admitted", "mean").value == pytest.approx((3 * 2024 + 2020) / 4, abs=1e-3)
    # Calendar years are whole numbers.
    assert found.figure("admitted", "median").value == 2024
    assert found.figure("left", "share", "Monday").n == N
    assert found.figure("sex", "share", "f").n == N
    assert found.figure("sex", "share", "(other)").n == 0
    assert found.figure("smoker", "share", "ja").n == N
    assert found.figure("bmi", "share", "20 <= bmi < 30").n == N
    assert found.figure("ill", "share", "ja").n == N


def test_codes_are_missing_and_words_are_read_as_declared(tmp_path: Path) -> None:
    rows = table()
    check(described(rows))
    frame = pd.DataFrame(rows)
    frame.to_csv(tmp_path / "x.csv", index=False)
    check(described(tmp_path / "x.csv"))
    check(described(DaskTable.from_files(str(tmp_path / "x.csv"), AtOnce())))
    frame["height"] = frame["height"].astype(float)
    check(described(frame))


def test_a_code_of_a_number_that_is_the_target_is_missing() -> None:
    schema = Schema((), NumberTarget("days", 0, 14, missing_codes=(9999,)))
    found = described({"days": [4.0] * 30 + [9999.0] * 10}, schema)
    assert found.figure("days", "missing").value == 10
    assert found.figure("days", "mean").value == pytest.approx(4, abs=1e-2)


def test_a_table_says_what_is_made_of_a_date() -> None:
    found = described(table(), by="left")
    assert found.groups[1:3] == ("Monday", "Tuesday")
    assert found.figure("born", "mean", group="Monday").value == pytest.approx(50, abs=1e-2)
    labels = [line.label for line in found.lines() if line.is_column]
    assert labels[:4] == ["records", "left", "age by born", "year of admitted"]
    assert ">age by born<" in render_description(found, title="t", made_on="2026-01-01")


def test_ages_are_no_whole_numbers_and_no_groups() -> None:
    with pytest.raises(SchemaError, match="whole names 'born', which is no number"):
        described(table(), whole=["born"])
    with pytest.raises(SchemaError, match="'born', which is a number and has no levels; group by"):
        described(table(), by="born")
    # A range without a whole number is no reason to fail.
    years = Schema((Year("admitted", 2024.2, 2024.8),))
    found = described({"admitted": ["2024-01-01"] * 30}, years)
    assert found.figure("admitted", "median").value == pytest.approx(2024.2, abs=0.1)


DAYS = [datetime.datetime(1976, 1, 1), datetime.datetime(1976, 1, 2)] * 20
DATES = (Age("d", "2026-01-01", 0, 100), Year("d", 1900, 2030), Weekday("d"))
NO_DATES = (Number("d", 0, 9), Category("d", ("a",)), Boolean("d"), Intervals("d", (1, 2)))
LABELS = ["a", "b"] * 20
TARGET = ClassTarget("y", ("a", "b"))


def of_every_library(type_: pa.DataType) -> list[Any]:
    arrow = pa.table({"d": pa.array(DAYS, type_), "y": LABELS})
    frames = [arrow, pl.from_arrow(arrow), arrow.to_pandas(types_mapper=pd.ArrowDtype)]
    return frames if type_ == pa.date32() else [*frames, arrow.to_pandas()]


@pytest.mark.parametrize("column", DATES, ids=lambda column: column.kind)
def test_types_for_dates_are_described_and_can_be_fitted(column: Any, tmp_path: Path) -> None:
    schema = Schema((column,), TARGET)
    for type_ in (pa.date32(), pa.timestamp("us")):
        for frame in of_every_library(type_):
            assert described(frame, schema).figure("d", "missing").value == 0
            refuse_without_columns(frame, schema)
        parquet.write_table(of_every_library(type_)[0], tmp_path / "x.parquet")
        assert described(tmp_path / "x.parquet", schema).figure("d", "missing").value == 0
        refuse_file_without_columns(tmp_path / "x.parquet", schema)


@pytest.mark.parametrize("column", [*NO_DATES, *DATES], ids=lambda column: column.kind)
def test_other_types_of_times_are_refused_before_the_charge(column: Any, tmp_path: Path) -> None:
    schema = Schema((column,), TARGET)
    accountant = Accountant(Budget(epsilon=1.0, delta=1e-5))
    types = [pa.timestamp("us", "UTC")]
    types += [] if column in DATES else [pa.date32(), pa.timestamp("us")]
    frames: list[Any] = [frame for type_ in types for frame in of_every_library(type_)]
    for place, type_ in enumerate(types):
        parquet.write_table(of_every_library(type_)[0], tmp_path / f"{place}.parquet")
        frames.append(tmp_path / f"{place}.parquet")
        frames.append(DaskTable.from_files(str(tmp_path / f"{place}.parquet"), AtOnce()))
    for frame in frames:
        with pytest.raises(TableError, match="column 'd' is of type"):
            tacit.describe(frame, schema, 0.5, 1e-6, accountant=accountant)
    assert accountant.spent() == 0


def test_numbers_can_be_dates() -> None:
    schema = Schema((Year("d", 1900, 2030, format="%Y%m%d"),))
    found = described({"d": np.array([19760131, 20240229, 1])}, schema)
    assert found.figure("d", "missing").value == 1
