from __future__ import annotations

from tacit.report import Coefficient, Coefficients
from tacit.report.sections.coefficients import MOST_ROWS, coefficients_section
from tests.report.helpers import Element, facts, read


def section(found: Coefficients) -> Element:
    markup = coefficients_section(facts(coefficients=found))
    assert markup is not None
    return read(markup)


def test_values_errors_and_pictures() -> None:
    rows = (Coefficient("a", 1.5, 0.25), Coefficient("b", -3.0, 0.5, output="yes"))
    tree = section(Coefficients(rows, "What.", "How."))
    assert [th.text for th in tree.all("th", scope="row")] == ["a", "yes: b"]
    assert [td.text for td in tree.all("td", class_="number")] == [
        "1.500",
        "± 0.250",
        "\N{MINUS SIGN}3.000",
        "± 0.500",
    ]
    assert len(tree.all("line", class_="bar")) == 2
    bounds = section(Coefficients(rows, "What.", "How.", errors_are_bounds=True))
    assert "≤ 0.250" in bounds.text
    assert "at most" in bounds.text


def test_without_errors_there_is_no_column_for_them() -> None:
    tree = section(Coefficients((Coefficient("a", 1.5),), "What.", "No error bars are shown."))
    assert len(tree.all("th", scope="col")) == 3
    assert tree.all("line", class_="bar") == []
    assert "No error bars are shown." in tree.text


def test_of_very_many_the_largest_are_shown() -> None:
    rows = tuple(Coefficient(f"x{i}", float(i)) for i in range(1000))
    tree = section(Coefficients(rows, "What.", "How."))
    names = [th.text for th in tree.all("th", scope="row")]
    assert len(names) == MOST_ROWS
    assert names[0] == "x999"
    assert f"{1000 - MOST_ROWS:,} smaller ones are not" in tree.one("caption").text


def test_nothing_released_nothing_shown() -> None:
    assert coefficients_section(facts(coefficients=None)) is None
