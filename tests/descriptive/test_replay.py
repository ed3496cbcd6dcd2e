"""Describe neighbouring tables with the same noise: nothing but the counts may differ."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

import tacit
from tacit.noise import Entry, ReplayMismatch, recording
from tacit.queries.table_counts import TableCounts
from tacit.testing import replay
from tests.descriptive.helpers import SCHEMA, people

EXTREME: dict[str, dict[str, Any]] = {
    "all missing": {
        "age": None,
        "income": None,
        "ward": None,
        "smoker": None,
        "bmi": None,
        "ill": "?",
    },
    "both ends": {
        "age": 1e300,
        "income": -5.0,
        "ward": "C",
        "smoker": True,
        "bmi": 1e9,
        "ill": "yes",
    },
    "other words": {"age": "x", "income": "y", "ward": "Z", "smoker": "?", "bmi": "z", "ill": "so"},
    "objects": {"age": object(), "income": [], "ward": b"\xff", "smoker": {}, "bmi": "", "ill": 3},
}


def as_objects(table: dict[str, Any]) -> pd.DataFrame:
    # A column of objects keeps its type whatever one record holds.
    return pd.DataFrame(table).astype(object)


def with_record(frame: pd.DataFrame, record: dict[str, Any]) -> pd.DataFrame:
    more = pd.DataFrame({name: pd.Series([value], dtype=object) for name, value in record.items()})
    return pd.concat([frame, more], ignore_index=True)


@pytest.mark.parametrize("delta", [1e-6, 0.0])
@pytest.mark.parametrize("by", [None, "ward", "ill"])
@pytest.mark.parametrize("name", EXTREME)
def test_one_record_more(name: str, by: str | None, delta: float) -> None:
    frame = as_objects(people(80))
    more = with_record(frame, EXTREME[name])
    assert replay(lambda t: tacit.describe(t, SCHEMA, 1.0, delta, by=by), more, frame) == 1
    assert replay(lambda t: tacit.describe(t, SCHEMA, 1.0, delta, by=by), frame, more) == 1


@pytest.mark.parametrize("name", EXTREME)
def test_one_record_replaced(name: str) -> None:
    frame = as_objects(people(80))
    one, other = (with_record(frame, EXTREME[each]) for each in (name, "both ends"))

    def described(table: pd.DataFrame) -> object:
        return tacit.describe(table, SCHEMA, 1.0, relation="replace", n_records=81, by="ward")

    assert replay(described, one, other) == 1


@pytest.mark.parametrize("n_more", [1, 9])
def test_one_person_more(n_more: int) -> None:
    frame = as_objects({**people(80), "who": [f"p{i % 30}" for i in range(80)]})
    more = frame
    for _ in range(n_more):
        more = with_record(more, {**EXTREME["both ends"], "who": "new"})
    assert replay(lambda t: tacit.describe(t, SCHEMA, 1.0, unit="who"), frame, more) == 1


def test_a_sensitivity_that_is_too_small_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    length = TableCounts.length
    monkeypatch.setattr(TableCounts, "length", lambda self, relation: length(self, relation) / 2)
    frame = as_objects(people(80))
    more = with_record(frame, EXTREME["both ends"])
    with pytest.raises(ReplayMismatch):
        replay(lambda t: tacit.describe(t, SCHEMA, 1.0), frame, more)


def test_what_is_drawn_is_what_is_charged() -> None:
    with recording() as tape:
        found = tacit.describe(people(500), SCHEMA, 1.0, by="ill")
    drawn = [entry.event for entry in tape.entries if isinstance(entry, Entry)]
    assert drawn == [found.privacy_.event]
