"""What the regret benchmark counts, on figures made by hand."""

from __future__ import annotations

import importlib
import math
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture
def report(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("regret_report")


def line(method: str, *errors: float, training: float = 0.0, **more: Any) -> dict[str, Any]:
    return {
        "errors": {"mean square": list(errors)},
        "training": [training],
        "mechanisms": ["a"],
        "planned": "a",
        **more,
        "method": method,
    }


def cell(report: Any, auto: float, a: float, b: float, **more: Any) -> Any:
    """A cell whose non-private error is 1 and whose constant has 2."""
    lines = {
        "auto": line("auto", auto - 0.25, auto + 0.25, training=1.5, predicted=2.0, told=[4.0]),
        "a": line("a", a),
        "b": line("b", b),
        report.REFERENCE: line(report.REFERENCE, 1.0, optimum=[0.5]),
        report.CONSTANT: line(report.CONSTANT, 2.0),
    }
    facts = {"epsilon": 0.1, "published": None, "published_floor": None, **more}
    return report.Cell(problem="p", measure="mean square", lines=lines, **facts)


def test_the_excess_is_over_the_best_alone(report: Any) -> None:
    one = cell(report, 1.6, 1.8, 1.4)
    assert one.best == "b"
    assert one.excess_ratio() == pytest.approx(0.6 / 0.4)
    assert one.bare_ratio == pytest.approx(0.6 / 0.4)
    assert one.to_constant == pytest.approx(0.8)
    assert one.best_beats_constant
    assert not cell(report, 1.6, 2.1, 2.2).best_beats_constant


def test_an_excess_nobody_would_notice_is_not_divided_by(report: Any) -> None:
    assert cell(report, 1.005, 1.0001, 3.0).excess_ratio() == 1.0
    assert cell(report, 1.02, 1.0001, 3.0).excess_ratio() == pytest.approx(2.0)
    assert cell(report, 1.005, 1.0001, 3.0).excess_ratio(0.001) == pytest.approx(5.0)
    # better than without privacy: no excess at all
    better = cell(report, 0.9, 0.8, 3.0)
    assert better.excess_ratio() == 1.0
    assert better.bare_ratio is None


def test_risk_is_over_the_least_training_loss(report: Any) -> None:
    one = cell(report, 1.6, 1.8, 1.4)
    assert one.actual_risk == pytest.approx(1.0)
    assert one.risk_ratio == pytest.approx(2.0)
    assert one.told_ratio == pytest.approx(4.0)


@pytest.mark.parametrize(
    ("epsilon", "published", "must"),
    [(0.1, 1.02, True), (0.05, 1.02, False), (0.1, 1.005, False), (0.1, None, False)],
)
def test_where_the_published_error_counts(
    report: Any, epsilon: float, published: float | None, must: bool
) -> None:
    facts = {"epsilon": epsilon, "published": published, "published_floor": 1.0}
    assert cell(report, 1.6, 1.8, 1.4, **facts).must_beat_published is must


def test_the_summary_names_what_is_over_a_limit(report: Any) -> None:
    facts = {"published": 1.3, "published_floor": 1.0}
    good, bad = cell(report, 1.2, 1.2, 1.4, **facts), cell(report, 2.5, 1.2, 1.4, **facts)
    text = "\n".join(report.summary([good, bad]))
    assert "cells: 2; in 2 the best" in text
    assert "hindsight, geometric mean: 2.739" in text  # sqrt(1 x 7.5)
    assert "over the 2 cells where both exceed non-private: geometric mean 2.739" in text
    assert "greatest 7.50, above 1.5: 1 (p (mean square) at 0.1: 7.500)" in text
    assert "above 1.02 of a constant's: 1 (p (mean square) at 0.1: 1.250)" in text
    assert "of 2 cells (epsilon from 0.1, AdaSSP more than 1 % above non-private): 1" in text
    assert "within a factor 3 of what happened: 100%" in text


def test_half_of_an_interval(report: Any) -> None:
    # t(0.975, 1 degree) = 12.706; the standard error of 1 and 3 is 1
    assert report.half_width([1.0, 3.0]) == pytest.approx(12.706, rel=1e-4)
    assert math.isnan(report.half_width([1.0]))
