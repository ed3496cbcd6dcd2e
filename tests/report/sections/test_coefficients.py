from __future__ import annotations

import numpy as np
import pytest

from tacit.linear_model import LogisticRegression
from tacit.report import facts_of
from tacit.report.facts import Coefficient, Coefficients
from tacit.report.sections.coefficients import MOST_ROWS, SHOWN, coefficients_section
from tests.report.helpers import Element, facts, read


def section(found: Coefficients) -> Element:
    markup = coefficients_section(facts(coefficients=found))
    assert markup is not None
    return read(markup)


def names(tree: Element) -> list[str]:
    return [th.text for th in tree.all("th", scope="row")]


def test_values_errors_and_pictures() -> None:
    rows = (Coefficient("a", 1.5, 0.25), Coefficient("b", -3.0, 0.75, output="yes"))
    tree = section(Coefficients(rows, "What.", "How."))
    assert names(tree) == ["a", "yes: b"]
    assert [td.text for td in tree.all("td", class_="number")] == [
        "1.500",
        "± 0.250",
        "\N{MINUS SIGN}3.000",
        "± 0.750",
    ]
    assert len(tree.all("line", class_="bar")) == 2
    assert tree.all("details") == []
    bounds = section(Coefficients(rows, "What.", "How.", errors_are_bounds=True))
    assert "≤ 0.250" in bounds.text
    assert "at most" in bounds.text


def test_what_stands_out_most_from_its_noise_comes_first() -> None:
    rows = (
        Coefficient("large, loud", 5.0, 10.0),
        Coefficient("unknown", 50.0),
        Coefficient("small, sharp", -0.1, 0.001),
        Coefficient("without noise", 0.01, 0.0),
        Coefficient("intercept", 5.0, 1.0),
    )
    tree = section(Coefficients(rows, "What.", "How."))
    found = [name.removesuffix(" within noise") for name in names(tree)]
    assert found == ["without noise", "small, sharp", "intercept", "large, loud", "unknown"]
    unknown = section(Coefficients(tuple(Coefficient(r.name, r.value) for r in rows), "", ""))
    assert names(unknown)[0] == "unknown"  # by size alone
    assert "the largest first" in unknown.one("caption").text


def test_within_noise_is_said_in_words() -> None:
    rows = tuple(Coefficient(str(size), size, 0.5) for size in (1.01, 1.0, -0.99))
    tree = section(Coefficients(rows, "What.", "How."))
    assert names(tree) == ["1.01", "1.0 within noise", "-0.99 within noise"]
    assert "Within noise: at most twice" in tree.one("caption").text
    bounds = section(Coefficients(rows, "What.", "How.", errors_are_bounds=True))
    assert names(bounds) == ["1.01", "1.0 may be noise", "-0.99 may be noise"]
    assert "an upper bound on one standard deviation" in bounds.one("caption").text
    clear = section(Coefficients(rows[:1], "What.", "How."))
    assert "within noise" not in clear.text.lower()


def test_without_errors_there_is_no_column_for_them() -> None:
    tree = section(Coefficients((Coefficient("a", 1.5),), "What.", "No error bars are shown."))
    assert len(tree.all("th", scope="col")) == 3
    assert tree.all("line", class_="bar") == []
    assert "No error bars are shown." in tree.text
    assert "within noise" not in tree.text.lower()


def test_the_others_are_in_a_fold_and_very_many_are_cut() -> None:
    rows = tuple(Coefficient(f"x{i}", float(i)) for i in range(MOST_ROWS + 500))
    tree = section(Coefficients(rows[: SHOWN + 5], "What.", "How."))
    fold = tree.one("details")
    assert fold.one("summary").text == "The other 5"
    assert names(fold) == ["x4", "x3", "x2", "x1", "x0"]
    assert len(names(tree)) == SHOWN + 5
    cut = section(Coefficients(rows, "What.", "How."))
    assert len(names(cut)) == MOST_ROWS
    assert names(cut)[0] == f"x{MOST_ROWS + 499}"
    assert "500 more are left out" in cut.one("details").one("caption").text
    dots = [dot.attributes["cx"] for dot in cut.all("circle")]
    assert dots == sorted(dots, key=lambda x: -float(x.rstrip("%")))  # one scale for both tables


def test_the_fold_says_how_many_are_within_noise() -> None:
    rows = tuple(Coefficient(f"x{i}", float(i), 1.0) for i in range(SHOWN + 5))
    fold = section(Coefficients(rows, "What.", "How.")).one("details")
    assert fold.one("summary").text == "The other 5, 3 of them within noise"
    loud = tuple(Coefficient(row.name, row.value, 9.0) for row in rows)
    fold = section(Coefficients(loud, "What.", "How.")).one("details")
    assert fold.one("summary").text == "The other 5, all of them within noise"


def test_the_intercept_of_a_model_is_among_them_with_the_noise_of_its_own() -> None:
    rows = np.random.default_rng(0).uniform(-1, 1, (500, 3))
    model = LogisticRegression(mechanism="output_perturbation").fit(rows, rows[:, 0] > 0)
    found = facts_of(model)
    tree = read(coefficients_section(found))
    line = next(th for th in tree.all("th", scope="row") if th.text.startswith("intercept")).parent
    shown = float(line.all("td", class_="number")[1].text.split()[1])
    assert shown == pytest.approx(found.coefficients.rows[-1].error, abs=1e-3)


def test_nothing_released_nothing_shown() -> None:
    assert coefficients_section(facts(coefficients=None)) is None
