"""One odd label is its own record's affair: it changes no other, and is quoted nowhere."""

from __future__ import annotations

import math
import warnings
from collections import UserList, deque
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

from tacit.engine import Plan, release
from tacit.erm import Objective, Problem, QuantileOnALine, minimize
from tacit.erm.losses import AnyLoss, HuberLoss, LogisticLoss, QuantileLoss, SoftmaxLoss
from tacit.erm.minimization import run_plan
from tacit.estimators.parameters import classes_of, codes_of
from tacit.linear_model import LinearRegression, LogisticRegression
from tacit.local import LocalRegressor
from tacit.location import GeometricMedian, Mean
from tacit.noise import Release, recording, seeded_source
from tacit.noise.release import Entry
from tacit.privacy import Accountant, Budget, Gaussian, GaussianSum, NonPrivate
from tacit.records import Bounds, MemoryRecords
from tacit.records.rows_and_labels import as_labels, as_numbers

ROWS = np.random.default_rng(0).uniform(-1, 1, (60, 2))


@pytest.mark.parametrize(
    "odd",
    [
        "nan",
        b"nan",
        None,
        math.inf,
        math.nan,
        np.ma.masked,
        Decimal("1e400"),
        Decimal("sNaN"),
        pd.NA,
    ],
    ids=repr,
)
def test_a_label_that_is_no_finite_number_is_refused_in_plain_words(odd: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ValueError, match=r"y (contains|holds)"):
            as_numbers([0.1, 0.2, odd])
        labels: Any = [0.1] * 59 + [odd]
        for model in (
            LinearRegression(row_norm=1.0, label_range=(0, 1)),
            LocalRegressor(row_norm=1.0),
        ):
            with pytest.raises(ValueError, match=r"y (contains|holds)"):
                model.fit(ROWS, labels)


@pytest.mark.parametrize("odd", [None, math.nan, pd.NA, Decimal("sNaN"), np.zeros(2), {}, "x"])
def test_a_label_that_is_no_class_does_not_count(odd: Any) -> None:
    labels = np.empty(60, dtype=object)
    labels[:] = [0, 1] * 30
    labels[7] = odd
    _, known = codes_of(as_labels(labels), np.array([0, 1]))
    assert np.flatnonzero(~known).tolist() == [7]
    LogisticRegression(classes=[0, 1]).fit(ROWS, labels)


@pytest.mark.parametrize("kind", [list, tuple, deque, UserList])
def test_a_sequence_keeps_the_types_of_its_labels(kind: Any) -> None:
    labels = as_labels(kind([0, 1, "patient 17"]))
    _, known = codes_of(labels, np.array([0, 1]))
    assert known.tolist() == [True, True, False]


def test_classes_of_several_types_are_refused() -> None:
    with pytest.raises(ValueError, match="several types") as refusal:
        classes_of("infer", [0, 1, "patient 17"])
    assert "17" not in str(refusal.value)
    with pytest.raises(ValueError, match="one type"):
        classes_of([1, "a"], None)
    assert classes_of("infer", ["b", "a"]).value.tolist() == ["a", "b"]
    assert classes_of([True, False], None).value.dtype == bool
    assert classes_of([1, 0.5], None).value.tolist() == [0.5, 1.0]


def test_neither_a_label_nor_its_length_is_in_an_error() -> None:
    long: Any = np.array(["a"] * 59 + ["patient John Smith"])
    odd: Any = np.array([b"a"] * 59 + [b"\xe9\xff"])
    for labels, classes in ((long, [0, 1]), (odd, ["a", "b"]), (odd, [0, 1])):
        with pytest.raises(ValueError, match="no record would count") as refusal:
            LogisticRegression(classes=classes).fit(ROWS, labels)
        assert not any(word in str(refusal.value) for word in ("18", "John", "xe9", "0xe9"))
    with pytest.raises(ValueError, match="one class") as refusal:
        LogisticRegression(classes="infer").fit(ROWS, ["secret diagnosis"] * 60)
    assert "secret" not in str(refusal.value)
    with pytest.raises(ValueError, match="1d array"):
        LogisticRegression(classes=[0, 1]).fit(ROWS, [[0], [1]] * 30)


@pytest.mark.parametrize("loss", [HuberLoss(1.0), QuantileLoss(0.5, 0.1), SoftmaxLoss(3)])
def test_a_label_that_is_not_finite_counts_as_zero_in_sums(loss: AnyLoss) -> None:
    bounds = Bounds(row_norm=1.0, label_range=(0.0, 2.0))
    labels = np.arange(60) % 3.0
    for odd in (math.nan, math.inf, -math.inf):
        strange, plain = labels.copy(), labels.copy()
        strange[4], plain[4] = odd, 0.0
        results = [
            minimize(
                MemoryRecords(ROWS, y, bounds),
                Objective(loss, bounds, 5.0),
                Budget(1.0, 1e-6),
                source=seeded_source(1),
            ).weights
            for y in (strange, plain)
        ]
        assert np.array_equal(*results)


def test_a_value_that_is_not_finite_counts_as_zero_in_a_quantile() -> None:
    bounds = Bounds(row_norm=100.0)
    mechanism = QuantileOnALine(0.0, 100.0)
    plan = mechanism.plan(Problem(Objective(QuantileLoss(0.5), bounds), 1), Budget(1.0))

    def utilities(*more: float) -> Any:
        rows = np.array([10.0, 20, 30, 40, 50, *more])[:, None]
        with recording() as tape:
            run_plan(plan, MemoryRecords(rows, None, bounds), None)
        (entry,) = (entry for entry in tape.entries if isinstance(entry, Entry))
        return entry.bounded.value

    for odd in (math.nan, math.inf, -math.inf):
        assert np.array_equal(utilities(odd), utilities(0.0))
    with pytest.raises(ValueError, match="dense"):
        run_plan(plan, MemoryRecords(scipy.sparse.csr_array([[1.0]]), None, bounds), None)


def test_a_source_that_changes_its_mind_is_caught() -> None:
    class Fickle:
        asked = 0

        @property
        def is_secure(self) -> bool:
            self.asked += 1
            return self.asked == 1

        def words(self, n: int) -> Any:
            return seeded_source(0).words(n)

    accountant = Accountant(Budget(1.0, 1e-5))
    bounds = Bounds()
    records = MemoryRecords(ROWS, np.sign(ROWS[:, 0]), bounds)
    objective = Objective(LogisticLoss(), bounds)
    asked = {"accountant": accountant, "source": Fickle()}
    with pytest.raises(RuntimeError, match="withheld"):
        minimize(records, objective, Budget(1.0, 1e-6), **asked)  # type: ignore[arg-type]


def test_a_release_that_calls_itself_void_is_not_what_was_charged() -> None:
    plan = Plan("a", Gaussian(5.0), Budget(1.0, 1e-6), "because")
    with pytest.raises(RuntimeError, match="withheld"):
        release(plan, lambda: Release(1.0, NonPrivate("whim", would_be=plan.event)))


@pytest.mark.parametrize("estimator", [Mean, GeometricMedian, LogisticRegression])
def test_a_plan_that_depends_on_the_number_of_records_asks_for_it(estimator: Any) -> None:
    model = estimator(n_records="infer")
    if hasattr(model, "classes"):
        model.classes = [0, 1]
    with pytest.raises(ValueError, match="n_records is 'infer'"):
        model.plan(2)
    assert model.plan(2, 60).budget.epsilon == 1.0


def test_a_mu_whose_square_vanishes_can_be_charged() -> None:
    accountant = Accountant(Budget(1.0, 1e-5), GaussianSum())
    assert accountant.charge(Gaussian(1e170)) == 0.0
    assert accountant.remaining() == pytest.approx(1.0)
