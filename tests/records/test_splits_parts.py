"""Parts of the records: neighbours differ in one part, there in one record."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
import scipy.sparse

from tacit.noise import secure_source
from tacit.privacy import Relation
from tacit.records.privacy_unit import people_of
from tacit.records.splits import NO_PART, _bytes_of, _each_value, new_key, parts_of

ADD_REMOVE, REPLACE, PERSON = (
    Relation.ADD_REMOVE,
    Relation.REPLACE,
    Relation.ADD_REMOVE_PERSON,
)
SHARES = (0.5, 0.3, 0.2)
Part = Counter[tuple[bytes, str]]


def table(n_records: int, n_different: int) -> tuple[np.ndarray, np.ndarray]:
    """Return records of which many are equal."""
    rng = np.random.default_rng(0)
    rows = rng.integers(0, n_different, size=(n_records, 1)) * np.ones(3)
    return rows, rng.choice(np.array(["no", "yes"]), n_records)


def contents(rows: Any, labels: Any, part: Any) -> list[Part]:
    """Return what is in each part, whatever the order."""
    found: list[Part] = [Counter() for _ in SHARES]
    for row, label, p in zip(rows, labels, part, strict=True):
        found[p][row.tobytes(), str(label)] += 1
    return found


def difference(here: list[Part], there: list[Part]) -> list[int]:
    """Return how many records two splits differ in, part by part."""
    return [((a - b) + (b - a)).total() for a, b in zip(here, there, strict=True)]


@pytest.mark.parametrize("n_different", [2, 10**6])
def test_without_one_record_one_part_lacks_it(n_different: int) -> None:
    key = new_key(secure_source())
    rows, labels = table(60, n_different)
    whole = contents(rows, labels, parts_of(SHARES, key, ADD_REMOVE, rows, labels))
    for gone in range(60):
        kept = np.arange(60) != gone
        part = parts_of(SHARES, key, ADD_REMOVE, rows[kept], labels[kept])
        assert sorted(difference(whole, contents(rows[kept], labels[kept], part))) == [0, 0, 1]


def test_positions_would_not_do_when_records_are_removed() -> None:
    # What the test above is there to catch.
    rows, labels = table(60, 10**6)
    whole = contents(rows, labels, parts_of(SHARES, b"k", REPLACE, rows, labels))
    fewer = contents(rows[1:], labels[1:], parts_of(SHARES, b"k", REPLACE, rows[1:], labels[1:]))
    assert sum(difference(whole, fewer)) > 10


def test_a_replaced_record_stays_in_its_part() -> None:
    rows, labels = table(60, 10**6)
    before = parts_of(SHARES, b"k", REPLACE, rows, labels)
    other = rows.copy()
    other[17] = -1.0
    assert np.array_equal(parts_of(SHARES, b"k", REPLACE, other, labels), before)
    # by its hash it would move, sooner or later
    moved = [
        parts_of(SHARES, bytes([k]), ADD_REMOVE, other, labels)[17]
        != parts_of(SHARES, bytes([k]), ADD_REMOVE, rows, labels)[17]
        for k in range(20)
    ]
    assert any(moved)


def test_the_parts_of_positions_do_not_depend_on_how_many_there_are() -> None:
    long = parts_of(SHARES, b"k", REPLACE, np.zeros((1000, 1)))
    assert np.array_equal(parts_of(SHARES, b"k", REPLACE, np.zeros((10, 1))), long[:10])


def test_people_stay_together_and_nobody_is_nowhere() -> None:
    names = [f"p{i % 40}" for i in range(200)] + [None]
    rows = np.random.default_rng(0).normal(size=(201, 2))
    part = parts_of(SHARES, b"k", PERSON, rows, people=people_of(names))
    assert part[-1] == NO_PART
    assert set(part[:-1]) == {0, 1, 2}
    for person in range(40):
        assert len(set(part[person:200:40])) == 1
    # without one person everybody else is where they were
    kept = np.array([name != "p3" for name in names])
    fewer = parts_of(
        SHARES, b"k", PERSON, rows[kept], people=people_of([n for n in names if n != "p3"])
    )
    assert np.array_equal(fewer, part[kept])


@pytest.mark.parametrize("relation", Relation)
def test_shares(relation: Relation) -> None:
    rows = np.arange(20_000.0).reshape(-1, 1)
    part = parts_of(SHARES, b"k", relation, rows, people=people_of(np.arange(20_000)))
    assert np.bincount(part) / 20_000 == pytest.approx(SHARES, abs=0.015)
    other = parts_of(SHARES, b"another", relation, rows, people=people_of(np.arange(20_000)))
    assert 0.3 < np.mean(part == other) < 0.46  # 0.38 = the sum of squares


def test_a_table_of_two_different_records_is_split_evenly() -> None:
    rows = np.repeat([[0.0], [1.0]], 5000, axis=0)
    part = parts_of(SHARES, b"k", ADD_REMOVE, rows)
    assert np.bincount(part[:5000]) / 5000 == pytest.approx(SHARES, abs=0.03)


def test_how_numbers_are_stored_does_not_matter() -> None:
    rows, _ = table(50, 1000)
    labels = np.arange(50) % 3
    part = parts_of(SHARES, b"k", ADD_REMOVE, rows, labels)
    for same_rows in (rows.astype(np.float32), rows.astype(int), scipy.sparse.csr_array(rows)):
        for same_labels in (labels.astype(float), labels.astype(object), labels.tolist()):
            again = parts_of(SHARES, b"k", ADD_REMOVE, same_rows, same_labels)
            assert np.array_equal(again, part)
    minus_zero = np.where(rows == 0.0, -0.0, rows)
    assert np.array_equal(parts_of(SHARES, b"k", ADD_REMOVE, minus_zero, labels), part)


def test_how_texts_are_stored_does_not_matter() -> None:
    rows, labels = table(50, 1000)
    part = parts_of(SHARES, b"k", ADD_REMOVE, rows, labels)
    for same in (labels.tolist(), list(labels), labels.astype(object)):
        assert np.array_equal(parts_of(SHARES, b"k", ADD_REMOVE, rows, same), part)


def test_one_odd_record_moves_no_other() -> None:
    rows, _ = table(50, 1000)
    labels: list[Any] = [0, 1] * 25
    part = parts_of(SHARES, b"k", ADD_REMOVE, rows, labels)
    for odd in (None, float("nan"), float("inf"), "text", 10**400, b"\xff", "\ud800"):
        more_rows = np.vstack([rows, [np.nan, np.inf, 0.0]])
        again = parts_of(SHARES, b"k", ADD_REMOVE, more_rows, [*labels, odd])
        assert np.array_equal(again[:-1], part)


class Unspeakable:
    def __repr__(self) -> str:
        raise RuntimeError


@pytest.mark.parametrize("label", [10**5000, Unspeakable()], ids=["long", "unspeakable"])
def test_a_label_that_cannot_be_written_down_is_no_error(label: Any) -> None:
    """Which would tell of one record, after the charge."""
    rows = np.arange(3.0).reshape(-1, 1)
    odd = parts_of(SHARES, b"key", ADD_REMOVE, rows, [label, "no", "yes"])
    plain = parts_of(SHARES, b"key", ADD_REMOVE, rows, ["no", "no", "yes"])
    np.testing.assert_array_equal(odd[1:], plain[1:])


def test_what_is_refused() -> None:
    rows = np.zeros((3, 1))
    with pytest.raises(ValueError, match="add up to 1"):
        parts_of((0.5, 0.4), b"k", ADD_REMOVE, rows)
    with pytest.raises(ValueError, match="share"):
        parts_of((1.5, -0.5), b"k", ADD_REMOVE, rows)
    with pytest.raises(ValueError, match="whose each record is"):
        parts_of(SHARES, b"k", PERSON, rows)


@pytest.mark.parametrize(
    "column",
    [
        np.array([0, 1, 2**53, -3]),
        np.array([0.0, -0.0, np.nan, 1.5, np.inf]),
        np.array([True, False]),
        np.array([1.5, 2.0], dtype=np.float32),
        np.array([2**60 + 1, 1]),
        np.array([2**63, 1], dtype=np.uint64),
    ],
    ids=str,
)
def test_a_column_of_numbers_is_read_as_each_of_them_is(column: Any) -> None:
    assert list(_each_value(column)) == [_bytes_of(value) for value in column.tolist()]
