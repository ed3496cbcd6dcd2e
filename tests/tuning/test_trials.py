"""How far one record moves the score of a try."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator, RegressorMixin, is_classifier

from tacit.linear_model import LinearRegression
from tacit.noise import seeded_source
from tacit.privacy import ExponentialMechanism, Relation
from tacit.queries.base import plain_facts
from tacit.queries.evaluation import CandidateMistakes, MistakeBalance
from tacit.table_facts import EncodedTable, TableFacts
from tacit.tuning import DisjointSearch
from tacit.tuning.trials import MistakesOfEach, Run, mistakes
from tests.tuning.test_search import logistic, records


def balance_of(model: Any) -> MistakeBalance:
    """Return the statistic of a model's mistakes."""
    return MistakeBalance(whole=is_classifier(model))


def balance(model: Any, rows: Any, labels: Any, relation: Relation) -> float:
    """Return what a score is without noise."""
    total = balance_of(model).total(mistakes(model, rows, labels), plain_facts(relation))
    return float(np.ravel(total)[0])


@pytest.mark.parametrize("relation", [Relation.ADD_REMOVE, Relation.REPLACE])
@pytest.mark.parametrize("kind", ["classes", "numbers"])
def test_a_record_moves_a_score_by_its_sensitivity_and_no_more(
    kind: str, relation: Relation
) -> None:
    X, y = records(60)
    if kind == "classes":
        model: Any = logistic(epsilon=20.0).fit(X, y)
    else:
        model = LinearRegression(label_range=(0.0, 1.0), row_norm=1.5, epsilon=20.0).fit(X, y)
    right = model.predict(X[:1])
    wrong = right < 0.5
    first, other = (balance(model, X, np.append(one, y[1:]), relation) for one in (wrong, right))
    if relation.adds_or_removes:
        other = balance(model, X[1:], y[1:], relation)
    stated = balance_of(model).sensitivity(plain_facts(relation)).value
    assert 0.99 * stated <= abs(first - other) <= stated


@pytest.mark.parametrize("relation", [Relation.ADD_REMOVE, Relation.REPLACE])
def test_where_there_is_no_record_nothing_is_counted(relation: Relation) -> None:
    """Half a mistake of nobody would be as far again from the first record."""
    X, y = records(60)
    numbers = LinearRegression(label_range=(0.0, 1.0), row_norm=1.5, epsilon=20.0).fit(X, y)
    for model in (logistic(epsilon=20.0).fit(X, y), numbers):
        assert len(mistakes(model, X[:0], y[:0])) == 0
        assert balance(model, X[:0], y[:0], relation) == 0.0
        stated = balance_of(model).sensitivity(plain_facts(relation)).value
        for label in (0, 1):
            assert abs(balance(model, X[:1], np.array([label]), relation)) <= stated


def mistakes_of_each(model: Any, rows: Any, labels: Any) -> float:
    """Return how many mistakes a candidate of a choice is found to make."""
    facts, source = plain_facts(Relation.ADD_REMOVE), seeded_source(0)
    table = EncodedTable(TableFacts(("x0",), 1.0), lambda: (rows, labels))
    wrong, _ = MistakesOfEach([model]).apply(table, facts, source)
    return -float(CandidateMistakes(1).total(wrong, facts)[0])


class Saying(RegressorMixin, BaseEstimator):
    """Predicts the first column, as it is."""

    label_range = (0.0, 8.0)

    def predict(self, X: Any) -> Any:
        return X[:, 0]


def test_a_number_is_one_mistake_at_most() -> None:
    """min((residual / a quarter of the range)^2, 1), whatever is said and whatever is true."""
    said = np.array([[4.0], [5.0], [6.0], [8.0], [1e300], [-1e300], [np.nan]])
    truth = np.array([4.0, 4.0, 4.0, 0.0, 0.0, 8.0, 0.0])
    wrong = mistakes(Saying(), said, truth)
    np.testing.assert_allclose(wrong, [0.0, 0.25, 1.0, 1.0, 1.0, 1.0, 1.0])
    assert balance_of(Saying()) == MistakeBalance(whole=False)
    assert balance(Saying(), said, truth, Relation.ADD_REMOVE) == pytest.approx(1.75, abs=1e-6)
    # the exponential mechanism counts whole multiples of 2^-20, which add up exactly
    said = np.random.default_rng(0).uniform(0.0, 8.0, (99, 1))
    total_wrong = mistakes_of_each(Saying(), said, np.zeros(99))
    assert total_wrong * 2**20 == int(total_wrong * 2**20)
    assert 99 - 99 * 2.0**-20 > total_wrong >= mistakes(Saying(), said, np.zeros(99)).sum() - 1e-4


def test_a_failed_run_is_wrong_about_every_record() -> None:
    assert mistakes_of_each(None, np.zeros((7, 1)), np.zeros(7)) == 7.0


def test_of_equal_scores_what_was_drawn_beforehand_decides() -> None:
    runs = [Run({}, object(), 1.0, tie) for tie in (5, 3, 4)]
    assert min([*runs, Run({}, object(), 2.0, 1)], key=lambda run: run.rank).tie == 3


def test_every_candidate_of_a_disjoint_search_is_paid_for() -> None:
    """Under one budget they cost differently: pure and Gaussian ones, say."""
    space = {"mechanism": ["objective_perturbation", "noisy_gradient"]}
    event = DisjointSearch(logistic(), space, epsilon=2.0).plan(2, 4000).event
    *fits, choice = event.parts()
    assert choice == ExponentialMechanism(2.0)
    assert len(set(fits)) == 2
