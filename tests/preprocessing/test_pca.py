"""Private directions: the plain thing without noise, and how close with it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.decomposition import PCA, TruncatedSVD

from tacit.preprocessing import PrivatePCA
from tacit.preprocessing.pca import top_directions
from tacit.table_facts import EncodedTable, TableFacts

RNG = np.random.default_rng(0)
X = RNG.normal(0, 1, (3000, 5)) @ np.diag([3.0, 2.0, 1.0, 0.5, 0.2]) + 1.0


def up_to_sign(a: np.ndarray, b: np.ndarray) -> None:
    np.testing.assert_allclose(np.abs(np.sum(a * b, axis=1)), 1.0, atol=1e-8)


def test_without_noise_it_is_pca() -> None:
    step = PrivatePCA(3, math.inf, row_norm=1e3, centered=True).fit(X)
    plain = PCA(3).fit(X)
    up_to_sign(step.components_, plain.components_)
    np.testing.assert_allclose(step.mean_, plain.mean_)
    np.testing.assert_allclose(np.abs(step.transform(X)), np.abs(plain.transform(X)), atol=1e-8)


def test_uncentered_it_is_a_singular_value_decomposition() -> None:
    step = PrivatePCA(3, math.inf, row_norm=1e3).fit(X)
    up_to_sign(step.components_, TruncatedSVD(3, algorithm="arpack").fit(X).components_)
    assert step.mean_.tolist() == [0.0] * 5


@pytest.mark.parametrize("centered", [False, True])
def test_it_finds_the_directions(centered: bool) -> None:
    rows = np.random.default_rng(1).normal(0, 1, (50_000, 5)) * [1.0, 0.5, 0.1, 0.1, 0.1] + 0.2
    exact = PrivatePCA(2, math.inf, row_norm=3.0, centered=centered).fit(rows)
    step = PrivatePCA(2, 1.0, 1e-6, row_norm=3.0, centered=centered).fit(rows)
    assert np.all(np.abs(np.sum(step.components_ * exact.components_, axis=1)) > 0.99)
    assert np.linalg.norm(step.mean_ - exact.mean_) < 0.05


@pytest.mark.parametrize("centered", [False, True])
def test_no_row_is_longer_than_declared(centered: bool) -> None:
    step = PrivatePCA(5, 0.01, row_norm=2.0, centered=centered).fit(X[:5])
    for rows in (X, 1e200 * X, np.full((1, 5), 1e308)):
        assert np.linalg.norm(step.transform(rows), axis=1).max() <= 2.0


def test_facts_of_the_table_count_first() -> None:
    facts = TableFacts(tuple("abcde"), 7.0, 3000)
    step = PrivatePCA(2, row_norm=1.0)
    out = step.facts_out(facts)
    assert (out.names, out.row_norm, out.n_records) == (("pca0", "pca1"), 7.0, 3000)
    assert step.fit(EncodedTable(facts, lambda: (X, None))).row_norm_ == 7.0


@pytest.mark.parametrize("n_components", [0, 6, 1.5, None])
def test_how_many_directions(n_components: object) -> None:
    with pytest.raises((ValueError, TypeError), match="n_components"):
        PrivatePCA(n_components, row_norm=1.0).fit(X)
    with pytest.raises((ValueError, TypeError), match="n_components"):
        PrivatePCA(n_components, row_norm=1.0).plan(5)


def test_pure_budgets_are_refused_with_the_reason() -> None:
    with pytest.raises(ValueError, match="Wishart"):
        PrivatePCA(2, 1.0, 0.0, row_norm=1.0).fit(X)


@pytest.mark.parametrize("epsilon", [1.0, math.inf])
def test_a_missing_value_counts_as_zero(epsilon: float) -> None:
    """Not its whole row: what else is there still counts."""
    holes = np.random.default_rng(0).normal(0, 1, (300, 3))
    holes[::3, 1] = np.nan
    zeros = np.nan_to_num(holes)
    found, expected = (
        PrivatePCA(2, epsilon, 1e-6, row_norm=3.0, random_state=1).fit(rows).components_
        for rows in (holes, zeros)
    )
    np.testing.assert_array_equal(found, expected)


def test_directions_are_orthonormal_and_in_order():
    matrix = np.random.default_rng(0).normal(0, 1, (6, 6))
    directions = top_directions(matrix + matrix.T, 4)
    np.testing.assert_allclose(directions @ directions.T, np.eye(4), atol=1e-12)
    values = np.einsum("ij,jk,ik->i", directions, matrix + matrix.T, directions)
    assert np.all(np.diff(values) <= 0)
    assert np.all(directions[np.arange(4), np.abs(directions).argmax(axis=1)] > 0)
