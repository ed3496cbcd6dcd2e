"""Report coefficients: released numbers with error bars, standard errors and tests."""

from __future__ import annotations

import math

from tacit.report.charts import Strip
from tacit.report.facts import Coefficient, Coefficients, ReportFacts
from tacit.report.markup import Child, Heading, Markup, Row, join, named, section, table, tag
from tacit.report.wording import aligned, rounded_up, short

SHOWN = 12  # rows shown; further rows are folded
MOST_ROWS = 1000
# Noise alone exceeds this many of its standard deviations in about one case in twenty:
# 4.6 % if it is Gaussian, 5.9 % if it is Laplace.
_WITHIN = 2.0
_BESIDE_SUMMARY = (
    "These coefficients are for prediction. Their error bars cover noise but not sampling. To "
    "interpret a coefficient, see Standard errors and tests below: those values are corrected for "
    "the bias of the ridge, and their errors cover noise and sampling, so both differ from these."
)


def coefficients_section(facts: ReportFacts) -> Markup | None:
    """Return the section, or None if no coefficients were released."""
    found = facts.coefficients
    if found is None or not found.rows:
        return None
    rows = sorted(found.rows, key=_importance, reverse=True)[:MOST_ROWS]
    headings, lines = _plot(rows, found.errors_are_bounds)
    return section(
        "coefficients",
        "Released coefficients",
        tag("p", found.meaning),
        tag("p", found.about_errors),
        tag("p", found.on_bias) if found.on_bias else None,
        None if facts.summary is None else tag("p", _BESIDE_SUMMARY),
        table(_caption(rows, found.errors_are_bounds), headings, lines[:SHOWN], forest=True),
        _fold(found, rows[SHOWN:], headings, lines[SHOWN:]),
    )


def _importance(row: Coefficient) -> tuple[float, float]:
    """Sort key: the ratio of a number to its noise, if known, then its size."""
    size = abs(row.value)
    if row.error is None:
        return -1.0, size
    return size / row.error if row.error else math.inf, size


def _is_within_noise(row: Coefficient) -> bool:
    return row.error is not None and abs(row.value) <= _WITHIN * row.error


def _mark(bounds: bool) -> str:
    # If only a bound on the noise is known, the noise may be much smaller.
    return "may be noise" if bounds else "within noise"


def _has_errors(rows: list[Coefficient]) -> bool:
    return any(row.error is not None for row in rows)


def _plot(rows: list[Coefficient], bounds: bool) -> tuple[list[Heading], list[Row]]:
    """Return the heads and rows of a table on one scale."""
    has_errors = _has_errors(rows)
    scale = Strip.around([(row.value, row.error or 0.0) for row in rows])
    limit = short(scale.limit, 3)
    noise = Heading("Noise, at most" if bounds else "Noise", number=True)
    headings = [
        Heading("Name"),
        Heading("Value", number=True),
        *([noise] if has_errors else []),
        Heading(f"From \N{MINUS SIGN}{limit} to {limit}", picture=True),
    ]
    lines = []
    for row, value in zip(rows, aligned([row.value for row in rows]), strict=True):
        error: list[Child] = [_error(row, bounds)] if has_errors else []
        lines.append(Row((_name(row, bounds), value, *error, scale.drawn(row.value, row.error))))
    return headings, lines


def _fold(
    found: Coefficients, rest: list[Coefficient], headings: list[Heading], lines: list[Row]
) -> Markup | None:
    if not rest:
        return None
    within = sum(map(_is_within_noise, rest))
    count = "all" if within == len(rest) else f"{within:,}"
    said = f", {count} of them {_mark(found.errors_are_bounds)}" if within else ""
    title = f"The other {len(rest):,}{said}"
    caption = "The remaining coefficients, on the same scale."
    left_out = len(found.rows) - SHOWN - len(rest)
    if left_out:
        caption += (
            f" {left_out:,} more are left out; tacit inspect --coefficients prints all of a "
            "saved model."
        )
    return tag("details", tag("summary", title), table(caption, headings, lines, forest=True))


def _error(row: Coefficient, is_bound: bool) -> str:
    if row.error is None:
        return ""
    sign = "\N{LESS-THAN OR EQUAL TO}" if is_bound else "\N{PLUS-MINUS SIGN}"
    return f"{sign} {_up(row.error)}"


def _up(error: float) -> str:
    """Format an error with three digits, rounded up."""
    if error < 1e-3 or error >= 1e4:
        return short(error, 3)
    return rounded_up(error, 3 if error < 10 else 1)


def _name(row: Coefficient, bounds: bool) -> Markup:
    name = join(named(row.output), ": ", named(row.name)) if row.output else named(row.name)
    if _is_within_noise(row):
        return join(name, " ", tag("span", _mark(bounds), class_="badge quiet"))
    return name


def _caption(rows: list[Coefficient], bounds: bool) -> str:
    zero = "In the picture the vertical line is zero"
    if not _has_errors(rows):
        return f"Released coefficients, the largest first. {zero}."
    one = "one standard deviation of the noise"
    text = (
        "Released coefficients, ordered by the ratio of value to noise. "
        f"{zero} and bars show {f'an upper bound on {one}' if bounds else one} to either side."
    )
    if any(map(_is_within_noise, rows)):
        text += f" {_mark(bounds).capitalize()}: at most twice that from zero."
    return text


_ABOUT = (
    "Standard errors cover the variation between samples and the noise added for privacy. "
    "Coefficients are corrected for the bias of the ridge, so they differ from the predictive "
    "coefficients above, more so if noise is large; the bars above show noise only. A "
    "p-value tests whether the coefficient is zero."
)


def inference_section(facts: ReportFacts) -> Markup | None:
    """Return the section, or None if no standard errors were released."""
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
        "Standard errors and tests",
        tag("p", f"Coefficients are of the odds of {found.positive}.") if found.positive else None,
        tag("p", _ABOUT),
        tag("ul", *compared) if compared else None,
        tag("p", found.remark) if found.remark else None,
        table(caption, headings, rows),
    )


def _number(value: float) -> str:
    return short(value, 3)


def _interval(low: float, high: float) -> str:
    return f"{_number(low)} to {_number(high)}"


def _p(p: float) -> str:
    return "< 0.001" if p < 0.001 else f"{p:.3f}"
