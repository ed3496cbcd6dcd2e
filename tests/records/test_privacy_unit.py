from __future__ import annotations

import pickle
from datetime import date
from decimal import Decimal
from fractions import Fraction
from typing import Any
from uuid import UUID

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from tacit.records.privacy_unit import people_of

NAN = float("nan")


@pytest.mark.parametrize(
    "identifiers",
    [
        (1, 1.0, "1", " 1 ", b"1", np.int8(1), np.float32(1), Decimal(1), np.str_("1")),
        ("ann", " ann", b"ann", np.str_("ann")),
        (("ward", 1), ("ward", "1")),
        (date(2020, 1, 2), "2020-01-02"),
        (True, np.True_, "true"),
    ],
    ids=range(5),
)
def test_one_person(identifiers: tuple[Any, ...]) -> None:
    assert people_of(list(identifiers)).owner.tolist() == [0] * len(identifiers)


class Unfriendly(Fraction):
    """A number that cannot be had."""

    def __float__(self) -> float:
        raise ZeroDivisionError


def nested(depth: int) -> tuple[Any, ...]:
    whole: tuple[Any, ...] = ()
    for _ in range(depth):
        whole = (whole,)
    return whole


NOBODY = [
    *(pd.NaT, np.datetime64("NaT"), "NaT", np.float32(2**24), np.float16(2048), Fraction(1, 3)),
    *(Unfriendly(1, 2), nested(100_000), np.longdouble(2) ** 60),
    *(None, NAN, np.nan, pd.NA, "", "  ", "?", "NA", b"", float("inf"), Decimal("sNaN")),
    *([1, 2], {"a": 1}, {1}, object(), 10**400, ("ward", None), 2**53, float(2**60)),
]


def test_records_without_an_identifier_are_nobodys() -> None:
    people = people_of([*NOBODY, "ann"])
    assert people.owner.tolist() == [-1] * len(NOBODY) + [0]
    assert people.order().tolist() == people.one_each().tolist() == [len(NOBODY)]
    assert people.sizes().tolist() == [1]
    assert people.where(slice(0, len(NOBODY))).words.size == 0
    assert people.where(slice(5, None)).one_each().tolist() == [len(NOBODY) - 5]


@pytest.mark.parametrize(
    "identifiers",
    [
        (1, 2, "a", "A", "ä", b"\xff", b"\xfe", 1.5, -1, "1.0", "001", 0, False),
        ("9007199254740992", "9007199254740993"),  # text keeps all its digits
        (1, Decimal("1.00000000000000000000000000000000001"), Decimal("1.1"), 1.2),
        (("a", "bc"), ("ab", "c"), ("abc",), ("a", "b", "c")),
        ("x" * 10**6, "x" * 10**6 + "y", "\ud800"),
        (UUID(int=1), UUID(int=2), date(2020, 1, 1), np.datetime64("2020-01-02")),
    ],
    ids=range(6),
)
def test_different_people(identifiers: tuple[Any, ...]) -> None:
    assert people_of(list(identifiers)).words.size == len(identifiers)


COLUMNS: dict[str, Any] = {
    "list": ["7", "8", "7", "9"],
    "tuple": (7, 8, 7, 9),
    "int64": np.array([7, 8, 7, 9]),
    "uint8": np.array([7, 8, 7, 9], dtype=np.uint8),
    "float32": np.array([7, 8, 7, 9], dtype=np.float32),
    "text": np.array(["7", "8", "7", "9"]),
    "bytes": np.array([b"7", b"8", b"7", b"9"]),
    "object": np.array([7, "8", 7.0, b"9"], dtype=object),
    "series": pd.Series([7, 8, 7, 9], index=[3, 3, 1, 0]),
    "nullable": pd.Series([7, 8, 7, 9], dtype="Int64"),
    "category": pd.Series(["7", "8", "7", "9"], dtype="category"),
    "polars": pl.Series([7, 8, 7, 9]),
    "arrow": pa.array(["7", "8", "7", "9"]),
    "chunked": pa.chunked_array([[7, 8], [7, 9]]),
    "masked": np.ma.MaskedArray([7, 8, 7, 9], mask=False),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_a_column_reads_the_same_whatever_its_type(name: str) -> None:
    expected, found = people_of(["7", "8", "7", "9"]), people_of(COLUMNS[name])
    assert np.array_equal(found.owner, expected.owner)
    assert np.array_equal(found.words, expected.words)


@pytest.mark.parametrize("precision", ["float16", "float32", "float64"])
def test_numbers_that_have_lost_digits_name_nobody(precision: str) -> None:
    """As floats they could be other people's: which ones depends on the column's type alone."""
    kind = np.dtype(precision).type
    last = 2 ** (np.finfo(kind).nmant + 1)
    column = np.array([last - 2, last - 1, last, last + 1], dtype=kind)
    assert people_of(column).owner.tolist() == [0, 1, -1, -1]
    assert people_of(list(column)).owner.tolist() == [0, 1, -1, -1]


@pytest.mark.parametrize("precision", ["D", "s", "ns"])
def test_dates_in_an_array(precision: str) -> None:
    column = np.array(["2020-01-02", "1970-01-02", "2020-01-02", "NaT"], f"datetime64[{precision}]")
    assert people_of(column).owner.tolist() == [0, 1, 0, -1]
    assert people_of(pd.Series(column)).owner.tolist() == [0, 1, 0, -1]


@pytest.mark.parametrize("several", [{1, 2}, bytearray(b"12"), {1: 1, 2: 2}, {1: 1}.keys()])
def test_what_has_no_order_is_refused(several: Any) -> None:
    with pytest.raises(TypeError, match="one identifier for each record"):
        people_of(several)


def test_a_masked_identifier_is_a_missing_one() -> None:
    people = people_of(np.ma.MaskedArray([7, 7, 8, 8], mask=[0, 1, 1, 0]))
    assert people.owner.tolist() == [0, -1, -1, 1]


@pytest.mark.parametrize(
    "odd", [None, NAN, "x", [1], b"\xff", 10**400, ("a",), "9" * 400], ids=range(8)
)
def test_an_odd_identifier_changes_nobody_else(odd: Any) -> None:
    """Whatever type the column becomes for its sake, all others are who they were."""
    usual = np.array([5, 6, 5, 2**40, 7])
    alone = people_of(usual)
    for column in ([*usual.tolist(), odd], pd.Series([*usual.tolist(), odd], dtype=object)):
        people = people_of(column)
        assert people.owner[:-1].tolist() == _in_order(alone.owner)
        assert set(alone.words) <= set(people.words)


def _in_order(owner: Any) -> list[int]:
    number: dict[int, int] = {}
    return [number.setdefault(int(one), len(number)) for one in owner]


def test_an_integer_column_with_one_missing_reads_as_before() -> None:
    whole = people_of(pd.Series([2**60 + 1, 3, 2**60 + 1]))
    floats = people_of(pd.Series([2**60 + 1, 3, 2**60 + 1, None]))
    assert whole.owner.tolist() == floats.owner[:-1].tolist() == [-1, 0, -1]
    assert whole.words.tolist() == floats.words.tolist()


@pytest.mark.parametrize("unit", ["patient", b"patient", 7, {"a": 1}, np.eye(2), pd.DataFrame([1])])
def test_what_is_not_one_identifier_a_record_is_refused(unit: Any) -> None:
    with pytest.raises(TypeError, match="one identifier for each record"):
        people_of(unit)


def test_no_identifier_is_kept_or_shown() -> None:
    people = people_of(["Zebulon", "Zebulon", 7777777])
    assert "Zebulon" not in repr(people)
    assert b"Zebulon" not in pickle.dumps(people)
    assert b"7777777" not in pickle.dumps(people)


def test_one_record_of_each_person_chosen_by_who_they_are() -> None:
    rng = np.random.default_rng(0)
    unit = rng.integers(0, 400, 1000)
    kept = people_of(unit).one_each()
    assert sorted(unit[kept]) == np.unique(unit).tolist()
    assert np.all(np.diff(kept) > 0)
    # without a person, and whatever the order of the others, the rest is as it was
    for gone in np.unique(unit)[::40]:
        left = np.flatnonzero(unit != gone)
        assert left[people_of(unit[left]).one_each()].tolist() == kept[unit[kept] != gone].tolist()


def test_every_record_of_a_person_may_be_the_one() -> None:
    turns = [people_of([name] * 4 + ["other"]).one_each()[0] for name in map(str, range(400))]
    assert np.bincount(turns, minlength=4).min() > 60


def test_some_of_the_records() -> None:
    people = people_of(["a", "b", "a", "c"])
    some = people.where(np.array([False, False, True, True]))
    assert some.owner.tolist() == [0, 1]
    assert some.words.tolist() == people.words[[0, 2]].tolist()
    assert people.where(slice(None)).owner.tolist() == people.owner.tolist()


def test_nobody() -> None:
    people = people_of([])
    assert people.one_each().tolist() == []
    assert people.where(slice(None)).words.size == 0
