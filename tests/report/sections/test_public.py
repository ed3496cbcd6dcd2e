from __future__ import annotations

from tacit.privacy import Gaussian, Guarantee
from tacit.report.sections.public import public_section
from tacit.schema import (
    Boolean,
    Category,
    ClassTarget,
    Ignored,
    Intervals,
    Number,
    NumberTarget,
    Schema,
)
from tests.report.helpers import PROMISE, facts, read, schema


def test_every_column_and_what_is_declared_of_it() -> None:
    tree = read(public_section(facts()))
    text = tree.text
    names = [th.text for th in tree.all("table")[0].all("th", scope="row")]
    assert names == ["age", "gain", "education", "hours", "citizen", "name", "income"]
    for fact in ("17 to 90", "logarithmic", "none, school, university", "cut at 20, 40"):
        assert fact in text
    for fact in ("a feature of their own", "become 0", "not read", "<=50K, >50K", "3,000"):
        assert fact in text
    assert schema().digest() in text
    assert "Row norm" in text


def test_guessed_lines_are_flagged() -> None:
    found = schema(("age", "income"))
    tree = read(public_section(facts(schema=found)))
    flagged = tree.all("tr", class_="flagged")
    assert [row.all("bdi")[0].text for row in flagged] == ["age", "income"]
    assert all("not confirmed" in row.text for row in flagged)
    assert read(public_section(facts())).all("tr", class_="flagged") == []


def test_what_was_vouched_for_stands_in_an_alarm() -> None:
    promise = Guarantee(Gaussian(4.0), 1e-6, ("the <range> is public",), ("One pass.",))
    tree = read(public_section(facts(privacy=promise)))
    assert "The <range> is public." in tree.one("div", class_="alarm").text
    assert "One pass." in tree.text
    assert read(public_section(facts(privacy=PROMISE))).all("div", class_="alarm") == []


def test_long_lists_are_cut_and_counted() -> None:
    many = Schema(
        (Category("town", tuple(f"t{i}" for i in range(100))),), NumberTarget("visits", 0, 20)
    )
    text = read(public_section(facts(schema=many))).text
    assert "and 40 more" in text
    assert "t99" not in text
    assert "0 to 20" in text
    assert "Number of records: private" in text


def test_merged_classes_say_which_words_they_stand_for() -> None:
    merged = ClassTarget.merged("readmitted", {"early": ["<30"], "other": [">30", "NO"]})
    tree = read(public_section(facts(schema=Schema((Number("age", 0, 100),), merged))))
    (line,) = (row for row in tree.all("tr") if "readmitted" in row.text)
    assert line.all("td")[1].text == "early: <30; other: >30, NO"
    assert [name.text for name in line.all("bdi")][1:] == ["early", "<30", "other", ">30", "NO"]


def test_of_very_many_merged_classes_the_others_are_counted() -> None:
    merged = ClassTarget.merged("town", {f"c{i}": [f"w{i}"] for i in range(70)})
    text = read(public_section(facts(schema=Schema((Number("age", 0, 100),), merged)))).text
    assert "c59: w59; and 10 more" in text
    assert "w60" not in text


def test_every_kind_of_column_says_what_becomes_of_missing_values() -> None:
    lines = (Number("a", 0, 1), Intervals("b", (1, 2)), Category("c", ("x", "y")), Boolean("d"))
    tree = read(public_section(facts(schema=Schema((*lines, Ignored("e"))))))
    said = [row.all("td")[2].text for row in tree.all("table")[0].one("tbody").all("tr")]
    assert said == [
        "become the middle of the scale",
        "are in no interval",
        "are none of the values",
        "lie between yes and no",
        "",
    ]
