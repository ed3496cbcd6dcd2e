import json
from dataclasses import replace
from hashlib import sha256

import numpy as np
import pytest

from tacit.schema import (
    Boolean,
    Category,
    ClassTarget,
    Ignored,
    Intervals,
    Number,
    NumberTarget,
    Schema,
    SchemaError,
)
from tacit.schema.column_kinds import FALSE_WORDS, TRUE_WORDS
from tacit.schema.encoding import encode_rows
from tests.schema.helpers import ROWS, SCHEMA, columns


def test_names_and_norm():
    assert SCHEMA.names == ("age", "size", "hours", "town", "smoker", "name", "ill")
    assert SCHEMA.feature_names == (
        "age",
        "log size",
        "size is missing",
        "hours < 10",
        "10 <= hours < 40.5",
        "hours >= 40.5",
        "hours is missing",
        "town=Oslo",
        "town=Rome",
        "town=NA",
        "smoker",
    )
    assert SCHEMA.row_norm == pytest.approx(np.sqrt(3.5))  # two of the five reach one half only


def test_the_norm_is_reached_and_not_exceeded():
    table = {"age": ["100"], "size": [""], "hours": ["0"], "town": ["NA"], "smoker": ["yes"]}
    assert np.linalg.norm(encode_rows(table, SCHEMA.encoded)) == pytest.approx(SCHEMA.row_norm)
    assert np.linalg.norm(ROWS, axis=1).max() <= SCHEMA.row_norm
    assert np.allclose(encode_rows(columns(), SCHEMA.encoded), ROWS)


def test_the_digest_is_of_the_facts_and_stable():
    assert SCHEMA.digest() == Schema.from_dict(SCHEMA.to_dict()).digest()
    # Stored beside models: a change of this text is a change of the format.
    text = '{"columns":[{"kind":"number","lower":0,"name":"age","upper":100}],'
    text += '"format":"tacit-schema","version":1}'
    assert Schema((Number("age", 0.0, 100),)).digest() == sha256(text.encode()).hexdigest()
    others = [
        replace(SCHEMA, n_records=5),
        replace(SCHEMA, unconfirmed=("age",)),
        replace(SCHEMA, target=None),
        replace(SCHEMA, columns=SCHEMA.columns[::-1]),
    ]
    assert len({SCHEMA.digest(), *(other.digest() for other in others)}) == 5


def test_the_order_of_columns_survives_sorted_json():
    again = json.loads(json.dumps(SCHEMA.to_dict(), sort_keys=True))
    assert Schema.from_dict(again) == SCHEMA


def test_unconfirmed_columns_are_told():
    assert SCHEMA.assumptions == ()
    (told,) = replace(SCHEMA, unconfirmed=("age", "ill")).assumptions
    assert "'age', 'ill'" in told
    assert "guessed from the data" in told


def test_another_target():
    schema = Schema(
        (
            Number("age", 0, 9),
            Category("town", ("a", "b")),
            Boolean("ill", ("j",), ("n",)),
            Boolean("x"),
            Intervals("y", (1,)),
            Ignored("z"),
        )
    )
    assert schema.with_target("age").target == NumberTarget("age", 0, 9)
    assert "age" not in [column.name for column in schema.with_target("age").columns]
    assert schema.with_target("town").target == ClassTarget("town", ("a", "b"))
    assert schema.with_target("ill").target == ClassTarget("ill", ("n", "j"))
    assert schema.with_target("x").target == ClassTarget(
        "x", ("false", "true"), (FALSE_WORDS, TRUE_WORDS)
    )
    assert SCHEMA.with_target("ill") is SCHEMA
    for name in ("y", "z"):
        with pytest.raises(SchemaError, match=f"{name}.*declares no labels"):
            schema.with_target(name)
    with pytest.raises(SchemaError, match="no column 'nothing'"):
        schema.with_target("nothing")
    # whether or not there is a target, a name that is not there is told as such
    few = "no column 'il' to be the target; declare it, or choose from 'age'.*'ill'"
    for declared in (schema, SCHEMA):
        with pytest.raises(SchemaError, match=few):
            declared.with_target("il")
    many = Schema(tuple(Ignored(f"column {i}") for i in range(99)))
    with pytest.raises(SchemaError, match=r"nearest names are 'column 1'(, 'column [0-9]+'){2}\."):
        many.with_target("colum 1")
    with pytest.raises(SchemaError, match=r"such as 'column 0'(, 'column [0-9]+'){7}\."):
        many.with_target("xyz")
    with pytest.raises(SchemaError, match=r"declare it\."):
        Schema(()).with_target("age")
    with pytest.raises(SchemaError, match="target is 'ill', not 'age'"):
        SCHEMA.with_target("age")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Schema((Number("a", 0, 1), Ignored("a"))), "two columns are named 'a'"),
        (lambda: Schema((Ignored("a"),), ClassTarget("a", (0, 1))), "two columns are named 'a'"),
        (
            lambda: Schema((Category("a", ("b",)), Number("a=b", 0, 1))),
            "two features are named 'a=b'",
        ),
        (lambda: Schema((), n_records=0), "n_records"),
        (lambda: Schema((), n_records=True), "n_records"),
        (lambda: Schema((), n_records=1.5), "n_records"),
        (lambda: Schema((), unconfirmed=("a",)), "unconfirmed names 'a'"),
        (lambda: ClassTarget("a", ("b",)), "'a'.*at least two"),
        (lambda: ClassTarget("a", ("b", "b")), "'a'.*twice"),
        (lambda: ClassTarget("a", ("b", 1)), "'a'.*all text"),
        (lambda: ClassTarget("a", (0.5, 1.5)), "'a'.*all text"),
        (lambda: ClassTarget("a", (0, 10**30)), "'a'.*too large"),
        (lambda: NumberTarget("a", 1, 0), "'a'.*lower must be below upper"),
    ],
)
def test_impossible_facts_are_refused(make, message):
    with pytest.raises(SchemaError, match=message):
        make()
