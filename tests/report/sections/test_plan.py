from __future__ import annotations

from tacit.report.sections.plan import plan_section
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
