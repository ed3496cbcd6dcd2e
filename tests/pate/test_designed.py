"""Queries that tell a linear student the most."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from tacit.pate import ChosenQueries, DesignedQueries, PATEClassifier
from tacit.pate.query_points import queries_of

from .helpers import table

RNG = np.random.default_rng(7)
POOL = RNG.standard_normal((60, 4)) * [5.0, 2.0, 1.0, 0.1] + 3.0


def greedy(pool: Any, n_queries: int, ridge: float) -> list[int]:
    """Return the same by determinants, one for every row that could be next."""
    rows = pool - pool.mean(axis=0)
    believed = ridge * np.mean(np.sum(rows**2, axis=1))
    known = believed * np.eye(rows.shape[1])
    chosen: list[int] = []
    for _ in range(n_queries):
        gains = {
            i: np.linalg.slogdet(known + np.outer(row, row))[1]
            for i, row in enumerate(rows)
            if i not in chosen
        }
        chosen.append(max(gains, key=lambda i: gains[i]))
        known += np.outer(rows[chosen[-1]], rows[chosen[-1]])
    return chosen


@pytest.mark.parametrize("ridge", [1e-6, 0.1, 1.0, 30.0])
def test_it_is_the_greedy_design(ridge: float) -> None:
    places = DesignedQueries(ridge).places(POOL, 60)
    assert places.tolist() == greedy(POOL, 60, ridge)
    assert DesignedQueries(ridge).places(POOL, 20).tolist() == places[:20].tolist()


def test_it_does_not_matter_in_which_unit_rows_are_or_where_they_begin() -> None:
    places = DesignedQueries().places(POOL, 30).tolist()
    for factor in (1e-200, 1e150):
        assert DesignedQueries().places(POOL * factor, 30).tolist() == places
    assert DesignedQueries().places(POOL - 1000.0, 30).tolist() == places


@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csr_matrix, sparse.csc_array])
def test_sparse_rows_are_asked_about_like_dense_ones(kind: Any) -> None:
    rows = POOL * (RNG.uniform(size=POOL.shape) < 0.4)
    assert DesignedQueries().places(kind(rows), 40).tolist() == greedy(rows, 40, 1.0)


def test_answers_tell_more_than_those_of_rows_at_random() -> None:
    """The squared error of all scores, where one answer is as noisy as a score is uncertain."""
    rows = RNG.standard_normal((2000, 20)) * RNG.gamma(1.0, size=(2000, 1))
    rows -= rows.mean(axis=0)
    believed = np.mean(np.sum(rows**2, axis=1)) * np.eye(20)

    def left(places: Any) -> float:
        """Return the mean squared error of all scores."""
        known = np.linalg.inv(believed + rows[places].T @ rows[places])
        return float(np.mean(np.einsum("ij,jk,ik->i", rows, known, rows)))

    designed = left(DesignedQueries().places(rows, 100))
    assert all(designed < 0.25 * left(RNG.permutation(2000)[:100]) for _ in range(20))


def test_rows_that_are_all_alike() -> None:
    assert DesignedQueries().places(np.full((5, 2), 3.0), 3).tolist() == [0, 1, 2]
    assert DesignedQueries().places(np.zeros((5, 2)), 5).tolist() == [0, 1, 2, 3, 4]


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(ValueError, match="n_queries is 61, and the pool has 60 rows; pass fewer"):
        DesignedQueries().places(POOL, 61)
    hole = POOL.copy()
    hole[3, 1] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        DesignedQueries().places(hole, 5)
    for ridge in (0.0, -1.0, np.nan, np.inf):
        with pytest.raises(ValueError, match="ridge"):
            DesignedQueries(ridge)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_a_classifier_takes_the_word_and_the_object(kind: Any) -> None:
    rows, labels, pool = table(600)
    model = PATEClassifier(GaussianNB(), 20, LogisticRegression(), 10, 8.0, 1e-5, classes=[0, 1, 2])
    expected = DesignedQueries().places(pool, 10)
    for way in ("designed", DesignedQueries(), ChosenQueries(tuple(expected.tolist()))):
        model.set_params(queries=way, teacher=LogisticRegression())
        asked = model.fit(kind(rows), labels, kind(pool)).queries_
        np.testing.assert_array_equal(asked, expected)
    assert queries_of("designed") == DesignedQueries()
