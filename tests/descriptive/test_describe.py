"""`tacit.describe` in memory and on files: figures, costs, people, and refusals before a charge."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import tacit
from tacit.descriptive import DescriptionPlan, Figure, Width, plan_description
from tacit.ledger import Ledger
from tacit.privacy import Accountant, Budget, Gaussian, PureEpsilon
from tacit.privacy.accountant import BudgetExceeded
from tacit.records.coded_table import CodedTable
from tacit.schema import (
    Category,
    ClassTarget,
    Ignored,
    Number,
    NumberTarget,
    OpenCategory,
    Schema,
    SchemaError,
    TableError,
)
from tests.descriptive.helpers import COLUMNS, SCHEMA, people


@pytest.fixture(scope="module")
def table() -> dict[str, Any]:
    return people()


def test_without_noise_figures_are_those_of_pandas(table: dict[str, Any]) -> None:
    found = tacit.describe(table, SCHEMA, math.inf, whole=["age"], bins=1024)
    frame = pd.DataFrame(table)
    age = frame["age"].clip(0, 100)
    assert found.figure("records", "count").value == len(frame)
    assert found.figure("age", "missing").value == frame["age"].isna().sum()
    assert found.figure("age", "mean").value == pytest.approx(age.mean(), abs=1e-3)
    assert found.figure("age", "sd").value == pytest.approx(age.std(ddof=0), abs=1e-3)
    for name, rank in (("q25", 0.25), ("median", 0.5), ("q75", 0.75)):
        exact = np.quantile(age.dropna(), rank, method="inverted_cdf")
        assert found.figure("age", name).value == exact
    logs = np.log(np.clip(frame["income"], 1, 1e6))
    mean = found.figure("income", "geometric mean").value
    assert mean == pytest.approx(math.exp(logs.mean()), rel=1e-3)
    spread = found.figure("income", "geometric sd").value
    assert spread == pytest.approx(math.exp(logs.std(ddof=0)), rel=1e-3)
    assert found.figure("income", "median").value == pytest.approx(
        frame["income"].median(), rel=0.01
    )
    present = frame["ward"].notna().sum()
    for level in ("A", "B", "C"):
        share = (frame["ward"] == level).sum() / present
        assert found.figure("ward", "share", level).value == pytest.approx(share)
    assert found.figure("ward", "share", "(other)").n == (frame["ward"] == "X").sum()
    assert found.figure("smoker", "share", "true").value == pytest.approx(frame["smoker"].mean())
    cut = pd.cut(frame["bmi"], [-np.inf, 18.5, 25, 30, np.inf], right=False).value_counts(
        sort=False
    )
    assert [f.n for f in found.of("bmi", "share")] == cut.tolist()
    assert found.figure("ill", "share", "yes").n == (frame["ill"] == "yes").sum()
    assert not found.privacy_.within(100.0, 1e-6)


def test_groups_without_noise_are_those_of_pandas(table: dict[str, Any]) -> None:
    found = tacit.describe(table, SCHEMA, math.inf, by="ill", whole=["age"], bins=1024)
    frame = pd.DataFrame(table)
    assert found.groups == ("all", "no", "yes")
    for group, part in frame.groupby("ill"):
        assert found.figure("records", "count", group=group).value == len(part)
        age = part["age"].clip(0, 100)
        assert found.figure("age", "mean", group=group).value == pytest.approx(age.mean(), abs=1e-3)
        share = (part["ward"] == "A").sum() / part["ward"].notna().sum()
        assert found.figure("ward", "share", "A", group).value == pytest.approx(share)


@pytest.mark.parametrize("delta", [1e-6, 0.0])
def test_margins_add_up_and_nothing_is_negative(table: dict[str, Any], delta: float) -> None:
    found = tacit.describe(table, SCHEMA, 0.3, delta, by="ill")
    total = found.figure("records", "count").value
    for group in found.groups:
        size = found.figure("records", "count", group=group).n
        for column in ("age", "ward", "smoker", "bmi", "income"):
            kind = "histogram" if column in ("age", "income") else "share"
            parts = [f.n for f in found.of(column, kind, group)]
            missing = found.figure(column, "missing", group=group).n
            assert all(n is not None and n >= 0 for n in parts)
            assert missing is not None
            assert sum(n or 0 for n in parts) + missing == size
    sizes = [found.figure("records", "count", group=group).value for group in found.groups[1:]]
    # Records of no declared group are missing values of the column of groups.
    assert sum(sizes) + found.figure("ill", "missing").value == total
    for figure in found:
        assert figure.low <= figure.high
        assert figure.table_low <= figure.table_high
        if "share" in figure.figure or figure.figure == "histogram":
            assert 0.0 <= figure.low <= figure.high <= 1.0


def test_one_event_is_charged_of_the_kind_that_delta_asks_for(table: dict[str, Any]) -> None:
    accountant = Accountant(Budget(1.0, 1e-6))
    found = tacit.describe(table, SCHEMA, 0.5, 1e-6, by="ward", accountant=accountant)
    assert isinstance(found.privacy_.event, Gaussian)
    assert found.privacy_.within(0.5, 1e-6)
    assert found.privacy_.epsilon(1e-6) > 0.49
    with pytest.raises(BudgetExceeded):
        tacit.describe(table, SCHEMA, 0.9, 1e-6, accountant=accountant)
    pure = tacit.describe(table, SCHEMA, 0.5, 0.0)
    assert pure.privacy_.event == PureEpsilon(0.5)


def test_a_ledger_is_charged(table: dict[str, Any], tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "a.ledger", Budget(1.0, 1e-5))
    tacit.describe(table, SCHEMA, 0.5, 1e-6, accountant=ledger)
    assert 0.3 < ledger.spent() < 0.7


def test_noise_is_as_planned(table: dict[str, Any]) -> None:
    plan = plan_description(SCHEMA, 1.0, 1e-6, columns=["ward"])
    exact = (np.array(table["ward"]) == "A").sum()
    errors = [
        tacit.describe(table, SCHEMA, 1.0, 1e-6, columns=["ward"], random_state=seed)
        .figure("ward", "share", "A")
        .n
        - exact
        for seed in range(200)
    ]
    # A count moved to the estimated size keeps its variance if the size comes from it alone.
    std = plan.noise_std / plan.counts.columns[0].weight
    assert np.std(errors) == pytest.approx(std, rel=0.2)
    assert abs(np.mean(errors)) < 4 * std / math.sqrt(200)


def test_a_number_of_records_that_is_public_is_not_estimated(table: dict[str, Any]) -> None:
    found = tacit.describe(table, SCHEMA, 1.0, relation="replace", n_records=6000, by="ill")
    records = found.figure("records", "count")
    assert records.value == 6000
    assert records.low == pytest.approx(6000, abs=1e-3)
    assert records.high == pytest.approx(6000, abs=1e-3)


@pytest.mark.parametrize("suffix", ["csv", "parquet", "feather"])
def test_a_file_gives_the_same_bits_as_memory(
    table: dict[str, Any], tmp_path: Path, suffix: str
) -> None:
    frame = pd.DataFrame(table)
    path = tmp_path / f"people.{suffix}"
    write = {"csv": frame.to_csv, "parquet": frame.to_parquet, "feather": frame.to_feather}
    write[suffix](path, **({"index": False} if suffix == "csv" else {}))
    inside = tacit.describe(frame, SCHEMA, 1.0, random_state=1)
    outside = tacit.describe(path, SCHEMA, 1.0, random_state=1)
    assert outside.figures == inside.figures


def test_several_files_are_one_table(table: dict[str, Any], tmp_path: Path) -> None:
    frame = pd.DataFrame(table)
    frame[:1000].to_csv(tmp_path / "a.csv", index=False)
    frame[1000:].to_csv(tmp_path / "b.csv", index=False)
    whole = tacit.describe(frame, SCHEMA, 1.0, random_state=1)
    assert (
        tacit.describe(str(tmp_path / "*.csv"), SCHEMA, 1.0, random_state=1).figures
        == whole.figures
    )
    paths = [tmp_path / "a.csv", tmp_path / "b.csv"]
    assert tacit.describe(paths, SCHEMA, 1.0, random_state=1).figures == whole.figures


def test_one_record_of_each_person_counts(table: dict[str, Any], tmp_path: Path) -> None:
    frame = pd.concat([pd.DataFrame(table)] * 3, ignore_index=True)
    who = [f"p{i % 6000}" for i in range(len(frame))]
    found = tacit.describe(frame, SCHEMA, 4.0, unit=who, random_state=0)
    assert found.figure("records", "count").value == pytest.approx(6000, abs=60)
    assert found.privacy_.relation.by_person
    assert "One record of each person counts" in found.note
    frame["who"] = who
    frame.to_csv(tmp_path / "visits.csv", index=False)
    by_name = tacit.describe(tmp_path / "visits.csv", SCHEMA, 4.0, unit="who", random_state=0)
    declared = tacit.describe(frame, SCHEMA.with_unit("who"), 4.0, random_state=0)
    assert by_name.figures == declared.figures == found.figures


def test_a_person_with_many_records_moves_as_little_as_one_with_one(table: dict[str, Any]) -> None:
    few = {name: list(values[:50]) for name, values in table.items()}
    many = {name: values + [values[0]] * 500 for name, values in few.items()}
    who = list(range(50))
    exact = [
        tacit.describe(t, SCHEMA, math.inf, unit=w).figure("records", "count").value
        for t, w in ((few, who), (many, who + [50] * 500))
    ]
    assert exact == [50, 51]


def test_a_person_moves_the_total_by_no_more_than_the_sensitivity() -> None:
    rng = np.random.default_rng(0)
    plan = plan_description(SCHEMA, 1.0, relation="add_remove_person", by="ill")
    few = pd.DataFrame(people(60))
    stated = plan.counts.sensitivity(plan.facts)
    greatest = 0.0
    for seed in range(30):
        person = pd.DataFrame(people(int(rng.integers(1, 8)), seed))
        at = int(rng.integers(0, 60))  # the person's records stand among others'
        more = pd.concat([few[:at], person, few[at:]], ignore_index=True)
        who = [*(f"p{i % 25}" for i in range(at)), *["new"] * len(person)]
        who += [f"p{i % 25}" for i in range(at, 60)]
        without, withal = (
            plan.counts.total(CodedTable(t, plan.cells, unit=w), plan.facts)
            for t, w in ((few, [w for w in who if w != "new"]), (more, who))
        )
        greatest = max(greatest, stated.norm.length(withal - without) / stated.value)
    assert 0.5 < greatest <= 1.0


def test_large_tables_are_read_in_pieces() -> None:
    n = 150_000
    table = {"ward": np.array(["A", "B", "C"])[np.arange(n) % 3], "age": np.arange(n) % 100.0}
    schema = Schema((Category("ward", ("A", "B", "C")), Number("age", 0, 100)))
    found = tacit.describe(table, schema, math.inf)
    assert [f.n for f in found.of("ward", "share")] == [50_000, 50_000, 50_000, 0]
    assert found.figure("age", "mean").value == pytest.approx(49.5, abs=1e-3)
    by_person = tacit.describe(table, schema, math.inf, unit=list(range(n)))
    assert by_person.figure("ward", "share", "A").n == 50_000


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "no epsilon": ({"epsilon": 0.0}, "epsilon"),
    "negative epsilon": ({"epsilon": -1.0}, "epsilon"),
    "delta": ({"delta": 2.0}, "delta"),
    "no columns": ({"schema": Schema((Ignored("age"),))}, "nothing to describe"),
    "no chosen column": ({"columns": []}, "columns is empty"),
    "unknown column": ({"columns": ["nose"]}, "'nose', which is no column"),
    "a word for columns": ({"columns": "age"}, "a list of names"),
    "unknown group": ({"by": "nose"}, "'nose', which is no column"),
    "group of numbers": ({"by": "age"}, "is a number and has no levels"),
    "open words": ({"schema": Schema((OpenCategory("ward", 9),))}, "not declared"),
    "whole words": ({"whole": ["ward"]}, "whole names 'ward'"),
    "whole without integers": (
        {"schema": Schema((Number("age", 0.5, 0.7),)), "whole": ["age"]},
        "has no whole number",
    ),
    "n is missing": ({"relation": "replace"}, "n_records is not declared"),
    "n is 0": ({"n_records": 0}, "n_records"),
    "relation": ({"relation": "sometimes"}, "relation must be"),
    "people without unit": ({"relation": "add_remove_person"}, "no unit"),
    "replaced people": ({"relation": "replace", "unit": [1] * 6000}, "'replace'"),
    "confidence": ({"confidence": 1.5}, "confidence"),
    "bins": ({"bins": 2}, "bins"),
    "not a schema": ({"schema": "schema.toml"}, "Schema.from_file"),
    "unconfirmed": ({"schema": Schema(COLUMNS, unconfirmed=("age",))}, "not confirmed"),
    "no such column in the table": ({"schema": Schema((Number("nose", 0, 1),))}, "'nose'"),
    "short unit": ({"unit": [1, 2]}, "different lengths"),
    "delimiter": ({"delimiter": ";"}, "delimiter is for"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_work_is_refused_before_a_charge(table: dict[str, Any], name: str) -> None:
    changes, message = REFUSED[name]
    accountant = Accountant(Budget(1.0, 1e-6))
    arguments: dict[str, Any] = {"schema": SCHEMA, "epsilon": 0.5, **changes}
    with pytest.raises((ValueError, TypeError, SchemaError, TableError), match=message):
        tacit.describe(table, accountant=accountant, **arguments)
    assert accountant.spent() == 0.0


def test_a_file_that_is_not_there_is_refused_before_a_charge(tmp_path: Path) -> None:
    accountant = Accountant(Budget(1.0, 1e-6))
    with pytest.raises(TableError):
        tacit.describe(tmp_path / "no.csv", SCHEMA, 0.5, accountant=accountant)
    assert accountant.spent() == 0.0


def test_unconfirmed_lines_are_named_by_the_guarantee(table: dict[str, Any]) -> None:
    schema = Schema(COLUMNS, unconfirmed=("age",))
    found = tacit.describe(table, schema, 1.0, allow_unconfirmed=True)
    assert "'age' was guessed" in found.privacy_.statement()


def test_odd_values_raise_nothing() -> None:
    odd = [None, float("nan"), float("inf"), "x", b"\xff", object(), 2**70, "A", 5]
    table = dict.fromkeys(("age", "income", "ward", "smoker", "bmi", "ill"), odd)
    found = tacit.describe(table, SCHEMA, math.inf)
    assert found.figure("records", "count").value == len(odd)
    assert found.figure("ward", "share", "A").n == 1


def test_an_empty_table_is_described() -> None:
    table: dict[str, list[Any]] = {
        name: [] for name in ("age", "income", "ward", "smoker", "bmi", "ill")
    }
    for epsilon in (1.0, math.inf):
        found = tacit.describe(table, SCHEMA, epsilon, by="ill", random_state=0)
        assert found.figure("records", "count").low == 0.0
        assert str(found)


def test_a_starved_description_says_too_few() -> None:
    table = people(40)
    found = tacit.describe(table, SCHEMA, 0.1, by="ward")
    mean = found.figure("age", "mean", group="C")
    assert math.isnan(mean.value)
    assert (mean.low, mean.high) == (0.0, 100.0)
    assert "too few" in str(found)


def test_a_category_that_is_all_missing() -> None:
    schema = Schema((Category("ward", ("A", "B")),))
    found = tacit.describe({"ward": [None] * 100}, schema, math.inf)
    assert math.isnan(found.figure("ward", "share", "A").value)
    assert found.figure("ward", "missing share").value == 1.0


@pytest.mark.parametrize("value", [2.0, 5e8, 1e9])
def test_quartiles_of_values_that_crowd_in_one_bin_are_covered(value: float) -> None:
    schema = Schema((Number("x", 0, 1e9),))
    found = tacit.describe({"x": [value] * 2000}, schema, 1.0)
    for name in ("q25", "median", "q75"):
        figure = found.figure("x", name)
        assert figure.low <= value <= figure.high
        assert figure.table_low <= value <= figure.table_high


def test_every_kind_of_column_of_levels_can_be_the_groups(table: dict[str, Any]) -> None:
    frame = pd.DataFrame(table)
    groups = {
        "smoker": ("all", "false", "true"),
        "bmi": ("all", "bmi < 18.5", "18.5 <= bmi < 25", "25 <= bmi < 30", "bmi >= 30"),
        "ward": ("all", "A", "B", "C"),
    }
    for by, names in groups.items():
        found = tacit.describe(table, SCHEMA, math.inf, by=by, columns=["age"])
        assert found.groups == names
        assert found.columns == (by, "age")
    smokers = tacit.describe(table, SCHEMA, math.inf, by="smoker")
    assert smokers.figure("records", "count", group="true").n == frame["smoker"].sum()


def test_targets_are_described_like_columns() -> None:
    schema = Schema((Category("ward", ("A", "B")),), NumberTarget("days", 0, 30))
    table = {"ward": ["A", "B"] * 300, "days": [3.0, 45.0] * 300}
    found = tacit.describe(table, schema, math.inf, by="ward", whole=["days"])
    assert found.figure("days", "median", group="A").value == 3
    assert found.figure("days", "median", group="B").value == 30
    yes_no = Schema((Category("ward", ("A", "B")),), ClassTarget("ill", (False, True)))
    ill = tacit.describe({"ward": ["A", "B"], "ill": ["TRUE", True]}, yes_no, math.inf)
    assert ill.figure("ill", "share", "True").n == 2


def test_a_plan_says_how_wide_intervals_will_be_and_figures_have_one_class() -> None:
    plan = plan_description(SCHEMA, 1.0, 1e-6, n_records=2_000)
    assert isinstance(plan, DescriptionPlan)
    assert all(isinstance(width, Width) for width in plan.widths())
    found = tacit.describe(people(), SCHEMA, 1.0, 1e-6)
    assert all(isinstance(figure, Figure) for figure in found.figures)


def test_intervals_of_quartiles_hold_where_bins_are_wide() -> None:
    """Two thirds of the incomes are in one bin: even spread put the median 12 % too high."""
    schema = Schema((Number("income", 0, 2_000_000),))
    levels = {"q25": math.exp(10 - 0.67449), "median": math.exp(10), "q75": math.exp(10.67449)}
    for seed in range(10):
        incomes = np.exp(np.random.default_rng(seed).normal(10, 1, 20_000))
        found = tacit.describe({"income": incomes}, schema, 0.5, 1e-6, random_state=seed)
        for name, true in levels.items():
            figure = found.figure("income", name)
            assert figure.low <= true <= figure.high
