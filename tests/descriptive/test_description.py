"""What a description prints and writes."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

import tacit
from tacit.descriptive import Description
from tacit.report.description import render_description
from tacit.schema import Category, Schema
from tests.descriptive.helpers import SCHEMA, people


@pytest.fixture(scope="module")
def found() -> Description:
    return tacit.describe(people(), SCHEMA, 2.0, by="ill", whole=["age"])


def test_the_frame_has_all_figures(found: Description) -> None:
    frame = found.to_frame()
    assert len(frame) == len(found) == len(list(found))
    assert set(frame["group"]) == {"all", "no", "yes"}
    assert set(frame["about"]) == {"population", "table"}
    assert set(frame.query("about == 'table'")["figure"]) == {"count", "missing"}


def test_csv_has_the_figures_of_the_frame(found: Description, tmp_path: Path) -> None:
    text = found.to_csv()
    assert text is not None
    rows = list(csv.DictReader(io.StringIO(text)))
    assert len(rows) == len(found)
    mean = next(
        r for r in rows if r["column"] == "age" and r["figure"] == "mean" and r["group"] == "all"
    )
    assert float(mean["value"]) == found.figure("age", "mean").value
    assert found.to_csv(tmp_path / "a.csv") is None
    assert (tmp_path / "a.csv").read_text(encoding="utf-8") == text


def test_text_has_groups_figures_note_and_guarantee(found: Description) -> None:
    text = str(found)
    assert "ill: yes" in text.splitlines()[0]
    for word in ("records", "age", "median", "geometric mean", "(other)", "differentially private"):
        assert word in text
    assert "about the population" in text
    assert len(repr(found)) < 100


def test_whole_numbers_are_shown_as_such(found: Description) -> None:
    median = found.figure("age", "median")
    assert median.value == int(median.value)
    line = next(line for line in found.lines() if line.label == "median")
    assert "." not in line.cells[0]


def test_latex_escapes_names(tmp_path: Path) -> None:
    schema = Schema((Category("100% & more_", ("a#1", "b{}")),))
    found = tacit.describe({"100% & more_": ["a#1", "b{}"] * 200}, schema, 1.0)
    text = found.to_latex()
    assert text is not None
    assert r"100\% \& more\_" in text
    assert r"a\#1" in text
    assert r"b\{\}" in text
    assert text.count(r"\begin{tabular}") == text.count(r"\end{tabular}") == 1
    assert "differentially private" in text
    found.to_latex(tmp_path / "a.tex")
    assert (tmp_path / "a.tex").read_text(encoding="utf-8") == text


HOSTILE = '<script>alert("x")</script>'


def test_html_escapes_names() -> None:
    schema = Schema((Category(HOSTILE, ("a", HOSTILE)),))
    found = tacit.describe({HOSTILE: ["a", HOSTILE] * 200}, schema, 1.0)
    for text in (found._repr_html_(), render_description(found, title=HOSTILE)):
        assert "<script" not in text
        assert "&lt;script&gt;" in text


def test_the_page_begins_with_the_statement_and_has_pictures(found: Description) -> None:
    text = render_description(found, title="People", made_on="2026-01-01")
    assert text.index("differentially private") < text.index("<h2")
    assert f"Requested epsilon: {found.plan_.budget.epsilon:g}, the most" in text
    # A histogram of each number for all and both groups, and bars of all shares.
    assert text.count('role="img"') >= 6
    assert "People" in text
    assert "https:" not in text
    assert render_description(found, title="People", made_on="2026-01-01") == text


def test_a_page_without_a_guarantee_says_so_first() -> None:
    found = tacit.describe(people(500), SCHEMA, float("inf"))
    text = render_description(found, title="People")
    assert text.index("There is no privacy guarantee") < text.index("Records")
    assert "NO GUARANTEE" in text


def test_the_dictionary_is_json(found: Description) -> None:
    record = found.to_dict()
    assert json.loads(json.dumps(record))["groups"] == ["all", "no", "yes"]


def test_an_unknown_figure_is_named(found: Description) -> None:
    with pytest.raises(KeyError, match="the column has"):
        found.figure("age", "mode")
    with pytest.raises(KeyError, match="no figures"):
        found.figure("nose", "mean")
