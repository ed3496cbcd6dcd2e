"""Private bounds from quantiles: their exact law, what they cost, and what becomes of columns."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import chisquare

from tacit.preprocessing import PrivateQuantileBounds
from tacit.privacy import Accountant, Budget, Relation
from tacit.table_facts import TableFacts

LEVELS = (0.1, 0.8)
BOUNDS = (0.0, 10.0)
DATA = np.array([0.5, 1.0, 1.0, 4.0, 6.5, 6.5, 7.0, 9.0])


def law(data: Any, edges: Any, level: float, epsilon: float, relation: Relation) -> Any:
    """Log probabilities of the cells between edges that contain all records: by the definition."""
    middle = (edges[1:] + edges[:-1]) / 2
    below = (data[None, :] < middle[:, None]).sum(axis=1)
    reach = 1.0 if relation is Relation.REPLACE else max(level, 1 - level)
    log = -np.abs(below - level * len(data)) * epsilon / (2 * reach) + np.log(np.diff(edges))
    return log - np.logaddexp.reduce(log)


def joint(data: Any, edges: Any, plan: Any, cut: float) -> Any:
    """Log probabilities of both quantiles, as planned."""
    epsilon, relation = plan.settings["column_epsilon"] / cut, plan.budget.relation
    low, high = (law(data, edges, level, epsilon, relation) for level in LEVELS)
    return np.add.outer(low, high).ravel()


def neighbours(relation: Relation) -> list[tuple[Any, Any]]:
    pairs = []
    for base in (DATA, DATA[:2], np.zeros(3), np.full(3, 10.0)):
        for odd in (0.0, 5.0, 10.0):
            more = np.append(base, odd)
            if relation.adds_or_removes:
                pairs += [(base, more), (more, base)]
            else:
                pairs += [(more, np.append(base, other)) for other in (0.0, 2.0, 10.0)]
    return pairs


def delta_of(log_p: Any, log_q: Any, epsilon: float) -> float:
    return float(np.sum(np.exp(log_p) * -np.expm1(np.minimum(epsilon - (log_p - log_q), 0.0))))


def worst(step: Any, cut: float = 1.0) -> float:
    """The exact epsilon over the budget's if that is pure, else the exact delta over its."""
    plan, found = step.plan(1), 0.0
    budget = plan.budget
    for a, b in neighbours(budget.relation):
        edges = np.unique(np.concatenate([BOUNDS, a, b]))
        p, q = (joint(data, edges, plan, cut) for data in (a, b))
        if budget.is_pure:
            found = max(found, float(np.abs(p - q).max()) / budget.epsilon)
        else:
            found = max(found, delta_of(p, q, budget.epsilon) / budget.delta)
    return found


def step_for(delta: float, relation: Relation, **more: Any) -> PrivateQuantileBounds:
    return PrivateQuantileBounds(
        1.0, delta, quantiles=LEVELS, bounds=BOUNDS, relation=relation, **more
    )


@pytest.mark.parametrize("relation", [Relation.ADD_REMOVE, Relation.REPLACE])
@pytest.mark.parametrize("delta", [0.0, 1e-3, 0.05])
def test_the_exact_density_keeps_the_promise(delta: float, relation: Relation) -> None:
    assert worst(step_for(delta, relation)) <= 1.0


def test_a_smaller_scale_is_caught() -> None:
    for delta, cut in ((0.0, 0.4), (0.05, 0.4)):
        assert worst(step_for(delta, Relation.ADD_REMOVE), cut) > 1.0
    # under REPLACE a record can move a rank by 1 either way, not by max(level, 1 - level)
    assert worst(step_for(0.0, Relation.REPLACE), 0.45) > 1.0


def test_fits_draw_from_that_density() -> None:
    edges, draws = np.unique(np.append(DATA, BOUNDS)), 250
    step = PrivateQuantileBounds(6.0, quantiles=LEVELS, bounds=BOUNDS)
    found = [(s.low_[0], s.high_[0]) for s in (step.fit(DATA[:, None]) for _ in range(draws))]
    planned = step.plan(1).settings["column_epsilon"]
    cells = np.clip(np.searchsorted(edges, np.array(found), side="right") - 1, 0, len(edges) - 2)
    counts = np.zeros((len(edges) - 1,) * 2)
    np.add.at(counts, (cells[:, 0], cells[:, 1]), 1)
    pairs = np.triu_indices(len(counts))

    def either(epsilon: float) -> Any:
        """An interval in order is of cells (i, j) or (j, i)."""
        laws = (law(DATA, edges, level, epsilon, Relation.ADD_REMOVE) for level in LEVELS)
        both = np.exp(np.add.outer(*laws))
        return (both + both.T - np.diag(np.diag(both)))[pairs]

    order = np.argsort(either(planned))
    # groups of about a sixth of the mass each
    mass = np.cumsum(either(planned)[order])
    group = np.unique(np.floor(mass * 6).clip(0, 5), return_inverse=True)[1]

    def pvalue(epsilon: float) -> float:
        seen = np.bincount(group, counts[pairs][order])
        expected = np.bincount(group, either(epsilon)[order])
        return float(chisquare(seen, draws * expected / expected.sum()).pvalue)

    assert pvalue(planned) > 1e-6
    assert pvalue(planned / 2) < 1e-6
    assert pvalue(planned * 2) < 1e-6


def test_without_noise_they_are_quantiles() -> None:
    X = np.random.default_rng(0).normal(0, 1, (500, 2))
    X[7, 1] = np.nan
    step = PrivateQuantileBounds(math.inf, bounds=(-9, 9)).fit(X)
    np.testing.assert_allclose(step.low_, np.nanquantile(X, 0.01, axis=0))
    np.testing.assert_allclose(step.high_, np.nanquantile(X, 0.99, axis=0))
    out = step.transform(X)
    assert out[7, 1] == 0.0
    inside = (np.abs(out) < 0.5) & ~np.isnan(X)
    expected = (X - step.low_) / (step.high_ - step.low_) - 0.5
    np.testing.assert_allclose(out[inside], expected[inside])
    assert np.sum(inside) > 0.97 * X.size


@pytest.mark.parametrize("value", [0.0, 3.0, 10.0])
@pytest.mark.parametrize("epsilon", [math.inf, 50.0])
def test_a_constant_column_gets_an_interval(value: float, epsilon: float) -> None:
    step = PrivateQuantileBounds(epsilon, bounds=BOUNDS).fit(np.full((300, 1), value))
    assert BOUNDS[0] <= step.low_[0] < step.high_[0] <= BOUNDS[1]
    assert np.all(np.isfinite(step.transform([[value], [-1e300], [1e300]])))


def test_chosen_columns_only() -> None:
    X = np.random.default_rng(0).normal(0, 1, (200, 3))
    step = PrivateQuantileBounds(1.0, columns=[2], bounds={2: (-5, 5)}).fit(X)
    out = step.transform(X)
    np.testing.assert_array_equal(out[:, :2], X[:, :2])
    assert np.abs(out[:, 2]).max() <= 0.5
    assert step.columns_.tolist() == [2]
    assert step.plan(3).settings["column_epsilon"] == pytest.approx(0.5)
    with pytest.raises(ValueError, match="is unknown"):
        step.facts_out()


def test_the_row_norm_follows_from_ranges_and_rules() -> None:
    names, ranges = ("a", "b", "c"), ((-3.0, 3.0), (0.0, 4.0), (0.0, 1.0))
    one = PrivateQuantileBounds(columns=["b"])
    facts = one.facts_out(TableFacts(names, 100.0, ranges=ranges))
    assert facts.row_norm == pytest.approx(math.sqrt(9 + 0.25 + 1))
    assert facts.ranges == ((-3.0, 3.0), (-0.5, 0.5), (0.0, 1.0))
    # what the facts say of the whole row holds for a part of it
    assert one.facts_out(TableFacts(names, 2.0, ranges=ranges)).row_norm == math.hypot(0.5, 2.0)
    assert one.facts_out(TableFacts(names, 2.0)).ranges is None
    all_of_them = PrivateQuantileBounds().facts_out(TableFacts(names, 100.0))
    assert all_of_them.row_norm == pytest.approx(math.sqrt(3) / 2)
    assert all_of_them.ranges == ((-0.5, 0.5),) * 3


def test_bounds_finer_than_doubles_are_refused_before_the_charge() -> None:
    accountant = Accountant(Budget(1.0))
    with pytest.raises(ValueError, match="finer than doubles"):
        PrivateQuantileBounds(bounds=(1e15, 1e15 + 1), accountant=accountant).fit(DATA[:, None])
    assert not accountant.events


@pytest.mark.parametrize("quantiles", [(0.5, 0.5), (0.0, 1.0), (0.9, 0.1), 0.5, ("a", "b"), (0.1,)])
def test_levels_are_checked(quantiles: Any) -> None:
    with pytest.raises(ValueError, match="quantiles"):
        PrivateQuantileBounds(quantiles=quantiles, bounds=BOUNDS).fit(DATA[:, None])
