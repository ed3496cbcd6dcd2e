"""What a fit of PATE charges, releases and keeps to itself."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

from tacit.engine import release_answers
from tacit.pate import (
    Confident,
    GNMax,
    LNMax,
    Majority,
    PATEClassifier,
    PATERegressor,
    Sanitised,
    SemiSupervised,
)
from tacit.pate.query_points import queries_of
from tacit.privacy import Accountant, Budget, BudgetExceeded, Gaussian, Relation, Repeated

from .helpers import Fragile, table

ROWS, LABELS, POOL = table(3000)
LINE = LogisticRegression()
Made = PATEClassifier(GaussianNB(), 60, LINE, 20, 8.0, 1e-5, classes=[0, 1, 2])


class Unread:
    """A teacher that must not be asked."""

    def fit(self, X: Any, y: Any) -> None:
        raise AssertionError("a teacher learned")

    predict = fit


def test_it_learns_and_says_what_it_cost() -> None:
    model = clone(Made).fit(ROWS, LABELS, POOL)
    truth = np.searchsorted(np.quantile(ROWS[:, 0], [1 / 3, 2 / 3]), POOL[:, 0])
    assert np.mean(model.predict(POOL) == truth) > 0.6
    assert model.privacy_.event == model.plan_.event
    assert 7.999 < model.privacy_.epsilon(1e-5) <= 8.0
    assert model.answers_.shape == model.queries_.shape == (20,)
    assert model.predict_proba(POOL).shape == (40, 3)
    left = set(vars(model)) - set(model.get_params(deep=False))
    assert left == {
        *("student_", "classes_", "n_features_in_", "queries_", "answers_", "privacy_", "plan_")
    }
    assert "come from none of the protected records" in model.privacy_.statement()


def test_it_is_charged_before_a_teacher_learns() -> None:
    accountant = Accountant(Budget(1.0, 1e-5))
    model = PATEClassifier(
        Unread(), 9, LINE, 5, 2.0, 1e-5, classes=[0, 1, 2], accountant=accountant
    )
    with pytest.raises(BudgetExceeded):
        model.fit(ROWS, LABELS, POOL)
    paid = Accountant(Budget(3.0, 1e-5))
    failing = clone(Made).set_params(accountant=paid, student=Fragile("raise"), epsilon=2.0)
    bad = ROWS.copy()
    bad[5, 1] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        failing.fit(bad, LABELS, POOL)
    assert paid.spent() == pytest.approx(2.0, rel=1e-6)


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"n_queries": 41}, "41"),
        ({"n_teachers": 0}, "n_teachers"),
        ({"queries": "best"}, "queries"),
        ({"accounting": "optimistic"}, "accounting"),
        ({"aggregator": Majority()}, "2 classes"),
        ({"aggregator": GNMax(noise_std=0.5)}, "above the budget"),
        ({"aggregator": LNMax(), "accounting": "sanitised"}, "proved for"),
        ({"delta": 0.0}, "delta above 0"),
        ({"classes": None}, "classes"),
        ({"queries": [1, 1, 2]}, "distinct"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_charged(
    changed: dict[str, Any], why: str
) -> None:
    accountant = Accountant(Budget(100.0, 1e-3))
    model = clone(Made).set_params(accountant=accountant, teacher=Unread(), **changed)
    with pytest.raises(ValueError, match=why):
        model.fit(ROWS, LABELS, POOL)
    assert accountant.spent() == 0.0


def test_a_pool_of_other_columns_is_refused() -> None:
    with pytest.raises(ValueError, match="columns"):
        clone(Made).fit(ROWS, LABELS, POOL[:, :2])
    with pytest.raises(ValueError, match="X_public"):
        clone(Made).fit(ROWS, LABELS)
    with pytest.raises(ValueError, match="X_public is X, the sensitive records themselves"):
        clone(Made).fit(ROWS, LABELS, ROWS)
    with pytest.raises(TypeError, match="teacher"):
        clone(Made).set_params(teacher="forest").fit(ROWS, LABELS, POOL)


@pytest.mark.parametrize("temper", ["raise", "warn", "shape", "type", "class"])
def test_a_failing_teacher_is_a_vote_and_nothing_else(temper: str) -> None:
    rows = ROWS.copy()
    rows[::7] = 99.0  # every teacher meets one
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = clone(Made).set_params(teacher=Fragile(temper), student=GaussianNB())
        model.fit(rows, LABELS, POOL)
    if temper not in ("warn",):
        assert set(model.predict(POOL).tolist()) == {0}  # the constant


def test_one_class_and_no_records() -> None:
    model = clone(Made).set_params(n_teachers=200, epsilon=500.0)
    assert set(model.fit(ROWS[:50], np.full(50, 2), POOL).predict(POOL).tolist()) <= {0, 2}
    odd = np.array(["x", None, 2, 1.5, 0] * 10, dtype=object)
    clone(Made).fit(ROWS[:50], odd, POOL)  # labels that are no class do not count


def test_people() -> None:
    unit = np.repeat(np.arange(600), 5)
    model = clone(Made).fit(ROWS, LABELS, POOL, unit=unit)
    assert model.privacy_.relation is Relation.ADD_REMOVE_PERSON
    # the same noise as for a record
    assert model.plan_.settings == clone(Made).plan().settings


def test_without_noise_it_is_the_plurality() -> None:
    model = clone(Made).set_params(epsilon=math.inf).fit(ROWS, LABELS, POOL)
    assert model.privacy_.voided_by == ("the budget is infinite",)
    seeded = clone(Made).set_params(random_state=1)
    first, second = (seeded.fit(ROWS, LABELS, POOL).answers_ for _ in range(2))
    np.testing.assert_array_equal(first, second)
    assert seeded.privacy_.voided_by


@pytest.mark.slow
def test_jobs_vote_alike() -> None:
    model = clone(Made).set_params(random_state=1, teacher=DecisionTreeClassifier(), n_teachers=6)
    one = clone(model).fit(ROWS, LABELS, POOL).answers_
    two = clone(model).set_params(n_jobs=2).fit(ROWS, LABELS, POOL).answers_
    np.testing.assert_array_equal(one, two)


def test_progress(capsys: pytest.CaptureFixture[str]) -> None:
    clone(Made).set_params(verbose=True).fit(ROWS, LABELS, POOL)
    said = capsys.readouterr().err
    assert "60 of 60 teachers" in said
    assert "gnmax" in said


def test_confident_answers_no_more_than_it_paid_for(monkeypatch: pytest.MonkeyPatch) -> None:
    model = clone(Made).set_params(aggregator=Confident(n_answers=7, threshold=0.3), epsilon=50.0)
    model.fit(ROWS, LABELS, POOL)
    assert 0 < np.sum(model.answers_ >= 0) <= 7
    split = [np.full(20, i // 30 + i // 45) for i in range(60)]  # 30, 15 and 15 votes: far below
    monkeypatch.setattr("tacit.pate.classifier.each_vote", lambda *_, **__: iter(split))
    high = clone(Made).set_params(aggregator=Confident(7, 0.99), epsilon=300.0)
    with pytest.raises(ValueError, match="no query was answered"):
        high.fit(ROWS, LABELS, POOL)


def test_a_sanitised_figure() -> None:
    rows, labels, pool = table(6000, n_classes=2)
    model = PATEClassifier(GaussianNB(), 100, LINE, 30, 3.0, 1e-5, accounting=Sanitised())
    model.set_params(classes=[0, 1]).fit(rows, labels, pool)
    assert model.privacy_.epsilon(1e-5) <= 3.0
    assert model.sanitised_.epsilon is not None
    assert model.sanitised_.epsilon > 0.0
    assert model.sanitised_.failure == 0.05
    # it is charged for, so that the votes have a little more noise
    plain = clone(model).set_params(accounting="worst_case").plan()
    assert model.plan_.settings["noise_std"] > plain.settings["noise_std"]


def test_plans_need_no_data() -> None:
    plan = PATEClassifier(n_teachers=250, n_queries=500, epsilon=1.31, delta=1e-5).plan(2)
    assert isinstance(plan.aggregator, Majority)
    assert plan.settings["noise_std"] == pytest.approx(80.0, rel=0.01)
    text = str(plan)
    assert "250 queries" in text
    assert "1000 queries" in text
    assert "500 teachers" in text
    assert plan.right(0.9) > plan.right(0.6) > 0.5
    one = PATEClassifier(n_queries=1, epsilon=1.31, delta=1e-5).plan(2)
    assert isinstance(one.aggregator, GNMax)


def test_regression() -> None:
    line = LinearRegression()
    model = PATERegressor(line, 100, line, 20, 8.0, 1e-5, label_range=(-3, 3))
    model.fit(ROWS, ROWS[:, 0], POOL)
    assert np.corrcoef(model.predict(POOL), POOL[:, 0])[0, 1] > 0.8
    assert model.privacy_.epsilon(1e-5) <= 8.0
    assert model.privacy_.event == Gaussian(model.plan_.settings["noise_multiplier"])
    exact = clone(model).set_params(epsilon=math.inf).fit(ROWS, ROWS[:, 0], POOL)
    np.testing.assert_allclose(exact.answers_, np.clip(POOL[exact.queries_, 0], -3, 3), atol=0.01)
    many = clone(model).set_params(n_teachers=20, n_queries=5000, epsilon=2000.0)
    plan, halves = many.plan(), [np.full(5000, 2**19)] * 20
    noise = release_answers(plan, lambda: halves, lambda session: many._means(session, plan)).value
    planned = plan.settings["noise_std_of_a_mean"]
    assert 0.94 < np.std(noise) / planned < 1.06  # six standard deviations
    with pytest.raises(ValueError, match="label_range"):
        clone(model).set_params(label_range=None).fit(ROWS, ROWS[:, 0], POOL)


def test_queries() -> None:
    for word in ("kmeans", "random"):
        places = queries_of(word).places(POOL, 9)
        assert len(set(places.tolist())) == 9
        np.testing.assert_array_equal(places, queries_of(word).places(POOL, 9))
    assert queries_of("kmeans").places(np.ones((30, 2)), 12).size == 12  # fewer clusters than asked
    assert queries_of([3, 1]).places(POOL, 2).tolist() == [3, 1]
    with pytest.raises(ValueError, match="all 40"):
        queries_of("all").places(POOL, 9)


def test_the_default_student_learns_from_the_whole_pool() -> None:
    rng = np.random.default_rng(0)
    angle = rng.uniform(0, np.pi, 600)
    moons = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    truth = np.arange(600) % 2
    moons[truth == 1] = moons[truth == 1] * [1, -1] + [1, 0.5]
    moons += 0.05 * rng.standard_normal(moons.shape)
    places = np.arange(0, 600, 61)  # ten labels
    student = SemiSupervised(n_rounds=0).learn(moons, places, truth[places])
    assert np.mean(student.predict(moons) == truth) > 0.95
    one_line = LogisticRegression().fit(moons[places], truth[places])
    assert np.mean(one_line.predict(moons) == truth) < 0.95


def test_a_threshold_is_charged_for_every_query() -> None:
    plan = PATEClassifier(
        n_queries=300, epsilon=1.0, delta=1e-5, aggregator=Confident(n_answers=40)
    ).plan(3)
    both: Any = plan.event
    first, then = both.events
    assert isinstance(first, Repeated)
    assert (first.count, then.count) == (300, 40)
    noises: Any = (first.event, then.event)
    spent = 300 / noises[0].noise_multiplier ** 2 + 40 / noises[1].noise_multiplier ** 2
    assert spent == pytest.approx((1 / 3.730632) ** 2, rel=1e-5)


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"teacher": GaussianNB}, r"got the class GaussianNB itself; pass GaussianNB\(\)"),
        ({"student": GaussianNB}, r"got the class GaussianNB itself; pass GaussianNB\(\)"),
        ({"student": "bayes"}, "student must be an estimator with fit and predict, got str"),
        (
            {"aggregator": "gnmax"},
            r"must be an Aggregator, got 'gnmax'; pass one of .*GNMax\(\)",
        ),
    ],
)
def test_what_is_of_another_kind_is_refused_before_anything_is_charged(
    changed: dict[str, Any], why: str
) -> None:
    accountant = Accountant(Budget(100.0, 1e-3))
    model = PATEClassifier(
        **{"teacher": GaussianNB(), "n_teachers": 20, "n_queries": 10, **changed}
    )
    model.set_params(classes=[0, 1, 2], accountant=accountant)
    with pytest.raises(TypeError, match=why):
        model.fit(ROWS, LABELS, POOL)
    if "aggregator" not in changed:
        of_numbers = PATERegressor(LinearRegression(), label_range=(0, 1), accountant=accountant)
        with pytest.raises(TypeError, match=why):
            of_numbers.set_params(**changed).fit(ROWS, ROWS[:, 0], POOL)
    assert accountant.spent() == 0.0
