"""A score through the Gaussian mechanism: one record moves it by one at most."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LinearRegression, LogisticRegression

from tacit import linear_model
from tacit.metrics import private_score
from tacit.metrics.predictions import answers_of
from tacit.privacy import Gaussian, Relation
from tacit.testing import replay

ROWS = np.random.default_rng(0).normal(size=(60, 2))
LABELS = (ROWS[:, 0] > 0.2).astype(int)


def classifier() -> Any:
    return LogisticRegression().fit(ROWS, LABELS)


def regressor() -> Any:
    return LinearRegression().fit(ROWS, ROWS[:, 0])


def draws(n: int, model: Any, labels: Any, **more: Any) -> np.ndarray:
    return np.array([private_score(model, ROWS, labels, 3.0, **more).value for _ in range(n)])


class Sure(ClassifierMixin, BaseEstimator):
    """Says the same of everybody, at once."""

    classes_ = np.array([0, 1])

    def predict_proba(self, rows: Any) -> np.ndarray:
        return np.tile([0.2, 0.8], (len(rows), 1))


def test_mistakes_and_their_noise() -> None:
    model = Sure()
    # so many that 10 % less or more are 6 standard deviations beyond what is accepted
    noise = draws(9_000, model, LABELS) + np.sum(LABELS != 1)
    low, high = chi2.ppf([1e-9, 1 - 1e-9], noise.size)
    square = float(np.sum((noise / 3.0) ** 2))
    assert low < square < high
    for factor in (0.9, 1.1):
        assert not low < square * factor**2 < high
    assert private_score(model, ROWS, LABELS, 3.0).event == Gaussian(3.0)


def test_squares_in_units_of_the_range() -> None:
    model = regressor()
    wrong = np.where(np.arange(60) < 10, 2.0, -2.0)
    squares = np.sum((np.clip(model.predict(ROWS), -2, 2) - wrong) ** 2) / 16
    found = draws(300, model, wrong, label_range=(-2.0, 2.0))
    assert np.mean(found) == pytest.approx(-squares, abs=6 * 3.0 / np.sqrt(300))
    with pytest.raises(ValueError, match="label_range"):
        private_score(model, ROWS, wrong, 3.0)


@pytest.mark.parametrize("relation", [Relation.ADD_REMOVE, Relation.REPLACE])
@pytest.mark.parametrize("make", [classifier, regressor])
def test_replay_on_neighbours(make: Any, relation: Relation) -> None:
    model = make()

    def run(data: Any) -> Any:
        rows, labels = data
        return private_score(model, rows, labels, 1.0, relation=relation, label_range=(-1.0, 1.0))

    labels = LABELS.tolist()
    for value, label in [(np.nan, 1), (1e300, 0), (9.0, 0), (-9.0, 1), (0.1, None), (0.1, "x")]:
        here = (np.vstack([ROWS, [value, 0.0]]), [*labels, label])
        there: Any = (ROWS, labels)
        if relation is Relation.REPLACE:
            there = (np.vstack([ROWS, [-value, 0.0]]), [*labels, 1])
        assert replay(run, here, there) == 1


def test_one_record_a_person() -> None:
    model, who = classifier(), ["one"] * 60
    found = [
        private_score(
            model,
            ROWS,
            1 - model.predict(ROWS),
            0.01,
            relation=Relation.ADD_REMOVE_PERSON,
            unit=who,
        ).value
        for _ in range(3)
    ]
    assert np.allclose(found, -1.0, atol=0.1)
    with pytest.raises(ValueError, match="have no unit"):
        private_score(model, ROWS, LABELS, 1.0, relation=Relation.ADD_REMOVE_PERSON)


@pytest.mark.parametrize("labels", [[0, 1], [0, 1, 2]])
def test_a_record_more_changes_no_bit_of_what_is_said_of_others(labels: list[int]) -> None:
    # A matrix product rounds the last row of an odd number otherwise, and a bin has edges.
    rng = np.random.default_rng(0)
    for d in (7, 13):
        X = rng.standard_normal((600, d))
        y = rng.choice(labels, 600)
        model = linear_model.LogisticRegression(
            epsilon=5.0, delta=1e-5, row_norm=1.0, classes=labels, random_state=0
        ).fit(X, y)
        said = answers_of(model, X[:41])
        for n in (1, 2, 3, 17, 40):
            assert np.array_equal(answers_of(model, X[:n]), said[:n])
            assert np.array_equal(answers_of(model, np.asfortranarray(X[41 - n : 41])), said[-n:])
