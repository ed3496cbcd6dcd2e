from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tacit.linear_model import LogisticRegression
from tacit.privacy import Gaussian, Guarantee, NonPrivate
from tacit.report import AccuracyPicture, AccuracyPoint, ReportFacts, facts_of, render, write_report
from tacit.report.facts import Coefficient, Coefficients, PlannedMechanism, PublicFact
from tacit.report.write import render_comparison
from tacit.schema import Category, ClassTarget, Number, Schema
from tests.report.helpers import Element, facts, picture, read, table_model

HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "</style><script>x</script>",
    "</title><h1>mine</h1>",
    "' onmouseover='x",
    "<!-- ",
    "]]>",
    "&lt;&#60;",
    "a\x00b\u202ec\ud800d",
    "é中\U0001f512",
    "x" * 3000,
]


def void() -> Guarantee:
    return Guarantee(NonPrivate("seeded", would_be=Gaussian(4.0)), 1e-6)


@pytest.mark.parametrize("found", [facts(), facts(privacy=void()), ReportFacts("A", void())])
def test_the_structure_of_the_page(found: ReportFacts) -> None:
    text = render(found)
    assert text.startswith("<!DOCTYPE html>")
    page = read(text)
    assert page.one("html").attributes["lang"] == "en"
    for landmark in ("header", "main", "footer", "h1", "title"):
        page.one(landmark)
    levels = [int(e.name[1]) for e in page.all("*") if re.fullmatch("h[1-6]", e.name)]
    assert levels[0] == 1
    assert all(b - a <= 1 for a, b in pairwise(levels))
    ids = [e.attributes["id"] for e in page.all("*") if "id" in e.attributes]
    assert len(set(ids)) == len(ids)
    for part in page.all("section"):
        assert part.one("h2").attributes["id"] == part.attributes["aria-labelledby"]
    for table in page.all("table"):
        assert table.one("caption").text
        assert all(th.attributes["scope"] in ("col", "row") for th in table.all("th"))
        widths = {len(row.all("th")) + len(row.all("td")) for row in table.all("tr")}
        assert len(widths) == 1
    for figure in page.all("figure"):
        assert figure.one("figcaption").text
    for svg in page.all("svg"):
        named = svg.attributes.get("role") == "img" and svg.attributes.get("aria-label")
        assert named or svg.attributes.get("aria-hidden") == "true"


def test_all_sections_in_order() -> None:
    page = read(render(facts()))
    assert [h.attributes["id"] for h in page.all("h2")] == [
        "guarantee",
        "public",
        "plan",
        "coefficients",
        "accuracy",
    ]


@pytest.mark.parametrize(
    ("text", "title"),
    [
        (render(facts()), "NOT PRIVATE: Logistic regression of income"),
        (render(facts(privacy=void())), "NO GUARANTEE: Logistic regression of income"),
        (render_comparison("Income", picture()), "NOT PRIVATE: Income"),
    ],
)
def test_no_promise_heads_a_page_with_scores(text: str, title: str) -> None:
    page = read(text)
    assert page.one("title").text == title
    assert page.one("header").all("p")[0].text.startswith("Not private: ")
    assert "has no guarantee" in page.one("footer").text
    for promise in ("privacy report", "released results"):
        assert promise not in page.text.lower()


def test_the_guarantee_beside_scores_is_the_models() -> None:
    page = read(render(facts()))
    assert "covers the model" in page.one("header").one("p", class_="alarm").text
    assert page.all("h2")[0].text == "Privacy guarantee of the model"
    nothing = read(render(facts(privacy=void())))  # there is none, of the model neither
    assert nothing.one("header").all("p", class_="alarm") == []


def test_without_scores_the_promise_heads_the_page() -> None:
    page = read(render(facts(accuracy=None, made_on="1 May 2027")))
    assert page.one("title").text == "Logistic regression of income \N{EN DASH} privacy report"
    assert [p.text for p in page.one("header").all("p")] == ["Privacy report, 1 May 2027"]
    assert page.all("h2")[0].text == "Privacy guarantee"
    assert "released results and public facts alone" in page.one("footer").text


def test_a_comparison_says_first_that_it_is_not_private_and_promises_nothing() -> None:
    text = render_comparison("Income", picture(), remark="Scores are <b>.", made_on="2026-01-02")
    body = text[text.index("<body>") :]
    places = [
        body.index(part)
        for part in (
            "Not private: a comparison on public data, 2026-01-02",
            "<h1>Income</h1>",
            "These scores are not private",
            "The data set is published.",
            "Scores are &lt;b&gt;.",
            "<figure>",
        )
    ]
    assert places == sorted(places)
    assert 'id="guarantee"' not in text
    assert "-differential" not in text


def assert_closed(text: str, page: Element) -> None:
    """Check that the page asks for nothing and runs nothing."""
    for element in page.all("*"):
        assert element.name not in ("script", "iframe", "object", "embed", "img", "base", "form")
        for name, value in element.attributes.items():
            assert not name.startswith("on")
            assert name not in ("src", "srcset", "action", "data", "xlink:href")
            if name == "href":
                assert value == "data:,"
            if name == "style":
                raise AssertionError("styles belong in the style sheet")
    style = page.one("style").text
    assert not re.search(r"url\(|@import|http", style)
    policies = [m for m in page.all("meta") if "http-equiv" in m.attributes]
    assert [m.attributes["content"].split(";")[0] for m in policies] == ["default-src 'none'"]


def test_one_file_without_a_network() -> None:
    text = render(facts())
    assert_closed(text, read(text))
    assert "://" not in text


@pytest.mark.parametrize("nasty", HOSTILE)
def test_no_text_gets_out_of_its_place(nasty: str) -> None:
    word = nasty.replace("\x00", "").replace("\ud800", "").strip()  # which a schema refuses
    schema = Schema(
        (Number(word, 0, 1), Category("x", (word[:100], "b"))), ClassTarget("y", (word, "z"))
    )
    hostile = ReportFacts(
        title=nasty,
        privacy=Guarantee(Gaussian(4.0), 1e-6, (nasty,), (nasty,)),
        schema=schema,
        public=(PublicFact(nasty, nasty, nasty),),
        mechanisms=(
            PlannedMechanism(nasty, 0.1, nasty, True, ((nasty, 1.0),)),
            PlannedMechanism(nasty, None, nasty),
        ),
        about_mechanisms=nasty,
        coefficients=Coefficients((Coefficient(nasty, 1.0, 0.1, nasty),), nasty, nasty),
        accuracy=AccuracyPicture(
            (AccuracyPoint(nasty, 1.0, 0.5, 0.1),), nasty, nasty, 0.1, 0.9, nasty, nasty
        ),
        made_by=nasty,
        made_on=nasty,
    )
    text = render(hostile)
    text.encode("utf-8")
    page = read(text)
    assert_closed(text, page)
    assert page.one("h1").text[:20] == "".join(
        "\ufffd" if c in "\x00\u202e\ud800" else c for c in nasty[:20]
    )
    names = [e.name for e in page.all("*")]
    assert names.count("h1") == 1
    assert names.count("style") == 1
    assert "script" not in names


@pytest.mark.parametrize("nasty", HOSTILE[:4])
def test_hostile_column_names_of_a_model(nasty: str) -> None:
    rows = np.random.default_rng(0).uniform(-1, 1, (200, 2))
    frame = pd.DataFrame(rows, columns=[nasty, "b"])
    text = render(facts_of(LogisticRegression().fit(frame, rows[:, 0] > 0)))
    page = read(text)
    assert_closed(text, page)
    assert nasty in [name.text for th in page.all("th", scope="row") for name in th.all("bdi")]


def test_a_seed_is_shown_in_title_and_text() -> None:
    page = read(render(facts_of(table_model(random_state=31_337, unconfirmed=("age",)))))
    assert page.one("title").text.startswith("NO GUARANTEE")
    assert "seeded generator" in page.one("div", class_="alarm loud").text
    assert "31337" not in page.text.replace(",", "")


def test_an_infinite_budget_is_shown() -> None:
    rows = np.random.default_rng(0).uniform(-1, 1, (200, 2))
    model = LogisticRegression(np.inf).fit(rows, rows[:, 0] > 0)
    page = read(render(facts_of(model)))
    assert "the budget is infinite" in page.one("div", class_="alarm loud").text


def test_unconfirmed_lines_are_shown_twice() -> None:
    page = read(render(facts_of(table_model(unconfirmed=("age",)))))
    assert "guessed from the data" in page.one("p", class_="statement").text
    assert "Guessed" not in page.one("title").text
    assert len(page.all("tr", class_="flagged")) == 1


def test_the_same_facts_give_the_same_bytes(tmp_path: Path) -> None:
    model = table_model()
    write_report(tmp_path / "a.html", model)
    write_report(tmp_path / "b.html", facts_of(model))
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()
    assert [p.name for p in sorted(tmp_path.iterdir())] == ["a.html", "b.html"]


@pytest.mark.parametrize("wrong", [LogisticRegression(), None, "text"])
def test_nothing_is_written_for_what_is_no_model(tmp_path: Path, wrong: Any) -> None:
    with pytest.raises(TypeError, match="fit"):
        write_report(tmp_path / "a.html", wrong)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_is_not_a_file(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError):
        write_report(tmp_path, facts())
