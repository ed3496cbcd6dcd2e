"""Codes of missing values, folded case, merged levels, dates and units of effects."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import parquet

from tacit import TableModel
from tacit.cluster import DaskRecords
from tacit.linear_model import LinearRegression, LogisticRegression
from tacit.pipeline import PrivatePipeline
from tacit.records import Bounds
from tacit.saving import load, save
from tacit.schema import (
    Age,
    Boolean,
    Category,
    ClassTarget,
    Fill,
    Indicator,
    Intervals,
    Number,
    NumberTarget,
    OpenCategory,
    OpenNumber,
    Schema,
    SchemaError,
    Weekday,
    Year,
    check_file,
    encode_file,
    encode_table,
)
from tests.cluster.helpers import AtOnce

CODES = (9999, "NA", "?", "unbekannt")
SCHEMA = Schema(
    (
        Number("age", 0, 110, missing=Indicator(), missing_codes=CODES, per=10),
        Number("cost", 1, 1e5, log=True, missing_codes=(-1,), per=2),
        Intervals("stay", (3, 7), missing_codes=(99,)),
        Category.merged(
            "sex",
            {"female": ["w", "weiblich"], "male": ["m", "m\u00e4nnlich"]},
            fold_case=True,
            missing=Indicator(),
            missing_codes=("x", 9),
            reference="female",
        ),
        Boolean("smoker", fold_case=True, missing_codes=("k.A.",)),
        Age("born", "2026-01-01", 0, 110, format="%d.%m.%Y", missing_codes=("01.01.1900",)),
        Year("admitted", 2016, 2026, missing=Fill(2020), per=1),
        Weekday("left", missing_codes=("never",), reference="Monday"),
    ),
    ClassTarget("ill", ("nein", "ja"), fold_case=True, missing_codes=("offen",)),
)
RECORDS: dict[str, list[str]] = {
    "age": ["55", "9999", "NA", "9999.0", "111"],
    "cost": ["1", "100000", "-1", "-1.0", "10"],
    "stay": ["2", "99", "5", "8", ""],
    "sex": ["W", "M\u00c4NNLICH", "x", "9", "d"],
    "smoker": ["JA", "yes", "k.A.", "No", ""],
    "born": ["1.1.1976", "01.01.1900", "31.12.1999 10:30", "1976-01-01", "30.02.1980"],
    "admitted": ["2021-07-01", "", "2099-01-01", "2016-12-31", "x"],
    "left": ["2026-01-05", "2026-01-06", "never", "2026-01-11", "2026-13-01"],
    "ill": ["Ja", "NEIN", "ja", "offen", "ja"],
}


def write_csv(path: Path) -> Path:
    lines = [
        ",".join(RECORDS),
        *(",".join(record) for record in zip(*RECORDS.values(), strict=True)),
    ]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_codes_are_missing_before_values_are_clipped() -> None:
    column = Number("age", 0, 110, missing=Indicator(), missing_codes=(9999,))
    rows = column.encode(np.array(["110", "9999", "9999.0", "9998"]))
    assert rows.tolist() == [[0.5, 0.0], [0.0, 1.0], [0.0, 1.0], [0.5, 0.0]]
    stays = Intervals("stay", (3, 7), missing=Indicator(), missing_codes=(99,))
    assert stays.encode(np.array([99.0, 98.0])).tolist() == [[0, 0, 0, 1], [0, 0, 1, 0]]
    labels, mask = NumberTarget("days", 0, 14, (999,)).encode(_values([3.0, 999.0, 20.0]))
    assert (labels.tolist(), mask.tolist()) == ([3.0, 14.0], [True, False, True])
    small = Number("t", 0, 110, missing_codes=(99.9,)).encode(np.array([99.9], dtype=np.float32))
    assert small.tolist() == [[0.0]]
    assert OpenNumber("age", 0, 110, missing_codes=(9999,)).encode(np.array([9999.0]))[0, 0] != 0


def _values(values: list[Any]) -> Any:
    from tacit.io.values import ArrayValues

    return ArrayValues(np.array(values))


def test_every_reader_gives_the_same_rows(tmp_path: Path) -> None:
    rows, labels = encode_file(write_csv(tmp_path / "x.csv"), SCHEMA)
    assert labels.tolist() == ["ja", "nein", "ja", "ja"]  # "offen" has no label
    names = SCHEMA.feature_names
    found = {name: rows[:, place].round(6).tolist() for place, name in enumerate(names)}
    assert found["age"] == [0.0, 0.0, 0.0, 0.5]
    assert found["age is missing"] == [0, 1, 1, 0]
    assert found["log cost"][:3] == [-0.5, 0.5, 0.0]
    assert found["sex=male"] == [0, 1, 0, 0.5]
    assert found["sex is missing"] == [0, 0, 1, 0]
    assert found["smoker"] == [0, 0.5, 0, 0]
    assert found["age by born"] == pytest.approx([-0.0455, 0, -0.263587, 0], abs=1e-4)
    assert found["year of admitted"] == pytest.approx([0, -0.1, 0.5, -0.1])
    assert found["left=Tuesday"] == pytest.approx([0, 1, 1 / 7, 1 / 7], abs=1e-6)
    table = pa.table(RECORDS)
    parquet.write_table(table, tmp_path / "x.parquet")
    again = [encode_file(tmp_path / "x.parquet", SCHEMA)]
    frames = (table, RECORDS, pd.DataFrame(RECORDS), pl.DataFrame(RECORDS))
    again += [encode_table(frame, SCHEMA) for frame in frames]
    for other, words in again:
        np.testing.assert_array_equal(other, rows)
        assert words.tolist() == labels.tolist()


def test_workers_of_a_cluster_read_them_too(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "x.csv")
    rows, _ = encode_file(path, SCHEMA)
    bounds = Bounds(row_norm=SCHEMA.row_norm)
    records = DaskRecords.from_files(str(path), SCHEMA, bounds, AtOnce())
    ones = np.ones(rows.shape[1])
    (total,) = records.sum(lambda block: (block.weighted_sum(np.ones(len(block.labels))),))
    np.testing.assert_allclose(total @ ones, rows.sum(), atol=1e-9)


def test_types_for_dates_are_dates(tmp_path: Path) -> None:
    days = [datetime.datetime(1976, 1, 1, 23, 59), None, datetime.datetime(1900, 1, 1)]
    columns = (Age("d", "2026-01-01", 0, 110, missing_codes=("1900-01-01",)), Weekday("e"))
    schema = Schema(columns, ClassTarget("y", ("a", "b")))
    expected, _ = encode_table(
        {
            "d": ["1976-01-01", None, "1900-01-01"],
            "e": ["1976-01-01", "", "1900-01-01"],
            "y": "aba",
        },
        schema,
    )
    table = pa.table({"d": pa.array(days), "e": pa.array(days, pa.date32()), "y": list("aba")})
    parquet.write_table(table, tmp_path / "x.parquet")
    for frame in (table, table.to_pandas(), pl.from_arrow(table)):
        np.testing.assert_array_equal(encode_table(frame, schema)[0], expected)
    np.testing.assert_array_equal(encode_file(tmp_path / "x.parquet", schema)[0], expected)
    checks = check_file(tmp_path / "x.parquet", schema)
    assert [(c.missing, c.unreadable) for c in checks] == [(2, 0), (1, 0), (0, 0)]
    zoned = pa.table({"d": pa.array(days, pa.timestamp("us", "UTC")), "e": days, "y": list("aba")})
    with pytest.raises(ValueError, match="column 'd' is of type timestamp"):
        encode_table(zoned, schema)


def test_a_check_tells_codes_from_unreadable_values(tmp_path: Path) -> None:
    found = {c.name: c for c in check_file(write_csv(tmp_path / "x.csv"), SCHEMA)}
    counts = {name: (c.missing, c.unreadable, c.clipped) for name, c in found.items()}
    assert counts["age"] == (3, 0, 1)
    assert counts["cost"] == (2, 0, 0)
    assert counts["sex"] == (2, 1, 0)
    assert counts["smoker"] == (2, 1, 0)  # "JA" is no word of it
    assert counts["born"] == (1, 2, 0)
    assert counts["admitted"] == (1, 1, 1)
    assert counts["left"] == (1, 1, 0)
    assert counts["ill"] == (1, 0, 0)


def test_a_schema_keeps_them_in_its_file(tmp_path: Path) -> None:
    assert Schema.from_dict(SCHEMA.to_dict()) == SCHEMA
    path = tmp_path / "schema.toml"
    path.write_text(SCHEMA.to_toml(), encoding="utf-8")
    assert Schema.from_file(path) == SCHEMA
    assert (
        'values = { female = ["w", "weiblich"], male = ["m", "m\u00e4nnlich"] }' in path.read_text()
    )
    path.write_text(
        '[columns]\nborn = { kind = "age", origin = 2026-01-01, lower = 0, upper = 110 }\n'
        "age = { kind = 'number', lower = 0, upper = 110, missing_codes = [9999, \"NA\"] }\n"
    )
    born, age = Schema.from_file(path).columns
    assert born == Age("born", "2026-01-01", 0, 110)
    assert age == Number("age", 0, 110, missing_codes=("9999", "NA"))
    # The digest of a schema without the new keys is what it was.
    assert Schema((Number("age", 0, 110),)).to_dict()["columns"] == [
        {"name": "age", "kind": "number", "lower": 0, "upper": 110}
    ]


@pytest.fixture(scope="module")
def fitted() -> PrivatePipeline:
    rng = np.random.default_rng(0)
    n = 4000
    age = rng.uniform(0, 100, n)
    y = 0.02 * age + rng.normal(0, 0.3, n)
    schema = Schema(
        (Number("age", 0, 100, per=10), Number("cost", 1, 100, log=True, per=10)),
        NumberTarget("y", -3, 5),
    )
    model = TableModel(schema, LinearRegression(50.0, 1e-6, inference=0.5, random_state=0))
    return model.fit({"age": age, "cost": np.exp(rng.uniform(0, np.log(100), n)), "y": y})


def test_a_summary_tells_effects_in_the_declared_unit(
    fitted: PrivatePipeline, tmp_path: Path
) -> None:
    age, cost, _ = fitted.summary().rows()
    whole, whole_cost, intercept = fitted.estimator_.summary().rows()
    assert (age["term"], cost["term"]) == ("age (per 10)", "log cost (per factor 10)")
    assert age["coefficient"] == pytest.approx(0.2, abs=0.05)
    assert age["coefficient"] == pytest.approx(whole["coefficient"] / 10)
    assert age["standard_error"] == pytest.approx(whole["standard_error"] / 10)
    assert cost["coefficient"] == pytest.approx(whole_cost["coefficient"] / 2)
    assert (age["z"], age["p"]) == pytest.approx((whole["z"], whole["p"]))
    assert fitted.summary().rows()[2]["coefficient"] == intercept["coefficient"]
    save(fitted, tmp_path / "model.tacit")
    loaded = load(tmp_path / "model.tacit")
    assert loaded.summary() == fitted.summary()


def test_a_saved_model_reads_as_the_one_that_was_fitted(tmp_path: Path) -> None:
    table = {name: values * 40 for name, values in RECORDS.items()}
    model = TableModel(SCHEMA, LogisticRegression(5.0, 1e-6, random_state=0)).fit(table)
    save(model, tmp_path / "model.tacit")
    loaded = load(tmp_path / "model.tacit")
    assert loaded.schema == SCHEMA
    np.testing.assert_array_equal(loaded.predict_proba(RECORDS), model.predict_proba(RECORDS))


def test_a_column_becomes_a_target_with_its_words() -> None:
    merged = Schema(SCHEMA.columns).with_target("sex").target
    assert isinstance(merged, ClassTarget)
    assert merged.encode(_values(["W", "x", "M"]))[0].tolist() == ["female", "male"]
    numbers = Schema(SCHEMA.columns).with_target("age").target
    assert isinstance(numbers, NumberTarget)
    assert numbers.missing_codes == ("9999", "NA", "?", "unbekannt")


def test_a_learned_word_that_means_missing_is_no_word() -> None:
    schema = Schema((OpenCategory("town", 3, missing_codes=("keine",)),))
    (town,) = schema.with_words({"town": ["Oslo", "keine", "Rom"]}).columns
    assert isinstance(town, OpenCategory)
    assert town.learned == ("Oslo", "Rom")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Number("a", 0, 1, missing_codes=9), "missing_codes must be a list, got 9"),
        (lambda: Number("a", 0, 1, missing_codes=(" 9",)), "missing_codes holds ' 9'"),
        (lambda: Category("a", ("9",), missing_codes=(9,)), "missing_codes lists '9', which is"),
        (
            lambda: Category("a", ("na",), missing_codes=("NA",), fold_case=True),
            "missing_codes lists 'NA'",
        ),
        (
            lambda: Category("a", ("m", "M"), fold_case=True),
            "lists 'm' and 'M', which are the same",
        ),
        (lambda: Category("a", ("m",), fold_case="yes"), "fold_case must be true or false"),
        (lambda: Category.merged("a", {"x": ["1"], "y": ["1"]}), "the value '1' is in the values"),
        (
            lambda: Category.merged("a", {"x": ["y"], "y": ["x"]}),
            "is named as a value of the level",
        ),
        (lambda: Boolean("a", ("J",), ("j",), fold_case=True), "is in both true and false"),
        (lambda: Number("a", 0, 1, per=0), "per must be above 0, got 0"),
        (lambda: Number("a", 1, 9, log=True, per=1), "per must be above 1, got 1"),
        (lambda: OpenNumber("a", 0, 1, per=1), "whose range is learned"),
        (lambda: Age("a", "1.1.2026", 0, 110), "origin must be a date, got '1.1.2026'"),
        (lambda: Age("a", "2026-02-30", 0, 110), "origin must be a date"),
        (lambda: Year("a", 2000, 2026, format="%d.%m.%y"), "format must have %Y, %m and %d"),
        (lambda: Weekday("a", reference="Someday"), "reference = 'Someday' is none"),
        (lambda: Weekday("a", missing=Fill("x")), "is not among its values"),
    ],
)
def test_errors_name_key_value_and_remedy(make: Any, message: str) -> None:
    with pytest.raises(SchemaError, match=r"column 'a'") as error:
        make()
    assert message in str(error.value)
