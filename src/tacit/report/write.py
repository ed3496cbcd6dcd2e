"""Write a report as one HTML file."""

from __future__ import annotations

import os
from typing import Any

from tacit import __version__
from tacit.metrics import Evaluation
from tacit.report.collect import facts_of
from tacit.report.facts import AccuracyPicture, ReportFacts
from tacit.report.markup import Markup, join, page, tag
from tacit.report.sections.accuracy import accuracy_section, evaluation_section, scores_section
from tacit.report.sections.coefficients import coefficients_section, inference_section
from tacit.report.sections.guarantee import guarantee_section, plan_section
from tacit.report.sections.public import public_section
from tacit.report.sections.shapes import shapes_section
from tacit.saving.container import write_whole

_WHOSE_GUARANTEE = (
    "The guarantee below covers the model and its coefficients. It does not cover this page: the "
    "scores at its end were computed from records without protection."
)
_WITHOUT_SCORES = "This page was made from released results and public facts alone. "
_WITH_SCORES = (
    "Scores on this page were computed from records without protection, so the page has no "
    "guarantee. "
)
_ALONE = "The page is one file without scripts or network requests."


def render(facts: ReportFacts) -> str:
    """Return the report as HTML. Equal facts give equal text.

    Examples
    --------
    >>> from tacit.privacy import Gaussian, Guarantee
    >>> from tacit.report import ReportFacts, render
    >>> text = render(ReportFacts("A count", Guarantee(Gaussian(2.0), 1e-6)))
    >>> "<h1>A count</h1>" in text
    True
    """
    void, scored = bool(facts.privacy.voided_by), facts.accuracy is not None
    main = join(
        guarantee_section(facts),
        public_section(facts),
        plan_section(facts),
        coefficients_section(facts),
        inference_section(facts),
        shapes_section(facts),
        None if facts.evaluation is None else evaluation_section(facts.evaluation),
        accuracy_section(facts),
    )
    kind = "a model, and scores of records" if scored else "Privacy report"
    by = f"Written by {facts.made_by}. " if facts.made_by else ""
    warning = _WHOSE_GUARANTEE if scored and not void else ""
    return _page(facts.title, _dated(kind, facts.made_on), main, by, scored, void, warning)


def render_comparison(
    title: str, picture: AccuracyPicture, *, remark: str = "", made_on: str = ""
) -> str:
    """Return a page of scores of many fits.

    The page shows no budget: the budget of one fit would not cover the scores of all.

    Examples
    --------
    >>> from tacit.report import AccuracyPicture, AccuracyPoint
    >>> from tacit.report.write import render_comparison
    >>> points = (AccuracyPoint("output_perturbation", 1.0, 0.8),)
    >>> page = render_comparison("Income", AccuracyPicture(points, "The data are published."))
    >>> page.index("Not private") < page.index("<h1>Income</h1>") < page.index("0.8000")
    True
    """
    kind = _dated("a comparison on public data", made_on)
    main = scores_section(picture, remark, first=True)
    return _page(title, kind, main, f"Written by tacit {__version__}. ", scored=True)


def render_evaluation(title: str, evaluation: Evaluation, *, made_on: str = "") -> str:
    """Return a private evaluation as a page that begins with its guarantee.

    Examples
    --------
    >>> from tacit.metrics.evaluation import Estimate
    >>> from tacit.metrics import Evaluation
    >>> from tacit.privacy import Gaussian, Guarantee
    >>> from tacit.report.write import render_evaluation
    >>> promise = Guarantee(Gaussian(4.2), 1e-6)
    >>> accuracy = Estimate(0.8, 0.79, 0.81)
    >>> found = Evaluation(promise, {"accuracy": accuracy}, Estimate(9, 8, 10), 1.0)
    >>> text = render_evaluation("Income", found)
    >>> text.index("differentially private") < text.index("0.79 to 0.81")
    True
    """
    facts = ReportFacts(title, evaluation.privacy_)
    main = join(guarantee_section(facts), evaluation_section(evaluation))
    kind, void = _dated("a private evaluation", made_on), bool(evaluation.privacy_.voided_by)
    return _page(title, kind, main, f"Written by tacit {__version__}. ", scored=False, void=void)


def _dated(kind: str, made_on: str) -> str:
    return f"{kind}, {made_on}" if made_on else kind


def _page(
    title: str,
    kind: str,
    main: Markup,
    by: str,
    scored: bool,
    void: bool = False,
    warning: str = "",
) -> str:
    """Return a page. A page with scores shows no guarantee, because scores are unprotected."""
    prefix = "NO GUARANTEE: " if void else "NOT PRIVATE: " if scored else ""
    suffix = "" if scored else " \N{EN DASH} privacy report"
    header = join(
        tag("p", f"Not private: {kind}" if scored else kind, class_="kicker"),
        tag("h1", title),
        tag("p", warning, class_="alarm") if warning else None,
    )
    footer = tag("p", by + (_WITH_SCORES if scored else _WITHOUT_SCORES) + _ALONE)
    return page(f"{prefix}{title}{suffix}", header, main, footer)


def write_report(path: str | os.PathLike[str], facts: ReportFacts | Any) -> None:
    """Write a report as one self-contained HTML file.

    Parameters
    ----------
    path
        The path to write; the file is written atomically.
    facts
        The facts, or a fitted model to pass to `facts_of`.

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
