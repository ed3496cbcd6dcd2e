"""Build escaped HTML: elements, tables, the style sheet and the page."""

from __future__ import annotations

import html
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

LONGEST_TEXT = 4000
LONGEST_NAME = 200
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
# Bidirectional control characters: a name with one of them could reorder the sentence around it.
_REORDERING = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_VOID = frozenset({"br", "circle", "line", "link", "meta", "path", "polyline", "rect"})


class Markup(str):
    """Text that is already HTML. Only this module makes it from plain text."""

    __slots__ = ()


Child = str | Markup | None


def escape(text: str, longest: int = LONGEST_TEXT) -> Markup:
    """Escape text for HTML, replace control characters and bound its length.

    Examples
    --------
    >>> from tacit.report.markup import escape
    >>> escape("<b>&")
    '&lt;b&gt;&amp;'
    """
    if len(text) > longest:
        text = text[: longest - 1] + "\N{HORIZONTAL ELLIPSIS}"
    return Markup(html.escape("".join(map(_shown, text)), quote=True))


def _shown(character: str) -> str:
    if character in "\n\t":
        return " "
    hidden = unicodedata.category(character) in ("Cc", "Cs") or character in _REORDERING
    return _REPLACEMENT if hidden else character


def tag(name: str, /, *children: Child, **attributes: object) -> Markup:
    """Return an element; attributes are keywords, ``class_`` for class, ``_`` for a hyphen.

    Attributes that are None or False and children that are None are left out.

    Examples
    --------
    >>> from tacit.report.markup import tag
    >>> tag("p", "1 < 2", tag("br"), class_="note")
    '<p class="note">1 &lt; 2<br></p>'
    """
    inside = "".join(_attribute(key, value) for key, value in attributes.items())
    if name in _VOID:
        return Markup(f"<{name}{inside}>" if name in _HTML_VOID else f"<{name}{inside}/>")
    return Markup(f"<{name}{inside}>{join(*children)}</{name}>")


_HTML_VOID = frozenset({"br", "link", "meta"})


def _attribute(key: str, value: object) -> str:
    if value is None or value is False:
        return ""
    name = key.rstrip("_").replace("_", "-")
    name = "viewBox" if name == "viewbox" else name
    return f" {name}" if value is True else f' {name}="{escape(str(value))}"'


def join(*children: Child) -> Markup:
    """Concatenate pieces; each is escaped unless it is markup."""
    pieces = (child for child in children if child is not None)
    return Markup("".join(c if isinstance(c, Markup) else escape(c) for c in pieces))


def named(text: str) -> Markup:
    """Mark a name from a table or schema, so that its text direction stays isolated."""
    return tag("bdi", escape(text, LONGEST_NAME))


@dataclass(frozen=True)
class Heading:
    """The head of a column of text, numbers, single words or pictures.

    With ``name`` the text comes from a table or schema and may break anywhere.
    """

    text: str
    number: bool = False
    picture: bool = False
    word: bool = False
    name: bool = False


@dataclass(frozen=True)
class Row:
    """The cells of a row; the first is its header, ``kind`` is a class of the style sheet."""

    cells: tuple[Child, ...]
    kind: str | None = None


def table(
    caption: Child,
    headings: Sequence[Heading],
    rows: Sequence[Row],
    *,
    stacked: bool = False,
    forest: bool = False,
    numbered: bool = False,
) -> Markup:
    """Return a table. On a phone a stacked table becomes blocks, a forest puts pictures below.

    The first column of a numbered table is a short number; such a table may go over many pages.

    Examples
    --------
    >>> from tacit.report.markup import Heading, Row, table
    >>> table("Ages", [Heading("name"), Heading("age", number=True)], [Row(("Ann", "39"))])[:40]
    '<div class="table"><table><caption>Ages<'
    """

    # CSS blocks lose the table semantics for screen readers; ARIA roles restore them.
    def role(name: str) -> str | None:
        return name if stacked or forest else None

    head = tag(
        "tr",
        *(
            tag("th", _head(h), scope="col", class_=_kind(h), role=role("columnheader"))
            for h in headings
        ),
        role=role("row"),
    )
    body = [
        tag(
            "tr",
            tag("th", row.cells[0], scope="row", role=role("rowheader")),
            *(
                tag(
                    "td",
                    cell,
                    class_=_kind(heading),
                    data_name=heading.text if stacked and cell else None,
                    role=role("cell"),
                )
                for cell, heading in zip(row.cells[1:], headings[1:], strict=True)
            ),
            class_=row.kind,
            role=role("row"),
        )
        for row in rows
    ]
    return tag(
        "div",
        tag(
            "table",
            tag("caption", caption),
            tag("thead", head, role=role("rowgroup")),
            tag("tbody", *body, role=role("rowgroup")),
            class_=("stack" if stacked else "forest" if forest else "") + " numbered" * numbered
            or None,
            role=role("table"),
        ),
        class_="table",
    )


def _head(heading: Heading) -> Child:
    return named(heading.text) if heading.name else heading.text


def _kind(heading: Heading) -> str | None:
    kinds = ("picture", heading.picture), ("number", heading.number), ("word", heading.word)
    return next((kind for kind, applies in kinds if applies), None)


# Contrast (WCAG 2): at least 4.5 for text, at least 3 for lines that carry meaning.
STYLE = Markup(
    """
:root {
  color-scheme: light dark;
  --ground: #ffffff; --ink: #1b1f24; --soft: #57606a; --rule: #d5dae0;
  --faint: #e9ecf0; --accent: #0b5c8c; --tint: #e8f1f7;
  --alarm: #a40e26; --alarm-ground: #fdecee; --other: #57606a;
}
@media screen and (prefers-color-scheme: dark) {
  :root {
    --ground: #14171b; --ink: #e8eaed; --soft: #a9b1ba; --rule: #3a4149;
    --faint: #262b31; --accent: #6cb6e6; --tint: #1a2b38;
    --alarm: #ff9aa5; --alarm-ground: #3a171c; --other: #a9b1ba;
  }
}
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; text-size-adjust: 100%; }
body {
  margin: 0; background: var(--ground); color: var(--ink);
  font: 1rem/1.6 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif;
  font-variant-numeric: tabular-nums lining-nums; overflow-wrap: break-word;
}
header, main, footer { max-width: 46rem; margin: 0 auto; padding: 0 1.25rem; }
header { padding-top: 3rem; }
.kicker { margin: 0; color: var(--soft); font-size: .875rem; letter-spacing: .02em; }
h1 { margin: .25rem 0 0; font-size: 1.9rem; line-height: 1.2; font-weight: 650;
  letter-spacing: -.01em; overflow-wrap: anywhere; }
h2 { margin: 0 0 .75rem; font-size: 1.25rem; line-height: 1.3; font-weight: 650; }
h3 { margin: 2rem 0 .5rem; font-size: 1rem; font-weight: 650; }
p { margin: 0 0 1rem; max-width: 40rem; text-wrap: pretty; }
section { margin-top: 3rem; padding-top: 2rem; border-top: 1px solid var(--rule); }
section.first { margin-top: 1.5rem; padding-top: 0; border-top: 0; }
.statement { margin: 0 0 1.5rem; padding: 1.1rem 1.25rem; background: var(--tint);
  border-left: 4px solid var(--accent); font-size: 1.05rem; max-width: none; }
.figures { display: grid; grid-template-columns: repeat(3, 1fr); gap: 1.5rem; margin: 1.75rem 0; }
.figures div { display: flex; flex-direction: column; }
.figures dt { order: 2; color: var(--soft); font-size: .875rem; line-height: 1.4; }
.figures dd { order: 1; margin: 0 0 .2rem; font-size: 1.7rem; font-weight: 600; line-height: 1.2;
  color: var(--accent); white-space: nowrap; }
.meter { height: 1.1rem; margin: 1.5rem 0 .5rem; background: var(--faint);
  border: 1px solid var(--rule); print-color-adjust: exact; }
.meter span { display: block; height: 100%; background: var(--accent); }
.alarm { margin: 0 0 1.5rem; padding: 1.1rem 1.25rem; background: var(--alarm-ground);
  border: 2px solid var(--alarm); color: var(--ink); }
.alarm h3, .alarm.loud strong { color: var(--alarm); }
.alarm h3 { margin: 0 0 .4rem; }
.alarm p, .alarm ul { margin: 0 0 .5rem; }
header .alarm { margin: 1.25rem 0 0; max-width: none; }
.alarm > :last-child { margin-bottom: 0; }
.alarm.loud h3 { font-size: 1.6rem; text-transform: uppercase; letter-spacing: .02em; }
ul { padding-left: 1.2rem; }
figure { margin: 1.5rem 0; }
figcaption { color: var(--soft); font-size: .875rem; line-height: 1.5; max-width: 40rem;
  margin-top: .5rem; }
.table { margin: 1.5rem 0; }
table { width: 100%; border-collapse: collapse; font-size: .9rem; line-height: 1.45; }
caption { padding-bottom: .6rem; text-align: left; color: var(--soft); font-size: .875rem; }
th, td { padding: .45rem .75rem .45rem 0; text-align: left; vertical-align: top;
  border-bottom: 1px solid var(--faint); overflow-wrap: anywhere; }
bdi, code, caption { overflow-wrap: anywhere; }
th:last-child, td:last-child { padding-right: 0; }
thead th { border-bottom: 1px solid var(--rule); color: var(--soft); font-weight: 600;
  vertical-align: bottom; overflow-wrap: normal; }
tbody th { font-weight: 500; min-width: 6.5rem; }
.numbered tbody th { min-width: 0; }
.number { text-align: right; white-space: nowrap; overflow-wrap: normal; }
.stack .number, th.number { white-space: normal; }
.word { white-space: nowrap; }
.remark { display: block; color: var(--soft); font-size: .85rem; }
tr.chosen > * { background: var(--tint); }
tr.chosen > :first-child { box-shadow: inset 4px 0 0 var(--accent); padding-left: .9rem; }
tr.flagged > * { background: var(--alarm-ground); }
.badge { display: inline-block; padding: 0 .45em; border: 1px solid currentColor; font-size: .75rem;
  font-weight: 600; line-height: 1.5; color: var(--accent); white-space: nowrap; }
.flagged .badge { color: var(--alarm); } .badge.quiet { color: var(--soft); }
summary { padding: .5rem 0; color: var(--accent); font-weight: 600; cursor: pointer; }
.picture { width: 42%; text-align: center; }
td.picture { padding-top: .35rem; padding-bottom: .35rem; }
code { font: .85em ui-monospace, "SF Mono", Menlo, Consolas, monospace; overflow-wrap: anywhere; }
svg.chart { display: block; width: 100%; height: auto; }
svg.narrow { display: none; }
svg text { font-size: 13px; fill: var(--soft); font-family: inherit; }
svg .grid { stroke: var(--faint); } svg .axis { stroke: var(--soft); }
svg .series { color: var(--other); fill: currentColor; }
svg .series polyline { fill: none; stroke: currentColor; stroke-width: 1.5; }
svg .series .bar { stroke: currentColor; stroke-width: 1.5; }
svg .s0 { color: var(--accent); } svg .s0 polyline { stroke-width: 2.5; }
svg .s1 polyline { stroke-dasharray: 7 3; } svg .s2 polyline { stroke-dasharray: 2 3; }
svg .s3 polyline { stroke-dasharray: 9 3 2 3; } svg .s4 polyline { stroke-dasharray: 4 4; }
svg .s5 polyline { stroke-dasharray: 1 5; }
svg .level line { stroke: var(--ink); stroke-dasharray: 3 3; }
svg .level text { fill: var(--ink); paint-order: stroke; stroke: var(--ground); stroke-width: 4px; }
svg .marked circle { fill: none; stroke: var(--accent); stroke-width: 2; }
svg .marked line { stroke: var(--accent); stroke-dasharray: 2 3; }
svg .marked text { fill: var(--ink); font-weight: 600; }
svg.strip { display: block; overflow: visible; }
svg.strip .zero { stroke: var(--soft); opacity: .5; } svg.strip circle { fill: var(--accent); }
svg.strip .bar { stroke: var(--accent); stroke-width: 2; opacity: .55; }
.legend { display: flex; flex-wrap: wrap; gap: .3rem 1.5rem; margin: .5rem 0 0; padding: 0;
  list-style: none; font-size: .875rem; }
.legend li { min-width: 0; overflow-wrap: anywhere; }
.legend svg { width: 34px; height: 12px; margin-right: .5rem; vertical-align: baseline; }
footer { margin-top: 3.5rem; padding-top: 1.25rem; padding-bottom: 3rem; color: var(--soft);
  font-size: .875rem; }
footer p { max-width: none; }
@media (max-width: 34rem) {
  header { padding-top: 1.75rem; }
  header, main, footer { padding-left: 1rem; padding-right: 1rem; }
  h1 { font-size: 1.5rem; }
  section { margin-top: 2.25rem; padding-top: 1.5rem; }
  .figures { grid-template-columns: 1fr; gap: 1rem; }
  svg.wide { display: none; } svg.narrow { display: block; }
  .stack thead { position: absolute; width: 1px; height: 1px; overflow: hidden;
    clip-path: inset(50%); }
  .stack, .stack tbody, .stack tr, .stack th, .stack td, .stack caption { display: block; }
  .stack tr { padding: .6rem 0; border-bottom: 1px solid var(--rule); }
  .stack tr.chosen, .stack tr.flagged { padding-left: .75rem; padding-right: .75rem; }
  .stack tr.chosen { background: var(--tint); box-shadow: inset 4px 0 0 var(--accent); }
  .stack tr.flagged { background: var(--alarm-ground); }
  .stack tr > * { background: none; box-shadow: none; }
  .stack tbody th, .stack td, .stack tr.chosen > :first-child { padding: .1rem 0; border: 0;
    text-align: left; white-space: normal; overflow-wrap: anywhere; box-shadow: none;
    background: none; }
  .stack tbody th { font-weight: 600; }
  .numbered tbody th::before { content: "entry "; }
  .stack td[data-name]::before { content: attr(data-name) ": "; color: var(--soft); }
  th, td { padding-right: .5rem; }
  .forest thead { position: absolute; width: 1px; height: 1px; overflow: hidden;
    clip-path: inset(50%); }
  .forest, .forest caption, .forest tbody { display: block; }
  .forest tr { display: grid; grid-template-columns: minmax(0, 1fr) auto auto; gap: 0 .9rem;
    padding: .45rem 0 .3rem; border-bottom: 1px solid var(--faint); }
  .forest th, .forest td { padding: 0; border: 0; }
  .forest td.picture { grid-column: 1 / -1; width: auto; }
}
@media print {
  @page { margin: 18mm 16mm; }
  html { font-size: 10pt; } body { line-height: 1.45; }
  header, main, footer { max-width: none; padding: 0; }
  header { padding-top: 0; }
  section { margin-top: 1.6rem; padding-top: 1.2rem; }
  h2, h3, caption { break-after: avoid; }
  figure, tr, .statement, .alarm, .figures { break-inside: avoid; }
  thead { display: table-header-group; }
  table:not(.forest, .numbered) { break-inside: avoid; } p { orphans: 3; widows: 3; }
  h1 { font-size: 18pt; } table { font-size: 9pt; } th, td { padding-top: .3rem;
    padding-bottom: .3rem; } figure, .table { margin: 1rem 0; }
  td.picture { padding-top: .1rem; padding-bottom: .1rem; }
  details::details-content { content-visibility: visible; block-size: auto; }
  footer { margin-top: 1.5rem; padding-bottom: 0; break-inside: avoid; }
  .statement, .alarm, tr, .badge { print-color-adjust: exact;
    -webkit-print-color-adjust: exact; }
  svg.wide { display: block; max-height: 9cm; } svg.narrow { display: none; }
}
"""
)


# The browser blocks scripts and all requests, even if escaping were to fail.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'"


def page(title: str, header: Markup, main: Markup, footer: Markup) -> str:
    r"""Return a whole HTML document.

    Examples
    --------
    >>> from tacit.report.markup import tag
    >>> from tacit.report.markup import page
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
    """Return a section labelled by its heading."""
    title = tag("h2", heading, id=name)
    kind = "first" if first else None
    return tag("section", title, *children, aria_labelledby=name, class_=kind)
