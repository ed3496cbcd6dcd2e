"""From values to places on a chart, with the values worth a tick."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tacit.report.numbers import probability


@dataclass(frozen=True)
class Axis:
    """A scale with a title and ticks.

    Examples
    --------
    >>> from tacit.report.axes import linear_axis
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
        """Return where a value lies between the ends, from 0 to 1."""
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


def log_axis(title: str, low: float, high: float, every: int = 1) -> Axis:
    """Return a logarithmic axis with a tick at every so many powers of ten."""
    first, last = math.floor(math.log10(low) + 1e-9), math.ceil(math.log10(high) - 1e-9)
    ticks = tuple(10.0**p for p in range(last, first - 1, -every))[::-1]
    return Axis(title, low, high, tuple(t for t in ticks if low <= t * (1 + 1e-9)), True)


def log_axis_at(title: str, values: tuple[float, ...]) -> Axis:
    """Return a logarithmic axis with a tick at each value, and some room at the ends."""
    ticks = tuple(sorted(set(values)))
    room = (ticks[-1] / ticks[0]) ** 0.06 if len(ticks) > 1 else 2.0
    return Axis(title, ticks[0] / room, ticks[-1] * room, ticks, True)
