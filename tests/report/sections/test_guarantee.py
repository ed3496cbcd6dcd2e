from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import norm

from tacit.privacy import Gaussian, Guarantee, NonPrivate, PureEpsilon, Relation, Repeated
from tacit.report import ReportFacts
from tacit.report.sections.guarantee import guarantee_section
from tests.report.helpers import Element, read


def section(promise: Guarantee) -> Element:
    return read(guarantee_section(ReportFacts("A", promise)))


@pytest.mark.parametrize(
    "promise",
    [
        Guarantee(Gaussian(4.0), 1e-6),
        Guarantee(Repeated(Gaussian(20.0), 100), 1e-5, ("x is public",), ("A note.",)),
        Guarantee(PureEpsilon(1.0), 0.0),
        Guarantee(Gaussian(0.1), 1e-6),
    ],
)
def test_the_curve_is_the_guarantees(promise: Guarantee) -> None:
    tree = section(promise)
    curve = promise.curve()
    for svg in tree.all("svg"):
        dots = [d for d in svg.all("circle") if "data-x" in d.attributes]
        drawn = [(float(d.attributes["data-x"]), float(d.attributes["data-y"])) for d in dots]
        assert drawn == list(zip(curve.delta.tolist(), curve.epsilon.tolist(), strict=True))
        # A logarithmic axis: equal steps for equal factors.
        x = np.array([float(d.attributes["cx"]) for d in dots])
        assert np.ptp(np.diff(x)) < 0.05
    printed = [float(td.text.split()[0]) for td in tree.all("td", class_="number")[::2]]
    assert np.all(np.array(printed) >= curve.epsilon - 1e-9)
    assert np.all(np.array(printed) <= curve.epsilon + 1.1e-4)


def test_the_statement_stands_word_for_word() -> None:
    promise = Guarantee(Gaussian(4.0), 1e-6, ("<b> is public",))
    assert section(promise).one("p", class_="statement").text == promise.statement()


def test_how_often_a_guess_is_right() -> None:
    # Neighbours that differ by one in a Gaussian of std 4 are told apart at best half-way.
    exact = 100 * norm.cdf(1 / 8)
    text = section(Guarantee(Gaussian(4.0), 1e-6)).one("dl").all("dd")[2].text
    stated = float(text.removesuffix("%").strip())
    assert exact <= stated <= exact + 0.1 + 1e-9
    pure = section(Guarantee(PureEpsilon(1.0), 0.0)).one("dl").all("dd")[2].text
    assert float(pure.removesuffix("%").strip()) >= 100 * math.e / (1 + math.e)


def test_the_relation_changes_what_is_guessed() -> None:
    replace = Guarantee(Gaussian(4.0, Relation.REPLACE), 1e-6)
    assert "which of two records" in section(replace).text
    assert "whether a given record" in section(Guarantee(Gaussian(4.0), 1e-6)).text


def test_a_void_promise_is_shouted() -> None:
    tree = section(Guarantee(NonPrivate("drawn from a <seed>", would_be=Gaussian(4.0)), 1e-6))
    alarm = tree.one("div", class_="alarm loud")
    assert "drawn from a <seed>" in alarm.text
    assert "NO privacy guarantee" in alarm.text
    assert tree.all("svg") == []
    assert tree.all("dl") == []


def test_a_planned_delta_without_a_finite_epsilon() -> None:
    tree = section(Guarantee(Gaussian(4.0), 0.0))
    assert "no guarantee at delta = 0" in tree.one("p", class_="statement").text
    assert tree.one("dl").all("dd")[0].text == "∞"
