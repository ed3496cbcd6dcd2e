"""Coefficients as statisticians read them: standard errors, tests, intervals."""

from __future__ import annotations

from tacit.report.facts import ReportFacts
from tacit.report.html_table import Heading, Row, table
from tacit.report.markup import Markup, named, tag
from tacit.report.numbers import short
from tacit.report.page import section
from tacit.report.sections.coefficients import MOST_ROWS

_ABOUT = (
    "Standard errors cover both what another sample of people would have changed and the noise "
    "that protects these. Coefficients are corrected for the ridge, so they differ from those "
    "above, which predict, and by more where noise is large; bars above are of noise alone. A "
    "p-value is for the question whether the coefficient is zero."
)


def inference_section(facts: ReportFacts) -> Markup | None:
    """Return the section, or nothing where no standard errors were released."""
    found = facts.summary
    if found is None:
        return None
    ratio = [found.ratio.capitalize(), "Its interval"] if found.ratio else []
    heads = ["Coefficient", "Std. error", "z", "p", "95 % interval", *ratio]
    rows = []
    for row in found.rows()[:MOST_ROWS]:
        name, value, error, z, p, *limits = row.values()
        cells = [_number(value), _number(error), f"{z:.2f}", _p(p), _interval(*limits[:2])]
        if found.ratio:
            cells += [_number(limits[2]), _interval(*limits[3:])]
        rows.append(Row((named(name), *cells)))
    headings = [Heading("Name"), *(Heading(text, number=True) for text in heads)]
    caption = "Coefficients with their standard errors."
    if len(found.names) > MOST_ROWS:
        caption += f" The first {MOST_ROWS:,} of {len(found.names):,}."
    compared = [tag("li", sentence) for sentence in found.comparisons]
    return section(
        "inference",
        "How sure it is",
        tag("p", _ABOUT),
        tag("ul", *compared) if compared else None,
        table(caption, headings, rows),
    )


def _number(value: float) -> str:
    return short(value, 3)


def _interval(low: float, high: float) -> str:
    return f"{_number(low)} to {_number(high)}"


def _p(p: float) -> str:
    return "< 0.001" if p < 0.001 else f"{p:.3f}"
