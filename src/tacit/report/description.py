"""Write the HTML page of a private description: a table for each column, with small pictures."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence

from tacit import __version__
from tacit.descriptive import Description, Figure
from tacit.descriptive.description import SHOWN, shown_figure
from tacit.descriptive.figures import ALL
from tacit.records.coded_table import Cells, NumberCells
from tacit.report.facts import ReportFacts
from tacit.report.markup import Heading, Markup, Row, join, named, page, section, table, tag
from tacit.report.sections.guarantee import guarantee_section
from tacit.saving.container import write_whole

_BAR = 10  # heights of pictures, in pixels
_HISTOGRAM = 56
_FEW = 3
_VALUE = "fill: var(--accent); opacity: .75"
_TRACK = "fill: var(--faint)"
_WHISKER = "stroke: var(--ink); stroke-width: 1.5"


def write_description(
    path: str | os.PathLike[str], description: Description, *, title: str, made_on: str = ""
) -> None:
    """Write a description as one self-contained HTML file.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import tacit
    >>> from tacit.report import write_description
    >>> from tacit.schema import Category, Schema
    >>> schema = Schema((Category("sex", ("f", "m")),))
    >>> found = tacit.describe({"sex": ["f", "m"] * 500}, schema, epsilon=1.0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_description(pathlib.Path(folder) / "a.html", found, title="Survey")
    ...     (pathlib.Path(folder) / "a.html").read_text(encoding="utf-8")[:15]
    '<!DOCTYPE html>'
    """
    text = render_description(description, title=title, made_on=made_on)
    write_whole(path, text.encode("utf-8"))


def render_description(description: Description, *, title: str, made_on: str = "") -> str:
    """Return the page of a description as HTML. Equal figures give equal text."""
    void = bool(description.privacy_.voided_by)
    kind = "A private description" + (f", {made_on}" if made_on else "")
    header = join(tag("p", kind, class_="kicker"), tag("h1", title))
    guarantee = guarantee_section(ReportFacts(title, description.privacy_))
    figures = join(
        section(
            "records",
            "Records",
            tag("p", description.note, " Dark lines in pictures are intervals."),
            _records(description),
        ),
        *(
            _column(description, place, column)
            for place, column in enumerate(description.columns, start=1)
        ),
    )
    # The statement comes first, and its details last; without a guarantee the alarm comes first.
    statement = tag("p", description.privacy_.statement(), class_="statement")
    epsilon = description.plan_.budget.epsilon
    requested = f"Requested epsilon: {epsilon:.10g}, the most that may be spent."
    start = tag("section", statement, tag("p", requested), class_="first")
    main = join(guarantee, figures) if void else join(start, figures, guarantee)
    footer = tag(
        "p",
        f"Written by tacit {__version__}. This page was made from released results and public "
        "facts alone. The page is one file without scripts or network requests.",
    )
    prefix = "NO GUARANTEE: " if void else ""
    return page(f"{prefix}{title} \N{EN DASH} private description", header, main, footer)


def _headings(description: Description, first: str, groups: Sequence[str]) -> list[Heading]:
    by = description.plan_.by
    return [Heading(first)] + [
        Heading("all records" if group == ALL else f"{by}: {group}", name=group != ALL)
        for group in groups
    ]


def _records(description: Description) -> Markup:
    groups = description.groups
    cells = [_cell(description.figure("records", "count", group=g), len(groups)) for g in groups]
    return table(
        "The number of records, with the interval of the number in this table",
        _headings(description, "", groups),
        [Row(("records", *cells))],
        stacked=True,
    )


def _column(description: Description, place: int, column: str) -> Markup:
    """Return the section of one column: its figures by group, and their pictures."""
    is_group = column == description.plan_.by
    groups = (ALL,) if is_group else description.groups
    rows: list[Row] = []
    own = [f for f in description.figures if f.column == column and f.group == ALL]
    for figure in own:
        if figure.figure not in SHOWN:
            continue
        found = [description.figure(column, figure.figure, figure.level, group) for group in groups]
        label = named(figure.level) if figure.level else SHOWN[figure.figure]
        rows.append(Row((label, *(_cell(one, len(groups)) for one in found))))
    bins = [description.of(column, "histogram", group) for group in groups]
    if bins[0]:
        top = max((f.high for each in bins for f in each if not math.isnan(f.value)), default=1.0)
        rows.append(Row(("distribution", *(_histogram(each, top) for each in bins))))
    heading = _headings(description, "", groups)
    described = description.plan_.cells[place - 1]
    caption = _declared(described)
    return tag(
        "section",
        tag("h2", named(described.label), id=f"column-{place}"),
        table(caption, heading, rows, stacked=True),
        aria_labelledby=f"column-{place}",
    )


def _declared(cells: Cells) -> str:
    """Return the public facts of a column, as a caption."""
    if not isinstance(cells, NumberCells):
        return "Shares of the levels that the schema declares, among values that are not missing"
    column, kind = cells.column, "Whole numbers" if cells.whole else "Numbers"
    scale = ", on a logarithmic scale" if column.log else ""
    return f"{kind}, clipped to the range from {column.lower:,.10g} to {column.upper:,.10g}{scale}"


def _cell(figure: Figure, n_groups: int) -> Markup:
    # Few groups leave room to keep an interval on one line.
    value, *interval = shown_figure(figure).split(" (")
    kind = "word" if n_groups <= _FEW else None
    text = join(
        tag("span", value, class_=kind),
        " " if interval else None,
        *(tag("span", f"({ends}", class_=kind) for ends in interval),
    )
    if figure.figure != "share" or math.isnan(figure.value):
        return text
    return join(text, _bar(figure))


def _percent(share: float) -> str:
    return f"{100 * min(max(share, 0.0), 1.0):.2f}%"


def _bar(figure: Figure) -> Markup:
    """Draw a share as a bar with its interval. Screen readers read the numbers above it."""
    middle = _BAR / 2
    return tag(
        "svg",
        tag("rect", x="0", y=2, width="100%", height=_BAR - 4, style=_TRACK),
        tag("rect", x="0", y=2, width=_percent(figure.value), height=_BAR - 4, style=_VALUE),
        tag(
            "line",
            x1=_percent(figure.low),
            x2=_percent(figure.high),
            y1=middle,
            y2=middle,
            style=_WHISKER,
        ),
        aria_hidden="true",
        class_="strip",
        width="100%",
        height=_BAR,
    )


def _histogram(bins: Sequence[Figure], top: float) -> Markup:
    """Draw a histogram, with the interval of each bin, and its ends below."""
    if any(math.isnan(figure.value) for figure in bins):
        return tag("span", "too few")
    top, n = top or 1.0, len(bins)

    def y(share: float) -> str:
        return f"{_HISTOGRAM * (1 - min(share / top, 1.0)):.1f}"

    drawn = []
    for place, figure in enumerate(bins):
        height = f"{_HISTOGRAM * min(figure.value / top, 1.0):.1f}"
        left, width = f"{100 * (place + 0.06) / n:.2f}%", f"{88 / n:.2f}%"
        middle = f"{100 * (place + 0.5) / n:.2f}%"
        drawn.append(
            tag("rect", x=left, y=y(figure.value), width=width, height=height, style=_VALUE)
        )
        drawn.append(
            tag("line", x1=middle, x2=middle, y1=y(figure.low), y2=y(figure.high), style=_WHISKER)
        )
    first, last = bins[0].level.split(" to ")[0], bins[-1].level.split(" to ")[-1]
    most = max(bins, key=lambda figure: figure.value)
    said = f"Histogram from {first} to {last}; most values, {most.value:.0%}, are {most.level}."
    return join(
        tag(
            "svg",
            *drawn,
            tag("line", x1="0", x2="100%", y1=_HISTOGRAM, y2=_HISTOGRAM, class_="axis"),
            role="img",
            aria_label=said,
            class_="strip",
            width="100%",
            height=_HISTOGRAM,
        ),
        tag(
            "span",
            tag("span", first),
            tag("span", last),
            class_="remark",
            style="display: flex; justify-content: space-between",
        ),
    )
