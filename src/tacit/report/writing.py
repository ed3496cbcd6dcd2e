"""A report as one file."""

from __future__ import annotations

import os
from typing import Any

from tacit.report.collecting import facts_of
from tacit.report.facts import ReportFacts
from tacit.report.markup import Markup, join, tag
from tacit.report.page import page
from tacit.report.sections.accuracy import accuracy_section
from tacit.report.sections.coefficients import coefficients_section
from tacit.report.sections.guarantee import guarantee_section
from tacit.report.sections.plan import plan_section
from tacit.report.sections.public import public_section
from tacit.saving.files import write_whole


def render(facts: ReportFacts) -> str:
    """Return the report as HTML. The same facts give the same text.

    Examples
    --------
    >>> from tacit.privacy import Gaussian, Guarantee
    >>> from tacit.report import ReportFacts, render
    >>> text = render(ReportFacts("A count", Guarantee(Gaussian(2.0), 1e-6)))
    >>> "<h1>A count</h1>" in text
    True
    """
    void = bool(facts.privacy.voided_by)
    main = join(
        guarantee_section(facts),
        public_section(facts),
        plan_section(facts),
        coefficients_section(facts),
        accuracy_section(facts),
    )
    title = f"NO GUARANTEE: {facts.title}" if void else facts.title
    return page(f"{title} \N{EN DASH} privacy report", _header(facts), main, _footer(facts))


def _header(facts: ReportFacts) -> Markup:
    dated = f"Privacy report, {facts.made_on}" if facts.made_on else "Privacy report"
    return join(tag("p", dated, class_="kicker"), tag("h1", facts.title))


def _footer(facts: ReportFacts) -> Markup:
    by = f"Written by {facts.made_by}. " if facts.made_by else ""
    return tag(
        "p",
        by + "This page was made from released results and public facts alone. It is one file, "
        "needs no network and holds no script.",
    )


def write_report(path: str | os.PathLike[str], facts: ReportFacts | Any) -> None:
    """Write a report: one HTML file that needs nothing else.

    Parameters
    ----------
    path
        Where to; the file appears whole or not at all.
    facts
        The facts, or a fitted model, of which `facts_of` takes what may be said.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> from tacit.location import Mean
    >>> from tacit.report import write_report
    >>> model = Mean(1.0, 1e-6, row_norm=4.0, n_records=1000).fit(np.ones((1000, 2)))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_report(pathlib.Path(folder) / "report.html", model)
    ...     (pathlib.Path(folder) / "report.html").read_text(encoding="utf-8")[:15]
    '<!DOCTYPE html>'
    """
    found = facts if isinstance(facts, ReportFacts) else facts_of(facts)
    write_whole(path, render(found).encode("utf-8"))
