"""Private means and scales: their noise, what it costs, and the plain thing without it."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import kstest
from sklearn.preprocessing import StandardScaler

from tacit.noise import SensitivityViolation, recording
from tacit.noise.release import Entry
from tacit.preprocessing import PrivateStandardScaler
from tacit.preprocessing.standard_scaler import Moments, moments
from tacit.privacy import Relation
from tacit.privacy.accounting.calibration import gaussian_multiplier
from tacit.queries import Session
from tacit.queries.moments import ColumnMoments
from tacit.records import Bounds, MemoryRecords
from tacit.table_facts import EncodedTable, TableFacts
from tacit.testing import replay

RNG = np.random.default_rng(0)
X = RNG.normal(0.5, 0.7, (400, 3)) * np.array([1.0, 2.0, 0.3])
BOUNDS = (-6.0, 6.0)


def columns(n_columns: int) -> ColumnMoments:
    return ColumnMoments(tuple(range(n_columns)), ((-1.0, 1.0),) * n_columns, counts=True)


def asked(units: Any, plan: Any) -> Moments:
    """Return the noisy moments of columns within -1 and 1, as a plan asks for them."""
    records = MemoryRecords(units, None, Bounds())
    session = Session(records, plan.facts, plan.event, plan.slots())
    return moments(session, columns(units.shape[1]), plan, None)


def test_without_noise_it_is_the_standard_scaler() -> None:
    step = PrivateStandardScaler(math.inf, bounds=(-50, 50), clip=9.0).fit(X)
    plain = StandardScaler().fit(X)
    np.testing.assert_allclose(step.mean_, plain.mean_)
    np.testing.assert_allclose(step.scale_, plain.scale_)
    np.testing.assert_allclose(step.transform(X) * 18, plain.transform(X), atol=1e-12)
    constant = PrivateStandardScaler(math.inf, bounds=BOUNDS).fit(np.full((9, 1), 2.0))
    assert constant.transform([[2.0]]).tolist() == [[0.0]]


def test_a_value_and_its_square_are_no_longer_than_declared() -> None:
    u = np.linspace(-1, 1, 100_001)
    assert np.hypot(u, 2 * u**2 - 1.25).max() == 1.25
    # and no other shift of the squares is shorter
    for shift in (1.24, 1.26):
        assert np.hypot(u, 2 * u**2 - shift).max() > 1.25


@pytest.mark.parametrize("n_columns", [1, 9])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_the_noise_of_scales_is_what_is_proved(delta: float, n_columns: int) -> None:
    """The number of records, which both are divided by, has its part in it."""
    n, runs, spread = 1000, 2500, 0.2
    units = np.full((n, n_columns), spread)
    units[::2] = -spread
    plan = PrivateStandardScaler(4.0, delta, bounds=(-1, 1)).plan(n_columns)
    root = math.sqrt(n_columns)
    # noise on every coordinate, of Gaussian and of sphere noise, for rows as long as they may be
    z = plan.settings.get("noise_multiplier", math.sqrt(2 * n_columns + 2) / 4.0)
    std = 1.25 * z * math.sqrt(n_columns + root) / n
    # of squares and of the count, which divides 5/8 less the spread
    both = std / 2 * math.hypot(1.0, (1 - spread**2 / (5 / 8)) / n_columns**0.25)
    found = [asked(units, plan) for _ in range(runs)]
    for noise, expected in (
        ([each.mean[0] for each in found], std),
        ([each.variance[0] - spread**2 for each in found], both),
    ):
        assert np.std(noise) == pytest.approx(expected, rel=0.1)
        assert abs(np.mean(noise)) < 0.2 * expected


@pytest.mark.parametrize("n_columns", [1, 5])
def test_no_row_is_clipped(n_columns: int) -> None:
    """Rows are of many lengths: were the longer ones shortened, means and scales would be off."""
    units = np.random.default_rng(2).uniform(-1.0, 1.0, (2000, n_columns)) ** 3
    plan = PrivateStandardScaler(100.0, 1e-6, bounds=(-1, 1)).plan(n_columns)
    found = asked(units, plan)
    np.testing.assert_allclose(found.mean, units.mean(axis=0), atol=0.005)
    np.testing.assert_allclose(found.variance, units.var(axis=0), atol=0.005)


def test_the_share_of_the_count_is_the_best() -> None:
    """Variances have the least noise, and not much more where a column is not in the middle."""
    for k in (1, 2, 10, 100):
        best = columns(k).count_constant
        tried = np.append(best * np.array([0.5, 0.9, 1.1, 2.0, 0.1]), best)
        noise = np.sqrt((25 / 16 * k + tried**2) * (1 / 4 + (5 / 8) ** 2 / tried**2))
        assert np.argmin(noise) == len(tried) - 1
        assert noise[-1] == pytest.approx(5 / 8 * (math.sqrt(k) + 1))


@pytest.mark.parametrize("relation", [Relation.ADD_REMOVE, Relation.REPLACE])
def test_the_noise_is_what_was_planned(relation: Relation) -> None:
    """Of many columns at once: all of them are one release."""
    k, n = 4000, 5
    rows = np.zeros((n, k))
    step = PrivateStandardScaler(1.0, 1e-6, bounds=(-1, 1), relation=relation, n_records=n)
    with recording() as tape:
        step.fit(rows)
    (entry,) = (entry for entry in tape.entries if isinstance(entry, Entry))
    noise = entry.value - entry.bounded.value
    z = gaussian_multiplier(step.plan(k).budget)
    std = z * 1.25 * math.sqrt(k) * (2 if relation is Relation.REPLACE else 1)
    assert entry.event == step.privacy_.event
    assert kstest(noise / std, ndtr).pvalue > 1e-9
    # the mean square of m normals has standard deviation sqrt(2 / m) of itself
    off = [abs(np.mean((f * noise / std) ** 2) - 1) / math.sqrt(1 / k) for f in (1.0, 0.9, 1.1)]
    assert off[0] < 6
    assert min(off[1:]) > 6


@pytest.mark.parametrize(
    ("relation", "n_records", "reached"),
    [
        (Relation.ADD_REMOVE, None, 1.0),
        (Relation.ADD_REMOVE, 401, 1.0),
        (Relation.REPLACE, 401, math.sqrt(5) / 2.5),
    ],
)
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_the_sensitivity_is_reached(
    delta: float, relation: Relation, n_records: int | None, reached: float, monkeypatch: Any
) -> None:
    """Neighbours as far apart as there are: less than that, declared, is caught."""
    ends = np.vstack([X, [6.0, 6.0, 6.0]])
    other = X if relation.adds_or_removes else np.vstack([X, [0.0, 0.0, 0.0]])
    step = PrivateStandardScaler(1.0, delta, bounds=BOUNDS, relation=relation, n_records=n_records)
    assert replay(step.fit, ends, other) == 1

    stated = ColumnMoments.sensitivity

    def less(self: ColumnMoments, facts: Any) -> Any:
        whole = stated(self, facts)
        return replace(whole, value=0.99 * reached * whole.value)

    monkeypatch.setattr(ColumnMoments, "sensitivity", less)
    with pytest.raises(SensitivityViolation):
        replay(step.fit, ends, other)


def test_it_learns() -> None:
    rows = np.random.default_rng(1).normal([1.0, -2.0], [0.5, 2.0], (100_000, 2))
    for delta in (0.0, 1e-6):
        step = PrivateStandardScaler(1.0, delta, bounds=(-10, 10)).fit(rows)
        np.testing.assert_allclose(step.mean_, [1.0, -2.0], atol=0.1)
        np.testing.assert_allclose(step.scale_, [0.5, 2.0], rtol=0.25)


def test_a_starved_fit_is_finite_and_within_its_bounds() -> None:
    for relation, n in ((Relation.ADD_REMOVE, None), (Relation.REPLACE, 3)):
        step = PrivateStandardScaler(0.01, 1e-9, bounds=BOUNDS, relation=relation, n_records=n).fit(
            X[:3]
        )
        assert np.all(np.abs(step.mean_) <= 6.0)
        assert np.all((step.scale_ > 0) & (step.scale_ <= 6.0))


def test_a_public_number_of_records_is_not_counted() -> None:
    facts = TableFacts(("a", "b", "c"), 9.0, 400, ranges=(BOUNDS,) * 3)
    with recording() as tape:
        PrivateStandardScaler(1.0, 1e-6).fit(EncodedTable(facts, lambda: (X, None)))
    (entry,) = (entry for entry in tape.entries if isinstance(entry, Entry))
    assert entry.bounded.value.shape == (6,)
    inferred = PrivateStandardScaler(1.0, 1e-6, bounds=BOUNDS, n_records="infer").fit(X)
    assert any("number of records" in line for line in inferred.privacy_.assumptions)
    with pytest.raises(ValueError, match="n_records"):
        PrivateStandardScaler(relation="replace", bounds=BOUNDS).fit(X)


@pytest.mark.parametrize("clip", [0.0, -1.0, math.nan, math.inf, "3"])
def test_clip_is_a_number(clip: Any) -> None:
    with pytest.raises((ValueError, TypeError), match="clip"):
        PrivateStandardScaler(clip=clip, bounds=BOUNDS).fit(X)


def test_no_warning_tells_of_a_huge_value() -> None:
    """Warnings are errors here: dividing by a narrow range would overflow."""
    rows = X.copy()
    rows[0] = [1e300, -1e300, 1.7e308]
    step = PrivateStandardScaler(1.0, 1e-6, bounds=(-1e-10, 1e-10)).fit(rows)
    assert step.transform(rows)[0].tolist() == [0.5, -0.5, 0.5]
