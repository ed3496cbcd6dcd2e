import tomllib

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from tacit.schema import (
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
from tacit.schema import draft as distinct
from tacit.schema.draft import round_outward
from tests.schema.helpers import HEADER, WORDS, write_csv


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
    assert all("confirmed = false" in line for line in body)
    for line in body:
        assert ("# ignored: " in line) == ('kind = "ignored"' in line)
        assert ("# ignored: " in line) != line.endswith("# guessed")


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


def lines_of(tmp_path, frame, suffix=".csv", target=None):
    """Return the drafted line of each column."""
    path = tmp_path / f"drafted{suffix}"
    if suffix == ".csv":
        frame.to_csv(path, index=False)
    else:
        frame.to_parquet(path)
    text = draft_schema(path, target)
    assert Schema.from_dict(tomllib.loads(text)).unconfirmed
    return {line.split(" = ")[0]: line for line in text.splitlines() if "# " in line[3:]}


N = 300
ODD = pd.DataFrame(
    {
        "date": pd.date_range("2001-01-01", periods=N).strftime("%Y-%m-%d"),
        "german": pd.date_range("2001-01-01", periods=N).strftime("%d.%m.%Y"),
        "time": pd.date_range("2001-01-01", periods=N).strftime("%Y-%m-%d %H:%M:%S"),
        "weight": [f"{40 + i / 7:.3f}".replace(".", ",") for i in range(N)],
        "dose": [("1,5", "2,25")[i % 2] for i in range(N)],
        "mostly": ["1,5" if i % 30 == 0 else str(i % 40) for i in range(N)],
        "name": [f"person {i}" for i in range(N)],
        "half": [f"x{i}" if i % 2 else str(i) for i in range(N)],
        "nothing": [""] * N,
    }
)


@pytest.mark.parametrize(
    ("name", "kind", "why"),
    [
        ("date", "ignored", "# ignored: looks like dates; "),
        ("german", "ignored", "# ignored: looks like dates; "),
        ("time", "ignored", "# ignored: looks like dates; "),
        ("weight", "ignored", "# ignored: looks like numbers with decimal commas; "),
        ("dose", "category", "# guessed; looks like numbers with decimal commas; "),
        ("mostly", "number", "# guessed; some have decimal commas and are not read; "),
        ("name", "ignored", "# ignored: 100 % of the different values are no numbers"),
        ("half", "ignored", "# ignored: 50 % of the different values are no numbers"),
        ("nothing", "ignored", "# ignored: it has no values"),
    ],
)
def test_a_draft_says_why(tmp_path, name, kind, why):
    line = lines_of(tmp_path, ODD)[name]
    assert f'kind = "{kind}"' in line
    assert why in line


def test_types_that_no_kind_reads(tmp_path):
    frame = pd.DataFrame({"when": pd.date_range("2001-01-01", periods=3), "age": [1, 2, 3]})
    assert "# ignored: stored as neither" in lines_of(tmp_path, frame, ".parquet")["when"]


def test_dates_and_decimal_commas_are_no_target(tmp_path):
    with pytest.raises(TableError, match=r"'weight'.*cannot be the target; it.*decimal commas"):
        lines_of(tmp_path, ODD, target="weight")
    assert "decimal commas" in lines_of(tmp_path, ODD, target="dose")["dose"]


IDENTIFIER = "# ignored: looks like an identifier; if it is not, kind = "


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
@pytest.mark.parametrize(
    ("name", "values", "is_identifier"),
    [
        ("case", np.arange(20) + 4711, True),
        ("case", np.arange(19) + 4711, False),  # a few differ by chance
        ("case", np.arange(40) // 2, False),
        ("case", np.append(np.arange(99), 0), False),  # one of them twice
        ("id", np.append(np.arange(99), 0), True),
        ("pid", np.arange(20) * 1000, True),
        ("pid", np.arange(5), False),  # a few differ by chance
        ("caseID", np.arange(20) * 7919, True),
        ("amount_paid", np.arange(200) ** 2 * 977, False),
        ("income", np.arange(200) ** 2 + 977, False),  # differs in every record, with gaps
        ("case", np.arange(200) * 10 + 977, True),  # counted up by ten
        ("case", np.append(np.arange(199) * 10, 5000), False),  # but for one of them
        ("case_id", np.append(np.arange(80), [0] * 20), True),  # some patients come again
        ("patient_nbr", np.repeat(np.arange(150) ** 2, 4), True),  # all of them do
        ("patientNr", np.repeat(np.arange(150) ** 2, 4), True),
        ("visits", np.repeat(np.arange(150) ** 2, 4), False),
        ("patient_nbr", np.repeat(np.arange(150) + 0.5, 4), False),  # no whole numbers
        ("paid", np.arange(40) + 0.5, False),  # no whole numbers
        ("share", np.linspace(0.0, 1.0, 50), False),
        ("case", np.append(np.arange(99.0), np.nan), False),  # one record has none
        ("case", np.arange(50_000), True),  # of several batches
        ("case", np.append(np.arange(50_000), 7), False),
    ],
)
def test_identifiers(tmp_path, suffix, name, values, is_identifier):
    frame = pd.DataFrame({name: values, "town": "Oslo"})
    line = lines_of(tmp_path, frame, suffix)[name]
    assert (IDENTIFIER in line) == is_identifier
    assert ('kind = "ignored"' in line) == is_identifier
    assert ('kind = "number", lower' in line) != is_identifier


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
@pytest.mark.parametrize(
    ("name", "values", "kind", "hint"),
    [
        ("admission_type_id", np.arange(300) % 8 + 1, "category", "# guessed; codes by its name; "),
        ("wardCode", np.array([20, 0, 100] * 99), "category", "# guessed; codes by its name; "),
        ("wards", np.arange(300) % 8, "number", "# guessed; few whole numbers; if they are codes"),
        ("wards", np.arange(300) % 21, "number", "# guessed"),  # more than few
        ("wards", np.arange(300) % 8 + 0.5, "number", "# guessed"),
        ("wards", np.arange(18) % 8, "number", "# guessed"),  # a few records have few values
        ("admission_type_id", np.arange(18) % 8, "number", "# guessed"),
    ],
)
def test_few_whole_numbers_may_be_codes(tmp_path, suffix, name, values, kind, hint):
    line = lines_of(tmp_path, pd.DataFrame({name: values, "town": "Oslo"}), suffix)[name]
    assert f'kind = "{kind}"' in line
    assert hint in line if hint != "# guessed" else line.endswith(hint)
    if name == "wardCode":  # in the order of numbers
        assert 'values = ["0", "20", "100"]' in line
    elif kind == "category":
        assert 'values = ["1", "2", "3", "4", "5", "6", "7", "8"]' in line


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
@pytest.mark.parametrize(
    ("name", "values", "may_be_unit"),
    [
        ("patient_id", np.arange(600) // 3 + 100, True),
        ("patient_id", np.arange(600) + 100, False),  # each once
        ("patient_id", [f"P{i // 3:04}" for i in range(600)], True),
        ("patient_id", [f"P{i:04}" for i in range(600)], False),
        ("remark", [f"word {i // 3}" for i in range(600)], False),  # not by its name
    ],
)
def test_an_identifier_that_repeats_may_be_a_unit(tmp_path, suffix, name, values, may_be_unit):
    line = lines_of(tmp_path, pd.DataFrame({name: values, "town": "Oslo"}), suffix)[name]
    assert 'kind = "ignored"' in line
    assert ('kind = "unit" protects' in line) == may_be_unit


def test_an_identifier_may_be_the_target_all_the_same(tmp_path):
    frame = pd.DataFrame({"cost": np.arange(30), "town": "Oslo"})
    line = lines_of(tmp_path, frame, target="cost")["cost"]
    assert 'kind = "target", lower = 0' in line


def test_only_some_records_are_remembered(tmp_path, monkeypatch):
    monkeypatch.setattr(distinct, "_MOST_RECORDS", 20)
    counted = distinct.Distinct(0.95)
    counted.add(20, [str(i) for i in range(20)])
    counted.add(20, ["0"])
    assert counted.is_each
    assert counted.n_records == 20


def test_headers_that_name_no_columns(tmp_path):
    for header in ("a,a", "a,"):
        (tmp_path / "x.csv").write_text(f"{header}\n1,2\n")
        with pytest.raises(TableError, match="column names must be distinct"):
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


def test_codes_of_a_code_book_are_no_numbers(tmp_path):
    codes = [str(250 + i / 100) for i in range(300)] + ["V58", "V57.1", "E849"]
    frame = {"diag": codes * 2, "few": (["276", "648", "8", "V58"] * 152)[:606]}
    pd.DataFrame(frame).to_csv(tmp_path / "x.csv", index=False)
    text = draft_schema(tmp_path / "x.csv")
    schema = Schema.from_dict(tomllib.loads(text))
    assert schema.columns == (Ignored("diag"), Category("few", ("276", "648", "8", "V58")))
    assert text.count("looks like codes of a code book") == 2


def test_codes_of_missing_values_are_guessed(tmp_path):
    ages = [*range(18, 90), 9999]
    frame = {"age": ages, "n": [*range(60, 132), 99], "t": [*np.linspace(0.5, 9, 72), -1]}
    frame["word"] = [*map(str, np.linspace(0.5, 9, 72)), "unknown"]
    pd.DataFrame(frame).to_csv(tmp_path / "x.csv", index=False)
    text = draft_schema(tmp_path / "x.csv")
    age, n, t, word = Schema.from_dict(tomllib.loads(text)).columns
    assert age == Number("age", 10, 90, missing_codes=("9999",))
    assert n == Number("n", 60, 140)  # 99 lies among the others
    assert t == Number("t", 0, 9, missing_codes=("-1",))
    assert word == Number("word", 0, 9)
    assert text.count("missing_codes were guessed too") == 2
    assert "some are words and not read" in text
