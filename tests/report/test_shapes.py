"""The terms of additive models in a report: drawn, folded, or listed as noise."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

from tacit.report import facts_of
from tacit.report.facts import Removed
from tacit.report.sections.shapes import SHOWN
from tacit.report.write import render
from tacit.schema import Category
from tests.additive.test_estimators import made, table

_HOSTILE = '<script>alert("1")</script>'


@cache
def fitted(case: str) -> Any:
    """Return a fitted model."""
    return made(case, random_state=3).fit(table(12_000))


def test_kept_columns_are_drawn_and_noise_is_listed() -> None:
    model = fitted("two")
    assert "noise" not in model.kept_
    facts = facts_of(model)
    assert facts.shapes is not None
    assert [plots[0].term.name for plots in facts.shapes.plots] == list(model.kept_)
    assert [removed.name for removed in facts.shapes.removed] == ["noise"]
    assert facts.schema is model.schema
    text = render(facts)
    drawn, listed = text.split("Columns removed as noise")
    assert drawn.count('class="chart wide shape"') == len(model.kept_)
    assert drawn.count('class="chart narrow shape"') == len(model.kept_)
    assert "<bdi>noise</bdi>" in listed
    assert "differ where columns are correlated" in text
    assert "<script" not in text


def test_several_classes_have_a_picture_each() -> None:
    model = fitted("three")
    text = render(facts_of(model))
    assert text.count('class="chart wide shape"') == 3 * len(model.kept_)
    assert "score of low" in text


def test_weaker_columns_are_folded_and_the_weakest_are_named() -> None:
    facts = facts_of(fitted("number"))
    assert facts.shapes is not None
    one = facts.shapes.plots[0]
    many = render(replace(facts, shapes=replace(facts.shapes, plots=(one,) * 50)))
    assert f"Show {40 - SHOWN} weaker columns" in many
    assert many.count('class="chart wide shape"') == 40
    assert "not drawn: <bdi>" in many


def test_a_small_table_says_that_it_has_no_label_means() -> None:
    facts = facts_of(made("two", epsilon=0.1, random_state=0).fit(table(1_000)))
    assert facts.shapes is not None
    text = render(replace(facts, shapes=replace(facts.shapes, removed=(Removed("town"),))))
    assert "no label means to draw" in text
    assert "Columns without a curve" in text
    assert "removed as noise" not in text


def test_names_are_escaped() -> None:
    facts = facts_of(fitted("two"))
    assert facts.shapes is not None
    term = facts.shapes.plots[0][0].term
    hostile = replace(term, column=Category(_HOSTILE, ("a", "b")))
    plots = ((replace(facts.shapes.plots[0][0], term=hostile),),)
    text = render(
        replace(facts, shapes=replace(facts.shapes, plots=plots, removed=(Removed(_HOSTILE),)))
    )
    assert "<script" not in text
    assert "&lt;script&gt;" in text
