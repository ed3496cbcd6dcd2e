from __future__ import annotations

from tacit.report import AccuracyPicture, AccuracyPoint
from tacit.report.sections.accuracy import accuracy_section
from tests.report.helpers import Element, facts, picture, read


def section(found: AccuracyPicture) -> Element:
    markup = accuracy_section(facts(accuracy=found))
    assert markup is not None
    return read(markup)


def test_points_lines_and_numbers() -> None:
    found = picture()
    tree = section(found)
    svg = tree.all("svg", role="img")[0]
    marks = [e for e in svg.all("*") if "data-x" in e.attributes]
    drawn = {(float(m.attributes["data-x"]), float(m.attributes["data-y"])) for m in marks}
    assert drawn == {(p.epsilon, p.mean) for p in found.points}
    assert len(svg.all("line", class_="bar")) == len(found.points)
    texts = [text.text for text in svg.all("text")]
    assert "majority class" in texts
    assert "without privacy" in texts
    assert [li.text for li in tree.one("ul", class_="legend").all("li")] == [
        "Objective perturbation",
        "Noisy gradient descent",
    ]
    assert "0.7010 ±\N{NO-BREAK SPACE}0.0100" in tree.one("table").text
    assert "Majority class: 0.6000." in tree.one("caption").text


def test_the_notice_says_why_the_scores_may_be_shown() -> None:
    alarm = section(picture()).one("div", class_="alarm")
    assert "not private" in alarm.text
    assert "The data set is published." in alarm.text


def test_a_mechanism_may_lack_a_point_and_a_picture_its_levels() -> None:
    points = (
        AccuracyPoint("a", 0.5, 0.8),
        AccuracyPoint("b", 0.5, 0.8),
        AccuracyPoint("b", 0.55, 0.9),
    )
    tree = section(AccuracyPicture(points, "Published."))
    cells = [td.text for td in tree.one("table").all("td")]
    assert cells == ["0.8000", "0.8000", "", "0.9000"]
    assert tree.all("g", class_="level") == []


def test_one_point_is_a_picture() -> None:
    assert section(AccuracyPicture((AccuracyPoint("a", 1.0, 0.8),), "Published.")).all("svg")


def test_no_public_data_no_section() -> None:
    assert accuracy_section(facts(accuracy=None)) is None
