"""One row of a forest plot: a value and its error bar on a scale shared by all rows."""

from __future__ import annotations

from dataclasses import dataclass

from tacit.report.markup import Markup, tag

_HEIGHT = 24


@dataclass(frozen=True)
class Strip:
    """The scale of the rows: symmetric about zero, as far as the farthest error bar.

    Examples
    --------
    >>> from tacit.report.strip import Strip
    >>> Strip.around([(1.0, 0.5), (-2.0, 0.0)]).reach
    2.0
    """

    reach: float

    @classmethod
    def around(cls, rows: list[tuple[float, float]]) -> Strip:
        """Return the scale on which every value and error bar fits."""
        return cls(max((abs(value) + error for value, error in rows), default=0.0) or 1.0)

    def _x(self, value: float) -> str:
        return f"{50.0 + 48.0 * value / self.reach:.2f}%"

    def drawn(self, value: float, error: float | None) -> Markup:
        """Return the picture of one row, hidden from screen readers: numbers stand beside it."""
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
