"""A private vocabulary: which words appear, what they cost, and how tables of words are read."""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone

from tacit.preprocessing import PrivateVocabulary
from tacit.privacy import Accountant, Budget, BudgetExceeded, Guarantee, Relation, SumOfEpsilons
from tacit.saving.codec import Reader, Writer
from tacit.schema import Category, TableError
from tacit.table_facts import EncodedTable, TableFacts
from tacit.testing import replay
from tests.testing.readers.hostile_values import (
    HOSTILE_BYTES,
    HOSTILE_FLOATS,
    HOSTILE_INTS,
    HOSTILE_OBJECTS,
    HOSTILE_TEXTS,
    ONE_OF_EACH_TYPE,
)

DELTA = 1e-6
TOWNS = ["Oslo"] * 400 + ["Bergen"] * 300 + ["Bod\u00f8"] * 200 + ["Utsira"]
JOBS = ["clerk"] * 500 + [" cook "] * 399 + ["?", None]
TABLE: dict[str, list[Any]] = {"town": TOWNS, "job": JOBS}


def step(columns: Any = None, **told: Any) -> PrivateVocabulary:
    return PrivateVocabulary(columns or {"town": 5, "job": 3}, **{"delta": DELTA, **told})


def test_frequent_words_are_found_and_rare_ones_are_not() -> None:
    fitted = step().fit(TABLE)
    assert fitted.values_ == {"town": ("Bergen", "Bod\u00f8", "Oslo"), "job": ("clerk", "cook")}
    for name, words in fitted.values_.items():
        assert Category(name, words).values == words
    rows = fitted.transform({"town": ["Oslo", "Utsira", None], "job": ["cook", 3.0, " clerk"]})
    assert rows.tolist() == [
        [0, 0, 1, 0, 0, 0, 1, 0],
        [0, 0, 0, 0, 0, 0, 0, 0],
        [0, 0, 0, 0, 0, 1, 0, 0],
    ]


def test_it_reads_as_a_category_does() -> None:
    fitted = step({"job": 4}).fit(TABLE)
    hostile = [*HOSTILE_OBJECTS, *HOSTILE_TEXTS, *ONE_OF_EACH_TYPE, "cook", b" cook\n", "clerk"]
    array = np.empty(len(hostile), dtype=object)
    array[:] = hostile
    expected = Category("job", fitted.values_["job"]).encode(array)
    np.testing.assert_array_equal(fitted.transform({"job": array})[:, :2], expected)


@pytest.mark.parametrize(
    "hostile", [HOSTILE_OBJECTS, HOSTILE_TEXTS, HOSTILE_BYTES, HOSTILE_FLOATS, HOSTILE_INTS]
)
def test_no_value_is_an_error_or_changes_another(hostile: Any) -> None:
    for odd in hostile:
        fitted = step({"town": 4}).fit({"town": [odd, *TOWNS]})
        assert fitted.values_ == {"town": ("Bergen", "Bod\u00f8", "Oslo")}


def test_every_word_can_be_declared_and_saved() -> None:
    table = {"town": [v for v in (*HOSTILE_OBJECTS, *HOSTILE_TEXTS, *HOSTILE_BYTES) for _ in "ab"]}
    found = step({"town": 10**4}, epsilon=math.inf).fit(table).values_["town"]
    assert len(found) > 5
    assert Category("town", found).values == found
    assert all("?" != word == word.strip() for word in found)
    writer = Writer()
    stored = writer.write({"town": found}, "values_")
    assert Reader(writer.members).read(stored, "values_") == {"town": found}


def tables() -> dict[str, Any]:
    frame = pd.DataFrame(TABLE)
    objects = frame.to_numpy(dtype=object)
    return {
        "dictionary": TABLE,
        "pandas": frame,
        "category": frame.astype("category"),
        "polars": pl.DataFrame(TABLE),
        "arrow": pa.table(TABLE),
        "chunked": pa.concat_tables([pa.table(TABLE).slice(0, 100), pa.table(TABLE).slice(100)]),
        "bytes": {name: [v.encode() if v else v for v in column] for name, column in TABLE.items()},
        "encoded": EncodedTable(TableFacts(("town", "job"), 1.0), lambda: (objects, None)),
    }


@pytest.mark.parametrize("kind", tables())
def test_every_kind_of_table(kind: str) -> None:
    table = tables()[kind]
    fitted = step(random_state=0).fit(table)
    assert fitted.values_ == step(random_state=0).fit(TABLE).values_
    rows = fitted.transform(table)
    np.testing.assert_array_equal(rows, fitted.transform(TABLE))
    assert rows.shape == (901, 8)


def test_an_array_of_objects() -> None:
    array = pd.DataFrame(TABLE).to_numpy(dtype=object)
    fitted = step({1: 3}).fit(array)
    assert fitted.values_ == {1: ("clerk", "cook")}
    assert fitted.transform(array).sum() == 899
    with pytest.raises(TableError, match="whole numbers"):
        step({"job": 3}).fit(array)
    with pytest.raises(TableError, match="whole numbers"):
        step({2: 3}).fit(array)


def test_at_most_as_many_as_declared_the_most_frequent() -> None:
    fitted = step({"town": 2}).fit(TABLE)
    assert fitted.values_ == {"town": ("Bergen", "Oslo")}
    assert step({"town": 2}, epsilon=math.inf).fit(TABLE).values_ == fitted.values_
    every = step({"town": 9}, epsilon=math.inf).fit(TABLE)
    assert every.values_ == {"town": ("Bergen", "Bod\u00f8", "Oslo", "Utsira")}
    assert every.privacy_.voided_by


def test_facts_are_known_beforehand() -> None:
    facts = TableFacts(("town", "job"), 9.0, 901, classes=("a", "b"))
    before = step().facts_out(facts)
    assert before.names[:5] == ("town#1", "town#2", "town#3", "town#4", "town#5")
    assert (before.row_norm, before.n_records, before.classes) == (math.sqrt(2), 901, ("a", "b"))
    assert before.ranges == ((0.0, 1.0),) * 8
    fitted = step().fit(TABLE)
    after = fitted.facts_out()
    assert after.names[:5] == ("town=Bergen", "town=Bod\u00f8", "town=Oslo", "town#4", "town#5")
    assert (after.row_norm, after.ranges) == (before.row_norm, before.ranges)
    assert np.linalg.norm(fitted.transform(TABLE), axis=1).max() <= after.row_norm


def with_one_more(town: Any, job: Any) -> dict[str, list[Any]]:
    return {"town": [*TOWNS, town], "job": [*JOBS, job]}


@pytest.mark.parametrize("relation", [Relation.ADD_REMOVE, Relation.REPLACE])
@pytest.mark.parametrize(
    "odd", [("Oslo", "cook"), ("Utsira", "cook"), ("new", "newer"), ("Oslo", None), (math.nan, [1])]
)
def test_replay_on_neighbours(odd: Any, relation: Relation) -> None:
    one = with_one_more(*odd)
    other = TABLE if relation.adds_or_removes else with_one_more("Bergen", "clerk")
    # so large a leak that new words do appear
    fitted = step(delta=0.5, relation=relation)
    for _ in range(4):
        assert replay(lambda data: clone(fitted).fit(data), one, other) == 1
        assert replay(lambda data: clone(fitted).fit(data), other, one) == 1


def test_replay_without_a_person() -> None:
    unit = list(range(901))
    many = {"town": [*TOWNS, *["Oslo"] * 50], "job": [*JOBS, *["cook"] * 50]}

    def fit(data: Any) -> PrivateVocabulary:
        return step(delta=0.1).fit(data[0], unit=data[1])

    assert replay(fit, (TABLE, unit), (many, [*unit, *["zoe"] * 50])) == 1
    assert fit((many, [*unit, *["zoe"] * 50])).privacy_.relation is Relation.ADD_REMOVE_PERSON
    with pytest.raises(ValueError, match="replace"):
        step(relation="replace").fit(TABLE, unit=unit)
    with pytest.raises(TableError, match="lengths"):
        step().fit(TABLE, unit=unit[:-1])


@pytest.mark.parametrize("relation", list(Relation))
def test_the_plan_is_within_the_budget_and_charged(relation: Relation) -> None:
    plan = step(relation=relation).plan()
    assert 0.999 < Guarantee(plan.event).epsilon(DELTA) <= 1.0
    assert "threshold" in str(plan)
    accountant = Accountant(Budget(1.0, DELTA, relation), SumOfEpsilons())
    unit = range(901) if relation.by_person else None
    fitted = step(relation=relation, accountant=accountant).fit(TABLE, unit=unit)
    assert fitted.privacy_.event == plan.event
    with pytest.raises(BudgetExceeded):
        fitted.fit(TABLE, unit=unit)


def test_more_columns_need_more_records() -> None:
    one, four = (step(dict.fromkeys(names, 3)).plan().settings for names in ("a", "abcd"))
    assert four["count_std"] == pytest.approx(2 * one["count_std"])
    assert four["threshold"] > 2 * one["threshold"]
    replaced = step({"a": 3}, relation="replace").plan().settings
    assert replaced["count_std"] == pytest.approx(math.sqrt(2) * one["count_std"])


def appearances(delta: float, columns: int, relation: str, times: int) -> int:
    """How often any of the words that one record has to itself is released."""
    names = [f"c{place}" for place in range(columns)]
    table = {name: ["common"] * 100 + [f"mine{name}"] for name in names}
    fitted = step(dict.fromkeys(names, 5), delta=delta, relation=relation)
    plan = fitted.plan()  # once: each fit would calibrate anew
    module = sys.modules["tacit.preprocessing.vocabulary"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_vocabulary_plan", lambda budget, n: plan)
        found = [fitted.fit(table).values_ for _ in range(times)]
    return sum(any(f"mine{n}" in words for n, words in values.items()) for values in found)


@pytest.mark.parametrize(("columns", "relation"), [(1, "add_remove"), (2, "replace")])
def test_audit_by_counting(columns: int, relation: str) -> None:
    """A word of one record appears with probability delta / 2, and hardly less."""
    times, delta = 700, 0.4
    seen = appearances(delta, columns, relation, times)
    expected, spread = times * delta / 2, math.sqrt(times * 0.2 * 0.8)
    assert abs(seen - expected) < 5 * spread


@pytest.mark.parametrize(
    ("told", "table", "words"),
    [
        ({"delta": 0.0}, TABLE, "delta > 0"),
        ({"epsilon": 0.0}, TABLE, "epsilon"),
        ({"columns": {}}, TABLE, "dictionary"),
        ({"columns": ["town"]}, TABLE, "dictionary"),
        ({"columns": {"town": 0}}, TABLE, "at least 1|in \\["),
        ({"columns": {"town": True}}, TABLE, "whole number"),
        ({"columns": {"place": 3}}, TABLE, "no column named 'place'"),
        ({}, {"town": TOWNS, "job": JOBS[1:]}, "different lengths"),
        ({}, TOWNS, "two dimensions"),
        ({}, 3, "named columns"),
        ({}, pd.DataFrame({"town": pd.to_datetime(["2020-01-01"]), "job": ["a"]}), "town"),
        ({}, pa.table({"town": pa.array([[1]]), "job": ["a"]}), "town"),
        ({"relation": "add_remove_person"}, TABLE, "unit"),
    ],
)
def test_wrong_facts_are_refused_before_the_charge(told: Any, table: Any, words: str) -> None:
    accountant = Accountant(Budget(100.0, 1e-2))
    columns = told.pop("columns", {"town": 5, "job": 3}) if "columns" in told else None
    made = step(accountant=accountant, **told)
    if columns is not None:
        made.set_params(columns=columns)
    with pytest.raises((ValueError, TypeError), match=words):
        made.fit(table)
    assert not accountant.events


def test_it_leaves_what_is_declared() -> None:
    fitted = step().fit(TABLE)
    left = set(vars(fitted)) - set(fitted.get_params(deep=False))
    assert left == {*fitted._released, "privacy_"}
    assert step(random_state=1).fit(TABLE).privacy_.voided_by
