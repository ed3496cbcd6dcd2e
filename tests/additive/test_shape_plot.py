"""Shape plots: the numbers are those of the term, texts are escaped, other columns are refused."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from tacit.additive.shape_plot import ShapePlot
from tacit.io.values import ArrayValues
from tests.additive.test_estimators import CASES, made, table

_HOSTILE = '</svg><script>alert("1")</script>&\u202e\x00\n' + "w" * 300


@cache
def fitted(case: str) -> Any:
    """Return a fitted model."""
    return made(case, random_state=3).fit(table(12_000))


def parts(svg: str, kind: str) -> list[dict[str, str]]:
    """Return the attributes of the elements of a class."""
    return [e.attrib for e in ET.fromstring(svg).iter() if e.attrib.get("class") == kind]


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("column", ["age", "income", "town", "smoker", "noise"])
def test_the_numbers_are_those_of_the_term(case: str, column: str) -> None:
    model = fitted(case)
    label = "low" if case == "three" else None
    output = model.classes_.tolist().index("low") if case == "three" else 0
    plot, term = model.plot(column, label), model.terms_[column]
    svg = plot.to_svg()
    bars = [float(bar["data-count"]) for bar in parts(svg, "count")]
    np.testing.assert_allclose(bars, term.counts, rtol=1e-5)
    hatched = {int(e["data-bin"]) for e in parts(svg, "hatch")}
    assert hatched == set(np.flatnonzero(~term.can_be_seen).tolist())
    points = parts(svg, "mean")
    assert {int(point["data-bin"]) for point in points}.isdisjoint(hatched)
    for point in points:
        place = int(point["data-bin"])
        shown = [float(point[f"data-{name}"]) for name in ("mean", "low", "high")]
        interval = term.label_mean_interval[place, output]
        np.testing.assert_allclose(shown, [term.label_mean[place, output], *interval], rtol=1e-5)
    assert len(parts(svg, "term")) == len(term.levels)
    assert f"{model.score_names()[output]}" in svg


@pytest.mark.parametrize("column", ["age", "income"])
def test_a_step_lies_on_the_scores_of_the_model(column: str) -> None:
    term = fitted("number").terms_[column]
    steps = parts(term.to_svg(), "term")
    middles = (term.edges[1:] + term.edges[:-1]) / 2
    scores = term.scores(ArrayValues(middles))[:, 0]
    for step, score in zip(steps[1:-2], scores, strict=True):
        low, high = sorted((float(step["data-left"]), float(step["data-right"])))
        assert low - 1e-3 <= score <= high + 1e-3
    missing = term.scores(ArrayValues(np.array([np.nan])))[0, 0]
    assert float(steps[-1]["data-left"]) == pytest.approx(missing, rel=1e-5)


def test_hostile_names_are_escaped() -> None:
    term = fitted("two").terms_["town"]
    column = replace(term.column, name=_HOSTILE)
    levels = (_HOSTILE, *term.levels[1:])
    plot = ShapePlot(replace(term, column=column, levels=levels), 0, _HOSTILE, _HOSTILE)
    svg = plot.to_svg()
    tags = {e.tag.rpartition("}")[2] for e in ET.fromstring(svg).iter()}
    assert tags == {"svg", "style", "rect", "text", "line", "g", "title", "path", "circle"}
    assert "\u202e" not in svg
    assert "&lt;script&gt;" in svg


def test_a_small_table_has_no_label_means() -> None:
    model = made("two", epsilon=0.1, random_state=0).fit(table(1_000))
    assert model.is_small_
    svg = model.plot("age").to_svg()
    assert not parts(svg, "mean")
    assert "share of yes" not in svg
    assert parts(svg, "count")


def test_other_columns_and_classes_are_refused() -> None:
    two, three = fitted("two"), fitted("three")
    with pytest.raises(ValueError, match="'height' has no term; choose from 'age'"):
        two.plot("height")
    with pytest.raises(ValueError, match="pass one of 'high', 'low', 'mid'"):
        three.plot("age")
    with pytest.raises(ValueError, match="'none' is no class"):
        three.plot("age", "none")
    with pytest.raises(ValueError, match="label is for several classes"):
        two.plot("age", "yes")
    with pytest.raises(ValueError, match="output must be from 0 to 2, got 3"):
        three.terms_["age"].to_svg(3)


def test_a_notebook_shows_the_plot() -> None:
    plot = fitted("two").plot("age")
    assert plot._repr_svg_() == plot.to_svg()
    hidden = int((~plot.term.can_be_seen).sum())
    assert f"{hidden} bins cannot be seen" in plot.alternative
