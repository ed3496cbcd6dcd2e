"""What is said to somebody who left something out or got it wrong: before anything is read."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import tacit
from tacit.erm import L2Ball
from tacit.linear_model import LinearRegression, LinearSVC, LogisticRegression
from tacit.location import Median
from tacit.privacy import Accountant, Budget
from tacit.registry import MODELS, WAVES, Example, ModelSpec
from tacit.schema import ClassTarget, Number, Schema, SchemaEncoder
from tacit.table_facts import EncodedTable, TableFacts
from tests import declared
from tests.declared import fit, made, word_of

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (60, 2))
Y = X[:, 0] > 0
WITH_NORM = [spec for spec in MODELS if "row_norm" in spec.model().get_params()]
# A kernel takes it for its bandwidth alone, where that is not declared: tests/kernel.
SCALING = [spec for spec in WITH_NORM if spec.link is not WAVES]
WITH_CONSTRAINT = [spec for spec in MODELS if "constraint" in spec.model().get_params()]


def example_of(spec: ModelSpec) -> Example:
    return spec.examples()[0]


def told(work: Any) -> list[warnings.WarningMessage]:
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        work()
    # Whether sixty records can be told from none is a matter of the noise.
    return [one for one in said if one.category is not tacit.NobodyCountedWarning]


def without_norm(spec: ModelSpec, **parameters: Any) -> Any:
    known = dict(example_of(spec).parameters)
    known.pop("row_norm")
    return spec.model(**known, **parameters)


@pytest.mark.parametrize("spec", SCALING, ids=word_of)
def test_an_undeclared_row_norm_is_said_once(spec: ModelSpec) -> None:
    model, example = without_norm(spec, random_state=3), example_of(spec)
    (said,) = told(lambda: fit(model, example.rows, example.labels))
    assert said.category is tacit.UndeclaredWarning
    assert str(said.message).startswith("row_norm is not declared, so it is 1.0: ")
    assert "Pass row_norm=..., a size known without looking" in str(said.message)
    assert said.filename == declared.__file__  # whoever called fit
    assert model.row_norm is None
    one = without_norm(spec, random_state=3, row_norm=1.0)
    assert told(lambda: fit(one, example.rows, example.labels)) == []
    released = "location_" if hasattr(model, "location_") else "coef_"
    np.testing.assert_array_equal(getattr(model, released), getattr(one, released))


@pytest.mark.parametrize("spec", [s for s in SCALING if hasattr(s.model, "plan")], ids=word_of)
def test_a_plan_says_what_the_row_norm_does(spec: ModelSpec) -> None:
    (said,) = told(lambda: without_norm(spec).plan(3))
    assert said.category is tacit.UndeclaredWarning
    plan = str(without_norm(spec, row_norm=2.5).plan(3))
    assert "rows longer than 2.5 are scaled down to it; the noise is proportional to it" in plan


def test_a_stream_that_goes_on_does_not_say_it_again() -> None:
    model = tacit.local.LocalLogisticRegression()
    assert len(told(lambda: model.partial_fit(X, Y))) == 1
    assert told(lambda: model.partial_fit(X, Y)) == []


def test_a_schema_declares_it() -> None:
    schema = Schema((Number("age", 0, 100),), ClassTarget("ill", ("no", "yes")))
    table = pd.DataFrame({"age": [10.0, 90.0] * 500, "ill": ["no", "yes"] * 500})
    for epsilon, expected in ((1.0, []), (20.0, [tacit.WeakPromiseWarning])):
        model = LogisticRegression(epsilon)
        steps = [("encode", SchemaEncoder(schema)), ("model", model)]
        for whole in (tacit.TableModel(schema, model), tacit.PrivatePipeline(steps, epsilon=None)):
            assert [w.category for w in told(lambda m=whole: m.fit(table))] == expected
            assert [w.category for w in told(whole.plan)] == expected


FACTS = ("row_norm", "n_records", "classes", "label_range")


@pytest.mark.parametrize("spec", WITH_NORM, ids=word_of)
def test_what_a_table_brings_is_declared(spec: ModelSpec) -> None:
    """Bit for bit the fit to bare rows by an estimator that was told the same."""
    example = example_of(spec)
    rows, labels = np.asarray(example.rows), example.labels
    known = dict(example.parameters)
    if "n_records" in spec.model().get_params():
        known["n_records"] = len(rows)
    by_hand = fit(spec.model(**known, random_state=3), rows, labels)
    facts = {name: known.pop(name) for name in FACTS if name in known}
    names = tuple(map(str, range(rows.shape[1])))
    table = EncodedTable(
        TableFacts(names, **facts, assumptions=("it says",)), lambda: (rows, labels)
    )
    model = spec.model(**known, random_state=3)
    assert told(lambda: model.fit(table, None)) == []
    released = "location_" if hasattr(model, "location_") else "coef_"
    assert getattr(model, released).tobytes() == getattr(by_hand, released).tobytes()
    assert model.privacy_.event == by_hand.privacy_.event
    assert "it says" in model.privacy_.assumptions
    assert getattr(model, "row_norm_", None) == getattr(by_hand, "row_norm_", None)
    assert model.row_norm is None


@pytest.mark.parametrize("spec", MODELS, ids=word_of)
def test_a_large_epsilon_is_said_once(spec: ModelSpec) -> None:
    example = example_of(spec)
    for epsilon, expected in ((20.0, 1), (10.0, 0), (math.inf, 0)):
        model = made(spec, example, epsilon=epsilon)
        said = told(lambda m=model: fit(m, example.rows, example.labels))
        assert [w.category for w in said] == [tacit.WeakPromiseWarning] * expected
        assert all("epsilon 20 is above 10" in str(w.message) for w in said)
    if hasattr(spec.model, "plan"):
        assert len(told(lambda: made(spec, example, epsilon=20.0).plan(3))) == 1


def test_a_large_delta_is_said_of_the_public_number_of_records_or_of_a_thousand() -> None:
    parameters: dict[str, Any] = {"delta": 0.1, "row_norm": 1.0}
    (said,) = told(lambda: LogisticRegression(**parameters, n_records=60).fit(X, Y))
    assert "delta 0.1 is above 1 in the 60 records" in str(said.message)
    (said,) = told(lambda: LogisticRegression(**parameters).fit(X, Y))
    assert "delta 0.1 is above 1 in 1,000" in str(said.message)
    small = {**parameters, "delta": 1e-3}
    assert told(lambda: LogisticRegression(**small).fit(X, Y)) == []
    assert len(told(lambda: LinearSVC(**parameters).plan(2, n_records=60))) == 1
    assert len(told(lambda: Median(1.0, 0.1).plan(2, n_records=60))) == 1


def refused(model: Any, rows: Any, labels: Any, kind: type[Exception], said: str) -> None:
    """See a fit refuse with these words, and that it is not charged for."""
    accountant = Accountant(Budget(100.0, 0.5))
    if "accountant" in model.get_params():
        model.set_params(accountant=accountant)
    with pytest.raises(kind, match=said):
        fit(model, rows, labels)
    assert accountant.spent() == 0.0


@pytest.mark.parametrize("spec", WITH_NORM, ids=word_of)
def test_a_row_norm_that_is_none(spec: ModelSpec) -> None:
    example = example_of(spec)
    for wrong in (math.nan, math.inf, 0.0, -1.0):
        model = without_norm(spec, row_norm=wrong)
        words = f"row_norm must be positive and finite, got {wrong!r}; pass the norm"
        refused(model, example.rows, example.labels, ValueError, words)
    said = "row_norm='infer' is refused: the longest row is itself a record.*Pass a number"
    inferred = without_norm(spec, row_norm="infer")
    refused(inferred, example.rows, example.labels, ValueError, said)
    text = without_norm(spec, row_norm="2")
    said = r"row_norm must be a real number, got '2' \(str\); pass the norm"
    refused(text, example.rows, example.labels, TypeError, said)


@pytest.mark.parametrize("spec", WITH_CONSTRAINT, ids=word_of)
@pytest.mark.parametrize("wrong", [5, 0, "ball", L2Ball])
def test_a_constraint_that_is_no_set(spec: ModelSpec, wrong: Any) -> None:
    example = example_of(spec)
    model = made(spec, example, constraint=wrong)
    said = r"a constraint must be a set of feasible weights, got .*; pass tacit.erm.L2Ball\(5.0\)"
    refused(model, example.rows, example.labels, TypeError, said)


@pytest.mark.parametrize(
    "table",
    [
        pd.DataFrame({"a": [1.0, 2.0], "town": ["x", "y"]}),
        pd.DataFrame({"a": [1.0, 2.0], "town": ["x", "y"]}).astype({"town": "category"}),
        pl.DataFrame({"a": [1.0, 2.0], "town": ["x", "y"]}),
        pa.table({"a": [1.0, 2.0], "town": ["x", "y"]}),
    ],
    ids=["pandas", "category", "polars", "arrow"],
)
def test_a_column_of_text_costs_nothing(table: Any) -> None:
    said = "column 'town' of X holds .*not numbers.*Drop the column, or encode it.*TableModel"
    refused(LogisticRegression(row_norm=1.0), table, np.array([True, False]), ValueError, said)


def test_an_array_of_text_costs_nothing() -> None:
    rows = np.array([["x", "y"], ["z", "w"]])
    said = "column 0 of X holds text, not numbers"
    refused(LogisticRegression(row_norm=1.0), rows, np.array([True, False]), ValueError, said)


def test_a_missing_value_is_named_by_its_column() -> None:
    # To find it is to read the records, so that the fit is paid for.
    rows = pd.DataFrame({"a": X[:, 0], "b": np.where(np.arange(60) == 7, np.nan, X[:, 1])})
    with pytest.raises(ValueError, match=r"contains NaN. It is in column 'b'; fill in or drop"):
        LogisticRegression(row_norm=1.0).fit(rows, Y)


@pytest.mark.parametrize("model", [LogisticRegression, LinearSVC])
def test_a_missing_label_does_not_count(model: Any) -> None:
    labels = pd.Series(Y, dtype="boolean")
    labels[7] = pd.NA
    whole = model(row_norm=1.0, random_state=0).fit(X, labels)
    there = np.arange(60) != 7
    without = model(row_norm=1.0, random_state=0).fit(X[there], Y[there])
    np.testing.assert_array_equal(whole.coef_, without.coef_)


def test_a_missing_label_is_named_where_it_cannot_be_left_out() -> None:
    labels = pd.Series(Y, dtype="boolean")
    labels[7] = pd.NA
    with pytest.raises(ValueError, match=r"or some are missing; declare classes=.*do not count"):
        LogisticRegression(row_norm=1.0, classes="infer").fit(X, labels)
    with pytest.raises(ValueError, match=r"y holds something else than numbers.*Drop such records"):
        LinearRegression(row_norm=1.0, label_range=(0, 1)).fit(X, labels)
