"""The shell of the page: one file that asks nobody for anything."""

from __future__ import annotations

from tacit.report.markup import Child, Markup, join, tag
from tacit.report.style import STYLE

# The browser itself refuses scripts and every request, whatever a text in the page says.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'"


def page(title: str, header: Markup, main: Markup, footer: Markup) -> str:
    r"""Return a whole HTML document.

    Examples
    --------
    >>> from tacit.report.markup import tag
    >>> from tacit.report.page import page
    >>> page("A & B", tag("h1", "A & B"), tag("p", "text"), tag("p", "end"))[:35]
    '<!DOCTYPE html>\n<html lang="en">\n<h'
    """
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", name="referrer", content="no-referrer"),
        tag("title", title),
        tag("link", rel="icon", href="data:,"),
        tag("style", STYLE),
    )
    body = tag("body", tag("header", header), tag("main", main), tag("footer", footer))
    return join(
        Markup("<!DOCTYPE html>\n"), Markup('<html lang="en">\n'), head, body, Markup("</html>\n")
    )


def section(name: str, heading: str, *children: Child, first: bool = False) -> Markup:
    """Return a part of the page, which its heading names."""
    title = tag("h2", heading, id=name)
    kind = "first" if first else None
    return tag("section", title, *children, aria_labelledby=name, class_=kind)
