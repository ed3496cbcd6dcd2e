"""People whose records come in blocks: one record of each, the same one as in memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from tacit.erm import NoisyGradient
from tacit.linear_model import LinearRegression, LogisticRegression
from tacit.location import GeometricMedian, Mean, Median
from tacit.noise import SensitivityViolation
from tacit.privacy import Accountant, Budget, Relation
from tacit.records import Bounds, ChunkedRecords, MemoryRecords
from tacit.records.grouped import PeopleInMemory, PeopleInSource
from tacit.records.privacy_unit import people_of
from tacit.records.reweighted import ClassWeights, ReweightedRecords
from tacit.testing import replay

RNG = np.random.default_rng(0)
ROWS = RNG.uniform(-1, 1, (90, 2))
LABELS = np.where(ROWS[:, 0] > 0, 1.0, -1.0)
UNIT = np.array([f"p{place % 40}" for place in range(90)], dtype=object)
BOUNDS = Bounds(row_norm=1.5, intercept=0.375, n_classes=2)


def chunked(rows: Any, labels: Any, bounds: Bounds, step: int = 25) -> ChunkedRecords:
    def read() -> Any:
        for at in range(0, len(rows), step):
            part = slice(at, at + step)
            yield rows[part], None if labels is None else labels[part]

    return ChunkedRecords(read, 2, bounds)


def test_one_each_is_that_of_memory() -> None:
    unit = [None, *UNIT[1:]]
    found = PeopleInSource(chunked(ROWS, LABELS, BOUNDS), unit).one_each()
    expected = PeopleInMemory(ROWS, LABELS, BOUNDS, people_of(unit)).one_each()
    assert found.count() == expected.count() == 40
    totals = [r.sum(lambda b: (b.gram(np.ones(b.n_rows)),))[0] for r in (found, expected)]
    np.testing.assert_allclose(totals[0], totals[1])


def neighbours() -> tuple[Any, Any]:
    """Return records, and the same with a person whose forty extreme ones are in every block."""
    at = np.linspace(0, 90, 40, endpoint=False).astype(int)
    more = (
        np.insert(ROWS, at, [[1e6, -1e6]] * 40, axis=0),
        np.insert(LABELS, at, 1.0),
        np.insert(UNIT, at, "zoe"),
    )
    return (ROWS, LABELS, UNIT), more


FITS: list[Any] = [
    LogisticRegression(classes=[0, 1], row_norm=1.5, mechanism="objective_perturbation"),
    LogisticRegression(classes=[0, 1], row_norm=1.5, mechanism=NoisyGradient(n_steps=3)),
    LogisticRegression(classes=[0, 1], row_norm=1.5, inference=0.2),
    LogisticRegression(classes=[0, 1], row_norm=1.5, class_weight="balanced"),
    Mean(row_norm=1.5, inference=0.1),
    GeometricMedian(row_norm=1.5, mechanism=NoisyGradient(n_steps=3)),
]


def bounds_of(model: Any) -> Bounds:
    if not hasattr(model, "classes"):
        return Bounds(row_norm=1.5)
    weight = {"max_weight": 1.0} if model.class_weight else {}
    return Bounds(row_norm=1.5, intercept=0.375, n_classes=2, **weight)


@pytest.mark.parametrize("model", FITS, ids=lambda m: f"{type(m).__name__}-{m.get_params()}"[:80])
def test_a_person_more_or_less(model: Any) -> None:
    def fit(records: Any) -> Any:
        rows, labels, unit = records
        labels = labels if hasattr(model, "classes") else None
        source = chunked(rows, labels, bounds_of(model))
        fitted = clone(model).fit(source, None, unit=unit)
        assert fitted.privacy_.relation is Relation.ADD_REMOVE_PERSON
        return fitted

    fewer, more = neighbours()
    assert replay(fit, fewer, more) >= 1
    assert replay(fit, more, fewer) >= 1


def test_a_person_used_whole_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PeopleInSource, "one_each", PeopleInSource.everybody)
    model = LogisticRegression(classes=[0, 1], row_norm=1.5, mechanism=NoisyGradient(n_steps=3))
    fewer, more = ((chunked(rows, labels, BOUNDS), unit) for rows, labels, unit in neighbours())
    with pytest.raises(SensitivityViolation):
        replay(lambda told: clone(model).fit(told[0], None, unit=told[1]), fewer, more)


def test_a_plan_of_blocks_says_that_one_is_used() -> None:
    model = LogisticRegression(1.0, 1e-5, classes=[0, 1], row_norm=1.5, mechanism="noisy_gradient")
    plan = model.fit(chunked(ROWS, LABELS, BOUNDS), None, unit=UNIT).plan_
    assert "one record of each person is used" in str(plan)
    plan = model.fit(ROWS, LABELS > 0, unit=UNIT).plan_
    assert "the sum over a person's records is clipped" in str(plan)


def test_without_noise_every_record_counts() -> None:
    told: dict[str, Any] = {"row_norm": 1.5, "label_range": (-1, 1), "regularization": 1.0}
    model = LinearRegression(np.inf, 0.0, **told, fit_intercept=False)
    bounds = Bounds(row_norm=1.5, label_range=(-1.0, 1.0))
    weights = [
        model.fit(chunked(ROWS, LABELS, bounds), None, unit=unit).coef_ for unit in (None, UNIT)
    ]
    np.testing.assert_allclose(weights[0], weights[1])


@pytest.mark.parametrize("unit", [["a"] * 89, ["a"] * 91, []])
def test_other_lengths_are_refused_without_a_number(unit: Any) -> None:
    model = LogisticRegression(1.0, 1e-5, classes=[0, 1], row_norm=1.5)
    with pytest.raises(ValueError, match="different lengths") as error:
        model.fit(chunked(ROWS, LABELS, BOUNDS), None, unit=unit)
    assert "9" not in str(error.value)


@pytest.mark.parametrize("unit", ["abc", {"a": 1}, 5])
def test_what_is_no_list_is_refused_before_the_charge(unit: Any) -> None:
    accountant = Accountant(Budget(2.0, 1e-4, Relation.ADD_REMOVE_PERSON))
    model = LogisticRegression(1.0, 1e-5, classes=[0, 1], row_norm=1.5, accountant=accountant)
    with pytest.raises(TypeError, match="one identifier for each record"):
        model.fit(chunked(ROWS, LABELS, BOUNDS), None, unit=unit)
    assert accountant.spent() == 0.0


def test_a_source_that_cannot_choose_takes_no_unit() -> None:
    bare = ReweightedRecords(MemoryRecords(ROWS, LABELS, BOUNDS), ClassWeights((1.0, 0.5)))
    with pytest.raises(ValueError, match="chosen"):
        LogisticRegression(1.0, 1e-5, classes=[0, 1], row_norm=1.5).fit(bare, None, unit=UNIT)
    with pytest.raises(TypeError, match="single rows"):
        Median(1.0).fit(chunked(ROWS, None, Bounds()), unit=UNIT)
