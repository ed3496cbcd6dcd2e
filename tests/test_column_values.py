"""A record's own object may raise anything: it counts as unreadable, and nobody hears its words."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from tacit.column_values import alone, as_objects
from tacit.estimators.parameters import codes_of
from tacit.linear_model import LogisticRegression
from tacit.metrics import evaluate
from tacit.preprocessing import PrivateVocabulary
from tacit.privacy import Relation
from tacit.queries.base import plain_facts
from tacit.queries.evaluation import Answered, NumberSums
from tacit.records.privacy_unit import people_of
from tacit.records.rows_and_labels import as_labels, as_weights
from tacit.records.splits import parts_of
from tacit.schema import ClassTarget, Number, Schema
from tacit.table_model import TableModel

SECRET = "HIV positive"
N = 40
ROWS = np.linspace(-1.0, 1.0, 2 * N).reshape(N, 2)


class OddError(BaseException):
    """Of a kind that no list of exceptions names."""


def raising(*_: Any, **__: Any) -> Any:
    raise OddError(SECRET)


def missing(*_: Any, **__: Any) -> Any:
    raise KeyError(SECRET)


METHODS = [
    *("__float__", "__int__", "__index__", "__abs__", "__bool__", "__array__", "__len__"),
    *("__hash__", "__eq__", "__ne__", "__lt__", "__str__", "__repr__", "__format__"),
    *("__iter__", "strip", "encode", "decode", "isoformat"),
]


def odd(base: type[Any], raises: Callable[..., Any], *arguments: Any) -> Any:
    """Return an object of which every question is answered by an error that says what it is."""
    body: dict[str, Any] = dict.fromkeys(METHODS, raises)
    kind: Any = type("Odd", (base,), body)
    return kind(*arguments)


def odd_values() -> list[Any]:
    return [
        odd(base, raises, *arguments)
        for raises in (missing, raising)
        for base, *arguments in (
            (float, 1.0),
            (int, 1),
            (str, "x"),
            (bytes, b"x"),
            (Decimal, "1.5"),
            (Fraction, 1, 2),
            (tuple, (1, 2)),
            (object,),
        )
    ]


ODD = range(len(odd_values()))


@pytest.mark.parametrize("which", ODD)
def test_an_identifier_that_raises_is_nobodys_or_what_it_plainly_is(which: int) -> None:
    value = odd_values()[which]
    owner = people_of(["ann", value, "bob"]).owner
    assert owner[[0, 2]].tolist() in ([0, 1], [0, 2])
    is_text = isinstance(value, str | bytes)  # whose own methods are not asked
    assert (owner[1] >= 0) == is_text


def test_words_of_a_text_of_its_own_kind_do_not_count() -> None:
    class Pretender(str):
        def strip(self, *_: Any) -> str:
            return "bob"

        def __hash__(self) -> int:
            return hash("bob")

        def __eq__(self, other: object) -> bool:
            return other == "bob"

    class Day(date):
        def __str__(self) -> str:
            return Pretender("2020-01-01")

    identifiers = ["ann", "bob", Pretender(" ann "), Day(2020, 1, 1)]
    assert people_of(identifiers).owner.tolist() == [0, 1, 0, 2]


@pytest.mark.parametrize("which", ODD)
def test_a_label_that_raises_is_no_class_and_a_weight_none(which: int) -> None:
    value = odd_values()[which]
    labels = as_labels([0, value, 1])
    _, known = codes_of(labels, np.array([0, 1]))
    assert known.tolist() == [True, False, True]
    assert as_weights([1.0, value, 2.0], 3)[[0, 2]].tolist() == [1.0, 2.0]
    held = Answered(np.zeros(3), labels)
    sums = NumberSums(0.0, 1.0).total(held, plain_facts(Relation.ADD_REMOVE))
    assert abs(sums[0] - 2.0) < 1e-3
    columns = as_objects([0, value, 1])
    part = parts_of((0.5, 0.5), b"k", Relation.ADD_REMOVE, np.eye(3), columns)
    without = parts_of((0.5, 0.5), b"k", Relation.ADD_REMOVE, np.eye(3)[::2], columns[::2])
    assert np.array_equal(part[::2], without)


@pytest.mark.parametrize("which", ODD)
def test_a_fit_and_an_evaluation_go_on(which: int) -> None:
    value = odd_values()[which]
    labels: list[Any] = [0, 1] * (N // 2)
    labels[7] = value
    identifiers: list[Any] = list(range(N))
    identifiers[9] = value
    model = LogisticRegression(classes=[0, 1], row_norm=1.0)
    model.fit(ROWS, labels, unit=identifiers)
    evaluate(model, ROWS, labels, epsilon=100.0, delta=1e-6)
    schema = Schema((Number("a", -1, 1),), ClassTarget("y", ("0", "1")))
    column: list[Any] = ROWS[:, 0].tolist()
    column[5] = value
    TableModel(schema, LogisticRegression()).fit({"a": column, "y": labels})


def test_what_is_no_values_doing_goes_through_without_its_words() -> None:
    def stops(kind: type[BaseException]) -> Any:
        def read(_: Any) -> None:
            raise kind(SECRET)

        return read

    for kind in (KeyboardInterrupt, SystemExit):
        with pytest.raises(kind):
            alone(stops(kind), 1, None)
    with pytest.raises(MemoryError) as stopped:
        alone(stops(MemoryError), 1, None)
    assert stopped.value.__context__ is stopped.value.__cause__ is None
    assert SECRET not in "".join(traceback.format_exception(stopped.value))


@pytest.mark.parametrize("which", ODD)
def test_a_value_that_raises_is_no_word(which: int) -> None:
    table = {"town": [*["Oslo"] * 500, odd_values()[which]]}
    assert PrivateVocabulary({"town": 3}).fit(table).values_ == {"town": ("Oslo",)}
