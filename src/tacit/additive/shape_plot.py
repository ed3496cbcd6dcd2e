"""Draw the term of one column as SVG: the term, label means, and noisy counts of its bins.

Everything that is drawn is released. Bins are equally wide in the picture, so that a range of
-1e7 to 1e7 does not hide the values in its middle. No band is drawn around the term: the spread of
a curve over fits is two to three times what smoothing knows.
"""

from __future__ import annotations

import html
import math
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.arrays import Array

if TYPE_CHECKING:
    from tacit.additive.terms import Term

CAPTION = (
    "Top: the term, which is the model itself. Points: mean label in each bin, with "
    "95\N{NO-BREAK SPACE}% intervals of the noise in it, not of sampling. Bars: noisy number of "
    "records. Hatched: bins that hold less than 3 standard deviations of noise, which cannot be "
    "seen. Bins are drawn equally wide. Marginal means and model terms differ where columns are "
    "correlated."
)
# Below a picture outside of a report.
_NOTE = (
    "Hatched bins cannot be seen. Marginal means and model terms differ where columns are "
    "correlated."
)
# Widths in pixels, for a page and for a phone.
WIDE, NARROW = 680.0, 340.0
_TERM, _MEANS, _COUNTS = 170.0, 90.0, 52.0  # heights of the panels
_ABOVE = 28.0  # room above a panel, for its title
_DIGIT, _TALL = 7.6, 16.0  # pixels per character and per line of text
_BOLD = 12.5  # pixels per bold character, an upper estimate
_RIGHT, _MISSING_GAP = 14.0, 8.0  # right margin, and space before the bin of missing values
_HATCH = 7.0  # pixels between hatched lines
_LONGEST, _LONGEST_WORD = 60, 14
_SLANT = 38.0  # degrees
_ZERO = 1e-9  # relative to the largest edge
# Characters that could reorder the text around them.
_REORDERING = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")

# For a picture outside of a report, whose style sheet has the same classes.
_STYLE = """
.tacit-shape { --ground: #ffffff; --ink: #1b1f24; --soft: #57606a; --faint: #e9ecf0;
  --accent: #0b5c8c; --tint: #b9cfdd; max-width: 680px; font-family: system-ui, sans-serif; }
@media screen and (prefers-color-scheme: dark) { .tacit-shape { --ground: #14171b; --ink: #e8eaed;
  --soft: #a9b1ba; --faint: #262b31; --accent: #6cb6e6; --tint: #35536a; } }
.tacit-shape text { font-size: 13px; fill: var(--soft); }
.tacit-shape .note { font-size: 12px; }
.tacit-shape .ground { fill: var(--ground); }
.tacit-shape .grid { stroke: var(--faint); } .tacit-shape .axis { stroke: var(--soft); }
.tacit-shape .panel { fill: var(--ink); font-weight: 600; }
.tacit-shape .zero { stroke: var(--soft); stroke-dasharray: 3 3; }
.tacit-shape .term { stroke: var(--accent); stroke-width: 2.5; }
.tacit-shape .rise { stroke: var(--accent); stroke-width: 1; opacity: .5; }
.tacit-shape .mean { fill: var(--accent); } .tacit-shape .interval { stroke: var(--accent); }
.tacit-shape .count { fill: var(--soft); }
.tacit-shape .hatch { stroke: var(--soft); fill: none; opacity: .55; }
"""


@dataclass(frozen=True, eq=False)
class ShapePlot:
    """The picture of a column's term; a notebook shows it.

    Parameters
    ----------
    term
        The term.
    output
        The place of the class among several; 0 otherwise.
    score
        The unit of the term, such as "log-odds of yes".
    mean
        The name of the label means, such as "share of yes".

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.additive import AdditiveClassifier
    >>> from tacit.schema import ClassTarget, Number, Schema
    >>> age = np.random.default_rng(0).uniform(0, 100, 20_000)
    >>> table = {"age": age, "ill": np.where(abs(age - 50) > 30, "yes", "no")}
    >>> schema = Schema((Number("age", -1e7, 1e7),), ClassTarget("ill", ("no", "yes")))
    >>> model = AdditiveClassifier(schema, epsilon=1.0, delta=1e-6).fit(table)
    >>> model.plot("age").to_svg()[:4]
    '<svg'
    """

    term: Term
    output: int = 0
    score: str = "term"
    mean: str = "mean label"

    def to_svg(self) -> str:
        """Return the picture as an SVG document of its own."""
        return self.drawn(WIDE, "tacit-shape", f"<style>{_STYLE}</style>")

    def _repr_svg_(self) -> str:
        return self.to_svg()

    @property
    def alternative(self) -> str:
        """The picture in words, for screen readers."""
        values = self.term.curve[:, self.output]
        ends = [edge for pair in self.ends() for edge in pair] or [0.0]
        hidden = int(np.sum(~np.asarray(self.term.can_be_seen)))
        return (
            f"Term of {self.term.name[:_LONGEST]} in {len(values)} bins, {self.score}: from "
            f"{min(ends):.3g} to {max(ends):.3g}; {hidden} bins cannot be seen."
        )

    def ends(self) -> list[tuple[float, float]]:
        """Return the term at the left and the right end of each bin."""
        term, curve = self.term, self.term.curve[:, self.output]
        if term.edges is None:
            return [(float(step), float(step)) for step in curve]
        inner = [float(edge) for edge in term.edges]
        left, right = np.array([term.low, *inner]), np.array([*inner, term.high])
        slope = float(term.slope[self.output])
        lines = [slope * (self._share(at) - 0.5 - term.centre) for at in (left, right)]
        ends = [
            (float(step + a), float(step + b))
            for step, a, b in zip(curve[:-1], *lines, strict=True)
        ]
        return [*ends, (float(curve[-1]), float(curve[-1]))]  # a missing value has no line

    def _share(self, values: Array) -> Array:
        term = self.term
        found: Array = (np.clip(values, term.low, term.high) - term.low) / (term.high - term.low)
        return found

    def drawn(self, width: float, kind: str, before: str = "") -> str:
        """Draw the picture at a width, with a class of the style sheet.

        Parameters
        ----------
        width
            The width in pixels.
        kind
            The class of the SVG element.
        before
            Markup that is put into the element first, such as a style sheet.
        """
        term, ends = self.term, self.ends()
        levels = _ticks(*_range([0.0, *(e for pair in ends for e in pair)]), 5)
        means, intervals = term.label_mean[:, self.output], term.label_mean_interval[:, self.output]
        seen = np.asarray(term.can_be_seen)
        has_means = bool(np.isfinite(means).any())
        shown = seen & np.isfinite(means)
        about = np.append(means[shown], intervals[shown].ravel())
        shares = _ticks(*_range(about[np.isfinite(about)].tolist() or [0.0, 1.0]), 3)
        bars = _ticks(0.0, max(float(term.counts.max()), 1.0), 2)
        digits = max(len(_number(t)) for t in (*levels, *shares, *bars))
        places = _Places(_DIGIT * digits + 14.0, width - _RIGHT, len(term.levels))

        top = _ABOVE
        upper = _Panel(top, _TERM, levels)
        pieces = [upper.frame(places, self.score)]
        top += _TERM + _ABOVE
        if has_means:
            middle = _Panel(top, _MEANS, shares)
            pieces.append(middle.frame(places, self.mean))
            top += _MEANS + _ABOVE
        lower = _Panel(top, _COUNTS, bars)
        pieces.append(lower.frame(places, "noisy counts"))
        base = top + _COUNTS
        hidden = [place for place in range(len(seen)) if not seen[place]]
        pieces += [_hatched(*places.ends(place), _ABOVE, base, place) for place in hidden]
        pieces += [
            _bar(lower, places, place, float(count)) for place, count in enumerate(term.counts)
        ]
        if has_means:
            pieces += [
                _mean(middle, places, place, means[place], intervals[place])
                for place in range(len(shown))
                if shown[place]
            ]
        zero = upper.y(0.0)
        pieces.append(_line(places.left, places.right, zero, zero, "zero"))
        pieces += self._steps(upper, places, ends)
        below, height = _below(term, places, base)
        pieces += below
        title = _element(
            "text", _cut(term.name, int((width - 20) / _BOLD)), x=width / 2, y=height - 7,
            text_anchor="middle", class_="panel",
        )  # fmt: skip
        if before:  # a picture of its own brings its style and its note
            pieces.append(_element("text", _NOTE, x=10, y=height + 12, class_="note"))
            height += 22.0
        ground = _element("rect", width=width, height=height, class_="ground") if before else ""
        return _element(
            "svg",
            "",
            before + ground + "".join(pieces) + title,
            xmlns="http://www.w3.org/2000/svg",
            viewBox=f"0 0 {width:g} {height:g}",
            role="img",
            aria_label=self.alternative,
            class_=kind,
        )

    def _steps(
        self, panel: _Panel, places: _Places, ends: Sequence[tuple[float, float]]
    ) -> Iterator[str]:
        """Draw one line per bin; those of a number are joined, but not to missing values."""
        for place, (left, right) in enumerate(ends):
            x1, x2 = places.ends(place)
            data = {
                "data_bin": place,
                "data_level": self.term.levels[place][:_LONGEST],
                "data_left": f"{left:.6g}",
                "data_right": f"{right:.6g}",
            }
            yield _line(x1, x2, panel.y(left), panel.y(right), "term", **data)
            if self.term.edges is not None and 0 < place < len(ends) - 1:
                yield _line(x1, x1, panel.y(ends[place - 1][1]), panel.y(left), "rise")


@dataclass(frozen=True)
class _Places:
    """Where the bins are, from left to right; missing values stand apart."""

    left: float
    right: float
    n_bins: int

    @property
    def step(self) -> float:
        return (self.right - self.left - _MISSING_GAP) / self.n_bins

    def ends(self, place: int) -> tuple[float, float]:
        start = self.left + self.step * place + (_MISSING_GAP if place == self.n_bins - 1 else 0.0)
        return start, start + self.step


@dataclass(frozen=True)
class _Panel:
    """A vertical scale."""

    top: float
    height: float
    ticks: tuple[float, ...]

    def y(self, value: float) -> float:
        low, high = self.ticks[0], self.ticks[-1]
        share = (min(max(value, low), high) - low) / (high - low)
        return self.top + self.height * (1.0 - share)

    def frame(self, places: _Places, title: str) -> str:
        longest = int((places.right - places.left) / _BOLD)
        pieces = [
            _element("text", _cut(title, longest), x=places.left, y=self.top - 9, class_="panel"),
        ]
        for tick in self.ticks:
            y = self.y(tick)
            pieces.append(_line(places.left, places.right, y, y, "grid"))
            pieces.append(
                _element("text", _number(tick), x=places.left - 6, y=y + 4, text_anchor="end")
            )
        base = self.top + self.height
        pieces.append(_line(places.left, places.right, base, base, "axis"))
        return "".join(pieces)


def _bar(panel: _Panel, places: _Places, place: int, count: float) -> str:
    """Draw the noisy count of a bin; a negative one has no height."""
    x1, x2 = places.ends(place)
    y = panel.y(count)
    return _element(
        "rect",
        x=x1 + 0.5,
        y=y,
        width=max(x2 - x1 - 1.0, 0.5),
        height=panel.top + panel.height - y,
        class_="count",
        data_bin=place,
        data_count=f"{count:.6g}",
    )


def _mean(panel: _Panel, places: _Places, place: int, mean: Any, interval: Any) -> str:
    """Draw the mean label of a bin and its interval."""
    x = sum(places.ends(place)) / 2
    low, high = (float(end) for end in interval)
    return _line(x, x, panel.y(low), panel.y(high), "interval") + _element(
        "circle",
        cx=x,
        cy=panel.y(float(mean)),
        r=2.6,
        class_="mean",
        data_bin=place,
        data_mean=f"{mean:.6g}",
        data_low=f"{low:.6g}",
        data_high=f"{high:.6g}",
    )


def _hatched(x1: float, x2: float, top: float, base: float, place: int) -> str:
    """Draw falling lines over a bin. A pattern would need an id that is unique on a page."""
    strokes = []
    c = math.ceil((x1 + top) / _HATCH) * _HATCH
    while c < x2 + base:
        right, left = min(x2, c - top), max(x1, c - base)
        strokes.append(f"M{right:.1f} {c - right:.1f}L{left:.1f} {c - left:.1f}")
        c += _HATCH
    title = _element("title", "cannot be seen")
    lines = _element("path", d="".join(strokes))
    return _element("g", "", title + lines, class_="hatch", data_bin=place)


def _below(term: Term, places: _Places, base: float) -> tuple[list[str], float]:
    """Return the names of the bins below the axis, and the height of the whole picture."""
    last = places.n_bins - 1
    pieces: list[str] = []
    if term.edges is not None:
        x2 = places.ends(last)[1]
        # At the right end: there may be less room below the bin than its name needs.
        pieces.append(_element("text", "missing", x=x2, y=base + 18, text_anchor="end"))
        free, limit = places.left - 4.0, x2 - 7 * _DIGIT - 8.0
        # An edge of the grid next to 0 is 0 for a reader.
        nearly = _ZERO * float(np.abs(term.edges).max(initial=0.0))
        for place, edge in enumerate(term.edges):
            x = places.ends(place)[1]
            text = _number(float(edge) if abs(edge) > nearly else 0.0)
            half = _DIGIT * len(text) / 2
            if x - half < free + 6.0 or x + half > limit:
                continue
            pieces.append(_line(x, x, base, base + 4, "axis"))
            pieces.append(_element("text", text, x=x, y=base + 18, text_anchor="middle"))
            free = x + half
        return pieces, base + 2.9 * _TALL
    words = [_cut(level, _LONGEST_WORD) for level in term.levels]
    longest = max(len(word) for word in words)
    if _DIGIT * longest + 4.0 <= places.step:
        for place, word in enumerate(words):
            x = sum(places.ends(place)) / 2
            pieces.append(_element("text", word, x=x, y=base + 18, text_anchor="middle"))
        return pieces, base + 2.9 * _TALL
    every = math.ceil(_TALL / places.step)
    for place, level in enumerate(words):
        if place % every and place != last:
            continue
        x = sum(places.ends(place)) / 2 + 4
        # A slanted word ends at its bin, and begins within the picture.
        word = _cut(level, int((x - 2) / (_DIGIT * math.cos(math.radians(_SLANT)))))
        turn = f"rotate(-{_SLANT:g} {x:.1f} {base + 14:.1f})"
        pieces.append(_element("text", word, x=x, y=base + 14, text_anchor="end", transform=turn))
    deep = _DIGIT * longest * math.sin(math.radians(_SLANT))
    return pieces, base + deep + 2.4 * _TALL


def _range(values: Sequence[float]) -> tuple[float, float]:
    low, high = min(values), max(values)
    if high - low <= 1e-9 * max(abs(low), abs(high), 1e-300):
        return low - 0.5, high + 0.5
    return low, high


def _ticks(low: float, high: float, most: int) -> tuple[float, ...]:
    """Return round numbers from one at or below ``low`` to one at or above ``high``.

    Examples
    --------
    >>> from tacit.additive.shape_plot import _ticks
    >>> _ticks(-0.3, 0.9, 4)
    (-0.5, 0.0, 0.5, 1.0)
    """
    raw = (high - low) / most
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(m * power for m in (1, 2, 2.5, 5, 10) if m * power >= raw * (1 - 1e-9))
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return tuple(float(f"{i * step:.12g}") for i in range(first, last + 1))


def _number(value: float) -> str:
    size = abs(value)
    text = f"{value:,.0f}" if 1000.0 <= size < 1e6 else f"{value:.3g}"
    return text.replace("e+0", "e").replace("e-0", "e-").replace("-", "\N{MINUS SIGN}")


def _cut(text: str, longest: int) -> str:
    longest = max(longest, 8)
    return text if len(text) <= longest else text[: longest - 1] + "\N{HORIZONTAL ELLIPSIS}"


def _line(x1: float, x2: float, y1: float, y2: float, kind: str, **data: object) -> str:
    return _element("line", x1=x1, x2=x2, y1=y1, y2=y2, class_=kind, **data)


def _element(name: str, text: str = "", inside: str = "", /, **attributes: object) -> str:
    """Return an element. Text and attributes are escaped, ``inside`` is markup already."""
    shown = "".join(f' {_key(key)}="{_escaped(value)}"' for key, value in attributes.items())
    return f"<{name}{shown}>{_escaped(text)}{inside}</{name}>"


def _key(key: str) -> str:
    return key.rstrip("_").replace("_", "-")


def _escaped(value: object) -> str:
    text = f"{value:.2f}" if isinstance(value, float) else str(value)
    return html.escape("".join(map(_visible, text)), quote=True)


def _visible(character: str) -> str:
    """Replace characters that XML refuses, or that would reorder the text around them."""
    if character in "\n\t\r":
        return " "
    hidden = unicodedata.category(character) in ("Cc", "Cs") or character in _REORDERING
    hidden = hidden or character in "\ufffe\uffff"
    return "\N{REPLACEMENT CHARACTER}" if hidden else character
