from __future__ import annotations

from tacit.report.markup import Heading, Row, table
from tests.report.helpers import read

HEADINGS = (Heading("name"), Heading("age", number=True), Heading("x", picture=True))
ROWS = (Row(("Ann", "39", None), "chosen"),)


def test_headers_have_a_scope_and_the_table_a_caption() -> None:
    tree = read(table("Ages", HEADINGS, ROWS))
    assert tree.one("caption").text == "Ages"
    assert [th.text for th in tree.all("th", scope="col")] == ["name", "age", "x"]
    assert [th.text for th in tree.all("th", scope="row")] == ["Ann"]
    assert tree.one("td", class_="number").text == "39"
    assert tree.all("tr")[1].attributes["class"] == "chosen"


def test_a_table_that_changes_its_shape_stays_a_table() -> None:
    for shape in ({"stacked": True}, {"forest": True}):
        tree = read(table("Ages", HEADINGS, ROWS, **shape))
        assert tree.one("table").attributes["role"] == "table"
        assert len(tree.all("tr", role="row")) == 2
        assert len(tree.all("td", role="cell")) == 2
    assert read(table("Ages", HEADINGS, ROWS, stacked=True)).all("td", data_name="age")
