import json
import re
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tacit.io.values import MISSING_WORDS
from tacit.schema import (
    Boolean,
    Category,
    ClassTarget,
    Fill,
    Ignored,
    Indicator,
    Intervals,
    Neutral,
    Number,
    NumberTarget,
    Schema,
    SchemaError,
)
from tests.schema.helpers import SCHEMA

TOML = """
n_records = 1000

[columns]
age = { kind = "number", lower = 0, upper = 100 }
size = { kind = "number", lower = 1, upper = 1e3, log = true, missing = "indicator" }
hours = { kind = "intervals", cuts = [10, 40.5], missing = { value = 40 } }
code = { kind = "category", values = [1, 2, true], missing = { value = 2 } }
"blood group" = { kind = "category", values = [
  "A", "B", "AB", "0",
], confirmed = false }
smoker = { kind = "boolean", true = ["oui"], false = ["non"], missing = "neutral" }
name = { kind = "ignored" }
ill = { kind = "target", classes = [false, true] }
"""
FACTS = Schema(
    (
        Number("age", 0, 100),
        Number("size", 1, 1000, log=True, missing=Indicator()),
        Intervals("hours", (10, 40.5), Fill(40)),
        Category("code", ("1", "2", "true"), Fill("2")),
        Category("blood group", ("A", "B", "AB", "0")),
        Boolean("smoker", ("oui",), ("non",), Neutral()),
        Ignored("name"),
    ),
    ClassTarget("ill", (False, True)),
    1000,
    ("blood group",),
)


def write(folder, text, name="schema.toml"):
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_every_key_is_read(tmp_path):
    assert Schema.from_file(write(tmp_path, TOML)) == FACTS
    assert Schema.from_file(str(write(tmp_path, TOML.replace("\n", "\r\n")))) == FACTS
    assert Schema.from_file(write(tmp_path, b"\xef\xbb\xbf" + TOML.encode())) == FACTS


def test_json_has_the_same_shape(tmp_path):
    record = tomllib.loads(TOML)
    assert Schema.from_file(write(tmp_path, json.dumps(record), "schema.JSON")) == FACTS
    assert Schema.from_dict(record) == FACTS


def test_columns_may_be_a_list_of_tables(tmp_path):
    text = "[[columns]]\nname = 'b'\nkind = 'ignored'\n[[columns]]\nname='a'\nkind='ignored'\n"
    assert Schema.from_file(write(tmp_path, text)) == Schema((Ignored("b"), Ignored("a")))


NAMES = st.text(min_size=1, max_size=6).filter(lambda s: s == s.strip())
FLOATS = st.floats(-1e300, 1e300)
RANGES = st.tuples(FLOATS, FLOATS).map(sorted).filter(lambda r: r[0] < r[1])
WORDS = st.lists(NAMES, min_size=2, max_size=12, unique=True).map(tuple)
COLUMNS = st.one_of(
    st.builds(lambda n, r: Number(n, *r), NAMES, RANGES),
    st.builds(lambda n, r: Number(n, *r, missing=Fill(r[0])), NAMES, RANGES),
    st.builds(Category, NAMES, WORDS),
    st.builds(lambda n, v: Category(n, v, Fill(v[0])), NAMES, WORDS),
    st.builds(lambda n, v: Boolean(n, v[:1], v[1:], Indicator()), NAMES, WORDS),
    st.builds(lambda n, r: Intervals(n, tuple(r), Fill(r[0])), NAMES, RANGES),
    st.builds(Ignored, NAMES),
)
TARGETS = st.one_of(
    st.none(),
    st.builds(ClassTarget, NAMES, WORDS),
    st.builds(lambda n, r: NumberTarget(n, *r), NAMES, RANGES),
    st.just(ClassTarget("t", (-1, 1))),
    st.builds(lambda n, v: ClassTarget(n, ("\x01b", "\x01a"), (v[:1], v[1:])), NAMES, WORDS),
)


@st.composite
def schemas(draw):
    columns = draw(st.lists(COLUMNS, max_size=5, unique_by=lambda column: column.name))
    target = draw(TARGETS)
    columns = [c for c in columns if target is None or c.name != target.name]
    try:
        schema = Schema(tuple(columns), target, draw(st.one_of(st.none(), st.integers(1, 2**60))))
    except SchemaError:  # two features of one name
        return SCHEMA
    return replace(schema, unconfirmed=schema.names[: draw(st.integers(0, 3))])


@given(schemas())
@example(SCHEMA)
@example(FACTS)
@example(Schema((Category("\x7f\u2028'\"\\", tuple(f"\x01value {i}" for i in range(40))),)))
def test_what_is_written_is_read_back(schema):
    assert Schema.from_dict(tomllib.loads(schema.to_toml())) == schema
    assert Schema.from_dict(json.loads(json.dumps(schema.to_dict()))) == schema
    assert Schema.from_dict(schema.to_dict()).digest() == schema.digest()


MERGED = 'readmitted = { kind = "target", classes = { other = [">30", "NO"], early = ["<30"] } }'


def test_merged_classes_are_written_as_they_are_read(tmp_path):
    schema = Schema.from_file(write(tmp_path, f"[columns]\n{MERGED}\n"))
    assert schema.target == ClassTarget("readmitted", ("other", "early"), ((">30", "NO"), ("<30",)))
    assert schema.to_toml().splitlines()[-1] == MERGED
    same = Schema.from_file(write(tmp_path, json.dumps(schema.to_dict()), "schema.json"))
    assert same == schema
    # the order of classes and what is merged are facts
    turned = ClassTarget("readmitted", ("early", "other"), (("<30",), (">30", "NO")))
    fewer = ClassTarget("readmitted", ("other", "early"), ((">30",), ("<30",)))
    digests = {replace(schema, target=t).digest() for t in (schema.target, turned, fewer)}
    assert len(digests) == 3


def line(text):
    return f"[columns]\nage = {text}\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (line('{ kind = "number", upper = 9 }'), "column 'age': lower is not declared; write"),
        (line('{ kind = "number", lower = 9 }'), "column 'age': upper is not declared; write"),
        (line('{ kind = "number", lower = 9, upper = 3 }'), "column 'age': lower must be below"),
        (line('{ kind = "number", lower = 9, upper = inf }'), "column 'age': upper must be a"),
        (line('{ kind = "number", lower = 0, upper = 9, lo = 1 }'), "'age'.*key 'lo' is not known"),
        (line('{ kind = "number", lower = 0, upper = 9, values = [] }'), "'age'.*key 'values'"),
        (line('{ kind = "category" }'), "column 'age': values is not declared"),
        (line('{ kind = "intervals" }'), "column 'age': cuts is not declared"),
        (line('{ kind = "integer" }'), "column 'age': kind = 'integer'.*one of number"),
        (line("{ kind = [] }"), "column 'age': kind = "),
        (line("{ lower = 3 }"), "column 'age': kind is not declared"),
        (line("3"), "column 'age': must be a table"),
        (line('{ kind = "ignored", confirmed = "no" }'), "column 'age': confirmed must be"),
        (line('{ kind = "boolean", missing = "mean" }'), "column 'age': missing = 'mean'"),
        (line('{ kind = "boolean", missing = { valu = 1 } }'), "column 'age': missing = "),
        (line('{ kind = "target" }'), "column 'age': a target has either classes or lower"),
        (line('{ kind = "target", classes = [0, 1], lower = 0 }'), "column 'age': a target has"),
        (line('{ kind = "target", lower = 0 }'), "column 'age': upper is not declared"),
        (line('{ kind = "target", classes = "ab" }'), "column 'age': classes must be a list"),
        (line('{ kind = "target", classes = [[1], [2]] }'), "column 'age': classes holds"),
        (line('{ kind = "target", classes = { a = ["x"] } }'), "classes must be at least two"),
        (line('{ kind = "target", classes = { a = ["x"], b = "y" } }'), "class 'b' must be a list"),
        (line('{ kind = "target", classes = { a = ["x"], b = [] } }'), "the class 'b' is empty"),
        (line('{ kind = "target", classes = { a = [1], b = ["1"] } }'), "'1' is in the classes"),
        (line('{ kind = "target", classes = { a = ["b"], b = ["c"] } }'), "'b' is named as a"),
        (line('{ kind = "target", classes = ["a", { name = "b", values = [1] }] }'), "all tables"),
        (line("1979-05-27"), "column 'age': must be a table"),
        (
            '[columns]\na = { kind = "target", classes = [0, 1] }\n'
            'b = { kind = "target", classes = [0, 1] }',
            "column 'b': kind = 'target' a second time, after 'a'",
        ),
        ("[columns]\n' age' = { kind = 'ignored' }", "a column is named ' age'"),
        ("[[columns]]\nkind = 'ignored'", "name is not declared"),
        ("columns = [1]", "name is not declared"),
        ("[[columns]]\nname = [1]\nkind = 'ignored'", "a column is named"),
        ("columns = 3", "no columns"),
        ("", "no columns"),
        ("[column]", "key 'column' is not known"),
        ("n_records = 0\n[columns]", "n_records must be"),
        ("format = 'other'\n[columns]", "format and version"),
        ("version = 2\n[columns]", "format and version"),
        ("[columns", "not valid TOML"),
        ("[columns]\na = { kind = 'ignored' }\na = { kind = 'ignored' }", "not valid TOML"),
        ("x = " + "[" * 100_000, "nested too deeply|not valid TOML"),
        ("x = 1" + "0" * 5000, "not valid TOML"),
        (b"\xff", "not text in UTF-8"),
    ],
)
def test_errors_name_file_column_key_and_remedy(tmp_path, text, message):
    with pytest.raises(SchemaError, match=message) as refusal:
        Schema.from_file(write(tmp_path, text))
    assert "schema.toml" in str(refusal.value)


def test_json_errors(tmp_path):
    for text, message in [
        ("[1]", "a schema is a table"),
        ('{"columns": {"a": {"kind": "ignored"}, "a": {"kind": "ignored"}}}', "'a' occurs twice"),
        ('{"columns": {"a": {"kind": "number", "lower": NaN, "upper": 1}}}', "lower must be"),
        ('{"columns": {"a": {"kind": "number", "lower": 0, "upper": 1e999}}}', "upper must be"),
        ('{"columns": {"\\ud800": {"kind": "ignored"}}}', "a column is named"),
        ("[" * 100_000, "nested too deeply"),
    ]:
        with pytest.raises(SchemaError, match=message):
            Schema.from_file(write(tmp_path, text, "schema.json"))


def test_files_that_cannot_be_read(tmp_path):
    for path, message in [
        (tmp_path / "none.toml", "no such file"),
        (tmp_path, "is a directory"),
        (tmp_path / ("x" * 5000), r"cannot be read \(File name too long\)|no such file"),
        ("a\0b.toml", "not valid|no such file"),
        (write(tmp_path, TOML, "schema.yaml"), r"\.toml or a \.json"),
        (write(tmp_path, b"#" * (2**24 + 1)), "larger than 16 MiB"),
    ]:
        with pytest.raises(SchemaError, match=message):
            Schema.from_file(path)


VALUES = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=4), st.just(10**400)
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=6,
)
ALL_KEYS = (
    "kind lower upper log cuts values true false missing confirmed classes name value columns "
    "n_records format version \ud800"
)
KEYS = st.sampled_from(ALL_KEYS.split())
LINES = st.dictionaries(
    KEYS,
    st.one_of(
        VALUES,
        st.sampled_from(["number", "category", "boolean", "target", "ignored", "intervals"]),
        st.just(["a", "b"]),
        st.just({"value": 1}),
    ),
    max_size=5,
)
RECORDS = st.one_of(
    VALUES,
    st.dictionaries(KEYS, VALUES, max_size=4),
    st.fixed_dictionaries({"columns": st.dictionaries(st.text(max_size=3), LINES, max_size=3)}),
    st.fixed_dictionaries({"columns": st.lists(LINES, max_size=3)}),
)


def only_schema_errors(call, *arguments):
    try:
        schema = call(*arguments)
    except SchemaError:
        return
    assert Schema.from_dict(schema.to_dict()) == schema


@settings(max_examples=500)
@given(RECORDS)
def test_no_record_gives_another_error(record):
    only_schema_errors(Schema.from_dict, record)


@settings(max_examples=500, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_no_file_gives_another_error(tmp_path, data):
    """A valid file with bytes changed, cut out and put in, and any bytes at all."""
    name = data.draw(st.sampled_from(["schema.toml", "schema.json"]))
    valid = TOML if name.endswith("toml") else json.dumps(FACTS.to_dict())
    content = bytearray(valid.encode())
    for _ in range(data.draw(st.integers(0, 4))):
        start = data.draw(st.integers(0, len(content)))
        stop = min(len(content), start + data.draw(st.integers(0, 6)))
        content[start:stop] = data.draw(
            st.one_of(st.binary(max_size=4), st.sampled_from([b"{", b"]", b'"', b"=", b"\n", b"9"]))
        )
    if data.draw(st.integers(0, 9)) == 0:
        content = bytearray(data.draw(st.binary()))
    only_schema_errors(Schema.from_file, write(tmp_path, bytes(content), name))


def test_the_file_in_the_documentation_is_a_schema():
    page = (Path(__file__).parents[2] / "docs" / "schema.md").read_text(encoding="utf-8")
    (text,) = re.findall(r"^```toml\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    schema = Schema.from_dict(tomllib.loads(text))
    assert {line["kind"] for line in schema.to_dict()["columns"]} == {
        "number", "intervals", "category", "boolean", "ignored", "target",
    }  # fmt: skip
    for word in MISSING_WORDS - {""}:
        assert f"`{word}`" in page
