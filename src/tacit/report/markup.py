"""Build escaped HTML: elements, tables, the style sheet and the page."""

from __future__ import annotations

import html
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.resources import files

LONGEST_TEXT = 4000
LONGEST_NAME = 200
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
# Bidirectional control characters: a name with one of them could reorder the sentence around it.
_REORDERING = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_VOID = frozenset({"br", "circle", "line", "link", "meta", "path", "polyline", "rect"})


class Markup(str):
    """Text that is already HTML. Only this module makes it from plain text.

    Any string method gives plain text again, which is escaped when it is joined. markupsafe's type
    of this name stays markup when it is cut or joined by hand, so that half a tag would pass.
    """

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
            tag(
                "th",
                named(h.text) if h.name else h.text,
                scope="col",
                class_=_kind(h),
                role=role("columnheader"),
            )
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


def _kind(heading: Heading) -> str | None:
    kinds = ("picture", heading.picture), ("number", heading.number), ("word", heading.word)
    return next((kind for kind, applies in kinds if applies), None)


STYLE = Markup(files(__package__).joinpath("style.css").read_text(encoding="utf-8"))


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


def figures(numbers: Iterable[tuple[str, str]]) -> Markup:
    """Return large numbers side by side, each with its meaning below."""
    pairs = (tag("div", tag("dt", meaning), tag("dd", number)) for number, meaning in numbers)
    return tag("dl", *pairs, class_="figures")


def section(name: str, heading: str, *children: Child, first: bool = False) -> Markup:
    """Return a section labelled by its heading."""
    title = tag("h2", heading, id=name)
    kind = "first" if first else None
    return tag("section", title, *children, aria_labelledby=name, class_=kind)
