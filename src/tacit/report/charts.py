"""Draw charts as inline SVG: axes, lines, and rows of a forest plot."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from tacit.report.markup import Markup, join, tag
from tacit.report.wording import probability


@dataclass(frozen=True)
class Axis:
    """A scale with a title and ticks.

    Examples
    --------
    >>> from tacit.report.charts import linear_axis
    >>> axis = linear_axis("epsilon", 0.0, 0.93)
    >>> axis.ticks, axis.share(0.5)
    ((0.0, 0.2, 0.4, 0.6, 0.8, 1.0), 0.5)
    """

    title: str
    low: float
    high: float
    ticks: tuple[float, ...]
    is_log: bool = False

    def share(self, value: float) -> float:
        """Return the position of a value on the axis, from 0 to 1."""
        low, high, at = self.low, self.high, value
        if self.is_log:
            low, high, at = math.log(low), math.log(high), math.log(value)
        return (at - low) / (high - low)

    def label(self, tick: float) -> str:
        """Return the text of a tick."""
        if self.is_log and (self.low < 1e-4 or tick > 1e3):
            return probability(tick)
        return f"{tick:.6g}".replace("-", "\N{MINUS SIGN}")


def linear_axis(title: str, low: float, high: float, most: int = 6) -> Axis:
    """Return an axis from a round number below ``low`` to one above ``high``."""
    if high - low <= 1e-9 * max(abs(low), abs(high), 1e-300):
        high = low + (abs(low) if abs(low) > 1e-300 else 1.0)
    raw = (high - low) / most
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(m * power for m in (1, 2, 2.5, 5, 10) if m * power >= raw * (1 - 1e-9))
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    ticks = tuple(float(f"{i * step:.12g}") for i in range(first, last + 1))
    return Axis(title, ticks[0], ticks[-1], ticks)


def whole_axis(title: str, high: float, most: int = 6) -> Axis:
    """Return an axis from 0 whose ticks are whole numbers, for things that are counted.

    Examples
    --------
    >>> from tacit.report.charts import whole_axis
    >>> whole_axis("entry", 2.0).ticks, whole_axis("entry", 13.0).ticks
    ((0.0, 1.0, 2.0), (0.0, 5.0, 10.0, 15.0))
    """
    raw = max(high / most, 1.0)
    power = 10.0 ** math.floor(math.log10(raw) + 1e-9)
    step = next(m * power for m in (1, 2, 5, 10) if m * power >= raw * (1 - 1e-9))
    ticks = tuple(i * step for i in range(max(math.ceil(high / step - 1e-9), 1) + 1))
    return Axis(title, 0.0, ticks[-1], ticks)


def log_axis(title: str, low: float, high: float, every: int = 1) -> Axis:
    """Return a logarithmic axis with a tick at every ``every``-th power of ten."""
    first, last = math.floor(math.log10(low) + 1e-9), math.ceil(math.log10(high) - 1e-9)
    ticks = tuple(10.0**p for p in range(last, first - 1, -every))[::-1]
    return Axis(title, low, high, tuple(t for t in ticks if low <= t * (1 + 1e-9)), True)


def log_axis_at(title: str, values: tuple[float, ...]) -> Axis:
    """Return a logarithmic axis with a tick at each value, padded at the ends."""
    ticks = tuple(sorted(set(values)))
    room = (ticks[-1] / ticks[0]) ** 0.06 if len(ticks) > 1 else 2.0
    return Axis(title, ticks[0] / room, ticks[-1] * room, ticks, True)


Point = tuple[float, float]

N_STYLES = 6  # number of line styles in the style sheet
_DODGE = 5.0  # pixels between error bars at the same x
_RADIUS = 3.5


@dataclass(frozen=True)
class Series:
    """Points joined by a line; ``spread`` is the half-length of each error bar."""

    name: str
    points: tuple[Point, ...]
    spread: tuple[float, ...] = ()


@dataclass(frozen=True)
class Level:
    """A named horizontal line for comparison."""

    name: str
    value: float


@dataclass(frozen=True)
class LineChart:
    """A line chart: axes, series, levels and the text for screen readers."""

    x: Axis
    y: Axis
    series: tuple[Series, ...]
    alternative: str
    levels: tuple[Level, ...] = ()
    marked: Point | None = None
    marked_name: str = ""


@dataclass(frozen=True)
class Frame:
    """The size of a drawing and the margins around its plot."""

    width: float
    height: float
    left: float = 52.0
    gap: float = 20.0
    right: float = 16.0
    top: float = 14.0
    bottom: float = 46.0

    def at(self, chart: LineChart, point: Point) -> Point:
        """Return the pixel coordinates of a point."""
        across = self.width - self.left - self.right
        up = self.height - self.top - self.bottom
        return (
            self.left + across * chart.x.share(point[0]),
            self.top + up * (1 - chart.y.share(point[1])),
        )


WIDE = Frame(680.0, 340.0)
NARROW = Frame(340.0, 300.0, right=18.0, gap=12.0)
_DIGIT = 8.0  # pixels per digit of a label
_LETTER = 7.6  # pixels per letter of a bold label, an upper estimate
_TALL = 16.0  # pixels per line of text


def drawn(chart: LineChart) -> Markup:
    """Draw the chart at two widths; the style sheet shows one of them."""
    letters = max(len(chart.y.label(tick)) for tick in chart.y.ticks)
    frames = (replace(frame, left=frame.gap + _DIGIT * letters) for frame in (WIDE, NARROW))
    return join(*(_svg(chart, frame, which) for frame, which in zip(frames, _CLASSES, strict=True)))


_CLASSES = ("wide", "narrow")


def _svg(chart: LineChart, frame: Frame, which: str) -> Markup:
    series = [
        _line(chart, frame, line, place, len(chart.series))
        for place, line in enumerate(chart.series)
    ]
    return tag(
        "svg",
        _grid(chart, frame, sparse=which == "narrow"),
        *series,
        *(_level(chart, frame, level) for level in chart.levels),
        _mark(chart, frame),
        viewbox=f"0 0 {frame.width:g} {frame.height:g}",
        role="img",
        aria_label=chart.alternative,
        class_=f"chart {which}",
    )


def _grid(chart: LineChart, frame: Frame, sparse: bool) -> Markup:
    left, right = frame.left, frame.width - frame.right
    base = frame.height - frame.bottom
    pieces: list[Markup] = []
    for tick in chart.y.ticks:
        y = frame.at(chart, (chart.x.low, tick))[1]
        pieces.append(tag("line", x1=_n(left), x2=_n(right), y1=_n(y), y2=_n(y), class_="grid"))
        pieces.append(_text(chart.y.label(tick), left - 7, y + 4, "end"))
    skipped = 2 if sparse and len(chart.x.ticks) > 6 else 1
    for tick in chart.x.ticks[::-1][::skipped]:
        x = frame.at(chart, (tick, chart.y.low))[0]
        pieces.append(tag("line", x1=_n(x), x2=_n(x), y1=_n(base), y2=_n(base + 4), class_="axis"))
        pieces.append(_text(chart.x.label(tick), x, base + 18, "middle"))
    pieces.append(tag("line", x1=_n(left), x2=_n(right), y1=_n(base), y2=_n(base), class_="axis"))
    pieces.append(_text(chart.x.title, (left + right) / 2, frame.height - 6, "middle"))
    return tag("g", *pieces, class_="frame")


def _line(chart: LineChart, frame: Frame, series: Series, place: int, count: int) -> Markup:
    shift = (place - (count - 1) / 2) * _DODGE if count > 1 and series.spread else 0.0
    places = [(x + shift, y) for x, y in (frame.at(chart, p) for p in series.points)]
    path = " ".join(f"{_n(x)},{_n(y)}" for x, y in places)
    bars = [
        _bar(chart, frame, point, spread, at[0])
        for point, spread, at in zip(series.points, series.spread, places, strict=False)
        if spread > 0.0
    ]
    dots = [
        marker(place, x, y, data_x=repr(point[0]), data_y=repr(point[1]))
        for point, (x, y) in zip(series.points, places, strict=True)
    ]
    return tag(
        "g", tag("polyline", points=path), *bars, *dots, class_=f"series s{place % N_STYLES}"
    )


def _bar(chart: LineChart, frame: Frame, point: Point, spread: float, x: float) -> Markup:
    ends = [min(max(point[1] + s * spread, chart.y.low), chart.y.high) for s in (-1, 1)]
    low, high = (frame.at(chart, (point[0], end))[1] for end in ends)
    return tag("line", x1=_n(x), x2=_n(x), y1=_n(low), y2=_n(high), class_="bar")


def marker(place: int, x: float, y: float, **data: str) -> Markup:
    """Draw the marker of a series; its shape identifies the series without colour."""
    r = _RADIUS
    kind = place % N_STYLES
    if kind == 0:
        return tag("circle", cx=_n(x), cy=_n(y), r=r, **data)
    corners: Sequence[Point] = {
        1: ((-r, -r), (r, -r), (r, r), (-r, r)),
        2: ((0, -r - 1), (r + 1, r), (-r - 1, r)),
        3: ((0, -r - 1.5), (r + 1.5, 0), (0, r + 1.5), (-r - 1.5, 0)),
        4: ((0, r + 1), (r + 1, -r), (-r - 1, -r)),
        5: ((-r - 1, -1), (r + 1, -1), (r + 1, 1), (-r - 1, 1)),
    }[kind]
    steps = " ".join(f"{_n(x + dx)} {_n(y + dy)}" for dx, dy in corners)
    return tag("path", d=f"M {steps} Z", **data)


def _level(chart: LineChart, frame: Frame, level: Level) -> Markup:
    x1, x2 = frame.left, frame.width - frame.right
    y = frame.at(chart, (chart.x.low, level.value))[1]
    return tag(
        "g",
        tag("line", x1=_n(x1), x2=_n(x2), y1=_n(y), y2=_n(y)),
        # A level at the top has no room above, so its name goes below.
        _text(level.name, x2 - 2, y - 5 if y > _TALL else y + _TALL, "end"),
        class_="level",
    )


def _mark(chart: LineChart, frame: Frame) -> Markup | None:
    """Draw a ring around the marked point, with its name where space allows."""
    if chart.marked is None:
        return None
    x, y = frame.at(chart, chart.marked)
    base = frame.height - frame.bottom
    fits = x + _LETTER * len(chart.marked_name) < frame.width
    # The line falls, so space is free above it on the right and below it on the left.
    where = (x + 8, y - 12, "start") if fits else (x - 8, y + 20, "end")
    return tag(
        "g",
        tag("line", x1=_n(x), x2=_n(x), y1=_n(y), y2=_n(base)),
        tag("circle", cx=_n(x), cy=_n(y), r=6),
        _text(chart.marked_name, *where),
        class_="marked",
    )


def _text(text: str, x: float, y: float, anchor: str) -> Markup:
    return tag("text", text, x=_n(x), y=_n(y), text_anchor=anchor)


def _n(value: float) -> str:
    return f"{value:.2f}"


_HEIGHT = 24


@dataclass(frozen=True)
class Strip:
    """The scale of a forest plot: symmetric about zero, as wide as the longest error bar.

    Examples
    --------
    >>> from tacit.report.charts import Strip
    >>> Strip.around([(1.0, 0.5), (-2.0, 0.0)]).limit
    2.0
    """

    limit: float

    @classmethod
    def around(cls, rows: list[tuple[float, float]]) -> Strip:
        """Return the scale that contains every value and error bar."""
        return cls(max((abs(value) + error for value, error in rows), default=0.0) or 1.0)

    def _x(self, value: float) -> str:
        return f"{50.0 + 48.0 * value / self.limit:.2f}%"

    def drawn(self, value: float, error: float | None) -> Markup:
        """Draw one row. Screen readers skip the picture and read the numbers beside it."""
        middle = _HEIGHT / 2
        bar = None
        if error is not None:
            ends = {"x1": self._x(value - error), "x2": self._x(value + error)}
            bar = tag("line", **ends, y1=middle, y2=middle, class_="bar")
        return tag(
            "svg",
            tag("line", x1="50%", x2="50%", y1=0, y2=_HEIGHT, class_="zero"),
            bar,
            tag("circle", cx=self._x(value), cy=middle, r=3.5),
            aria_hidden="true",
            class_="strip",
            width="100%",
            height=_HEIGHT,
        )
