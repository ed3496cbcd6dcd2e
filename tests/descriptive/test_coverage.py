"""Intervals cover what they say they cover, and are as narrow as planned."""

from __future__ import annotations

import importlib
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tacit
from tacit.descriptive import plan_description
from tacit.descriptive.figures import figures_of

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return the study of benchmarks/describe.py: its tables, and how they are counted."""
    monkeypatch.syspath_prepend(BENCHMARKS)
    return importlib.import_module("describe")


def test_shares_and_means_are_accurate(made: Any) -> None:
    # 20,000 records, 20 columns, epsilon 0.5: shares within 0.01, means within 0.02 of the range.
    declared = made.schema()
    assert len(declared.columns) == 20
    table = made.draw(np.random.default_rng(0), made.N_RECORDS)
    exact = {f[:4]: f for f in tacit.describe(made.words(table), declared, math.inf, bins=64)}
    for seed in range(3):
        found = tacit.describe(made.words(table), declared, 0.5, 1e-6, random_state=seed)
        ranges = {c.name: (c.lower, c.upper) for c in declared.columns if c.kind == "number"}
        for figure in found:
            truth = exact[figure[:4]].value
            if figure.figure == "share":
                assert abs(figure.value - truth) < 0.01
            if figure.figure == "mean":
                low, high = ranges[figure.column]
                assert abs(figure.value - truth) < 0.02 * (high - low)


def test_expected_widths_are_those_of_intervals(made: Any) -> None:
    plan = plan_description(made.schema(), 0.5, 1e-6)
    widths = {(w.column, w.figure): w for w in plan.widths()}
    rng = np.random.default_rng(0)
    table = made.draw(rng, made.N_RECORDS)
    found = {f[:4]: f for f in figures_of(plan, made.noisy(plan, made.totals(plan, table), rng))}
    for name, figure, level in (
        ("uniform", "mean", ""),
        ("uniform", "median", ""),
        ("two", "share", "level 0"),
    ):
        one = found[name, figure, level, "all"]
        half = (one.high - one.low) / 2
        assert widths[name, figure].half_width == pytest.approx(half, rel=0.25)
        noise = (one.table_high - one.table_low) / 2
        assert widths[name, figure].noise == pytest.approx(noise, rel=0.25)
    records = found["records", "count", "", "all"]
    half = (records.high - records.low) / 2
    assert widths["records", "count"].half_width == pytest.approx(half, rel=0.01)
    # No worse than asked for: shares within 0.01 and means within 0.02 of the range.
    assert all(w.half_width < 0.01 for w in widths.values() if w.figure == "share")
    assert all(w.half_width < 0.02 * w.scale for w in widths.values() if w.figure == "mean")


# Pooled over its figures, a kind is off by less than 4 standard errors of the few tables.
def check(made: Any, n_tables: int, **kinds: Any) -> None:
    found = made.study(n_tables, **kinds)
    for what in ("covered", "of_table"):
        pooled = found.by_kind(what)
        assert set(pooled) == set(made.KINDS.values())
        for kind, (mean, _, _) in pooled.items():
            assert 0.93 <= mean <= 0.975, (what, kind, mean)


@pytest.mark.slow
def test_intervals_cover_the_population_and_the_table(made: Any) -> None:
    check(made, 100)


@pytest.mark.slow
def test_intervals_of_groups_cover(made: Any) -> None:
    check(made, 60, by="group")


@pytest.mark.slow
def test_intervals_under_laplace_noise_cover(made: Any) -> None:
    check(made, 60, delta=0.0, epsilon=1.0)


@pytest.mark.slow
def test_intervals_of_small_tables_cover(made: Any) -> None:
    check(made, 100, n_records=3000, epsilon=2.0)


def test_too_little_noise_would_be_seen(made: Any) -> None:
    # The same counts with noise 1.5 times as large as planned are covered less often.
    plan = plan_description(made.schema(), 0.5, 1e-6, columns=["two", "even", "ten"])
    rng = np.random.default_rng(1)
    table = made.draw(rng, made.N_RECORDS)
    exact = made.totals(plan, table)
    truth = {f[:4]: f.value for f in figures_of(plan, exact) if f.figure == "share"}
    hits: dict[float, list[bool]] = {1.0: [], 1.5: []}
    for factor, found in hits.items():
        for _ in range(150):
            drawn = exact + factor * rng.normal(0, plan.noise_std, len(exact))
            found.extend(
                f.table_low <= truth[f[:4]] <= f.table_high
                for f in figures_of(plan, drawn)
                if f.figure == "share"
            )
    assert np.mean(hits[1.0]) > 0.93
    assert np.mean(hits[1.5]) < 0.88
