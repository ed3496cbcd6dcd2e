from __future__ import annotations

import pytest

from tacit.report.charts import Strip
from tests.report.helpers import read


def share(text: str) -> float:
    return float(text.removesuffix("%"))


def test_all_rows_share_a_scale() -> None:
    scale = Strip.around([(3.0, 1.0), (-2.0, 0.0)])
    svg = read(scale.drawn(3.0, 1.0)).one("svg")
    bar, dot = svg.one("line", class_="bar"), svg.one("circle")
    assert share(bar.attributes["x2"]) == 98.0
    assert share(dot.attributes["cx"]) == pytest.approx(50 + 36)
    assert share(dot.attributes["cx"]) - share(bar.attributes["x1"]) == pytest.approx(12)
    assert share(read(scale.drawn(-2.0, None)).one("circle").attributes["cx"]) == pytest.approx(26)


def test_no_error_no_bar() -> None:
    assert read(Strip(1.0).drawn(0.5, None)).all("line", class_="bar") == []
    assert Strip.around([]).limit == 1.0
    assert Strip.around([(0.0, 0.0)]).limit == 1.0
