"""Report the terms of an additive model as pictures; columns that were noise are listed."""

from __future__ import annotations

from collections.abc import Mapping

from tacit.additive.shape_plot import CAPTION, NARROW, WIDE, ShapePlot
from tacit.report.facts import ReportFacts, Shapes
from tacit.report.markup import Child, Markup, join, named, section, tag
from tacit.report.wording import short

SHOWN = 6  # columns shown; further ones are folded
MOST_COLUMNS = 40  # columns drawn; further ones are listed
_MOST_NAMES = 200
_SMALL = (
    "The table was fitted as a small one, for which no label sums are released, so that there are "
    "no label means to draw."
)


def shapes_section(facts: ReportFacts) -> Markup | None:
    """Return the section, or None if the model has no terms."""
    found = facts.shapes
    if found is None:
        return None
    figures = [_figure(plots) for plots in found.plots[:MOST_COLUMNS]]
    return section(
        "shapes",
        "Terms of the columns",
        tag("p", found.meaning),
        tag("p", CAPTION),
        None if found.has_label_means else tag("p", _SMALL),
        *figures[:SHOWN],
        _fold(figures[SHOWN:]),
        _left_out(found),
        _removed(found),
    )


def _figure(plots: tuple[ShapePlot, ...]) -> Markup:
    pictures = [
        picture
        for plot in plots
        # The plot escapes its texts itself: `tacit.additive` cannot import this package.
        for picture in (
            Markup(plot.drawn(WIDE, "chart wide shape")),
            Markup(plot.drawn(NARROW, "chart narrow shape")),
        )
    ]
    return tag("figure", tag("h3", named(plots[0].term.name)), *pictures)


def _fold(figures: list[Markup]) -> Markup | None:
    if not figures:
        return None
    many = "1 weaker column" if len(figures) == 1 else f"{len(figures)} weaker columns"
    return tag("details", tag("summary", f"Show {many}"), *figures)


def _left_out(found: Shapes) -> Markup | None:
    rest = [plots[0].term.name for plots in found.plots[MOST_COLUMNS:]]
    if not rest:
        return None
    return tag("p", "Weaker columns of the model that are not drawn: ", *_names(rest), ".")


def _removed(found: Shapes) -> Markup | None:
    if not found.removed:
        return None
    left = {c.name: f" ({short(c.most, 2)})" if c.most else "" for c in found.removed}
    if not found.has_label_means:
        return join(
            tag("h3", "Columns without a curve"),
            tag("p", "The linear fit on the bins of these columns left nothing to draw."),
            tag("p", *_names(list(left), left), "."),
        )
    remark = (
        " The joint fit left a line of some of them in the model: the number in brackets is how "
        "far it can move the score."
        if any(left.values())
        else " They do not count in the model."
    )
    return join(
        tag("h3", "Columns removed as noise"),
        tag(
            "p",
            f"Label sums of these columns showed no more than noise. They have no curve and are "
            f"not drawn.{remark}",
        ),
        tag("p", *_names(list(left), left), "."),
    )


def _names(names: list[str], after: Mapping[str, str] | None = None) -> list[Child]:
    """Return names with commas between them, each with a text after it."""
    pieces: list[Child] = []
    for name in names[:_MOST_NAMES]:
        pieces += [", "] * bool(pieces) + [named(name), (after or {}).get(name, "")]
    rest = len(names) - _MOST_NAMES
    return [*pieces, f", and {rest} more"] if rest > 0 else pieces
