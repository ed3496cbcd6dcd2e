"""A record moves one teacher, whatever teachers do; and what breaks that, is noticed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from pate_analysis import answers_to
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from tacit.noise import ReplayMismatch, SensitivityViolation
from tacit.noise.selection import finite
from tacit.pate import (
    Confident,
    GNMax,
    PATEClassifier,
    PATEPlan,
    PATERegressor,
    teachers,
)
from tacit.privacy import Relation
from tacit.queries import Votes
from tacit.records import splits as parts_module
from tacit.testing import replay

from .helpers import N_TEACHERS, Fragile, OrderedTree, each_teacher, n_changed, table

ADD, REPLACE, PERSON = Relation.ADD_REMOVE, Relation.REPLACE, Relation.ADD_REMOVE_PERSON
ROWS, LABELS, POOL = table()
ODD = np.array([[90.0, -90.0, 70.0]])
TEACHERS = [
    DecisionTreeClassifier(max_depth=4),
    OrderedTree(),
    RandomForestClassifier(5),
    *(Fragile(temper) for temper in ("raise", "warn", "draw", "shape", "type", "class")),
]


def with_record(rows: Any, labels: Any, row: Any, label: Any, at: int) -> tuple[Any, Any]:
    return np.insert(rows, at, row, axis=0), np.insert(labels.astype(object), at, label)


@pytest.mark.parametrize("teacher", TEACHERS, ids=repr)
def test_an_added_record_moves_one_teacher(teacher: Any) -> None:
    before = each_teacher(teacher, ROWS, LABELS, POOL, ADD)
    for at in (0, 200, 400):
        more = with_record(ROWS, LABELS, ODD, 2, at)
        assert n_changed(before, each_teacher(teacher, *more, POOL, ADD)) <= 1


def test_equal_records_move_one_teacher() -> None:
    """A copy comes before the original, so that its turn is the original's."""
    for i in range(0, 400, 80):
        before = each_teacher(OrderedTree(), ROWS, LABELS, POOL, ADD)
        more = with_record(ROWS, LABELS, ROWS[i], LABELS[i], 0)
        assert n_changed(before, each_teacher(OrderedTree(), *more, POOL, ADD)) <= 1


@pytest.mark.parametrize("teacher", TEACHERS, ids=repr)
def test_a_replaced_record_moves_one_teacher(teacher: Any) -> None:
    before = each_teacher(teacher, ROWS, LABELS, POOL, REPLACE)
    for at, label in ((0, 2), (100, "no class"), (399, 0)):
        other, labels = ROWS.copy(), LABELS.astype(object)
        other[at], labels[at] = ODD, label
        assert n_changed(before, each_teacher(teacher, other, labels, POOL, REPLACE)) <= 1


def test_a_person_moves_one_teacher() -> None:
    unit = [f"p{i // 4}" for i in range(400)]
    before = each_teacher(OrderedTree(), ROWS, LABELS, POOL, PERSON, unit)
    rows = np.vstack([ODD, ROWS, -ODD, ODD])
    labels = np.concatenate([[0], LABELS, [1], [2]])
    whose = ["new", *unit, "new", "new"]
    assert n_changed(before, each_teacher(OrderedTree(), rows, labels, POOL, PERSON, whose)) == 1


def test_a_changed_teacher_is_seen_at_all() -> None:
    moved = 0
    before = each_teacher(OrderedTree(), ROWS, LABELS, POOL, ADD)
    for label in (0, 1, 2):
        more = with_record(ROWS, LABELS, ODD, label, 7)
        moved += n_changed(before, each_teacher(OrderedTree(), *more, POOL, ADD))
    assert moved >= 2


def test_a_hash_under_replace_moves_two_teachers(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mutant: records are split by what they say, and the number of records is public."""
    monkeypatch.setattr(
        parts_module,
        "_words_by",
        lambda relation, key, rows, columns, people, positions: (
            parts_module._words_of_records(key, rows, columns),
            np.ones(len(rows), dtype=bool),
        ),
    )
    before = each_teacher(OrderedTree(), ROWS, LABELS, POOL, REPLACE)
    moved = []
    for at in range(0, 400, 50):
        other = ROWS.copy()
        other[at] = ODD
        moved.append(n_changed(before, each_teacher(OrderedTree(), other, LABELS, POOL, REPLACE)))
    assert max(moved) == 2


def neighbours(relation: Relation, n_classes: int) -> tuple[Any, Any]:
    rows, labels, _ = table(n_classes=n_classes)
    if relation is REPLACE:
        return (rows, labels), (np.vstack([rows[:-1], ODD]), np.append(labels[:-1], 0))
    return (rows, labels), (np.vstack([rows, ODD]), np.append(labels, 0))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_sanitised_figure_is_replayed(n_classes: int) -> None:
    first, second = neighbours(ADD, n_classes)

    def fit(data: Any) -> Any:
        model = PATEClassifier(
            OrderedTree(),
            N_TEACHERS,
            LogisticRegression(),
            10,
            accounting="sanitised",
            classes=range(n_classes),
            random_state=3,
        )
        return model.fit(data[0], data[1], POOL)

    assert replay(fit, first, second) == 2


@pytest.mark.parametrize("relation", [ADD, REPLACE], ids=lambda r: r.value)
def test_regressors_are_replayed(relation: Relation) -> None:
    first, second = neighbours(relation, 3)

    def fit(data: Any) -> Any:
        line = LinearRegression()
        model = PATERegressor(
            line, N_TEACHERS, line, 10, label_range=(0, 2), relation=relation, random_state=3
        )
        return model.fit(data[0], data[1], POOL)

    assert replay(fit, first, second) == replay(fit, second, first) == 1


def gnmax_fit(data: Any) -> Any:
    model = PATEClassifier(
        OrderedTree(), N_TEACHERS, LogisticRegression(), 10, classes=range(3), random_state=3
    )
    return model.fit(data[0], data[1], POOL)


def test_a_shared_state_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mutant: one record's teacher leaves something to all others."""
    honest, met = teachers.fitted, []

    def leaky(teacher: Any, rows: Any, labels: Any) -> Any:
        met.append(bool(np.max(np.abs(rows)) > 50))
        return honest(teacher, -rows if any(met) else rows, labels)

    def fit(data: Any) -> Any:
        met.clear()
        return gnmax_fit(data)

    monkeypatch.setattr(teachers, "fitted", leaky)
    rows, labels, _ = table()

    def tried() -> None:
        # whoever meets it, those after it change
        for at in range(30):
            replay(fit, (rows, labels), with_record(rows, labels, ODD * (1 + at), 0, 0))

    with pytest.raises(SensitivityViolation):
        tried()


def test_what_is_not_as_planned_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mutants: thresholds of one query more, votes of fewer teachers, less noise."""
    data = table()[:2]
    confident = PATEClassifier(
        OrderedTree(), N_TEACHERS, n_queries=10, classes=range(3), aggregator=Confident(5, 0.3)
    )
    honest_thresholds = Confident._thresholds

    def one_more(self: Confident, votes: Votes) -> Any:
        return honest_thresholds(self, replace(votes, n_queries=votes.n_queries + 1))

    with monkeypatch.context() as patch:
        event, slots = confident.plan().event, confident.plan().slots()
        patch.setattr(Confident, "_thresholds", one_more)
        patch.setattr(PATEPlan, "slots", lambda self: slots)
        patch.setattr(PATEPlan, "event", event)
        with pytest.raises(RuntimeError, match="was paid for"):
            confident.fit(*data, POOL)
    honest = finite.gaussian_winners
    gnmax = PATEClassifier(OrderedTree(), N_TEACHERS, n_queries=10, classes=range(3))
    with monkeypatch.context() as patch:
        patch.setattr(
            "tacit.queries.votes.gaussian_winners",
            lambda votes, std, *more, **named: honest(votes, 0.9 * std, *more, **named),
        )
        with pytest.raises(RuntimeError, match="withheld"):
            gnmax.fit(*data, POOL)
    with monkeypatch.context() as patch:
        honest_votes = teachers.each_vote

        def twice(*given: Any, **named: Any) -> Any:
            return (vote for vote in honest_votes(*given, **named) for _ in range(2))

        patch.setattr("tacit.pate.classifier.each_vote", twice)
        with pytest.raises(ValueError, match="40 teachers answered, but 20 were planned"):
            gnmax.fit(*data, POOL)


def test_a_stop_that_depends_on_the_votes_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mutant: it goes on until the votes' own cost is spent, and so tells that cost."""
    from tacit.queries.votes_cost import votes_renyi

    honest = finite.gaussian_winners

    def costs(votes: Any) -> Any:
        return np.cumsum([float(votes_renyi([v], 3.0, [3.0])[0]) for v in votes])

    votes = np.array([[18.0, 1.0, 1.0], [20.0, 0.0, 0.0], [19.0, 1.0, 0.0], [20.0, 0.0, 0.0]])
    moved = votes + np.array([[-1, 1, 0], [-1, 0, 1], [-1, 1, 0], [-1, 1, 0]])
    enough = (costs(votes)[2] + costs(moved)[2]) / 2
    assert costs(votes)[2] < enough < costs(moved)[2]

    def until_spent(votes: Any, *more: Any, **named: Any) -> Any:
        n = int(np.searchsorted(costs(votes), enough))
        return honest(votes[: max(n, 1)], *more, **named)

    monkeypatch.setattr("tacit.queries.votes.gaussian_winners", until_spent)

    def answers(votes: Any) -> Any:
        return answers_to(GNMax(noise_std=3.0), votes, ADD)

    with pytest.raises(ReplayMismatch, match="shape"):
        replay(answers, votes, moved)
