"""The released numbers as a forest plot in a table: name, value, error bar."""

from __future__ import annotations

from tacit.report.facts import Coefficient, Coefficients, ReportFacts
from tacit.report.markup import Child, Markup, join, named, tag
from tacit.report.numbers import aligned, rounded_up, short
from tacit.report.page import section
from tacit.report.strip import Strip
from tacit.report.tables import Heading, Row, table

MOST_ROWS = 60


def coefficients_section(facts: ReportFacts) -> Markup | None:
    """Return the section, or nothing where no numbers were released."""
    found = facts.coefficients
    if found is None or not found.rows:
        return None
    shown = _shown(found.rows)
    return section(
        "coefficients",
        "What was released",
        tag("p", found.meaning),
        tag("p", found.about_errors),
        _plot(found, shown),
    )


def _shown(rows: tuple[Coefficient, ...]) -> tuple[Coefficient, ...]:
    """Return all rows in their own order, or the largest of them."""
    if len(rows) <= MOST_ROWS:
        return rows
    return tuple(sorted(rows, key=lambda row: -abs(row.value))[:MOST_ROWS])


def _plot(found: Coefficients, shown: tuple[Coefficient, ...]) -> Markup:
    has_errors = any(row.error is not None for row in shown)
    scale = Strip.around([(row.value, row.error or 0.0) for row in shown])
    values = aligned([row.value for row in shown])
    headings = [Heading("Name"), Heading("Value", number=True)]
    if has_errors:
        title = "Noise, at most" if found.errors_are_bounds else "Noise"
        headings.append(Heading(title, number=True))
    limit = short(scale.reach, 3)
    headings.append(Heading(f"From \N{MINUS SIGN}{limit} to {limit}", picture=True))
    rows = []
    for row, value in zip(shown, values, strict=True):
        error: list[Child] = []
        if has_errors:
            error = [_error(row, found.errors_are_bounds)]
        rows.append(Row((_name(row), value, *error, scale.drawn(row.value, row.error))))
    return table(_caption(found, shown, has_errors), headings, rows, forest=True)


def _error(row: Coefficient, is_bound: bool) -> str:
    if row.error is None:
        return ""
    sign = "\N{LESS-THAN OR EQUAL TO}" if is_bound else "\N{PLUS-MINUS SIGN}"
    return f"{sign} {_up(row.error)}"


def _up(error: float) -> str:
    """Return an error with three digits, rounded up."""
    if error < 1e-3 or error >= 1e4:
        return short(error, 3)
    return rounded_up(error, 3 if error < 10 else 1)


def _name(row: Coefficient) -> Markup:
    if not row.output:
        return named(row.name)
    return join(named(row.output), ": ", named(row.name))


def _caption(found: Coefficients, shown: tuple[Coefficient, ...], has_errors: bool) -> str:
    text = "Released numbers; in the picture the vertical line is zero"
    text += " and bars reach one standard error of the noise to either side." if has_errors else "."
    left_out = len(found.rows) - len(shown)
    if left_out:
        text += f" The {len(shown)} largest are shown; {left_out:,} smaller ones are not."
    return text
