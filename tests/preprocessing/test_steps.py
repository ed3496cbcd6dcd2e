"""What every private step of numbers promises."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.utils.estimator_checks import parametrize_with_checks

import tacit.preprocessing as private
from tacit.privacy import (
    Accountant,
    Budget,
    BudgetExceeded,
    Composed,
    Guarantee,
    Relation,
    SumOfEpsilons,
)
from tacit.saving.codec import Reader, Writer
from tacit.table_facts import EncodedTable, HandsOn, TableFacts
from tacit.testing import replay
from tests.preprocessing.steps import DELTA, PURE, RELATIONS, STEPS, N, made, rows

NAMES = ("a", "b", "c")
OF_WORDS = {"PrivateVocabulary"}  # tests/preprocessing/test_vocabulary.py
SLOW = pytest.mark.slow
ODD = [1e6, *(pytest.param(odd, marks=SLOW) for odd in (math.nan, -1e6, 0.3, 0.0, math.inf))]


def table_of(X: Any, **facts: Any) -> EncodedTable:
    known = {"row_norm": 4.0, "ranges": ((-3.0, 3.0),) * 3, **facts}
    return EncodedTable(TableFacts(NAMES, **known), lambda: (X, None))


def test_every_step_is_tried() -> None:
    found = {name for name in private.__all__ if issubclass(getattr(private, name), BaseEstimator)}
    assert found == OF_WORDS | {type(made(name)).__name__ for name in STEPS}


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("delta", [0.0, DELTA])
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("name", STEPS)
def test_replay_on_neighbours(name: str, relation: Relation, delta: float, odd: float) -> None:
    if not delta and name not in PURE:
        with pytest.raises(ValueError, match="delta"):
            made(name, relation, delta=delta).fit(rows())
        return
    step, X = made(name, relation, delta=delta, columns=[0] if odd == 1e6 else None), rows()
    more = np.vstack([X, [odd, 0.3 * odd, -odd]])
    fewer = X if relation.adds_or_removes else np.vstack([X, X[:1]])
    assert replay(lambda data: clone(step).fit(data), more, fewer) >= 1
    assert replay(lambda data: clone(step).fit(data), fewer, more) >= 1


@pytest.mark.parametrize("name", STEPS)
def test_replay_without_a_person(name: str) -> None:
    X, unit = rows(), np.arange(N) % 20
    many = np.tile([1e6, -1e6, 2.0], (30, 1))
    step = made(name, columns=[1])

    def fit(data: Any) -> Any:
        return clone(step).fit(data[0], unit=data[1])

    more = (np.vstack([X, many]), np.append(unit, np.full(30, 99)))
    assert replay(fit, (X, unit), more) >= 1
    assert replay(fit, more, (X, unit)) >= 1
    assert fit(more).privacy_.relation is Relation.ADD_REMOVE_PERSON
    with pytest.raises(ValueError, match="replace"):
        made(name, Relation.REPLACE).fit(X, unit=unit)
    with pytest.raises(ValueError, match="unit"):
        made(name, relation="add_remove_person").fit(X)


@pytest.mark.parametrize("name", STEPS)
def test_people_who_come_with_the_table(name: str) -> None:
    X, unit, named = rows(), [place % 20 for place in range(N)], list[Any]()
    facts = TableFacts(NAMES, 4.0, of_people=True, ranges=((-3.0, 3.0),) * 3)

    def read() -> Any:
        named[:] = unit
        return X, None

    with_people = made(name, random_state=1).fit(EncodedTable(facts, read, named=named))
    assert with_people.privacy_.relation is Relation.ADD_REMOVE_PERSON
    asked = made(name, random_state=1).fit(X, unit=unit)
    np.testing.assert_array_equal(with_people.transform(X), asked.transform(X))


@pytest.mark.parametrize("name", STEPS)
def test_what_is_planned_is_charged_and_within_the_budget(name: str) -> None:
    for delta in (0.0, DELTA) if name in PURE else (DELTA,):
        step = made(name, delta=delta)
        accountant = Accountant(Budget(1.0, delta), SumOfEpsilons())
        plan = step.set_params(accountant=accountant).plan(3)
        assert Guarantee(plan.event).epsilon(delta) <= 1.0
        assert Guarantee(plan.event).epsilon(delta) > 0.99
        fitted = step.fit(rows())
        assert fitted.privacy_.event == plan.event
        assert str(plan).startswith(plan.name)
        with pytest.raises(BudgetExceeded):
            step.fit(rows())


class WasRead(Exception):
    pass


@pytest.mark.parametrize("name", STEPS)
def test_nothing_is_read_before_the_charge(name: str) -> None:
    def read() -> Any:
        raise WasRead

    table = EncodedTable(TableFacts(NAMES, 4.0, ranges=((-3.0, 3.0),) * 3), read)
    spent = Accountant(Budget(1e-9, DELTA))
    with pytest.raises(BudgetExceeded):
        made(name, accountant=spent).fit(table)
    with pytest.raises(WasRead):
        made(name).fit(table)


WRONG: list[tuple[dict[str, Any], Any, str]] = [
    ({"epsilon": 0.0}, rows(), "epsilon"),
    ({"epsilon": -1.0}, rows(), "epsilon"),
    ({"delta": 1.0}, rows(), "delta"),
    ({"relation": "neighbour"}, rows(), "relation"),
    ({"columns": ["z"]}, rows(), "'z'"),
    ({"columns": [7]}, rows(), "no column 7"),
    ({"columns": []}, rows(), "at least one"),
    ({"columns": [0, 0]}, rows(), "each once"),
    ({"bounds": None}, rows(), "bounds"),
    ({"bounds": (1.0, 1.0)}, rows(), "bounds"),
    ({"bounds": (0.0, math.inf)}, rows(), "bounds"),
    ({"bounds": [(0, 1)] * 2}, rows(), "bounds"),
    ({}, rows()[:, 0], "2D"),
    ({}, np.array([["a", "b", "c"]]), "text"),
    ({}, pd.DataFrame({"a": ["x"]}), "not numbers"),
]


@pytest.mark.parametrize(
    ("name", "told", "X", "words"),
    [
        (name, *wrong)
        for name in STEPS
        for wrong in WRONG
        if set(wrong[0]) <= set(made(name).get_params())
    ],
)
def test_wrong_facts_are_refused_before_the_charge(
    name: str, told: dict[str, Any], X: Any, words: str
) -> None:
    accountant = Accountant(Budget(100.0, 1e-2))
    with pytest.raises((ValueError, TypeError), match=words):
        made(name, **told, accountant=accountant).fit(X)
    assert not accountant.events


@pytest.mark.parametrize("name", STEPS)
def test_a_fit_leaves_what_is_declared_and_it_can_be_saved(name: str) -> None:
    for X, names in (
        (rows(), set()),
        (pd.DataFrame(rows(), columns=[*NAMES]), {"feature_names_in_"}),
    ):
        step = made(name).fit(X)
        left = set(vars(step)) - set(step.get_params(deep=False))
        declared = set(step._released) - {"feature_names_in_"} | names | {"privacy_"}
        assert left == declared
        writer = Writer()
        stored = {key: writer.write(getattr(step, key), key) for key in left - {"privacy_"}}
        reader = Reader(writer.members)
        again = clone(step)
        for key, value in stored.items():
            setattr(again, key, reader.read(value, key))
        np.testing.assert_array_equal(again.transform(X), step.transform(X))


@pytest.mark.parametrize("name", STEPS)
def test_facts_are_known_beforehand_and_true(name: str) -> None:
    facts = TableFacts(NAMES, 4.0, 60, classes=(0, 1), ranges=((-3.0, 3.0),) * 3, of_people=True)
    step = made(name)
    assert isinstance(step, HandsOn)
    before = step.facts_out(facts)
    X = np.clip(rows(), -2, 2) * np.array([1.0, 0.5, 0.1])
    fitted = made(name).fit(table_of(X))
    after = fitted.facts_out(facts)
    assert (before.row_norm, before.ranges, len(before.names)) == (
        after.row_norm,
        after.ranges,
        len(after.names),
    )
    assert (before.classes, before.n_records, before.of_people) == ((0, 1), 60, True)
    for asked in (X, 1e3 * X, np.full((1, 3), np.nan), np.zeros((1, 3))):
        out = fitted.transform(np.clip(asked, -3, 3))
        assert out.shape == (len(asked), len(before.names))
        assert np.linalg.norm(out, axis=1).max() <= before.row_norm * (1 + 1e-9)
        assert before.ranges is not None
        low, high = np.array(before.ranges).T
        assert np.all(out >= low - 1e-9)
        assert np.all(out <= high + 1e-9)
    table = table_of(X).through(fitted)
    assert table.facts.names == after.names


@pytest.mark.parametrize("name", STEPS)
def test_facts_of_an_unknown_table(name: str) -> None:
    with pytest.raises(Exception, match="not fitted"):
        made(name).facts_out()
    X = rows()
    fitted = made(name).fit(X)
    out = fitted.transform(X)
    assert np.linalg.norm(out, axis=1).max() <= fitted.facts_out().row_norm * (1 + 1e-9)


@pytest.mark.parametrize("name", STEPS)
def test_missing_values_break_nothing(name: str) -> None:
    X = rows()
    X[::3, 0], X[1::3, 2] = np.nan, np.inf
    X[5] = np.nan
    for table in (X, table_of(X)):
        out = made(name).fit(table).transform(X)
        assert np.all(np.isfinite(out))
    assert np.all(np.isfinite(made(name).fit(np.full((4, 3), np.nan)).transform(X)))


@pytest.mark.parametrize("name", STEPS)
def test_frames_give_the_same_rows(name: str) -> None:
    X = rows()
    X[3, 1] = np.nan
    frame = pd.DataFrame(X, columns=[*NAMES])
    step = made(name, random_state=3)
    expected = clone(step).fit(X).transform(X)
    for table in (frame, pl.from_pandas(frame), pa.Table.from_pandas(frame)):
        np.testing.assert_array_equal(clone(step).fit(table).transform(table), expected)


@pytest.mark.parametrize("name", STEPS)
def test_steps_compose_with_other_events(name: str) -> None:
    first, second = made(name).plan(3), made(name).plan(2)
    both = Guarantee(Composed((first.event, second.event)))
    assert 1.0 < both.epsilon(2 * DELTA) <= 2.0


@pytest.mark.parametrize("name", STEPS)
def test_a_seed_is_no_promise_and_an_infinite_budget_neither(name: str) -> None:
    assert made(name, random_state=0).fit(rows()).privacy_.voided_by
    assert made(name, epsilon=math.inf).fit(rows()).privacy_.voided_by


def expected_failures(estimator: Any) -> dict[str, str]:
    return {"check_dtype_object": "an error about one value would tell of one record"}


CHECKED = [
    made(name, epsilon=300.0, delta=1e-3, random_state=0, bounds=(-20.0, 20.0), row_norm=30.0)
    for name in STEPS
]


@pytest.mark.slow
@parametrize_with_checks(CHECKED, expected_failed_checks=expected_failures)
def test_sklearn_compatible(estimator: Any, check: Any) -> None:
    check(estimator)
