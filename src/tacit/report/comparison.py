"""A comparison on public data as one page. It carries no guarantee, and says so first."""

from __future__ import annotations

from tacit import __version__
from tacit.report.facts import AccuracyPicture
from tacit.report.markup import join, tag
from tacit.report.page import page
from tacit.report.sections.accuracy import scores_section


def comparison_page(
    title: str, picture: AccuracyPicture, *, remark: str = "", made_on: str = ""
) -> str:
    """Return the page: that nothing on it is private, then the scores.

    Many fits and their scores went into it, so the budget of any one of them would be no promise
    about the records, and none is shown.

    Examples
    --------
    >>> from tacit.report import AccuracyPicture, AccuracyPoint
    >>> from tacit.report.comparison import comparison_page
    >>> points = (AccuracyPoint("output_perturbation", 1.0, 0.8),)
    >>> page = comparison_page("Income", AccuracyPicture(points, "The data are published."))
    >>> page.index("Not private") < page.index("<h1>Income</h1>") < page.index("0.8000")
    True
    """
    kicker = "Not private: a comparison on public data" + (f", {made_on}" if made_on else "")
    header = join(tag("p", kicker, class_="kicker"), tag("h1", title))
    footer = tag(
        "p",
        f"Written by tacit {__version__}. This page was made from records without protection, and "
        "carries no guarantee. It is one file, needs no network and holds no script.",
    )
    main = scores_section(picture, remark, first=True)
    return page(f"NOT PRIVATE: {title}", header, main, footer)
