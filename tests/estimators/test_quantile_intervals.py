"""Intervals of quantiles: paid for, wide enough, not too wide, and the limits where starved."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.integrate import trapezoid
from scipy.stats import expon, laplace, norm
from sklearn.base import clone

import tacit.location.median as median_module
from tacit.location import Mean, Median
from tacit.location.median import lower_level, normal_laplace_tail
from tacit.noise import SensitivityViolation
from tacit.privacy import Budget, Relation
from tacit.queries import Count
from tacit.testing import replay

RNG = np.random.default_rng(4)


@pytest.mark.parametrize("normal", [0.01, 1.0, 30.0])
@pytest.mark.parametrize("width", [0.02, 1.0, 50.0])
def test_the_tail_is_that_of_the_sum(normal: float, width: float) -> None:
    middles = np.linspace(-9, 9, 20_001)
    for x in (0.0, 0.5 * (normal + width), 3 * (normal + width)):
        tails = laplace(scale=width).sf(x - normal * middles)
        expected = trapezoid(tails * norm.pdf(middles), middles)
        assert normal_laplace_tail(x, normal, width) == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("ratio", [1e-9, 1e9])
def test_the_tail_of_one_alone(ratio: float) -> None:
    alone = laplace.sf(2.0) if ratio < 1 else norm.sf(2.0)
    assert normal_laplace_tail(2 * max(ratio, 1.0), ratio, 1.0) == pytest.approx(alone, rel=1e-6)


def test_without_noise_levels_are_those_of_order_statistics() -> None:
    found = lower_level(0.3, 1e4, lambda _: 1e-9)
    assert found == pytest.approx(0.3 - 1.959964 * math.sqrt(0.21 / 1e4), rel=1e-6)
    model = Median(math.inf, bounds=(-9, 9), quantile=0.3, inference=0.1)
    values = RNG.standard_normal((10_000, 1))
    row = model.fit(values).summary().rows()[0]
    assert found is not None
    np.testing.assert_allclose(row["low"], np.quantile(values, found), rtol=1e-6)
    np.testing.assert_allclose(row["high"], np.quantile(values, 0.6 - found), rtol=1e-6)


@pytest.mark.parametrize(
    ("relation", "delta"),
    [
        (Relation.ADD_REMOVE, 1e-6),
        (Relation.REPLACE, 0.0),
        pytest.param(Relation.ADD_REMOVE, 0.0, marks=pytest.mark.slow),
        pytest.param(Relation.REPLACE, 1e-6, marks=pytest.mark.slow),
    ],
)
def test_ends_are_replayed_and_charged(
    relation: Relation, delta: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    estimator = Median(2.0, delta, bounds=(-3, 3), quantile=0.4, inference=0.3, relation=relation)
    more = np.vstack([RNG.standard_normal((500, 2)), [[9e9, -2.0]]])
    other = more[:-1] if relation is Relation.ADD_REMOVE else np.vstack([more[:-1], [[-1e9, 3.0]]])

    def run(rows: Any) -> Median:
        fitted: Median = clone(estimator).fit(rows)
        return fitted

    # a middle and two ends of either column, and how many there are
    assert replay(run, more, other) == replay(run, other, more) == 7
    paid = run(more).privacy_.epsilon(delta)
    assert 0.999 * 2.0 <= paid <= 2.0
    planned = median_module.column_plan

    def uncharged(budget: Budget, n_columns: int, share: float) -> Any:
        plan = planned(budget, n_columns, share)
        return replace(plan, event=planned(budget, n_columns, 0.0).event)

    monkeypatch.setattr(median_module, "column_plan", uncharged)
    with pytest.raises(RuntimeError, match="not what was charged"):
        run(more)


def test_a_count_of_half_its_sensitivity_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    stated = Count.sensitivity
    monkeypatch.setattr(
        Count, "sensitivity", lambda self, facts: replace(stated(self, facts), value=0.5)
    )
    rows = RNG.standard_normal((50, 1))
    with pytest.raises(SensitivityViolation):
        replay(lambda x: Median(1.0, bounds=(-3, 3), inference=0.1).fit(x), rows, rows[:-1])


def test_starved_ends_are_the_limits() -> None:
    """With 100 records at epsilon 0.1 nothing is known, whatever was drawn."""
    model = Median(0.1, bounds=[(-3, 3), (0, 8)], inference=0.1).fit(RNG.uniform(0, 3, (100, 2)))
    rows = model.summary().rows()
    found = [(r["low"], r["high"]) for r in rows]
    np.testing.assert_allclose(found, [(-3, 3), (0, 8)], atol=1e-12)
    with pytest.raises(ValueError, match=r"inference=0\.1"):
        model.set_params(inference=0.0).fit(RNG.uniform(0, 3, (100, 2))).summary()


@pytest.mark.parametrize("share", [-0.1, 1.0])
def test_what_is_no_share_is_refused(share: float) -> None:
    with pytest.raises(ValueError, match="share"):
        Median(inference=share).fit(np.zeros((9, 1)))


def coverage(make: Callable[[], tuple[Any, Any]], truth: float, tables: int) -> float:
    held = []
    for _ in range(tables):
        model, rows = make()
        row = model.fit(rows).summary().rows()[0]
        held.append(row["low"] <= truth <= row["high"])
    return float(np.mean(held))


# The noise of an end in ranks beside the sampling error: 0.15, 1.2 and 0.4 of it.
CELLS = [(norm(), (-10, 10), 0.5, 2_000, 8.0), (norm(), (-10, 10), 0.5, 2_000, 1.0)]
CELLS += [(expon(), (0, 10_000), 0.9, 2_000, 8.0)]


@pytest.mark.slow
@pytest.mark.parametrize(("law", "bounds", "level", "n", "epsilon"), CELLS)
def test_intervals_of_quantiles_hold_them(
    law: Any, bounds: tuple[float, float], level: float, n: int, epsilon: float
) -> None:
    model = Median(epsilon, bounds=bounds, quantile=level, inference=0.1)
    found = coverage(lambda: (model, law.rvs((n, 1), random_state=RNG)), law.ppf(level), 1000)
    # 95 % of 1000 tables; one run in a million is outside
    assert 0.915 < found < 0.985


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.5, 8.0])
def test_intervals_of_means_hold_them(epsilon: float) -> None:
    model = Mean(epsilon, 1e-6, row_norm=3.0, inference=0.1)
    found = coverage(lambda: (model, RNG.normal(0.5, 0.4, (2_000, 1))), 0.5, 1000)
    assert 0.915 < found < 0.985
