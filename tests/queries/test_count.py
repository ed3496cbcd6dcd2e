"""Frequent values: counted once a column, at the stated price; a wrong constant is caught."""

from __future__ import annotations

import sys
from typing import Any

import pytest

import tacit.queries.count as module
from tacit.noise import SensitivityViolation, recording
from tacit.noise.release import Entry
from tacit.noise.stable_histogram import count_std, threshold
from tacit.privacy import Composed, Gaussian, RareLeak, Relation
from tacit.queries import Facts, Session, Slot
from tacit.queries.count import FrequentValues
from tacit.records import Bounds
from tacit.testing import replay

RELATIONS = [Relation.ADD_REMOVE, Relation.REPLACE, Relation.ADD_REMOVE_PERSON]


def facts_of(relation: Relation) -> Facts:
    return Facts(Bounds(), 1, relation)


def answered(query: FrequentValues, relation: Relation, columns: Any) -> Any:
    facts = facts_of(relation)
    slots = {"words": Slot(query.event(facts))}
    session = Session(columns, facts, query.event(facts), slots)
    return session.release(session.ask(query, "words"))


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("query", FrequentValues.tried(), ids=str)
def test_neighbours_are_replayed(
    query: FrequentValues, relation: Relation, monkeypatch: pytest.MonkeyPatch
) -> None:
    facts, pairs = facts_of(relation), list(query.neighbours(facts_of(relation)))

    def run(columns: Any) -> Any:
        return answered(query, relation, columns)

    for one, other in pairs:
        for _ in range(5):
            assert replay(run, one, other) == replay(run, other, one) == 1
    assert query.count_std(facts) == count_std(2.0, query.n_columns, relation)
    assert query.threshold(facts) == threshold(2.0, query.n_columns, 0.3, relation)
    # of half the noise, the sensitivity that goes with the event is half of what is true
    monkeypatch.setattr(
        sys.modules["tacit.noise.stable_histogram"],
        "count_std",
        lambda *told: 0.49 * count_std(*told),
    )
    with pytest.raises(SensitivityViolation):
        [replay(run, *pair) for pair in pairs]


def test_fewer_values_a_record_than_there_are_columns_are_refused() -> None:
    """Noise for one count of a record, where it has three."""
    columns = [["a"] * 30] * 3
    with pytest.raises(ValueError, match="3 columns, and 1"):
        answered(FrequentValues(1, 2.0, 0.3), Relation.ADD_REMOVE, columns)


def test_a_record_counts_once_a_column(monkeypatch: pytest.MonkeyPatch) -> None:
    query, plain = FrequentValues(1, 2.0, 0.3), module.value_counts

    def run(columns: Any) -> Any:
        return answered(query, Relation.ADD_REMOVE, columns)

    one, other = [["a"] * 30], [["a"] * 31]
    assert replay(run, one, other) == 1
    twice = lambda columns: {key: 2 * n for key, n in plain(columns).items()}  # noqa: E731
    monkeypatch.setattr(module, "value_counts", twice)
    with pytest.raises(SensitivityViolation):
        replay(run, one, other)


@pytest.mark.parametrize("relation", RELATIONS)
def test_the_price_is_noise_and_a_leak(relation: Relation) -> None:
    query = FrequentValues(2, 3.0, 1e-7)
    with recording() as tape:
        released = answered(query, relation, [["a"] * 500, ["b"] * 499 + [None]])
    (entry,) = (entry for entry in tape.entries if isinstance(entry, Entry))
    assert released.event == entry.event
    assert released.event == Composed((Gaussian(3.0, relation), RareLeak(1e-7, relation)))
    assert set(released.value) == {(0, "a"), (1, "b")}
    assert abs(released.value[1, "b"] - 499) < 60
    with pytest.raises(ValueError, match="sample"):
        query.event(Facts(Bounds(), 1, relation, sampling_rate=0.5))
