from __future__ import annotations

import pytest

from tacit.report.charts import N_STYLES, Level, LineChart, Series, drawn, linear_axis
from tests.report.helpers import read


def chart(**changes: object) -> LineChart:
    parts: dict[str, object] = {
        "x": linear_axis("time", 0.0, 10.0),
        "y": linear_axis("height", 0.0, 1.0),
        "series": (Series("a", ((0.0, 0.0), (5.0, 0.5), (10.0, 1.0))),),
        "alternative": "It <rises>.",
    }
    return LineChart(**{**parts, **changes})  # type: ignore[arg-type]


def test_a_wide_and_a_narrow_picture_that_say_what_they_show() -> None:
    pictures = read(drawn(chart())).all("svg")
    assert [p.attributes["class"] for p in pictures] == ["chart wide", "chart narrow"]
    assert all(p.attributes["role"] == "img" for p in pictures)
    assert all(p.attributes["aria-label"] == "It <rises>." for p in pictures)


def test_points_are_where_their_values_are() -> None:
    for svg in read(drawn(chart())).all("svg"):
        dots = svg.all("circle")
        assert [(float(d.attributes["data-x"]), float(d.attributes["data-y"])) for d in dots] == [
            (0.0, 0.0),
            (5.0, 0.5),
            (10.0, 1.0),
        ]
        x = [float(d.attributes["cx"]) for d in dots]
        y = [float(d.attributes["cy"]) for d in dots]
        assert x[1] - x[0] == pytest.approx(x[2] - x[1], abs=0.02)
        assert x[0] < x[2]
        assert y[0] > y[2]
        width, height = map(float, svg.attributes["viewbox"].split()[2:])
        assert 0 < x[0] < x[2] < width
        assert 0 < y[2] < y[0] < height
        line = svg.one("polyline").attributes["points"].split()
        assert line == [f"{a:.2f},{b:.2f}" for a, b in zip(x, y, strict=True)]


def test_error_bars_stay_on_the_chart() -> None:
    series = (Series("a", ((5.0, 0.9), (6.0, 0.5)), (0.3, 0.0)),)
    svg = read(drawn(chart(series=series))).all("svg")[0]
    (bar,) = svg.all("line", class_="bar")
    top = min(float(line.attributes["y1"]) for line in svg.all("line", class_="grid"))
    assert float(bar.attributes["y2"]) == pytest.approx(top)


def test_series_differ_by_shape_and_class() -> None:
    series = tuple(Series(str(i), ((5.0, 0.5),)) for i in range(N_STYLES))
    svg = read(drawn(chart(series=series))).all("svg")[0]
    groups = [g for g in svg.all("g") if g.attributes["class"].startswith("series")]
    assert len({g.attributes["class"] for g in groups}) == N_STYLES
    shapes = {g.all("path")[0].attributes["d"] if g.all("path") else "circle" for g in groups}
    assert len(shapes) == N_STYLES


def test_levels_and_the_mark_are_named() -> None:
    marked = chart(levels=(Level("ceiling", 0.8),), marked=(5.0, 0.5), marked_name="here")
    svg = read(drawn(marked)).all("svg")[0]
    texts = [text.text for text in svg.all("text")]
    assert "ceiling" in texts
    assert "here" in texts
    assert "time" in texts
