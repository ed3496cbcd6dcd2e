from __future__ import annotations

import numpy as np
import pytest

from tacit.metrics import evaluation_plan
from tacit.privacy import Budget
from tacit.report import facts_of, render
from tacit.report.sections.guarantee import plan_section
from tacit.report.wording import alone
from tests.report.helpers import facts, read


def test_the_plan_and_the_others() -> None:
    markup = plan_section(facts())
    assert markup is not None
    tree = read(markup)
    rows = tree.all("table")[0].one("tbody").all("tr")
    assert [row.all("td")[1].text for row in rows] == [
        "the least",
        "2\N{NO-BREAK SPACE}times",
        "does not apply",
    ]
    (chosen,) = tree.all("tr", class_="chosen")
    assert "was run" in chosen.text
    assert "Output perturbation" in chosen.text
    assert "Predicted for 3,000 records." in tree.all("caption")[0].text
    assert tree.all("table")[1].one("td").text == "0.1"


def test_no_plan_no_section() -> None:
    assert plan_section(facts(mechanisms=())) is None


def test_a_plan_without_others_says_what_was_run() -> None:
    plan = evaluation_plan(Budget(1.0, 1e-6), classes=("no", "yes"))
    markup = plan_section(facts(mechanisms=(alone(plan),)))
    assert markup is not None
    tree = read(markup)
    assert tree.one("h2").text == "Mechanism"
    assert plan.reason[1:] in tree.one("p").text
    (table,) = tree.all("table")
    assert len(table.one("tbody").all("tr")) == len(plan.settings)


def test_the_report_of_a_network_says_what_was_run() -> None:
    pytest.importorskip("torch")
    from tacit.deep import NeuralClassifier

    rows = np.random.default_rng(0).normal(size=(80, 3))
    labels = np.where(rows[:, 0] > 0, "a", "b")
    model = NeuralClassifier(classes=["a", "b"], n_records=80, n_steps=3).fit(rows, labels)
    page = render(facts_of(model))
    assert ">Mechanism<" in page
    assert "Number of steps" in page
