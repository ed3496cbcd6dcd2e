"""An audit as one page: lower bounds beside the claim, and the scores they come from."""

from __future__ import annotations

import math
import os

import numpy as np
import numpy.typing as npt

from tacit import __version__
from tacit.audit import Audit
from tacit.report.axes import linear_axis
from tacit.report.html_table import Heading, Row, table
from tacit.report.line_chart import LineChart, Series, drawn
from tacit.report.markup import Markup, join, tag
from tacit.report.numbers import probability, rounded_down, short
from tacit.report.page import page, section
from tacit.saving.files import write_whole

Array = npt.NDArray[np.float64]

_BINS = 40


def write_audit(path: str | os.PathLike[str], audit: Audit) -> None:
    """Write an audit's page: one HTML file that needs nothing else.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from tacit.audit import Audit, Finding
    >>> from tacit.privacy import Budget
    >>> from tacit.report import write_audit
    >>> found = Audit("a sum", Budget(1.0, 1e-6), 0.05, (Finding("by hand", 0.8, "nothing"),))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_audit(pathlib.Path(folder) / "a.html", found)
    ...     (pathlib.Path(folder) / "a.html").read_text(encoding="utf-8")[:15]
    '<!DOCTYPE html>'
    """
    write_whole(path, render_audit(audit).encode("utf-8"))


def render_audit(audit: Audit) -> str:
    """Return an audit's page as HTML."""
    header = join(
        tag("p", "Privacy audit", class_="kicker"),
        tag("h1", audit.subject),
        tag("p", f"Claimed: {audit.claim}."),
    )
    main = join(_found(audit), _picture(audit), _notes(audit))
    footer = tag(
        "p",
        f"Written by tacit {__version__}; no record of anybody was read. It is one file, needs no "
        "network and holds no script.",
    )
    return page(f"{audit.subject} \N{EN DASH} privacy audit", header, main, footer)


def _found(audit: Audit) -> Markup:
    figures = (
        (rounded_down(audit.strongest.epsilon, 3), "what epsilon is at least, by the best bound"),
        (short(audit.claim.epsilon), "epsilon, as claimed"),
        (probability(audit.claim.delta), "delta, as claimed"),
    )
    rows = [Row((f.method, f.assumes, rounded_down(f.epsilon, 3))) for f in audit.findings]
    sure = f"{100 * (1 - audit.level):g}"
    return section(
        "found",
        "What was found",
        tag("p", audit.conclusion, class_="statement"),
        tag(
            "dl",
            *(tag("div", tag("dt", what), tag("dd", number)) for number, what in figures),
            class_="figures",
        ),
        table(
            f"Lower bounds on epsilon at the claim's delta; each is right with confidence {sure} %",
            [Heading("found"), Heading("assuming"), Heading("at least", number=True)],
            rows,
            stacked=True,
        ),
        first=True,
    )


def _picture(audit: Audit) -> Markup | None:
    if not audit.without.size:
        return None
    both = np.concatenate([audit.without, audit.with_it])
    bins = min(_BINS, math.isqrt(both.size))
    edges = np.linspace(float(both.min()), float(both.max()), bins + 1)
    centres = (edges[1:] + edges[:-1]) / 2
    counts = [_shares(scores, edges) for scores in (audit.without, audit.with_it)]
    top = max(float(shares.max()) for shares in counts)
    chart = LineChart(
        x=linear_axis("score", float(edges[0]), float(edges[-1])),
        y=linear_axis("per cent of the fits", 0.0, top),
        series=tuple(
            Series(name, tuple(zip(map(float, centres), map(float, shares), strict=True)))
            for name, shares in zip(("without the record", "with it"), counts, strict=True)
        ),
        alternative=(
            f"Two histograms of scores: without the record their mean is "
            f"{audit.without.mean():.3g}, with it {audit.with_it.mean():.3g}."
        ),
    )
    caption = (
        f"Scores of {audit.without.size:,} fits without one record and {audit.with_it.size:,} with "
        "it (dashed). The less they overlap, the more a release tells."
    )
    figure = tag("figure", drawn(chart), tag("figcaption", caption))
    return section("scores", "How well the two worlds can be told apart", figure)


def _shares(scores: Array, edges: Array) -> Array:
    return np.asarray(100 * np.histogram(scores, edges)[0] / scores.size)


def _notes(audit: Audit) -> Markup | None:
    if not audit.notes:
        return None
    return section("notes", "What else was seen", *(tag("p", note) for note in audit.notes))
